/* SPDX-License-Identifier: MIT */
/*
 * One thread is current; the others lie on their own stacks. sim_point() counts down to the next
 * choice, so that a point costs a decrement. At a choice time may pass, the run may be branched,
 * and the schedule names the thread that goes on.
 *
 * Time stands still while threads run, apart from the cost of reading the clock and the plan's
 * steps. When no thread can run, the clock goes on to the first end of a wait; if there is none,
 * that is a deadlock, and a failure.
 *
 * The library's thread-local variables are in one section of the program, which is saved and
 * restored at each switch: the library is compiled with _Thread_local defined as that section. Its
 * other variables are in a section, too, which is reset for each case.
 *
 * The schedule by priorities is that of Burckhardt, Kothari, Musuvathi and Nagarakatti ("A
 * randomized scheduler with probabilistic guarantees of finding bugs", 2010), with a way out of
 * loops that wait: a thread that yields, or has run for long, becomes the lowest.
 */
#include "scheduler.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/xorshift.h"
#include "stack.h"

#if SANITIZER_ADDRESS
#include <sanitizer/common_interface_defs.h>
#endif

enum {
	LOCALS_MOST = 256,  /* bytes of the library's _Thread_local variables */
	CHANGES_MOST = 16,  /* changes of priority in a case */
	LONG_RUN = 4000,    /* points that the highest thread may run without a break */
	SLOW_LENGTH = 4000, /* maximum points that a slow thread stands still */
	SLOW_CHOICES = 100, /* between two that become slow, on average */
	BRANCHES_MOST = 2,  /* in a case */
	NAME_SIZE = 24,
	WATCH_SECONDS = 5 /* processor time; a case may take two of these */
};

enum thread_state { THREAD_NONE, THREAD_CAN_RUN, THREAD_WAITS, THREAD_ENDED };

struct thread {
	enum thread_state state;
	uint64_t number;
	char name[NAME_SIZE];
	void *(*run)(void *);
	void *argument;
	void *result;
	struct stack *stack;
	/* The thread waits at this address. */
	const void *address;
	const char *what;
	int64_t until;
	bool in_time;
	/* The schedule uses these. */
	int64_t priority;
	uint64_t slow_until;
	/* These are saved while it is not current. */
	int error;
	char locals[LOCALS_MOST];
	struct sim_thread_part part;
};

int64_t sim_countdown;

extern char __start_sim_thread_local[], __stop_sim_thread_local[];
extern char __start_sim_globals[], __stop_sim_globals[];

static struct thread threads[SIM_THREADS_MOST];
static struct stack stacks[SIM_THREADS_MOST];
static unsigned threads_used; /* places from here on were never used in this case */
static struct thread *current;
static struct stack outermost;

static struct sim_plan plan;
static sim_body *case_body;
static void *case_argument;
static sim_idle *case_idle;
static uint64_t random_state;
static uint64_t last_number;
static int64_t now;
static int64_t first_end; /* lower bound of the ends of waits */

static uint64_t points_before; /* points of finished stretches */
static int64_t stretch;        /* initial value of the countdown */
static uint64_t case_began;    /* points when the case began */

static uint64_t changes[CHANGES_MOST];
static unsigned changes_done;
static int64_t lowest;

static unsigned branches_made;
static bool is_branch;
static bool is_traced;
static void (*report)(void);

static char locals_at_start[LOCALS_MOST];
static char *globals_at_start;

/* ---- Chance and points ---- */

uint64_t sim_draw(uint64_t limit)
{
	return limit == 0 ? 0 : (xorshift_next(&random_state) >> 11) % limit;
}

bool sim_happens(unsigned once_in)
{
	return once_in > 0 && sim_draw(once_in) == 0;
}

bool sim_weak_fails(void)
{
	return sim_happens(plan.weak_failures);
}

const struct sim_plan *sim_plan_here(void)
{
	return &plan;
}

uint64_t sim_points(void)
{
	return points_before + (uint64_t)(stretch - sim_countdown);
}

