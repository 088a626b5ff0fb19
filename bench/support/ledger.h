/* SPDX-License-Identifier: MIT */
/*
 * Keeps account of values given to a wheel: what was asked for each of them, how it came back, and
 * at the end whether that was right.
 *
 * Who may call: before a command, the one thread that gives this value's commands (ledger_ask_*),
 * and after it the same (ledger_asked_*); any thread when the value comes back; ledger_audit() when
 * all that is over. Every time is on the wheel's clock.
 *
 * A call takes a while, and the deadline counts from some moment inside it. So each set and move
 * leaves a window of possible deadlines, and a timer that ran must have had one of its windows.
 * A timer may fire, with its old deadline, just before its move or remove is applied: then the
 * wheel does not count that command as one that found its key, and the audit compares these counts.
 */
#ifndef BENCH_SUPPORT_LEDGER_H
#define BENCH_SUPPORT_LEDGER_H

#include <timingwheel/timingwheel.h>

#include <stdatomic.h>
#include <stdbool.h>

enum ledger_fate { LEDGER_AWAITED, LEDGER_FIRED, LEDGER_REPLACED, LEDGER_REMOVED, LEDGER_STOPPED };

struct ledger_window {
	tw_duration first;
	uint32_t length; /* nanoseconds; UINT32_MAX: that or more */
};

struct ledger_entry {
	/* The commanding thread's. */
	struct ledger_window set;
	struct ledger_window move;
	bool was_moved;
	bool was_removed;
	/* Whoever brings it back first. */
	uint8_t fate;
	tw_duration deadline;
	tw_duration lateness;
	/* Any thread. */
	_Atomic uint32_t returns;
};

struct ledger_verdict {
	uint64_t fired;
	uint64_t fired_as_set;   /* with the deadline of the set, although maybe moved later */
	uint64_t fired_as_moved; /* with the deadline of the move */
	uint64_t removed;
	uint64_t early;          /* ran before its deadline, or with one sooner than asked for */
	uint64_t lost;           /* never came back */
	uint64_t twice;          /* came back more than once */
	uint64_t wrong_reason;   /* released for something that nobody asked for */
	uint64_t wrong_deadline; /* later than asked for */
};

/* Before the call, with the time just read: the earliest deadline that the timer can get. */
void ledger_ask_set(struct ledger_entry *entry, tw_duration now, tw_duration delay);
void ledger_ask_move(struct ledger_entry *entry, tw_duration now, tw_duration delay);
void ledger_ask_remove(struct ledger_entry *entry);

/* After the call, with the time read then: the window's end. */
void ledger_asked_set(struct ledger_entry *entry, tw_duration now, tw_duration delay);
void ledger_asked_move(struct ledger_entry *entry, tw_duration now, tw_duration delay);

/* The value has come back. False: not for the first time. */
bool ledger_return(struct ledger_entry *entry, enum ledger_fate fate, tw_duration deadline,
		   tw_duration now);

struct ledger_verdict ledger_audit(const struct ledger_entry *entries, size_t count);

#endif
