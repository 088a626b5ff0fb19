# SPDX-License-Identifier: MIT
#
# This part of the Makefile builds the simulation: the sources of the core and the cache, compiled
# against simulated system calls, and the worlds they run in.

SIM_BUILD := $(BUILD)/test/model/sim
SIM_SOURCES := $(wildcard $(addprefix src/,base/*.c wheel/*.c cron/*.c runtime/*.c cache/*.c)) \
	test/support/cache_check.c
SIM_LIB_OBJECTS := $(SIM_SOURCES:%.c=$(SIM_BUILD)/%.o)
SIM_OBJECTS := $(call objects,test/model/sim/*.c)
SIM_SUPPORT := $(call objects,test/model/wheel_*.c $(addprefix test/model/cache_,model.c calls.c \
	takes.c) test/support/random.c)
# The library's variables become two sections: the threads' ones, which the scheduler exchanges at
# each switch, and all others, which are reset for each case.
SIM_CPPFLAGS := -Itest/model/sim/include -Itest/model/sim -include test/model/sim/calls.h \
	'-D_Thread_local=__attribute__((section("sim_thread_local")))' '-Dtls_model(model)=unused'
SIM_SECTIONS := --set-section-flags .bss=alloc,load,contents,data \
	--rename-section .bss=sim_globals --rename-section .data=sim_globals

.PHONY: sim sim-seeded

# The ordinary build shows the sources' warnings.
$(SIM_BUILD)/%.o: %.c test/model/sim/calls.h $(BUILD)/flags | $(AFTER_DEPS)
	$(call say_once,CC,sim/$(<D)/*.c)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(SIM_CPPFLAGS) -UNDEBUG -w -fno-pie -fno-omit-frame-pointer -MMD -MP \
		-c -o $@ $<
	$(Q)$(OBJCOPY) $(SIM_SECTIONS) $@

$(SIM_OBJECTS): EXTRA = -UNDEBUG -Wno-unused-parameter -Itest -Itest/model/sim -fno-pie \
	-fno-omit-frame-pointer

-include $(patsubst %.o,%.d,$(SIM_LIB_OBJECTS) $(SIM_OBJECTS) $(SIM_SUPPORT))

# The addresses are the same in each run.
$(SIM_BUILD)/simulate: $(SIM_OBJECTS) $(SIM_SUPPORT) $(SIM_LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -no-pie -o $@ $^

sim: $(SIM_BUILD)/simulate ## simulate threads and time: SEED= replays, STEPS= long (10000000)
	@$< $(or $(SEED),$$(date +%s)) $(or $(STEPS),10000000)

sim-seeded: $(SIM_BUILD)/simulate ## put faults into a copy of src/, and find them
	@test/model/sim/seeded.sh
