/* SPDX-License-Identifier: MIT */
/*
 * The baseline is go-zero's TimingWheel, written down in C. One thread owns the wheel and takes one
 * command at a time from a channel, or a tick; a locked hash map leads from keys to timers; each
 * timer is allocated by itself; a moved timer stays in its old slot until the hand comes round.
 *
 * Differences, all in its favour: no garbage collector, no boxed keys and values, one channel
 * instead of three, and that is buffered.
 */
#ifndef BENCH_SUPPORT_SIMPLE_WHEEL_H
#define BENCH_SUPPORT_SIMPLE_WHEEL_H

#include "keys.h"

#include <stddef.h>
#include <stdint.h>

struct simple_wheel;

/* Creates a wheel whose clock stands still until simple_wheel_start(). Tasks do nothing. Ends the
 * program on failure. */
struct simple_wheel *simple_wheel_create(int64_t interval, size_t slots);

/* Starts the ticks. Returns the time on the stopwatch. Call it once. */
int64_t simple_wheel_start(struct simple_wheel *wheel);

/* Drops pending timers. No other call may be running. */
void simple_wheel_destroy(struct simple_wheel *wheel);

/* Any thread may call these. */
void simple_wheel_set(struct simple_wheel *wheel, const struct random_key *key, int64_t delay);
void simple_wheel_move(struct simple_wheel *wheel, const struct random_key *key, int64_t delay);
void simple_wheel_remove(struct simple_wheel *wheel, const struct random_key *key);

/* Waits until earlier commands have been applied. */
void simple_wheel_flush(struct simple_wheel *wheel);

/* Waits until `count` timers have run since the start. */
void simple_wheel_wait_fired(struct simple_wheel *wheel, int64_t count);

int64_t simple_wheel_pending(struct simple_wheel *wheel);

#endif
