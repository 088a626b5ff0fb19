/* SPDX-License-Identifier: MIT */
/*
 * Clients add, replace, move, cancel, claim and acknowledge tasks until their server dies, and
 * record what was acknowledged. A check then compares that with the same server after a restart, or
 * with another server.
 *
 * Each thread has keys of its own, each with a book entry: the task as the last acknowledged call
 * left it, and the call that had no answer, if there is one. Tasks that are due are added once, and
 * then claimed and acknowledged by all threads; the others are due in the year 2100 and later, and
 * changed by their thread alone. So the end of each key is known, except for the open calls.
 */
#ifndef POWERCUT_CLIENTS_H
#define POWERCUT_CLIENTS_H

#include <stdint.h>

#include <timingwheel/redis.h>

#include "support/random.h"

/* These count acknowledged and lost changes over several checks. */
struct losses {
	uint64_t calls;   /* acknowledged calls that changed something */
	uint64_t keys;    /* keys that were checked */
	uint64_t tasks;   /* tasks that were added and are gone */
	uint64_t changes; /* replaced or moved tasks that are as they were before */
	uint64_t cancels; /* cancelled tasks that are there */
	uint64_t acks;    /* acknowledged tasks that are there, and would run again */
};

uint64_t losses_sum(const struct losses *losses);

struct clients;

/* Opens the namespace at the URL, and starts the threads. A failure fails the test. */
struct clients *clients_start(const char *url, const char *name_space, struct random *random);
/* Waits until `calls` more calls were acknowledged. Fails the test if a call fails first. */
void clients_await(struct clients *clients, uint64_t calls);
/* Waits for the threads. Each ends at the first call that fails. */
void clients_join(struct clients *clients);
/* Compares the tasks at the URL with the books, adds to *losses, and frees the clients. */
void clients_check(struct clients *clients, const char *url, struct losses *losses);

#endif
