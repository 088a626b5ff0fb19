# SPDX-License-Identifier: MIT
#
# The site, for the tests that look at it, where it can be made. Part of the Makefile.

ifneq ($(filter house/test_site,$(TESTS)),)
test: $(and $(REDIS_FOUND),$(shell command -v mandoc >/dev/null && command -v lowdown),site)
endif
