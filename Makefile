# SPDX-License-Identifier: MIT
#
# CFLAGS, CPPFLAGS and LDFLAGS are the user's; ours are added. Every variant has its own build
# folder, so they live side by side:
#
#     make                                build/
#     make DEBUG=1                        build/debug/               checks its invariants
#     make SANITIZE=thread                build/thread/
#     make SANITIZE=address,undefined     build/address-undefined/
#     make LTO=yes                        build/lto/                 optimized as a whole
#
# V=1 shows the commands.

# As many at a time as there are processors, unless -j says another number. Several goals, as in
# `make clean test`, come one after the other: only deps is waited for by what needs it.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS))$(word 2,$(filter-out deps,$(MAKECMDGOALS))),0)
MAKEFLAGS += -j$(shell nproc)
endif

CC ?= cc
CXX ?= c++
# Those of the compiler, which may be one for another processor.
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy)
ifneq ($(filter default undefined,$(origin AR)),)
AR = $(shell $(CC) -print-prog-name=ar)
endif

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include

# --- Variants ----------------------------------------------------------------------------------
comma := ,
VARIANT := $(subst $(comma),-,$(SANITIZE))$(if $(SANITIZE),$(if $(filter 1,$(DEBUG)),-))
VARIANT := $(VARIANT)$(if $(filter 1,$(DEBUG)),debug)
VARIANT := $(VARIANT)$(if $(filter yes,$(LTO)),$(VARIANT:%=-)lto)
BUILD := build$(VARIANT:%=/%)

# What was built is installed: `make install` alone goes on with the compiler and the flags that
# `make` had, lest it compile everything again, and as root. Its own arguments come before them.
ifeq ($(MAKECMDGOALS),install)
-include $(BUILD)/flags
endif

OPTIMIZE := -O2
OUR_CPPFLAGS := -D_GNU_SOURCE -Iinclude -Isrc
OUR_CFLAGS := -std=c11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-fvisibility=hidden -fPIC -pthread '-ffile-prefix-map=$(CURDIR)=.'
# The one object of the static library is machine code also with -flto: its bytecode would have our
# inner names as global ones. gcc has to be told; clang's linker writes machine code anyway.
machine_code = $(shell $(CC) -flinker-output=nolto-rel -E -xc /dev/null >/dev/null 2>&1 && \
	echo -flinker-output=nolto-rel)
partial_link = $(CC) $(LTO_FLAGS) $(CFLAGS) $(LTO_LINKER) $(filter -fuse-ld=%,$(LDFLAGS)) \
	$(machine_code) -r -nostdlib
# Its only global names are ours, and the compiler's pointers to functions that unwind the stack:
# each object of a program that has one has the same, and the linker keeps one of them for all.
keep_our_names = $(OBJCOPY) -w --keep-global-symbol='tw_*' --keep-global-symbol='DW.ref.*'
ifeq ($(LTO),yes)
LTO_FLAGS := $(if $(machine_code),-flto=auto,-flto)
LTO_LINKER := $(if $(machine_code),,-fuse-ld=lld)
OUR_CFLAGS += $(LTO_FLAGS)
endif
ifneq ($(SANITIZE),)
OPTIMIZE := -O1
SANITIZE_FLAGS := -fsanitize=$(SANITIZE) -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g
OUR_CFLAGS += $(SANITIZE_FLAGS)
endif
ifeq ($(DEBUG),1)
OPTIMIZE := -O0
OUR_CPPFLAGS += -DTW_DEBUG
endif
CFLAGS ?= $(OPTIMIZE) -g

# --- Version and names: the version stands in the header alone ---------------------------------
version = $(shell sed -n 's/^.define TW_VERSION_$(1) *//p' include/timingwheel/timingwheel.h)
MAJOR := $(call version,MAJOR)
MINOR := $(call version,MINOR)
VERSION := $(MAJOR).$(MINOR).$(call version,PATCH)

STATIC_LIB := libtimingwheel.a
SHARED_LIB := libtimingwheel.so.$(VERSION)
SONAME := libtimingwheel.so.$(MAJOR)
LINK_NAME := libtimingwheel.so

