# SPDX-License-Identifier: MIT
#
# How many cache lines threads write to together, for each call (shared_lines.c). Part of the
# Makefile.

# This is the library with calls at its loads and stores, which go to stores.c: the sanitizer's own
# library is not linked, and the sources must not see a sanitizer. The compiler must not inline
# functions of the C library that store, as these stores would not be logged.
LINES_OBJECTS := $(BUILD)/bench/costs/lines.o
LINES_PARTS := $(addprefix $(BUILD)/bench/costs/,shared_lines.o stores.o costs.o)
LINES_FLAGS := -O2 -g -fsanitize=thread -U__SANITIZE_THREAD__ -Wno-tsan \
	-Wno-unknown-warning-option -fno-builtin
LINES_WRAP := $(addprefix -Wl$(comma)--wrap=,main clock_gettime clock_getres getrandom madvise \
	memcpy memmove memset mmap pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock)

-include $(LINES_OBJECTS:.o=.d) $(LINES_PARTS:.o=.d)

$(LINES_OBJECTS): $(LIB_UNIT) $(BUILD)/flags | $(AFTER_DEPS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(LINES_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bench/costs/shared_lines: $(LINES_PARTS) $(LINES_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) $(LINES_WRAP) -no-pie -o $@ $^
