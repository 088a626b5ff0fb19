# SPDX-License-Identifier: MIT
#
# These checks take a night. Part of the Makefile.

DEBIANS ?= bookworm trixie sid

.PHONY: debians

debians: ## run the README's commands in fresh Debians, by mmdebstrap, as root; DEBIANS=
	@test/long/debian.sh $(DEBIANS)
