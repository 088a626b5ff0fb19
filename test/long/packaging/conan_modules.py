# SPDX-License-Identifier: MIT
"""Runs a recipe of conan's with modules in place of conan's: FOLDER WORK SHARED.

FOLDER has conanfile.py and test_package. What a recipe asks of conan is done by make and cmake."""

import contextlib
import fnmatch
import hashlib
import os
import runpy
import shutil
import subprocess
import sys
import tarfile
import types
import urllib.request

folder, work, shared = sys.argv[1:]


def place(name):
    return os.path.join(work, name)


class Settings(types.SimpleNamespace):
    def rm_safe(self, name):
        assert name.startswith("compiler."), name


class ConanFile:
    source_folder, build_folder, package_folder = map(place, ("source", "build", "package"))

    def __init__(self):
        self.settings = Settings(os="Linux", arch="x86_64")
        self.options = types.SimpleNamespace(shared=shared == "True")
        self.cpp_info = types.SimpleNamespace(set_property=lambda name, value: None)
        self.cpp = types.SimpleNamespace(build=types.SimpleNamespace(bindir=place("test")))
        self.required = []

    def requires(self, reference, **traits):
        self.required.append(reference)

    def run(self, command, env):
        subprocess.run([command], check=True, timeout=60)


class Autotools:
    def __init__(self, recipe):
        pass

    def make(self, target, arguments):
        subprocess.run(["make", "-j2", target, *arguments], check=True,
                       env={**os.environ, "CFLAGS": "-O0"})


class Nothing:
    def __init__(self, *arguments, **named):
        pass

    def generate(self):
        pass


class CMake(Nothing):
    def configure(self):
        subprocess.run(["cmake", "-S", os.path.join(folder, "test_package"), "-B", place("test"),
                        "-DCMAKE_PREFIX_PATH=" + place("deps")], check=True)

    def build(self):
        subprocess.run(["cmake", "--build", place("test")], check=True)


def get(recipe, url, sha256, strip_root):
    assert strip_root
    archive, _ = urllib.request.urlretrieve(url, place("archive"))
    assert hashlib.sha256(open(archive, "rb").read()).hexdigest() == sha256, "another archive"
    tarfile.open(archive).extractall(place("unpacked"))
    shutil.move(place(os.path.join("unpacked", *os.listdir(place("unpacked")))),
                recipe.source_folder)


def copy(recipe, name, source, to):
    os.makedirs(to, exist_ok=True)
    shutil.copy(os.path.join(source, name), to)


def rm(recipe, pattern, where):
    found = fnmatch.filter(os.listdir(where), pattern)
    assert found, pattern
    for name in found:
        os.remove(os.path.join(where, name))


def module(name, **names):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(names)


def recipe_of(path):
    return next(value for value in runpy.run_path(path).values()
                if isinstance(value, type) and issubclass(value, ConanFile)
                and value is not ConanFile)()


module("conan", ConanFile=ConanFile)
module("conan.errors", ConanInvalidConfiguration=ValueError)
module("conan.tools")
module("conan.tools.build", can_run=lambda recipe: True)
module("conan.tools.cmake", CMake=CMake, cmake_layout=Nothing)
module("conan.tools.files", chdir=lambda recipe, to: contextlib.nullcontext(os.chdir(to)), copy=copy, get=get,
       rm=rm, rmdir=lambda recipe, name: shutil.rmtree(name))
module("conan.tools.gnu", Autotools=Autotools, AutotoolsDeps=Nothing, AutotoolsToolchain=Nothing)
module("conan.tools.layout", basic_layout=Nothing)

recipe = recipe_of(os.path.join(folder, "conanfile.py"))
for step in ("configure", "layout", "requirements", "validate", "source", "generate", "build",
             "package", "package_info"):
    getattr(recipe, step)()
assert recipe.required == ["uthash/2.3.0"], recipe.required
found = sorted(os.listdir(recipe.package_folder))
assert found == ["include", "lib", "licenses"], found
found = sorted(os.listdir(os.path.join(recipe.package_folder, "lib")))
assert found == ["libtimingwheel.a"] or recipe.options.shared and len(found) == 3, found

# What conan's CMakeDeps writes of what the recipe says.
os.mkdir(place("deps"))
with open(place("deps/timingwheel-config.cmake"), "w") as config:
    config.write(f"""add_library({recipe.name}::{recipe.name} INTERFACE IMPORTED)
        target_include_directories({recipe.name}::{recipe.name} INTERFACE
            {recipe.package_folder}/include)
        target_link_directories({recipe.name}::{recipe.name} INTERFACE
            {recipe.package_folder}/lib)
        target_link_libraries({recipe.name}::{recipe.name} INTERFACE
            {' '.join(recipe.cpp_info.libs + recipe.cpp_info.system_libs)})""")
tester = recipe_of(os.path.join(folder, "test_package", "conanfile.py"))
tester.tested_reference_str = f"{recipe.name}/{recipe.version}"
for step in ("requirements", "layout", "build", "test"):
    getattr(tester, step)()
