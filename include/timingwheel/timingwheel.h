/* SPDX-License-Identifier: MIT */
/*
 * timingwheel: runs millions of delayed tasks, which any thread may set and move.
 *
 *     struct tw_wheel *wheel;
 *     if (tw_create(&wheel, TW_MILLISECOND, 512, on_expiry, NULL) != TW_OK)
 *             return;
 *     if (tw_set_timer(wheel, "session:42", 10, session, 30 * TW_SECOND) != TW_OK)
 *             free(session);
 *     tw_move_timer(wheel, "session:42", 10, 30 * TW_SECOND);    (it was used: start over)
 *     tw_remove_timer(wheel, "session:42", 10);
 *     tw_destroy(wheel);
 *
 * One owner thread keeps the timers, and a pool of workers runs the tasks. With TW_DRIVE_CALLER
 * there is no owner thread: callers drive the wheel. With TW_WORKERS_INLINE there are no workers:
 * tasks run where the wheel is driven.
 *
 * The wheel guarantees:
 *  - Every value that it accepts comes back exactly once: to `execute` (the timer expired), to the
 *    function given to tw_drain, to the caller of tw_take_timer or of a stop by handle, or to
 *    `release` with the reason. A call that fails leaves the value with its caller.
 *  - A timer runs late, never early. Its deadline counts from the call and is rounded up to a tick
 *    of `interval`. The timer runs within one tick of the deadline, plus the time that the commands
 *    before it and the tasks before it in the pool take. One exception: a move to less than one
 *    interval runs the task at once.
 *  - The commands of one thread take effect in the order in which the thread gave them. Resets and
 *    stops by handle, and calls for alarms, take effect at once: they do not wait for commands
 *    before them. A drain, a stop of the wheel and a call that waits for an answer see all calls
 *    that the same thread made before them.
 *
 * These rules hold for every call:
 *  - Any thread may make it, at any time, also in a task. tw_destroy is the last call on a wheel.
 *  - It returns TW_INVALID if the wheel, the alarm or a function is NULL, if a pointer through
 *    which it returns something is NULL (unless it "may be NULL"), or if a key is NULL, empty or
 *    longer than TW_KEY_SIZE_MAX. It returns TW_CLOSED after tw_stop or tw_destroy, unless its
 *    comment says otherwise. The lists of statuses do not repeat these reasons.
 *  - With any status but TW_OK nothing has changed, unless its comment says otherwise.
 *  - In a child made by fork() without exec(), it returns TW_CLOSED on a wheel of the parent. The
 *    child may make wheels of its own. If a task, release or drain function forks and returns in
 *    the child, its thread ends there.
 *  - It is no cancellation point, and not async-signal-safe: a signal handler may not make it.
 *
 * These rules hold for functions of the program that the wheel calls (execute, release, a run,
 * next, closed, visit, and the function of a drain):
 *  - The function returns. An exception, pthread_exit or a cancellation that leaves it ends the
 *    process by abort, after a message on stderr that names the wheel; or by std::terminate if no
 *    function of the thread catches the exception, as in the wheel's threads. A longjmp out of it
 *    is not allowed, and nothing detects it. In timingwheel.hpp a function may throw.
 *  - It may call the wheel. A call that would wait for the function itself returns TW_INVALID.
 *  - One that never returns holds up its worker, tw_wait_idle and tw_destroy. With
 *    TW_WORKERS_INLINE it holds up all timers and each call that waits for the owner, but no set,
 *    move or stop.
 *  - If runs of two wheels wait for each other, both hang, as two threads in pthread_join do.
 *
 * Threads. A thread of the wheel that runs tasks has the signal mask of the caller of tw_create,
 * except that SIGSEGV and similar signals and SIGPROF are never blocked, and that caller's
 * processor set and scheduling policy; children that a task starts inherit them. The wheel's other
 * threads run no code of the program. Where callers run the tasks, their threads are not changed.
 *
 * A struct that a call reads or fills ends in reserved fields for later versions. In one that the
 * program fills they must be 0, else the call returns TW_INVALID; the library fills them with 0.
 * Structs passed to functions of the program, such as tw_task, may have more fields later.
 */
#ifndef TIMINGWHEEL_TIMINGWHEEL_H
#define TIMINGWHEEL_TIMINGWHEEL_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX < UINT64_MAX
#error "timingwheel needs a 64-bit processor"
#endif

#define TW_VERSION_MAJOR 1
#define TW_VERSION_MINOR 0
#define TW_VERSION_PATCH 0
/* The version as one number, for comparisons: 10203 is 1.2.3. */
#define TW_VERSION (TW_VERSION_MAJOR * 10000 + TW_VERSION_MINOR * 100 + TW_VERSION_PATCH)
#define TW_VERSION_STRING "1.0.0"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These macros let gcc and clang warn of a mistake in a call. Arguments are given by their numbers.
 *
 *     TW_CHECKED          the result must be used: it decides whether the caller owns a value or a
 *                         handle, or is the only effect of the call
 *     TW_READS(from, n)   the call reads argument `from`, which has the length of argument n
 *     TW_FILLS(to, n)     the call writes argument `to`, which has the length of argument n
 *     TW_NONNULL(n)       argument n must not be NULL
 */
#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#define TW_CHECKED __attribute__((warn_unused_result))
#define TW_NONNULL(argument) __attribute__((nonnull(argument)))
#else
#define TW_API
#define TW_CHECKED
#define TW_NONNULL(argument)
#endif
#if defined(__GNUC__) && __GNUC__ >= 10
#define TW_READS(from, size) __attribute__((access(read_only, from, size)))
#define TW_FILLS(to, size) __attribute__((access(write_only, to, size)))
#else
#define TW_READS(from, size)
#define TW_FILLS(to, size)
#endif

