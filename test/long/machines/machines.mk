# SPDX-License-Identifier: MIT
#
# The core's and the cache's tests for other processors, run by an emulator, and with another C
# library. Part of the Makefile.

# Not these:
#   %_yields                  the same code once more, with other timing
#   house/test_examples       runs the host's programs
#   runtime/test_memory, cache/test_memory
#                             resident memory, of which the emulator has its own
#   faults/test_cache_faults  takes more than ten minutes
#   runtime/test_real_clock   real time, of which the emulator takes much
#   runtime/test_exceptions   needs a compiler of C++ for that processor
MACHINE_TESTS_NOT := %_yields house/test_examples runtime/test_memory cache/test_memory \
	faults/test_cache_faults runtime/test_real_clock runtime/test_exceptions
MACHINE_TESTS ?= $(filter-out $(MACHINE_TESTS_NOT),$(TEST_PROGRAMS))
MACHINES ?= s390x arm64 musl

.PHONY: machines

machines: ## run the core's tests as s390x (big-endian) and arm64, by an emulator, and with musl
	@test/long/machines/run.sh "$(MACHINES)" $(MACHINE_TESTS)
