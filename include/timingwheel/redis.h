/* SPDX-License-Identifier: MIT */
/*
 * timingwheel on Redis: tasks that any process schedules in Redis and that one of a group of
 * workers runs once they are due, by a function in its process or as an HTTP callback.
 *
 *     struct tw_redis *redis;
 *     tw_redis_open(&redis, &(struct tw_redis_options){.url = "redis://127.0.0.1:6379"}, NULL);
 *     tw_redis_add(redis, &(struct tw_redis_task){.key = "order:7", .key_size = 7,
 *                                                 .delay = 30 * TW_MINUTE,
 *                                                 .url = "http://shop.example/expire"}, NULL);
 *     tw_redis_cancel(redis, "order:7", 7);                       (it was paid)
 *     tw_redis_close(redis);
 *
 * What is guaranteed:
 *  - A task that was accepted runs at least once, never before it is due by the server's clock. It
 *    stays in Redis until a worker has told that it is done; a worker that dies leaves a lease that
 *    ends, and then the task runs again. It lasts as long as the server keeps what it acknowledged
 *    (appendonly, replication: the server's settings).
 *  - At most one task has a key. Adding it again replaces it or is refused, as the caller says.
 *  - Each run has a token higher than those of all earlier runs of the task. A service that keeps
 *    the highest token seen of each key can refuse a run that comes late; Redis itself refuses its
 *    acknowledgement. Tokens are microseconds since 1970, by the server's clock, or a little more:
 *    they go up even where a server crashed and forgot the last of them, unless its clock went
 *    back.
 *  - Nothing depends on the clock of a client or worker: all times are the server's, taken inside
 *    the scripts. A cluster's nodes each have their own; a task keeps to that of its node.
 *
 * Namespaces share nothing. Within one, tasks are divided into shards by their key; a shard is the
 * unit that lies on one node of a cluster and that one script call can touch.
 *
 * Link with -ltimingwheel-redis -ltimingwheel. Tasks are run by a worker (below), or taken by hand
 * with tw_redis_claim and tw_redis_ack.
 */
#ifndef TIMINGWHEEL_REDIS_H
#define TIMINGWHEEL_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest key, in bytes. Keys are bytes; a callback is told them with %XX for what is not
 * printable. */
#define TW_REDIS_KEY_MAX 1024
/* Largest body, in bytes. */
#define TW_REDIS_BODY_MAX ((size_t)256 * 1024)
/* Longest URL of a callback, and all its headers together, in bytes. */
#define TW_REDIS_URL_MAX 8192
#define TW_REDIS_HEADERS_MAX 16384
/* Most headers of a callback. */
#define TW_REDIS_HEADER_COUNT_MAX 64
/* Longest namespace: letters, digits, '.', '_', '-'. */
#define TW_REDIS_NAMESPACE_MAX 64
#define TW_REDIS_SHARDS_MAX 1024
/* Most tasks of one claim, and largest `batch` of a worker. */
#define TW_REDIS_BATCH_MAX 1000
#define TW_REDIS_ATTEMPTS_MAX 1000000
/* Most patterns in each of a worker's lists `allow` and `deny`. */
#define TW_REDIS_TARGETS_MAX 1024
/* Longest delay from now: 100 years. */
#define TW_REDIS_DELAY_MAX (100 * 365 * 24 * TW_HOUR)
/* Longest reason of a failure that is kept, in bytes; longer ones are cut. */
#define TW_REDIS_REASON_MAX 255

/*
 * What the calls here answer beside the statuses of timingwheel.h. They are values of its enum, not
 * names in it, so where one is a `case`, compilers warn unless it is `switch ((int)status)`.
 * tw_status_name() and tw_status_text() know them where this library is linked.
 */
#define TW_REDIS_BAD_DATA ((enum tw_status)64)
#define TW_REDIS_UNREACHABLE ((enum tw_status)65)
#define TW_REDIS_REFUSED ((enum tw_status)66)
#define TW_REDIS_UNFIT ((enum tw_status)67)
#define TW_REDIS_FAILED ((enum tw_status)68)
#define TW_REDIS_OUTCOME_UNKNOWN ((enum tw_status)69)
#define TW_REDIS_STALE ((enum tw_status)70)

/* X(name, text) */
#define TW_REDIS_STATUS_LIST(X)                                             \
	X(TW_REDIS_BAD_DATA, "the task's data can't be accepted")           \
	X(TW_REDIS_UNREACHABLE, "Redis can't be reached")                   \
	X(TW_REDIS_REFUSED, "Redis refused login or permission")            \
	X(TW_REDIS_UNFIT, "this Redis can't be used as it is")              \
	X(TW_REDIS_FAILED, "Redis answered with an error")                  \
	X(TW_REDIS_OUTCOME_UNKNOWN, "the reply was lost: done or not done") \
	X(TW_REDIS_STALE, "another run has taken over")