static void stretch_begin(int64_t length)
{
	points_before = sim_points();
	stretch = length;
	sim_countdown = length;
}

static uint64_t case_points(void)
{
	return sim_points() - case_began;
}

static void stretch_draw(void)
{
	int64_t length = (int64_t)sim_draw(2 * plan.run_length);

	if (plan.schedule == SIM_PRIORITY) {
		length = LONG_RUN;
		if (changes_done < plan.priority_changes && changes[changes_done] > case_points() &&
		    (int64_t)(changes[changes_done] - case_points()) < length)
			length = (int64_t)(changes[changes_done] - case_points());
	}
	stretch_begin(length);
}

/* ---- Switching ---- */

static size_t locals_size(void)
{
	return (size_t)(__stop_sim_thread_local - __start_sim_thread_local);
}

static void switch_to(struct thread *next)
{
	struct thread *from = current;

	if (from == next)
		return;
	from->error = errno;
	memcpy(from->locals, __start_sim_thread_local, locals_size());
	memcpy(__start_sim_thread_local, next->locals, locals_size());
	current = next;
	stack_switch(from->stack, next->stack, from->state == THREAD_ENDED);
	errno = from->error;
}

struct thread *sim_current(void)
{
	return current;
}

/* ---- Time ---- */

int64_t sim_now(void)
{
	return now;
}

static void end_waits(void)
{
	first_end = INT64_MAX;
	for (unsigned i = 0; i < threads_used; i++) {
		struct thread *thread = &threads[i];

		if (thread->state != THREAD_WAITS)
			continue;
		if (thread->until <= now) {
			thread->state = THREAD_CAN_RUN;
			thread->in_time = false;
		} else if (thread->until < first_end) {
			first_end = thread->until;
		}
	}
}

int64_t sim_read_clock(void)
{
	now += 1 + (int64_t)sim_draw(60);
	if (now >= first_end)
		end_waits();
	return now;
}

void sim_limit_time_step(int64_t most)
{
	if (plan.time_step > most)
		plan.time_step = most;
}

/* No thread can run: the clock goes on to the first end of a wait. */
static void pass_to_next_end(void)
{
	end_waits();
	for (unsigned i = 0; i < threads_used; i++)
		if (threads[i].state == THREAD_CAN_RUN)
			return;
	if (first_end == INT64_MAX)
		sim_fail("deadlock: no thread can run, and none waits for a time");
	case_idle(case_argument, now, first_end);
	now = first_end;
	end_waits();
}

/* ---- Choosing ---- */

static void branch(void)
{
	pid_t child;
	int status;

	if (branches_made >= BRANCHES_MOST)
		return;
	branches_made++;
	fflush(stdout);
	child = fork();
	if (child < 0)
		return;
	if (child == 0) {
		is_branch = true;
		random_state ^= 0x9e3779b97f4a7c15u * branches_made;
		random_state |= 1;
		return;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		/* The branch has printed its report. */
		fflush(stdout);
		_exit(1);
	}
}

bool sim_is_branch(void)
{
	return is_branch;
}

static bool is_slow(const struct thread *thread)
{
	return thread->slow_until > sim_points();
}

static struct thread *choose_at_random(void)
{
	struct thread *quick[SIM_THREADS_MOST];
	struct thread *slow[SIM_THREADS_MOST];
	unsigned quick_count = 0;
	unsigned slow_count = 0;

	for (unsigned i = 0; i < threads_used; i++) {
		if (threads[i].state != THREAD_CAN_RUN)
			continue;
		if (is_slow(&threads[i]))
			slow[slow_count++] = &threads[i];
		else
			quick[quick_count++] = &threads[i];
	}
	if (quick_count > 0)
		return quick[quick_count == 1 ? 0 : sim_draw(quick_count)];
	return slow_count > 0 ? slow[sim_draw(slow_count)] : NULL;
}

static struct thread *choose_by_priority(void)
{
	struct thread *highest = NULL;

