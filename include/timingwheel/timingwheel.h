/* SPDX-License-Identifier: MIT */
/*
 * timingwheel: millions of delayed tasks, set and moved from any thread.
 *
 *     struct tw_wheel *wheel;
 *     tw_create(&wheel, TW_MILLISECOND, 512, on_expiry, NULL);
 *     tw_set_timer(wheel, "session:42", 10, session, 30 * TW_SECOND);
 *     tw_move_timer(wheel, "session:42", 10, 30 * TW_SECOND);    (it was used: start over)
 *     tw_remove_timer(wheel, "session:42", 10);
 *     tw_destroy(wheel);
 *
 * One owner thread runs the wheel; a pool of workers runs the tasks. Every call may be made from
 * any thread, also from inside a task; only tw_destroy must be the last one.
 *
 * What the wheel guarantees:
 *  - Every value it accepted comes back exactly once: to `execute` (it expired), to the function
 *    given to tw_drain, or to `release` with the reason. A call that fails leaves the value with
 *    its caller.
 *  - A timer runs late, never early: its deadline counts from the call (see tw_delay_from) and is
 *    rounded up to a tick of `interval`. It runs within one tick of the deadline, plus the time
 *    that the commands before it and the tasks before it in the pool take. (One exception: a move
 *    to less than one interval runs the task at once.)
 *  - The commands of one thread take effect in the order in which it gave them.
 *  - No call is a cancellation point (pthread_cancel): a thread that is cancelled in a call goes on
 *    to its end. So do the tasks that run inline in a call.
 *  - In a child made by fork() without exec(), every call that has a status returns TW_CLOSED
 *    (Linux 4.14 or later). Where a task, release or drain function forked and returns in the
 *    child, its thread ends there.
 */
#ifndef TIMINGWHEEL_TIMINGWHEEL_H
#define TIMINGWHEEL_TIMINGWHEEL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if UINTPTR_MAX < UINT64_MAX
#error "timingwheel needs a 64-bit processor"
#endif

#define TW_VERSION_MAJOR 0
#define TW_VERSION_MINOR 2
#define TW_VERSION_PATCH 0
/* One number, to compare by: 200 is 0.2.0, 10203 is 1.2.3. */
#define TW_VERSION (TW_VERSION_MAJOR * 10000 + TW_VERSION_MINOR * 100 + TW_VERSION_PATCH)
#define TW_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define TW_VERSION_TEXT(major, minor, patch) TW_VERSION_TEXT_(major, minor, patch)
/* "0.2.0" */
#define TW_VERSION_STRING TW_VERSION_TEXT(TW_VERSION_MAJOR, TW_VERSION_MINOR, TW_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#else
#define TW_API
#endif

/*
 * Returns TW_VERSION of the library that the program is running with. The macro is that of the
 * header that the program was compiled with. Any thread.
 *
 * Returns: the version as one number: 200 is 0.2.0.
 */
TW_API int tw_version(void);

/* A length of time, or a point on the wheel's clock (tw_now), in nanoseconds. */
typedef int64_t tw_duration;

/* Lengths of time. */
#define TW_NANOSECOND ((tw_duration)1)
#define TW_MICROSECOND (1000 * TW_NANOSECOND)
#define TW_MILLISECOND (1000 * TW_MICROSECOND)
#define TW_SECOND (1000 * TW_MILLISECOND)
#define TW_MINUTE (60 * TW_SECOND)
#define TW_HOUR (60 * TW_MINUTE)
/* As a delay or deadline: later than the clock can tell, so never. */
#define TW_FOREVER ((tw_duration)INT64_MAX)

/* Longest key, in bytes. */
#define TW_KEY_SIZE_MAX 65535

/* Most slots of a wheel. */
#define TW_SLOTS_MAX ((size_t)1 << 20)

/* What a call returns: X(name, text). */
#define TW_STATUS_LIST(X)                                                    \
	X(TW_OK, "done")                                                     \
	X(TW_INVALID, "invalid argument, or the call would wait for itself") \
	X(TW_CLOSED, "it has been stopped or is being destroyed")            \
	X(TW_FULL, "a limit has been reached")                               \
	X(TW_NO_MEMORY, "out of memory")                                     \
	X(TW_NOT_FOUND, "no such timer or key")                              \
	X(TW_RUNNING, "the task is running")                                 \
	X(TW_REARMED, "it is running; a further run was taken back")         \
	X(TW_EXISTS, "it exists already")                                    \
	X(TW_SYSTEM, "a system call failed; errno tells why")                \
	X(TW_TRUNCATED, "the value is larger than the buffer")               \
	X(TW_TIMED_OUT, "the wait took too long")                            \
	X(TW_LOAD_FAILED, "the loader gave no value")                        \
	X(TW_STALE, "the load failed; the value is past its deadline")

/* What a call returns. */
enum tw_status {
#define TW_STATUS_NAME(name, text) name,
	TW_STATUS_LIST(TW_STATUS_NAME)
#undef TW_STATUS_NAME
	/* None: room for those of a library on top of this one, as in redis.h. */
	TW_STATUS_MAX = 255
};

/*
 * Gives the name of a status. The strings are static. Any thread.
 *
 * Returns: "TW_OK" for TW_OK, and so on; "TW_UNKNOWN" for a number that is no status.
 */
TW_API const char *tw_status_name(enum tw_status status);

/*
 * Gives a status in words, for a log line. The strings are static. Any thread.
 *
 * Returns: the text; "unknown status" for a number that is no status.
 */
TW_API const char *tw_status_text(enum tw_status status);

struct tw_wheel;

/* A timer set without a key, by tw_after_func and the calls after it. */
struct tw_timer {
	uint64_t id; /* 0: none */
};

