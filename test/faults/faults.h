/* SPDX-License-Identifier: MIT */
/*
 * Lets an allocation or the creation of a thread fail. For programs named test_…_faults: they are
 * linked so that the library's calls come here first (see the Makefile).
 */
#ifndef FAULTS_FAULTS_H
#define FAULTS_FAULTS_H

#include <stdbool.h>

/* The allocation of that number, counted from now, fails, and if so asked all that follow it. */
void fail_allocation(long number, bool and_all_after_it);
/* An allocation has failed since fail_allocation. */
bool fault_was_met(void);
/* From now on none fails. True: one has since fail_allocation. */
bool end_faults(void);

/* The thread of that number, counted from now, can't be created; 0: each can. */
void fail_thread(long number);
/* How many more will be created before one fails, it counted; 0: it has failed. */
long threads_until_fault(void);

#endif