	if (changes_done < plan.priority_changes && changes[changes_done] <= case_points()) {
		changes_done++;
		current->priority = lowest--;
	}
	for (unsigned i = 0; i < threads_used; i++)
		if (threads[i].state == THREAD_CAN_RUN &&
		    (!highest || threads[i].priority > highest->priority))
			highest = &threads[i];
	return highest;
}

static struct thread *choose(void)
{
	struct thread *next;

	if (plan.schedule == SIM_SLOW && sim_happens(SLOW_CHOICES))
		threads[sim_draw(threads_used)].slow_until = sim_points() + sim_draw(SLOW_LENGTH);
	do {
		next = plan.schedule == SIM_PRIORITY ? choose_by_priority() : choose_at_random();
		if (!next)
			pass_to_next_end();
	} while (!next);
	return next;
}

/* The current thread may or may not be able to go on. */
static void choose_next(void)
{
	struct thread *next;

	if (case_points() > plan.points_most)
		sim_fail("the case does not end: %llu points", (unsigned long long)case_points());
	if (sim_happens(plan.time_passes)) {
		now += (int64_t)sim_draw((uint64_t)plan.time_step);
		if (now >= first_end)
			end_waits();
	}
	if (sim_happens(plan.branches))
		branch();
	next = choose();
	stretch_draw();
	switch_to(next);
}

void sim_choose(void)
{
	if (plan.schedule == SIM_PRIORITY && stretch == LONG_RUN)
		current->priority = lowest--;
	choose_next();
}

void sim_yield(void)
{
	current->priority = lowest--;
	choose_next();
}

/* ---- Waiting ---- */

bool sim_wait(const void *address, int64_t until, const char *what)
{
	if (until <= now || sim_happens(plan.spurious_wakes)) {
		sim_yield();
		return until > now;
	}
	current->state = THREAD_WAITS;
	current->address = address;
	current->what = what;
	current->until = until;
	current->in_time = true;
	if (until < first_end)
		first_end = until;
	sim_trace("  waits for %s, now %lld, until %lld", what, (long long)now, (long long)until);
	choose_next();
	sim_trace("  goes on%s, now %lld", current->in_time ? "" : ", it is time", (long long)now);
	current->address = NULL;
	return current->in_time;
}

static void wake(struct thread *thread)
{
	thread->state = THREAD_CAN_RUN;
	/* A thread of higher priority goes on at once. */
	if (plan.schedule == SIM_PRIORITY && sim_countdown > 0)
		stretch_begin(0);
}

void sim_wake_all(const void *address)
{
	for (unsigned i = 0; i < threads_used; i++)
		if (threads[i].state == THREAD_WAITS && threads[i].address == address)
			wake(&threads[i]);
}

bool sim_is_waited_for(const void *address)
{
	for (unsigned i = 0; i < threads_used; i++)
		if (threads[i].state == THREAD_WAITS && threads[i].address == address)
			return true;
	return false;
}

void sim_wake_one(const void *address)
{
	struct thread *waiting[SIM_THREADS_MOST];
	unsigned count = 0;

	for (unsigned i = 0; i < threads_used; i++)
		if (threads[i].state == THREAD_WAITS && threads[i].address == address)
			waiting[count++] = &threads[i];
	if (count > 0)
		wake(waiting[sim_draw(count)]);
}

/* ---- Threads ---- */

uint64_t sim_thread_number(const struct thread *thread)
{
	return thread->number;
}

/* The place of a thread that was joined may be another's. */
struct thread *sim_thread_find(uint64_t number)
{
	for (unsigned i = 0; i < threads_used; i++)
		if (threads[i].state != THREAD_NONE && threads[i].number == number)
			return &threads[i];
	return NULL;
}

struct sim_thread_part *sim_thread_part(struct thread *thread)
{
	return &thread->part;
}

void sim_thread_name(struct thread *thread, const char *name)
{
	snprintf(thread->name, sizeof(thread->name), "%s", name);
}