/* What a task, a release or a drain function is told. The pointers in it are valid in the call. */
struct tw_task {
	const void *key; /* the wheel's copy; of a timer by handle NULL */
	size_t key_size; /* bytes */
	void *value;     /* as given; from here on it is the called function's again */
	/* On the wheel's clock: the time of the call (see tw_delay_from) plus the delay, or plus
	 * one interval where the delay counts as that; not rounded up to a tick. */
	tw_duration deadline;
	/* Now minus the deadline, never negative: a move under one interval runs before its
	 * deadline, and that counts as 0. */
	tw_duration lateness;
	struct tw_timer timer;       /* the handle; id 0 where there is none */
	void (*run)(void *argument); /* where there is no key: the function, value its argument */
	struct tw_wheel *wheel;      /* the wheel that calls */
};

/* Runs an expired task. Called on a worker, or where the wheel is driven (TW_WORKERS_INLINE). */
typedef void tw_execute_fn(void *context, const struct tw_task *task);

/* Why a value comes back without having run. */
enum tw_reason {
	TW_REPLACED, /* tw_set_timer on an existing key: this is the value it had */
	TW_REMOVED,  /* tw_remove_timer */
	TW_STOPPED   /* tw_stop or tw_destroy, before it ran */
};

/* Takes back a value that will not run. Called on a worker, or where the wheel is driven. */
typedef void tw_release_fn(void *context, const struct tw_task *task, enum tw_reason reason);

/* How a wheel keeps its timers. */
enum tw_layout {
	/* Levels that overflow upward, each of `slots` slots: rounded up to a power of two, and cut
	 * to 65,536, which changes costs and nothing else. */
	TW_LAYOUT_LEVELS,
	/* One wheel of `slots` slots, where a timer waits for its round, as in go-zero. A timer may
	 * cost a look each lap. */
	TW_LAYOUT_ROUNDS
};

/* Which clock a wheel goes by. */
enum tw_clock {
	TW_CLOCK_MONOTONIC, /* stands still while the machine is suspended */
	TW_CLOCK_BOOTTIME,  /* goes on while the machine is suspended; Linux only */
	TW_CLOCK_MANUAL     /* starts at 0 and is moved by tw_advance alone: for tests */
};

/* Which thread drives a wheel. */
enum tw_drive {
	/* An owner thread drives the wheel. */
	TW_DRIVE_THREAD,
	/* No thread: a thread in tw_poll, tw_advance, tw_flush, tw_wait_idle, tw_contains,
	 * tw_each, tw_stop or tw_destroy drives it meanwhile, one at a time; so does a command that
	 * finds the queue full and may wait. A command from another thread does not end a sleep of
	 * the caller of tw_poll. */
	TW_DRIVE_CALLER
};

/* What a call does that meets a limit. */
enum tw_when_full {
	/* The call waits until there is room, in order; where it would wait for itself (a task of
	 * an inline wheel, or of a pool with max_unfinished) it may be refused all the same. */
	TW_WHEN_FULL_WAIT,
	TW_WHEN_FULL_FAIL /* the call returns TW_FULL */
};

/*
 * What the delays of tw_set_timer, tw_set_timers, tw_move_timer and tw_move_timers count from. A
 * delay by handle or of an alarm always counts from the call, as does that of a set with
 * max_pending reached.
 */
enum tw_delay_from {
	TW_FROM_CALL, /* the call */
	/* When the owner takes the command: later than the call by as long as it has waited in the
	 * queue, never earlier. The call is spared the reading of the clock. */
	TW_FROM_APPLIED
};

/* How the program is told of tasks that take long. */
struct tw_slow_task {
	tw_duration threshold; /* nanoseconds, ≥ 0; 0: no task is told of */
	/*
	 * NULL: no task is told of. Called with tw_options.context, right after a task that took
	 * longer than the threshold, on the thread that ran it; `took` is in nanoseconds of real
	 * time, on a manual clock too. `task` is what execute was told, or would have been of a run
	 * by handle; its value may be gone by now. `timer` is task->timer; to tw_timer_stop_wait
	 * this still is the timer's own run. Not told of alarms. May call what a task may.
	 */
	void (*hook)(void *context, const struct tw_task *task, struct tw_timer timer,
		     tw_duration took);
};

/* For tw_options.workers: tasks, releases and drain functions run where the wheel is driven. */
#define TW_WORKERS_INLINE (-1)
/* Largest tw_options.workers and tw_options.max_workers. */
#define TW_WORKERS_MAX 1024

/* What a wheel is made with, beside its tick and its slots. All zero means all defaults. */
struct tw_options {
	void *context;               /* given to execute and release */
	tw_release_fn *release;      /* NULL: values that don't run are the caller's own business */
	enum tw_layout layout;       /* how timers are kept */
	enum tw_clock clock;         /* what time is read from */
	enum tw_drive drive;         /* which thread does the owner's work */
	int workers;                 /* threads that run tasks; 0: 2; see max_workers */
	size_t queue_capacity;       /* commands waiting, rounded up to a power of two; 0: 8192 */
	enum tw_when_full when_full; /* for the queue, for max_pending and for drains */
	size_t max_pending;          /* timers armed, or on the way to it, at a time; 0: no limit */
	/* Threads are NAME-owner, NAME-0 …, and NAME-watch where there may be more of them. Of NAME
	 * as much is used as leaves such a name 15 bytes: 9 of it or more. NULL: "tw". */
	const char *name;
	struct tw_slow_task slow_task; /* how tasks that take long are told of */
	/*
	 * While all workers are busy and a task that was handed to them waits for longer than
	 * patience_for_worker (nanoseconds, ≥ 0; 0: 5 ms), one more is started, up to
	 * max_workers; one after the other while tasks hold all of them up, one in a patience
	 * while there is much to do. One of those that has nothing to do for 10 s ends. At most
	 * TW_WORKERS_MAX; as many as `workers`: none is started; 0: 64, or `workers` if that is
	 * more. With TW_WORKERS_INLINE it must be 0.
	 */
	int max_workers;
	tw_duration patience_for_worker;
	/*
	 * While so many tasks, releases and drain calls are unfinished in the pool, timers that
	 * are due stay in the wheel: pending, with their keys, to be moved and removed. Releases
	 * and drain calls are handed over all the same. 0: no limit; none with TW_WORKERS_INLINE.
	 */
	size_t max_unfinished;
	enum tw_delay_from delay_from; /* what delays count from */
};

