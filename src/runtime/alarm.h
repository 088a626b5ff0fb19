/* SPDX-License-Identifier: MIT */
/*
 * An alarm is a timer without a key. Any thread sets and stops it by changes of one word, without
 * allocation and without room in the command queue. Its memory is the program's, in a struct
 * tw_alarm, or a handle's (handle.h). alarm.c says which thread may touch what, and when.
 */
#ifndef ALARM_H
#define ALARM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/counter.h"
#include "base/event_count.h"
#include "base/inbox.h"
#include "cron/cron_search.h"
#include "wheel/timer.h"

/* A run, or the function that a close is given. */
typedef void run_fn(void *argument);

/* A schedule is what repeats. */
struct schedule {
	/* Constant once made. */
	run_fn *run;
	tw_duration (*next)(void *argument, tw_duration previous); /* or NULL: period and missed */
	tw_duration period;
	enum tw_missed missed;
	bool has_calendar; /* it has a follower, and neither of those */
	/* The thread that runs it. */
	bool is_look;                    /* the deadline is the follower's, and not a set's */
	struct cron_follower follower[]; /* one, or none */
};

/* 80 bytes. */
struct alarm {
	struct timer timer; /* value: the argument */
	/* In a handle, the word and the deadline lie in one cache line. */
	_Atomic uint64_t word;        /* generation and flags: see alarm.c */
	_Atomic tw_duration deadline; /* by its last set */
	struct inbox_link change;     /* in the inbox of the table */
	union {
		run_fn *function;          /* its run, or what a close is given */
		struct schedule *schedule; /* where the class is TIMER_PERIODIC */
	};
};

/* What a struct tw_alarm has in it. */
struct own_alarm {
	struct alarm alarm;
	struct tw_wheel *wheel; /* constant */
};

_Static_assert(sizeof(struct own_alarm) <= sizeof(struct tw_alarm) &&
		       _Alignof(struct own_alarm) <= _Alignof(struct tw_alarm),
	       "an alarm fits what programs have in their structs");

static inline struct own_alarm *alarm_of(struct tw_alarm *alarm)
{
	return (struct own_alarm *)(void *)alarm;
}

static inline struct alarm *timer_alarm(struct timer *timer)
{
	return list_entry(timer, struct alarm, timer);
}

/* The generation begins at this bit of the word: it is 0 in a program's alarm. */
enum { ALARM_GENERATION_SHIFT = 12, ALARM_CLOSED = 1 << 5 };

static inline uint64_t alarm_generation(uint64_t word)
{
	return word >> ALARM_GENERATION_SHIFT;
}

/* The word of free memory for an alarm, which nobody can set or stop. */
static inline uint64_t alarm_closed_word(uint64_t generation)
{
	return generation << ALARM_GENERATION_SHIFT | ALARM_CLOSED;
}

/*
 * The first inboxes have alarms that were set sooner or closed, or are back from a run, the others
 * handles that were stopped. They are spread by their memory: a link lies in the memory of the one
 * before it, and was last written by another core, so several lists are walked at once. Where the
 * owner runs alarms itself, the first inbox has all that are not stops, in the order in which they
 * came.
 */
enum { ALARM_LISTS = 4, ALARM_SPREAD = 64 - 2, ALARM_INBOXES = 2 * ALARM_LISTS };

/* Knows the alarms that the owner is to see, and the threads that wait for a run. It is zeroed
 * before `is_here` is set and `waiting` is initialized. */
struct alarm_table {
	bool is_here; /* constant: the owner runs alarms itself */
	struct inbox inboxes[ALARM_INBOXES];
	atomic_size_t closing;  /* alarms closed whose functions have not returned */
	struct waiting waiting; /* threads, for a run to end or for the owner's answer */
};

/* ---- Any thread ---- */

/* Makes an alarm in zeroed memory of the program's. It ends by a close or a destroy. */
void alarm_init(struct alarm *alarm, run_fn *run, void *argument);
/* Sets a handle's alarm for the first time. The caller leaves it to the owner, by a command. Its
 * timer's class and value, and its function or schedule, are there. */
void alarm_begin_life(struct alarm *alarm, tw_duration deadline, bool for_now);
/*
 * Sets it to a deadline, which has passed if it is for now. TW_CLOSED: it can't be set any more, or
 * has another generation. *changed says whether the owner is to be woken.
 */
enum tw_status alarm_set(struct alarm_table *table, struct alarm *alarm, uint64_t generation,
			 tw_duration deadline, bool for_now, bool *changed);
enum alarm_state {
	ALARM_IDLE,     /* not set */
	ALARM_IS_FILED, /* set, and the owner's */
	ALARM_IS_AWAY,  /* set, and handed over to run */
	ALARM_RUNS      /* its function is being called */
};
/* Returns the state of a handle's alarm and, of the same moment, generation and deadline. */
enum alarm_state alarm_state(struct alarm *alarm, uint64_t *generation, tw_duration *deadline);
/* Stops it as tw_alarm_stop does. */
enum tw_status alarm_stop(struct alarm *alarm);
/* Stops a handle's for good, as tw_timer_take does; *changed as above. */
enum tw_status alarm_end_life(struct alarm_table *table, struct alarm *alarm, uint64_t generation,
			      void **value, bool *changed);
/*
 * Disarms the alarm for good. When it does not run, closed(argument) is called. *changed says that
 * the owner is to be woken. It is the caller's last touch.
 *
 * Returns:
 *   TW_OK       `closed` will be called
 *   TW_CLOSED   another thread closes or destroys it, or has
 */
enum tw_status alarm_close(struct alarm_table *table, struct alarm *alarm, run_fn *closed,
			   bool *changed);

