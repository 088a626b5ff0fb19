/* SPDX-License-Identifier: MIT */
/*
 * tw_dump and tw_dump_stopped are called in a program whose threads are idle, and in a debugger
 * that has stopped one amid its calls.
 */
#include "support/test.h"

#include "support/recorder.h"
#include "support/text.h"

#include "runtime/ask.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_nothing(void *argument)
{
	(void)argument;
}

/* Reads a file from its beginning, and closes it. */
static void read_back(FILE *file, struct text *text)
{
	memset(text, 0, sizeof(*text));
	rewind(file);
	text->size = fread(text->bytes, 1, sizeof(text->bytes) - 1, file);
	fclose(file);
}

static size_t count_lines(const struct text *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->size; i++)
		lines += text->bytes[i] == '\n';
	return lines;
}

/* Sets some timers at the time of 3 ticks. */
static struct tw_timer set_some(struct recorder *recorder)
{
	struct tw_timer timer;

	advance(recorder, INTERVAL * 3);
	set_timer(recorder, "key", 0x1234, INTERVAL * 5);
	assert_status(tw_set_timer(recorder->wheel, "\"\\\n\xff~\x7f", 6, VALUE(2), TW_FOREVER),
		      TW_OK);
	assert_status(tw_every(recorder->wheel, INTERVAL, TW_SECOND, TW_MISSED_BURST, run_nothing,
			       VALUE(3), &timer),
		      TW_OK);
	flush_wheel(recorder);
	return timer;
}

static void assert_some_are_dumped(const struct text *text, struct tw_timer timer)
{
	char line[200];

	assert_true(text_has_line(text, "key \"key\" value 0x1234 deadline 8000000 in 5000000"));
	assert_true(
		text_has_line(text, "key \"\\x22\\x5c\\x0a\\xff~\\x7f\" value 0x2 deadline never"));
	snprintf(line, sizeof(line),
		 "timer %llu run 0x%llx value 0x3 deadline 4000000 in 1000000 period 1000000000",
		 (unsigned long long)timer.id, (unsigned long long)(uintptr_t)run_nothing);
	assert_true(text_has_line(text, line));
	assert_non_null(strstr(text->bytes, "interval 1000000, "));
	assert_non_null(strstr(text->bytes, "now 3000000, pending 3, "));
	assert_int_equal(count_lines(text), 4);
}

static void dump_has_a_line_for_each_timer(void **state)
{
	static struct text text;
	struct recorder *recorder = recorder_open(*state, 10);
	struct tw_timer timer = set_some(recorder);
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_status(tw_dump(recorder->wheel, file), TW_OK);
	read_back(file, &text);
	assert_some_are_dumped(&text, timer);
	recorder_close(recorder);
}

static void dump_for_debuggers_is_the_same(void **state)
{
	static struct text text;
	struct recorder *recorder = recorder_open(*state, 10);
	struct tw_timer timer;
	FILE *file = tmpfile();

	/* Writes of the owner's thread must be visible here; a debugger needs no such thing. */
	if (SANITIZER_THREAD && ((struct variant *)*state)->drive == TW_DRIVE_THREAD) {
		fclose(file);
		recorder_close(recorder);
		TEST_SKIP("the thread sanitizer sees no debugger");
	}
	assert_non_null(file);
	timer = set_some(recorder);
	assert_status(tw_dump_stopped(recorder->wheel, fileno(file)), TW_OK);
	read_back(file, &text);
	assert_some_are_dumped(&text, timer);
	stop_wheel(recorder);
	file = tmpfile();
	assert_status(tw_dump_stopped(recorder->wheel, fileno(file)), TW_OK);
	read_back(file, &text);
	assert_int_equal(count_lines(&text), 1);
	assert_non_null(strstr(text.bytes, ", stopped\n"));
	recorder_close(recorder);
}

static void keys_of_all_sizes_are_dumped_whole(void **state)
{
	static const size_t sizes[] = {1, 63, 64, 65, 1000, 5000};
	enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
	static struct text text;
	struct recorder *recorder = recorder_open(*state, 10);
	char *key = malloc(5000);
	FILE *file = tmpfile();

	assert_non_null(key);
	assert_non_null(file);
	memset(key, 'k', 5000);
	for (size_t i = 0; i < SIZES; i++)
		assert_status(tw_set_timer(recorder->wheel, key, sizes[i], VALUE(i), INTERVAL),
			      TW_OK);
	free(key);
	assert_status(tw_dump(recorder->wheel, file), TW_OK);
	read_back(file, &text);
	for (size_t i = 0; i < SIZES; i++) {
		char *found = NULL;

		for (char *at = text.bytes; (at = strstr(at, "\nkey \"")) != NULL; at++)
			if (strspn(at + 6, "k") == sizes[i] && at[6 + sizes[i]] == '"')
				found = at;
		assert_non_null(found);
	}
	recorder_close(recorder);
}

