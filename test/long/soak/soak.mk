# SPDX-License-Identifier: MIT
#
# These programs run for a long time and check their resources. Part of the Makefile.

SOAK_BUILD := $(BUILD)/test/long/soak
SOAK_OBJECTS := $(call objects,test/long/soak/*.c)
SOAK_SUPPORT := $(call objects,test/model/wheel_*.c test/support/random.c)
SOAK_PROGRAMS := $(SOAK_BUILD)/soak $(SOAK_BUILD)/cache_soak

.PHONY: soak soak-cache

$(SOAK_OBJECTS): EXTRA = -UNDEBUG -Ibench -Itest

$(SOAK_PROGRAMS): $(SOAK_BUILD)/%: $(SOAK_BUILD)/%.o \
		$(filter-out $(SOAK_PROGRAMS:=.o),$(SOAK_OBJECTS)) $(BENCH_SUPPORT) \
		$(SOAK_SUPPORT) $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lm

ifneq ($(filter long/soak/test_soak,$(TESTS)),)
test: $(SOAK_BUILD)/soak
endif

soak: $(SOAK_BUILD)/soak ## use wheels and caches for hours: HOURS= SEED=
	@test/long/soak/run.sh $(or $(HOURS),2) $(or $(SEED),$$(date +%s))

soak-cache: $(SOAK_BUILD)/cache_soak ## use a cache for minutes: SECONDS= SEED=
	@$< --seconds=$(or $(SECONDS),600) --seed=$(or $(SEED),$$(date +%s))

-include $(SOAK_OBJECTS:.o=.d)
