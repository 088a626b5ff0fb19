# SPDX-License-Identifier: MIT
#
# This part of the Makefile builds the torture of the part on Redis.

.PHONY: torture-redis torture-seeded

ifeq ($(REDIS_FOUND),yes)
TORTURE_OBJECTS := $(call objects,test/redis/torture/*.c)
TORTURE_CHECKER := $(addprefix $(BUILD)/test/redis/torture/,checker.o check_runs.o \
	check_recurring.o check_all.o story.o story_read.o disk.o)
TORTURE := $(BUILD)/test/redis/torture/torture

$(TORTURE_OBJECTS): EXTRA = -UNDEBUG -Itest -Itest/redis $(redis_cflags)

$(TORTURE): $(TORTURE_OBJECTS) $(REDIS_TEST_SUPPORT) $(TEST_SUPPORT) $(REDIS_OBJECTS) \
		$(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lcmocka $(redis_libs)

# These go into a redis-server, so they do not use the build's flags.
TORTURE_PRELOADED := $(addprefix $(BUILD)/test/redis/torture/,shifted_clock.so noted_disk.so)

$(TORTURE_PRELOADED): $(BUILD)/test/redis/torture/%.so: test/redis/torture/preload/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -o $@ $<

$(TORTURE) $(BUILD)/test/redis/all $(BUILD)/test/redis/keys/all: | $(TORTURE_PRELOADED)

$(BUILD)/test/redis/all: $(TORTURE_CHECKER)
ifneq ($(filter redis/test_torture,$(TESTS)),)
test: $(TORTURE)
endif

torture-redis: $(TORTURE) ## torture workers and Redis: MODE= SECONDS= SEED=, HISTORY=
	@COMMIT=$$(bench/revision.sh) \
		$< $(if $(HISTORY),check $(HISTORY),run $(or $(MODE),single) \
		$(or $(SECONDS),60) $(or $(SEED),$$(date +%s))) $(SUMMARY)

torture-seeded: $(TORTURE) ## put faults into a copy of src/, and find them by torture
	@SECONDS_OF_EACH=$(SECONDS) test/redis/torture/seeded.sh

-include $(TORTURE_OBJECTS:.o=.d)
else
torture-redis torture-seeded:
	@echo "the part on Redis is not built: try 'make deps', and not REDIS=no" >&2; false
endif
