/* SPDX-License-Identifier: MIT */
/*
 * The ledger counts for the exactly-once law: value number n is VALUE(n), 1 … size. Each value that
 * comes back is booked, and at the end each accepted value must have been booked once and no other
 * at all. Any thread may book; there is no allocation after ledger_create.
 */
#ifndef SUPPORT_LEDGER_H
#define SUPPORT_LEDGER_H

#include <stddef.h>
#include <timingwheel/timingwheel.h>

struct ledger;

struct ledger *ledger_create(size_t size);
void ledger_destroy(struct ledger *ledger);

/* Notes that the wheel accepted the value, or refused it after all. */
void ledger_accept(struct ledger *ledger, size_t number);
void ledger_refuse(struct ledger *ledger, size_t number);

/* These are functions for tw_create and tw_drain, with the ledger as context. */
void ledger_execute(void *ledger, const struct tw_task *task);
void ledger_release(void *ledger, const struct tw_task *task, enum tw_reason reason);
void ledger_drain(void *ledger, const struct tw_task *task);

/* These are the values that came back so far, by kind. */
struct ledger_counts {
	size_t executed;
	size_t drained;
	size_t released[3]; /* by tw_reason */
};

struct ledger_counts ledger_counts(struct ledger *ledger);

/* Fails the test unless every accepted value came back once, and no other did. Only the main thread
 * may call it. */
void ledger_assert_balanced(struct ledger *ledger);

#endif
