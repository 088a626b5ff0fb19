# SPDX-License-Identifier: MIT
#
# This makes and uses the archive and Debian's packages. It takes minutes, too long for the tests of
# every change. Part of the Makefile.

.PHONY: test-packages

test-packages: ## make the archive and Debian's packages, and a program against them
	@CC='$(CC)' MAKE='$(MAKE)' BUILD=$(BUILD) VERSION=$(VERSION) \
		test/long/packaging/test_packages.sh