/* Largest tw_options.queue_capacity. */
#define TW_QUEUE_CAPACITY_MAX ((size_t)1 << 26)

/*
 * Makes a wheel and starts its threads.
 *
 * Its tick is `interval` nanoseconds; it has `slots` slots (a level). `execute` runs each expired
 * task that has a key; it may be NULL in a program that sets timers by handle alone: then a set by
 * key returns TW_INVALID. `options` may be NULL; it is copied. Except on TW_OK *wheel is NULL.
 *
 * Returns:
 *   TW_OK         *wheel is the caller's, until tw_destroy
 *   TW_INVALID    interval ≤ 0, no slots or over TW_SLOTS_MAX, no wheel to fill, or an option out
 *                 of range
 *   TW_NO_MEMORY  nothing was made
 *   TW_SYSTEM     a thread could not be started, the system has no such clock, or no descriptor
 *                 is left for TW_CLOCK_BOOTTIME
 */
TW_API enum tw_status tw_create(struct tw_wheel **wheel, tw_duration interval, size_t slots,
				tw_execute_fn *execute, const struct tw_options *options);

/*
 * Arms a timer for the key, or replaces the one that it has: `value` is given to execute once
 * `delay` has passed.
 *
 * The key is copied. A delay under one interval counts as one interval; one too large for the clock
 * never ends. If the key has a timer, its value is replaced (the old one goes to release,
 * TW_REPLACED) and the timer moves as if newly set. From the moment a task is handed to the pool
 * its key is free. With any status but TW_OK the value is still the caller's.
 *
 * Any thread. Costs a clock read (but see tw_delay_from), a hash and one place in the queue; no
 * system call unless the owner sleeps, the queue is full, or max_pending is reached, where the
 * owner is asked. An owner that has just been busy naps for 50 µs before it looks again.
 *
 * Returns:
 *   TW_OK         the wheel owns the value
 *   TW_INVALID    no wheel, one without execute, key NULL, empty or over TW_KEY_SIZE_MAX, delay ≤ 0
 *   TW_FULL       there is no room (see tw_options.when_full); with max_pending reached, also from
 *                 an inline task, from any task with max_unfinished, or with TW_DRIVE_CALLER, where
 *                 waiting could not end
 *   TW_NO_MEMORY  nothing has changed
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_set_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
				   void *value, tw_duration delay);

/*
 * Arms or replaces the key's timer as tw_set_timer does, with a deadline on the wheel's clock
 * (tw_now). A past one runs now.
 *
 * Returns:
 *   TW_OK         the wheel owns the value
 *   TW_INVALID    no wheel, one without execute, or a bad key
 *   TW_FULL       there is no room, as for tw_set_timer
 *   TW_NO_MEMORY  nothing has changed
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_set_timer_at(struct tw_wheel *wheel, const void *key, size_t key_size,
				      void *value, tw_duration deadline);

/*
 * Arms a timer as tw_set_timer does, but only if the key has none.
 *
 * The owner says so: the call waits until the commands given before it have been applied and it has
 * its answer; in an inline task they are applied on the spot. The delay counts from the call. With
 * any status but TW_OK the value is still the caller's. Any thread.
 *
 * Returns:
 *   TW_OK         the wheel owns the value
 *   TW_EXISTS     the key has a timer, which stays as it is
 *   TW_INVALID    no wheel, one without execute, a bad key, or delay ≤ 0
 *   TW_FULL       max_pending is reached, as for tw_set_timer
 *   TW_NO_MEMORY  nothing has changed
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_add_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
				   void *value, tw_duration delay);

/*
 * Takes the key's timer out and hands its value back to the caller: it will not run, and release is
 * not called.
 *
 * Waits for the owner's answer as tw_add_timer does. Any thread.
 *
 * Returns:
 *   TW_OK         *value is the value as it was given to the wheel, and the caller's again
 *   TW_NOT_FOUND  nothing is pending under the key; *value is as before
 *   TW_INVALID    no wheel, a bad key, or no place for the value
 *   TW_CLOSED     the wheel was stopped; its values go to release
 */
TW_API enum tw_status tw_take_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
				    void **value);

/*
 * Gives the key's timer a new deadline, `delay` from now (see tw_delay_from), sooner or later than
 * before.
 *
 * With a delay under one interval it is taken out of the wheel and runs now, once. An unknown key:
 * nothing happens. Any thread; costs as tw_set_timer.
 *
 * Returns:
 *   TW_OK         the command was accepted
 *   TW_INVALID    no wheel, a bad key, or delay ≤ 0
 *   TW_FULL       there is no room in the queue
 *   TW_NO_MEMORY  only for keys over 24 bytes
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_move_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
				    tw_duration delay);

/*
 * Takes the key's timer out: it will not run, and its value goes to release (TW_REMOVED).
 *
 * An unknown key: nothing happens. Any thread; costs as tw_set_timer without the clock.
 *
 * Returns:
 *   TW_OK         the command was accepted
 *   TW_INVALID    no wheel, or a bad key
 *   TW_FULL       there is no room in the queue
 *   TW_NO_MEMORY  only for keys over 24 bytes
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_remove_timer(struct tw_wheel *wheel, const void *key, size_t key_size);

/*
 * Empties the wheel: every timer pending at that point of the command order is given to `each` with
 * `context`, on the worker pool, several at a time, none twice.
 *
 * Does not wait for that (tw_wait_idle does). The wheel stays usable, the keys are free at once,
 * and `each` may call the wheel. Timers that were handed to the pool before are not in it. A timer
 * that is reset after the drain is still given to `each`; one that is stopped may be. While 64
 * drains have yet to be handed over, waits as a set does for room in the queue. Any thread; costs
 * the making of an empty wheel.
 *
 * Returns:
 *   TW_OK         the drain was accepted
 *   TW_INVALID    no wheel or no function
 *   TW_FULL       64 drains have yet to be handed over, and tw_options.when_full says not to wait,
 *                 or the call comes from an inline task
 *   TW_NO_MEMORY  nothing was drained
 *   TW_CLOSED     the wheel was stopped; nothing was drained
 */
