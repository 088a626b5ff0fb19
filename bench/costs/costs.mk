# SPDX-License-Identifier: MIT
#
# `make costs`: what calls cost, counted, and compared with bench/costs/record.txt.

COSTS := core handles alarms cache threaded $(if $(filter yes,$(REDIS_FOUND)),redis)
COSTS_PROGRAMS := $(COSTS:%=$(BUILD)/bench/costs/%)
# The test's servers, and the client's libraries except curl, which the calls don't need.
COSTS_SERVER := $(addprefix $(BUILD)/test/,$(addprefix redis/support/,certificates.o http_server.o \
	redis_server.o sockets.o) support/wait.o)

-include $(COSTS_PROGRAMS:=.d) $(BUILD)/bench/costs/costs.d

$(BUILD)/bench/costs/%.o: EXTRA = -Ibench/costs -fno-pic -fno-pie
$(BUILD)/bench/costs/redis.o: EXTRA += -Itest/redis -Itest $(redis_cflags)

# Static, and at a fixed address: so locked instructions are counted in the C library, too.
COSTS_LINK = $(LINK) -static -no-pie $(addprefix -Wl$(comma)--wrap=,main clock_gettime \
	clock_getres getrandom $(COSTS_WRAP)) -o $@ $^
$(COSTS_PROGRAMS): $(BUILD)/bench/costs/%: $(BUILD)/bench/costs/%.o $(BUILD)/bench/costs/costs.o
	$(call say,LD,$@)
	$(Q)$(COSTS_LINK) $(COSTS_LIBS)
$(COSTS_PROGRAMS): $(BUILD)/$(STATIC_LIB)
$(BUILD)/bench/costs/threaded: COSTS_WRAP = pthread_create pthread_cond_wait pthread_cond_timedwait
$(BUILD)/bench/costs/redis: $(COSTS_SERVER) $(BUILD)/$(REDIS_STATIC_LIB)
$(BUILD)/bench/costs/redis: COSTS_WRAP = send recv
$(BUILD)/bench/costs/redis: COSTS_LIBS = -lhiredis -lssl -lcrypto \
	-Wl,--unresolved-symbols=ignore-in-object-files 2>/dev/null

.PHONY: costs costs-count
# The record holds for these flags alone. valgrind 3.19 reads no DWARF 5 of clang's.
costs: ## count what calls cost, and compare with the record; RECORD=yes writes it
	@$(MAKE) --no-print-directory BUILD=build/costs CPPFLAGS= CFLAGS='-O2 -gdwarf-4' LDFLAGS= \
		SANITIZE= DEBUG= LTO= costs-count

costs-count: $(COSTS_PROGRAMS) $(BUILD)/bench/costs/shared_lines
	@bench/costs/check.sh $(BUILD)/bench/costs $(COSTS)

deps-ci: PACKAGES += valgrind