/* A length of time, or a point on the wheel's clock (tw_now), in nanoseconds. */
typedef int64_t tw_duration;

#define TW_NANOSECOND ((tw_duration)1)
#define TW_MICROSECOND (1000 * TW_NANOSECOND)
#define TW_MILLISECOND (1000 * TW_MICROSECOND)
#define TW_SECOND (1000 * TW_MILLISECOND)
#define TW_MINUTE (60 * TW_SECOND)
#define TW_HOUR (60 * TW_MINUTE)
/* A delay that never ends, or a deadline that never comes. */
#define TW_FOREVER ((tw_duration)INT64_MAX)

/* The largest and smallest numbers that calls take, and the size of a field. */
#define TW_KEY_SIZE_MAX 65535                   /* bytes of a key */
#define TW_SLOTS_MAX ((size_t)1 << 20)          /* slots of a wheel */
#define TW_QUEUE_CAPACITY_MAX ((size_t)1 << 26) /* tw_options.queue_capacity */
#define TW_WORKERS_MAX 1024                     /* workers and max_workers of tw_options */
#define TW_STACK_SIZE_MIN ((size_t)128 << 10)   /* tw_options.stack_size */
#define TW_METRICS_PREFIX_MAX 64                /* bytes of a prefix of metric names */
#define TW_RUNNING_KEY_SIZE 24                  /* bytes of a key in struct tw_running */

/* A value of tw_options.workers: the wheel calls all functions where it is driven. */
#define TW_WORKERS_INLINE (-1)

/* The statuses that calls return: X(name, text). */
#define TW_STATUS_LIST(X)                                                    \
	X(TW_OK, "done")                                                     \
	X(TW_INVALID, "invalid argument, or the call would wait for itself") \
	X(TW_CLOSED, "it is stopped or being destroyed")                     \
	X(TW_FULL, "a limit is reached")                                     \
	X(TW_NO_MEMORY, "out of memory")                                     \
	X(TW_NOT_FOUND, "no such timer or key")                              \
	X(TW_RUNNING, "the task is running")                                 \
	X(TW_REARMED, "the task is running; its next run was cancelled")     \
	X(TW_EXISTS, "it already exists")                                    \
	X(TW_SYSTEM, "a system call failed; errno has the cause")            \
	X(TW_TRUNCATED, "the value is larger than the buffer")               \
	X(TW_TIMED_OUT, "the wait timed out")                                \
	X(TW_LOAD_FAILED, "the loader supplied no value")                    \
	X(TW_STALE, "the load failed; the value has expired")

/* The statuses that calls return. */
enum tw_status {
#define TW_STATUS_NAME(name, text) name,
	TW_STATUS_LIST(TW_STATUS_NAME)
#undef TW_STATUS_NAME
	/* This is no status. It makes room in the enum for the statuses of redis.h. */
	TW_STATUS_MAX = 255
};

/* Return the name of `status`, such as "TW_OK", and a description of it for a log line, as static
 * strings; "TW_UNKNOWN" and "unknown status" for other numbers. */
TW_API const char *tw_status_name(enum tw_status status);
TW_API const char *tw_status_text(enum tw_status status);

/* Returns the version of the library that the program is running with, as a number like TW_VERSION,
 * which is the version of the header that the program was compiled with. */
TW_API int tw_version(void);

struct tw_wheel;

/* Identifies a timer set without a key, by tw_after_func, tw_every or tw_schedule_func. */
struct tw_timer {
	uint64_t id; /* 0 means no timer */
};

/* Describes a timer to a task, release or drain function. It is valid during that call. */
struct tw_task {
	const void *key; /* the wheel's copy; NULL for a handle or an alarm */
	size_t key_size; /* bytes */
	void *value;     /* the value as given; the called function owns it */
	/* The deadline on the wheel's clock: the time of the call plus the delay. A set's delay
	 * under one interval counts as one interval. The deadline is not rounded to a tick. */
	tw_duration deadline;
	/* The time now minus the deadline, at least 0. It is 0 when a move to less than one
	 * interval runs the task before its deadline. */
	tw_duration lateness;
	struct tw_timer timer;       /* the handle; id 0 for a key or an alarm */
	void (*run)(void *argument); /* the function, if there is no key; value is its argument */
	struct tw_wheel *wheel;      /* the wheel that calls */
};

/* Runs an expired task. Called on a worker, or where the wheel is driven (TW_WORKERS_INLINE). */
typedef void tw_execute_fn(void *context, const struct tw_task *task);

/* Says why a value comes back although its task did not run. */
enum tw_reason {
	TW_REPLACED, /* tw_set_timer on an existing key; this is the old value */
	TW_REMOVED,  /* tw_remove_timer */
	TW_STOPPED   /* tw_stop or tw_destroy came before the run */
};

/* Takes back a value whose task will not run. Called on a worker, or where the wheel is driven. */
typedef void tw_release_fn(void *context, const struct tw_task *task, enum tw_reason reason);

/* Says how a wheel keeps its timers. */
enum tw_layout {
	/* A hierarchy of levels of `slots` slots each; the number is rounded up to a power of two
	 * and limited to 65,536, and changes only the costs. */
	TW_LAYOUT_LEVELS,
	/* It is the same by the name of go-zero's layout, one wheel in which a timer waits for its
	 * round. The timers run at the same ticks. */
	TW_LAYOUT_ROUNDS
};

