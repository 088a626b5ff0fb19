/* SPDX-License-Identifier: MIT */
/*
 * An alarm's life is a word: its generation above, flags below. To set, stop or run it is to change
 * the word by compare-and-swap; of a stop and the beginning of a run, the one whose exchange
 * succeeds wins. Nobody is asked, and the owner learns through its inbox of what it must know.
 *
 *   ARMED    it is to run at `deadline`
 *   RUNNING  its function is being called; AWAY, too
 *   AWAY     it runs, or the owner has handed it over to a worker; cleared when the job is done
 *   FILED    the owner has it: in the wheel, in a list, or on its way there
 *   LISTED   the owner is to see it: it is in an inbox, once; the thread that sets the flag adds
 *            it, the owner clears it
 *   CLOSED   it can't be set any more; so it is not ARMED
 *   LAST     CLOSED, and when it is idle a handle's is freed, and another's function is called that
 *            a close was given. A destroy sets CLOSED alone
 *   RESET    it was set since its run began
 *   NOW      `deadline` had passed when it was set
 *   BUSY     a thread has locked it: only that one changes the word, `deadline` and `function`; the
 *            others wait those few instructions
 *   WAITED   threads wait for the end of its run
 *
 * What happens to an alarm, one function each:
 *
 *   event             from     if                     to                      what comes next
 *   alarm_set         any      CLOSED                 -                       TW_CLOSED
 *                              AWAY                   ARMED RESET             alarm_end
 *                              FILED, not sooner      ARMED RESET             alarm_claim
 *                              else                   ARMED RESET LISTED      owner: apply_change
 *                                                     FILED
 *   alarm_stop        any                             not ARMED               -
 *   alarm_end_life    live     AWAY                   CLOSED LAST not ARMED   alarm_end
 *                              else                   the same, LISTED        owner: apply_change
 *   alarm_close       any      CLOSED                 -                       TW_CLOSED
 *                              AWAY                   CLOSED LAST not ARMED   alarm_end
 *                              else                   the same, LISTED        owner: apply_change
 *   alarm_destroy     any                             CLOSED not ARMED        owner: let_go
 *   alarm_claim       FILED    ARMED, due             AWAY not FILED          alarm_begin
 *                              the same, runs here    -                       alarm_begin
 *                              else                   -                       alarm_look
 *   alarm_look        FILED    LISTED                 -                       owner: apply_change
 *                              ARMED                  -                       into the wheel again
 *                              else                   not FILED               if LAST, its end
 *   apply_change      LISTED   LAST, not AWAY         -                       its end
 *                              ARMED                  not LISTED              into the wheel
 *                              else                   not LISTED, not FILED   -
 *   alarm_take        any      ARMED                  CLOSED LAST AWAY        its value goes back
 *                                                     not ARMED, not FILED
 *   alarm_begin       AWAY,    ARMED, due             RUNNING AWAY            the function
 *                     FILED                           not ARMED, not FILED
 *                              else                   -                       alarm_end
 *   alarm_end         AWAY,    ARMED                  LISTED FILED not AWAY   owner: apply_change
 *                     FILED    a handle's             CLOSED LAST not AWAY    freed, unless LISTED
 *                              LAST                   LISTED FILED not AWAY   owner: its end
 *                              else                   not AWAY, not FILED     -
 *
 * Where the owner runs alarms itself, alarm_end leaves one that is FILED to it without LISTED, for
 * alarm_look. A handle's first set is in the command queue, and alarm_look comes when it is
 * applied.
 *
 * A periodic one stays ARMED while it runs: at the end of the run its schedule says when it runs
 * next, unless it was set meanwhile. It ends if its `next` says so: a set that came while `next`
 * was asked has moved a run that does not come.
 *
 * The argument of a handle goes with the answer to a stop: TW_OK gives it to the caller at once,
 * TW_REARMED once the run has ended, TW_RUNNING to the run; after LAST an earlier stop has decided.
 *
 * Invariant: an alarm that is FILED, and not LISTED, is in the wheel at its deadline or an earlier
 * one, or in a list of the owner's or the command queue, also if it is not ARMED. So the owner
 * need not know of a deadline that moves later, nor of a stop of a program's alarm, nor of a set
 * after that which is not sooner: it finds out when the earlier deadline comes. Of a handle's stop
 * it learns, for its memory is to come back.
 *
 * No look at the deadline decides that a run begins but the one of alarm_begin(), under the lock.
 * The owner reads the deadline after the flags: of a set that comes after that it learns, or it
 * finds out at alarm_claim().
 *
 * Ownership. The timer in it is the owner's, and while a worker has it AWAY the worker's. The
 * owner lets go of a program's alarm that is not ARMED by clearing FILED, a worker by clearing
 * AWAY: each is the last touch. So one that is disarmed for good has no other owner than the
 * program once it is neither FILED, LISTED nor AWAY. To destroy one that the owner has, the
 * program asks it to take the alarm out of its list. A handle's alarm is freed by the thread that
 * finds it LAST and neither AWAY nor LISTED, by a change of the word that made it so.
 */
