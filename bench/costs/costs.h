/* SPDX-License-Identifier: MIT */
/*
 * The programs of `make costs` share this: operations that callgrind counts, keys in a fixed order,
 * and a clock and random numbers that are the same in each run.
 *
 * A program repeats each operation `costs_n` times. measure() counts its instructions, cache
 * misses, locked instructions and system calls, and writes them to a dump that carries the
 * operation's name; run.sh sums the dumps up. Without valgrind nothing is counted: run.sh runs the
 * program a second time that way, for the lines that memory_end() prints.
 *
 * The linker puts the functions here in place of clock_gettime(), clock_getres() and getrandom()
 * (--wrap), and around main(). Times, seeds of hashes, jitter and addresses are therefore the same
 * in each run.
 */
#ifndef COSTS_H
#define COSTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <timingwheel/timingwheel.h>

enum { KEY_SIZE = 16, COMMANDS = 512 /* between two turns of the owner */ };

/* costs_n is the repetitions of an operation, a power of two. */
extern unsigned costs_n;
/* There are 4 × costs_n different keys. */
extern char (*keys)[KEY_SIZE + 1];
/* All real clocks show this time. */
extern struct timespec costs_time;
/* The wheel that drive() drives. */
extern struct tw_wheel *wheel;
/* Counts the tasks that count_run() and count_task() ran. */
extern unsigned tasks_ran;
/* The state of draw(). */
extern uint64_t drawn;

void costs_init(void);
/* These two tasks count themselves in tasks_ran. */
void count_run(void *argument);
void count_task(void *context, const struct tw_task *task);
/* Ends the program; `what` says what failed. */
_Noreturn void give_up(const char *what);

static inline void expect(int is_true, const char *what)
{
	if (!is_true)
		give_up(what);
}

#define MUST(call) expect((call) == TW_OK, #call)

/* Returns element i of a permutation of 0 … costs_n - 1. */
static inline unsigned shuffled(unsigned i)
{
	return (i * 40503u + 12345u) & (costs_n - 1);
}

/* Returns a random number below `most`. */
static inline uint32_t draw(uint32_t most)
{
	drawn ^= drawn << 13;
	drawn ^= drawn >> 7;
	drawn ^= drawn << 17;
	return (uint32_t)(((drawn >> 32) * most) >> 32);
}

/* Returns a delay of `least` to `least` + 20 s, in whole milliseconds. */
static inline tw_duration draw_delay(tw_duration least)
{
	return least + (tw_duration)draw(20000) * TW_MILLISECOND;
}

/* ---- Counting ---- */

/* callgrind counts the calling thread between these two. */
void phase_begin(void);
/* Stops counting and writes the counts as phase_write() does. */
void phase_end(const char *name, unsigned count);
/* Writes the counts of all threads, as the cost of `count` operations, under `name`. */
void phase_write(const char *name, unsigned count);

/* Lets the owner apply the commands after each COMMANDS of them. `i` is the last one's number. */
static inline void drive(unsigned i)
{
	if ((i + 1) % COMMANDS == 0)
		tw_poll(wheel, NULL);
}

/*
 * Counts `count` calls of `operation`, which gets their numbers. It is inlined, so that the
 * operation is part of the loop: a row of the record includes the loop, but no call through a
 * pointer.
 */
__attribute__((always_inline)) static inline void measure(const char *name, unsigned count,
							  void (*operation)(unsigned i))
{
	phase_begin();
	for (unsigned i = 0; i < count; i++)
		operation(i);
	phase_end(name, count);
}

/* ---- Memory ---- */

/* Returns the resident bytes of the process. */
int64_t memory_begin(void);
/* Prints how many bytes each of `count` elements has taken since memory_begin() returned
 * `before`. */
void memory_end(const char *name, int64_t before, unsigned count);

#endif
