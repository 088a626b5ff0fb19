# SPDX-License-Identifier: MIT
#
# An emulator runs the core's and the cache's tests for other processors; they also run with another
# C library. Part of the Makefile.

# These are excluded:
#   house/test_examples       runs the host's programs
#   runtime/test_memory, cache/test_memory
#                             resident memory, which includes the emulator's
#   faults/test_cache_faults  takes more than ten minutes
#   runtime/test_real_clock   real time, which the emulator takes
#   runtime/test_exceptions   needs a compiler of C++ for that processor
MACHINE_TESTS_NOT := house/test_examples runtime/test_memory cache/test_memory \
	faults/test_cache_faults runtime/test_real_clock runtime/test_exceptions
MACHINE_TESTS ?= $(filter-out $(MACHINE_TESTS_NOT),$(TEST_PROGRAMS))
MACHINES ?= s390x arm64 musl

.PHONY: machines

machines: ## run the core's tests as s390x (big-endian) and arm64, by an emulator, and with musl
	@test/long/machines/run.sh "$(MACHINES)" $(MACHINE_TESTS)
