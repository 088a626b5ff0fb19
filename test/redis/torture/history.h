/* SPDX-License-Identifier: MIT */
/*
 * The history of a torture: one line for each thing that happened, written by the process to which
 * it happened into a file of its own. A line has these words, apart by blanks:
 *
 *     TIME REAL ACTOR WHAT ...
 *
 * TIME is the machine's monotonic clock in nanoseconds, REAL the server's clock of day in
 * microseconds: the machine's, and what the file "clock" in the folder adds to it. ACTOR is a
 * thread that makes one call at a time, or a worker's process. What follows:
 *
 *     call add KEY ID MODE DELAY_MS GROUP   mode: any, new, replace; each ID is added once. GROUP:
 *                                      the task's; "-" or none: it has none
 *     call every KEY ID DELAY_MS PERIOD_MS MISSED GROUP   a recurring task; MISSED: one, skip, all
 *     call end KEY                     of a recurring task, for good
 *     call move KEY DELAY_MS
 *     call cancel KEY
 *     call get KEY
 *     call pause -                     of all
 *     call resume -
 *     answer STATUS VALUE              of the actor's call: when it is due (ms); of a get the ID
 *     begin KEY ID TOKEN ATTEMPT DUE   a run begins; DUE: when it was due (ms), if it is told
 *     end KEY ID TOKEN                 the handler has ended
 *     report KEY ID TOKEN END WAIT_MS  what became of it; END: done, retried, dead, stale,
 *                                      released, untold
 *     told KEY ID TOKEN END WAIT_MS    the same, where one call's answer says it: a worker tells
 *                                      again when an answer was lost, and takes "gone" for yes
 *     deed NAME TARGET                 the nemesis begins to do harm to a process, to its
 *                                      connections, or to the server ...
 *     heal NAME TARGET                 ... and ends it
 *     rest task KEY ID                 what is in Redis at the end
 *     rest dead KEY ID
 *     rest all                         that was all
 *     settings SEED SECONDS LEASE_MS MODE LIMIT COMMIT   LIMIT: how many may be on lease with
 *                                      workers at a time (those named w...); 0 or none: any
 *                                      number. COMMIT: what was tortured
 *     limit GROUP LIMIT                the same limit for a group or a tenant with its users
 */
#ifndef TORTURE_HISTORY_H
#define TORTURE_HISTORY_H

#include <stdint.h>

/* Opens FOLDER/PROCESS.log, to append, and FOLDER/clock. What should not fail ends the program. */
void history_open(const char *folder, const char *process);
/* Writes a line of this moment. Any thread; lines of threads don't mix. */
__attribute__((format(printf, 2, 3))) void history_write(const char *actor, const char *format,
							 ...);

/* From now on the server's clock is so many microseconds ahead of the machine's. */
void history_shift_clock(int64_t by_us);

#endif
