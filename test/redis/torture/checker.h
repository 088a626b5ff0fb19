/* SPDX-License-Identifier: MIT */
/*
 * checker.h proves from a history that the promises of redis.h were kept. It reports no false
 * faults: where the history leaves the order open, it assumes the better one. Its faults are:
 *
 *     unread           a line is malformed, or the inventory at the end is missing
 *     unknown          nobody has added the task
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
 *     denied           a call answered that no task has the key, and one had it throughout
 *     from nothing     a call answered that a task has the key, and none had it throughout
 *     paused           a task was claimed after a pause had returned and before it was resumed
 *     over the limit   workers had more tasks on lease than the limit of all or of a group
 *
 * A recurring task is one task from its add to its end. Its occurrences have these faults:
 *
 *     skipped          an occurrence began though those before it can't all have ended, or more
 *                      missed times were left out than allowed
 *     twice            an occurrence began a second time, or more ended than there were
 *     unplanned        an occurrence was due at none of the task's times
 */
#ifndef TORTURE_CHECKER_H
#define TORTURE_CHECKER_H

#include "story.h"

struct fault {
	const char *name;
	const struct key *key; /* may be NULL */
	char text[1024];
};

struct faults {
	struct fault *items;
	size_t count;
};

/* Finds all faults of the story. faults_free() frees them. */
void story_check(struct story *story, struct faults *faults);
void faults_free(struct faults *faults);
/* Prints the first few faults, with their keys' whole histories. */
void faults_print(const struct faults *faults, const struct story *story);

/* Notes a fault, for the parts of the checker. Both lines may be NULL. */
void fault_add(struct faults *faults, const char *name, const struct key *key, const char *text,
	       const char *one_line, const char *other_line);

/* A life is the time in which a task was in Redis for certain, and from when it no longer was. */
struct life {
	int64_t from; /* it existed from here ... */
	int64_t seen; /* ... to here; INT64_MIN means unknown */
	int64_t gone; /* it was removed by then for good; INT64_MAX means unknown */
	const char *seen_line;
	const char *gone_line;
};

struct life life_of(const struct task *task);
struct life life_of_recurring(const struct task *task);
/*
 * Returns whether Redis has certainly accepted the run's end. An acceptance after a retry may be
 * another end's. The story must have been checked.
 */
bool run_end_is_sure(const struct run *run);

/* These check one task, or one key. */
void check_runs(const struct story *story, const struct task *task, const struct life *life,
		struct faults *faults);
void check_recurring(const struct story *story, const struct task *task, const struct life *life,
		     struct faults *faults);
/* Checks a run and one with a higher token. */
void check_pair(const struct story *story, const struct run *first, const struct run *second,
		struct faults *faults);
void check_tokens(const struct key *key, struct faults *faults);
void check_answers(const struct story *story, const struct key *key, const struct life *lives,
		   struct faults *faults);
/* These check all runs. */
void check_pauses(const struct story *story, struct faults *faults);
void check_limits(const struct story *story, struct faults *faults);

#endif
