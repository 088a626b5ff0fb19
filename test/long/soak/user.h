/* SPDX-License-Identifier: MIT */
/*
 * A thread that uses all wheels and caches of a stage at random. Its keys are its own, so that it
 * knows of each when it may run; when the thread ends, the next one goes on with them.
 */
#ifndef SOAK_USER_H
#define SOAK_USER_H

#include "stage.h"

struct user {
	/* Constant while the thread runs. */
	struct stage *stage;
	unsigned number;      /* of its users in the stage's places */
	tw_duration lifetime; /* of each thread, at most */
	/* The thread's. */
	struct generator generator;
	struct cache_user cache_user;
};

void user_open(struct user *user, struct stage *stage, unsigned number, uint64_t seed);
void user_close(struct user *user);

/* For a member. When it returns, the thread's handles are stopped and its alarms destroyed. */
void user_run(void *user);

#endif
