/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "ledger.h"

struct entry {
	atomic_int accepted;
	atomic_int returned;
};

struct ledger {
	size_t size;
	atomic_size_t executed;
	atomic_size_t drained;
	atomic_size_t released[3];
	atomic_size_t strangers; /* values that were never given to the wheel */
	struct entry entries[];
};

struct ledger *ledger_create(size_t size)
{
	struct ledger *ledger =
		calloc(1, sizeof(*ledger) + (size + 1) * sizeof(ledger->entries[0]));

	assert_non_null(ledger);
	ledger->size = size;
	return ledger;
}

void ledger_destroy(struct ledger *ledger)
{
	free(ledger);
}

void ledger_accept(struct ledger *ledger, size_t number)
{
	atomic_fetch_add(&ledger->entries[number].accepted, 1);
}

void ledger_refuse(struct ledger *ledger, size_t number)
{
	atomic_fetch_sub(&ledger->entries[number].accepted, 1);
}

static void book(struct ledger *ledger, const struct tw_task *task)
{
	size_t number = (size_t)(uintptr_t)task->value;

	if (number == 0 || number > ledger->size)
		atomic_fetch_add(&ledger->strangers, 1);
	else
		atomic_fetch_add(&ledger->entries[number].returned, 1);
}

void ledger_execute(void *context, const struct tw_task *task)
{
	struct ledger *ledger = context;

	book(ledger, task);
	atomic_fetch_add(&ledger->executed, 1);
}

void ledger_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct ledger *ledger = context;

	book(ledger, task);
	atomic_fetch_add(&ledger->released[reason], 1);
}

void ledger_drain(void *context, const struct tw_task *task)
{
	struct ledger *ledger = context;

	book(ledger, task);
	atomic_fetch_add(&ledger->drained, 1);
}

struct ledger_counts ledger_counts(struct ledger *ledger)
{
	struct ledger_counts counts = {.executed = atomic_load(&ledger->executed),
				       .drained = atomic_load(&ledger->drained)};

	for (int reason = 0; reason < 3; reason++)
		counts.released[reason] = atomic_load(&ledger->released[reason]);
	return counts;
}

void ledger_assert_balanced(struct ledger *ledger)
{
	assert_int_equal(atomic_load(&ledger->strangers), 0);
	for (size_t i = 1; i <= ledger->size; i++) {
		int accepted = atomic_load(&ledger->entries[i].accepted);
		int returned = atomic_load(&ledger->entries[i].returned);

		if (accepted != returned)
			fail_msg("value %zu was accepted %d times and came back %d times", i,
				 accepted, returned);
	}
}