/* Says which clock a wheel uses. */
enum tw_clock {
	TW_CLOCK_MONOTONIC, /* stops while the machine is suspended */
	/* Runs on while the machine is suspended; Linux only. A wheel with this clock owns a
	 * descriptor, which the program must not close. */
	TW_CLOCK_BOOTTIME,
	TW_CLOCK_MANUAL /* starts at 0; only tw_advance moves it; for tests */
};

/* Says which thread drives a wheel. */
enum tw_drive {
	/* An owner thread drives the wheel. */
	TW_DRIVE_THREAD,
	/* The callers drive the wheel. With TW_WORKERS_INLINE, tasks, releases, closes and drain
	 * calls run only in tw_poll, tw_poll_some, tw_advance, tw_wait_idle, tw_wait_idle_until,
	 * tw_stop and tw_destroy, in one thread at a time; what a task sets for now waits for the
	 * next poll. Every other call may apply commands, also to make room in a full queue. A
	 * command of another thread wakes a thread that waits on tw_fd, but not one that sleeps for
	 * the time that tw_poll returned. */
	TW_DRIVE_CALLER
};

/* Says what a command does if the queue is full. */
enum tw_when_full {
	TW_WHEN_FULL_WAIT, /* the call waits for its turn and for room */
	TW_WHEN_FULL_FAIL  /* the call returns TW_FULL */
};

/* Holds the options of tw_create. A zeroed struct has all the defaults. */
struct tw_options {
	void *context;          /* passed to execute, release and the options' functions */
	tw_release_fn *release; /* for values whose tasks will not run; may be NULL */
	enum tw_layout layout;  /* how timers are kept */
	enum tw_clock clock;    /* where the time is read */
	enum tw_drive drive;    /* which thread does the owner's work */
	int workers;            /* threads that run tasks; default 2; see max_workers */
	/* The number of commands that can wait for the owner. Each takes 64 bytes once the queue
	 * has been that long, until tw_destroy: 512 KiB in the default, 8 MiB with 131,072. */
	size_t queue_capacity;       /* commands, rounded up to a power of two; default 8192 */
	enum tw_when_full when_full; /* for the queue */
	/*
	 * The largest number of values and arguments that the wheel may owe. 0, the default, means
	 * no limit. A set takes a place, which comes back with the value: when the run, release or
	 * drain function that got it has returned, or with tw_take_timer or the stop that gave it
	 * to the caller. So the limit bounds the pending timers and the pool's backlog together. A
	 * timer by handle that repeats or is re-armed keeps its place until it is done. At the
	 * limit each set returns TW_FULL at once, also if its key has a timer.
	 */
	size_t max_pending;
	/* The prefix of thread names, default "tw". Threads are named NAME-owner, NAME-0, NAME-1
	 * and so on, and NAME-watch if workers may be added. A whole name has at most 15 bytes:
	 * NAME is cut to 9 bytes for NAME-owner and NAME-watch. */
	const char *name;
	/*
	 * The largest number of workers, at most TW_WORKERS_MAX. The default is 64, or `workers` if
	 * that is more. It must be at least `workers`, and 0 with TW_WORKERS_INLINE. When all
	 * workers have been busy while tasks waited for patience_for_worker (nanoseconds, ≥ 0;
	 * default 5 ms), another worker starts if fewer workers compute than there are processors:
	 * so tasks that block get more workers, and tasks that compute do not. Processors are those
	 * that the affinity mask and the control group's quota allow. Behind tasks that compute for
	 * a second or longer, up to two more workers start.
	 * An added worker ends after 10 s without work.
	 */
	int max_workers;
	tw_duration patience_for_worker;
	/* The stack size of each thread, in bytes, at least TW_STACK_SIZE_MIN. 0, the default, is
	 * the system's default, often 8 MiB of address space. */
	size_t stack_size;
	/*
	 * Functions that prepare threads, or NULL: they attach a thread to a runtime, or set its
	 * processors, signal mask or locale. Each thread of the wheel that may run the program's
	 * functions calls on_thread_start before its first task, and on_thread_end after its last,
	 * with tw_options.context and the thread's name, such as "tw-0". They must return, and must
	 * not make calls on the wheel.
	 */
	void (*on_thread_start)(void *context, const char *name);
	void (*on_thread_end)(void *context, const char *name);
	uint64_t reserved[4]; /* must be 0 */
};

/*
 * Makes a wheel and starts its threads.
 *
 * The tick is `interval` nanoseconds. Each level of the wheel has `slots` slots. `execute`
 * runs each expired task that has a key. `execute` may be NULL if the program sets timers
 * by handle only; a set by key then returns TW_INVALID. `options` is copied and may be NULL, for
 * the defaults. *wheel is NULL unless the status is TW_OK.
 *
 * Returns:
 *   TW_OK         the caller owns *wheel, until tw_destroy
 *   TW_INVALID    interval ≤ 0, slots is 0 or over TW_SLOTS_MAX, or an option is out of range
 *   TW_NO_MEMORY  nothing was made
 *   TW_SYSTEM     a thread could not be started, the system has no such clock, or no descriptor
 *                 is left for TW_CLOCK_BOOTTIME; errno has the cause
 */
TW_CHECKED
TW_API enum tw_status tw_create(struct tw_wheel **wheel, tw_duration interval, size_t slots,
				tw_execute_fn *execute, const struct tw_options *options);

