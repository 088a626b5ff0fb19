/* SPDX-License-Identifier: MIT */
/*
 * Every test of the public calls includes this first: cmocka, the headers of the C library that
 * most tests use, and the program's build options. cmocka's asserts are for the main thread only;
 * tasks record their results (recorder.h, ledger.h) and the main thread checks them.
 */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#ifdef NDEBUG
#error "the tests need assert(): build them without NDEBUG"
#endif

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* cmocka 2 defines a name that tests use for functions, and calls this assert otherwise. */
#undef stop
#ifdef assert_uint_in_range
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#endif

#include "base/sanitizer.h"

/* Memory and processor time mean little under a sanitizer. */
#define TEST_HAS_SANITIZER (SANITIZER_THREAD || SANITIZER_ADDRESS)

/* The program is run by an emulator of another processor (run.sh). */
#define TEST_IS_EMULATED (getenv("EMULATOR") != NULL)

/* A child has threads, which fail beside the thread sanitizer. */
#define TEST_CAN_FORK (!SANITIZER_THREAD)

/* Long tests do a tenth of their work, and all of it where they are compiled with
 * -DTEST_PART=1. */
#ifndef TEST_PART
#define TEST_PART 10
#endif
#define TEST_SHARE_OF(count) ((count) / TEST_PART)

/* Ends a case that this machine or build does not allow; run.sh prints why. */
#define TEST_SKIP(why)                   \
	do {                             \
		print_message(why "\n"); \
		skip();                  \
	} while (0)

/* This ends each test program, after the list of its cases, one a line. */
#define TEST_PROGRAM(tests)                                       \
	int main(void)                                            \
	{                                                         \
		return cmocka_run_group_tests(tests, NULL, NULL); \
	}

/* Uses the status of a call that may fail here: the test judges by what comes of it. */
static inline void may_fail(int status)
{
	(void)status;
}

/* Makes a value that is no pointer. */
#define VALUE(number) ((void *)(uintptr_t)(number))

#endif
