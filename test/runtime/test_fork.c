/* SPDX-License-Identifier: MIT */
/*
 * What a fork's child must not do: go on as a thread of the wheel; and what it may: have a cache of
 * its own. Each child is killed where it hangs.
 */
#include "support/test.h"

#include "support/recorder.h"
#include "support/wait.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <timingwheel/cache.h>
#include <unistd.h>

#include "cache/epoch.h"

/* In the child. A worker's signals are blocked. */
static void die_where_it_hangs(void)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	alarm(10);
}

/* Shared with the child. */
struct family {
	pid_t parent;
	_Atomic pid_t child;
	atomic_int calls_in_child;
};

/*
 * Its destructor runs when the child's one thread ends, and before a sanitizer's own, which would
 * wait for a lock that a thread of the parent held at the fork.
 */
static pthread_key_t last_thread;

static void leave(void *value)
{
	(void)value;
	_exit(0);
}

static void fork_with_value_1(struct recorder *recorder, const struct tw_task *task)
{
	struct family *family = recorder->argument;
	pid_t child;

	if (getpid() != family->parent)
		atomic_fetch_add(&family->calls_in_child, 1);
	if (task->value != VALUE(1) || getpid() != family->parent)
		return;
	child = fork();
	if (child == 0) {
		die_where_it_hangs();
		pthread_setspecific(last_thread, family);
	} else {
		atomic_store(&family->child, child);
	}
}

static struct recorder *open_family(const struct variant *variant, struct family **family)
{
	struct recorder *recorder;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer and emulators");
	assert_int_equal(pthread_key_create(&last_thread, leave), 0);
	recorder = recorder_open(variant, 10);
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
	pthread_key_delete(last_thread);
	munmap(family, sizeof(*family));
}

static void child_that_returns_from_its_task_ends(void **state)
{
	struct family *family;
	struct recorder *recorder = open_family(*state, &family);

	pass_ticks(recorder, 2);
	close_family(recorder, family);
}

static void child_that_returns_from_its_release_ends(void **state)
{
	struct family *family;
	struct recorder *recorder = open_family(*state, &family);

	stop_wheel(recorder);
	close_family(recorder, family);
}

static void child_that_returns_from_its_drain_function_ends(void **state)
{
	struct family *family;
	struct recorder *recorder = open_family(*state, &family);

	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	close_family(recorder, family);
}

static atomic_bool threads_end;

/* Takes the lock of the threads again and again. */
static void *open_and_close_epochs(void *argument)
{
	struct epochs epochs = {0};

	while (!atomic_load(&threads_end)) {
		if (!epochs_init(&epochs, sizeof(struct reader)))
			abort();
		epochs_destroy(&epochs);
	}
	return argument;
}

static int use_a_cache(void)
{
	struct tw_cache *cache;

	die_where_it_hangs();
	if (tw_cache_create(&cache, TW_SECOND, NULL) != TW_OK)
		return 1;
	if (tw_cache_set(cache, "key", 3, "value", 5) != TW_OK)
		return 2;
	tw_cache_destroy(cache);
	return 0;
}

static void child_can_make_a_cache_whatever_other_threads_did_at_the_fork(void **state)
{
	pthread_t threads[3];

	(void)state;
	if (SANITIZER_THREAD)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close_epochs, NULL), 0);
	for (int i = 0; i < TEST_SHARE_OF(100); i++) {
		pid_t child = fork();
		int exit_status;

		assert_int_not_equal(child, -1);
		if (child == 0)
			_exit(use_a_cache());
		assert_int_equal(waitpid(child, &exit_status, 0), child);
		assert_true(WIFEXITED(exit_status));
		assert_int_equal(WEXITSTATUS(exit_status), 0);
	}
	atomic_store(&threads_end, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static const struct CMUnitTest tests[] = {
	TEST_EVERYWHERE(child_that_returns_from_its_task_ends),
	TEST_EVERYWHERE(child_that_returns_from_its_release_ends),
	TEST_EVERYWHERE(child_that_returns_from_its_drain_function_ends),
	cmocka_unit_test(child_can_make_a_cache_whatever_other_threads_did_at_the_fork),
};

TEST_PROGRAM(tests)