static void file_that_takes_nothing_is_reported(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	set_timer(recorder, "key", 1, INTERVAL);
	flush_wheel(recorder);
	assert_status(tw_dump(recorder->wheel, full), TW_SYSTEM);
	assert_status(tw_dump_stopped(recorder->wheel, -1), TW_SYSTEM);
	fclose(full);
	recorder_close(recorder);
}

static void bad_arguments_and_a_stopped_wheel_are_refused(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	assert_status(tw_dump(NULL, stderr), TW_INVALID);
	assert_status(tw_dump(recorder->wheel, NULL), TW_INVALID);
	assert_status(tw_dump_stopped(NULL, 2), TW_INVALID);
	stop_wheel(recorder);
	assert_status(tw_dump(recorder->wheel, stderr), TW_CLOSED);
	recorder_close(recorder);
}

/* ---- In a debugger ---- */

enum { DEBUGGED_KEYS = 300 };

/* The debugger reads this. */
extern struct tw_wheel *debugged_wheel;
extern int debugged_file;
struct tw_wheel *debugged_wheel;
int debugged_file;

/* Holds locks that a call might want. */
static void be_debugged(const struct variant *variant, int ready)
{
	struct tw_options options = variant_options(variant, (struct tw_options){0});

	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (tw_create(&debugged_wheel, INTERVAL, 16, ignore_task, &options) != TW_OK)
		_exit(1);
	for (uint32_t key = 0; key < DEBUGGED_KEYS; key++)
		if (tw_set_timer(debugged_wheel, &key, sizeof(key), NULL, TW_HOUR) != TW_OK)
			_exit(1);
	if (tw_flush(debugged_wheel) != TW_OK)
		_exit(1);
	pthread_mutex_lock(&debugged_wheel->owner.requests.lock);
	pthread_mutex_lock(&debugged_wheel->owner.drive);
	pthread_mutex_lock(&debugged_wheel->owner.out.handles.slab.lock);
	flockfile(stdout);
	(void)!write(ready, "r", 1);
	for (;;)
		(void)pause();
}

static pid_t start_debugged(const struct variant *variant, FILE *file)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	debugged_file = fileno(file);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		be_debugged(variant, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

/* Returns gdb's output. */
static void debug(pid_t child, struct text *said)
{
	char command[300];
	FILE *output;

	snprintf(command, sizeof(command),
		 "DEBUGINFOD_URLS= timeout 300 gdb -nx -batch -p %d "
		 "-ex 'printf \"at thread %%d\\n\", $_thread' "
		 "-ex 'print tw_dump_stopped(debugged_wheel, debugged_file)' 2>&1",
		 (int)child);
	output = popen(command, "r");
	assert_non_null(output);
	memset(said, 0, sizeof(*said));
	said->size = fread(said->bytes, 1, sizeof(said->bytes) - 1, output);
	(void)pclose(output);
}

static void wheel_is_dumped_in_a_debugger_while_locks_are_held(void **state)
{
	static struct text said;
	static struct text text;
	FILE *file = tmpfile();
	pid_t child;

	assert_non_null(file);
	if (TEST_HAS_SANITIZER || TEST_IS_EMULATED ||
	    system("gdb --version >/dev/null 2>&1") != 0) {
		print_message("no gdb, a sanitizer, or an emulator\n");
		fclose(file);
		TEST_SKIP("no gdb (package gdb), or a sanitizer, or an emulator");
	}
	child = start_debugged(*state, file);
	debug(child, &said);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	read_back(file, &text);
	if (strstr(said.bytes, "at thread 0\n"))
		TEST_SKIP("gdb may not look at a process here");
	/* The call's return value is not compared: an old gdb can't restore all registers of a new
	 * processor. */
	if (count_lines(&text) != DEBUGGED_KEYS + 1)
		fail_msg("%zu lines; gdb says: %s", count_lines(&text), said.bytes);
}

static const struct CMUnitTest tests[] = {
	TEST_EVERYWHERE(dump_has_a_line_for_each_timer),
	TEST_EVERYWHERE(dump_for_debuggers_is_the_same),
	TEST_EVERYWHERE(keys_of_all_sizes_are_dumped_whole),
	TEST_EVERYWHERE(file_that_takes_nothing_is_reported),
	TEST_EVERYWHERE(bad_arguments_and_a_stopped_wheel_are_refused),
	TEST_BOTH(inline, wheel_is_dumped_in_a_debugger_while_locks_are_held),
	TEST_BOTH(threads, wheel_is_dumped_in_a_debugger_while_locks_are_held),
};

TEST_PROGRAM(tests)
