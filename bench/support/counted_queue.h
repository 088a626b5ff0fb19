/* SPDX-License-Identifier: MIT */
/*
 * The counted queue is the library's command queue with its retries counted: its own source,
 * compiled a second time with a counter at the exchange that claims a cell. It shares the library's
 * struct and the functions that are not here.
 */
#ifndef BENCH_SUPPORT_COUNTED_QUEUE_H
#define BENCH_SUPPORT_COUNTED_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command_cell;
struct command_queue;

/* These are command_queue_claim() and command_queue_wait(). */
struct command_cell *counted_queue_claim(struct command_queue *queue, uint64_t *position);
struct command_cell *counted_queue_wait(struct command_queue *queue, uint64_t *position);

/* Returns the failed exchanges of the calling thread, in all queues. */
uint64_t counted_queue_retries(void);

#endif
