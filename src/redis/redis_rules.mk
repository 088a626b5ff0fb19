# SPDX-License-Identifier: MIT
#
# The rules of the part on Redis; the names are in redis.mk.

REDIS_OURS := $(REDIS_OBJECTS) $(REDIS_PROGRAM_OBJECTS) $(REDIS_TEST_OBJECTS) \
	$(REDIS_TEST_SUPPORT) $(REDIS_BENCH_OBJECTS) $(REDIS_BENCH_SUPPORT)

$(REDIS_OURS): EXTRA += $(redis_cflags)
$(REDIS_PROGRAM_OBJECTS): EXTRA += $(twr_cflags)
# A script may be longer than the strings that every C compiler must take.
$(BUILD)/src/redis/scripts.o: EXTRA += -Wno-overlength-strings
$(REDIS_TEST_OBJECTS) $(REDIS_TEST_SUPPORT): EXTRA += -UNDEBUG -Itest -Itest/redis
$(REDIS_BENCH_OBJECTS) $(REDIS_BENCH_SUPPORT): EXTRA += -O2 -Ibench -Ibench/redis -Itest/redis

-include $(REDIS_OURS:.o=.d)

# Each script with what they share before it, and the digest by which Redis knows it.
$(BUILD)/src/redis/scripts.c: src/redis/scripts/embed.sh $(REDIS_SCRIPTS) $(REDIS_SHARED)
	$(call say,LUA,$@)
	@mkdir -p $(@D)
	$(Q)sh src/redis/scripts/embed.sh $(REDIS_SCRIPTS) >$@

$(BUILD)/src/twr/page.c: src/twr/embed.sh src/twr/page.html
	$(call say,HTML,$@)
	@mkdir -p $(@D)
	$(Q)sh $^ >$@

