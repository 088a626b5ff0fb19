/* SPDX-License-Identifier: MIT */
/*
 * These are the few looks into a wheel, and the few moments in it, that tests of its promises need
 * and no call gives. Only inside.c knows how a wheel is made.
 */
#ifndef SUPPORT_INSIDE_H
#define SUPPORT_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <timingwheel/timingwheel.h>

/* Returns how many values the wheel owes, which max_pending limits. */
size_t wheel_places_taken(struct tw_wheel *wheel);
bool wheel_owner_sleeps(struct tw_wheel *wheel);
/* Returns the time that a crowd may take before others overtake it. */
tw_duration wheel_patience(const struct tw_wheel *wheel);

/* Sets the manual clock without a turn of the owner. It may go back, as a virtual machine's may. */
void wheel_set_clock(struct tw_wheel *wheel, tw_duration now);
/* Gives a set that is accepted and comes behind the stop. */
void wheel_set_behind_the_stop(struct tw_wheel *wheel, const char *key, void *value,
			       tw_duration deadline);

/* A command is half written between its two calls: nothing behind it is applied meanwhile. It
 * removes a key that no timer has. */
struct half_command {
	struct command_queue *queue;
	struct command_cell *cell;
	uint64_t position;
};

struct half_command half_command_begin(struct tw_wheel *wheel);
void half_command_end(const struct half_command *half);

#endif