/* Of these statuses alone: as tw_status_name() and tw_status_text(), which call them. */
TW_API const char *tw_redis_status_name(enum tw_status status);
TW_API const char *tw_redis_status_text(enum tw_status status);

/* What went wrong, in words. Never holds a password. */
struct tw_redis_error {
	enum tw_status status;
	char text[256]; /* one line, no newline at the end; "" where there is nothing to say */
};

/* Where and how. All zero means all defaults. Strings are copied. */
struct tw_redis_options {
	/*
	 * redis://[[user]:password@]host[:port][/database], parts with %XX where need be; rediss://
	 * is the same over TLS. NULL: redis://127.0.0.1:6379. Of a cluster, any node: the others
	 * are asked for; several may be given, host:port,host:port: the first that answers is
	 * taken. Also
	 *   redis+unix://[[user]:password@]/path, of up to 107 bytes; nodes of a cluster that tells
	 *                    of no hosts are looked for on this machine then
	 *   redis+sentinel://[[user]:password@]host:port,host:port/master[/database], and rediss+:
	 *                    the master is asked for at each connecting; both over TLS or neither
	 * and behind all of them ?name=value&name=value: timeout (in seconds: both time limits
	 * below), database, client_name, ca_file, certificate_file, key_file, server_name.
	 */
	const char *url;
	const char *user;     /* NULL: as in url; only with a password */
	const char *password; /* NULL: as in url */
	/* The Sentinels' own login; NULL: none. */
	const char *sentinel_user;
	const char *sentinel_password;
	/* What CLIENT LIST shows; NULL: as in url, or "timingwheel". */
	const char *client_name;
	/*
	 * TLS, 1.2 at least. Files in PEM; NULL: as in url. The server's certificate must come from
	 * an authority of ca_file (NULL: of the system's store), and be for server_name (NULL: for
	 * the host by which it is reached). The certificate, with the chain behind it, and its key
	 * are ours, for servers that ask for one.
	 */
	const char *ca_file;
	const char *certificate_file;
	const char *key_file;
	const char *server_name;
	const char *name_space; /* NULL: "default" */
	/* Shards of the namespace, 1 to TW_REDIS_SHARDS_MAX; 0: 64. Fixed by the first to open
	 * it. */
	unsigned shards;
	/* For one connection, TLS's beginning included; 0: 2 s. The addresses of one name are tried
	 * in their order, and share it: one that is silent has its part of what is left. */
	tw_duration connect_timeout;
	tw_duration reply_timeout; /* for one whole reply; 0: 5 s */
	/* How long a call goes on trying while the server can't be reached, loads, is busy with a
	 * script, is read-only or moves slots, also where it says so as it is connected to. 0: 5 s;
	 * TW_FOREVER: without end; negative: it tries once. tw_redis_open itself tries once. */
	tw_duration patience;
	/* Work even where the server may evict our keys (maxmemory-policy allkeys-…), or won't
	 * tell. */
	bool allow_eviction;
};

struct tw_redis;

/*
 * Connects, logs in, and looks at the server: its version (5 or later), its eviction policy,
 * whether it is a cluster, and the namespace's number of shards. Any number may be open; each has
 * one connection to every node it needs. *error (may be NULL) tells what went wrong. TW_OK;
 * TW_INVALID: a bad option or URL, a file that can't be used, no such database;
 * TW_REDIS_UNREACHABLE: nobody answers there, or the server is not ready: it loads, is busy with a
 * script, has no room for another client; TW_REDIS_REFUSED: login or permission refused;
 * TW_REDIS_UNFIT: the server can't be used: too old, may evict, another number of shards, a
 * certificate that can't be trusted, a Sentinel; TW_REDIS_FAILED: the server answered with an
 * error; TW_NO_MEMORY. On failure *redis is NULL.
 */
TW_API enum tw_status tw_redis_open(struct tw_redis **redis, const struct tw_redis_options *options,
				    struct tw_redis_error *error);

/*
 * Opens another namespace over the connections that `redis` has. What both do goes over these: one
 * to every node, however many namespaces there are, and calls about several of them share round
 * trips. All options but name and shards are those of `redis`, and tw_redis_last_error() is one for
 * all. Neither handle comes before the other: they may be closed in any order. Any thread may call
 * it, as the calls below. name_space and shards are as in the options: NULL and 0 are their
 * defaults. *error (may be NULL) tells what went wrong; on failure *beside is NULL. One round trip,
 * tried for `patience`; a namespace that is new is set up.
 * Returns:
 *  TW_OK: *beside is the caller's, to be closed with tw_redis_close().
 *  TW_INVALID: no redis or no beside, a name that is none, too many shards.
 *  TW_REDIS_UNFIT: the namespace has another number of shards.
 *  TW_REDIS_UNREACHABLE, TW_REDIS_REFUSED, TW_REDIS_FAILED: as the calls below.
 *  TW_NO_MEMORY: nothing was opened.
 */