/*
 * Stops the wheel for good: the values of all tasks not begun go to release (TW_STOPPED).
 *
 * These are tasks of pending timers, and tasks handed to the pool but not begun. The call does not
 * wait for running tasks. If a thread is driving the wheel, it or the next call that drives gives
 * the values back. After tw_stop and then tw_wait_idle no task runs or will run.
 *
 * Returns:
 *   TW_OK      this call stopped the wheel
 *   TW_CLOSED  the wheel was stopped before
 */
TW_API enum tw_status tw_stop(struct tw_wheel *wheel);

/*
 * Stops the wheel, waits for running tasks, releases and drain functions, and frees everything.
 *
 * `wheel` may be NULL. This must be the last call on the wheel: no other call may be under way or
 * follow, except in the tasks, releases and drain functions that it waits for, and in destructors
 * of thread-specific data of the wheel's threads. Their calls return TW_CLOSED or TW_INVALID.
 *
 * Returns:
 *   TW_OK       the wheel is gone, or `wheel` is NULL
 *   TW_INVALID  called in a task, release or drain function of the wheel, or in a destructor of
 *               thread-specific data in one of its threads; nothing has changed. Such a function
 *               can call tw_stop, and leave tw_destroy to another thread
 */
TW_API enum tw_status tw_destroy(struct tw_wheel *wheel);

/*
 * Arms a timer for the key, or replaces it: `execute` gets `value` after `delay` nanoseconds.
 *
 * The key is copied. A delay under one interval counts as one interval; one that is too large for
 * the clock never ends. If the key has a timer, the timer gets the new value and deadline, and the
 * old value goes to release (TW_REPLACED). A key is free again as soon as its task is handed to the
 * pool. With any status but TW_OK the value is still the caller's.
 *
 * The call costs a clock read, a hash and one place in the queue, and a system call only if the
 * owner sleeps or the queue is full. A command may wait 50 µs for an owner that was just busy.
 *
 * Returns:
 *   TW_OK         the wheel owns the value
 *   TW_INVALID    delay ≤ 0, or a wheel without execute
 *   TW_FULL       max_pending is reached, or the queue is full (see tw_options.when_full)
 *   TW_NO_MEMORY  nothing has changed
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_set_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
				   void *value, tw_duration delay);

/*
 * Arms a timer as tw_set_timer does, but only if the key has none.
 *
 * The call waits until the owner has applied the commands before it and has answered. In an inline
 * task the commands are applied inside the call.
 *
 * Returns: as tw_set_timer, but TW_FULL only at max_pending; and TW_EXISTS if the key has a timer,
 * which is unchanged
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_add_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
				   void *value, tw_duration delay);

/*
 * Gives the key's timer a new deadline, `delay` nanoseconds from now.
 *
 * It may be sooner or later than the old one. With a delay under one interval the timer leaves the
 * wheel and runs now, once. If the key has no timer, nothing happens. Costs no more than a set.
 *
 * Returns:
 *   TW_OK         the command was accepted
 *   TW_INVALID    delay ≤ 0
 *   TW_FULL       there is no room in the queue
 *   TW_NO_MEMORY  only for keys over 24 bytes
 */
TW_READS(2, 3)
TW_API enum tw_status tw_move_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
				    tw_duration delay);

/*
 * Removes the key's timer: it will not run, and its value goes to release (TW_REMOVED).
 *
 * If the key has no timer, nothing happens. A task that was handed to the pool before still runs,
 * maybe long after TW_OK: the program must keep what the task uses. The same holds after
 * tw_move_timer and tw_set_timer. In contrast, a stop by handle or of an alarm reaches a task until
 * it begins, and its status says whether it did.
 *
 * Returns: as tw_move_timer
 */
TW_READS(2, 3)
TW_API enum tw_status tw_remove_timer(struct tw_wheel *wheel, const void *key, size_t key_size);

/*
 * Removes the key's timer and returns its value to the caller in *value.
 *
 * The task will not run, and release is not called. The call waits as tw_add_timer does.
 *
 * Returns:
 *   TW_OK         *value is the value that the wheel was given; the caller owns it
 *   TW_NOT_FOUND  the key has no pending timer; *value is unchanged
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_take_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
				    void **value);

/*
 * Checks whether the key has a timer after the commands accepted before the call.
 *
 * The call waits as tw_add_timer does. On TW_OK *remaining (may be NULL) is
 * the time to the deadline in nanoseconds: 0 if it is past, TW_FOREVER if it never comes.
 *
 * Returns:
 *   TW_OK         the key has a timer
 *   TW_NOT_FOUND  the key has no timer
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_contains(struct tw_wheel *wheel, const void *key, size_t key_size,
				  tw_duration *remaining);

/*
 * Timers by handle have no key. A handle stays safe to use until tw_destroy: once its timer is
 * done, calls return TW_NOT_FOUND, even if another timer has its memory by then.
 */

/* Says what a periodic timer does about runs that are late by a period or more. */
enum tw_missed {
	TW_MISSED_BURST, /* makes each of them, one after the other */
	TW_MISSED_DELAY, /* makes one; the next is one period after the start of that run */
	TW_MISSED_SKIP   /* makes one; the next is at the next multiple of the period */
};

