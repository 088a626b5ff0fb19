// SPDX-License-Identifier: MIT
#include "exceptions.h"

#include <pthread.h>

/* Reports to the address sanitizer that a stack is left: this file is built without. */
extern "C" void __asan_handle_no_return(void) __attribute__((weak));

namespace
{
struct thrown {
};

void leave_stack()
{
	if (__asan_handle_no_return)
		__asan_handle_no_return();
}

void end_thread()
{
	leave_stack();
	pthread_exit(nullptr);
}

void be_cancelled()
{
	pthread_cancel(pthread_self());
	end_if_cancelled();
}
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

extern "C" void end_if_cancelled(void)
{
	leave_stack();
	pthread_testcancel();
}

void (*const no_returns[NO_RETURNS])(void) = {exception_throw, end_thread, be_cancelled};
