# SPDX-License-Identifier: MIT
#
# These tests inject failures of allocations, threads and descriptors, and count them. Part of the
# Makefile.

FAULT_TESTS := $(filter %_faults,$(TEST_PROGRAMS) $(REDIS_TESTS))

.PHONY: failures

failures: ## fail each allocation, thread and descriptor of each call once; count them
	@$(MAKE) --no-print-directory FAULTS=all TESTS='$(FAULT_TESTS)' test
	@grep -h 'failures injected' $(FAULT_TESTS:%=$(BUILD)/test/%.log)
