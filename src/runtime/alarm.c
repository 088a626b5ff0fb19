/* SPDX-License-Identifier: MIT */
/*
 * An alarm is a word: its tick above, flags below. Setting, stopping, claiming and the beginning
 * and end of a run are changes of it by compare-and-swap, which are their linearization points.
 *
 *   ARMED    it is to run at the tick
 *   AWAY     the owner has handed it over; cleared when the job is done
 *   RUNNING  its function is being called; AWAY, too
 *   LISTED   it is in the inbox of the owner; the thread that sets the flag adds it, the owner
 *            clears it
 *   CLOSING  it is being closed or destroyed, and can't be set
 *   CLOSED   `function` is a close's, and the owner may have it called: the last that the closing
 *            thread writes
 *   FILED    it is in the wheel, or on its way there: the thread that sets LISTED sets it too,
 *            the owner clears it
 *
 * Invariant: an alarm that is FILED, and not LISTED, is in the wheel, at the tick in its word or an
 * earlier one, also if it is not ARMED. So the owner need not know of a tick that moves later,
 * nor of a stop, nor of a set after a stop that is not sooner: it finds out when the earlier tick
 * comes. It learns, through the inbox, of an alarm that was not filed, or moves sooner; and by
 * alarm_end(), of one that was set, or closed, while it was AWAY.
 *
 * Ownership. The memory is the program's. The timer in it is the owner's, and while it is AWAY the
 * worker's. The owner lets go of an alarm that is not ARMED by clearing FILED, a worker by clearing
 * AWAY: each is the last touch. So an alarm that is disarmed for good has no other owner than the
 * program once it is neither FILED, LISTED nor AWAY. To destroy one that the owner has, the program
 * asks it to take the alarm out of its list. A closed one travels to the pool as a job that calls
 * the function, which may free the memory.
 *
 * A thread that closes it writes `function` between CLOSING, after which no run begins, and CLOSED,
 * which publishes it. A worker reads it before it begins a run, and uses it if the run begins.
 */
#include "alarm.h"

/* Calls of these would be some 10 instructions each. */
#define INLINED static inline __attribute__((always_inline))

enum {
	ARMED = 1 << 0,
	AWAY = 1 << 1,
	RUNNING = 1 << 2,
	LISTED = 1 << 3,
	CLOSING = 1 << 4,
	CLOSED = 1 << 5,
	FILED = 1 << 6,
	FLAGS = (1 << 8) - 1,
	TICK_SHIFT = 8,
	COARSE_STEP = 256
};

/* From this tick on a word has ticks in steps of COARSE_STEP, so that all ticks fit into its 56
 * bits, TICK_NEVER too. With ticks of 1 ns it comes after 1.1 years. */
static const uint64_t first_coarse = (uint64_t)1 << (63 - TICK_SHIFT);

/* Returns the number that stands for the tick in a word, rounded up. Numbers keep the order. */
static uint64_t tick_number(uint64_t tick)
{
	if (tick < first_coarse)
		return tick;
	return first_coarse + (tick - first_coarse + COARSE_STEP - 1) / COARSE_STEP;
}

static uint64_t word_tick(uint64_t word)
{
	uint64_t number = word >> TICK_SHIFT;

	if (number < first_coarse)
		return number;
	return first_coarse + (number - first_coarse) * COARSE_STEP;
}

void alarm_init(struct alarm *alarm, struct tw_wheel *wheel, run_fn *run, void *argument)
{
	alarm->timer.class = TIMER_ALARM;
	timer_set_place(&alarm->timer, TIMER_AWAY);
	alarm->timer.value = argument;
	atomic_init(&alarm->function, run);
	alarm->wheel = wheel;
	atomic_init(&alarm->word, 0);
}

/* relaxed: a change that is made by it acquires; what the owner does without one, it does with an
 * alarm that it has: taken from the inbox, or from the wheel. */