TW_API enum tw_status tw_redis_open_beside(struct tw_redis *redis, const char *name_space,
					   unsigned shards, struct tw_redis **beside,
					   struct tw_redis_error *error);

/* Frees it, and closes the connections if no other handle has them. NULL is fine. The last call
 * about it: no other may run or follow. */
TW_API void tw_redis_close(struct tw_redis *redis);

/*
 * Every call below that takes a struct tw_redis may be made from any thread; those that are made at
 * the same time share round trips. They reconnect by themselves. A node of a cluster that is slow
 * to reply, or to be connected to, holds up those for other nodes by some 4 ms. Beside those named,
 * each may answer
 *   TW_INVALID               no redis, a bad argument, a key that is empty or too long
 *   TW_REDIS_UNREACHABLE     nothing was sent or nothing was changed; tried for `patience`
 *   TW_REDIS_OUTCOME_UNKNOWN the connection broke after a change was sent and before its reply: it
 *                            may have happened or not. Doing it again is safe. What changes nothing
 *                            is asked again instead.
 *   TW_REDIS_REFUSED         login or permission refused
 *   TW_REDIS_FAILED          the server answered with an error that trying again won't mend
 *   TW_NO_MEMORY
 * None is a cancellation point while it talks to a server: a thread that is cancelled in a call,
 * or in tw_redis_open, goes on to its end, which its time limits and `patience` bound.
 * A fork's child may use what was open before: it gets connections of its own. The calls that other
 * threads were making are the parent's alone.
 */

/* How long the calls that this thread makes go on trying, of any tw_redis, from now on: as the
 * option `patience`; 0: as that option says. Returns what it was. */
TW_API tw_duration tw_redis_set_patience(tw_duration patience);

/* What went wrong in the last call that failed, of any thread; TW_INVALID and TW_NO_MEMORY, which
 * need no words, may leave it as it was. */
TW_API void tw_redis_last_error(struct tw_redis *redis, struct tw_redis_error *error);

/* A round trip to one node (of a cluster: the one of the first shard). *took may be NULL. TW_OK. */
TW_API enum tw_status tw_redis_ping(struct tw_redis *redis, tw_duration *took);

/* Writes the key as a callback is told it: %XX for blanks, % and what is not printable, a NUL at
 * the end. `text` has room for 3 * key_size + 1 bytes. */
TW_API void tw_redis_write_key(const void *key, size_t key_size, char *text);

/* The key's shard, and how many there are. No server is asked. No redis: 0. */
TW_API unsigned tw_redis_shard(const struct tw_redis *redis, const void *key, size_t key_size);
TW_API unsigned tw_redis_shard_count(const struct tw_redis *redis);

enum tw_redis_mode {
	TW_REDIS_ANY,    /* add; a task that has the key is replaced, even one that is running */
	TW_REDIS_NEW,    /* add only if no task has the key: else TW_EXISTS, and nothing changes */
	TW_REDIS_REPLACE /* add only if a task has the key: else TW_NOT_FOUND */
};

enum tw_redis_method {
	TW_REDIS_POST,
	TW_REDIS_GET,
	TW_REDIS_PUT,
	TW_REDIS_PATCH,
	TW_REDIS_DELETE,
	TW_REDIS_HEAD
};

/* "POST" and so on; NULL: it is none. */
TW_API const char *tw_redis_method_name(enum tw_redis_method method);

/* What becomes of the times of a recurring task that pass while an earlier one has not ended. */
enum tw_redis_missed {
	TW_REDIS_MISSED_ONE,  /* it runs once for all of them, at once */
	TW_REDIS_MISSED_SKIP, /* nothing */
	TW_REDIS_MISSED_ALL   /* it runs once for each, one after the other */
};

/* A task to add. All zero but the key: due now, no body, for a handler. */
struct tw_redis_task {
	const void *key;
	size_t key_size; /* bytes, 1 to TW_REDIS_KEY_MAX */
	/* When: `at_ms` if it is not 0, else `delay` from now. Both by the server's clock; the
	 * past, and a delay ≤ 0, are now. Rounded up to a millisecond. */
	int64_t at_ms;     /* milliseconds since 1970 UTC, up to the end of the year 9999; ≥ 0 */
	tw_duration delay; /* nanoseconds, up to TW_REDIS_DELAY_MAX */
	/*
	 * 0: it runs once. Else it recurs: due first as above, where a time that has passed means
	 * the next of its times, and again this long after each time that it was due, 1 ms to
	 * TW_REDIS_DELAY_MAX; what its runs take does not add up. Each occurrence has max_attempts;
	 * the script that ends one, done, dead or cancelled, sets the next in the same step: none
	 * is lost, none comes twice, and there are never two at a time.
	 */
	tw_duration every; /* rounded up to a millisecond */
	enum tw_redis_missed missed;
	enum tw_redis_mode mode;
	/* Runs that it may have until it becomes a dead letter, those that a worker's death ended
	 * among them. 0: 8; up to TW_REDIS_ATTEMPTS_MAX. */
	unsigned max_attempts;
	/* Any bytes; the request's body (JSON, if no header Content-Type says otherwise). */
	const void *body;
	size_t body_size; /* up to TW_REDIS_BODY_MAX */
	/* The callback, http:// or https://; NULL: the task is for a handler. */
	const char *url;
	enum tw_redis_method method;
	const char *const *headers; /* "Name: value" each; may be NULL */
	size_t header_count;
};

