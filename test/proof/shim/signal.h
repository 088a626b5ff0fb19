/* SPDX-License-Identifier: MIT */
/* Signal masks do nothing here. The system's signal.h brings pthread types of its own. */
#ifndef PROOF_SIGNAL_H
#define PROOF_SIGNAL_H

typedef int sigset_t;

enum { SIG_SETMASK, SIG_BLOCK };
enum { SIGILL = 4, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV = 11, SIGPROF = 27, SIGSYS = 31 };

static inline int sigfillset(sigset_t *set)
{
	*set = ~0;
	return 0;
}

static inline int sigdelset(sigset_t *set, int number)
{
	*set &= ~(1 << (number - 1));
	return 0;
}

static inline int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
	(void)how;
	(void)set;
	if (before)
		*before = 0;
	return 0;
}

#endif