static uint64_t alarm_word(const struct alarm *alarm)
{
	return atomic_load_explicit(&alarm->word, memory_order_relaxed);
}

/* seq_cst: passes the alarm on; pairs with itself and alarm_is_known(). And the end of a run comes
 * before the look for threads that wait for it; pairs with handle_table_wait(). */
INLINED bool alarm_exchange(struct alarm *alarm, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&alarm->word, &from, to,
						       memory_order_seq_cst, memory_order_relaxed);
}

/* Exchanges the word, and adds the alarm to the inbox if that sets LISTED. It is the caller's last
 * touch. */
INLINED bool alarm_exchange_listed(struct alarm_table *table, struct alarm *alarm, uint64_t from,
				   uint64_t to)
{
	if (!alarm_exchange(alarm, from, to))
		return false;
	if (to & ~from & LISTED)
		inbox_add(&table->changed, &alarm->change);
	return true;
}

/* What becomes of the word by a set, and whether the owner is to see to the alarm. */
INLINED bool word_set(uint64_t word, uint64_t number, uint64_t *to)
{
	*to = number << TICK_SHIFT | (word & FLAGS) | ARMED;
	return !(word & AWAY) && (!(word & FILED) || number < word >> TICK_SHIFT);
}

enum tw_status alarm_set(struct alarm_table *table, struct alarm *alarm, uint64_t tick,
			 bool *changed)
{
	uint64_t number = tick_number(tick);
	uint64_t word;
	uint64_t to;

	do {
		word = alarm_word(alarm);
		if (word & CLOSING)
			return TW_CLOSED;
		if (word_set(word, number, &to))
			to |= LISTED | FILED;
	} while (!alarm_exchange_listed(table, alarm, word, to));
	*changed = to & ~word & LISTED;
	return TW_OK;
}

enum tw_status alarm_stop(struct alarm *alarm)
{
	uint64_t word;

	do {
		word = alarm_word(alarm);
	} while (!alarm_exchange(alarm, word, word & ~(uint64_t)ARMED));
	if (word & RUNNING)
		return word & ARMED ? TW_REARMED : TW_RUNNING;
	return word & ARMED ? TW_OK : TW_NOT_FOUND;
}

run_fn *alarm_function(const struct alarm *alarm)
{
	/* relaxed: a change of the word publishes it. */
	return atomic_load_explicit(&alarm->function, memory_order_relaxed);
}

/* Sets CLOSING, unless the alarm is held. *word becomes what the word was. */
INLINED enum tw_status alarm_disarm(struct alarm *alarm, uint64_t held, uint64_t *word)
{
	uint64_t closing;

	do {
		*word = alarm_word(alarm);
		if (*word & CLOSING)
			return TW_CLOSED;
		closing = *word & held ? 0 : CLOSING;
	} while (!alarm_exchange(alarm, *word, (*word & ~(uint64_t)ARMED) | closing));
	return closing ? TW_OK : TW_RUNNING;
}

enum tw_status alarm_close(struct alarm_table *table, struct alarm *alarm, run_fn *closed,
			   bool *changed)
{
	uint64_t word;
	uint64_t to;

	if (alarm_disarm(alarm, 0, &word) == TW_CLOSED)
		return TW_CLOSED;
	/* relaxed: the function has still to be called. */
	atomic_fetch_add_explicit(&table->closing, 1, memory_order_relaxed);
	/* relaxed: the exchange below publishes it. */
	atomic_store_explicit(&alarm->function, closed, memory_order_relaxed);
	do {
		word = alarm_word(alarm);
		to = word | CLOSED | (word & AWAY ? 0 : LISTED);
	} while (!alarm_exchange_listed(table, alarm, word, to));
	*changed = to & ~word & LISTED;
	return TW_OK;
}

struct run alarm_hold(const struct alarm *alarm, bool has_pool)
{
	uint64_t flag = has_pool ? AWAY : RUNNING;

	return (struct run){&alarm->word, flag, flag};
}