/* A run is under way while the alarm's word is `running` under the mask. */
struct run {
	struct alarm *alarm;
	uint64_t mask;
	uint64_t running;
};

static inline bool run_is_under_way(const struct run *run)
{
	/* acquire: sees the run; pairs with alarm_unlock(). */
	return (atomic_load_explicit(&run->alarm->word, memory_order_acquire) & run->mask) ==
	       run->running;
}

/* The run of a handle's alarm of that generation. */
struct run alarm_run(struct alarm *alarm, uint64_t generation);
/* What a destroy waits for: the end of the run or, with a pool, that no worker has the alarm. */
struct run alarm_hold(struct alarm *alarm, bool has_pool);
/* Waits until the run has ended. The alarm is disarmed for good. */
void alarm_table_wait(struct alarm_table *table, const struct run *run);
/*
 * Disarms the alarm for good, unless it is held and the caller does not wait. Then the alarm is
 * stopped, and lives on.
 *
 * Returns:
 *   TW_OK       it is disarmed. The caller waits for `hold`, then has the owner take the alarm out
 *               of its lists if alarm_is_known()
 *   TW_RUNNING  it is held
 *   TW_CLOSED   another thread closes or destroys it, or has
 */
enum tw_status alarm_destroy(struct alarm *alarm, const struct run *hold, bool waits);
/* Returns whether the owner may have an alarm that is disarmed for good. */
bool alarm_is_known(const struct alarm *alarm);
/* Returns whether a function that a close was given has still to return. */
bool alarm_table_is_closing(const struct alarm_table *table);

/* ---- Owner ---- */

/* Returns whether ALARM_LISTS inboxes are empty. */
static inline bool alarm_lists_are_empty(const struct inbox *inboxes)
{
	uintptr_t some = 0;

#pragma GCC unroll 4
	for (size_t i = 0; i < ALARM_LISTS; i++)
		some |= inbox_contents(&inboxes[i]);
	return some == 0;
}
/* Returns whether there are none to be seen to, as mostly; the owner's look while it is awake. */
static inline bool alarm_table_is_empty(const struct alarm_table *table)
{
	return alarm_lists_are_empty(table->inboxes) &&
	       alarm_lists_are_empty(table->inboxes + ALARM_LISTS);
}
/* The owner's second look before it sleeps. */
bool alarm_table_has_some(const struct alarm_table *table);
/* Sets a mark for each inbox behind the alarms that are to be seen to now. */
void alarm_table_mark(const struct alarm_table *table, uint64_t *marks);
/* Returns whether all alarms before the marks were taken. */
bool alarm_table_is_past(const struct alarm_table *table, const uint64_t *marks);

/* What is to be done with an alarm that is in no list. */
enum alarm_action {
	ALARM_KEEP, /* nothing; or it is away, or will be taken from the inbox */
	ALARM_FILE, /* it waits for its deadline, which the timer has got */
	ALARM_END   /* it is to be freed, or its close's function is to be called */
};
/* Returns whether the owner has the alarm, in the wheel or on its way there. */
bool alarm_is_filed(const struct alarm *alarm);
/* Returns what is to be done with an alarm just taken from an inbox. *was_filed says whether it had
 * been set, and not handed over since. */
enum alarm_action alarm_apply_change(struct alarm *alarm, bool *was_filed);
/* Leaves the alarm, taken from the inbox, where it is: in the command queue, or stale. */
void alarm_leave(struct alarm *alarm);
/* Lets go of an alarm that is in no list, unless it is set, or on its way to the inbox, from where
 * it is to be taken first. Returns its word. */
uint64_t alarm_let_go(struct alarm *alarm);
/* Returns what is to be done with an alarm that has left the command queue or the wheel, or is back
 * from a run here. */
enum alarm_action alarm_look(struct alarm *alarm);
/* The tick of the timer's deadline has come, which is at `time`. Returns true if it is to be handed
 * over to run: it is set to that time or an earlier one, or for now. It stays FILED if it runs
 * here. */
bool alarm_claim(struct alarm *alarm, tw_duration time, bool is_here);

/* ---- Owner or worker ---- */

/* Takes a handle's alarm that left the wheel out of reach of stops and sets, with the deadline that
 * it has; it is away from then on. Returns false if it was stopped. */
bool alarm_take(struct alarm *alarm);
/* Begins the run of an alarm that was claimed, and sets *run and the timer's deadline. Returns
 * false if it was stopped, or set to a deadline after `now`. */
bool alarm_begin(struct alarm *alarm, tw_duration now, run_fn **run);

/* Returns whether a periodic alarm that has begun has nothing to run: no time of its calendar has
 * come. */
static inline bool alarm_only_looks(struct alarm *alarm)
{
	struct schedule *schedule = alarm->schedule;

	return schedule->has_calendar && schedule->is_look &&
	       !cron_follower_is_due(schedule->follower);
}

/* When a run began that was none. */
#define ALARM_NOT_RUN INT64_MIN

/* What an end leaves to do. */
enum alarm_end {
	ALARM_ENDED,    /* nothing: it is idle, or its end is the owner's */
	ALARM_EXPECTED, /* nothing: it is set, and the owner will find it in its inbox */
	ALARM_BACK,     /* the owner is to be woken; here, it sees to the alarm */
	ALARM_BACK_NOW, /* the owner is to be woken, even from a nap */
	ALARM_GONE      /* a handle's alarm is the caller's, to be freed */
};
/*
 * Ends what a claim or a take began. `began` is when its run began, or ALARM_NOT_RUN. After a
 * handle's last run its place is given back, before those that wait see its end.
 */
enum alarm_end alarm_end(struct alarm_table *table, struct alarm *alarm, tw_duration began,
			 struct limit *places);
/* A function that a close was given has returned. */
void alarm_table_end_close(struct alarm_table *table);

#endif
