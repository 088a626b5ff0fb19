# SPDX-License-Identifier: MIT
#
# Programs to read and to begin from: each is compiled against the public headers alone, as a user's
# would be, and run by house/test_examples. Part of the Makefile.

PACKAGES += libsqlite3-dev
EXAMPLE_OBJECTS := $(call objects,test/examples/*.c)
SQLITE_FOUND := $(shell pkg-config --exists sqlite3 2>/dev/null && echo yes)
ifneq ($(SQLITE_FOUND),yes)
EXAMPLE_OBJECTS := $(filter-out %/lookup.o,$(EXAMPLE_OBJECTS))
endif
EXAMPLES := $(EXAMPLE_OBJECTS:.o=)

-include $(EXAMPLE_OBJECTS:.o=.d)

$(EXAMPLE_OBJECTS): OUR_CPPFLAGS := -D_GNU_SOURCE -Iinclude
$(BUILD)/test/examples/lookup: EXAMPLE_LIBS := -lsqlite3

$(EXAMPLES): %: %.o $(BUILD)/$(STATIC_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(EXAMPLE_LIBS)

ifneq ($(filter house/test_examples,$(TESTS)),)
test: $(EXAMPLES)
endif