static void thread_begin(void)
{
	stack_begun();
	sim_thread_end(current->run(current->argument));
}

struct thread *sim_thread_start(void *(*run)(void *), void *argument)
{
	unsigned place = 0;
	struct thread *thread;

	while (place < threads_used && threads[place].state != THREAD_NONE)
		place++;
	if (place == SIM_THREADS_MOST)
		return NULL;
	if (place == threads_used)
		threads_used++;
	thread = &threads[place];
	*thread = (struct thread){.state = THREAD_CAN_RUN,
				  .number = ++last_number,
				  .run = run,
				  .argument = argument,
				  .stack = &stacks[place],
				  .priority = (int64_t)sim_draw(1 << 20)};
	memcpy(thread->locals, locals_at_start, locals_size());
	stack_prepare(thread->stack, thread_begin);
	return thread;
}

void *sim_thread_join(struct thread *thread)
{
	while (thread->state != THREAD_ENDED)
		(void)sim_wait(thread, INT64_MAX, "join");
	thread->state = THREAD_NONE;
	return thread->result;
}

/* The body has ended: all others must have been joined. */
static _Noreturn void case_end(void)
{
	for (unsigned i = 1; i < threads_used; i++)
		if (threads[i].state != THREAD_NONE)
			sim_fail("thread %s is left over", threads[i].name);
	current->state = THREAD_ENDED;
	stack_switch(current->stack, &outermost, true);
	abort();
}

_Noreturn void sim_thread_end(void *result)
{
	if (current == &threads[0])
		case_end();
	current->result = result;
	current->state = THREAD_ENDED;
	sim_wake_all(current);
	choose_next();
	abort();
}

/* ---- A case ---- */