#include "alarm.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"

enum {
	ARMED = 1 << 0,
	RUNNING = 1 << 1,
	AWAY = 1 << 2,
	FILED = 1 << 3,
	LISTED = 1 << 4,
	CLOSED = ALARM_CLOSED,
	LAST = 1 << 6,
	RESET = 1 << 7,
	NOW = 1 << 8,
	BUSY = 1 << 9,
	WAITED = 1 << 10
};

/* The bits of a word that have the generation. */
#define GENERATION (~(((uint64_t)1 << ALARM_GENERATION_SHIFT) - 1))

/* ---- Changing the word ---- */

/* Not inlined: the other way needs no stack. */
static __attribute__((noinline, cold)) uint64_t alarm_await_word(const struct alarm *alarm)
{
	unsigned tries = 0;
	uint64_t word;

	do {
		thread_back_off(&tries);
		/* acquire: see alarm_word(). */
		word = atomic_load_explicit(&alarm->word, memory_order_acquire);
	} while (word & BUSY);
	return word;
}

/* Once no thread is busy with it. acquire: pairs with alarm_exchange(), alarm_unlock() and
 * handle_free(). */
static uint64_t alarm_word(const struct alarm *alarm)
{
	uint64_t word = atomic_load_explicit(&alarm->word, memory_order_acquire);

	return word & BUSY ? alarm_await_word(alarm) : word;
}

/* seq_cst: passes the alarm on; pairs with itself, alarm_word() and alarm_is_known(). */
static bool alarm_exchange(struct alarm *alarm, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&alarm->word, &from, to,
						       memory_order_seq_cst, memory_order_relaxed);
}

/* From a lock that succeeds to the unlock no other thread changes word, deadline and function. */
static bool alarm_lock(struct alarm *alarm, uint64_t word)
{
	return alarm_exchange(alarm, word, word | BUSY);
}

static void alarm_unlock(struct alarm *alarm, uint64_t word)
{
	/* release: publishes the deadline, and a run that has ended; pairs with alarm_word(),
	 * run_is_under_way() and alarm_is_known(). */
	atomic_store_explicit(&alarm->word, word, memory_order_release);
}

/* The alarm's inbox, of ALARM_LISTS. */
static struct inbox *alarm_spread(struct inbox *inboxes, const struct alarm *alarm)
{
	/* Fibonacci hashing (Knuth, volume 3), for alarms that lie at any distance. */
	return &inboxes[(uint64_t)(uintptr_t)alarm * 0x9e3779b97f4a7c15 >> ALARM_SPREAD];
}

/* Its inbox for all but stops. */
static struct inbox *alarm_sets(struct alarm_table *table, const struct alarm *alarm)
{
	return table->is_here ? table->inboxes : alarm_spread(table->inboxes, alarm);
}

