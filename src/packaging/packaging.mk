# SPDX-License-Identifier: MIT
#
# What distributions and users' build systems are given: files for pkg-config and CMake, the sources
# as an archive, Debian's packages, a binary interface that stays. Part of the Makefile.

CMAKEDIR ?= $(LIBDIR)/cmake/timingwheel
DIST := $(BUILD)/timingwheel-$(VERSION).tar.xz
# Where packagers get that archive, and what it is about.
HOMEPAGE ?= https://timingwheel.example
DIST_URL ?= $(HOMEPAGE)/$(notdir $(DIST))

# The installed tree may be moved: paths are from the file itself. fill FROM-FOLDER TEMPLATE TO
path_from = $(shell realpath -m --relative-to='$(1)' '$(2)')
fill = sed -e 's|@TO_PREFIX@|$(call path_from,$(1),$(PREFIX))|' \
	-e 's|@TO_LIBDIR@|$(call path_from,$(PREFIX),$(LIBDIR))|' \
	-e 's|@TO_INCLUDEDIR@|$(call path_from,$(PREFIX),$(INCLUDEDIR))|' \
	-e 's|@VERSION@|$(VERSION)|' -e 's|@MAJOR@|$(MAJOR)|' -e 's|@MINOR@|$(MINOR)|' \
	-e 's|@SONAME@|$(SONAME)|' -e 's|@REDIS_SONAME@|$(REDIS_SONAME)|' \
	-e 's|@PRIVATE@|$(REDIS_MODULES)|' $(2) >$(3)

.PHONY: install-packaging uninstall-packaging dist deb abi-check amalgamation ports sbom

install: install-packaging
uninstall: uninstall-packaging

install-packaging: | all
	$(Q)install -d $(root)$(LIBDIR)/pkgconfig $(root)$(CMAKEDIR)
	$(Q)$(call fill,$(LIBDIR)/pkgconfig,src/packaging/timingwheel.pc.in,\
		$(root)$(LIBDIR)/pkgconfig/timingwheel.pc)
	$(Q)$(call fill,$(CMAKEDIR),src/packaging/timingwheelConfig.cmake.in,\
		$(root)$(CMAKEDIR)/timingwheelConfig.cmake)
	$(Q)$(call fill,$(CMAKEDIR),src/packaging/timingwheelConfigVersion.cmake.in,\
		$(root)$(CMAKEDIR)/timingwheelConfigVersion.cmake)
ifeq ($(REDIS_FOUND),yes)
	$(Q)$(call fill,$(LIBDIR)/pkgconfig,src/packaging/timingwheel-redis.pc.in,\
		$(root)$(LIBDIR)/pkgconfig/timingwheel-redis.pc)
endif

uninstall-packaging:
	$(Q)rm -f $(addprefix $(root)$(LIBDIR)/pkgconfig/timingwheel,.pc -redis.pc) \
		$(addprefix $(root)$(CMAKEDIR)/timingwheel,Config.cmake ConfigVersion.cmake)
	$(Q)rmdir $(root)$(CMAKEDIR) 2>/dev/null || true

# --- Archive and packages ----------------------------------------------------------------------
dist: ## make the archive of the last commit: build/timingwheel-VERSION.tar.xz
	$(call say,DIST,$(DIST))
	@mkdir -p $(BUILD)
	$(Q)src/packaging/dist.sh $(DIST) timingwheel-$(VERSION)

amalgamation: ## make one source of core and cache: build/amalgamation/timingwheel.c and .h
	$(call say,AWK,$(BUILD)/amalgamation)
	@mkdir -p $(BUILD)/amalgamation
	$(Q)LC_ALL=C awk -f src/packaging/amalgamate.awk -v version=$(VERSION) \
		$(LIB_SOURCES) >$(BUILD)/amalgamation/timingwheel.c
	$(Q)LC_ALL=C awk -f src/packaging/amalgamate.awk -v version=$(VERSION) \
		$(sort $(PUBLIC_HEADERS)) >$(BUILD)/amalgamation/timingwheel.h

ports: dist ## fill the files for meson, vcpkg and conan with version and sums: build/ports
	$(call say,SED,$(BUILD)/ports)
	$(Q)rm -rf $(BUILD)/ports && cp -r --no-preserve=mode src/packaging/ports $(BUILD)
	$(Q)cp test/long/install/user.c $(BUILD)/ports/conan/test_package
	$(Q)sed -i -e 's|@VERSION@|$(VERSION)|' -e 's|@ABI@|$(MAJOR)|' \
		-e 's|@HOMEPAGE@|$(subst &,\&,$(HOMEPAGE))|' \
		-e 's|@URL@|$(subst &,\&,$(DIST_URL))|' \
		-e "s|@SHA256@|$$(sha256sum $(DIST) | cut -c 1-64)|" \
		-e "s|@SHA512@|$$(sha512sum $(DIST) | cut -c 1-128)|" \
		$$(find $(BUILD)/ports -type f)

deb: dist ## make Debian's packages, in build/deb; it needs debhelper
	@src/packaging/deb.sh $(DIST) $(VERSION) $(MAJOR) $(BUILD)/deb

sbom: all ## list what the libraries and twr are made of: build/timingwheel-VERSION.spdx.json
	$(call say,SBOM,$(DIST:.tar.xz=.spdx.json))
	$(Q)CC='$(CC)' src/packaging/sbom.sh $(VERSION) $(BUILD)/$(SHARED_LIB) \
		$(if $(REDIS_FOUND),$(BUILD)/$(REDIS_SHARED_LIB) \
		$(REDIS_PROGRAM):$(REDIS_SHARED_LIB):$(SHARED_LIB)) >$(DIST:.tar.xz=.spdx.json)

# --- Binary interface --------------------------------------------------------------------------
abi-check: all ## compare the binary interface with the recorded one; RECORD=yes: record it
	@RECORD=$(RECORD) src/packaging/abi_check.sh \
		$(basename $(LINK_NAME) $(if $(REDIS_FOUND),$(REDIS_LINK_NAME)))