/*
 * Calls run(argument) once on the pool, `delay` nanoseconds from now.
 *
 * With a delay ≤ 0 it runs now. A delay under one interval is rounded up like any other. *timer
 * (may be NULL) becomes the handle before the run can begin; it is 0 unless the status is TW_OK. If
 * the wheel is stopped first, the argument goes to release (TW_STOPPED); if it is drained first, to
 * the drain function. Both get the handle and `run`. Costs about as much as tw_set_timer.
 *
 * Returns:
 *   TW_OK         the timer is armed
 *   TW_FULL       there is no room, as for tw_set_timer
 *   TW_NO_MEMORY  nothing was armed
 */
TW_CHECKED
TW_API enum tw_status tw_after_func(struct tw_wheel *wheel, tw_duration delay, void (*run)(void *),
				    void *argument, struct tw_timer *timer);

/*
 * Calls run(argument) after `first` and then each `period`, both in nanoseconds.
 *
 * The runs are due at first + n * period, without drift, and never overlap. `missed` says what to
 * do about late runs. With `first` < 0 those that are due by now are late: with -TW_HOUR an hour of
 * them. The timer ends with tw_timer_stop, or as a timer of tw_after_func does. *timer and costs
 * are as for tw_after_func.
 *
 * Returns: as tw_after_func; and TW_INVALID if period ≤ 0, or `missed` is out of range
 */
TW_CHECKED
TW_API enum tw_status tw_every(struct tw_wheel *wheel, tw_duration first, tw_duration period,
			       enum tw_missed missed, void (*run)(void *), void *argument,
			       struct tw_timer *timer);

/*
 * Calls run(argument) at the times that next(argument, previous) returns, on the wheel's clock.
 *
 * `next` is called inside this call, with the time of the call as `previous`. It is called again at
 * the end of each run, as a part of it, with the deadline of that run, unless the run was reset or
 * stopped. A time that is not later than `previous` ends the schedule. After the end nothing is
 * called with the argument, so `next` may free it when it ends the schedule.
 *
 * If other threads may stop the timer or the wheel, `next` must call tw_timer_stop to end the
 * schedule. With TW_REARMED it owns the argument. With any other status it does not own it, and
 * must return a later time. *timer and costs are as for tw_after_func.
 *
 * Returns: as tw_after_func; and TW_NOT_FOUND if the first time is not later than now, so that the
 * schedule has ended
 */
TW_CHECKED
TW_API enum tw_status tw_schedule_func(struct tw_wheel *wheel,
				       tw_duration (*next)(void *argument, tw_duration previous),
				       void (*run)(void *), void *argument, struct tw_timer *timer);

/*
 * Stop the timer, also after tw_stop; the status says whose the argument is.
 *
 * The calls return at once, without asking the owner: either the stop or the run wins. Do not
 * repeat them until they return TW_OK: after TW_RUNNING they never do. tw_timer_take also returns
 * the argument, with TW_OK and TW_REARMED: the holder that stops the timer need not have known it.
 *
 * Returns:
 *   TW_OK         the timer is not running and will not run; the caller owns the argument
 *   TW_RUNNING    the run under way is the last and owns the argument. If an earlier stop returned
 *                 TW_REARMED, the caller of that stop owns it
 *   TW_REARMED    the timer is running, and its next run was cancelled: a run that tw_timer_reset
 *                 armed, or the next run of a periodic timer or a schedule. The caller owns the
 *                 argument when the run has ended; in the timer's own run, at its end
 *   TW_NOT_FOUND  the timer is done, or was stopped or drained before
 *   TW_CLOSED     the same after tw_stop, or release gets the argument
 */
TW_API enum tw_status tw_timer_stop(struct tw_wheel *wheel, struct tw_timer timer);
TW_CHECKED
TW_API enum tw_status tw_timer_take(struct tw_wheel *wheel, struct tw_timer timer, void **argument);

/*
 * Stops the timer as tw_timer_stop does, and waits until it is not running. So TW_REARMED becomes
 * TW_OK, and with TW_RUNNING the last run has ended. In a task, release or drain function of this
 * wheel it does not wait.
 *
 * Returns: as tw_timer_stop
 */
TW_API enum tw_status tw_timer_stop_wait(struct tw_wheel *wheel, struct tw_timer timer);

/*
 * Gives the timer a new deadline, `delay` nanoseconds from now.
 *
 * The timer does not run at the old deadline. With a delay ≤ 0 it runs now. In a run, the call arms
 * another run after it, and the current run no longer owns the argument. For a periodic timer, the
 * next run moves, and later ones count from there. If the `next` of a schedule is just ending it,
 * the reset has no effect. The reset takes effect at once, and needs no memory and no room in the
 * queue. A later deadline costs least: it wakes no thread. A timer that waits in the pool leaves it
 * when its turn comes there; until then it is not pending for tw_pending and tw_drain.
 *
 * Returns:
 *   TW_OK         the timer has the new deadline. If a tw_drain came before, it is still drained
 *   TW_NOT_FOUND  the timer is done, stopped or drained
 */
TW_API enum tw_status tw_timer_reset(struct tw_wheel *wheel, struct tw_timer timer,
				     tw_duration delay);

/*
 * Returns the time until the timer's deadline in *remaining (may be NULL), in nanoseconds: 0 if
 * it is due, TW_FOREVER if it never is. A drained timer is pending until it is handed over.
 *
 * Returns:
 *   TW_OK         the timer is pending
 *   TW_RUNNING    a run is under way
 *   TW_NOT_FOUND  the timer is done, or was stopped or drained
 */
TW_CHECKED
TW_API enum tw_status tw_timer_remaining(struct tw_wheel *wheel, struct tw_timer timer,
					 tw_duration *remaining);

