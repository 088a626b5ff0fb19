# SPDX-License-Identifier: MIT
#
# Programs that run for long and look at what they have used meanwhile. Part of the Makefile.

SOAK_OBJECTS := $(call objects,test/soak/*.c)

.PHONY: soak-cache

$(SOAK_OBJECTS): EXTRA = -UNDEBUG -Ibench

$(BUILD)/test/soak/cache_soak: $(SOAK_OBJECTS) $(BENCH_SUPPORT) $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lm

soak-cache: $(BUILD)/test/soak/cache_soak ## use a cache for long: SECONDS= SEED=
	@$< --seconds=$(or $(SECONDS),600) --seed=$(or $(SEED),$$(date +%s))

-include $(SOAK_OBJECTS:.o=.d)
