/* SPDX-License-Identifier: MIT */
/* Throws and catches an exception of C++ for tests in C, and leaves functions in other ways. */
#ifndef SUPPORT_EXCEPTIONS_H
#define SUPPORT_EXCEPTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

void exception_throw(void);
/* Calls call(argument). Returns whether the exception came out of it. */
int exception_comes_out_of(void (*call)(void *argument), void *argument);
/* Ends the thread if it is cancelled. */
void end_if_cancelled(void);

enum { THROWS, ENDS_ITS_THREAD, IS_CANCELLED, NO_RETURNS };
/* These functions do not return, each in its way. */
extern void (*const no_returns[NO_RETURNS])(void);
/* C++ writes this when it ends the process, as it finds no handler in a thread of the wheel. */
static const char terminated[] = "terminate called";

#ifdef __cplusplus
}
#endif

#endif
