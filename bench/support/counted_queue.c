/* SPDX-License-Identifier: MIT */
/*
 * Every function of the source gets another name, so that the library's own can be beside it. The
 * count is the thread's own and grows only after a failed exchange, so its cost does not matter.
 */
#include "counted_queue.h"

#include <stdatomic.h>

#define command_queue_init counted_queue_init
#define command_queue_destroy counted_queue_destroy
#define command_queue_claim counted_queue_claim
#define command_queue_claim_first counted_queue_claim_first
#define command_queue_publish counted_queue_publish
#define command_queue_wait counted_queue_wait
#define command_queue_close counted_queue_close
#define command_queue_tail counted_queue_tail
#define command_queue_head counted_queue_head
#define command_queue_count counted_queue_count
#define command_queue_peek counted_queue_peek
#define command_queue_pop counted_queue_pop
#define command_queue_memory counted_queue_memory

static _Thread_local uint64_t retries;

static inline bool counted_exchange(_Atomic uint64_t *tail, uint64_t *seen, uint64_t claimed)
{
	/* seq_cst, relaxed: see command_queue_claim_behind(), whose exchange this is */
	bool exchanged = atomic_compare_exchange_weak_explicit(
		tail, seen, claimed, memory_order_seq_cst, memory_order_relaxed);

	if (!exchanged)
		retries++;
	return exchanged;
}

#undef atomic_compare_exchange_weak_explicit
#define atomic_compare_exchange_weak_explicit(tail, seen, claimed, success, failure) \
	counted_exchange(tail, seen, claimed)

#include "runtime/command_queue.c"

uint64_t counted_queue_retries(void)
{
	return retries;
}
