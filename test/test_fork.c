/* SPDX-License-Identifier: MIT */
/*
 * What a fork's child must not do: go on as a thread of the wheel. Each child is killed where it
 * hangs.
 */
#include "support/test.h"

#include "support/recorder.h"
#include "support/wait.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child. A worker's signals are blocked. */
static void die_where_it_hangs(void)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	alarm(10);
}

/* --- A child that returns from a task -------------------------------------------------------- */

/* Shared with the child. */
struct family {
	pid_t parent;
	_Atomic pid_t child;
	atomic_int calls_in_child;
};

static void fork_with_value_1(struct recorder *recorder, const struct tw_task *task)
{
	struct family *family = recorder->argument;
	pid_t child;

	if (getpid() != family->parent)
		atomic_fetch_add(&family->calls_in_child, 1);
	if (task->value != VALUE(1) || getpid() != family->parent)
		return;
	child = fork();
	if (child == 0)
		die_where_it_hangs();
	else
		atomic_store(&family->child, child);
}

static struct recorder *open_family(const struct variant *variant, struct family **family)
{
	struct recorder *recorder = recorder_open(variant, 10);

	*family = mmap(NULL, sizeof(**family), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(*family != MAP_FAILED);
	(*family)->parent = getpid();
	recorder->argument = *family;
	recorder->on_execute = recorder->on_release = recorder->on_drain = fork_with_value_1;
	for (uintptr_t i = 1; i <= 100; i++)
		set_timer(recorder, (char[]){(char)i, 0}, i, INTERVAL);
	return recorder;
}

static void child_has_ended_and_called_nothing(struct family *family)
{
	int exit_status;

	WAIT_UNTIL(atomic_load(&family->child));
	assert_int_equal(waitpid(family->child, &exit_status, 0), family->child);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(atomic_load(&family->calls_in_child), 0);
}

static void close_family(struct recorder *recorder, struct family *family)
{
	child_has_ended_and_called_nothing(family);
	for (uintptr_t i = 1; i <= 100; i++)
		assert_int_equal(times_returned(recorder, i), 1);
	recorder_close(recorder);
	munmap(family, sizeof(*family));
}

static void child_that_returns_from_its_task_ends(void **state)
{
	struct family *family;
	struct recorder *recorder;

	if (SANITIZER_THREAD)
		skip();
	recorder = open_family(*state, &family);
	pass_ticks(recorder, 2);
	close_family(recorder, family);
}

static void child_that_returns_from_its_release_ends(void **state)
{
	struct family *family;
	struct recorder *recorder;

	if (SANITIZER_THREAD)
		skip();
	recorder = open_family(*state, &family);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	settle(recorder);
	close_family(recorder, family);
}

static void child_that_returns_from_its_drain_function_ends(void **state)
{
	struct family *family;
	struct recorder *recorder;

	if (SANITIZER_THREAD)
		skip();
	recorder = open_family(*state, &family);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	close_family(recorder, family);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_EVERYWHERE(child_that_returns_from_its_task_ends),
		TEST_EVERYWHERE(child_that_returns_from_its_release_ends),
		TEST_EVERYWHERE(child_that_returns_from_its_drain_function_ends),
	};

	/* Else a child that ends writes what its parent has not written yet. */
	setvbuf(stdout, NULL, _IONBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