TW_API enum tw_status tw_drain(struct tw_wheel *wheel, tw_execute_fn *each, void *context);

/*
 * Stops the wheel for good: pending timers, and tasks handed to the pool but not begun, go to
 * release (TW_STOPPED).
 *
 * Running tasks end by themselves. Does not wait: after tw_stop and then tw_wait_idle, no task runs
 * or will. Any thread, also from a task.
 *
 * Returns:
 *   TW_OK         this call stopped it
 *   TW_CLOSED     it was stopped before
 *   TW_INVALID    no wheel
 */
TW_API enum tw_status tw_stop(struct tw_wheel *wheel);

/*
 * Stops the wheel if need be, waits for running tasks, releases and drain functions, ends the
 * threads and frees everything.
 *
 * NULL is fine. The last call on the wheel: no other may be running or follow. From a task of this
 * wheel it could not return: there it does nothing. In a fork's child it does nothing either: what
 * the parent holds is the parent's.
 */
TW_API void tw_destroy(struct tw_wheel *wheel);

/*
 * Waits until every command accepted before the call has been applied. Fine in a pool task.
 *
 * Returns:
 *   TW_OK         they have been applied
 *   TW_INVALID    no wheel, or called from an inline task
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_flush(struct tw_wheel *wheel);

/*
 * Waits as tw_flush does, and then until every task that is due by then, and every release and
 * drain call owed by then, has finished; the commands that they gave have been applied. Also after
 * tw_stop.
 *
 * Returns:
 *   TW_OK         all that has finished
 *   TW_INVALID    no wheel, or called from a task, release or drain function of this wheel
 *   TW_CLOSED     in a fork's child
 */
TW_API enum tw_status tw_wait_idle(struct tw_wheel *wheel);

/*
 * Gives all memory back to the system that no timer needs, in steps between which the wheel goes
 * on; waits until that is done.
 *
 * The wheel does it without being asked, too: within some 8 seconds of its clock when hardly a
 * timer is set, expires or is removed; and what a minute of work has not needed, also in between.
 * Timers that are left keep the pages of 4 KiB that they lie on. Fine in a pool task.
 *
 * Returns:
 *   TW_OK         it is done
 *   TW_INVALID    no wheel, or called from an inline task
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_trim(struct tw_wheel *wheel);

/*
 * Tells whether the key has a timer once the commands accepted before have been applied.
 *
 * Asks the owner and waits for the answer; in an inline task the commands are applied on the spot.
 * On TW_OK *remaining (may be NULL) is the time to the timer's deadline, 0 when past, TW_FOREVER
 * when never; else it is as before. Any thread.
 *
 * Returns:
 *   TW_OK         it has
 *   TW_NOT_FOUND  it has none
 *   TW_INVALID    no wheel or a bad key
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_contains(struct tw_wheel *wheel, const void *key, size_t key_size,
				  tw_duration *remaining);

/* A pending timer, as tw_each tells of it. The key's copy is valid in the call. */
struct tw_pending_timer {
	const void *key;             /* of a timer by handle NULL */
	size_t key_size;             /* bytes */
	void *value;                 /* as given; by handle, the argument */
	tw_duration deadline;        /* on the wheel's clock, as in struct tw_task */
	struct tw_timer timer;       /* the handle; id 0 where there is none */
	void (*run)(void *argument); /* by handle, the function */
	tw_duration period;          /* of tw_every; 0: none */
};

/*
 * Called for a pending timer.
 *
 * Returns: 0 to end the visits.
 */
typedef int tw_visit_fn(void *context, const struct tw_pending_timer *timer);

/*
 * Calls visit(context, timer) for the timers that are pending, until it returns 0.
 *
 * A timer that is pending from begin to end is visited once, also one that is moved, or whose value
 * is replaced, meanwhile. What comes or goes meanwhile is visited once or not at all; a key or a
 * handle is never visited twice. A timer that is told of was pending when the owner copied it, a
 * moment ago, in the order of commands. In no order of deadlines. Alarms are not visited, nor a
 * periodic timer while its run is under way.
 *
 * `visit` runs on the calling thread, with no lock held, and may call the library; it must return.
 * It is told copies: by then the timer may have run or been removed. So `value` may only be read
 * where the program itself keeps it alive, as where values are no pointers, are freed by no other
 * thread, or are counted references. By handle there is another way: tw_timer_stop, which gives the
 * argument to the caller with TW_OK.
 *
 * Any thread, also from a task; where the wheel is driven, the caller drives it meanwhile. Costs
 * some 200 ns a timer, and 25 KiB of memory. The owner copies up to 128 timers in a turn,
 * and does all else in between.
 *
 * Returns:
 *   TW_OK         all were visited, or as many as `visit` wanted
 *   TW_INVALID    no wheel, or no visit
 *   TW_NO_MEMORY  not all were visited
 *   TW_CLOSED     not all were visited, for the wheel was stopped before or meanwhile
 */
TW_API enum tw_status tw_each(struct tw_wheel *wheel, tw_visit_fn *visit, void *context);

/*
 * Writes all that is pending as text, for people: a line of the wheel, and one a timer, as tw_each
 * tells of it.
 *
 * Times are in nanoseconds; bytes of a key that are not printable ASCII are written as \xHH.
 * Nothing is promised of the format. Ends with a flush of the file. Any thread; costs as tw_each,
 * and the writing.
 *
 * Returns:
 *   TW_OK         it is written
 *   TW_SYSTEM     the file could not be written; errno tells why
 *   TW_INVALID    no wheel, or no file
 *   TW_NO_MEMORY  not all is written
 *   TW_CLOSED     not all is written, for the wheel was stopped before or meanwhile
 */
