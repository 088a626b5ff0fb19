/* SPDX-License-Identifier: MIT */
/* Waiting for what other threads do, where no call of the wheel waits for it. */
#ifndef SUPPORT_WAIT_H
#define SUPPORT_WAIT_H

#include <stdbool.h>
#include <stddef.h>
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
/* How many threads the process has. One that was joined may be counted for a moment yet. */
size_t count_threads(void);

/*
 * Lets other threads run, most often in a loop that waits for one of them. Where other programs
 * want the processors, a yield costs a time slice each time: there it is a short sleep.
 */
void give_way(void);

/*
 * How long the threads that there are now have been ready to run and had no processor: nanoseconds,
 * all together. What takes longer than it should by no more than this is the machine's doing. 0
 * where the system does not tell.
 */
int64_t processor_waited(void);

#endif
