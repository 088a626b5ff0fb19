# SPDX-License-Identifier: MIT
"""The wheel and the cache, built by their Makefile."""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import chdir, copy, get, rm, rmdir
from conan.tools.gnu import Autotools, AutotoolsDeps, AutotoolsToolchain
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"


class Timingwheel(ConanFile):
    name = "timingwheel"
    version = "@VERSION@"
    license = "MIT"
    homepage = "@HOMEPAGE@"
    url = homepage
    description = "Millions of delayed tasks, set and moved from any thread, and an expiring cache"
    topics = ("timer", "timing-wheel", "scheduler", "cache")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def configure(self):
        # It is C.
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        basic_layout(self, src_folder="src")

    def requirements(self):
        # Its headers alone, and no program that uses the library needs them.
        self.requires("uthash/2.3.0", visible=False)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("timingwheel is for Linux on 64-bit processors")

    def source(self):
        get(self, "@URL@", sha256="@SHA256@", strip_root=True)

    def generate(self):
        AutotoolsToolchain(self).generate()
        AutotoolsDeps(self).generate()

    def build(self):
        self._make("all")

    def package(self):
        self._make("install")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        # Conan writes files for CMake and pkg-config of its own.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        rmdir(self, os.path.join(self.package_folder, "share"))
        other = "*.a" if self.options.shared else "*.so*"
        rm(self, other, os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.libs = ["timingwheel"]
        self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.set_property("pkg_config_name", "timingwheel")
        self.cpp_info.set_property("cmake_file_name", "timingwheel")
        self.cpp_info.set_property("cmake_target_name", "timingwheel::timingwheel")

    def _make(self, target):
        arguments = ["REDIS=no", f"BUILD={self.build_folder}", f"PREFIX={self.package_folder}"]
        with chdir(self, self.source_folder):
            Autotools(self).make(target, arguments)
