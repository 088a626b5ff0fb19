/* SPDX-License-Identifier: MIT */
/* This is poll() of one descriptor, the timer, without an end; a signal may interrupt it
 * (NUDGES). */
#ifndef PROOF_POLL_H
#define PROOF_POLL_H

#include <assert.h>
#include <stdbool.h>

#include <sys/timerfd.h>

enum { POLLIN = 1 };

struct pollfd {
	int fd;
	short events;
	short revents;
};

typedef unsigned long nfds_t;

static inline int poll(struct pollfd *descriptors, nfds_t count, int timeout)
{
	static unsigned polls; /* one thread polls */
	unsigned ticket = polls++;

	assert(count == 1 && descriptors->fd == PROOF_TIMER && timeout == -1);
	while (!proof_timer_is_readable() && !proof_is_nudged(ticket))
		continue;
	descriptors->revents = proof_timer_is_readable() ? POLLIN : 0;
	return descriptors->revents ? 1 : -1;
}

#endif
