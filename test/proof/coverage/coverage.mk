# SPDX-License-Identifier: MIT
#
# This part of the Makefile measures which lines and branches of src/ the tests and the simulation
# reach.

COVERAGE_BUILD := build/coverage
# Tests that build their own library, or run none, are left out.
COVERAGE_OF := $(if $(filter file,$(origin TESTS)),all,some)
COVERAGE_TESTS := $(if $(filter some,$(COVERAGE_OF)),$(TESTS),$(filter-out house/check_% \
	house/readme_example house/test_cxx house/test_leaks house/man/% long/install/% \
	long/packaging/% redis/test_core_alone redis/test_packaging,$(TESTS_OF_ALL)))
# The code is not optimized, and threads share the counters; assert(), whose other branch is for
# bugs, is left out; long tests do a part of their work, as under a sanitizer.
# The two libraries are linked in parts, which must not contain the counters' own library.
COVERAGE_FLAGS := CFLAGS='-O0 -g' LDFLAGS=--coverage \
	CPPFLAGS='--coverage -fprofile-update=atomic -DNDEBUG \
	-include test/proof/coverage/exit.h'

.PHONY: coverage

coverage: ## run the tests (or TESTS=) and list what of src/ they don't reach
	@find $(COVERAGE_BUILD) -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) --no-print-directory BUILD=$(COVERAGE_BUILD) $(COVERAGE_FLAGS) TEST_TIMEOUT=1800 \
		TESTS='$(COVERAGE_TESTS)' test
	@$(MAKE) --no-print-directory BUILD=$(COVERAGE_BUILD) $(COVERAGE_FLAGS) \
		SEED=$(or $(SEED),1) STEPS=$(or $(STEPS),60000000) sim
	@test/proof/coverage/report.sh $(COVERAGE_BUILD) $(COVERAGE_OF)
