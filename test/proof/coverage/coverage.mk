# SPDX-License-Identifier: MIT
#
# This part of the Makefile measures which lines and branches of src/ the tests reach.

COVERAGE_BUILD := build/coverage
# Tests that build their own library, or run none, are left out.
COVERAGE_OF := $(if $(filter file,$(origin TESTS)),all,some)
COVERAGE_TESTS := $(if $(filter some,$(COVERAGE_OF)),$(TESTS),$(filter-out house/check_% \
	house/readme_example house/man/% long/install/% proof/check_page redis/test_core_alone \
	redis/test_packaging,$(TESTS_OF_ALL)))
# The code is not optimized, and threads share the counters; assert(), whose other branch is for
# bugs, is left out; long tests do a part of their work, as under a sanitizer.
# The two libraries are linked in parts, which must not contain the counters' own library.
COVERAGE_FLAGS := CFLAGS='-O0 -g' LDFLAGS=--coverage \
	CPPFLAGS='--coverage -fprofile-update=atomic -DNDEBUG \
	-include test/proof/coverage/exit.h'

.PHONY: coverage

# Code that depends on chance may be reached when that part's tests run again: the counts add up.
COVERAGE_ROUNDS := 3
coverage_of_cache := $(filter cache/%,$(COVERAGE_TESTS))
coverage_of_redis := $(filter redis/%,$(COVERAGE_TESTS))
coverage_of_core := $(filter-out cache/% redis/%,$(COVERAGE_TESTS))

coverage: ## run the tests (or TESTS=) and list what of src/ they don't reach
	@find $(COVERAGE_BUILD) -name '*.gcda' -delete 2>/dev/null || true
	@tests='$(COVERAGE_TESTS)'; for round in $$(seq $(COVERAGE_ROUNDS)); do \
		$(MAKE) --no-print-directory BUILD=$(COVERAGE_BUILD) $(COVERAGE_FLAGS) \
			TEST_TIMEOUT=1800 TESTS="$$tests" test || exit 1; \
		test/proof/coverage/report.sh $(COVERAGE_BUILD) $(COVERAGE_OF) && exit 0; \
		tests=; for part in $$(cat $(COVERAGE_BUILD)/again); do case $$part in \
			cache) tests="$$tests $(coverage_of_cache)" ;; \
			redis) tests="$$tests $(coverage_of_redis)" ;; \
			core) tests="$$tests $(coverage_of_core)" ;; \
		esac; done; \
		test -n "$$tests" || exit 1; \
	done; exit 1