/* Unlocks an alarm that is disarmed for good and ends when it is idle, and adds it to the inbox
 * unless its run is under way. Returns whether it has come there now. It is the caller's last
 * touch. */
static inline bool alarm_unlock_closed(struct inbox *inbox, struct alarm *alarm, uint64_t word)
{
	uint64_t to = (word & ~(uint64_t)ARMED) | CLOSED | LAST | (word & AWAY ? 0 : LISTED);

	alarm_unlock(alarm, to);
	if (!(to & ~word & LISTED))
		return false;
	inbox_add(inbox, &alarm->change);
	return true;
}

/* release: after BUSY was set; pairs with alarm_deadline(). */
static void alarm_store_deadline(struct alarm *alarm, tw_duration deadline)
{
	atomic_store_explicit(&alarm->deadline, deadline, memory_order_release);
}

/* acquire: what is written after BUSY was set is seen with it; pairs with
 * alarm_store_deadline(). */
static tw_duration alarm_deadline(const struct alarm *alarm)
{
	return atomic_load_explicit(&alarm->deadline, memory_order_acquire);
}

enum alarm_state alarm_state(struct alarm *alarm, uint64_t *generation, tw_duration *deadline)
{
	uint64_t word;

	do {
		word = alarm_word(alarm);
		*deadline = alarm_deadline(alarm);
		/* relaxed: after the load of the deadline, which acquires. */
	} while (atomic_load_explicit(&alarm->word, memory_order_relaxed) != word);
	*generation = alarm_generation(word);
	if (word & RUNNING)
		return ALARM_RUNS;
	if (!(word & ARMED))
		return ALARM_IDLE;
	return word & AWAY ? ALARM_IS_AWAY : ALARM_IS_FILED;
}

/* ---- Any thread ---- */

void alarm_init(struct alarm *alarm, run_fn *run, void *argument)
{
	alarm->timer.class = TIMER_ALARM;
	timer_set_place(&alarm->timer, TIMER_AWAY);
	alarm->timer.value = argument;
	alarm->function = run;
	atomic_init(&alarm->word, 0);
	atomic_init(&alarm->deadline, 0);
}

void alarm_begin_life(struct alarm *alarm, tw_duration deadline, bool for_now)
{
	/* relaxed: no other thread knows of it yet. */
	uint64_t word = atomic_load_explicit(&alarm->word, memory_order_relaxed);

	word = (word & ~(uint64_t)CLOSED) | ARMED | FILED | (for_now ? NOW : 0);
	alarm_store_deadline(alarm, deadline);
	/* What was done with it before, and what is new, for those that ask by an id. */
	alarm_unlock(alarm, word);
}

INLINED enum tw_status alarm_set(struct alarm_table *table, struct alarm *alarm,
				 uint64_t generation, tw_duration deadline, bool for_now,
				 bool *changed)
{
	uint64_t word;
	uint64_t to;

	do {
		word = alarm_word(alarm);
		if ((word & (GENERATION | CLOSED)) != generation << ALARM_GENERATION_SHIFT)
			return TW_CLOSED;
	} while (!alarm_lock(alarm, word));
	to = (word & ~(uint64_t)NOW) | ARMED | RESET | (for_now ? NOW : 0);
	/* One for now may be after a deadline that has passed, whose tick is still to come. */
	if (!(word & AWAY) && (!(word & FILED) || for_now || deadline < alarm_deadline(alarm)))
		to |= LISTED | FILED;
	alarm_store_deadline(alarm, deadline);
	alarm_unlock(alarm, to);
	*changed = to & ~word & LISTED;
	if (*changed)
		inbox_add(alarm_sets(table, alarm), &alarm->change);
	return TW_OK;
}

/* The answer to a stop, by the word before. */
static enum tw_status word_stopped(uint64_t word)
{
	if (word & RUNNING)
		return word & ARMED ? TW_REARMED : TW_RUNNING;
	return word & ARMED ? TW_OK : TW_NOT_FOUND;
}

