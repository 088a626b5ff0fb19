# SPDX-License-Identifier: MIT
#
# Programs to read and to begin from: each is compiled against the public headers alone, as a user's
# would be, and run by house/test_examples. Part of the Makefile.

PACKAGES += libsqlite3-dev libuv1-dev
# What a program needs beside; one whose library is not there is left out.
has = $(shell pkg-config --exists $(1) 2>/dev/null && echo yes)
EXAMPLES_WITHOUT := $(if $(call has,sqlite3),,%/lookup.o) $(if $(call has,libuv),,%/uv_timers.o)
EXAMPLE_OBJECTS := $(filter-out $(EXAMPLES_WITHOUT),$(call objects,test/examples/*.c))
EXAMPLES := $(EXAMPLE_OBJECTS:.o=)

-include $(EXAMPLE_OBJECTS:.o=.d)

$(EXAMPLE_OBJECTS): OUR_CPPFLAGS := -D_GNU_SOURCE -Iinclude
$(BUILD)/test/examples/lookup: EXAMPLE_LIBS := -lsqlite3
$(BUILD)/test/examples/uv_timers: EXAMPLE_LIBS := -luv

$(EXAMPLES): %: %.o $(BUILD)/$(STATIC_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(EXAMPLE_LIBS)

ifneq ($(filter house/test_examples,$(TESTS)),)
test: $(EXAMPLES)
endif
