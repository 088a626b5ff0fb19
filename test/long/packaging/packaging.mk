# SPDX-License-Identifier: MIT
#
# The archive and Debian's packages, made and used: minutes, so not one of the tests of every
# change. Part of the Makefile.

.PHONY: test-packages

test-packages: ## make the archive and Debian's packages, and a program against them
	@CC='$(CC)' MAKE='$(MAKE)' BUILD=$(BUILD) VERSION=$(VERSION) \
		test/long/packaging/test_packages.sh