/*
 * An alarm is a timer in a struct of the program that needs one as long as it lives (a connection,
 * a session). Setting and stopping it needs no memory and no room in the queue, and fails only
 * after the wheel is stopped. An alarm does not count for max_pending or tw_pending. The program
 * always owns its argument: drains and release do not touch it. Runs of one alarm never overlap.
 */

/* Holds an alarm. The member is private to the library. */
struct tw_alarm {
	uint64_t tw_private[13];
};

/*
 * Makes an alarm that calls run(argument) on the pool each time that it is set and comes due.
 *
 * The alarm is not set yet. Its memory is the program's, such as a member of a struct. It must stay
 * in place and must not be copied until tw_alarm_destroy returns TW_OK, `closed` of tw_alarm_close
 * is called, or a tw_destroy of the wheel has returned TW_OK.
 *
 *     struct connection {
 *             struct tw_alarm idle;
 *             ...
 *     };
 *
 *     if (tw_alarm_init(wheel, &connection->idle, on_idle, connection) != TW_OK)
 *             return;
 *     tw_alarm_set(&connection->idle, 30 * TW_SECOND);      (again with each packet)
 *     tw_alarm_close(&connection->idle, free);              (frees the connection)
 *
 * Returns:
 *   TW_OK  the alarm is made
 */
TW_CHECKED
TW_API enum tw_status tw_alarm_init(struct tw_wheel *wheel, struct tw_alarm *alarm,
				    void (*run)(void *), void *argument);

/*
 * Set the alarm to run once: `delay` nanoseconds from now, or at `deadline` on the wheel's clock
 * (tw_now). This replaces the time set before.
 *
 * With a delay ≤ 0, or a deadline that is past, it runs now. A delay under one interval counts as
 * one interval. While the alarm runs, the call arms the next run, after this one. A set costs a
 * clock read, and one atomic exchange if the alarm moves later, also if it was stopped meanwhile;
 * otherwise a place in a list and, if the owner sleeps, a system call.
 *
 * Returns:
 *   TW_OK      the alarm is set
 *   TW_CLOSED  the wheel was stopped, or the alarm is being destroyed
 */
TW_API enum tw_status tw_alarm_set(struct tw_alarm *alarm, tw_duration delay);
TW_API enum tw_status tw_alarm_set_at(struct tw_alarm *alarm, tw_duration deadline);

/*
 * Cancels the next run of the alarm, which may be set again.
 *
 * The call returns at once: either the stop or the run wins.
 *
 * Returns:
 *   TW_OK         the alarm was set, is not running and will not run
 *   TW_REARMED    the alarm was set, and an earlier run is under way
 *   TW_RUNNING    the alarm was not set, and a run is under way
 *   TW_NOT_FOUND  the alarm was not set
 */
TW_API enum tw_status tw_alarm_stop(struct tw_alarm *alarm);

/*
 * Stops the alarm, and calls closed(argument) when it is not running and will not run.
 *
 * The call returns at once; a run under way goes on. `closed` is called exactly once, on the pool
 * as a task is, also if the wheel is stopped or destroyed meanwhile (but not for a call made in a
 * destructor of thread-specific data while tw_destroy ends that thread). It may free the argument
 * and the alarm's memory. This must be the last call with the alarm: no other call may be under way
 * or follow, except in the alarm's own run until it returns. It may be made after tw_stop.
 *
 * Returns:
 *   TW_OK      `closed` will be called
 *   TW_CLOSED  another call is closing or destroying the alarm
 */
TW_API enum tw_status tw_alarm_close(struct tw_alarm *alarm, void (*closed)(void *argument));

/*
 * Stops the alarm for good. With TW_OK its memory is the program's again, at once.
 *
 * The call waits for a run under way and, with a pool, until no worker has the alarm. It waits for
 * the owner's answer as tw_add_timer does if the alarm has been set since it was made or ran. In a
 * task of the wheel it does not wait for a run or a worker: with TW_RUNNING the alarm is stopped as
 * by tw_alarm_stop, and not destroyed. Its memory stays the wheel's, until `closed` of a
 * tw_alarm_close is called, which may follow at once, or a later call returns TW_OK. The rules of
 * tw_alarm_close for other calls with the alarm apply. `alarm` may be NULL.
 *
 * Returns:
 *   TW_OK       the alarm does not run and will not run, or alarm is NULL; the memory is free
 *   TW_RUNNING  in a task of the wheel: a run is under way, or a worker has the alarm
 *   TW_CLOSED   another call is closing or destroying the alarm
 */
TW_API enum tw_status tw_alarm_destroy(struct tw_alarm *alarm);

/*
 * Empties the wheel: each pending timer is passed to `each`, once, with `context`.
 *
 * The drain covers the timers pending at its place in the order of commands, but not those already
 * handed to the pool. `each` runs on the worker pool, several calls at a time; tw_wait_idle waits
 * for them. The wheel stays usable, and the keys are free at once, but the next drain, and the
 * commands behind it, wait until the timers of this one are handed over. A timer that is reset
 * after the drain is still passed to `each`; one that is stopped by handle with TW_OK is not.
 *
 * Returns:
 *   TW_OK         the drain was accepted
 *   TW_FULL       with TW_WHEN_FULL_FAIL: the queue is full
 *   TW_NO_MEMORY  nothing was drained
 */
TW_API enum tw_status tw_drain(struct tw_wheel *wheel, tw_execute_fn *each, void *context);

