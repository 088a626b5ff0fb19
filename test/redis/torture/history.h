/* SPDX-License-Identifier: MIT */
/*
 * A history of a torture has one line for each event. The process where the event happened writes
 * it to a file of its own. A line has these words, separated by blanks:
 *
 *     TIME REAL ACTOR WHAT ...
 *
 * TIME is the machine's monotonic clock in nanoseconds. REAL is the server's clock of day in
 * microseconds: the machine's, plus the shift in the file "clock" of the folder. ACTOR is a thread
 * that makes one call at a time, or a worker's process. WHAT is one of:
 *
 *     call add KEY ID MODE DELAY_MS GROUP   MODE: any, new, replace; each ID is added once. GROUP:
 *                                      the task's, "-" or missing without a group
 *     call every KEY ID DELAY_MS PERIOD_MS MISSED GROUP   a recurring task; MISSED: one, skip, all
 *     call end KEY                     ends a recurring task for good
 *     call move KEY DELAY_MS
 *     call cancel KEY
 *     call get KEY
 *     call pause -                     pauses all tasks
 *     call resume -
 *     answer STATUS VALUE              answers the actor's call: the due time (ms), or a get's ID
 *     begin KEY ID TOKEN ATTEMPT DUE   a run begins; DUE: its due time (ms), if known
 *     end KEY ID TOKEN                 the handler has ended
 *     report KEY ID TOKEN END WAIT_MS  the outcome; END: done, retried, dead, stale, released,
 *                                      unconfirmed
 *     exact KEY ID TOKEN END WAIT_MS   the outcome by one call's answer. A worker's report may come
 *                                      from a retry after a lost answer, where "gone" means yes
 *     deed NAME TARGET                 the nemesis begins to harm a process, its connections, or
 *                                      the server ...
 *     heal NAME TARGET                 ... and ends the harm
 *     rest task KEY ID                 what is in Redis at the end
 *     rest dead KEY ID
 *     rest all                         the end of the inventory
 *     settings SEED SECONDS LEASE_MS MODE LIMIT COMMIT   LIMIT: how many tasks may be on lease with
 *                                      workers (named w...) at a time; 0 or missing: any number.
 *                                      COMMIT: the tested revision
 *     limit GROUP LIMIT                the same limit for a group
 */
#ifndef TORTURE_HISTORY_H
#define TORTURE_HISTORY_H

#include <stdint.h>

/* Opens FOLDER/PROCESS.log, to append, and FOLDER/clock. A failure ends the program. */
void history_open(const char *folder, const char *process);
/* Writes a line with the current time. Any thread may call it; lines of threads do not mix. */
__attribute__((format(printf, 2, 3))) void history_write(const char *actor, const char *format,
							 ...);

/* Puts the server's clock this many microseconds ahead of the machine's from now on. */
void history_shift_clock(int64_t by_us);

#endif
