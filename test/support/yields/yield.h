/* SPDX-License-Identifier: MIT */
/* For tests that choose themselves where a thread is interrupted. */
#ifndef YIELDS_YIELD_H
#define YIELDS_YIELD_H

/* If a thread has set it, it is called before each atomic operation of the library's in that
 * thread, which does not give way then. Not from inside itself. */
extern _Thread_local void (*yield_instead)(void);

#endif
