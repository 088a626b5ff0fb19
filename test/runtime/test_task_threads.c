/* SPDX-License-Identifier: MIT */
/*
 * These tests check what a task's thread inherits, what tw_options says about threads, and what a
 * task's child process has. Tasks note what they find; the main thread checks it.
 */
#include "support/test.h"

#include "support/gate.h"
#include "support/recorder.h"

#include <locale.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* A thread's own faults and the profiler raise these signals. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};

/* A task finds this on its thread. */
struct thread_state {
	char name[16];
	sigset_t mask;
	cpu_set_t processors;
	int policy;
	int timer_slack;
	int cancel_state;
	bool has_global_locale;
	size_t stack_size;
	atomic_bool is_seen;
};

static void look(void *argument)
{
	struct thread_state *state = argument;
	pthread_attr_t attributes;
	void *stack;

	prctl(PR_GET_NAME, state->name);
	pthread_sigmask(SIG_BLOCK, NULL, &state->mask);
	sched_getaffinity(0, sizeof(state->processors), &state->processors);
	state->policy = sched_getscheduler(0);
	state->timer_slack = prctl(PR_GET_TIMERSLACK);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state->cancel_state);
	pthread_setcancelstate(state->cancel_state, NULL);
	state->has_global_locale = uselocale((locale_t)0) == LC_GLOBAL_LOCALE;
	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &stack, &state->stack_size);
	pthread_attr_destroy(&attributes);
	atomic_store(&state->is_seen, true);
}

static struct tw_wheel *open_wheel(const struct variant *variant, struct tw_options options)
{
	struct tw_wheel *wheel;

	options = variant_options(variant, options);
	assert_status(tw_create(&wheel, INTERVAL, 10, NULL, &options), TW_OK);
	return wheel;
}

static void run_task(struct tw_wheel *wheel, void (*run)(void *), void *argument)
{
	assert_status(tw_after_func(wheel, 0, run, argument, NULL), TW_OK);
	settle_wheel(wheel);
}

/* Returns what a task of a wheel with these options finds, where this thread makes the wheel. */
static struct thread_state state_in_task(const struct variant *variant, struct tw_options options)
{
	struct tw_wheel *wheel = open_wheel(variant, options);
	struct thread_state state = {0};

	run_task(wheel, look, &state);
	assert_true(atomic_load(&state.is_seen));
	tw_destroy(wheel);
	return state;
}

/* ---- Signals ---- */

/* Blocks this signal alone. */
static sigset_t block_only(int number)
{
	sigset_t only;
	sigset_t before;

	sigemptyset(&only);
	sigaddset(&only, number);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &only, &before), 0);
	return before;
}

TEST(everywhere, task_has_the_signal_mask_of_the_wheels_creator)
{
	sigset_t before = block_only(SIGUSR1);
	struct thread_state seen = state_in_task(*state, (struct tw_options){0});

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_true(sigismember(&seen.mask, SIGUSR1));
	assert_false(sigismember(&seen.mask, SIGTERM));
	assert_false(sigismember(&seen.mask, SIGINT));
}

TEST(workers, added_worker_has_the_signal_mask_of_the_wheels_creator)
{
	struct tw_options options = {.workers = 1, .max_workers = 2};
	sigset_t before = block_only(SIGUSR1);
	struct tw_wheel *wheel = open_wheel(*state, options);
	struct thread_state seen = {0};
	struct gate gate;

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	gate_init(&gate);
	assert_status(tw_after_func(wheel, 0, (void (*)(void *))gate_pass, &gate, NULL), TW_OK);
	assert_status(tw_advance(wheel, 0), TW_OK);
	gate_await(&gate);
	assert_status(tw_after_func(wheel, 0, look, &seen, NULL), TW_OK);
	assert_status(tw_advance(wheel, 0), TW_OK);
	WAIT_UNTIL(atomic_load(&seen.is_seen));
	gate_open(&gate);
	tw_destroy(wheel);
	assert_string_equal(seen.name, "tw-1");
	assert_true(sigismember(&seen.mask, SIGUSR1));
	assert_false(sigismember(&seen.mask, SIGTERM));
}