/*
 * Adds a task. *due_ms (may be NULL) is when it is due, server's time. A replaced task is gone: if
 * it is running, its run is not stopped, but its acknowledgement is refused and it isn't retried.
 * TW_OK; TW_EXISTS, TW_NOT_FOUND: see tw_redis_mode; TW_REDIS_BAD_DATA: a URL that is not http or
 * https, or has no host or a blank, a header with no name or a control character, or one that the
 * worker sets itself (Tw-…, Content-Length, Host, Transfer-Encoding, Connection, Expect), headers
 * without a URL, a HEAD with a body, text that is not UTF-8, or over a limit. One round trip.
 */
TW_API enum tw_status tw_redis_add(struct tw_redis *redis, const struct tw_redis_task *task,
				   int64_t *due_ms);

/*
 * Adds many, pipelined: up to 256 share a round trip and a script call, in a cluster those of one
 * shard. Tasks of one key are added in their order. each[i] (may be NULL) is what tw_redis_add
 * would answer for tasks[i]; all are tried, whatever happens to others, until the server is gone.
 * TW_OK: all were added; else the status of the first that was not. TW_REDIS_UNFIT: the server has
 * become a cluster since tw_redis_open.
 */
TW_API enum tw_status tw_redis_add_many(struct tw_redis *redis, const struct tw_redis_task *tasks,
					size_t count, enum tw_status *each);

/*
 * Takes the task out: it will not run. Of a recurring task that is this occurrence; the next one
 * follows. TW_OK; TW_NOT_FOUND: no such task, or it is done; TW_RUNNING: a worker has it on lease
 * right now; nothing changes. One round trip.
 */
TW_API enum tw_status tw_redis_cancel(struct tw_redis *redis, const void *key, size_t key_size);

/* As tw_redis_cancel, for good: none follows. TW_RUNNING: a worker has it on lease right now; that
 * run goes on, and is the last. */
TW_API enum tw_status tw_redis_end(struct tw_redis *redis, const void *key, size_t key_size);

/*
 * Gives the task another due time, sooner or later: `at_ms` if it is not 0, else `delay` from now.
 * Its attempts stay as they are. *due_ms may be NULL. TW_OK; TW_NOT_FOUND; TW_RUNNING: a worker has
 * it on lease right now; nothing changes. One round trip.
 */
TW_API enum tw_status tw_redis_move(struct tw_redis *redis, const void *key, size_t key_size,
				    int64_t at_ms, tw_duration delay, int64_t *due_ms);

enum tw_redis_state {
	TW_REDIS_PENDING, /* waits for its due time, or for a worker */
	TW_REDIS_LEASED,  /* a worker has it */
	TW_REDIS_WAITING, /* failed, waits for its next attempt */
	TW_REDIS_DEAD     /* a dead letter */
};

/*
 * A task as it is kept. Pointers in it are valid as long as what gave it says. `task` is filled but
 * for delay and mode; task.at_ms is `due_ms`.
 */
struct tw_redis_info {
	struct tw_redis_task task;
	enum tw_redis_state state;
	/* Milliseconds since 1970, server's time: due, next attempt, end of the lease; of a dead
	 * letter when it died. Something else may have written it: INT64_MAX is inf, or beyond. */
	int64_t due_ms;
	int64_t now_ms;    /* the server's time when it was read */
	unsigned attempts; /* begun so far */
	uint64_t token;    /* of the run that has the lease; else 0 */
	unsigned shard;
	const char *reason; /* of a dead letter: why; else "" */
};

/* Called with each task; false ends it. The pointers are valid during the call, which may call this
 * tw_redis only if the one that lists says so. */
typedef bool tw_redis_each_fn(void *context, const struct tw_redis_info *info);

/*
 * Gives the key's task to `each`, once. `each` may call this tw_redis. TW_OK;
 * TW_NOT_FOUND: no task has the key (a dead letter doesn't count). One round trip.
 */
TW_API enum tw_status tw_redis_get(struct tw_redis *redis, const void *key, size_t key_size,
				   tw_redis_each_fn *each, void *context);

/*
 * Gives every task to `each`, shard by shard, in each by due time. `each` may call this tw_redis.
 * A task that changes meanwhile may be missed or come twice. TW_OK, also when `each` ended it.
 * Costs a round trip for every 100 tasks and for every shard.
 */
TW_API enum tw_status tw_redis_each(struct tw_redis *redis, tw_redis_each_fn *each, void *context);

