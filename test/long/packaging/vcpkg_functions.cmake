# SPDX-License-Identifier: MIT
#
# vcpkg_functions.cmake has the functions of vcpkg that the port calls, and runs its portfile: the
# archive comes from its URL, a file, by its sum, and the commands are run. PORT_FOLDER has the port;
# WORK gets the package.

cmake_minimum_required(VERSION 3.20)
set(PORT timingwheel)
set(TARGET_TRIPLET here)
set(VCPKG_CONCURRENCY 2)
set(CURRENT_PACKAGES_DIR "${WORK}/packages")
set(CURRENT_INSTALLED_DIR "${WORK}/installed")

function(vcpkg_download_distfile out)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "URLS;FILENAME;SHA512" "")
	file(DOWNLOAD "${arg_URLS}" "${WORK}/${arg_FILENAME}" EXPECTED_HASH SHA512=${arg_SHA512})
	set(${out} "${WORK}/${arg_FILENAME}" PARENT_SCOPE)
endfunction()

function(vcpkg_extract_source_archive out)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
	file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${WORK}/sources")
	file(GLOB folder "${WORK}/sources/*")
	set(${out} "${folder}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_get_vars out)
	file(WRITE "${WORK}/vars.cmake" "
		set(VCPKG_DETECTED_CMAKE_C_COMPILER gcc)
		set(VCPKG_COMBINED_C_FLAGS_RELEASE \"-fPIC -O0 -DNDEBUG\")
		set(VCPKG_COMBINED_SHARED_LINKER_FLAGS_RELEASE -Wl,-z,now)")
	set(${out} "${WORK}/vars.cmake" PARENT_SCOPE)
endfunction()

function(vcpkg_execute_required_process)
	cmake_parse_arguments(PARSE_ARGV 0 arg "" "WORKING_DIRECTORY;LOGNAME" "COMMAND")
	execute_process(COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${arg_WORKING_DIRECTORY}"
		COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Checks the files alone: ours may be moved as they are.
function(vcpkg_fixup_pkgconfig)
	file(GLOB files "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/*.pc")
	foreach(file ${files})
		file(STRINGS "${file}" absolute REGEX "${CURRENT_PACKAGES_DIR}")
		if(absolute)
			message(FATAL_ERROR "${file}: ${absolute}")
		endif()
	endforeach()
endfunction()

function(vcpkg_install_copyright)
	cmake_parse_arguments(PARSE_ARGV 0 arg "" "FILE_LIST" "")
	configure_file("${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright"
		COPYONLY)
endfunction()

include("${PORT_FOLDER}/portfile.cmake")