$(BUILD)/src/redis/scripts.o $(BUILD)/src/twr/page.o: %.o: %.c $(BUILD)/flags | $(AFTER_DEPS)
	$(call say_once,CC,$(<D)/*.c)
	$(Q)$(CC) $(OUR_CPPFLAGS) $(CPPFLAGS) $(OUR_CFLAGS) $(CFLAGS) $(EXTRA) -MMD -MP -c -o $@ $<

# What the core does not export.
REDIS_BASE := $(BUILD)/src/base/fork_guard.o $(BUILD)/src/base/thread.o

$(BUILD)/$(REDIS_STATIC_LIB): $(REDIS_OBJECTS) $(REDIS_BASE)
	$(call say,AR,$@)
	$(Q)$(partial_link) -o $(BUILD)/timingwheel-redis.o $^
	$(Q)$(keep_our_names) $(BUILD)/timingwheel-redis.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(BUILD)/timingwheel-redis.o

$(BUILD)/$(REDIS_SHARED_LIB): $(REDIS_OBJECTS) $(REDIS_BASE) $(BUILD)/$(LINK_NAME) \
		src/packaging/timingwheel-redis.map
	$(call say,LD,$@)
	$(Q)$(LINK) -shared $(STAYS) $(VERSIONS)timingwheel-redis.map \
		-Wl,-soname,$(REDIS_SONAME) -o $@ $(REDIS_OBJECTS) $(REDIS_BASE) \
		-L$(BUILD) -ltimingwheel $(redis_libs)

$(BUILD)/$(REDIS_SONAME): $(BUILD)/$(REDIS_SHARED_LIB)
	$(Q)ln -sf $(REDIS_SHARED_LIB) $@

$(BUILD)/$(REDIS_LINK_NAME): $(BUILD)/$(REDIS_SONAME)
	$(Q)ln -sf $(REDIS_SONAME) $@

# The program is a user of the two libraries, linked so that it runs from anywhere.
$(BUILD)/twr: $(REDIS_PROGRAM_OBJECTS) $(BUILD)/$(REDIS_STATIC_LIB) $(BUILD)/$(STATIC_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(redis_libs) $(twr_libs)

# As in the core, tests and benches see the inner names. Some parts are the program's alone.
$(BUILD)/test/redis/all: $(call objects_in_all,redis) $(addprefix $(BUILD)/src/twr/,when.o \
	task_line.o)
REDIS_TESTS_APART := $(addprefix $(BUILD)/test/,$(filter redis/%,$(TESTS_APART)))
$(REDIS_TESTS_APART): %: %.o
$(BUILD)/test/redis/all $(REDIS_TESTS_APART): $(TEST_MAIN) $(REDIS_TEST_SUPPORT) $(TEST_SUPPORT) \
		$(REDIS_OBJECTS) $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) $(WRAP) -o $@ $^ -lcmocka $(redis_libs) -ljansson

REDIS_FAULT_TESTS := $(filter %_faults,$(REDIS_TESTS_APART))
# Tests that let calls fail, here also those of other libraries; and twr with such calls.
REDIS_FAULTS := $(addprefix $(BUILD)/test/faults/,faults.o libraries.o stacks.o)
$(REDIS_FAULTS) $(BUILD)/test/faults/environment.o: EXTRA += $(redis_cflags) $(twr_cflags)
$(REDIS_FAULT_TESTS): $(FAULT_OBJECTS) $(BUILD)/test/faults/libraries.o
$(BUILD)/test/redis/%_faults: WRAP += $(addprefix -Wl$(comma)--wrap=,curl_multi_init \
	curl_easy_init curl_easy_setopt curl_multi_add_handle curl_slist_append curl_url \
	curl_url_get SSL_CTX_new SSL_CTX_set_default_verify_paths SSL_new SSL_ctrl SSL_set1_host \
	BIO_new BIO_meth_new redisReaderCreate redisReaderFeed MHD_create_response_from_buffer \
	tw_after_func)

$(BUILD)/test/redis/twr_faults: $(REDIS_PROGRAM_OBJECTS) $(REDIS_OBJECTS) $(LIB_OBJECTS) \
		$(REDIS_FAULTS) $(addprefix $(BUILD)/test/faults/,pages.o environment.o)
	$(call say,LD,$@)
	$(Q)$(LINK) $(WRAP) -o $@ $^ $(redis_libs) $(twr_libs)

$(BUILD)/test/redis/test_program_faults: | $(BUILD)/test/redis/twr_faults

# The pages, in the test's own process and by its clock.
$(BUILD)/test/redis/test_pages_faults: $(BUILD)/test/faults/pages.o $(addprefix \
	$(BUILD)/src/twr/,board.o figures.o host_name.o listener.o page.o \
	pages.o show.o task_line.o when.o)
$(BUILD)/test/redis/test_pages_faults: WRAP += $(addprefix -Wl$(comma)--wrap=,clock_gettime \
	tw_redis_get_groups)
$(BUILD)/test/redis/test_pages_faults: redis_libs += $(twr_libs)
$(addprefix $(BUILD)/test/redis/,test_pages_faults twr_faults): WRAP += $(addprefix \
	-Wl$(comma)--wrap=,MHD_start_daemon MHD_add_response_header)
$(BUILD)/test/faults/pages.o: EXTRA += $(redis_cflags) $(twr_cflags)

# Tests once more, with scripts that refuse keys which their calls did not name (test_keys.sh).
export KEY_TESTS := calendar group_limits group_list groups hints jobs latest letters namespaces \
	recurring tasks
KEYS := $(BUILD)/test/redis/keys
$(KEYS)/scripts.c: test/redis/keys/declared.lua src/redis/scripts/embed.sh $(REDIS_SCRIPTS) \
		$(REDIS_SHARED)
	@mkdir -p $(@D)
	$(Q)FIRST=$< sh src/redis/scripts/embed.sh $(REDIS_SCRIPTS) >$@

$(KEYS)/scripts.o: $(KEYS)/scripts.c $(BUILD)/flags
	$(Q)$(COMPILE) -Wno-overlength-strings -c -o $@ $<

-include $(KEYS)/seen.d
$(KEYS)/all: $(KEY_TESTS:%=$(BUILD)/test/redis/test_%.o) $(TEST_MAIN) $(REDIS_TEST_SUPPORT) \
		$(TEST_SUPPORT) $(filter-out %/scripts.o,$(REDIS_OBJECTS)) $(KEYS)/scripts.o \
		$(KEYS)/seen.o $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -Wl,--wrap=eval_write -o $@ $^ -lcmocka $(redis_libs)

ifneq ($(filter redis/test_keys,$(TESTS)),)
test: $(KEYS)/all
endif

# The servers that the tests have.
REDIS_BENCH_SERVERS := $(addprefix $(BUILD)/test/redis/support/, \
	certificates.o http_server.o redis_server.o sockets.o) $(BUILD)/test/support/wait.o
# Each by its name: make takes a pattern alone only if all of these are there or were named before.
$(REDIS_BENCH_OBJECTS:.o=): $(BUILD)/bench/redis/%: $(BUILD)/bench/redis/%.o \
		$(REDIS_BENCH_SUPPORT) $(BENCH_SUPPORT) $(REDIS_BENCH_SERVERS) $(REDIS_OBJECTS) \
		$(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lm -lcmocka $(redis_libs)

# --- Install: called by install and uninstall --------------------------------------------------
.PHONY: install-redis uninstall-redis
install-redis: $(REDIS_LIBS) $(REDIS_PROGRAM)
	$(Q)install -d $(root)$(INCLUDEDIR)/timingwheel $(root)$(LIBDIR) \
		$(root)$(PREFIX)/bin
	$(Q)install -m 644 include/timingwheel/redis.h $(root)$(INCLUDEDIR)/timingwheel
	$(Q)install -m 644 $(BUILD)/$(REDIS_STATIC_LIB) $(root)$(LIBDIR)
	$(Q)install -m 755 $(BUILD)/$(REDIS_SHARED_LIB) $(root)$(LIBDIR)
	$(Q)ln -sf $(REDIS_SHARED_LIB) $(root)$(LIBDIR)/$(REDIS_SONAME)
	$(Q)ln -sf $(REDIS_SONAME) $(root)$(LIBDIR)/$(REDIS_LINK_NAME)
	$(Q)install -m 755 $(REDIS_PROGRAM) $(root)$(PREFIX)/bin
	$(Q)install -d $(root)$(SYSTEMDDIR)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' src/redis/packaging/twr-worker.service.in \
		>$(root)$(SYSTEMDDIR)/twr-worker.service

uninstall-redis:
	$(Q)rm -f $(root)$(INCLUDEDIR)/timingwheel/redis.h $(root)$(PREFIX)/bin/twr
	$(Q)rm -f $(root)$(SYSTEMDDIR)/twr-worker.service
	$(Q)rm -f $(addprefix $(root)$(LIBDIR)/,$(notdir $(REDIS_LIBS)))
