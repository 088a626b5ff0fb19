/* SPDX-License-Identifier: MIT */
#include "ledger.h"

static tw_duration add_delay(tw_duration now, tw_duration delay)
{
	return delay > TW_FOREVER - now ? TW_FOREVER : now + delay;
}

static struct ledger_window window_open(tw_duration now, tw_duration delay)
{
	return (struct ledger_window){add_delay(now, delay), UINT32_MAX};
}

static void window_close(struct ledger_window *window, tw_duration now, tw_duration delay)
{
	tw_duration length = add_delay(now, delay) - window->first;

	window->length = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
}

static bool window_holds(const struct ledger_window *window, tw_duration deadline)
{
	if (deadline < window->first)
		return false;
	return window->length == UINT32_MAX || deadline - window->first <= window->length;
}

void ledger_ask_set(struct ledger_entry *entry, tw_duration now, tw_duration delay)
{
	entry->set = window_open(now, delay);
}

void ledger_ask_move(struct ledger_entry *entry, tw_duration now, tw_duration delay)
{
	entry->move = window_open(now, delay);
	entry->was_moved = true;
}

void ledger_ask_remove(struct ledger_entry *entry)
{
	entry->was_removed = true;
}

void ledger_asked_set(struct ledger_entry *entry, tw_duration now, tw_duration delay)
{
	window_close(&entry->set, now, delay);
}

void ledger_asked_move(struct ledger_entry *entry, tw_duration now, tw_duration delay)
{
	window_close(&entry->move, now, delay);
}

bool ledger_return(struct ledger_entry *entry, enum ledger_fate fate, tw_duration deadline,
		   tw_duration now)
{
	/* relaxed: it only decides which is first; the audit comes after the threads are joined */
	if (atomic_fetch_add_explicit(&entry->returns, 1, memory_order_relaxed) > 0)
		return false;
	entry->fate = (uint8_t)fate;
	entry->deadline = deadline;
	entry->lateness = now - deadline;
	return true;
}

static void audit_fired(const struct ledger_entry *entry, struct ledger_verdict *verdict)
{
	bool as_set = window_holds(&entry->set, entry->deadline);
	bool as_moved = entry->was_moved && window_holds(&entry->move, entry->deadline);
	tw_duration earliest = entry->set.first;

	if (entry->was_moved && entry->move.first < earliest)
		earliest = entry->move.first;
	verdict->fired++;
	verdict->fired_as_set += as_set;
	verdict->fired_as_moved += as_moved;
	if (entry->lateness < 0 || entry->deadline < earliest)
		verdict->early++;
	else if (!as_set && !as_moved)
		verdict->wrong_deadline++;
}

static void audit_entry(const struct ledger_entry *entry, struct ledger_verdict *verdict)
{
	/* relaxed: the threads that counted have been joined */
	uint32_t returns = atomic_load_explicit(&entry->returns, memory_order_relaxed);

	if (returns == 0) {
		verdict->lost++;
		return;
	}
	verdict->twice += returns > 1;
	if (entry->fate == LEDGER_FIRED)
		audit_fired(entry, verdict);
	else if (entry->fate == LEDGER_REMOVED && entry->was_removed)
		verdict->removed++;
	else
		verdict->wrong_reason++;
}

struct ledger_verdict ledger_audit(const struct ledger_entry *entries, size_t count)
{
	struct ledger_verdict verdict = {0};

	for (size_t i = 0; i < count; i++)
		audit_entry(&entries[i], &verdict);
	return verdict;
}