enum tw_status alarm_stop(struct alarm *alarm)
{
	uint64_t word;

	do {
		word = alarm_word(alarm);
	} while (!alarm_exchange(alarm, word, word & ~(uint64_t)ARMED));
	return word_stopped(word);
}

INLINED enum tw_status alarm_end_life(struct alarm_table *table, struct alarm *alarm,
				      uint64_t generation, void **value, bool *changed)
{
	enum tw_status status;
	struct inbox *inbox;
	uint64_t word;

	do {
		word = alarm_word(alarm);
		if (alarm_generation(word) != generation)
			return TW_NOT_FOUND;
		if (word & CLOSED)
			return word & RUNNING ? TW_RUNNING : TW_NOT_FOUND;
	} while (!alarm_lock(alarm, word));
	status = word_stopped(word);
	/* Before another thread may free it. */
	if (status != TW_RUNNING)
		*value = alarm->timer.value;
	inbox = alarm_spread(table->inboxes + ALARM_LISTS, alarm);
	*changed = alarm_unlock_closed(inbox, alarm, word);
	return status;
}

enum tw_status alarm_close(struct alarm_table *table, struct alarm *alarm, run_fn *closed,
			   bool *changed)
{
	uint64_t word;

	do {
		word = alarm_word(alarm);
		if (word & CLOSED)
			return TW_CLOSED;
	} while (!alarm_lock(alarm, word));
	/* relaxed: the function has still to be called. */
	atomic_fetch_add_explicit(&table->closing, 1, memory_order_relaxed);
	alarm->function = closed;
	*changed = alarm_unlock_closed(alarm_sets(table, alarm), alarm, word);
	return TW_OK;
}

struct run alarm_hold(struct alarm *alarm, bool has_pool)
{
	uint64_t flag = has_pool ? AWAY : RUNNING;

	return (struct run){alarm, flag, flag};
}

struct run alarm_run(struct alarm *alarm, uint64_t generation)
{
	uint64_t mask = GENERATION | RUNNING;

	return (struct run){alarm, mask, generation << ALARM_GENERATION_SHIFT | RUNNING};
}

enum tw_status alarm_destroy(struct alarm *alarm, const struct run *hold, bool waits)
{
	uint64_t held = waits ? 0 : hold->running;
	uint64_t closed;
	uint64_t word;

	do {
		word = alarm_word(alarm);
		if (word & CLOSED)
			return TW_CLOSED;
		closed = word & held ? 0 : CLOSED;
	} while (!alarm_exchange(alarm, word, (word & ~(uint64_t)ARMED) | closed));
	return closed ? TW_OK : TW_RUNNING;
}

bool alarm_is_known(const struct alarm *alarm)
{
	/* acquire: sees the last touches of owner and worker; pairs with alarm_exchange() and
	 * alarm_unlock(). */
	return atomic_load_explicit(&alarm->word, memory_order_acquire) & (FILED | LISTED | AWAY);
}

bool alarm_table_is_closing(const struct alarm_table *table)
{
	/* acquire: pairs with alarm_table_end_close(). */
	return atomic_load_explicit(&table->closing, memory_order_acquire) > 0;
}

/* Has the end of the run wake the threads that wait for it. Returns false if it has ended. */
static bool run_announce(const struct run *run)
{
	uint64_t word;

	do {
		word = alarm_word(run->alarm);
		if ((word & run->mask) != run->running)
			return false;
	} while (!(word & WAITED) && !alarm_exchange(run->alarm, word, word | WAITED));
	return true;
}

void alarm_table_wait(struct alarm_table *table, const struct run *run)
{
	/* It is the last run, for the alarm is CLOSED. Its end finds WAITED, and takes the lock. */
	if (!run_announce(run))
		return;
	waiting_begin(&table->waiting);
	while (run_is_under_way(run))
		(void)waiting_pause(&table->waiting, NULL, TW_FOREVER);
	waiting_end(&table->waiting);
}