TEST(with_threads, signals_of_a_threads_own_faults_are_open_in_tasks)
{
	struct thread_state seen;
	sigset_t all;
	sigset_t before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	seen = state_in_task(*state, (struct tw_options){0});
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		assert_false(sigismember(&seen.mask, faults[i]));
	assert_true(sigismember(&seen.mask, SIGTERM));
}

static char *page;

static void mend(int number)
{
	(void)mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void write_to_page(void *argument)
{
	page[0] = 1;
}

TEST(everywhere, fault_in_a_task_reaches_the_programs_handler)
{
	struct sigaction action = {.sa_handler = mend};
	struct tw_wheel *wheel = open_wheel(*state, (struct tw_options){0});
	struct sigaction before;

	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	run_task(wheel, write_to_page, NULL);
	sigaction(SIGSEGV, &before, NULL);
	assert_int_equal(page[0], 1);
	tw_destroy(wheel);
	munmap(page, 4096);
}

/* A task starts these. */
struct children {
	pid_t forked;
	pid_t spawned;
};

static void start_children(void *argument)
{
	static char *const arguments[] = {"sleep", "30", NULL};
	static char *const environment[] = {NULL};
	struct children *children = argument;

	children->forked = fork();
	if (children->forked == 0) {
		execvp("sleep", arguments);
		_exit(127);
	}
	(void)posix_spawnp(&children->spawned, "sleep", NULL, NULL, arguments, environment);
}

static void child_ends_by_sigterm(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

TEST(everywhere, children_that_a_task_starts_end_by_sigterm)
{
	struct children children = {0};
	struct tw_wheel *wheel;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	wheel = open_wheel(*state, (struct tw_options){0});
	run_task(wheel, start_children, &children);
	child_ends_by_sigterm(children.forked);
	child_ends_by_sigterm(children.spawned);
	tw_destroy(wheel);
}

/* ---- Other inherited state ---- */

TEST(everywhere, task_has_the_processors_of_the_wheels_creator)
{
	struct thread_state seen;
	cpu_set_t before;
	cpu_set_t one;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		TEST_SKIP("the processors of a thread cannot be set here");
	seen = state_in_task(*state, (struct tw_options){0});
	sched_setaffinity(0, sizeof(before), &before);
	assert_true(CPU_EQUAL(&seen.processors, &one));
}

TEST(everywhere, task_has_the_scheduling_policy_of_the_wheels_creator)
{
	struct sched_param parameters = {0};
	int policy = sched_getscheduler(0);
	struct thread_state seen;

	if (policy != SCHED_OTHER || sched_setscheduler(0, SCHED_BATCH, &parameters) != 0)
		TEST_SKIP("the policy of a thread cannot be set here");
	seen = state_in_task(*state, (struct tw_options){0});
	sched_setscheduler(0, policy, &parameters);
	assert_int_equal(seen.policy, SCHED_BATCH);
}

TEST(pool, worker_has_the_timer_slack_of_the_wheels_creator)
{
	int before = prctl(PR_GET_TIMERSLACK);
	struct thread_state seen;

	if (prctl(PR_SET_TIMERSLACK, 123456UL) != 0)
		TEST_SKIP("there is no timer slack here");
	seen = state_in_task(*state, (struct tw_options){0});
	prctl(PR_SET_TIMERSLACK, (unsigned long)before);
	assert_int_equal(seen.timer_slack, 123456);
}

static void set_default_slack(void *context, const char *name)
{
	prctl(PR_SET_TIMERSLACK, 50000UL);
}

TEST(owner, owner_that_runs_tasks_has_1_us_of_timer_slack_unless_the_program_sets_it)
{
	if (TEST_IS_EMULATED)
		TEST_SKIP("an emulator keeps the timer slack to itself");
	assert_int_equal(state_in_task(*state, (struct tw_options){0}).timer_slack, 1000);
	assert_int_equal(
		state_in_task(*state, (struct tw_options){.on_thread_start = set_default_slack})
			.timer_slack,
		50000);
}

TEST(with_threads, task_can_be_cancelled_and_has_the_global_locale)
{
	locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	struct thread_state seen;

	assert_true(own != (locale_t)0);
	uselocale(own);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	seen = state_in_task(*state, (struct tw_options){0});
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	uselocale(LC_GLOBAL_LOCALE);
	freelocale(own);
	assert_int_equal(seen.cancel_state, PTHREAD_CANCEL_ENABLE);
	assert_true(seen.has_global_locale);
}

/* The program's own thread runs the task. */
TEST(inline, task_on_the_programs_thread_finds_it_as_it_is)
{
	sigset_t before = block_only(SIGSEGV);
	locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	struct thread_state here = {0};
	struct thread_state seen;

	uselocale(own);
	look(&here);
	seen = state_in_task(*state, (struct tw_options){0});
	uselocale(LC_GLOBAL_LOCALE);
	freelocale(own);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_string_equal(seen.name, here.name);
	assert_true(sigismember(&seen.mask, SIGSEGV));
	assert_int_equal(seen.timer_slack, here.timer_slack);
	assert_false(seen.has_global_locale);
	assert_int_equal(here.cancel_state, PTHREAD_CANCEL_ENABLE);
	assert_int_equal(seen.cancel_state, PTHREAD_CANCEL_ENABLE);
}

/* ---- Options ---- */

TEST(with_threads, threads_have_stacks_of_the_size_that_options_say)
{
	struct tw_options options = {.stack_size = (size_t)1 << 20};

	assert_in_range(state_in_task(*state, options).stack_size, options.stack_size,
			options.stack_size + 65536);
	options.stack_size = TW_STACK_SIZE_MIN;
	if (!TEST_HAS_SANITIZER)
		assert_in_range(state_in_task(*state, options).stack_size, options.stack_size,
				options.stack_size + 65536);
}

/* The functions of a wheel with one thread for tasks note here what they did, in their order. */
struct calls {
	char letters[8]; /* s: start, t: task, e: end */
	atomic_size_t count;
	char name[16];
	char end_name[16];
	pthread_t thread;
	bool is_one_thread;
};

static void note(struct calls *calls, char letter)
{
	size_t count = atomic_fetch_add(&calls->count, 1);

	calls->letters[count % (sizeof(calls->letters) - 1)] = letter;
	if (count == 0) {
		calls->thread = pthread_self();
		calls->is_one_thread = true;
	}
	calls->is_one_thread &= pthread_equal(calls->thread, pthread_self()) != 0;
}

static void note_start(void *context, const char *name)
{
	struct calls *calls = context;

	snprintf(calls->name, sizeof(calls->name), "%s", name);
	note(calls, 's');
}

static void note_end(void *context, const char *name)
{
	struct calls *calls = context;

	snprintf(calls->end_name, sizeof(calls->end_name), "%s", name);
	note(calls, 'e');
}

static void note_task(void *argument)
{
	note(argument, 't');
}

static struct tw_options noting_options(struct calls *calls, int workers)
{
	return (struct tw_options){.context = calls,
				   .workers = workers,
				   .name = "seen",
				   .on_thread_start = note_start,
				   .on_thread_end = note_end};
}

TEST(with_threads, thread_of_tasks_calls_the_program_at_its_start_and_its_end)
{
	const struct variant *variant = *state;
	bool has_pool = variant->workers > 0;
	struct calls calls = {0};
	struct tw_wheel *wheel =
		open_wheel(variant, noting_options(&calls, has_pool ? 1 : TW_WORKERS_INLINE));

	run_task(wheel, note_task, &calls);
	run_task(wheel, note_task, &calls);
	tw_destroy(wheel);
	assert_string_equal(calls.letters, "stte");
	assert_true(calls.is_one_thread);
	assert_string_equal(calls.name, has_pool ? "seen-0" : "seen-owner");
	assert_string_equal(calls.end_name, calls.name);
}

TEST(inline, without_threads_no_start_and_no_end_is_called)
{
	struct calls calls = {0};
	struct tw_wheel *wheel = open_wheel(*state, noting_options(&calls, TW_WORKERS_INLINE));

	run_task(wheel, note_task, &calls);
	tw_destroy(wheel);
	assert_string_equal(calls.letters, "t");
}