/* How many there are at the moment; shard by shard, not all of one moment. */
struct tw_redis_stats {
	uint64_t tasks; /* all that will run or are running */
	uint64_t due;   /* of these, due now and on no lease */
	uint64_t
		started; /* of these, with an attempt behind them: leased, or waiting for another */
	uint64_t dead;   /* dead letters */
	uint64_t recurring; /* of the tasks */
	uint64_t paused;    /* shards that are paused: none, or all */
	int64_t next_ms;    /* when the next is to be looked at, server's time; 0: none */
	int64_t now_ms;     /* the server's time */
};

/* TW_OK. Costs one round trip for all shards of a node. */
TW_API enum tw_status tw_redis_get_stats(struct tw_redis *redis, struct tw_redis_stats *stats);

/*
 * Pauses the namespace: once it has returned, nothing of it is leased, by a worker or by
 * tw_redis_claim, until it is resumed, also after a restart of the server. What runs goes on, and
 * leases that end run again after it; adds, moves and cancels go on, too. Resuming tells all
 * workers. TW_OK, also where it was so before; else some shards may be paused and others not: call
 * again. Costs one round trip for all shards of a node.
 */
TW_API enum tw_status tw_redis_pause(struct tw_redis *redis);
TW_API enum tw_status tw_redis_resume(struct tw_redis *redis);

/* How much of a namespace its workers do, all together; 0: no limit. */
struct tw_redis_limits {
	unsigned running;    /* tasks on lease with workers at a time */
	unsigned per_second; /* tasks taken; up to a tenth of that at once */
};

/*
 * Sets the limits; workers hear of it at once, else within 10 s. They are kept exactly, by the
 * clock of the one node that has the namespace's own keys: a worker asks there before it claims,
 * which costs it a round trip, and what a worker had that died is free again within two leases'
 * time. tw_redis_claim is not bound by them. TW_OK; TW_INVALID: no limits given.
 */
TW_API enum tw_status tw_redis_set_limits(struct tw_redis *redis,
					  const struct tw_redis_limits *limits);
/* TW_OK; TW_INVALID: nothing to fill. */
TW_API enum tw_status tw_redis_get_limits(struct tw_redis *redis, struct tw_redis_limits *limits);

/* As tw_redis_each, for dead letters, in no order. They stay until they are retried or dropped, or
 * a worker ends them (dead_max_age). */
TW_API enum tw_status tw_redis_dead_each(struct tw_redis *redis, tw_redis_each_fn *each,
					 void *context);

/*
 * Makes the dead letter a task again, due now, with all its attempts before it. TW_OK;
 * TW_NOT_FOUND: no such dead letter; TW_EXISTS: a task has the key meanwhile, a recurring one, say;
 * nothing changes.
 */
TW_API enum tw_status tw_redis_dead_retry(struct tw_redis *redis, const void *key, size_t key_size);

/*
 * Puts a dead letter there, as tw_redis_dead_each gave it, from this Redis or another one: its
 * task, but for at_ms and delay; due_ms, when it died, from 0 on up to the end of the year 9999;
 * attempts; reason (NULL: none; a longer one than is kept is cut). One that has the key is
 * replaced, if task.mode says nothing else. TW_OK; TW_EXISTS, TW_NOT_FOUND: see tw_redis_mode;
 * TW_REDIS_BAD_DATA: as tw_redis_add. One round trip.
 */
TW_API enum tw_status tw_redis_dead_add(struct tw_redis *redis, const struct tw_redis_info *letter);

/* Deletes the dead letter. TW_OK; TW_NOT_FOUND. */
TW_API enum tw_status tw_redis_dead_drop(struct tw_redis *redis, const void *key, size_t key_size);

/* One run of a task that the caller has on lease. */
struct tw_redis_job {
	const void *key;
	size_t key_size;
	const void *body;
	size_t body_size;
	const char *url; /* NULL: no callback */
	enum tw_redis_method method;
	const char *const *headers;
	size_t header_count;
	unsigned attempt; /* 1 the first time */
	unsigned max_attempts;
	/* Higher than of every earlier run of this task; others' runs may have the same. */
	uint64_t token;
	int64_t due_ms; /* when it was due, or its earlier lease ended; server's time */
	/* How late it was when it was claimed, or, in a handler, when that began: server's time. */
	tw_duration lateness;
	unsigned shard;
};

/* Jobs that were claimed together, and the memory that they point into. */
struct tw_redis_batch;

/*
 * Takes up to `limit` (1 to TW_REDIS_BATCH_MAX) tasks of the shard that are due, the longest due
 * first, and leases them for `lease` (10 ms to 1 day): until then nobody else gets them, and then
 * anybody does. A task that has had all its attempts becomes a dead letter instead. *batch may be
 * empty; free it. *next (may be NULL): time until the shard's next task is to be looked at; 0:
 * there are more now; TW_FOREVER: none. TW_OK; TW_INVALID: no such shard, or out of range. After
 * TW_REDIS_OUTCOME_UNKNOWN what was claimed, if anything, comes back when its lease ends. One round
 * trip.
 */
