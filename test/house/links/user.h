/* SPDX-License-Identifier: MIT */
/*
 * What both programs of check_links.sh share: their use of the library, which is left out in a
 * program made to see whether the compiler and the linker can make any such program, and a static
 * probe of their own, where <sys/sdt.h> is installed.
 */
#ifndef LINKS_USER_H
#define LINKS_USER_H

#ifdef __has_include
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#endif
#endif

#ifdef DTRACE_PROBE
#define PROBE(name) DTRACE_PROBE(user, name)
#else
#define PROBE(name) ((void)0)
#endif

#ifdef WITHOUT_LIBRARY
static int run_by_timer(void (*run)(void *))
{
	run((void *)0);
	return 1;
}
#else
#include <timingwheel/timingwheel.h>

/* Runs a function by a timer. Returns whether it has run. */
static int run_by_timer(void (*run)(void *))
{
	struct tw_wheel *wheel;
	int has_run;

	if (tw_create(&wheel, TW_MILLISECOND, 64, 0, 0) != TW_OK)
		return 0;
	has_run = tw_after_func(wheel, 0, run, 0, 0) == TW_OK && tw_wait_idle(wheel) == TW_OK;
	tw_destroy(wheel);
	return has_run;
}
#endif

#endif