/* Describes a pending timer to a tw_visit_fn. `key` is a copy that is valid during the call. */
struct tw_pending_timer {
	const void *key;             /* NULL for a timer by handle */
	size_t key_size;             /* bytes */
	void *value;                 /* as given; by handle, the argument */
	tw_duration deadline;        /* on the wheel's clock, as in struct tw_task */
	struct tw_timer timer;       /* the handle; id 0 for a timer with a key */
	void (*run)(void *argument); /* by handle, the function */
	tw_duration period;          /* the period of tw_every; 0 without one */
};

/* Visits a pending timer, for tw_each. Returns 0 to end the visits, any other number to go on. */
typedef int tw_visit_fn(void *context, const struct tw_pending_timer *timer);

/*
 * Calls visit(context, timer) for each pending timer, until it returns 0.
 *
 * A timer that is pending throughout is visited once, even if it is moved or its value is replaced
 * meanwhile. A timer that is set or leaves meanwhile is visited once or not at all. No key and no
 * handle is visited twice. Alarms are not visited, nor is a periodic timer while it runs.
 *
 * The owner copies up to 128 timers at a time and does its other work in between. `visit` gets the
 * copies, on the calling thread and without a lock. When it is called, the timer may have run or
 * been removed: it may dereference `value` only if the program keeps the object alive meanwhile.
 * Costs about 200 ns a timer, and 25 KiB of memory (more for long keys).
 *
 * Returns:
 *   TW_OK         all were visited, or `visit` returned 0
 *   TW_NO_MEMORY  not all were visited
 *   TW_CLOSED     not all were visited: the wheel was stopped before or meanwhile
 */
TW_API enum tw_status tw_each(struct tw_wheel *wheel, tw_visit_fn *visit, void *context);

/* Returns the number of timers armed and not yet handed over, after the commands applied so far; 0
 * if there is no wheel. */
TW_API size_t tw_pending(struct tw_wheel *wheel);

/*
 * Drive a TW_DRIVE_CALLER wheel: apply commands, and hand over (or run) the timers that were due
 * when the call began. Timers that become due meanwhile are for the next call, and so are those
 * that a task sets to run now. A call sees to a million changes of alarms and handles at most.
 *
 * tw_poll_some makes at most `most` inline calls of tasks, release and drain functions, which
 * bounds one turn of an event loop: the other due timers run in the next calls, and *until_next
 * becomes 0. With a pool it does as much as tw_poll.
 *
 * On TW_OK *until_next (may be NULL) becomes the time, in nanoseconds, that the caller may sleep: 0
 * if there is more to do now, TW_FOREVER if there is nothing to do before the next command. It may
 * be shorter than the time to the next deadline.
 *
 * Returns:
 *   TW_OK       done; sleep, and call it again
 *   TW_INVALID  a wheel with an owner thread, called from an inline task, or most is 0
 *   TW_CLOSED   the wheel was stopped before or meanwhile
 */
TW_API enum tw_status tw_poll(struct tw_wheel *wheel, tw_duration *until_next);
TW_API enum tw_status tw_poll_some(struct tw_wheel *wheel, size_t most, tw_duration *until_next);

/*
 * Returns a descriptor for an event loop that drives a TW_DRIVE_CALLER wheel.
 *
 * poll() or epoll finds it readable when a command has arrived or a deadline is due. The loop then
 * calls tw_poll, which makes it unreadable again. Call tw_poll after the other events of the same
 * wait: a task may free the objects of these events. In a task, as in a loop that a task runs,
 * tw_poll runs nothing, and makes the descriptor unreadable until the task has returned.
 *
 * The wheel owns the descriptor: do not read or close it. It stays open in a fork's child until
 * exec(), and must be left alone there.
 *
 * Returns: the descriptor, or -1 with errno:
 *   EINVAL   no wheel, a wheel with an owner thread, a stopped wheel, or called from an inline task
 *   ENOTSUP  the system is not Linux
 *   others   no descriptor could be opened
 */
TW_API int tw_fd(struct tw_wheel *wheel);

/*
 * Moves a manual clock forward by `by` nanoseconds, tick by tick.
 *
 * The call applies the commands accepted before it, and returns when all that became due has been
 * handed over. With TW_WORKERS_INLINE the tasks have also run, in the order of deadlines. Of equal
 * deadlines of a kind (by key, by handle, alarms) the one that was set first runs first; a repeated
 * run counts as set before all that the run before it has set. A timer by handle or an alarm that
 * was set again before it ran comes at its tick, in no order with the tick's other timers. What a
 * task sets to run now comes after what is due already. With `by` 0 the call applies commands and
 * runs what is due. The clock ends at TW_FOREVER.
 *
 * Returns:
 *   TW_OK       the clock has moved
 *   TW_INVALID  a clock that is not manual, by < 0, or called from an inline task
 *   TW_CLOSED   the wheel was stopped before or meanwhile
 */
TW_API enum tw_status tw_advance(struct tw_wheel *wheel, tw_duration by);

/*
 * Waits until every command accepted before the call has been applied. It runs no task.
 *
 * Returns:
 *   TW_OK       they have been applied
 *   TW_INVALID  called from an inline task
 */
TW_API enum tw_status tw_flush(struct tw_wheel *wheel);

