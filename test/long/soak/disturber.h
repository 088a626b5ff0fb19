/* SPDX-License-Identifier: MIT */
/*
 * The disturber works beside the users of a stage, one thing after the other: storms, drains,
 * walks, forks, limits that fall, and wheels and caches that are created, used, stopped while busy
 * and destroyed.
 */
#ifndef SOAK_DISTURBER_H
#define SOAK_DISTURBER_H

#include "members.h"
#include "user.h"

enum { PASSING_USERS = 2 };

struct disturber {
	struct stage *stage; /* the lasting one */
	struct generator generator;
	/* This has passing wheels. */
	struct stage passing;
	struct user users[PASSING_USERS];
	struct member members[PASSING_USERS];
};

void disturber_open(struct disturber *disturber, struct stage *stage, uint64_t seed);
void disturber_close(struct disturber *disturber);

/* This is a member's function; it runs until the stage is over. */
void disturber_run(void *disturber);

#endif
