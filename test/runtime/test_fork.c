/* SPDX-License-Identifier: MIT */
/*
 * A fork's child must not go on as a thread of the wheel. It may have wheels and caches of its own.
 * A child that hangs is killed.
 */
#include "support/test.h"

#include "support/death.h"
#include "support/recorder.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <timingwheel/cache.h>

#include "cache/shared.h"

/* Runs in the child. A thread may block signals. */
static void die_where_it_hangs(void)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	alarm(60);
}

/* The child shares this. */
struct family {
	pid_t parent;
	_Atomic pid_t child;
	atomic_int calls_in_child;
	atomic_int starts; /* threads that have started */
};

/*
 * Its destructor runs when the child's one thread ends, and before a sanitizer's own, which would
 * wait for a lock that a thread of the parent held at the fork.
 */
static pthread_key_t last_thread;

static void leave(void *value)
{
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

static void child_has_ended_and_called_nothing(struct family *family)
{
	int exit_status;

	WAIT_UNTIL(atomic_load(&family->child));
	assert_int_equal(waitpid(family->child, &exit_status, 0), family->child);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(atomic_load(&family->calls_in_child), 0);
}

/* The first call of the wheel's functions forks. `act` has them called. */
static void fork_in_functions(const struct variant *variant, void (*act)(struct recorder *))
{
	struct recorder *recorder;
	struct family *family;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	assert_int_equal(pthread_key_create(&last_thread, leave), 0);
	recorder = recorder_open(variant, 10);
	family = mmap(NULL, sizeof(*family), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(family != MAP_FAILED);
	family->parent = getpid();
	recorder->argument = family;
	recorder->on_execute = recorder->on_release = recorder->on_drain = fork_with_value_1;
	for (uintptr_t i = 1; i <= 100; i++)
		set_timer(recorder, (char[]){(char)i, 0}, i, INTERVAL);
	act(recorder);
	child_has_ended_and_called_nothing(family);
	for (uintptr_t i = 1; i <= 100; i++)
		assert_int_equal(times_returned(recorder, i), 1);
	recorder_close(recorder);
	pthread_key_delete(last_thread);
	munmap(family, sizeof(*family));
}

static void run_all(struct recorder *recorder)
{
	pass_ticks(recorder, 2);
}

static void drain_all(struct recorder *recorder)
{
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
}

TEST(everywhere, child_that_returns_from_its_task_release_or_drain_function_ends)
{
	fork_in_functions(*state, run_all);
	fork_in_functions(*state, stop_wheel);
	fork_in_functions(*state, drain_all);
}

/* The first thread to start forks. */
static void fork_at_start(void *context, const char *name)
{
	struct family *family = context;
	pid_t child;

	if (atomic_fetch_add(&family->starts, 1) > 0)
		return;
	child = fork();
	if (child == 0) {
		die_where_it_hangs();
		pthread_setspecific(last_thread, family);
	} else {
		atomic_store(&family->child, child);
	}
}

TEST(with_threads, child_that_returns_from_the_start_of_a_thread_ends)
{
	struct tw_options options = {.on_thread_start = fork_at_start};
	struct family family = {0};
	struct tw_wheel *wheel;
	int exit_status;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	assert_int_equal(pthread_key_create(&last_thread, leave), 0);
	options = variant_options(*state, options);
	options.context = &family;
	assert_status(tw_create(&wheel, INTERVAL, 10, NULL, &options), TW_OK);
	WAIT_UNTIL(atomic_load(&family.child));
	assert_int_equal(waitpid(family.child, &exit_status, 0), family.child);
	assert_true(WIFEXITED(exit_status));
	tw_destroy(wheel);
	pthread_key_delete(last_thread);
}

/* ---- Calls in the child ---- */

/* Returns whether the calls say that the wheel is closed, in the child. */
static bool wheel_is_left_behind(struct tw_wheel *wheel)
{
	return tw_set_timer(wheel, "b", 1, VALUE(2), INTERVAL) == TW_CLOSED &&
	       tw_contains(wheel, "a", 1, NULL) == TW_CLOSED && tw_flush(wheel) == TW_CLOSED &&
	       tw_advance(wheel, INTERVAL) == TW_CLOSED && tw_poll(wheel, NULL) == TW_CLOSED &&
	       tw_wait_idle(wheel) == TW_CLOSED && tw_stop(wheel) == TW_CLOSED &&
	       tw_fd(wheel) == -1;
}

static int leave_behind(void *wheel)
{
	return !wheel_is_left_behind(wheel);
}

/* Runs in the grandchild. Returns 0, or the number of the step that failed. */
static int leave_and_make_another(void *argument)
{
	struct recorder *recorder = argument;
	struct recorder *own;

	if (!wheel_is_left_behind(recorder->wheel))
		return 1;
	if (tw_destroy(recorder->wheel) != TW_CLOSED || times_returned(recorder, 1) != 0 ||
	    !wheel_is_left_behind(recorder->wheel))
		return 2;
	own = recorder_open(recorder->variant, 10);
	set_timer(own, "a", 1, INTERVAL);
	pass_ticks(own, 1);
	if (times_returned(own, 1) != 1)
		return 3;
	recorder_close(own);
	return 0;
}

static int leave_to_a_child(void *recorder)
{
	return !child_ends_well(leave_and_make_another, recorder);
}

TEST(everywhere, wheel_is_closed_in_a_grandchild_too_which_can_make_another)
{
	struct recorder *recorder;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	set_timer(recorder, "a", 1, INTERVAL);
	assert_true(child_ends_well(leave_to_a_child, recorder));
	recorder_close(recorder);
}

TEST(everywhere, stopped_wheel_is_left_behind_in_a_child_too)
{
	struct recorder *recorder;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	stop_wheel(recorder);
	assert_true(child_ends_well(leave_behind, recorder->wheel));
	assert_status(tw_wait_idle(recorder->wheel), TW_OK);
	recorder_close(recorder);
}

/* Runs in a child: later calls of madvise() fail. */
static bool deny_advice(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {.len = 4, .filter = filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int make_wheel_and_fork(void *argument)
{
	struct tw_wheel *wheel;
	bool is_left_behind;

	(void)argument;
	if (!deny_advice() || tw_create(&wheel, TW_MILLISECOND, 10, ignore_task, NULL) != TW_OK)
		return 1;
	is_left_behind = child_ends_well(leave_behind, wheel);
	tw_destroy(wheel);
	return !is_left_behind;
}

TEST(once, wheel_is_closed_in_a_child_also_where_madvise_is_denied)
{
	if (!TEST_CAN_FORK || TEST_IS_EMULATED)
		TEST_SKIP(
			"a fork is tried without the thread sanitizer, a filter without emulators");
	assert_true(child_ends_well(make_wheel_and_fork, NULL));
}

static atomic_bool threads_end;

/* Takes the lock of the threads again and again. */
static void *open_and_close_callers(void *argument)
{
	struct callers callers;

	while (!atomic_load(&threads_end)) {
		/* No thread takes a number. */
		if (!callers_init(&callers))
			abort();
		callers_destroy(&callers);
	}
	return argument;
}

static int use_a_cache(void *argument)
{
	struct tw_cache *cache;

	(void)argument;
	if (tw_cache_create(&cache, TW_SECOND, NULL) != TW_OK)
		return 1;
	if (tw_cache_set(cache, "key", 3, "value", 5) != TW_OK)
		return 2;
	tw_cache_destroy(cache);
	return 0;
}

TEST(once, child_can_make_a_cache_whatever_other_threads_did_at_the_fork)
{
	pthread_t threads[3];

	/* The sanitizers' allocators may be locked for ever in the child. */
	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a fork beside threads that allocate is tried without sanitizers");
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close_callers, NULL),
				 0);
	for (int i = 0; i < TEST_SHARE_OF(100); i++)
		assert_true(child_ends_well(use_a_cache, NULL));
	atomic_store(&threads_end, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}