static int compare_points(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* memcpy() would not do: the sanitizer has memory between the variables, and would complain. */
#if defined(__GNUC__)
__attribute__((no_sanitize("address")))
#endif
static void
globals_copy(volatile char *to, const volatile char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = from[i];
}

/* A build for coverage has it, for the counters are among the variables. */
#ifndef keep_counts
#define keep_counts()
#endif

static void open_once(void)
{
	size_t size = (size_t)(__stop_sim_globals - __start_sim_globals);

	if (globals_at_start) {
		keep_counts();
		globals_copy(__start_sim_globals, globals_at_start, size);
		return;
	}
	is_traced = getenv("SIM_TRACE");
	if (locals_size() > LOCALS_MOST)
		sim_fail("more thread-local variables than LOCALS_MOST bytes");
	stacks_open(stacks, SIM_THREADS_MOST);
	memcpy(locals_at_start, __start_sim_thread_local, locals_size());
	globals_at_start = malloc(size);
	if (!globals_at_start)
		abort();
	globals_copy(globals_at_start, __start_sim_globals, size);
}

static void *run_body(void *argument)
{
	case_body(argument);
	return NULL;
}

void sim_run(const struct sim_plan *case_plan, sim_body *body, void *argument, sim_idle *idle)
{
	open_once();
	plan = *case_plan;
	case_body = body;
	case_argument = argument;
	case_idle = idle;
	random_state = plan.seed | 1;
	now = 1000000000 + (int64_t)sim_draw(1000000000);
	first_end = INT64_MAX;
	memset(threads, 0, sizeof(threads));
	threads_used = 0;
	last_number = 0;
	lowest = -1;
	changes_done = 0;
	branches_made = 0;
	stretch_begin(0);
	case_began = sim_points();
	if (plan.priority_changes > CHANGES_MOST)
		plan.priority_changes = CHANGES_MOST;
	for (unsigned i = 0; i < plan.priority_changes; i++)
		changes[i] = 1 + sim_draw(plan.length);
	qsort(changes, plan.priority_changes, sizeof(changes[0]), compare_points);
	current = sim_thread_start(run_body, argument);
	sim_thread_name(current, "body");
	memcpy(__start_sim_thread_local, locals_at_start, locals_size());
	stretch_draw();
	stack_switch(&outermost, current->stack, false);
}

/* ---- Failures ---- */

void sim_set_report(void (*function)(void))
{
	report = function;
}

void sim_trace(const char *format, ...)
{
	va_list arguments;

	if (!is_traced)
		return;
	printf("%8llu %2llu %-8s ", (unsigned long long)case_points(),
	       (unsigned long long)current->number, current->name);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

static void print_places(void *const *places, unsigned count)
{
	char command[64 + STACK_PLACES_MOST * 20];
	int length =
		snprintf(command, sizeof(command), "addr2line -spfe /proc/%d/exe", (int)getpid());
	char line[256];
	FILE *lines;

	/* A return address may belong to the next line. */
	for (unsigned i = 0; i < count; i++)
		length += snprintf(command + length, sizeof(command) - (size_t)length, " %p",
				   (void *)((char *)places[i] - 1));
	lines = popen(command, "r");
	while (lines && fgets(line, sizeof(line), lines))
		printf("      %s", line);
	if (lines)
		pclose(lines);
}

static void print_thread(const struct thread *thread, void *frame)
{
	static const char *const states[] = {"none", "can run", "waits", "has ended"};
	void *places[STACK_PLACES_MOST];

	printf("   thread %llu %s: %s", (unsigned long long)thread->number, thread->name,
	       thread == current ? "runs" : states[thread->state]);
	if (thread->state == THREAD_WAITS)
		printf(" for %s", thread->what);
	if (thread->state == THREAD_WAITS && thread->until != INT64_MAX)
		printf(", until %lld", (long long)thread->until);
	printf("\n");
	if (thread->state != THREAD_ENDED)
		print_places(places, stack_places(thread->stack, frame, places));
}

static _Noreturn void fail_at(void *frame)
{
	static bool is_failing;

	if (is_failing)
		_exit(1);
	is_failing = true;
	printf("   at %llu points of the case, its clock at %lld ns; the threads:\n",
	       (unsigned long long)case_points(), (long long)now);
	for (unsigned i = 0; i < threads_used; i++)
		if (threads[i].state != THREAD_NONE)
			print_thread(&threads[i], &threads[i] == current ? frame : NULL);
	if (report)
		report();
	fflush(stdout);
	_exit(1);
}

_Noreturn void sim_fail(const char *format, ...)
{
	va_list arguments;

	printf("\nFAILED: ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fail_at(__builtin_frame_address(0));
}

static void take_signal(int number, siginfo_t *info, void *context)
{
	static uint64_t case_seen = UINT64_MAX;

	if (number == SIGVTALRM && case_seen != case_began) {
		case_seen = case_began;
		return;
	}
	printf("\nFAILED: %s\n",
	       number == SIGVTALRM ? "the case does not end: too much time" : strsignal(number));
#if defined(__x86_64__)
	{
		ucontext_t *registers = context;
		void *place = (void *)registers->uc_mcontext.gregs[REG_RIP];

		print_places(&place, 1);
		fail_at((void *)registers->uc_mcontext.gregs[REG_RBP]);
	}
#else
	fail_at(NULL);
#endif
}

void sim_catch_signals(void)
{
	static char stack[1 << 16];
	static const int faults[] = {SIGABRT, SIGVTALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	size_t count = sizeof(faults) / sizeof(faults[0]);
	stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_sigaction = take_signal,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	struct itimerval watch = {{WATCH_SECONDS, 0}, {WATCH_SECONDS, 0}};

	sigaltstack(&other, NULL);
	/* AddressSanitizer reports more about faults; it calls the report at its end. */
	if (SANITIZER_ADDRESS)
		count = 2;
#if SANITIZER_ADDRESS
	__sanitizer_set_death_callback(report);
#endif
	for (size_t i = 0; i < count; i++)
		sigaction(faults[i], &action, NULL);
	setitimer(ITIMER_VIRTUAL, &watch, NULL);
}