TW_API enum tw_status tw_dump(struct tw_wheel *wheel, FILE *file);

/*
 * Writes the same as tw_dump for a debugger that has stopped the program:
 * `call tw_dump_stopped(wheel, 2)` writes to the descriptor 2.
 *
 * Takes no lock, allocates nothing and asks no other thread: it reads the pending timers where they
 * are. So all other threads must be stopped, and what a stopped owner was just changing may be told
 * wrongly, or end the call with a fault. Commands in the queue have not been applied. After tw_stop
 * it tells of no timer. Needs 8 KiB of stack.
 *
 * Returns:
 *   TW_OK         it is written
 *   TW_SYSTEM     the descriptor could not be written; errno tells why
 *   TW_INVALID    no wheel
 */
TW_API enum tw_status tw_dump_stopped(struct tw_wheel *wheel, int descriptor);

/*
 * Tells whether the caller is inside a task, release or drain function of this wheel.
 *
 * Returns: 1 or 0, which also stands for no wheel.
 */
TW_API int tw_is_in_task(struct tw_wheel *wheel);

/*
 * Tells what the calling thread is doing for a wheel.
 *
 * Inside a task, a release or drain function, the run of an alarm, or the hook of slow tasks this
 * is what that function is told, or would be; so a run(void *) needs no way back to its wheel and
 * its handle of its own. Where one inline task makes another run, the inner one.
 *
 * Returns: what the function is told, valid until it returns; outside of them NULL.
 */
TW_API const struct tw_task *tw_current_task(void);

/*
 * Counts the timers armed and not yet handed over, as far as commands have been applied.
 *
 * Returns: their number; 0: no wheel.
 */
TW_API size_t tw_pending(struct tw_wheel *wheel);

/*
 * Reads the wheel's clock.
 *
 * Returns: nanoseconds; no wheel: 0.
 */
TW_API tw_duration tw_now(struct tw_wheel *wheel);

/*
 * Tell what the wheel was made with. tw_now of TW_CLOCK_MONOTONIC is the system's CLOCK_MONOTONIC,
 * of TW_CLOCK_BOOTTIME its CLOCK_BOOTTIME.
 *
 * Returns: the clock, and the interval; no wheel: TW_CLOCK_MONOTONIC, and 0.
 */
TW_API enum tw_clock tw_clock_of(const struct tw_wheel *wheel);
TW_API tw_duration tw_interval_of(const struct tw_wheel *wheel);

/*
 * Moves a manual clock forward, tick by tick.
 *
 * It moves by `by` nanoseconds. Applies the commands accepted before it and returns when all that
 * became due has been handed over; with TW_WORKERS_INLINE it has also run, in deadline order, first
 * set first. By 0: applies commands and runs what is due. The clock ends at TW_FOREVER at most.
 * With max_unfinished it waits for the pool.
 *
 * Returns:
 *   TW_OK         the clock has moved
 *   TW_INVALID    no wheel, a clock that isn't manual, by < 0, or called from an inline task or,
 *                 with max_unfinished, any task
 *   TW_CLOSED     the wheel was stopped before or on the way
 */
TW_API enum tw_status tw_advance(struct tw_wheel *wheel, tw_duration by);

/*
 * Drives a TW_DRIVE_CALLER wheel: applies commands and hands over (or runs) what is due, then tells
 * in *until_next (may be NULL) how long the caller may sleep.
 *
 * *until_next is 0 or more, TW_FOREVER if nothing is pending, one interval while max_unfinished
 * holds timers back.
 *
 * Returns:
 *   TW_OK         done; sleep, and call it again
 *   TW_INVALID    no wheel, one with an owner thread, or called from an inline task
 *   TW_CLOSED     the wheel was stopped before or meanwhile
 */
TW_API enum tw_status tw_poll(struct tw_wheel *wheel, tw_duration *until_next);

/*
 * Gives a descriptor to an event loop that drives a TW_DRIVE_CALLER wheel: poll() or epoll finds it
 * readable when a command has arrived or a deadline is due.
 *
 * Then call tw_poll, which makes it quiet again: after the other events of the same wait, for a
 * task may free what they are about. The descriptor is the wheel's: don't read or close it.
 *
 * Returns: the descriptor, or -1, with errno: EINVAL: no wheel, one with an owner thread, stopped,
 * or called from an inline task; ENOTSUP: not Linux; else no descriptors.
 */
TW_API int tw_fd(struct tw_wheel *wheel);

/*
 * Timers by handle: no key, no index; RussellLuo's and Kafka's interface. A handle stays safe to
 * use for ever: once its timer is done it leads to TW_NOT_FOUND, whatever is in its memory by then.
 */

/* What a periodic timer does about runs it is late for by a period or more. */
enum tw_missed {
	TW_MISSED_BURST, /* runs each of them, one after the other */
	TW_MISSED_DELAY, /* runs one; the next is a period after that one began */
	TW_MISSED_SKIP   /* runs one; the next is at the next multiple of the period */
};

