/* SPDX-License-Identifier: MIT */
/* The host checks that a plugin may use its wheel and be unloaded, as argv[1] says where it is. */
#include "plugin.hpp"

#include <dlfcn.h>

using namespace std::chrono_literals;

int main(int, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	int alive = 0;

	CHECK(library);
	{
		const plugin *part = static_cast<const plugin *>(dlsym(library, "the_plugin"));
		tw::wheel wheel = inline_wheel();

		CHECK(&part->category() == &tw::category());
		part->use(wheel, &alive);
		wheel.after(1ms, [] { throw 5; });
		CHECK(part->drive(wheel) == 5 && alive == 4);
	}
	CHECK(alive == 0 && dlclose(library) == 0);
	CHECK(!dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD));
	return 0;
}
