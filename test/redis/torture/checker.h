/* SPDX-License-Identifier: MIT */
/*
 * Proves from a history that the promises of redis.h were kept. What it calls a fault is one:
 * where the history leaves open what happened first, the better is taken. Its faults:
 *
 *     unread           a line can't be understood, or the inventory at the end is missing
 *     unknown          a task that nobody has added
 *     refused          an add was refused, and the task is there
 *     lost             an accepted task has no end: it was not done, no dead letter, not cancelled,
 *                      not replaced, and is not in Redis
 *     stays            a task is in Redis after the time in which all should have run
 *     comes back       a task runs, or is seen, after its end: its acknowledgement, a cancel, a
 *                      task that took its key; or a run was acknowledged after that
 *     early            a task was claimed before it was due, by the server's clock
 *     token falls      a later run of a key has no higher token
 *     overtaken        the end of a run was accepted though a later one had begun
 *     two at once      a task was claimed while a run had it on lease
 *     on lease         a task was cancelled or moved while a run had it on lease
 *     denied           a call answered that no task has the key, and one had it all the while
 *     from nothing     a call answered that a task has the key, and none had it all the while
 *     paused           a task was claimed after a pause had returned and before it was resumed
 *     over the limit   workers had more tasks on lease than they may, of all or of a group
 *
 * A recurring task is one task from its add to its end; of its occurrences:
 *
 *     skipped          one began though those before it can't all have ended; of missed times more
 *                      were left out than may be
 *     twice            an occurrence began anew, or more of them ended than there were
 *     unplanned        an occurrence was due at none of the task's times
 */
#ifndef TORTURE_CHECKER_H
#define TORTURE_CHECKER_H

#include "story.h"

struct fault {
	const char *name;
	const struct key *key; /* NULL: of none */
	char text[1024];
};

struct faults {
	struct fault *items;
	size_t count;
};

/* All faults of the story; faults_free frees them. */
void story_check(struct story *story, struct faults *faults);
void faults_free(struct faults *faults);
/* Prints the first few, with their key's whole history. */
void faults_print(const struct faults *faults, const struct story *story);

/* For the parts of the checker: notes a fault. Both lines may be NULL. */
void fault_add(struct faults *faults, const char *name, const struct key *key, const char *text,
	       const char *one_line, const char *other_line);

/* When a task was in Redis for certain, and from when on not any more. */
struct life {
	int64_t from; /* it was there from here ... */
	int64_t seen; /* ... to there; INT64_MIN: that is not known */
	int64_t gone; /* it has left for good; INT64_MAX: that is not known */
	const char *seen_line;
	const char *gone_line;
};

struct life life_of(const struct task *task);
struct life life_of_recurring(const struct task *task);
/*
 * Whether Redis has accepted the run's end: told again after a lost answer, it may be another's. In
 * a story that has been checked.
 */
bool run_end_is_sure(const struct run *run);

/* The parts: of one task, and of one key. */
void check_runs(const struct story *story, const struct task *task, const struct life *life,
		struct faults *faults);
void check_recurring(const struct story *story, const struct task *task, const struct life *life,
		     struct faults *faults);
/* Of a run and a later one, by their tokens. */
void check_pair(const struct story *story, const struct run *first, const struct run *second,
		struct faults *faults);
void check_tokens(const struct key *key, struct faults *faults);
void check_answers(const struct story *story, const struct key *key, const struct life *lives,
		   struct faults *faults);
/* And of all. */
void check_pauses(const struct story *story, struct faults *faults);
void check_limits(const struct story *story, struct faults *faults);

#endif
