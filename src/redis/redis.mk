# SPDX-License-Identifier: MIT
#
# The distributed wheel on Redis, a part of its own: libtimingwheel-redis and the program twr.
#
#     make                when their packages are there (REDIS=auto)
#     make REDIS=yes      an error if they are not
#     make REDIS=no       the core alone
#
# The Makefile includes this before its rules; what is asked of pkg-config is asked as late as it
# can be, so that `make deps test` works where `deps` has yet to bring the packages.

REDIS ?= auto
REDIS_PACKAGES := libhiredis-dev libssl-dev libcurl4-openssl-dev libjansson-dev \
	libmicrohttpd-dev redis-server redis-tools curl
REDIS_MODULES := hiredis openssl libcurl
# The program's alone.
TWR_MODULES := libmicrohttpd jansson
# Where the worker's unit is installed.
SYSTEMDDIR ?= $(PREFIX)/lib/systemd/system
redis_cflags = $(shell pkg-config --cflags $(REDIS_MODULES))
redis_libs = $(shell pkg-config --libs $(REDIS_MODULES))
twr_cflags = $(shell pkg-config --cflags $(TWR_MODULES))
twr_libs = $(shell pkg-config --libs $(TWR_MODULES))

# Not the one that a make around this one exports.
REDIS_FOUND :=
ifneq ($(REDIS),no)
PACKAGES += $(REDIS_PACKAGES)
# There for this compiler, which may be one for another processor.
REDIS_FOUND := $(if $(filter deps,$(MAKECMDGOALS)),yes,$(shell \
	pkg-config --exists $(REDIS_MODULES) $(TWR_MODULES) 2>/dev/null && \
	echo 'int main(void) { return 0; }' | $(CC) -xc - -o /dev/null \
		$$(pkg-config --libs $(REDIS_MODULES) $(TWR_MODULES)) 2>/dev/null && echo yes))
ifeq ($(REDIS)$(REDIS_FOUND),yes)
$(error REDIS=yes, and $(REDIS_MODULES) $(TWR_MODULES) are not all there: try 'make deps')
endif
endif

ifeq ($(REDIS_FOUND),yes)
REDIS_STATIC_LIB := libtimingwheel-redis.a
REDIS_SHARED_LIB := libtimingwheel-redis.so.$(VERSION)
REDIS_SONAME := libtimingwheel-redis.so.$(MAJOR)
REDIS_LINK_NAME := libtimingwheel-redis.so

REDIS_SCRIPTS := $(wildcard src/redis/scripts/*.lua)
REDIS_SHARED := $(wildcard src/redis/scripts/shared/*.lua)
REDIS_OBJECTS := $(call objects,$(addprefix src/redis/,wire/*.c client/*.c worker/*.c)) \
	$(BUILD)/src/redis/scripts.o
REDIS_PROGRAM_OBJECTS := $(call objects,src/twr/*.c)
REDIS_PROGRAM_OBJECTS += $(if $(REDIS_PROGRAM_OBJECTS),$(BUILD)/src/twr/page.o)
REDIS_TEST_OBJECTS := $(call objects,test/redis/test_*.c)
REDIS_TEST_SUPPORT := $(call objects,test/redis/support/*.c)
REDIS_BENCH_OBJECTS := $(call objects,bench/redis/*.c)
REDIS_BENCH_SUPPORT := $(call objects,bench/redis/support/*.c)
REDIS_LIBS := $(addprefix $(BUILD)/,$(REDIS_STATIC_LIB) $(REDIS_SHARED_LIB) $(REDIS_SONAME) \
	$(REDIS_LINK_NAME))
REDIS_PROGRAM := $(if $(REDIS_PROGRAM_OBJECTS),$(BUILD)/twr)
REDIS_TESTS := $(patsubst test/%,%,$(basename $(wildcard test/redis/test_*.[cst]*)))
endif