/* ---- The owner ---- */

bool alarm_table_has_some(const struct alarm_table *table)
{
	for (size_t i = 0; i < ALARM_INBOXES; i++)
		if (inbox_has_some(&table->inboxes[i]))
			return true;
	return false;
}

void alarm_table_mark(const struct alarm_table *table, uint64_t *marks)
{
	for (size_t i = 0; i < ALARM_INBOXES; i++)
		marks[i] = inbox_mark(&table->inboxes[i]);
}

bool alarm_table_is_past(const struct alarm_table *table, const uint64_t *marks)
{
	for (size_t i = 0; i < ALARM_INBOXES; i++)
		if (!inbox_is_past(&table->inboxes[i], marks[i]))
			return false;
	return true;
}

/* Touches a program's alarm that is not ARMED no more. */
static enum alarm_action alarm_action_for(struct alarm *alarm, uint64_t word)
{
	if (word & (AWAY | LISTED))
		return ALARM_KEEP;
	if (word & LAST)
		return ALARM_END;
	if (!(word & ARMED))
		return ALARM_KEEP;
	alarm->timer.is_for_now = word & NOW;
	alarm->timer.deadline = alarm_deadline(alarm);
	return ALARM_FILE;
}

INLINED uint64_t alarm_let_go(struct alarm *alarm)
{
	uint64_t word;

	do
		word = alarm_word(alarm);
	while (!(word & (ARMED | LISTED)) && !alarm_exchange(alarm, word, word & ~(uint64_t)FILED));
	return word;
}

INLINED enum alarm_action alarm_look(struct alarm *alarm)
{
	return alarm_action_for(alarm, alarm_let_go(alarm));
}

INLINED enum alarm_action alarm_apply_change(struct alarm *alarm, bool *was_filed)
{
	uint64_t word;
	uint64_t to;

	do {
		word = alarm_word(alarm);
		*was_filed = word & FILED;
		/* No other thread changes it any more. */
		if ((word & (LAST | AWAY)) == LAST)
			return ALARM_END;
		to = word & ~(uint64_t)(word & ARMED ? LISTED : LISTED | FILED);
	} while (!alarm_exchange(alarm, word, to));
	return alarm_action_for(alarm, to);
}

bool alarm_is_filed(const struct alarm *alarm)
{
	/* acquire: sees the first set; pairs with alarm_unlock(). */
	return atomic_load_explicit(&alarm->word, memory_order_acquire) & FILED;
}

void alarm_leave(struct alarm *alarm)
{
	uint64_t word;

	do
		word = alarm_word(alarm);
	while (!alarm_exchange(alarm, word, word & ~(uint64_t)LISTED));
}

INLINED bool alarm_claim(struct alarm *alarm, tw_duration time, bool is_here)
{
	uint64_t word;

	do {
		word = alarm_word(alarm);
		if (!(word & ARMED) || (!(word & NOW) && alarm_deadline(alarm) > time))
			return false;
	} while (!is_here && !alarm_exchange(alarm, word, (word & ~(uint64_t)FILED) | AWAY));
	/* What alarm_begin() may take for now. */
	alarm->timer.deadline = time;
	return true;
}

/* ---- Running ---- */

bool alarm_take(struct alarm *alarm)
{
	uint64_t word;

	do {
		word = alarm_word(alarm);
		if (!(word & ARMED))
			return false;
	} while (!alarm_exchange(alarm, word,
				 (word & ~(uint64_t)(ARMED | FILED)) | CLOSED | LAST | AWAY));
	alarm->timer.deadline = alarm_deadline(alarm);
	return true;
}