/*
 * Calls run(argument) once, `delay` from now, on the pool.
 *
 * A delay ≤ 0 runs it now, one under an interval is rounded up like any other. *timer (may be NULL)
 * becomes its handle, before its run can begin; except on TW_OK it is 0. When the wheel is stopped
 * first, the argument goes to release (TW_STOPPED); when it is drained, to the drain function; both
 * are told the handle and `run`. Any thread; costs as tw_set_timer without the hash.
 *
 * Returns:
 *   TW_OK         the timer is armed
 *   TW_INVALID    no wheel or no function
 *   TW_FULL       there is no room, as for tw_set_timer
 *   TW_NO_MEMORY  nothing was armed
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_after_func(struct tw_wheel *wheel, tw_duration delay, void (*run)(void *),
				    void *argument, struct tw_timer *timer);

/*
 * Calls run(argument) after `first`, then each `period`: at first + n * period, without drift,
 * never two at a time.
 *
 * Ends with tw_timer_stop, or as a timer of tw_after_func does. *timer, threads and costs as for
 * tw_after_func.
 *
 * Returns:
 *   TW_OK         the timer is armed
 *   TW_INVALID    no wheel or no function, period ≤ 0, or no such policy
 *   TW_FULL       there is no room, as for tw_set_timer
 *   TW_NO_MEMORY  nothing was armed
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_every(struct tw_wheel *wheel, tw_duration first, tw_duration period,
			       enum tw_missed missed, void (*run)(void *), void *argument,
			       struct tw_timer *timer);

/*
 * Calls run(argument) at the times that next(argument, previous) tells, on the wheel's clock.
 *
 * `next` is asked here with the time of the call, then after each run, as its last part, with the
 * deadline of that run, unless the run was reset or stopped. An answer that is not later than
 * `previous` ends the schedule; the first one too, then the status is TW_INVALID. From then on
 * nothing comes and the argument is free: `next` may free it as it ends the schedule. Where other
 * threads stop the timer or the wheel, it calls tw_timer_stop instead: with TW_REARMED the argument
 * is its own, with any other status it is not, if it goes on. *timer, threads and costs as for
 * tw_after_func.
 *
 * Returns:
 *   TW_OK         the timer is armed
 *   TW_INVALID    no wheel, no function or no next, or a first time that is not later than now
 *   TW_FULL       there is no room, as for tw_set_timer
 *   TW_NO_MEMORY  nothing was armed
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_schedule_func(struct tw_wheel *wheel,
				       tw_duration (*next)(void *argument, tw_duration previous),
				       void (*run)(void *), void *argument, struct tw_timer *timer);

/*
 * Stops the timer, and tells whose the argument is.
 *
 * Returns at once, without asking the owner: of the stop and the run, one wins. Any thread, also in
 * its own run. Don't stop until the status is TW_OK: after TW_RUNNING it never is.
 *
 * A task that tries again, and may be stopped at every moment:
 *
 *     static void try(void *argument)              (in its run, which owns it until it is re-armed)
 *     {
 *             struct request *request = argument;
 *
 *             if (send(request) != 0 &&
 *                 tw_timer_reset(wheel, request->retry, TW_SECOND) == TW_OK)
 *                     return;                      (the next run's, release's, or a stop's)
 *             free(request);
 *     }
 *
 *     if (tw_timer_stop_wait(wheel, retry) == TW_OK)
 *             free(request);                       (any other status: the run frees it, or did)
 *
 * Returns:
 *   TW_OK         it is not running and will not run; the argument is the caller's
 *   TW_RUNNING    the run under way is its last, and owns the argument, unless an earlier stop
 *                 returned TW_REARMED: then that one's caller does
 *   TW_REARMED    it is running, and a further run was taken back: one that tw_timer_reset armed,
 *                 or, of a periodic timer or a schedule, the next. The argument is the caller's
 *                 once the run has ended; in its own run, at its end
 *   TW_NOT_FOUND  it is done, or was stopped or drained before
 *   TW_INVALID    no wheel
 *   TW_CLOSED     the wheel was stopped: pending timers' arguments go to release
 */
TW_API enum tw_status tw_timer_stop(struct tw_wheel *wheel, struct tw_timer timer);

/*
 * Stops the timer as tw_timer_stop does, and on return it is not running any more, so TW_REARMED
 * becomes TW_OK.
 *
 * Any thread, but not in the timer's own run.
 *
 * Returns:
 *   TW_OK         it will not run; the argument is the caller's
 *   TW_RUNNING    the run that was under way was its last, and has ended; the argument was that
 *                 run's, as with tw_timer_stop
 *   TW_NOT_FOUND  it is done, or was stopped or drained before
 *   TW_INVALID    no wheel, or called in the timer's own run
 *   TW_CLOSED     the wheel was stopped; this doesn't wait: after tw_stop tw_wait_idle does
 */
TW_API enum tw_status tw_timer_stop_wait(struct tw_wheel *wheel, struct tw_timer timer);

/*
 * Gives the timer a new deadline, `delay` from now: it will not run at the old one.
 *
 * While it runs: arms the next run, after this one; the argument is no longer this run's. Of a
 * periodic timer: moves its next run, and later ones count from there; a schedule that `next` is
 * just ending has none. Any thread.
 *
 * Returns:
 *   TW_OK         accepted, which undoes no tw_drain that came before: the timer is still drained
 *   TW_NOT_FOUND  it is done, stopped or drained
 *   TW_INVALID    no wheel
 *   TW_FULL       there is no room for the command and when_full says not to wait; nothing has
 *                 changed
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_timer_reset(struct tw_wheel *wheel, struct tw_timer timer,
				     tw_duration delay);

/*
 * Tells how long it is until the timer's deadline, once the commands accepted before have been
 * applied.
 *
 * Waits for the owner's answer as tw_contains does. On TW_OK *remaining (may be NULL) is the time
 * to the deadline, 0 where it is due, TW_FOREVER where it never will be; else it is as before. Any
 * thread.
 *
 * Returns:
 *   TW_OK         it is pending
 *   TW_RUNNING    a run is under way
 *   TW_NOT_FOUND  it is done, or was stopped or drained
 *   TW_INVALID    no wheel
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_timer_remaining(struct tw_wheel *wheel, struct tw_timer timer,
					 tw_duration *remaining);

/*
 * Stops each timer as tw_timer_stop does, in order, at a lower price a piece: their memory is
 * fetched ahead, where single calls wait for each.
 *
 * statuses[i] (`statuses` may be NULL) becomes what tw_timer_stop returns for timers[i]; of a timer
 * that is there twice, the second is TW_NOT_FOUND or TW_RUNNING. *stopped (may be NULL) tells how
 * many are TW_OK. Any thread.
 *
 * Returns:
 *   TW_OK         each was asked for, whatever their own statuses
 *   TW_INVALID    no wheel, or no timers and n > 0; each has this status
 *   TW_CLOSED     the wheel was stopped before or meanwhile: those not asked for yet have this
 *                 status
 */
