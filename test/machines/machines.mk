# SPDX-License-Identifier: MIT
#
# The core's and the cache's tests for other processors, run by an emulator. Part of the Makefile.

# Not these:
#   %_yields           the same code once more, with other timing
#   test_examples      runs the host's programs
#   test_memory, test_cache_memory
#                      resident memory, of which the emulator has its own
#   test_cache_faults  takes more than ten minutes
#   test_real_clock    real time, of which the emulator takes much
MACHINE_TESTS_NOT := %_yields test_examples test_memory test_cache_memory test_cache_faults \
	test_real_clock
MACHINE_TESTS ?= $(filter-out $(MACHINE_TESTS_NOT),$(TEST_PROGRAMS))
MACHINES ?= s390x arm64

.PHONY: machines

machines: ## run the core's tests as s390x (big-endian) and arm64, by an emulator
	@test/machines/run.sh "$(MACHINES)" $(MACHINE_TESTS)
