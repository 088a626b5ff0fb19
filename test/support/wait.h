/* SPDX-License-Identifier: MIT */
/* These wait for other threads, where no call of the wheel does. */
#ifndef SUPPORT_WAIT_H
#define SUPPORT_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fails the test if the condition is not true within half a minute. Main thread only. */
#define WAIT_UNTIL(condition)                                                    \
	do {                                                                     \
		int64_t waited_since_ = wall_clock();                            \
		while (!(condition)) {                                           \
			if (wall_clock() - waited_since_ > INT64_C(30000000000)) \
				fail_msg("waited in vain for: %s", #condition);  \
			wait_for(1000000);                                       \
		}                                                                \
	} while (0)

/* Returns nanoseconds. */
int64_t wall_clock(void);
void wait_for(int64_t nanoseconds);

/* Returns whether the system counts the thread (gettid) as waiting, not as running. */
bool thread_is_asleep(int id);
/* Returns the number of threads of the process. A joined one may be counted for a moment. */
size_t count_threads(void);

/*
 * Lets other threads run, usually in a loop that waits for one of them. Where other programs want
 * the processors, a yield costs a time slice each time: there it is a short sleep.
 */
void give_way(void);

/*
 * Returns the nanoseconds that the current threads, all together, have been ready to run without a
 * processor. A delay of at most this is due to the machine. Returns 0 where the system does not
 * report it.
 */
int64_t processor_waited(void);

#endif
