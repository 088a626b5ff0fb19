/* SPDX-License-Identifier: MIT */
/* This reports what this process holds and has used. Any thread may call it. */
#ifndef BENCH_SUPPORT_PROCESS_H
#define BENCH_SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return bytes of memory that are resident now, and the peak; 0 if the system doesn't report it. */
int64_t process_resident(void);
int64_t process_peak_resident(void);

/*
 * Returns the resident bytes to the page, where process_resident() may leave out some dozens of
 * pages a core. The kernel walks through the page tables: about a millisecond for 256 MiB of 4 KiB
 * pages.
 */
int64_t process_resident_exact(void);

/* Returns the bytes of address space mapped now, touched or not; 0 if they are unknown. */
int64_t process_address_space(void);

/* Returns the page faults without a read from disk so far, of all threads. */
int64_t process_page_faults(void);

/* Returns memory that free() has kept to the system; does nothing without glibc. */
void process_trim_heap(void);
/* Limits the C library to one heap: it may have 8 a core, and each keeps some of its memory. */
void process_use_one_heap(void);

/*
 * Runs `trial` in a child process, so that no trial inherits another's memory, and copies its
 * `result`. Returns false if the child failed, which has printed why on stderr.
 */
bool process_run_trial(void (*trial)(const void *argument, void *result), const void *argument,
		       void *result, size_t result_size);

/* Returns zeroed memory that is resident already. Ends the program when memory is out. */
void *process_allocate(size_t size);

/* Prints why and ends the program with 1. Takes printf's arguments, without a newline. */
__attribute__((format(printf, 1, 2), noreturn)) void process_fail(const char *format, ...);

#endif
