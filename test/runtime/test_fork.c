/* SPDX-License-Identifier: MIT */
/*
 * A fork's child must not go on as a thread of the wheel. It may go on with a wheel that has no
 * threads, and have a cache of its own. A child that hangs is killed.
 */
#include "support/test.h"

#include "support/gate.h"
#include "support/recorder.h"
#include "support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <timingwheel/cache.h>
#include <unistd.h>

#include "cache/epoch.h"
#include "runtime/ask.h"

enum { LONG_MS = 9000 };

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
		TEST_SKIP("a fork is tried without the thread sanitizer");
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

/* ---- Wheels without threads ---- */

static void child_answers_0(pid_t child)
{
	int exit_status;

	assert_int_not_equal(child, -1);
	assert_int_equal(waitpid(child, &exit_status, 0), child);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 0);
}

/* Runs in the child. Returns 0, or the number of the call that failed. */
static int go_on(struct recorder *recorder)
{
	struct tw_wheel *wheel = recorder->wheel;
	tw_duration remaining;

	die_where_it_hangs();
	if (tw_contains(wheel, "a", 1, &remaining) != TW_OK || remaining != INTERVAL)
		return 1;
	if (tw_set_timer(wheel, "b", 1, VALUE(2), 2 * INTERVAL) != TW_OK)
		return 2;
	if (tw_advance(wheel, 2 * INTERVAL) != TW_OK || times_returned(recorder, 1) != 1 ||
	    times_returned(recorder, 2) != 1)
		return 3;
	if (tw_set_timer(wheel, "c", 1, VALUE(3), INTERVAL) != TW_OK ||
	    tw_poll(wheel, NULL) != TW_OK || tw_pending(wheel) != 1)
		return 4;
	tw_destroy(wheel);
	return times_returned(recorder, 3) == 1 ? 0 : 5;
}

static void child_goes_on_with_its_copy_of_a_wheel_without_threads(void **state)
{
	struct recorder *recorder;
	pid_t child;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	set_timer(recorder, "a", 1, INTERVAL);
	child = fork();
	if (child == 0)
		_exit(go_on(recorder));
	child_answers_0(child);
	assert_not_returned(recorder, 1);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	recorder_close(recorder);
}

static void grandchild_goes_on_with_its_copy_of_a_wheel_without_threads(void **state)
{
	struct recorder *recorder;
	int exit_status;
	pid_t child;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	set_timer(recorder, "a", 1, INTERVAL);
	child = fork();
	if (child == 0) {
		bool is_open = tw_flush(recorder->wheel) == TW_OK;

		child = fork();
		if (child == 0)
			_exit(go_on(recorder));
		_exit(!is_open || waitpid(child, &exit_status, 0) != child || exit_status != 0);
	}
	child_answers_0(child);
	recorder_close(recorder);
}

static void wheel_without_threads_that_was_stopped_is_stopped_in_a_child(void **state)
{
	struct recorder *recorder;
	pid_t child;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	stop_wheel(recorder);
	child = fork();
	if (child == 0) {
		die_where_it_hangs();
		_exit(tw_set_timer(recorder->wheel, "a", 1, VALUE(1), INTERVAL) != TW_CLOSED ||
		      tw_wait_idle(recorder->wheel) != TW_OK);
	}
	child_answers_0(child);
	recorder_close(recorder);
}

static void fork_and_return(struct recorder *recorder, const struct tw_task *task)
{
	if (task->value == VALUE(1))
		*(pid_t *)recorder->argument = fork();
}

