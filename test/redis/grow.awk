# SPDX-License-Identifier: MIT
#
# Makes the public header of a later version: each struct has more fields at its end, except those
# that never change.
/^struct tw_redis_[a-z_]+ \{/ {
	grows = !/_(histogram|source) /
}
/^};/ && grows {
	print "\tunsigned char later[40];"
	grows = 0
}
{
	print
}
