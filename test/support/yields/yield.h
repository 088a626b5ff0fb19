/* SPDX-License-Identifier: MIT */
/* This is for tests that choose where a thread is interrupted. */
#ifndef YIELDS_YIELD_H
#define YIELDS_YIELD_H

/* If a thread has set it, it is called before each atomic operation of the library in that thread,
 * instead of a yield. It is not called from inside itself. */
extern _Thread_local void (*yield_instead)(void);

#endif