TW_API enum tw_status tw_timers_stop(struct tw_wheel *wheel, const struct tw_timer *timers,
				     size_t n, enum tw_status *statuses, size_t *stopped);

/* One of many timers to reset. */
struct tw_reset {
	struct tw_timer timer;
	tw_duration delay;
};

/*
 * Resets each timer as tw_timer_reset does, in order, at a lower price a piece; the clock is read
 * once for some 32 of them.
 *
 * statuses[i] (`statuses` may be NULL) becomes what tw_timer_reset returns for resets[i]. *accepted
 * (may be NULL) tells how many are TW_OK. Any thread.
 *
 * Returns:
 *   TW_OK         each was asked for, whatever their own statuses
 *   TW_INVALID    no wheel, or no resets and n > 0; each has this status
 *   TW_FULL       there is no room for one, and when_full says not to wait: it and those after it
 *                 have this status, and nothing of them has changed
 *   TW_CLOSED     the wheel was stopped before or meanwhile: those not asked for yet have this
 *                 status
 */
TW_API enum tw_status tw_timers_reset(struct tw_wheel *wheel, const struct tw_reset *resets,
				      size_t n, enum tw_status *statuses, size_t *accepted);

/*
 * Alarms: timers that are made once, for a struct of the program's own that needs one as long as it
 * lives (a connection, a session, a cache). Setting and stopping them needs no memory and no room
 * in the queue, and is never refused before the wheel is stopped. An alarm counts in no max_pending
 * and not in tw_pending; no drain and no release gets it, so its argument is always the program's
 * (a drain may make it late by as long as its timers take to be handed over). It is set on the
 * spot, in no order with commands. Runs of one alarm never overlap. One lies in about 90 bytes.
 */
struct tw_alarm;

/*
 * Makes an alarm that calls run(argument) on the pool each time that it was set and has come due.
 *
 * It is not set yet. *alarm is valid until tw_alarm_destroy, which must come before tw_destroy of
 * its wheel. Except on TW_OK *alarm is NULL. Any thread.
 *
 * Returns:
 *   TW_OK         *alarm is the caller's
 *   TW_INVALID    no wheel, no function, or nowhere to put it
 *   TW_NO_MEMORY  nothing was made
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_alarm_create(struct tw_wheel *wheel, void (*run)(void *), void *argument,
				      struct tw_alarm **alarm);

/*
 * Runs the alarm once, `delay` from now, instead of when it was set to before.
 *
 * A delay ≤ 0 runs it now, one under an interval counts as one interval, one too large for the
 * clock never ends. While it runs: arms the next run, after this one. Any thread, also in its own
 * run; costs a clock read and one atomic exchange where the alarm moves later, else a place in a
 * list and, if the owner sleeps, a system call.
 *
 * Returns:
 *   TW_OK         it is set
 *   TW_INVALID    no alarm
 *   TW_CLOSED     the wheel was stopped, or the alarm is being destroyed
 */
TW_API enum tw_status tw_alarm_set(struct tw_alarm *alarm, tw_duration delay);

/*
 * Sets the alarm as tw_alarm_set does, with a deadline on the wheel's clock (tw_now). A past one
 * runs now.
 *
 * Returns:
 *   TW_OK         it is set
 *   TW_INVALID    no alarm
 *   TW_CLOSED     the wheel was stopped, or the alarm is being destroyed
 */
TW_API enum tw_status tw_alarm_set_at(struct tw_alarm *alarm, tw_duration deadline);

/*
 * Takes back the run that is to come; the alarm may be set again.
 *
 * Returns at once: of the stop and the run, one wins. Any thread, also in its own run.
 *
 * Returns:
 *   TW_OK         it was set, is not running and will not run
 *   TW_REARMED    it was set, and a run before that is under way
 *   TW_RUNNING    it was not set, and a run is under way
 *   TW_NOT_FOUND  it was not set
 *   TW_INVALID    no alarm
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_alarm_stop(struct tw_alarm *alarm);

/*
 * Stops the alarm, waits for its run if one is under way, and frees it: on return it runs no more.
 *
 * Its own run may call it too: then without waiting, and the alarm is gone when the run returns.
 * The last call with the alarm: no other may be under way or follow. Fine after tw_stop, and for
 * NULL. In a fork's child it does nothing. Any thread.
 */
TW_API void tw_alarm_destroy(struct tw_alarm *alarm);

/* One of many timers to set. */
struct tw_set {
	const void *key;
	size_t key_size;
	void *value;
	tw_duration delay;
};

/*
 * Sets a timer for each item as tw_set_timer does, in order, at a lower price a piece.
 *
 * Stops at the first that fails; *accepted (may be NULL) tells how many the wheel owns.
 *
 * Returns:
 *   TW_OK         the wheel owns all values
 *   TW_INVALID    no wheel, no items and n > 0, or an item as tw_set_timer would not have it
 *   TW_FULL       there is no room for an item, as for tw_set_timer
 *   TW_NO_MEMORY  no memory for an item
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_set_timers(struct tw_wheel *wheel, const struct tw_set *items, size_t n,
				    size_t *accepted);

/* One of many timers to move. */
struct tw_move {
	const void *key;
	size_t key_size;
	tw_duration delay;
};

