# SPDX-License-Identifier: MIT
#
# The manual's pages, for the script that looks at them. Part of the Makefile.

ifneq ($(filter house/man/test_man,$(TESTS)),)
test: man
endif