static void child_that_returns_from_its_task_goes_on_without_threads(void **state)
{
	struct recorder *recorder;
	pid_t child = -1;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	recorder->argument = &child;
	recorder->on_execute = fork_and_return;
	set_timer(recorder, "a", 1, INTERVAL);
	set_timer(recorder, "b", 2, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	if (child == 0) {
		die_where_it_hangs();
		if (times_returned(recorder, 1) != 1 || times_returned(recorder, 2) != 1)
			_exit(1);
		if (tw_set_timer(recorder->wheel, "c", 1, VALUE(3), INTERVAL) != TW_OK ||
		    tw_advance(recorder->wheel, INTERVAL) != TW_OK)
			_exit(2);
		_exit(times_returned(recorder, 3) == 1 ? 0 : 3);
	}
	child_answers_0(child);
	assert_int_equal(times_returned(recorder, 2), 1);
	recorder_close(recorder);
}

static void pass_gate(struct recorder *recorder, const struct tw_task *task)
{
	(void)task;
	gate_pass(&recorder->gate);
}

static void *poll_once(void *argument)
{
	(void)tw_advance(((struct recorder *)argument)->wheel, INTERVAL);
	return NULL;
}

static void wheel_that_another_thread_drove_at_the_fork_is_closed_in_the_child(void **state)
{
	struct recorder *recorder;
	pthread_t thread;
	pid_t child;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	recorder->on_execute = pass_gate;
	set_timer(recorder, "a", 1, INTERVAL);
	assert_int_equal(pthread_create(&thread, NULL, poll_once, recorder), 0);
	gate_await(&recorder->gate);
	child = fork();
	if (child == 0) {
		die_where_it_hangs();
		_exit(tw_set_timer(recorder->wheel, "b", 1, VALUE(2), INTERVAL) != TW_CLOSED ||
		      tw_poll(recorder->wheel, NULL) != TW_CLOSED ||
		      tw_wait_idle(recorder->wheel) != TW_CLOSED ||
		      tw_stop(recorder->wheel) != TW_CLOSED);
	}
	child_answers_0(child);
	gate_open(&recorder->gate);
	pthread_join(thread, NULL);
	recorder_close(recorder);
}

/* The command that was begun at the fork is complete in the child's child. */
static void wheel_that_another_thread_called_at_the_fork_is_closed_in_the_child(void **state)
{
	struct command removal = {.kind = COMMAND_REMOVE, .key_size = 1, .key = "x"};
	struct command_queue *queue;
	struct command_cell *cell;
	struct recorder *recorder;
	uint64_t position;
	int exit_status;
	bool is_closed;
	pid_t child;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	queue = &recorder->wheel->owner.queue;
	cell = command_queue_claim(queue, &position);
	assert_non_null(cell);
	child = fork();
	if (child == 0) {
		die_where_it_hangs();
		is_closed =
			tw_set_timer(recorder->wheel, "b", 1, VALUE(2), INTERVAL) == TW_CLOSED &&
			tw_wait_idle(recorder->wheel) == TW_CLOSED;
		cell->command = removal;
		command_queue_publish(cell, position);
		child = fork();
		if (child == 0)
			_exit(tw_wait_idle(recorder->wheel) != TW_CLOSED);
		_exit(!is_closed || waitpid(child, &exit_status, 0) != child || exit_status != 0);
	}
	child_answers_0(child);
	cell->command = removal;
	command_queue_publish(cell, position);
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

/* Runs in a child. Returns 0, or the number of the step that failed. */
static int make_wheel_and_fork(void)
{
	struct tw_wheel *wheel;
	int exit_status;
	pid_t child;

	die_where_it_hangs();
	if (!deny_advice() || tw_create(&wheel, TW_MILLISECOND, 10, ignore_task, NULL) != TW_OK)
		return 1;
	child = fork();
	if (child == 0) {
		die_where_it_hangs();
		_exit(tw_set_timer(wheel, "a", 1, NULL, TW_HOUR) != TW_CLOSED ||
		      tw_flush(wheel) != TW_CLOSED);
	}
	if (waitpid(child, &exit_status, 0) != child || exit_status != 0)
		return 2;
	tw_destroy(wheel);
	return 0;
}

static void wheel_is_closed_in_a_child_also_where_madvise_is_denied(void **state)
{
	pid_t child;

	(void)state;
	if (!TEST_CAN_FORK || TEST_IS_EMULATED)
		TEST_SKIP(
			"a fork is tried without the thread sanitizer, a filter without emulators");
	child = fork();
	if (child == 0)
		_exit(make_wheel_and_fork());
	child_answers_0(child);
}

static bool is_readable(int descriptor, int wait_ms)
{
	struct pollfd polled = {.fd = descriptor, .events = POLLIN};

	return poll(&polled, 1, wait_ms) == 1;
}

/* Returns whether the timer becomes readable by itself. */
static bool is_armed(int timer)
{
	struct itimerspec end;

	return timerfd_gettime(timer, &end) == 0 && end.it_value.tv_sec > 0;
}

/* Runs in the child. Returns 0, or the number of the step that failed. */
static int ring_own_descriptor(struct tw_wheel *wheel, int parents)
{
	int own;

	die_where_it_hangs();
	own = tw_fd(wheel);
	if (own < 0 || own == parents || tw_poll(wheel, NULL) != TW_OK || is_readable(own, 0) ||
	    !is_armed(own))
		return 1;
	if (tw_set_timer(wheel, "b", 1, VALUE(2), TW_HOUR) != TW_OK || !is_readable(own, LONG_MS))
		return 2;
	if (tw_poll(wheel, NULL) != TW_OK || is_readable(own, 0))
		return 3;
	tw_destroy(wheel);
	/* It stays open in the child, where the number might be another's by now. */
	return fcntl(parents, F_GETFD) == -1 ? 4 : 0;
}

static void child_has_a_descriptor_of_its_own_and_leaves_the_parents_quiet(void **state)
{
	struct tw_options options = {.workers = TW_WORKERS_INLINE, .drive = TW_DRIVE_CALLER};
	const struct variant *variant = *state;
	struct tw_wheel *wheel;
	pid_t child;
	int descriptor;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	options.layout = variant->layout;
	assert_status(tw_create(&wheel, TW_MILLISECOND, 10, ignore_task, &options), TW_OK);
	descriptor = tw_fd(wheel);
	assert_true(descriptor >= 0);
	assert_status(tw_set_timer(wheel, "a", 1, NULL, TW_HOUR), TW_OK);
	assert_status(tw_poll(wheel, NULL), TW_OK);
	child = fork();
	if (child == 0)
		_exit(ring_own_descriptor(wheel, descriptor));
	child_answers_0(child);
	assert_false(is_readable(descriptor, 0));
	assert_status(tw_set_timer(wheel, "b", 1, NULL, TW_HOUR), TW_OK);
	assert_true(is_readable(descriptor, LONG_MS));
	tw_destroy(wheel);
}

static atomic_bool threads_end;

/* Takes the lock of the threads again and again. */
static void *open_and_close_epochs(void *argument)
{
	struct epochs epochs = {0};

	while (!atomic_load(&threads_end)) {
		/* No thread takes a reader. */
		if (!epochs_init(&epochs, NULL))
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
	/* The sanitizers' allocators may be locked for ever in the child. */
	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a fork beside threads that allocate is tried without sanitizers");
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

/* A run waits for the end of another. */
struct waiting {
	struct tw_wheel *wheel;
	struct tw_timer timer;
	struct gate gate;
	enum tw_status answer;
};

static void wait_at_gate(void *argument)
{
	struct waiting *waiting = argument;

	gate_pass(&waiting->gate);
}

/* Its own data is where another thread had its own. */
static void wait_for_it(void *argument)
{
	struct waiting *waiting = argument;
	volatile char filled[60000];

	memset((void *)filled, 'A', sizeof(filled));
	waiting->answer = tw_timer_stop_wait(waiting->wheel, waiting->timer);
}

static void waiting_begin(struct waiting *waiting)
{
	const struct tw_options options = {.workers = 8};

	gate_init(&waiting->gate);
	assert_status(tw_create(&waiting->wheel, INTERVAL, 16, ignore_task, &options), TW_OK);
	assert_status(tw_after_func(waiting->wheel, 0, wait_at_gate, waiting, &waiting->timer),
		      TW_OK);
	gate_await(&waiting->gate);
	assert_status(tw_after_func(waiting->wheel, 0, wait_for_it, waiting, NULL), TW_OK);
	WAIT_UNTIL(atomic_load(&waiting->wheel->owner.out.handles.waiters) == 1);
}

static void waiting_end(struct waiting *waiting)
{
	gate_open(&waiting->gate);
	tw_destroy(waiting->wheel);
	assert_status(waiting->answer, TW_RUNNING);
}

static void child_may_wait_on_a_wheel_of_its_own_though_threads_waited_at_the_fork(void **state)
{
	struct waiting parents;
	int exit_status;
	pid_t child;

	(void)state;
	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	waiting_begin(&parents);
	child = fork();
	assert_int_not_equal(child, -1);
	if (child == 0) {
		struct waiting childs;

		die_where_it_hangs();
		waiting_begin(&childs);
		waiting_end(&childs);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &exit_status, 0), child);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 0);
	waiting_end(&parents);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(child_may_wait_on_a_wheel_of_its_own_though_threads_waited_at_the_fork),
	TEST_WITH_THREADS(child_that_returns_from_its_task_ends),
	TEST_WITH_THREADS(child_that_returns_from_its_release_ends),
	TEST_WITH_THREADS(child_that_returns_from_its_drain_function_ends),
	TEST_DRIVEN(child_goes_on_with_its_copy_of_a_wheel_without_threads),
	TEST_DRIVEN(grandchild_goes_on_with_its_copy_of_a_wheel_without_threads),
	TEST_DRIVEN(wheel_without_threads_that_was_stopped_is_stopped_in_a_child),
	TEST_DRIVEN(child_that_returns_from_its_task_goes_on_without_threads),
	TEST_DRIVEN(wheel_that_another_thread_drove_at_the_fork_is_closed_in_the_child),
	TEST_DRIVEN(wheel_that_another_thread_called_at_the_fork_is_closed_in_the_child),
	TEST_DRIVEN(child_has_a_descriptor_of_its_own_and_leaves_the_parents_quiet),
	cmocka_unit_test(wheel_is_closed_in_a_child_also_where_madvise_is_denied),
	cmocka_unit_test(child_can_make_a_cache_whatever_other_threads_did_at_the_fork),
};

TEST_PROGRAM(tests)
