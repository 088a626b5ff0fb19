/* SPDX-License-Identifier: MIT */
/*
 * A history as the checker wants it: for each key its calls and tasks, for each task its runs, all
 * in the order of their begin. Times are monotonic nanoseconds if they don't say otherwise.
 */
#ifndef TORTURE_STORY_H
#define TORTURE_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

struct task;
struct call;

/* Pointers; the first is items[0]. */
struct list_of {
	void **items;
	size_t count;
	size_t room;
};

/* A thread that makes one call at a time, or a worker. */
struct actor {
	char *name;
	struct call *open;     /* NULL: none */
	struct list_of breaks; /* intervals in which its connections broke; the checker's */
	UT_hash_handle hh;
};

enum call_kind {
	CALL_ADD,
	CALL_MOVE,
	CALL_CANCEL,
	CALL_GET,
	CALL_END,
	CALL_PAUSE,
	CALL_RESUME,
	CALL_KINDS
};
enum add_mode { ADD_ANY, ADD_NEW, ADD_REPLACE };
enum missed { MISSED_ONE, MISSED_SKIP, MISSED_ALL };

/* What is known of a call: it has happened, it has not, it may have. */
enum certainty { CERTAIN_YES, CERTAIN_NO, UNCERTAIN };

struct call {
	enum call_kind kind;
	enum add_mode mode;
	struct task *task; /* that it added, or that a get has seen; NULL: none */
	size_t index;      /* among its key's */
	int64_t delay_ms;
	int64_t begin;
	int64_t begin_real_us;
	int64_t end;        /* INT64_MAX: there is no answer */
	const char *status; /* NULL: there is no answer */
	int64_t due_ms;     /* of an answered add or move */
	const char *line;
	const char *answer; /* its line; NULL: none */
};

enum run_end { RUN_NO_END, RUN_DONE, RUN_RETRIED, RUN_DEAD, RUN_STALE, RUN_UNTOLD };

struct run {
	struct task *task;
	struct actor *actor; /* the worker */
	uint64_t token;
	unsigned attempt;
	int64_t due_ms; /* when it was due, server's clock; 0: not told */
	int64_t claim;  /* when it was claimed, by its token */
	/* The server's clock was stepped not long before, so its token does not tell when; or its
	 * claim may be lost. */
	bool is_unclear;
	/* The master was killed meanwhile, and the other one may not have known of the claim. */
	bool may_be_lost;
	int64_t begin;
	int64_t end; /* of the handler; INT64_MAX: it did not end */
	int64_t end_real_us;
	int64_t report; /* INT64_MAX: it did not come to that */
	enum run_end outcome;
	bool was_told; /* by one call's answer */
	int64_t wait_ms;
	const char *begin_line;
	const char *end_line;
	const char *report_line;
};

enum rest { REST_NONE, REST_TASK, REST_DEAD };

struct key {
	char *name;
	struct list_of calls;
	struct list_of tasks;
	struct list_of lines;
	UT_hash_handle hh;
};

struct task {
	char *id;
	struct key *key;
	struct call *added; /* NULL: the history does not tell of it */
	const char *group;  /* or NULL */
	int64_t period_ms;  /* 0: it runs once */
	enum missed missed;
	struct list_of runs;
	struct list_of gets; /* that have seen it */
	enum rest rest;
	const char *rest_line;
	UT_hash_handle hh;
};

/* Harm from a deed to its healing. */
struct deed {
	char *name;
	char *target;
	int64_t begin;
	int64_t end;
	const char *line;
};

/* From when on a worker's connection was broken, and when it may have noticed that last. */
struct interval {
	int64_t begin;
	int64_t end;
};

/* A limit says how many tasks may be on lease with workers at a time. */
struct limit {
	const char *group; /* or a tenant with its users; "": all tasks */
	size_t most;
	size_t reached; /* how many were, for certain; the checker's */
};

struct story {
	char *text;           /* the whole history; its lines end with a NUL */
	char *words;          /* the same, and its words do */
	struct list_of lines; /* by time */
	struct list_of wrong; /* lines that can't be understood */
	struct key *keys;     /* hashes */
	struct task *tasks;
	struct actor *actors;
	struct list_of deeds;
	struct list_of calls;
	struct list_of runs;
	int64_t lease_ms;
	struct list_of limits;
	int64_t seed;
	int64_t seconds;
	const char *mode;   /* NULL: not told */
	const char *commit; /* NULL: not told */
	bool has_rest;      /* it tells what was in Redis at the end */
};

/* Adds an item; what should not fail ends the program. */
void list_add(struct list_of *list, const void *item);

/* Adds a line, later than all before it; `words` is a copy of it, which is cut into words. Both
 * have to last. False: it can't be understood. */
bool story_add(struct story *story, const char *line, char *words);

/* Of a text, which is copied. */
void story_read(struct story *story, const char *text);
/* Of a file. What should not fail ends the program. */
void story_read_file(struct story *story, const char *path);
void story_free(struct story *story);

enum certainty call_certainty(const struct call *call);
/* Whether the answer says that the key has no task, or that it has one. */
bool call_says_none(const struct call *call);
bool call_says_some(const struct call *call);

#endif
