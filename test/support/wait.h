/* SPDX-License-Identifier: MIT */
/* Waiting for what other threads do, where no call of the wheel waits for it. */
#ifndef SUPPORT_WAIT_H
#define SUPPORT_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* Fails the test when the condition does not come true within half a minute. Main thread. */
#define WAIT_UNTIL(condition)                                                    \
	do {                                                                     \
		int64_t waited_since_ = wall_clock();                            \
		while (!(condition)) {                                           \
			if (wall_clock() - waited_since_ > INT64_C(30000000000)) \
				fail_msg("waited in vain for: %s", #condition);  \
			wait_for(1000000);                                       \
		}                                                                \
	} while (0)

/* Nanoseconds. */
int64_t wall_clock(void);
void wait_for(int64_t nanoseconds);

/* Whether the system counts the thread (gettid) among those that wait, not those that run. */
bool thread_is_asleep(int id);

#endif