TW_API enum tw_status tw_redis_claim(struct tw_redis *redis, unsigned shard, size_t limit,
				     tw_duration lease, struct tw_redis_batch **batch,
				     tw_duration *next);

TW_API size_t tw_redis_batch_count(const struct tw_redis_batch *batch);
TW_API const struct tw_redis_job *tw_redis_batch_jobs(const struct tw_redis_batch *batch);
/* Frees the jobs; their leases stay. NULL is fine. */
TW_API void tw_redis_batch_free(struct tw_redis_batch *batch);

/*
 * What follows is about jobs on lease: `count` of them, of any shards. each[i] (may be NULL)
 * becomes jobs[i]'s status: TW_OK; TW_NOT_FOUND: the task is gone: acknowledged, or cancelled after
 * its lease had ended; TW_REDIS_STALE: another run has taken over, or the task was replaced:
 * nothing changes. The call answers TW_OK if the server was asked about all, else the first that
 * went wrong otherwise. One round trip; jobs of one shard that stand side by side share a script
 * call. A lease that has ended and that nobody has taken over is still good.
 */

/* They are done: the tasks are taken out. */
TW_API enum tw_status tw_redis_ack(struct tw_redis *redis, const struct tw_redis_job *jobs,
				   size_t count, enum tw_status *each);

/* Their leases end `lease` from now (10 ms to 1 day). */
TW_API enum tw_status tw_redis_extend(struct tw_redis *redis, const struct tw_redis_job *jobs,
				      size_t count, tw_duration lease, enum tw_status *each);

/*
 * They failed: due again `retry_in` from now (0 to TW_REDIS_DELAY_MAX) if attempts are left,
 * otherwise, or with TW_FOREVER, they become dead letters with the reason (may be NULL).
 */
TW_API enum tw_status tw_redis_fail(struct tw_redis *redis, const struct tw_redis_job *jobs,
				    size_t count, tw_duration retry_in, const char *reason,
				    enum tw_status *each);

/* They were not begun: due again at once, and the attempt does not count. */
TW_API enum tw_status tw_redis_release(struct tw_redis *redis, const struct tw_redis_job *jobs,
				       size_t count, enum tw_status *each);

enum tw_redis_outcome {
	TW_REDIS_DONE,  /* the task is done */
	TW_REDIS_RETRY, /* it failed: again later, if attempts are left */
	TW_REDIS_KILL,  /* it failed for good: make it a dead letter */
	TW_REDIS_SNOOZE /* not now: again later, and this attempt does not count */
};

/* What a handler may say beside; zeroed before the call. */
struct tw_redis_verdict {
	/* With TW_REDIS_RETRY, ≤ 0: the worker's own backoff; with TW_REDIS_SNOOZE, ≤ 0: the
	 * worker's retry_first. */
	tw_duration retry_in;
	char reason[TW_REDIS_REASON_MAX + 1]; /* kept with a dead letter, and told to the hook */
};

/*
 * Runs a task; called on one of the worker's threads, `handlers` at a time. The job's pointers are
 * valid during the call. Its lease is extended as long as it runs. It may use any tw_redis; it must
 * not stop its own worker.
 */
typedef enum tw_redis_outcome tw_redis_handler_fn(void *context, const struct tw_redis_job *job,
						  struct tw_redis_verdict *verdict);

/* What became of a run, for the hook. */
enum tw_redis_end {
	TW_REDIS_END_DONE,     /* acknowledged: the task is out of Redis */
	TW_REDIS_END_RETRIED,  /* failed, waits for its next attempt */
	TW_REDIS_END_DEAD,     /* failed for the last time, a dead letter now */
	TW_REDIS_END_STALE,    /* another run or a new task came between, or it is gone */
	TW_REDIS_END_RELEASED, /* given back, by tw_redis_worker_stop */
	TW_REDIS_END_UNTOLD,   /* ran, but Redis could not be told: it will run again */
	TW_REDIS_END_SNOOZED   /* put off by its handler or receiver; the attempt does not count */
};

struct tw_redis_report {
	const struct tw_redis_job *job; /* job->lateness: when it began */
	enum tw_redis_end end;
	int http_status;      /* 0: no callback, or no answer */
	tw_duration took;     /* the run itself; 0 if it did not begin */
	tw_duration retry_in; /* with TW_REDIS_END_RETRIED and TW_REDIS_END_SNOOZED */
	const char *reason;   /* of a failure; "" where there is none */
};

