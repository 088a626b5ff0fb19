/* SPDX-License-Identifier: MIT */
/*
 * A ledger accounts for values given to a wheel: which commands there were, how each value came
 * back, and at the end whether that was right.
 *
 * The thread that makes a value's commands calls ledger_ask_*() before each and ledger_asked_*()
 * after it; any thread calls when the value comes back; ledger_audit() comes last. All times are on
 * the wheel's clock.
 *
 * The deadline counts from some moment during a call. Each set and move therefore leaves a window
 * of possible deadlines, and a timer that ran must have had a deadline in one of its windows. A
 * timer may fire, with its old deadline, just before its move or remove is applied: then the wheel
 * does not count that command as one that found its key, and the audit compares these counts.
 */
#ifndef BENCH_SUPPORT_LEDGER_H
#define BENCH_SUPPORT_LEDGER_H

#include <timingwheel/timingwheel.h>

#include <stdatomic.h>
#include <stdbool.h>

enum ledger_fate { LEDGER_AWAITED, LEDGER_FIRED, LEDGER_REPLACED, LEDGER_REMOVED, LEDGER_STOPPED };

struct ledger_window {
	tw_duration first;
	uint32_t length; /* nanoseconds; UINT32_MAX for that or more */
};

struct ledger_entry {
	/* Only the commanding thread writes these. */
	struct ledger_window set;
	struct ledger_window move;
	bool was_moved;
	bool was_removed;
	/* The first thread that brings it back writes these. */
	uint8_t fate;
	tw_duration deadline;
	tw_duration lateness;
	/* Any thread may write these. */
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
	uint64_t wrong_reason;   /* released for a reason that was not requested */
	uint64_t wrong_deadline; /* later than requested */
};

/* Notes the time just read before the call: the start of the window. */
void ledger_ask_set(struct ledger_entry *entry, tw_duration now, tw_duration delay);
void ledger_ask_move(struct ledger_entry *entry, tw_duration now, tw_duration delay);
void ledger_ask_remove(struct ledger_entry *entry);

/* Notes the time read after the call: the end of the window. */
void ledger_asked_set(struct ledger_entry *entry, tw_duration now, tw_duration delay);
void ledger_asked_move(struct ledger_entry *entry, tw_duration now, tw_duration delay);

/* Notes that the value came back. Returns whether it is the first time. */
bool ledger_return(struct ledger_entry *entry, enum ledger_fate fate, tw_duration deadline,
		   tw_duration now);

struct ledger_verdict ledger_audit(const struct ledger_entry *entries, size_t count);

#endif