/*
 * Wait until the wheel is idle: all commands are applied, and all that was due has finished.
 *
 * They wait as tw_flush does. Then they wait for the tasks that are due by then, for the releases
 * and drain calls owed by then, and for the commands that these gave. A call that begins during
 * another one waits also for those that come until that one ends. They work after tw_stop too.
 *
 * tw_wait_idle_until waits no longer than until `deadline` on the wheel's clock (tw_now). On a
 * manual clock it comes when another thread advances the clock that far. Where callers drive the
 * wheel, the call looks at the clock when inline tasks have returned. A program can end in a
 * bounded time, even if a task hangs: after tw_stop and TW_TIMED_OUT it exits without tw_destroy.
 *
 * Returns:
 *   TW_OK         all that has finished
 *   TW_TIMED_OUT  the deadline came first, or had come before the call
 *   TW_INVALID    called from a task, release or drain function of this wheel
 */
TW_API enum tw_status tw_wait_idle(struct tw_wheel *wheel);
TW_API enum tw_status tw_wait_idle_until(struct tw_wheel *wheel, tw_duration deadline);

/* Returns the time on the wheel's clock, in nanoseconds; 0 if there is no wheel. It is that of the
 * system's CLOCK_MONOTONIC or, with TW_CLOCK_BOOTTIME, CLOCK_BOOTTIME. */
TW_API tw_duration tw_now(struct tw_wheel *wheel);

/*
 * Returns the task that the calling thread is running, valid until the function returns; NULL
 * outside a function that the wheel calls.
 *
 * A run(void *) finds its handle and its wheel here. If one inline task makes another run, this is
 * the inner one.
 */
TW_API const struct tw_task *tw_current_task(void);

/* Return the clock, interval and drive of the wheel; TW_CLOCK_MONOTONIC, 0 and TW_DRIVE_THREAD if
 * there is no wheel. */
TW_API enum tw_clock tw_clock_of(const struct tw_wheel *wheel);
TW_API tw_duration tw_interval_of(const struct tw_wheel *wheel);
TW_API enum tw_drive tw_drive_of(const struct tw_wheel *wheel);

/*
 * Summarizes how long `count` events took, in nanoseconds: 50 % took at most p50, 90 % at most p90,
 * 99 % at most p99. Each is within 1 in 32, up to 39 hours; `max` is exact.
 */
struct tw_percentiles {
	tw_duration p50;
	tw_duration p90;
	tw_duration p99;
	tw_duration max;
	uint64_t count;
};

/* Describes a task that is running, in struct tw_stats. */
struct tw_running {
	tw_duration took;              /* so far, in nanoseconds of real time */
	struct tw_timer timer;         /* the handle; id 0 for a key or an alarm */
	size_t key_size;               /* bytes of the whole key; 0 if there is no key */
	char key[TW_RUNNING_KEY_SIZE]; /* the key's first bytes, then 0 */
};

/*
 * Holds a wheel's statistics: counts since tw_create, and current states. No thread is stopped for
 * them, so fields that are read later may include newer events. After tw_wait_idle they agree.
 */
struct tw_stats {
	uint64_t set;        /* timers armed under a new key or by handle */
	uint64_t replaced;   /* values replaced under an existing key */
	uint64_t moved;      /* moves that found their key */
	uint64_t removed;    /* removes and takes that found their key; stops of pending handles */
	uint64_t fired;      /* timers handed over to run, and not stopped or reset before */
	uint64_t drained;    /* timers handed to drain functions */
	uint64_t stopped;    /* timers pending, or tasks not begun, when the wheel was stopped */
	uint64_t refused;    /* calls that returned TW_FULL */
	uint64_t pending;    /* as tw_pending */
	uint64_t unfinished; /* tasks, releases and drain calls in the pool, not finished */
	uint64_t running;    /* tasks, releases and drain functions that are running now */
	uint64_t workers;    /* threads that run tasks, now */
	/* Bytes of memory for timers, their index and the queue, as far as the wheel knows: all
	 * that the wheel has from the system, and the part that timers use. Memory from malloc is
	 * not counted: timers with keys over 920 bytes, and the schedules of periodic timers. */
	uint64_t memory;
	uint64_t memory_in_use;
	struct tw_percentiles lateness;      /* lateness of the tasks begun, as tw_task has it */
	struct tw_percentiles task_duration; /* duration of the tasks ended, in real time */
	/* The task that has been running longest, of those that run now. Alarms are included. All
	 * is 0 if no task runs. */
	struct tw_running longest_running;
	uint64_t reserved[4]; /* 0 */
};

/*
 * Fills in the wheel's statistics.
 *
 * It works after tw_stop too. Costs the reading of 11 KiB for each worker, and 12 KiB of stack.
 *
 * Returns:
 *   TW_OK  *stats is filled
 */
TW_API enum tw_status tw_get_stats(struct tw_wheel *wheel, struct tw_stats *stats);

/* Takes `size` bytes, at `text`, of a longer text. */
typedef void tw_write_fn(void *context, const char *text, size_t size);

/*
 * Writes the statistics in the text format of Prometheus.
 *
 * Each metric has a HELP and a TYPE line. write(context, text, size) is called with whole lines, at
 * most 4 KiB a call. Names begin with `prefix` and _ (NULL means "tw_wheel"), one for each wheel.
 * Names of counts end with _total. Times are in seconds; those of tasks are summaries with the
 * percentiles of tw_stats, without a sum. It works after tw_stop too. Costs as much as
 * tw_get_stats, and about 6 KiB more of stack.
 *
 * Returns:
 *   TW_OK       it is written
 *   TW_INVALID  a prefix that is empty, over TW_METRICS_PREFIX_MAX bytes, or not made of letters,
 *               digits, _ and : without a digit first
 */
TW_API enum tw_status tw_write_metrics(struct tw_wheel *wheel, tw_write_fn *write, void *context,
				       const char *prefix);

#ifdef __cplusplus
}
#endif

#endif
