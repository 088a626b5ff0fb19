/* SPDX-License-Identifier: MIT */
/* Throws and catches an exception of C++ for tests in C; see exceptions.cpp. */
#ifndef SUPPORT_EXCEPTIONS_H
#define SUPPORT_EXCEPTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

void exception_throw(void);
/* Calls call(argument). Returns whether the exception came out of it. */
int exception_comes_out_of(void (*call)(void *argument), void *argument);

#ifdef __cplusplus
}
#endif

#endif