/* All zero means all defaults, and callbacks by HTTP only. */
struct tw_redis_worker_options {
	void *context; /* given to all functions here */
	/* Runs tasks that have no callback; NULL: such tasks fail, are retried and become dead. */
	tw_redis_handler_fn *handler;
	/* Give tasks with a callback to the handler, too; only with a handler. */
	bool handler_for_callbacks;
	/* Handlers that run at a time (threads, 0: 4), up to 256; callbacks at a time (0: 64), up
	 * to 1024. */
	unsigned handlers;
	unsigned callbacks;
	/* Of these callbacks, for one host and port (0: an eighth, rounded up). Hosts take turns.
	 * Tasks for one that has its share and answers none for 100 ms go back to Redis, due again
	 * a little later, so that they hold up no others. */
	unsigned callbacks_per_host;
	/* How long a task is leased, 100 ms to 1 day; extended at a third of it, while it runs. 0:
	 * 30 s. A dead worker's tasks run again after this time. */
	tw_duration lease;
	/* Most tasks taken by one claim, up to TW_REDIS_BATCH_MAX; 0: 100. A worker holds as many
	 * tasks as it can run at once, and beside them as many as it can begin within some 20 ms,
	 * ten batches at most. */
	unsigned batch;
	/* Wait before the second attempt (0: 1 s), doubled with each, up to retry_max (0: 5 min).
	 * Of each wait a random part, up to half, is left out. */
	tw_duration retry_first;
	tw_duration retry_max;
	/* A callback's time limits: to connect (0: 5 s; up to 1 hour), altogether (0: 30 s; up to 1
	 * day). */
	tw_duration http_connect_timeout;
	tw_duration http_timeout;
	/*
	 * Where callbacks may go. A pattern is a host, "shop.example"; all hosts below one,
	 * "*.shop.example"; a network, "10.0.0.0/8", "fd00::/8"; an address; or "*", every address.
	 * What fits most closely decides: of the patterns that fit the URL's host the longest; if
	 * none does, of the networks that the address lies in the narrowest, and the address is the
	 * one that is really connected to, after the name was looked up. What is both allowed and
	 * denied is denied. What nothing fits is called if nothing at all is allowed, else denied:
	 * so `allow` alone means nothing else, and with an allowed "*" too all but what is denied.
	 * Link-local addresses (169.254.0.0/16, fe80::/10, also as ::ffff:169.254.0.0/112) are
	 * denied, for hosts that are allowed too, unless that network or a part of it is allowed.
	 * 0.0.0.0 and :: are 127.0.0.1 and ::1, as they are to the system.
	 * A callback that is denied is not sent and not tried again: it becomes a dead letter, with
	 * host or address in its reason. Tasks for handlers are none of this.
	 */
	const char *const *allow; /* strings, up to TW_REDIS_TARGETS_MAX; copied */
	size_t allow_count;
	const char *const *deny;
	size_t deny_count;
	/*
	 * How old dead letters may become (0: as they like; up to TW_REDIS_DELAY_MAX), and how many
	 * there may be in the namespace (0: as many as there are), the oldest going first. Each
	 * shard has an equal share of the number, rounded up, and keeps to it exactly. A worker
	 * looks at the letters of all shards when it starts and every minute, a hundred a call, and
	 * at those of a shard where it has made one; several workers do no harm, and the strictest
	 * counts.
	 */
	tw_duration dead_max_age;
	unsigned dead_max_count;
	/* How often a shard is looked at without a hint while hints can't be received, 10 ms to 10
	 * s; 0: 1 s. While they can: every 10 s. */
	tw_duration poll;
	/* NULL: none. Called after each run, when Redis has been told. On the worker's main thread:
	 * it should be short. It may use another tw_redis; it must not stop the worker. */
	void (*report)(void *context, const struct tw_redis_report *report);
	/* NULL: none. Called on the worker's main thread when Redis is lost (the error), and when
	 * it is there again (NULL). */
	void (*connection)(void *context, const struct tw_redis_error *error);
};

struct tw_redis_worker;

/*
 * Starts a worker: a main thread that claims and acknowledges, one for callbacks, and the
 * handlers'. It opens its own connections with `redis_options`. Strings are copied. Callbacks are
 * sent with the task's headers and Tw-Key, Tw-Attempt, Tw-Token and Idempotency-Key (if the task
 * has none of its own): key and token, "order:7 17". One token may arrive twice: where a connection
 * that was kept breaks before the answer's first byte the request is sent again. http and https
 * only, redirects are not followed, and no proxy of the environment is used. Of an answer's body
 * 64 KiB are read; if there is more, its status counts and the connection is closed. 2xx: done.
 * 408, 429 and 5xx, and no answer: tried again later, after Retry-After if that is longer (up to
 * one day). All else: a dead letter. Whatever the status, an answer with the header Tw-Snooze: N
 * puts the task off by N seconds (1 or more), and the attempt does not count. A worker is its
 * process's: a fork's child has none of its threads, and must leave it alone, also its end.
 * Statuses as tw_redis_open; TW_SYSTEM: a thread could not be started. On failure *worker is NULL.
 */
TW_API enum tw_status tw_redis_worker_start(struct tw_redis_worker **worker,
					    const struct tw_redis_options *redis_options,
					    const struct tw_redis_worker_options *options,
					    struct tw_redis_error *error);