INLINED bool alarm_begin(struct alarm *alarm, tw_duration now, run_fn **run)
{
	bool is_periodic = alarm->timer.class == TIMER_PERIODIC;
	tw_duration due = alarm->timer.deadline;
	tw_duration deadline;
	uint64_t word;

	do {
		word = alarm_word(alarm);
		if (!(word & ARMED))
			return false;
	} while (!alarm_lock(alarm, word));
	/* The clock may have gone back since the owner claimed the alarm, or it was set for now. */
	due = due < now ? now : due;
	deadline = alarm_deadline(alarm);
	if (!(word & NOW) && deadline > due) {
		alarm_unlock(alarm, word);
		return false;
	}
	alarm->timer.deadline = deadline;
	*run = is_periodic ? alarm->schedule->run : alarm->function;
	if (is_periodic && (word & RESET))
		alarm->schedule->is_look = false;
	word &= ~(uint64_t)(RESET | NOW | FILED | (is_periodic ? 0 : ARMED));
	alarm_unlock(alarm, word | RUNNING | AWAY);
	return true;
}

/* The deadline after the present one that is due at all, for a run that began at `now`. */
static tw_duration alarm_next(struct alarm *alarm, tw_duration now)
{
	struct schedule *schedule = alarm->schedule;
	tw_duration deadline = alarm->timer.deadline;
	tw_duration next;
	uint64_t since;

	if (schedule->next)
		return schedule->next(alarm->timer.value, deadline);
	if (schedule->has_calendar)
		return cron_follower_next(schedule->follower, deadline);
	next = time_add(deadline, schedule->period);
	if (next > now || schedule->missed == TW_MISSED_BURST)
		return next;
	if (schedule->missed == TW_MISSED_DELAY)
		return time_add(now, schedule->period);
	/* Unsigned: the two may be as far apart as the clock is long. */
	since = (uint64_t)now - (uint64_t)deadline;
	return time_add(now, schedule->period - (tw_duration)(since % (uint64_t)schedule->period));
}

enum alarm_end alarm_end(struct alarm_table *table, struct alarm *alarm, tw_duration began,
			 struct limit *places)
{
	bool is_handle = alarm->timer.class != TIMER_ALARM;
	bool ran = began != ALARM_NOT_RUN;
	bool asked = ran && alarm->timer.class == TIMER_PERIODIC &&
		     (alarm_word(alarm) & (ARMED | RESET)) == ARMED;
	/* To ask is part of the run. */
	tw_duration next = asked ? alarm_next(alarm, began) : 0;
	uint64_t word;
	uint64_t to;

	do
		word = alarm_word(alarm);
	while (!alarm_lock(alarm, word));
	to = word & ~(uint64_t)(AWAY | RUNNING | RESET | FILED | WAITED);
	if (asked && next <= alarm->timer.deadline)
		to &= ~(uint64_t)ARMED;
	else if (asked && !(word & RESET))
		alarm_store_deadline(alarm, next);
	if (alarm->timer.class == TIMER_PERIODIC && (asked || (word & RESET)))
		alarm->schedule->is_look = !(word & RESET);
	if (is_handle && !(to & ARMED))
		to |= CLOSED | LAST;
	if ((to & ARMED) || ((to & LAST) && !is_handle))
		to |= FILED | (table->is_here ? 0 : LISTED);
	if (is_handle && (to & LAST) && ran)
		limit_give(places);
	alarm_unlock(alarm, to);
	if (word & WAITED)
		waiting_wake(&table->waiting);
	if (!(to & FILED))
		return is_handle && !(to & LISTED) ? ALARM_GONE : ALARM_ENDED;
	if (word & LISTED)
		return ALARM_EXPECTED;
	if (!table->is_here)
		inbox_add(alarm_sets(table, alarm), &alarm->change);
	return to & NOW ? ALARM_BACK_NOW : ALARM_BACK;
}

void alarm_table_end_close(struct alarm_table *table)
{
	/* release: its function has returned; pairs with alarm_table_is_closing(). */
	atomic_fetch_sub_explicit(&table->closing, 1, memory_order_release);
}
