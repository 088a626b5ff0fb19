/* SPDX-License-Identifier: MIT */
/*
 * Every test of the public calls includes this first: cmocka, the headers of the C library that
 * most tests use, and the program's build options. cmocka's asserts are for the main thread only;
 * tasks record their results (recorder.h) and the main thread checks them.
 */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#ifdef NDEBUG
#error "the tests need assert(): build them without NDEBUG"
#endif

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* cmocka 2 defines a name that tests use for functions, and calls this assert otherwise. */
#undef stop
#ifdef assert_uint_in_range
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#endif

#include "base/compiler.h"

#include "seed.h"
#include "wait.h"

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

/* A way in which a case runs: what it is called, and what *state is. */
struct test_variant {
	const char *name;
	void *state;
};

/* What cases have in common: what opens and closes each of them, as cmocka's setup and teardown,
 * and the variants in which each runs. Without variants a case runs once. */
struct test_kind {
	int (*open)(void **state);
	int (*close)(void **state);
	const struct test_variant *variants; /* the last one has no name */
};

#define TEST_VARIANTS(...) ((const struct test_variant[]){__VA_ARGS__, {NULL, NULL}})

extern const struct test_kind kind_once;

/* A case, or with `run` NULL what opens and closes a file of cases. */
struct test_case {
	const char *file;
	int line;
	const char *name;
	void (*run)(void **state);
	const struct test_kind *kind;
};

/* The linker gathers pointers to all cases of a program in one section. */
#define TEST_CASE(name, run, kind)                                                               \
	static const struct test_case case_##name = {__BASE_FILE__, __LINE__, #name, run, kind}; \
	static const struct test_case *const row_of_##name                                       \
		__attribute__((used, section("test_cases"))) = &case_##name;

/* TEST(once, name) { ... } is a case; TEST(kind, name) one of kind_##kind. */
#define TEST(kind, name)                    \
	static void name(void **state);     \
	TEST_CASE(name, name, &kind_##kind) \
	static void name(void **state)

/* A case that is given `parameter`. The expression `call` opens it for the variant *state, calls
 * the case and, unless that fails, closes it. RECORDED (recorder.h) and others are made so. */
#define TEST_GIVEN(kind, name, parameter, call)    \
	static void name(parameter);               \
	static void open_##name(void **state)      \
	{                                          \
		call;                              \
	}                                          \
	TEST_CASE(name, open_##name, &kind_##kind) \
	static void name(parameter)

/* Opens something before the first case of the file, and closes it after the last. */
#define TEST_FILE(open, close)                                         \
	static const struct test_kind kind_file = {open, close, NULL}; \
	TEST_CASE(file, NULL, &kind_file)

/* Uses the status of a call that may fail here: the test judges by what comes of it. */
static inline void may_fail(int status)
{
	(void)status;
}

/* Makes a value that is no pointer. */
#define VALUE(number) ((void *)(uintptr_t)(number))

#endif
