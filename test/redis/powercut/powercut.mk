# SPDX-License-Identifier: MIT
#
# This part of the Makefile builds the power cuts and failovers of the part on Redis.

.PHONY: power-cuts

ifeq ($(REDIS_FOUND),yes)
POWERCUT_OBJECTS := $(call objects,test/redis/powercut/*.c)
NOTED_DISK := $(BUILD)/test/redis/powercut/noted_disk.so

$(POWERCUT_OBJECTS): EXTRA = -UNDEBUG -Itest -Itest/redis $(redis_cflags)

$(BUILD)/test/redis/all: $(POWERCUT_OBJECTS) | $(NOTED_DISK)

# It goes into a redis-server, so it does not use the build's flags.
$(NOTED_DISK): test/redis/powercut/preload/noted_disk.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -Wall -Wextra -O2 -shared -fPIC -o $@ $<

power-cuts: $(BUILD)/test/redis/all ## cut the power of Redis CUTS=1000 times; SEED=
	@CUTS=$(or $(CUTS),1000) $< test_power_cuts

-include $(POWERCUT_OBJECTS:.o=.d)
else
power-cuts:
	@echo "the part on Redis is not built: try 'make deps', and not REDIS=no" >&2; false
endif