/*
 * Moves a timer for each item as tw_move_timer does, in order, at a lower price a piece.
 *
 * Stops at the first that fails; *accepted (may be NULL) tells how many commands went in.
 *
 * Returns:
 *   TW_OK         all commands were accepted
 *   TW_INVALID    no wheel, no items and n > 0, or an item as tw_move_timer would not have it
 *   TW_FULL       there is no room for a command
 *   TW_NO_MEMORY  only for keys over 24 bytes
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_move_timers(struct tw_wheel *wheel, const struct tw_move *items, size_t n,
				     size_t *accepted);

/* The key of one of many timers. */
struct tw_key {
	const void *key;
	size_t key_size;
};

/*
 * Removes the timer of each key as tw_remove_timer does, in order, at a lower price a piece.
 *
 * Stops at the first that fails; *accepted (may be NULL) tells how many commands went in.
 *
 * Returns:
 *   TW_OK         all commands were accepted
 *   TW_INVALID    no wheel, no keys and n > 0, or a bad key
 *   TW_FULL       there is no room for a command
 *   TW_NO_MEMORY  only for keys over 24 bytes
 *   TW_CLOSED     the wheel was stopped
 */
TW_API enum tw_status tw_remove_timers(struct tw_wheel *wheel, const struct tw_key *keys, size_t n,
				       size_t *accepted);

/*
 * How long `count` things took, in nanoseconds: half of them no longer than p50, 90 of 100 no
 * longer than p90, 99 of 100 no longer than p99, each to within 1 in 32; `max` is exact. All 0
 * where count is.
 */
struct tw_percentiles {
	tw_duration p50;
	tw_duration p90;
	tw_duration p99;
	tw_duration max;
	uint64_t count;
};

/* Takes text that a call writes bit by bit; `text` is valid in the call. What goes wrong there is
 * for the context to remember. */
typedef void tw_write_fn(void *context, const char *text, size_t size);

/* Longest prefix of the names that tw_write_metrics and tw_cache_write_metrics write. */
#define TW_METRICS_PREFIX_MAX 64

/*
 * Counts since tw_create and states at the moment; read without stopping anyone, so what is read
 * later may know of more. After tw_wait_idle they agree.
 */
struct tw_stats {
	uint64_t set;      /* timers armed under a new key */
	uint64_t replaced; /* values replaced under an existing key */
	uint64_t moved;    /* moves that found their key */
	uint64_t removed; /* removes that found their key; timers stopped by handle while pending */
	uint64_t fired; /* timers handed over to run, and not stopped or reset before they began */
	uint64_t drained; /* timers handed to drain functions */
	uint64_t stopped; /* timers still pending, or tasks not begun, when the wheel was stopped */
	uint64_t refused; /* calls answered TW_FULL */
	uint64_t pending; /* as tw_pending */
	uint64_t queued;  /* commands in the queue */
	uint64_t unfinished; /* tasks, releases and drain calls in the pool, not finished */
	uint64_t turns;      /* turns of the owner's loop */
	uint64_t wakeups;    /* times the owner woke, by a command, a deadline or a nap's end */
	uint64_t full_waits; /* times a caller slept because the queue was full */
	/* The owner's longest turn, inline tasks left out: processor time of its thread, which is
	 * the work there was; and by the clock, which counts what other threads had meanwhile. */
	tw_duration longest_turn;
	tw_duration longest_turn_wall;
	/* Calls of release, by their reason; none where there is no such function. */
	uint64_t released_replaced;
	uint64_t released_removed;
	uint64_t released_stopped;
	uint64_t running; /* tasks, releases and drain functions that are being called right now */
	/* Of the tasks begun, runs of alarms too: as tw_task.lateness, on the wheel's clock. */
	struct tw_percentiles lateness;
	/* Of the tasks ended: real time, on a manual clock too. */
	struct tw_percentiles task_duration;
	uint64_t workers;             /* threads that run tasks, now */
	uint64_t workers_most;        /* the most there were at a time */
	uint64_t workers_not_started; /* times one more could not be started; it is tried again */
	uint64_t held_back; /* turns in which timers were due that max_unfinished held back */
	/* Bytes of memory for timers, their index and the queue, as far as the wheel knows: that it
	 * has from the system now; of these, that timers use; that it had at most. What malloc has
	 * is not counted: timers with keys over 912 bytes, schedules of periodic ones. */
	uint64_t memory;
	uint64_t memory_in_use;
	uint64_t memory_peak;
	/* Real time for which the oldest command in the queue has waited, at most: since a turn of
	 * the owner's loop that left none before it, or since the owner was woken; where callers
	 * drive the wheel, since the last turn. 0: there is none. */
	tw_duration queue_age;
};

/*
 * Fills in the wheel's statistics.
 *
 * Also after tw_stop. Any thread. Costs the reading of 11 KiB for each worker, and 12 KiB of stack.
 *
 * Returns:
 *   TW_OK         *stats is filled
 *   TW_INVALID    no wheel or nothing to fill
 *   TW_CLOSED     in a fork's child
 */
TW_API enum tw_status tw_get_stats(struct tw_wheel *wheel, struct tw_stats *stats);

/*
 * Writes the statistics in the text format of Prometheus, with a HELP and a TYPE line for each
 * metric.
 *
 * write(context, text, size) is called once for each 4 KiB or less, with whole lines. Names begin
 * with `prefix` and _ (NULL: "tw_wheel"); counts end with _total, times are in seconds. The times
 * of tasks are summaries, by the percentiles of tw_stats, without a sum. Of several wheels each
 * needs a prefix of its own. Also after tw_stop. Any thread; costs what tw_get_stats does, and some
 * 6 KiB more of stack.
 *
 * Returns:
 *   TW_OK         it is written
 *   TW_INVALID    no wheel, no write, or a prefix that is empty, over TW_METRICS_PREFIX_MAX bytes,
 *                 or not one of letters, digits, _ and : without a digit first
 *   TW_CLOSED     in a fork's child
 */
TW_API enum tw_status tw_write_metrics(struct tw_wheel *wheel, tw_write_fn *write, void *context,
				       const char *prefix);

#ifdef __cplusplus
}
#endif

#endif
