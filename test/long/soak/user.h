/* SPDX-License-Identifier: MIT */
/*
 * A thread that uses all wheels and caches of a stage at random. Its keys are its own, so that it
 * knows of each when it may run; when the thread ends, the next one goes on with them.
 */
#ifndef SOAK_USER_H
#define SOAK_USER_H

#include "stage.h"
#include "timers.h"

enum { USER_KEYS = 2000, USER_HANDLES = 32, USER_ALARMS = 4, USER_ENTRIES = 1 << 15 };

struct user_alarm;

struct user {
	/* Constant while the thread runs. */
	struct stage *stage;
	uint64_t number;      /* in its keys */
	tw_duration lifetime; /* of each thread, at most */
	/* The thread's. */
	struct generator generator;
	struct book book;
	void *values[PLACES_MOST][USER_KEYS]; /* the last that were accepted */
	struct held held[USER_HANDLES];
	struct user_alarm *alarms[USER_ALARMS];
	struct cache_user cache_user;
};

void user_open(struct user *user, struct stage *stage, uint64_t number, uint64_t seed);
void user_close(struct user *user);

/* For a member. When it returns, the thread's handles are stopped and its alarms destroyed. */
void user_run(void *user);

#endif
