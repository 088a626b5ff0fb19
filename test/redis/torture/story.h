/* SPDX-License-Identifier: MIT */
/*
 * A story is a history in the form that the checker needs: for each key its calls and tasks, for
 * each task its runs, all in the order of their begin. Times are monotonic nanoseconds unless they
 * say otherwise.
 */
#ifndef TORTURE_STORY_H
#define TORTURE_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

struct task;
struct call;

/* This is a list of pointers; the first is items[0]. */
struct list_of {
	void **items;
	size_t count;
	size_t room;
};

/* An actor is a thread that makes one call at a time, or a worker. */
struct actor {
	char *name;
	struct call *open;     /* may be NULL */
	struct list_of breaks; /* intervals in which its connections broke; set by the checker */
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

/* A call has happened, has not happened, or may have happened. */
enum certainty { CERTAIN_YES, CERTAIN_NO, UNCERTAIN };

struct call {
	enum call_kind kind;
	enum add_mode mode;
	struct task *task; /* the task that it added, or that a get has seen; may be NULL */
	size_t index;      /* among its key's calls */
	int64_t delay_ms;
	int64_t begin;
	int64_t begin_real_us;
	int64_t end;        /* INT64_MAX without an answer */
	const char *status; /* NULL without an answer */
	int64_t due_ms;     /* for an answered add or move */
	const char *line;
	const char *answer; /* its line, or NULL */
};

enum run_end { RUN_NO_END, RUN_DONE, RUN_RETRIED, RUN_DEAD, RUN_STALE, RUN_UNCONFIRMED };

struct run {
	struct task *task;
	struct actor *actor; /* the worker */
	uint64_t token;
	unsigned attempt;
	int64_t due_ms; /* when it was due by the server's clock, or 0 if unknown */
	int64_t claim;  /* when it was claimed, by its token */
	/* The server's clock was stepped shortly before, so its token does not give the time; or
	 * its claim may be lost. */
	bool is_unclear;
	/* The master was killed meanwhile, and the new master may not have known the claim. */
	bool may_be_lost;
	int64_t begin;
	int64_t end; /* when the handler ended, or INT64_MAX */
	int64_t end_real_us;
	int64_t report; /* INT64_MAX if there is none */
	enum run_end outcome;
	bool is_exact; /* its outcome is one call's answer */
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
	struct call *added; /* NULL if it is not in the history */
	const char *group;  /* may be NULL */
	int64_t period_ms;  /* 0 if it runs once */
	enum missed missed;
	struct list_of runs;
	struct list_of gets; /* those that have seen it */
	enum rest rest;
	const char *rest_line;
	UT_hash_handle hh;
};

/* This is the harm from a deed to its healing. */
struct deed {
	char *name;
	char *target;
	int64_t begin;
	int64_t end;
	const char *line;
};

/* A worker's connection was broken from the one time on, and it noticed by the other at the
 * latest. */
struct interval {
	int64_t begin;
	int64_t end;
};

/* A limit is the most tasks that may be on lease with workers at a time. */
struct limit {
	const char *group; /* "" means all tasks */
	size_t most;
	size_t reached; /* how many were on lease for certain; set by the checker */
};

struct story {
	char *text;           /* the whole history; its lines end with a NUL */
	char *words;          /* a second copy, whose words end with a NUL */
	struct list_of lines; /* by time */
	struct list_of wrong; /* malformed lines */
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
	const char *mode;   /* may be NULL */
	const char *commit; /* may be NULL */
	bool has_rest;      /* it has the inventory at the end */
};

/* Adds an item. A failure ends the program. */
void list_add(struct list_of *list, const void *item);

/* Adds a line, later than all before it. `words` is a copy of the line and is split into words.
 * Both have to last. Returns false if the line is malformed. */
bool story_add(struct story *story, const char *line, char *words);

/* Reads a text, which is copied. */
void story_read(struct story *story, const char *text);
/* Reads a file. A failure ends the program. */
void story_read_file(struct story *story, const char *path);
void story_free(struct story *story);

enum certainty call_certainty(const struct call *call);
/* These return whether the answer says that the key has no task, or that it has one. */
bool call_says_none(const struct call *call);
bool call_says_some(const struct call *call);

#endif
