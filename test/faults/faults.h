/* SPDX-License-Identifier: MIT */
/*
 * Lets an allocation, the creation of a thread, or the making of a descriptor fail. For programs
 * named test_…_faults: they are linked so that the library's calls come here first (see the
 * Makefile). At its end a program says how many failures it has injected.
 */
#ifndef FAULTS_FAULTS_H
#define FAULTS_FAULTS_H

#include <stdbool.h>

/* The allocation of that number, counted from now, fails, and if so asked all that follow it. */
void fail_allocation(long number, bool and_all_after_it);
/* A fault has been met since it was asked for. */
bool fault_was_met(void);
/* From now on nothing fails but a thread. True: a fault has been met since it was asked for. */
bool end_faults(void);

/* The thread of that number, counted from now, can't be created; 0: each can. */
void fail_thread(long number);
/* How many more will be created before one fails, it counted; 0: it has failed. */
long threads_until_fault(void);

/* The descriptor of that number, counted from now, can't be made. */
void fail_descriptor(long number);

/* The calls of that name fail with that error, from now until end_faults. */
void fail_calls(const char *name, int error);

enum fault {
	FAULT_ALLOCATION,
	FAULT_PAIR,
	FAULT_REST,
	FAULT_DESCRIPTOR,
	FAULT_THREAD,
	FAULT_KINDS
};

/* Prepares what it needs, calls begin_faults, then what is to meet the fault, then end_faults. */
typedef void fault_attempt(void *context);
/*
 * Makes the attempt again and again, each time with another failure, and returns how many were met.
 * Of descriptors and threads each one fails once. Of allocations one fails for each call stack that
 * asks for memory, and then a few more that chance chooses; with FAULTS=all in the environment each
 * one does. FAULT_PAIR: two fail, one after the other, for each pair of call stacks. FAULT_REST:
 * from that one on all fail.
 */
long fail_each(enum fault fault, fault_attempt *attempt, void *context);
void begin_faults(void);
/* Returns whether FAULTS=all is in the environment. */
bool faults_are_all(void);

/* From now on each allocation asks whether it is to fail. */
void choose_allocations(bool (*is_to_fail)(void));

/* For a further call that allocates: whether it is its turn to fail. */
bool allocation_fails(void);
/* For a further call that can fail by its name: whether it is to, with errno. */
bool call_fails(const char *name);
/* How many of that kind were injected so far. */
long faults_injected(enum fault fault);
/* One was injected into another process. */
void note_injected(enum fault fault);

#endif
