# SPDX-License-Identifier: MIT
#
# This part of the Makefile makes the manual's pages for the script that checks them.

ifneq ($(filter house/man/test_man,$(TESTS)),)
test: man
endif
