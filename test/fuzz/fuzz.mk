# SPDX-License-Identifier: MIT
#
# Fuzz targets: with clang's fuzzer by `make fuzz`, and on the inputs that stand in test/fuzz, by a
# small program, in `make test`. Part of the Makefile.

FUZZ_BUILD := $(BUILD)/test/fuzz
FUZZ_TARGETS := cron zone
FUZZ_INPUTS := $(FUZZ_TARGETS:%=$(FUZZ_BUILD)/inputs_%)
FUZZ_OBJECTS := $(call objects,test/fuzz/*.c)
FUZZ_CC ?= clang
FUZZ_FLAGS := -g -O1 -UNDEBUG -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined
# Of each target.
FUZZ_SECONDS ?= 60

.PHONY: fuzz

-include $(FUZZ_OBJECTS:.o=.d)

$(FUZZ_BUILD)/inputs_%: $(FUZZ_BUILD)/fuzz_%.o $(FUZZ_BUILD)/run_inputs.o $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^

ifneq ($(filter fuzz/test_inputs,$(TESTS)),)
test: $(FUZZ_INPUTS)
endif

# All that they use, compiled for the fuzzer.
$(FUZZ_BUILD)/fuzz_%: test/fuzz/fuzz_%.c $(wildcard test/fuzz/*.h src/cron/*.[ch] \
		include/timingwheel/*.h)
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(OUR_CPPFLAGS) -std=c11 $(FUZZ_FLAGS) -o $@ $< $(wildcard src/cron/*.c)

# What is found new is kept in the build folder, an input that breaks something too.
fuzz: $(FUZZ_TARGETS:%=$(FUZZ_BUILD)/fuzz_%) ## fuzz what reads foreign input: FUZZ_SECONDS=60 each
	@for target in $(FUZZ_TARGETS); do \
		mkdir -p $(FUZZ_BUILD)/found_$$target && \
		$(FUZZ_BUILD)/fuzz_$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
			-print_final_stats=1 -artifact_prefix=$(FUZZ_BUILD)/$$target- \
			$(FUZZ_BUILD)/found_$$target test/fuzz/$$target || exit 1; \
	done
