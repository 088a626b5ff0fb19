// SPDX-License-Identifier: MIT
#include "exceptions.h"

namespace
{
struct thrown {
};
} // namespace

extern "C" void exception_throw(void)
{
	throw thrown();
}

extern "C" int exception_comes_out_of(void (*call)(void *argument), void *argument)
{
	try {
		call(argument);
	} catch (const thrown &) {
		return 1;
	}
	return 0;
}
