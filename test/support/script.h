/* SPDX-License-Identifier: MIT */
/*
 * A script is a case in words: the calls for one wheel on a manual clock, and all that comes of
 * them.
 *
 *     SCRIPT(everywhere, moved_timer_runs_once,
 *            "set a 4; pass 3; move a 7; left a = 7; pass 9 -> a@10")
 *
 * A step is a call, `= answer` and `-> events`. The answer of most calls is a status: OK where none
 * is written; `= any` may be any. Events are all that has come back since the last comparison; `=>`
 * has them in their order where tasks run inline. `a@10` ran at 10, `a@10/9.5` with the deadline
 * 9.5; `a:removed`, `a:replaced` and `a:stopped` were released, `a:drained` drained, `a:closed` is
 * an alarm's end. Steps with events, and pass, advance, idle and wait, first wait for the tasks. At
 * the end nothing may be left to compare, and each value by key has come back once.
 *
 * Times are milliseconds, which are ticks: 3, 0.5, 4-1ns, 2h, never, least. The key of the values
 * a1 and a2 is a; that of A1, with a capital letter, has 1,000 bytes. The calls:
 *
 *     set a 3, add a 3, move a 3, remove a, take a, left a     by key; take's answer is the value
 *     after p 3, every p 1 2 delay, schedule p 3 5 9           make a timer by handle
 *     stop p, stop_wait p, reset p 3, take p, left p, asked p  asked: the arguments of next
 *     alarm x, set x 3, set_at x 5, stop x, close x, destroy x
 *     cron p                                   makes a timer by handle, for each full hour
 *     drain, stop, destroy, flush, poll, pending, places, now, walk, stats, metrics, until 9
 *     rings          the descriptor of tw_fd is readable, or = quiet; the first one asks for it
 *     events         the number of those not yet compared, without a wait
 *     pass 9         9 ticks, one call each; advance 9: in one call
 *     clock 9        in one call, waiting for no task
 *     clock_is 5     sets the clock, maybe back, without a turn of the owner
 *     half, whole    a command is half written, and so holds up those behind it, until it is whole
 *     whole_asleep w writes the rest in another thread once this one sleeps; ended w waits for that
 *     idle, wait     wait for tasks; wait: also for the number of events that is written
 *     counts         the counts of tw_get_stats that are not 0: set 2 moved 1; begun and ended:
 *                    those of the latenesses and durations
 *     hold p         p stops when it comes back next; reached p waits for it, go p lets it go on
 *     begin w idle   makes a call in another thread; asleep w waits until it sleeps, and ended w,
 *                    which has its answer, until it returns; cancel w cancels the thread
 *     await 1        waits, without a call that the owner answers, until that number is pending
 *     meet 3         waits until three steps have met, here or in other threads
 *     in p: stop p = RUNNING, set b 3     the steps are made when p comes back, here and each time
 *     in p 2: ...                         and these at its second time
 *     asking p 2: ...                     and these when its schedule is asked that time
 */
#ifndef SUPPORT_SCRIPT_H
#define SUPPORT_SCRIPT_H

#include "recorder.h"

/* SCRIPT(kind, name, text, options...) is a case on a wheel of five slots with these options. */
#define SCRIPT(kind, name, text, ...)                                                           \
	TEST(kind, name)                                                                        \
	{                                                                                       \
		script_run(*state, (struct tw_options){__VA_ARGS__}, text, __FILE__, __LINE__); \
	}

/* These steps stop both workers in v and w, so that due tasks stay in the pool, and let them go. */
#define WORKERS_STOP "hold v; hold w; after v 0; after w 0; clock 0; reached v; reached w;"
#define WORKERS_GO "go v; go w;"

/* These are for tests that make the steps themselves. An answer has room for SCRIPT_ANSWER bytes;
 * the call is for this wheel, which may be NULL. A close ends the test if anything was wrong. */
enum { SCRIPT_ANSWER = 400 };
struct script *script_open(const struct variant *variant, struct tw_options more);
struct tw_wheel *script_wheel(const struct script *script);
void script_make(struct script *script, const char *text);
void script_answer(struct script *script, struct tw_wheel *wheel, const char *step, char *answer);
bool script_is_wrong(const struct script *script);
void script_close(struct script *script, const char *text, const char *file, int line);

enum script_trait {
	CALL_PLAIN,
	CALL_ALLOCATES,    /* when it is the wheel's first */
	CALL_WORKS_STOPPED /* answers TW_OK on a stopped wheel, too */
};
/* These are all calls for a wheel, each as a step with its answer on the wheel that SCRIPT_STAGE
 * prepares; the last has no step. */
extern const struct script_call {
	const char *step;
	const char *answer;
	enum script_trait trait;
} wheel_calls[];
#define SCRIPT_STAGE "set a 1h; set L1 1h; after p 1h; after q 1h; alarm x; set b 1h; flush"
/* Returns whether the wheel of this variant has the call. */
bool script_has_call(const struct variant *variant, const struct script_call *call);

void script_run(const struct variant *variant, struct tw_options more, const char *text,
		const char *file, int line);

#endif
