/* SPDX-License-Identifier: MIT */
/*
 * This injects failures of allocations, thread creations and descriptors. It is for programs named
 * test_…_faults, whose linking directs the library's calls here (see the Makefile). At its end a
 * program prints the number of injected failures.
 */
#ifndef FAULTS_FAULTS_H
#define FAULTS_FAULTS_H

#include <stdbool.h>

/* Fails the allocation of that number, counted from now, and optionally all later ones. */
void fail_allocation(long number, bool and_all_after_it);
/* Returns whether a fault has occurred since it was requested. */
bool fault_was_met(void);
/* Ends all faults except those of threads. Returns whether one occurred meanwhile. */
bool end_faults(void);

/* Fails the creation of the thread of that number, counted from now; 0 ends this. */
void fail_thread(long number);
/* Returns how many creations are left, including the failing one; 0 after it failed. */
long threads_until_fault(void);

/* Fails the creation of the descriptor of that number, counted from now. */
void fail_descriptor(long number);

/* Fails the calls of that name with that error, until end_faults. */
void fail_calls(const char *name, int error);

enum fault {
	FAULT_ALLOCATION,
	FAULT_PAIR,
	FAULT_REST,
	FAULT_DESCRIPTOR,
	FAULT_THREAD,
	FAULT_KINDS
};

/* An attempt prepares what it needs, calls begin_faults, then what is tested, then end_faults. */
typedef void fault_attempt(void *context);
/*
 * Repeats the attempt, each time with another failure, and returns the number of failures. Each
 * descriptor and each thread fails once. An allocation fails for each call stack that allocates,
 * and then a few random ones; with FAULTS=all in the environment each one does. With FAULT_PAIR two
 * fail, one after the other, for each pair of call stacks; with FAULT_REST all fail from that one
 * on.
 */
long fail_each(enum fault fault, fault_attempt *attempt, void *context);
void begin_faults(void);
/* Returns whether FAULTS=all is in the environment. */
bool faults_are_all(void);

/* Sets a function that decides for each allocation whether it fails. */
void choose_allocations(bool (*is_to_fail)(void));

/* Returns whether it is this allocation's turn to fail. Other allocating calls use it. */
bool allocation_fails(void);
/* Returns whether this call fails, with errno. Other calls that can fail by name use it. */
bool call_fails(const char *name);
/* Returns the number of injected failures of that kind. */
long faults_injected(enum fault fault);
/* Counts a failure that was injected into another process. */
void note_injected(enum fault fault);

#endif
