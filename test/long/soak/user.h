/* SPDX-License-Identifier: MIT */
/*
 * A user is a thread that uses all wheels and caches of a stage at random. Its keys are its own, so
 * that it knows when each may run; when the thread ends, the next one continues with them.
 */
#ifndef SOAK_USER_H
#define SOAK_USER_H

#include "stage.h"

struct user {
	/* These are constant while the thread runs. */
	struct stage *stage;
	unsigned number;      /* its index among the users of the stage's places */
	tw_duration lifetime; /* the longest lifetime of each thread */
	/* Only the thread uses these. */
	struct generator generator;
	struct cache_user cache_user;
};

void user_open(struct user *user, struct stage *stage, unsigned number, uint64_t seed);
void user_close(struct user *user);

/* This is a member's function. It stops the thread's handles and destroys its alarms. */
void user_run(void *user);

#endif
