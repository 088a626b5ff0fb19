# SPDX-License-Identifier: MIT
#
# The soak runs for a long time and checks its resources. Part of the Makefile.

SOAK_BUILD := $(BUILD)/test/long/soak
SOAK_OBJECTS := $(call objects,test/long/soak/*.c)
SOAK_SUPPORT := $(call objects,test/model/wheel_*.c test/support/cache_value.c \
	test/support/random.c)

.PHONY: soak

$(SOAK_OBJECTS): EXTRA = -UNDEBUG -Ibench -Itest

$(SOAK_BUILD)/soak: $(SOAK_OBJECTS) $(BENCH_SUPPORT) $(SOAK_SUPPORT) $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lm

ifneq ($(filter long/soak/test_soak,$(TESTS)),)
test: $(SOAK_BUILD)/soak
endif

soak: $(SOAK_BUILD)/soak ## use wheels and caches for hours: HOURS= SEED=
	@$< --seconds=$(or $(HOURS),2)h --seed=$(or $(SEED),$$(date +%s))

-include $(SOAK_OBJECTS:.o=.d)
