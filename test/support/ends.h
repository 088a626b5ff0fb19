/* SPDX-License-Identifier: MIT */
/* Ends close what a case has opened. Any thread may call the first two functions. */
#ifndef SUPPORT_ENDS_H
#define SUPPORT_ENDS_H

/* Has end(what) called when the case has ended, also if it fails: the last one first, and before
 * what its kind closes. Does nothing outside of a case: a kind closes what it opens. */
void at_end(void (*end)(void *what), void *what);
/* Takes back the last end of `what`, if there is one. */
void at_end_not(void *what);

/* The main function calls these before and after each case. */
void ends_begin(void);
void ends_run(void);

#endif
