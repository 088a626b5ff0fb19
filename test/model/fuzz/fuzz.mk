# SPDX-License-Identifier: MIT
#
# This part of the Makefile runs the fuzz targets: with clang's fuzzer by `make fuzz`, and by a
# small program, on the inputs in test/model/fuzz, in `make test`.
#
#     make fuzz FUZZ_SECONDS=60        each target for a minute; FUZZ_HOURS=8 for hours
#     make fuzz FUZZ_TARGETS="wheel"   only these
#     make fuzz-build                  builds all, as OSS-Fuzz does with its own flags

FUZZ_BUILD := $(BUILD)/test/model/fuzz
FUZZ_CORE := cron zone wheel handles cache
FUZZ_REDIS := reply record url targets line answer host
FUZZ_ALL := $(FUZZ_CORE) $(if $(REDIS_FOUND),$(FUZZ_REDIS))
FUZZ_TARGETS ?= $(FUZZ_ALL)
FUZZ_HOURS ?=
# Each target runs for this time.
FUZZ_SECONDS ?= $(if $(FUZZ_HOURS),$(shell expr $(FUZZ_HOURS) '*' 3600),60)
FUZZ_CC ?= clang
# This compiler links: OSS-Fuzz's engine is C++.
FUZZ_LINK ?= $(FUZZ_CC)
FUZZ_FLAGS ?= -g -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FUZZ_ENGINE ?= -fsanitize=fuzzer

FUZZ_OBJECTS := $(call objects,test/model/fuzz/*.c)
FUZZ_INPUTS := $(FUZZ_ALL:%=$(FUZZ_BUILD)/inputs_%)
# These are linked with each target; the second list is compiled for the fuzzer.
FUZZ_PARTS := $(LIB_OBJECTS) $(TEST_SUPPORT) $(FUZZ_BUILD)/aborts.o
FUZZ_REDIS_PARTS := $(filter-out %/stream.o,$(REDIS_OBJECTS)) $(addprefix $(BUILD)/, \
	$(addprefix src/twr/,host_name.o task_line.o when.o) \
	$(addprefix test/,redis/support/calls.o model/fuzz/false_stream.o \
	model/fuzz/lines.o))
fuzz_objects = $(patsubst $(BUILD)/%,$(FUZZ_BUILD)/objects/%,$(1))

.PHONY: fuzz fuzz-build

FUZZ_INCLUDES := -Itest $(if $(REDIS_FOUND),-Itest/redis)
fuzz_cflags = $(if $(REDIS_FOUND),$(redis_cflags))
$(FUZZ_OBJECTS): EXTRA = -UNDEBUG -Wno-unused-parameter $(FUZZ_INCLUDES) $(fuzz_cflags)
-include $(FUZZ_OBJECTS:.o=.d) $(patsubst %.o,%.d,$(call fuzz_objects,$(FUZZ_OBJECTS) \
	$(FUZZ_PARTS) $(FUZZ_REDIS_PARTS)))

$(FUZZ_INPUTS): $(FUZZ_BUILD)/inputs_%: $(FUZZ_BUILD)/fuzz_%.o $(FUZZ_BUILD)/run_inputs.o \
		$(FUZZ_PARTS)
	$(call say_once,LD,$(@D)/inputs_*)
	$(Q)$(LINK) -o $@ $^ -lcmocka $(FUZZ_LIBS)

ifneq ($(filter model/fuzz/test_inputs,$(TESTS)),)
test: $(FUZZ_INPUTS)
endif

FUZZ_COMPILE = $(Q)$(FUZZ_CC) $(OUR_CPPFLAGS) $(CPPFLAGS) $(FUZZ_INCLUDES) $(fuzz_cflags) \
	$(filter-out $(SANITIZE_FLAGS),$(OUR_CFLAGS)) $(FUZZ_FLAGS) -UNDEBUG \
	-Wno-unused-parameter

$(FUZZ_BUILD)/objects/%.o: %.c $(BUILD)/flags | $(AFTER_DEPS)
	$(call say_once,FUZZ,$(<D)/*.c)
	@mkdir -p $(@D)
	$(FUZZ_COMPILE) -MMD -MP -c -o $@ $<

$(FUZZ_BUILD)/objects/src/timingwheel.o: $(LIB_UNIT) $(BUILD)/flags
	@mkdir -p $(@D)
	$(FUZZ_COMPILE) -MMD -MP -c -o $@ $<

$(FUZZ_BUILD)/objects/src/redis/scripts.o: $(BUILD)/src/redis/scripts.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(FUZZ_COMPILE) -c -o $@ $<

ifeq ($(REDIS_FOUND),yes)
$(FUZZ_REDIS:%=$(FUZZ_BUILD)/fuzz_%): $(call fuzz_objects,$(FUZZ_REDIS_PARTS))
$(FUZZ_REDIS:%=$(FUZZ_BUILD)/inputs_%): $(FUZZ_REDIS_PARTS)
$(FUZZ_REDIS:%=$(FUZZ_BUILD)/fuzz_%) $(FUZZ_REDIS:%=$(FUZZ_BUILD)/inputs_%): \
	FUZZ_LIBS = $(redis_libs) -ljansson
endif

$(FUZZ_ALL:%=$(FUZZ_BUILD)/fuzz_%): $(FUZZ_BUILD)/fuzz_%: \
		$(FUZZ_BUILD)/objects/test/model/fuzz/fuzz_%.o $(call fuzz_objects,$(FUZZ_PARTS))
	$(call say_once,LD,$(@D)/fuzz_*)
	$(Q)$(FUZZ_LINK) -pthread $(FUZZ_FLAGS) $(LDFLAGS) -o $@ $^ $(FUZZ_ENGINE) -lcmocka \
		$(FUZZ_LIBS)

fuzz-build: $(FUZZ_TARGETS:%=$(FUZZ_BUILD)/fuzz_%)

export FUZZ_ALL FUZZ_BUILD FUZZ_SECONDS FUZZ_TARGETS

fuzz: fuzz-build ## fuzz the calls and what reads foreign input: FUZZ_SECONDS=60 or FUZZ_HOURS= each
	@test/model/fuzz/run.sh $(FUZZ_TARGETS)
