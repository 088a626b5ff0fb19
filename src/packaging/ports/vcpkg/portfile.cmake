# SPDX-License-Identifier: MIT
#
# The port of the wheel and the cache. It has one build type: debug programs use the same library.
set(VCPKG_BUILD_TYPE release)
set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)

vcpkg_download_distfile(ARCHIVE
	URLS "@URL@"
	FILENAME "timingwheel-@VERSION@.tar.xz"
	SHA512 @SHA512@)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")
vcpkg_cmake_get_vars(VARIABLES)
include("${VARIABLES}")

vcpkg_execute_required_process(
	COMMAND make install REDIS=no -j${VCPKG_CONCURRENCY}
		"CC=${VCPKG_DETECTED_CMAKE_C_COMPILER}"
		"CFLAGS=${VCPKG_COMBINED_C_FLAGS_RELEASE}"
		"CPPFLAGS=-I${CURRENT_INSTALLED_DIR}/include"
		"LDFLAGS=${VCPKG_COMBINED_SHARED_LINKER_FLAGS_RELEASE}"
		DESTDIR= "PREFIX=${CURRENT_PACKAGES_DIR}"
		"CMAKEDIR=${CURRENT_PACKAGES_DIR}/share/timingwheel"
	WORKING_DIRECTORY "${SOURCE_PATH}"
	LOGNAME "make-${TARGET_TRIPLET}")

# Keep one kind of library. The target timingwheel::timingwheel is whichever is there.
if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
	file(GLOB OTHERS "${CURRENT_PACKAGES_DIR}/lib/*.so*")
else()
	set(OTHERS "${CURRENT_PACKAGES_DIR}/lib/libtimingwheel.a")
endif()
file(REMOVE ${OTHERS})
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/man")
vcpkg_fixup_pkgconfig()

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