/*
 * Ends the worker: it claims nothing more, gives back what it has not begun, and lets what runs end
 * within `grace` (≥ 0; TW_FOREVER: without a limit). Then callbacks are broken off and their
 * tasks given back, to run again. Waits for all that. NULL is fine.
 * Redis has 2 s more to hear of it; what it can't be told will run again (TW_REDIS_END_UNTOLD).
 * TW_OK: all has ended; also when it had before. TW_RUNNING: handlers still run, which can't be
 * broken off; they go on, and so do their leases: call again, or exit. TW_INVALID: called from a
 * handler or hook of this worker, or grace < 0; nothing happens. Any thread, any number of times;
 * of several at a time the shortest grace counts. Then tw_redis_worker_destroy frees it.
 */
TW_API enum tw_status tw_redis_worker_stop(struct tw_redis_worker *worker, tw_duration grace);

/*
 * Frees the worker; stops it with a grace of 0 if that has not been done, and waits for handlers
 * that still run. TW_OK; TW_INVALID: called from a handler or hook of this worker; nothing happens.
 * NULL is fine. The last call: no other may run or follow.
 */
TW_API enum tw_status tw_redis_worker_destroy(struct tw_redis_worker *worker);

/* Times by their lengths. Buckets do not overlap: the sum of all is how many there were. */
#define TW_REDIS_BUCKETS 18
struct tw_redis_histogram {
	/* counts[i]: longer than tw_redis_bucket_bound(i - 1), up to tw_redis_bucket_bound(i). */
	uint64_t counts[TW_REDIS_BUCKETS];
	uint64_t total_us; /* the sum of all times, in microseconds */
};

/* The longest time that the bucket counts: 1 ms in the first, 5 min in the last but one; of the
 * last, and beyond: TW_FOREVER. */
TW_API tw_duration tw_redis_bucket_bound(unsigned bucket);

/* Counts since the start, and states at the moment. */
struct tw_redis_worker_stats {
	uint64_t claimed; /* runs taken on lease */
	uint64_t done;    /* ends, as told to the report hook */
	uint64_t retried;
	uint64_t dead;
	uint64_t stale;
	uint64_t released;
	uint64_t untold;
	uint64_t snoozed;
	uint64_t put_off;  /* given back for a while, since their host did not answer; no ends */
	uint64_t extended; /* leases extended */
	uint64_t buried; /* tasks made dead letters at a claim: their attempts had all been begun */
	uint64_t swept;  /* dead letters deleted, by dead_max_age and dead_max_count */
	uint64_t claims; /* script calls that claim */
	uint64_t hints;  /* hints received */
	uint64_t losses; /* times that Redis was lost */
	/* Times that it was there again; less than losses: it is lost now. */
	uint64_t reconnects;
	/* To Redis; to all nodes that there is something to say to at once. */
	uint64_t round_trips;
	uint64_t held;    /* tasks on lease now: running, waiting to, or to be acknowledged */
	uint64_t running; /* of these, being run */
	/* Of runs that began and came to an end by themselves, once they are counted as an end: how
	 * late they began, and how long they took. */
	struct tw_redis_histogram lateness;
	struct tw_redis_histogram duration;
	/* How long ago the main thread last went round; it does every 10 s, if nothing holds it up:
	 * a server that does not answer, within the time limits, or a hook. */
	tw_duration turned;
};

/* TW_OK; TW_INVALID: no worker or nothing to fill. Any thread, also once it has been stopped. */
TW_API enum tw_status tw_redis_worker_get_stats(struct tw_redis_worker *worker,
						struct tw_redis_worker_stats *stats);

/* Most hosts whose callbacks are counted each for itself, and the longest name of one. */
#define TW_REDIS_HOSTS_MAX 50
#define TW_REDIS_HOST_NAME_MAX 255
/* Classes of answers. */
#define TW_REDIS_ANSWERS 6

/* Callbacks to one host since the start, of the runs that lateness and duration count. */
struct tw_redis_host_stats {
	/* Host and port as in the URL; "": all that have no row of their own. */
	char name[TW_REDIS_HOST_NAME_MAX + 1];
	/* By the answer's status: answers[2]: 200 to 299; the last: 500 and above; answers[0]:
	 * those without an answer. */
	uint64_t answers[TW_REDIS_ANSWERS];
};

/*
 * Fills hosts[] with up to `room` rows (TW_REDIS_HOSTS_MAX + 1 are always enough), and *count with
 * how many there are: first that of all others, then hosts in the order in which the worker met
 * them. A row, once there, stays. TW_OK; TW_INVALID: no worker or nothing to fill. Any thread, also
 * once it has been stopped.
 */
TW_API enum tw_status tw_redis_worker_get_hosts(struct tw_redis_worker *worker,
						struct tw_redis_host_stats *hosts, size_t room,
						size_t *count);

#ifdef __cplusplus
}
#endif

#endif
