/* SPDX-License-Identifier: MIT */
/* What this process holds and has used. Any thread. */
#ifndef BENCH_SUPPORT_PROCESS_H
#define BENCH_SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of memory that are resident now, and the most that ever were. 0: the system doesn't say. */
int64_t process_resident(void);
int64_t process_peak_resident(void);

/*
 * The same to the page, where process_resident() may leave out some dozens of pages a core. Has the
 * kernel walk through the page tables: about a millisecond for 256 MiB of 4 KiB pages.
 */
int64_t process_resident_exact(void);

/* Bytes of address space that are mapped now, touched or not. 0: the system doesn't say. */
int64_t process_address_space(void);

/* Page faults without a read from disk so far, of all threads. */
int64_t process_page_faults(void);

/* What free() has kept for later goes back to the system; nothing where that is not glibc's. */
void process_trim_heap(void);
/* The C library may have 8 heaps a core, and each keeps some of what it has had. */
void process_use_one_heap(void);

/* How often a thread of this process gave up its core by itself. */
int64_t process_voluntary_switches(void);

/* Returns how often all threads but the calling one left a core so far, also when preempted. */
int64_t process_switches_of_others(void);

/*
 * Runs `trial` in a child process, so that no trial inherits another's memory, and brings `result`
 * back. False: the child failed (it has said why on stderr).
 */
bool process_run_trial(void (*trial)(const void *argument, void *result), const void *argument,
		       void *result, size_t result_size);

/* Zeroed memory that is resident already. Ends the program when there is none. */
void *process_allocate(size_t size);

/* Says why and ends the program with 1. printf's arguments, no newline. */
__attribute__((format(printf, 1, 2), noreturn)) void process_fail(const char *format, ...);

#endif
