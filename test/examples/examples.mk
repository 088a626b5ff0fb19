# SPDX-License-Identifier: MIT
#
# Example programs: each is compiled against the public headers alone, as a user's would be, and run
# by house/test_examples. Part of the Makefile.

PACKAGES += libsqlite3-dev
CI_PACKAGES += libuv1-dev libevent-dev liburing-dev libglib2.0-dev libasio-dev

# PROGRAM:LIBRARY, with the library's name for pkg-config. Where it is missing, so is the program.
NEEDS := lookup:sqlite3 libuv:libuv libevent:libevent_core io_uring:liburing glib:glib-2.0
library = $(lastword $(subst :, ,$(1)))
EXAMPLES_WITHOUT := $(foreach need,$(NEEDS),$(if $(shell pkg-config --exists $(call \
	library,$(need)) 2>/dev/null && echo yes),,%/$(firstword $(subst :, ,$(need))).o))
EXAMPLE_OBJECTS := $(filter-out $(EXAMPLES_WITHOUT),$(call objects,test/examples/*.c \
	test/examples/loops/*.c))
EXAMPLES := $(EXAMPLE_OBJECTS:.o=)
# Asio has headers alone. They use fences, of which gcc's thread sanitizer warns.
EXAMPLE_OF_ASIO := $(if $(wildcard /usr/include/asio.hpp),$(BUILD)/test/examples/loops/asio)

-include $(EXAMPLE_OBJECTS:.o=.d)

# The flags of pkg-config for the library of the target's program.
flags_of_library = $(foreach need,$(filter $(basename $(@F)):%,$(NEEDS)),$(shell pkg-config $(1) \
	$(call library,$(need))))

$(EXAMPLE_OBJECTS): private OUR_CPPFLAGS = -D_GNU_SOURCE -Iinclude $(call \
	flags_of_library,--cflags)

$(EXAMPLES): %: %.o $(BUILD)/$(STATIC_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(call flags_of_library,--libs)

$(EXAMPLE_OF_ASIO): $(BUILD)/%: %.cpp test/examples/loops/timers.h $(BUILD)/$(STATIC_LIB)
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++20 -g -Wall -Wextra $(SANITIZE_FLAGS) $(if $(filter \
		thread,$(SANITIZE)),-Wno-tsan) -Iinclude -pthread $(LDFLAGS) -o $@ \
		$(filter-out %.h,$^)

ifneq ($(filter house/test_examples,$(TESTS)),)
test: $(EXAMPLES) $(EXAMPLE_OF_ASIO)
endif