enum tw_status alarm_destroy(struct alarm *alarm, const struct run *hold, bool waits)
{
	uint64_t word;

	return alarm_disarm(alarm, waits ? 0 : hold->running, &word);
}

bool alarm_is_known(const struct alarm *alarm)
{
	/* acquire: sees the last touches of owner and worker; pairs with alarm_exchange(). */
	return atomic_load_explicit(&alarm->word, memory_order_acquire) & (FILED | LISTED | AWAY);
}

/* ---- The owner ---- */

struct alarm *alarm_take_changed(struct alarm_table *table)
{
	struct inbox_link *link = inbox_take_oldest(&table->changed);

	return link ? list_entry(link, struct alarm, change) : NULL;
}

/* Touches an alarm that is not ARMED no more. */
INLINED enum alarm_action alarm_action_for(struct alarm *alarm, uint64_t word)
{
	if (word & (AWAY | LISTED))
		return ALARM_KEEP;
	if (word & CLOSED)
		return ALARM_CLOSE;
	if (!(word & ARMED))
		return ALARM_KEEP;
	alarm->timer.tick = word_tick(word);
	return ALARM_FILE;
}

enum alarm_action alarm_look(struct alarm *alarm)
{
	uint64_t word;

	do
		word = alarm_word(alarm);
	while (!(word & ARMED) && !alarm_exchange(alarm, word, word & ~(uint64_t)FILED));
	return alarm_action_for(alarm, word);
}

enum alarm_action alarm_apply_change(struct alarm *alarm)
{
	uint64_t word;
	uint64_t to;

	do {
		word = alarm_word(alarm);
		to = word & ~(uint64_t)(word & ARMED ? LISTED : LISTED | FILED);
	} while (!alarm_exchange(alarm, word, to));
	return alarm_action_for(alarm, to);
}

bool alarm_is_away(const struct alarm *alarm)
{
	return alarm_word(alarm) & AWAY;
}

bool alarm_let_go(struct alarm *alarm)
{
	uint64_t word;

	do {
		word = alarm_word(alarm);
		if (word & LISTED)
			return false;
	} while (!alarm_exchange(alarm, word, word & ~(uint64_t)(FILED | AWAY)));
	return true;
}

/* Changes the flags of an alarm that is to run by `now`. Returns false if it is not. */
static bool alarm_change_due(struct alarm *alarm, uint64_t now, uint64_t clear, uint64_t set)
{
	uint64_t word;

	do {
		word = alarm_word(alarm);
		if (!(word & ARMED) || word_tick(word) > now)
			return false;
	} while (!alarm_exchange(alarm, word, (word & ~clear) | set));
	alarm->timer.tick = word_tick(word);
	return true;
}

bool alarm_claim(struct alarm *alarm)
{
	return alarm_change_due(alarm, alarm->timer.tick, FILED, AWAY);
}

/* ---- Running ---- */

void alarm_table_end_close(struct alarm_table *table)
{
	/* release: its function has returned; pairs with alarm_table_is_closing(). */
	atomic_fetch_sub_explicit(&table->closing, 1, memory_order_release);
}

bool alarm_table_is_closing(const struct alarm_table *table)
{
	/* acquire: pairs with alarm_table_end_close(). */
	return atomic_load_explicit(&table->closing, memory_order_acquire) > 0;
}

bool alarm_begin(struct alarm *alarm, uint64_t now)
{
	return alarm_change_due(alarm, now, ARMED, RUNNING);
}

bool alarm_end(struct alarm_table *table, struct alarm *alarm)
{
	uint64_t word;
	uint64_t to;

	do {
		word = alarm_word(alarm);
		to = word & ~(uint64_t)(AWAY | RUNNING);
		if (to & (ARMED | CLOSED))
			to |= LISTED | FILED;
	} while (!alarm_exchange_listed(table, alarm, word, to));
	return to & ~word & LISTED;
}