# --- Files -------------------------------------------------------------------------------------
# In the same order in every locale.
objects = $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard $(1))))
PUBLIC_HEADERS := $(filter-out %/redis.h,$(wildcard include/timingwheel/*.h))
CXX_HEADERS := $(wildcard include/timingwheel/*.hpp)
# Core and cache are one compile unit. It includes their modules, in the order of src/layers.
LIB_SOURCES := $(wildcard $(shell awk '/^[a-z]/ { folder = $$1 } /^\t/ && folder !~ /redis|twr/ { \
	for (i = 1; i <= NF; i++) print "src/" folder "/" $$i ".c" }' src/layers))
LIB_UNIT := $(BUILD)/src/timingwheel.c
LIB_OBJECTS := $(LIB_UNIT:.c=.o)
TEST_FOLDERS := base wheel runtime cache cron faults model house
TEST_OBJECTS := $(call objects,$(TEST_FOLDERS:%=test/%/test_*.c))
TEST_MAIN := $(BUILD)/test/support/main.o
TEST_SUPPORT := $(filter-out $(TEST_MAIN),$(call objects,test/support/*.c)) \
	$(filter-out $(TEST_OBJECTS),$(call objects,test/model/*.c))
FAULT_OBJECTS := $(addprefix $(BUILD)/test/faults/,attempts.o faults.o stacks.o)
BENCH_OBJECTS := $(call objects,bench/*.c)
BENCH_SUPPORT := $(call objects,bench/support/*.c)
LIBS := $(addprefix $(BUILD)/,$(STATIC_LIB) $(SHARED_LIB) $(SONAME) $(LINK_NAME))

PACKAGES := uthash-dev libcmocka-dev pkg-config g++ tzdata mandoc
include src/redis/redis.mk

# A test is a file of cases. The program that has them is that of the folder, or the test's own.
TEST_PROGRAMS := $(TEST_OBJECTS:$(BUILD)/test/%.o=%)
TESTS_WITH_EXCEPTIONS := runtime/test_exceptions cache/test_callbacks
TESTS_APART := $(TESTS_WITH_EXCEPTIONS) $(addprefix redis/test_,calls_faults connections \
	pages_faults program_faults resolver)
objects_in = $(filter $(BUILD)/test/$(1)/%,$(TEST_OBJECTS) $(REDIS_TEST_OBJECTS))
objects_in_all = $(filter-out $(TESTS_APART:%=$(BUILD)/test/%.o),$(objects_in))
program_of = $(if $(filter $(TESTS_APART),$(1)),$(1),$(dir $(1))all)
# $(call named,LEVEL,TRAIT): the tests that test/families names, of a level or trait or of all.
named = $(shell awk -v level='$(1)' -v trait='$(2)' '/^[a-z]/ && $$1 ~ level && $$3 ~ trait && \
	$$4 != "make" { print $$4 }' test/families 2>/dev/null)
TEST_SCRIPTS := $(patsubst test/%.sh,%,$(wildcard test/house/*.sh $(patsubst %,test/%.sh,$(call \
	named))))
# Those by Redis come first, for they wait most.
TESTS_OF_ALL := $(sort $(REDIS_TESTS)) $(TEST_PROGRAMS) $(filter-out redis/%,$(TEST_SCRIPTS))
TESTS_OF_NIGHT := $(filter $(call named,night),$(TESTS_OF_ALL))
TESTS_OF_EACH_DAY := $(filter-out $(TESTS_OF_NIGHT) $(if $(filter thread,$(SANITIZE)), \
	$(call named,.,plain)),$(TESTS_OF_ALL))
TESTS_FIRST := $(filter $(TESTS_OF_EACH_DAY),$(call named,test))
TESTS_ALONE := $(call named,.,alone)
# Of `make compare`.
BENCHES ?= timers late calls
ifneq ($(T),)
FOUND := $(shell test/find.sh '$(T)' $(TESTS_OF_ALL))
TESTS := $(filter-out CASE=%,$(FOUND))
export CASE := $(patsubst CASE=%,%,$(filter CASE=%,$(FOUND)))
$(if $(TESTS),,$(error no test is called $(T)))
endif
TESTS ?= $(TESTS_FIRST) $(filter-out $(TESTS_FIRST),$(TESTS_OF_EACH_DAY))
# Seconds that one test program may take.
TEST_TIMEOUT ?= 600
# In `make deps run` nothing may be compiled before deps is through, with -j neither.
AFTER_DEPS := $(filter deps,$(MAKECMDGOALS))

# A line for each library and program, and one line a folder for what is many.
ifeq ($(V),1)
say = @:
else
Q := @
say = @printf '  %-7s %s\n' $(1) $(call quote,$(2))
say_once = $(if $(said/$(1)/$(2)),,$(eval said/$(1)/$(2) := yes)$(say))
endif
COMPILE = $(CC) $(OUR_CPPFLAGS) $(CPPFLAGS) $(OUR_CFLAGS) $(CFLAGS)
LINK = $(CC) $(OUR_CFLAGS) $(CFLAGS) $(LTO_LINKER) $(LDFLAGS)
# After dlclose too: a thread that used a cache runs the library's code when it ends.
STAYS := -Wl,-z,nodelete
# The names that a shared library exports, and their version.
VERSIONS := -Wl,--version-script=src/packaging/

.PHONY: all check deps deps-ci run builds test test-redis \
	test-servers bench bench-redis compare model-check install uninstall \
	layers size check-comments format format-check clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: $(LIBS) $(REDIS_LIBS) $(REDIS_PROGRAM) ## build the libraries, and twr (default)

# Before our own rules: the first pattern that fits is used.
ifeq ($(REDIS_FOUND),yes)
include src/redis/redis_rules.mk
endif

# --- Compile -----------------------------------------------------------------------------------
# Rewritten only when it changes, so that other flags or another compiler rebuild everything. A
# makefile, for install.
quote = '$(subst ','\'',$(1))'
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(foreach name,CC REDIS LTO CPPFLAGS CFLAGS LDFLAGS,$(call \
		quote,$(name) := $(subst $$,$$$$,$($(name))))) \
		$(call quote,# $(OUR_CPPFLAGS) $(OUR_CFLAGS)) >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# A failed compilation, on a fresh machine, is most often a missing package: where our own header
# compiles. Tests alone need cmocka.
hint_at_deps = $(COMPILE) -fsyntax-only -xc include/timingwheel/timingwheel.h 2>/dev/null && \
	for header in uthash $(if $(filter test/%,$<),cmocka); do \
	echo | $(CC) $(CPPFLAGS) -include $$header.h -E -xc - >/dev/null 2>&1 || \
	echo "$$header.h does not compile or is missing: try 'make deps'" >&2; done

$(BUILD)/%.o: %.c $(BUILD)/flags | $(AFTER_DEPS)
	$(call say_once,CC,$(<D)/*.c)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(EXTRA) -MMD -MP -c -o $@ $< || \
		{ $(hint_at_deps); exit 1; }

$(BUILD)/src/%.o: EXTRA = -Wconversion -Wpedantic
# It calls functions of the program: a cleanup sees that one has not returned.
$(LIB_OBJECTS): EXTRA += -fexceptions
$(LIB_UNIT): FORCE
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(LIB_SOURCES:src/%=%) >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(LIB_OBJECTS): $(LIB_UNIT) $(BUILD)/flags | $(AFTER_DEPS)
	$(call say,CC,$@)
	$(Q)$(COMPILE) $(EXTRA) -MMD -MP -c -o $@ $< || \
		{ $(hint_at_deps); exit 1; }

# Tests without their asserts test nothing, give NULL for the status that it has, need not use what
# cmocka and the wheel give to each function, and are compiled more often than they are run; benches
# are about optimized code.
$(BUILD)/test/%.o: EXTRA = -UNDEBUG -Itest -Wno-nonnull -Wno-unused-parameter \
	$(if $(filter file-,$(origin CFLAGS)-$(SANITIZE)),-O0)
$(BUILD)/bench/%.o: EXTRA = -O2 -Ibench

-include $(patsubst %.o,%.d,$(LIB_OBJECTS) $(TEST_OBJECTS) $(TEST_SUPPORT) $(FAULT_OBJECTS) \
	$(BENCH_OBJECTS) $(BENCH_SUPPORT))

# --- Link --------------------------------------------------------------------------------------
# One object, so that our inner names meet none of the user's.
$(BUILD)/$(STATIC_LIB): $(LIB_OBJECTS)
	$(call say,AR,$@)
	$(Q)$(partial_link) -o $(BUILD)/timingwheel.o $^
	$(Q)$(keep_our_names) $(BUILD)/timingwheel.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(BUILD)/timingwheel.o

$(BUILD)/$(SHARED_LIB): $(LIB_OBJECTS) src/packaging/timingwheel.map
	$(call say,LD,$@)
	$(Q)$(LINK) -shared $(STAYS) $(VERSIONS)timingwheel.map -Wl,-soname,$(SONAME) -o $@ \
		$(LIB_OBJECTS)

$(BUILD)/$(SONAME): $(BUILD)/$(SHARED_LIB)
	$(Q)ln -sf $(SHARED_LIB) $@

$(BUILD)/$(LINK_NAME): $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $@

# Tests and benches see the inner names too: they take the objects, not the library.
TEST_FOLDER_PROGRAMS := $(TEST_FOLDERS:%=$(BUILD)/test/%/all)
$(foreach folder,$(TEST_FOLDERS),$(eval $(BUILD)/test/$(folder)/all: \
	$(call objects_in_all,$(folder))))
$(TEST_FOLDER_PROGRAMS): $(TEST_MAIN) $(TEST_SUPPORT) $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) $(WRAP) -o $@ $^ -lcmocka

# Exceptions of C++ go through the library. They need no sanitizer, and no flags of CC.
$(BUILD)/test/support/exceptions.o: test/support/exceptions.cpp test/support/exceptions.h \
		$(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++11 -Wall -Wextra -fPIC -g -c -o $@ $<

$(TESTS_WITH_EXCEPTIONS:%=$(BUILD)/test/%): %: %.o $(BUILD)/test/support/exceptions.o \
		$(TEST_MAIN) $(TEST_SUPPORT) $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lstdc++ -lcmocka

# Tests that let these calls fail.
$(BUILD)/test/faults/all $(BUILD)/test/%_faults: WRAP = $(addprefix -Wl$(comma)--wrap=,malloc \
	calloc realloc aligned_alloc posix_memalign strdup strndup open_memstream mmap \
	pthread_create pthread_setspecific open fopen socket eventfd timerfd_create clock_getres \
	getrandom fstat read send)
$(BUILD)/test/faults/all: $(FAULT_OBJECTS)

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BENCH_SUPPORT) $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lm

# --- Run ---------------------------------------------------------------------------------------
# The compiler notes the folder that it is called in: by the name that ours is mapped from.
export PWD := $(CURDIR)
export BENCHES BUILD CC CXX GENMC MAKE MORE PROOFS PUBLIC_HEADERS REDIS_FOUND SANITIZE \
	SANITIZE_FLAGS TESTS_ALONE TESTS_APART TEST_TIMEOUT V

CI_PACKAGES += clang clang-19 clang-format lld llvm gcc-s390x-linux-gnu \
	libc6-dev-s390x-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-i686-linux-gnu \
	libc6-dev-i386-cross abigail-tools build-essential cmake debhelper lintian locales gcovr \
	musl-tools python3 qemu-user-static meson systemtap-sdt-dev unzip zip
deps: ## install what build and tests need (Debian; nothing if it is all there)
	@missing=; for package in $(PACKAGES) \
		$(if $(filter deps-ci,$(MAKECMDGOALS)),$(CI_PACKAGES)); do \
		dpkg -s $$package 2>/dev/null | grep -q '^Status: .* installed$$' || \
			missing="$$missing $$package"; \
	done; \
	test -n "$$missing" || exit 0; \
	echo "  APT    $$missing"; \
	test "$$(id -u)" = 0 || sudo=sudo; \
	$$sudo apt-get update -q && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
		$$missing

deps-ci: deps ## install also what .ci/run needs: other compilers

run: $(BUILD)/bench/million ## run a million timers; ARGS="..." are its arguments
	@$< $(ARGS)

TESTS_TO_BUILD := $(addprefix $(BUILD)/test/,$(sort $(foreach test,$(filter $(TEST_PROGRAMS) \
	$(REDIS_TEST_OBJECTS:$(BUILD)/test/%.o=%),$(TESTS)),$(call program_of,$(test)))))
ifneq ($(N),night)
test: all $(TESTS_TO_BUILD) ## test each promise (2 min), or T=folder, file or case; SEED=n
	@test/run.sh $(TESTS)
else
# Each at its whole length, and those that take a night.
test:
	@$(MAKE) --no-print-directory N= BUILD=$(BUILD)/whole CPPFLAGS='$(CPPFLAGS) -DTEST_PART=1' \
		FAULTS=all TORTURE_SECONDS=10 TESTS='$(TESTS_OF_NIGHT) $(TESTS_OF_EACH_DAY)' test
endif

check: ## check what each change must pass (30 min); N=night: all there is to check (hours)
	@.ci/run $(N)

bench: all $(BENCH_OBJECTS:.o=) ## build all benches and run them; ARGS=--quick or --update
	@bench/run.sh core $(ARGS)

compare: $(BENCHES:%=$(BUILD)/bench/%) ## compare with BASE=rev by benches; BENCHES= RUNS= QUICK=yes
	@bench/compare.sh

ifeq ($(REDIS_FOUND),yes)
test-redis: ## run the tests of the part on Redis alone (they are in `make test`)
	@$(MAKE) --no-print-directory test TESTS="$(REDIS_TESTS)"

test-servers: ## run these on each server of REDIS_SERVERS="redis-server valkey-server"
	@test/redis/servers.sh

bench-redis: all $(REDIS_BENCH_OBJECTS:.o=) ## build the benches of the part on Redis and run them
	@bench/run.sh redis $(ARGS)
else
test-redis test-servers bench-redis:
	@echo "the part on Redis is not built: try 'make deps', and not REDIS=no" >&2; false
endif

ifeq ($(REDIS_FOUND),yes)
install: install-redis
uninstall: uninstall-redis
endif

include src/man/man.mk src/site/site.mk src/packaging/packaging.mk

# None where the sources alone were copied, as into a container.
include $(wildcard test/*/*.mk test/*/*/*.mk bench/*/*.mk)

builds: ## build with other compilers, flags and processors; ALL=yes: more, and analyze
	@test/long/builds/check_builds.sh

model-check: ## model-check the doors with GenMC; MORE=1: larger bounds
	@test/proof/run.sh

layers: ## check that includes and calls in src/ go downward only
	@test/house/check_layers.sh

size: ## count the lines of each room of src/rooms, beside the most that it may have
	@test/house/check_size.sh

check-comments: ## check names and plain English in comments
	@test/house/check_comments.sh

# --- Install -----------------------------------------------------------------------------------
# Where files are installed, as a word of the shell.
root = $(call quote,$(DESTDIR))

install: all ## install to PREFIX (/usr/local), LIBDIR, INCLUDEDIR, MANDIR, under DESTDIR
	$(call say,INSTALL,$(DESTDIR)$(PREFIX))
	$(Q)install -d $(root)$(INCLUDEDIR)/timingwheel $(root)$(LIBDIR)
	$(Q)install -m 644 $(PUBLIC_HEADERS) $(CXX_HEADERS) $(root)$(INCLUDEDIR)/timingwheel
	$(Q)install -m 644 $(BUILD)/$(STATIC_LIB) $(root)$(LIBDIR)
	$(Q)install -m 755 $(BUILD)/$(SHARED_LIB) $(root)$(LIBDIR)
	$(Q)ln -sf $(SHARED_LIB) $(root)$(LIBDIR)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(root)$(LIBDIR)/$(LINK_NAME)

uninstall: ## remove what install has put there
	$(call say,RM,$(DESTDIR)$(PREFIX))
	$(Q)rm -f $(patsubst include/%,$(root)$(INCLUDEDIR)/%,$(PUBLIC_HEADERS) $(CXX_HEADERS))
	$(Q)rm -f $(addprefix $(root)$(LIBDIR)/,$(notdir $(LIBS)))
	$(Q)rmdir $(root)$(INCLUDEDIR)/timingwheel 2>/dev/null || true

# --- House -------------------------------------------------------------------------------------
FORMATTED = find include src test bench -name '*.[ch]' -o -name '*.[ch]pp'

format: ## format all sources with clang-format
	@$(FORMATTED) | xargs clang-format -i

format-check: ## check the format, and that no line is over 100 columns
	@test/house/check_lines.sh
	@$(FORMATTED) | xargs clang-format --dry-run -Werror

clean: ## remove all that was built, of every variant
	@rm -rf build

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' \
		$(filter Makefile %.mk,$(MAKEFILE_LIST)) | expand -t 26
	@echo
	@echo 'V=1 shows the commands. REDIS=no leaves out the part on Redis. Variants, each in a'
	@echo 'folder of its own: DEBUG=1, SANITIZE=thread, SANITIZE=address,undefined, LTO=yes'
	@echo '(optimized as a whole). TEST_JOBS=n runs so many tests at a time.'
