/* SPDX-License-Identifier: MIT */
/* Words are what cases in words share: steps, their words, times and numbers. */
#ifndef SUPPORT_WORDS_H
#define SUPPORT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/timingwheel.h>

/* Cuts the text at the mark. Returns what is behind it, or NULL. */
char *words_cut(char *text, const char *mark);
/* Returns the text without blanks around it; it ends where they begin. */
char *words_trim(char *text);
/* Cuts the text into at most `room` words, and returns their number. One in quotes may have
 * blanks. */
int words_split(char *text, char *words[], int room);

/* Reads a sum of times such as 1h30m, -1h30m, 4-1ns, 0.5, never-5 or least: a sign is that of the
 * terms after it, too. `unit` is that of a number without one; "ever" is never, too. */
tw_duration words_time(const char *text, tw_duration unit);
/* Appends a time: never, or a number of units with its fraction. The unit is a power of ten. */
void words_write_time(char *text, size_t size, tw_duration time, tw_duration unit);
/* Returns whether the number is the expected one, or in the expected range, such as 3-17. */
bool words_have_number(const char *expected, size_t number);

/* Returns the status without its prefix, TW_ or TW_REDIS_. */
const char *words_of_status(enum tw_status status);

/* Calls run(context, text) for the text with each choice of its alternatives: {x|y} stands for x in
 * a first run and for y in a second one; with several of these, all are combined. */
void words_choose(const char *text, void (*run)(void *context, const char *text), void *context);

#endif
