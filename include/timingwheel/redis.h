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
/* Most namespaces of one worker, and the highest weight of one. */
#define TW_REDIS_SOURCES_MAX 64
#define TW_REDIS_WEIGHT_MAX 1000
/* Longest delay from now: 100 years. */
#define TW_REDIS_DELAY_MAX (100 * 365 * 24 * TW_HOUR)
/* Longest reason of a failure that is kept, in bytes; longer ones are cut. */
#define TW_REDIS_REASON_MAX 255
/* Longest cron expression of a task, in bytes. */
#define TW_REDIS_CRON_MAX 255

/*
 * What the calls here return beside the statuses of timingwheel.h. They are values of its enum, not
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

/*
 * Tell the name and the text of a status of the list above. tw_status_name() and tw_status_text()
 * call them.
 *
 * Any thread.
 *
 * Returns: a static string; of any other status "TW_UNKNOWN" and "unknown status".
 */
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
 * whether it is a cluster, and the namespace's number of shards.
 *
 * `options` may be NULL. Any number may be open; each has one connection to every node it needs.
 * Tries once, whatever `patience` says. *error (may be NULL) tells what went wrong. The caller owns
 * *redis, until tw_redis_close(); on failure it is NULL. Any thread. A namespace that is new is set
 * up.
 *
 * Returns:
 *   TW_OK                     *redis is open
 *   TW_INVALID                nowhere to put it, a bad option or URL, a file that can't be used, or
 *                             the server has no such database
 *   TW_REDIS_UNREACHABLE      no server answers there, or it is not ready: it loads, is busy with a
 *                             script, or has no room for another client
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server can't be used: it is too old, may evict tasks, has another
 *                             number of shards, a certificate that can't be trusted, or is a
 *                             Sentinel
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
 */
TW_API enum tw_status tw_redis_open(struct tw_redis **redis, const struct tw_redis_options *options,
				    struct tw_redis_error *error);

/*
 * Opens another namespace over the connections that `redis` has.
 *
 * What both do goes over these: one to every node, however many namespaces there are, and calls
 * about several of them share round trips. All options but name and shards are those of `redis`,
 * and tw_redis_last_error() is one for all. Neither handle comes before the other: they may be
 * closed in any order. `name_space` and `shards` are as in the options: NULL and 0 are their
 * defaults. *error (may be NULL) tells what went wrong. The caller owns *beside, until
 * tw_redis_close(); on failure it is NULL. Any thread. One round trip, tried for `patience`; a
 * namespace that is new is set up.
 *
 * Returns:
 *   TW_OK                     *beside is open
 *   TW_INVALID                no redis, nowhere to put it, a name that is none, or too many shards
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the namespace has another number of shards, or the server that is
 *                             there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
 */
TW_API enum tw_status tw_redis_open_beside(struct tw_redis *redis, const char *name_space,
					   unsigned shards, struct tw_redis **beside,
					   struct tw_redis_error *error);

/*
 * Frees the handle, and closes the connections if no other handle has them.
 *
 * NULL is fine. The last call about it: no other may run or follow.
 */
TW_API void tw_redis_close(struct tw_redis *redis);

/*
 * What the calls below share.
 *
 * Every call that takes a struct tw_redis may be made from any thread; those that are made at the
 * same time share round trips. They reconnect by themselves, for as long as `patience` says. A node
 * of a cluster that is slow to reply, or to be connected to, holds up those for other nodes by some
 * 4 ms.
 *
 * TW_REDIS_OUTCOME_UNKNOWN: the connection broke after a change was sent and before its reply, so
 * it may have happened or not. Doing it again is safe. What changes nothing, or may be done twice,
 * is asked again instead. TW_REDIS_FAILED: an error that trying again won't mend.
 *
 * A server that is connected to anew is looked at as by tw_redis_open(), so that each call may find
 * it unfit; TW_INVALID is also that it has no such database.
 *
 * None is a cancellation point while it talks to a server: a thread that is cancelled in a call, or
 * in tw_redis_open(), goes on to its end, which its time limits and `patience` bound. A fork's
 * child may use what was open before: it gets connections of its own. The calls that other threads
 * were making are the parent's alone.
 */

/*
 * Sets how long the calls that this thread makes go on trying, of any tw_redis, from now on.
 *
 * `patience` is as the option of that name; 0: as that option says.
 *
 * Returns: what it was.
 */
TW_API tw_duration tw_redis_set_patience(tw_duration patience);

/*
 * Tells what went wrong in the last call that failed, of any thread.
 *
 * TW_INVALID and TW_NO_MEMORY, which need no words, may leave it as it was. Without a redis or an
 * error to fill nothing happens. Any thread.
 */
TW_API void tw_redis_last_error(struct tw_redis *redis, struct tw_redis_error *error);

/*
 * Makes a round trip to one node; of a cluster, to that of the first shard.
 *
 * *took (may be NULL) is how long it took, in nanoseconds.
 *
 * Returns:
 *   TW_OK                     the server has answered
 *   TW_INVALID                no redis
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
 */
TW_API enum tw_status tw_redis_ping(struct tw_redis *redis, tw_duration *took);

/*
 * Writes the key as a callback is told it: %XX for blanks, % and what is not printable, and a NUL
 * at the end.
 *
 * `text` has room for 3 * key_size + 1 bytes. Any thread.
 */
TW_API void tw_redis_write_key(const void *key, size_t key_size, char *text);

/*
 * Tell the key's shard, and how many shards there are.
 *
 * No server is asked. Any thread.
 *
 * Returns: the number; without a redis 0.
 */
TW_API unsigned tw_redis_shard(const struct tw_redis *redis, const void *key, size_t key_size);
TW_API unsigned tw_redis_shard_count(const struct tw_redis *redis);

/* What an addition does where a task has the key already. */
enum tw_redis_mode {
	TW_REDIS_ANY,    /* add; a task that has the key is replaced, even one that is running */
	TW_REDIS_NEW,    /* add only if no task has the key: else TW_EXISTS, and nothing changes */
	TW_REDIS_REPLACE /* add only if a task has the key: else TW_NOT_FOUND */
};

/* How a callback is asked for: the method of its HTTP request. */
enum tw_redis_method {
	TW_REDIS_POST,
	TW_REDIS_GET,
	TW_REDIS_PUT,
	TW_REDIS_PATCH,
	TW_REDIS_DELETE,
	TW_REDIS_HEAD
};

/*
 * Tells the method's name.
 *
 * Returns: a static string, "POST" and so on; NULL: there is no such method.
 */
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
	/*
	 * NULL, or it recurs by the calendar: at the times that this names (timingwheel/cron.h), up
	 * to TW_REDIS_CRON_MAX bytes, `every` being 0; due first at the first of them that is not
	 * before now and not before the time above. All else as with `every`. Where no time above
	 * is given, and a task with this key recurs so already, it keeps its due time, its attempts
	 * and the run that it may have; only body and callback are replaced.
	 * The times are worked out by the workers, as a task is claimed, each by its own files of
	 * zones.
	 */
	const char *cron;
	const char *zone; /* an IANA time zone, "Europe/Berlin"; NULL: UTC */
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
 * Adds a task.
 *
 * All of it is copied. *due_ms (may be NULL) is when it is due, server's time. A replaced task is
 * gone: if it is running, its run is not stopped, but its acknowledgement is refused and it isn't
 * retried. One round trip; with a cron expression two.
 *
 * Returns:
 *   TW_OK                     the task is there
 *   TW_EXISTS                 a task has the key, which TW_REDIS_NEW does not replace; nothing has
 *                             changed
 *   TW_NOT_FOUND              no task has the key, for TW_REDIS_REPLACE to replace
 *   TW_INVALID                no redis or task, a key that is empty or too long, or a field out of
 *                             range
 *   TW_REDIS_BAD_DATA         a URL that is not http or https, has no host or a blank; a header
 *                             without a name, with a control character, or one that the worker sets
 *                             itself (Tw-…, Content-Length, Host, Transfer-Encoding, Connection,
 *                             Expect); headers without a URL; a HEAD with a body; a cron expression
 *                             or a zone that is none, or names no time to come; text that is not
 *                             UTF-8; something over a limit
 *   TW_SYSTEM                 the file of the zone could not be read
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error, as where its memory is full
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_add(struct tw_redis *redis, const struct tw_redis_task *task,
				   int64_t *due_ms);

/*
 * Adds many tasks, pipelined.
 *
 * Up to 256 share a round trip and a script call, in a cluster those of one shard. Tasks of one key
 * are added in their order. All are tried, whatever happens to others, until the server is gone.
 *
 * each[i] (may be NULL) is what tw_redis_add() would return for tasks[i]. It is not filled where
 * the call returns before the first task is tried: without a redis or tasks, or without memory.
 *
 * Returns:
 *   TW_OK                     all were added
 *   TW_EXISTS                 of the first that was not added: a task has the key
 *   TW_NOT_FOUND              of the first that was not added: no task has the key
 *   TW_INVALID                no redis or no tasks; of the first that was not added: as
 *                             tw_redis_add()
 *   TW_REDIS_BAD_DATA         of the first that was not added: as tw_redis_add()
 *   TW_SYSTEM                 of the first that was not added: as tw_redis_add()
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; the first that was not
 *                             added, and those after it that had not been sent, have not changed
 *                             anything
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: some are added, or none; adding them again is
 *                             safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used, or has become a cluster
 *                             since tw_redis_open()
 *   TW_REDIS_FAILED           the server answered with an error, as where its memory is full
 *   TW_NO_MEMORY              out of memory
 */
TW_API enum tw_status tw_redis_add_many(struct tw_redis *redis, const struct tw_redis_task *tasks,
					size_t count, enum tw_status *each);

/*
 * Takes the task out: it will not run.
 *
 * Of a recurring task that is this occurrence; the next one follows. One round trip.
 *
 * Returns:
 *   TW_OK                     it will not run
 *   TW_NOT_FOUND              there is no such task, or it is done
 *   TW_RUNNING                a worker has it on lease right now; nothing has changed
 *   TW_INVALID                no redis, or a key that is empty or too long
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_cancel(struct tw_redis *redis, const void *key, size_t key_size);

/*
 * Takes the task out for good: of a recurring task no occurrence follows.
 *
 * One round trip.
 *
 * Returns:
 *   TW_OK                     it will not run any more
 *   TW_NOT_FOUND              there is no such task, or it is done
 *   TW_RUNNING                a worker has it on lease right now; that run goes on, and is the last
 *   TW_INVALID                no redis, or a key that is empty or too long
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_end(struct tw_redis *redis, const void *key, size_t key_size);

/*
 * Gives the task another due time, sooner or later: `at_ms` if it is not 0, else `delay` from now.
 *
 * Both are as in struct tw_redis_task. Its attempts stay as they are. *due_ms (may be NULL) is when
 * it is due now, server's time. One round trip.
 *
 * Returns:
 *   TW_OK                     it is due then
 *   TW_NOT_FOUND              there is no such task, or it is done
 *   TW_RUNNING                a worker has it on lease right now; nothing has changed
 *   TW_INVALID                no redis, a key that is empty or too long, or a time out of range
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error, as where its memory is full
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_move(struct tw_redis *redis, const void *key, size_t key_size,
				    int64_t at_ms, tw_duration delay, int64_t *due_ms);

/* Where a task stands. */
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

/*
 * Called with each task.
 *
 * The pointers are valid during the call, which may call this tw_redis only if the one that lists
 * says so.
 *
 * Returns: false ends the listing.
 */
typedef bool tw_redis_each_fn(void *context, const struct tw_redis_info *info);

/*
 * Gives the key's task to `each`, once.
 *
 * `each` may call this tw_redis. A dead letter is no task. One round trip.
 *
 * Returns:
 *   TW_OK                     `each` was called
 *   TW_NOT_FOUND              no task has the key
 *   TW_INVALID                no redis or no `each`, or a key that is empty or too long
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
 */
TW_API enum tw_status tw_redis_get(struct tw_redis *redis, const void *key, size_t key_size,
				   tw_redis_each_fn *each, void *context);

/*
 * Gives every task to `each`, shard by shard, in each by due time.
 *
 * `each` may call this tw_redis. A task that changes meanwhile may be missed or come twice. Costs a
 * round trip for every 100 tasks and for every shard.
 *
 * Returns:
 *   TW_OK                     all were given, or `each` ended it
 *   TW_INVALID                no redis or no `each`
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
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
	/* Ever added, also those that replaced another; one that recurs counts once. */
	uint64_t added;
	int64_t next_ms; /* when the next is to be looked at, server's time; 0: none */
	int64_t now_ms;  /* the server's time */
};

/*
 * Counts what there is in the namespace.
 *
 * On failure *stats has the counts of some shards, or of none. One round trip for all shards of a
 * node.
 *
 * Returns:
 *   TW_OK                     *stats is filled
 *   TW_INVALID                no redis, or nothing to fill
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
 */
TW_API enum tw_status tw_redis_get_stats(struct tw_redis *redis, struct tw_redis_stats *stats);

/*
 * Pause and resume the namespace: once a pause has returned, nothing of it is leased, by a worker
 * or by tw_redis_claim(), until it is resumed, also after a restart of the server.
 *
 * What runs goes on, and leases that end run again after it; adds, moves and cancels go on, too.
 * Resuming tells all workers. Where it fails, some shards may be paused and others not: call again.
 * One round trip for all shards of a node.
 *
 * Returns:
 *   TW_OK                     it is so, also where it was so before
 *   TW_INVALID                no redis
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; it may have been done
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_pause(struct tw_redis *redis);
TW_API enum tw_status tw_redis_resume(struct tw_redis *redis);

/* How much of a namespace its workers do, all together; 0: no limit. */
struct tw_redis_limits {
	unsigned running;    /* tasks on lease with workers at a time */
	unsigned per_second; /* tasks taken; up to a tenth of that at once */
};

/*
 * Sets how much the namespace's workers do, all together.
 *
 * Workers hear of it at once, else within 10 s. The limits are kept exactly, by the clock of the
 * one node that has the namespace's own keys: a worker asks there before it claims, which costs it
 * a round trip, and what a worker had that died is free again within two leases' time.
 * tw_redis_claim() is not bound by them. One round trip.
 *
 * Returns:
 *   TW_OK                     they hold
 *   TW_INVALID                no redis or no limits
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; it may have been done
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_set_limits(struct tw_redis *redis,
					  const struct tw_redis_limits *limits);
/*
 * Tells the namespace's limits.
 *
 * One round trip.
 *
 * Returns:
 *   TW_OK                     *limits is filled
 *   TW_INVALID                no redis, or nothing to fill
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
 */
TW_API enum tw_status tw_redis_get_limits(struct tw_redis *redis, struct tw_redis_limits *limits);

/* Most workers of a namespace that are told of, and the longest name of one. */
#define TW_REDIS_WORKERS_MAX 1000
#define TW_REDIS_WORKER_NAME_MAX 255

/* A worker, as it told of itself last; it counts what it does in the namespace. */
struct tw_redis_worker_info {
	char name[TW_REDIS_WORKER_NAME_MAX + 1]; /* host and process: "shop-3:4711" */
	tw_duration up;                          /* since its start */
	tw_duration told;                        /* how long ago it told it */
	uint64_t running;
	uint64_t held; /* on lease, those that run among them */
	uint64_t done;
	uint64_t retried;
	uint64_t dead;
};

/*
 * Lists the workers of the namespace, those heard of last first.
 *
 * Fills workers[] with up to `room` rows, and *count with how many workers there are, up to
 * TW_REDIS_WORKERS_MAX. A worker tells that it is there every 5 s, or 10 s while it is idle, and is
 * forgotten after 30 s in which it has not. Costs one round trip.
 *
 * Returns:
 *   TW_OK                     *count is filled
 *   TW_INVALID                no redis, or nothing to fill
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              nothing was asked
 */
TW_API enum tw_status tw_redis_get_workers(struct tw_redis *redis,
					   struct tw_redis_worker_info *workers, size_t room,
					   size_t *count);

/*
 * Gives every dead letter to `each`, shard by shard, in no order.
 *
 * `each` may call this tw_redis. A letter that changes meanwhile may be missed or come twice.
 * Letters stay until they are retried or dropped, or a worker ends them (dead_max_age). Costs a
 * round trip for every 100 letters or so and for every shard.
 *
 * Returns:
 *   TW_OK                     all were given, or `each` ended it
 *   TW_INVALID                no redis or no `each`
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
 */
TW_API enum tw_status tw_redis_dead_each(struct tw_redis *redis, tw_redis_each_fn *each,
					 void *context);

/*
 * Makes the dead letter a task again, due now, with all its attempts before it.
 *
 * One round trip.
 *
 * Returns:
 *   TW_OK                     it is a task
 *   TW_NOT_FOUND              there is no such dead letter
 *   TW_EXISTS                 a task has the key meanwhile, a recurring one, say; nothing has
 *                             changed
 *   TW_INVALID                no redis, or a key that is empty or too long
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error, as where its memory is full
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_dead_retry(struct tw_redis *redis, const void *key, size_t key_size);

/*
 * Puts a dead letter there, as tw_redis_dead_each() gave it, from this Redis or another one.
 *
 * What counts of *letter is its task, but for at_ms and delay; due_ms, when it died, from 0 on up
 * to the end of the year 9999; attempts; reason (NULL: none; a longer one than is kept is cut). One
 * that has the key is replaced, if task.mode says nothing else. One round trip.
 *
 * Returns:
 *   TW_OK                     it is there
 *   TW_EXISTS                 a dead letter has the key, which TW_REDIS_NEW does not replace
 *   TW_NOT_FOUND              no dead letter has the key, for TW_REDIS_REPLACE to replace
 *   TW_INVALID                no redis or letter, a key that is empty or too long, or a field out
 *                             of range
 *   TW_REDIS_BAD_DATA         the task's data, as of tw_redis_add()
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error, as where its memory is full
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_dead_add(struct tw_redis *redis, const struct tw_redis_info *letter);

/*
 * Deletes the dead letter.
 *
 * One round trip.
 *
 * Returns:
 *   TW_OK                     it is gone
 *   TW_NOT_FOUND              there is no such dead letter
 *   TW_INVALID                no redis, or a key that is empty or too long
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
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
	const char *name_space; /* the task's */
};

/* Jobs that were claimed together, and the memory that they point into, but for their namespace,
 * which is the handle's. */
struct tw_redis_batch;

/*
 * Takes up to `limit` tasks of the shard that are due, the longest due first, and leases them for
 * `lease`: until then no other claim gets them, and then any does.
 *
 * `limit` is 1 to TW_REDIS_BATCH_MAX, `lease` 10 ms to 1 day. A task that has had all its attempts
 * becomes a dead letter instead. *batch may be empty; the caller owns it, until
 * tw_redis_batch_free(); on failure it is NULL. *next (may be NULL) is the time until the shard's
 * next task is to be looked at; 0: there are more now; TW_FOREVER: none. Where the call fails, what
 * was claimed, if anything, comes back when its lease ends. One round trip; another one where it
 * meets tasks that recur by the calendar and lack their next time.
 *
 * Returns:
 *   TW_OK                     *batch has what was due
 *   TW_INVALID                no redis, no batch, no such shard, or out of range
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: tasks may be on lease
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory: tasks may be on lease
 */
TW_API enum tw_status tw_redis_claim(struct tw_redis *redis, unsigned shard, size_t limit,
				     tw_duration lease, struct tw_redis_batch **batch,
				     tw_duration *next);

/*
 * Tell how many jobs the batch has, and where they are.
 *
 * The jobs are the batch's.
 *
 * Returns: their number, and the first; without a batch 0 and NULL.
 */
TW_API size_t tw_redis_batch_count(const struct tw_redis_batch *batch);
TW_API const struct tw_redis_job *tw_redis_batch_jobs(const struct tw_redis_batch *batch);
/*
 * Frees the batch with its jobs; their leases stay.
 *
 * NULL is fine.
 */
TW_API void tw_redis_batch_free(struct tw_redis_batch *batch);

/*
 * What the calls about jobs on lease share. They take `count` jobs, of any shards. each[i] (may be
 * NULL) becomes the status of jobs[i]:
 *   TW_OK            it is done
 *   TW_NOT_FOUND     the task is gone: acknowledged, or cancelled after its lease had ended
 *   TW_REDIS_STALE   another run has taken over, or the task was replaced: nothing has changed
 *
 * and where the server could not be asked about it, why not; it may not be filled where the call
 * returns TW_INVALID or TW_NO_MEMORY. The call returns TW_OK if the server was asked about all,
 * else what went wrong first. A lease that has ended and that no other run has taken over is still
 * good. One round trip; jobs of one shard that stand side by side share a script call.
 */

/*
 * Acknowledges the jobs: they are done, and their tasks are taken out.
 *
 * Of a recurring task the next occurrence follows.
 *
 * Returns:
 *   TW_OK                     the server was asked about all; each[] tells of each job
 *   TW_INVALID                no redis, no jobs, or a job of no such shard
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_ack(struct tw_redis *redis, const struct tw_redis_job *jobs,
				   size_t count, enum tw_status *each);

/*
 * Extends the jobs' leases, which end `lease` from now.
 *
 * `lease` is 10 ms to 1 day; it may be shorter than what is left.
 *
 * Returns:
 *   TW_OK                     the server was asked about all; each[] tells of each job
 *   TW_INVALID                as of tw_redis_ack(), or a lease out of range
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; it may have been done
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_extend(struct tw_redis *redis, const struct tw_redis_job *jobs,
				      size_t count, tw_duration lease, enum tw_status *each);

/*
 * Tells that the jobs failed: due again `retry_in` from now if attempts are left, otherwise, or
 * with TW_FOREVER, they become dead letters with the reason.
 *
 * `retry_in` is 0 to TW_REDIS_DELAY_MAX, or TW_FOREVER; `reason` may be NULL.
 *
 * Returns:
 *   TW_OK                     the server was asked about all; each[] tells of each job
 *   TW_INVALID                as of tw_redis_ack(), or retry_in out of range
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_fail(struct tw_redis *redis, const struct tw_redis_job *jobs,
				    size_t count, tw_duration retry_in, const char *reason,
				    enum tw_status *each);

/*
 * Gives back the jobs, which were not begun: due again at once, and the attempt does not count.
 *
 * Returns:
 *   TW_OK                     the server was asked about all; each[] tells of each job
 *   TW_INVALID                no redis, no jobs, or a job of no such shard
 *   TW_REDIS_UNREACHABLE      the server was not there within `patience`; nothing has changed
 *   TW_REDIS_OUTCOME_UNKNOWN  the reply was lost: done or not done; doing it again is safe
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server that is there now can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory; nothing has changed
 */
TW_API enum tw_status tw_redis_release(struct tw_redis *redis, const struct tw_redis_job *jobs,
				       size_t count, enum tw_status *each);

/* What became of a task, as its handler says. */
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
 * Runs a task.
 *
 * Called on one of the worker's threads, `handlers` at a time. The job's pointers are valid during
 * the call. Its lease is extended as long as it runs. It may use any tw_redis; it must not stop its
 * own worker.
 *
 * Returns: what became of the task.
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

/* A namespace that a worker serves. */
struct tw_redis_source {
	const char *name_space; /* NULL: "default"; copied */
	unsigned shards;        /* 0: as in the options of Redis */
	unsigned weight;        /* 1 to TW_REDIS_WEIGHT_MAX; 0: 1 */
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
	/*
	 * Namespaces to serve, up to TW_REDIS_SOURCES_MAX, each named once; none: that of the
	 * options of Redis, which is not used otherwise. They share the worker's threads and
	 * connections, which are as many as for one namespace. While there is more due than the
	 * worker has room for, each has a part of what it claims: its weight among those that have
	 * something due. What has nothing due, is paused, or is at a limit of its namespace leaves
	 * its part to the others, and saves nothing up. All other options are for each namespace
	 * alike: dead_max_count, say, is the number in each.
	 */
	const struct tw_redis_source *sources; /* copied */
	size_t source_count;
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
 * handlers'.
 *
 * It opens its own connections with `redis_options` (NULL: the defaults); `options` may be NULL,
 * too. Strings are copied. What tw_redis_open() looks at is looked at for each of its namespaces.
 * *error (may be NULL) tells what went wrong. The caller owns *worker, until
 * tw_redis_worker_destroy(); on failure it is NULL.
 *
 * Callbacks are sent with the task's headers and Tw-Key, Tw-Attempt, Tw-Token and Idempotency-Key
 * (if the task has none of its own): key and token, "order:7 17". One token may arrive twice: where
 * a connection that was kept breaks before the answer's first byte the request is sent again. http
 * and https only, redirects are not followed, and no proxy of the environment is used. Of an
 * answer's body 64 KiB are read; if there is more, its status counts and the connection is closed.
 * 2xx: done. 408, 429 and 5xx, and no answer: tried again later, after Retry-After if that is
 * longer (up to one day). All else: a dead letter. Whatever the status, an answer with the header
 * Tw-Snooze: N puts the task off by N seconds (1 or more), and the attempt does not count.
 *
 * A worker is its process's: a fork's child has none of its threads, and must leave it alone, also
 * its end.
 *
 * Returns:
 *   TW_OK                     the worker runs
 *   TW_INVALID                nowhere to put it, an option out of range, a pattern that is none, a
 *                             namespace that is named twice, or as tw_redis_open()
 *   TW_REDIS_UNREACHABLE      as tw_redis_open(), as are the next three
 *   TW_REDIS_REFUSED          login or permission refused
 *   TW_REDIS_UNFIT            the server can't be used
 *   TW_REDIS_FAILED           the server answered with an error
 *   TW_NO_MEMORY              out of memory
 *   TW_SYSTEM                 a thread could not be started, or there was no descriptor left
 */
TW_API enum tw_status tw_redis_worker_start(struct tw_redis_worker **worker,
					    const struct tw_redis_options *redis_options,
					    const struct tw_redis_worker_options *options,
					    struct tw_redis_error *error);

/*
 * Ends the worker: it claims nothing more, gives back what it has not begun, and lets what runs end
 * within `grace`.
 *
 * `grace` is ≥ 0; TW_FOREVER: without a limit. Then callbacks are broken off and their tasks given
 * back, to run again. Waits for all that. Redis has 2 s more to hear of it; what it can't be told
 * will run again (TW_REDIS_END_UNTOLD). Any thread, any number of times; of several at a time the
 * shortest grace counts. Then tw_redis_worker_destroy() frees it.
 *
 * Returns:
 *   TW_OK                     all has ended, also when it had before; NULL is fine
 *   TW_RUNNING                handlers still run, which can't be broken off; they go on, and so do
 *                             their leases: call again, or exit
 *   TW_INVALID                called from a handler or hook of this worker, or grace < 0; nothing
 *                             happens
 */
TW_API enum tw_status tw_redis_worker_stop(struct tw_redis_worker *worker, tw_duration grace);

/*
 * Frees the worker.
 *
 * Stops it with a grace of 0 if that has not been done, and waits for handlers that still run. The
 * last call: no other may run or follow.
 *
 * Returns:
 *   TW_OK                     it is freed; NULL is fine
 *   TW_INVALID                called from a handler or hook of this worker; nothing happens
 */
TW_API enum tw_status tw_redis_worker_destroy(struct tw_redis_worker *worker);

/* Times by their lengths. Buckets do not overlap: the sum of all is how many there were. */
#define TW_REDIS_BUCKETS 18
struct tw_redis_histogram {
	/* counts[i]: longer than tw_redis_bucket_bound(i - 1), up to tw_redis_bucket_bound(i). */
	uint64_t counts[TW_REDIS_BUCKETS];
	uint64_t total_us; /* the sum of all times, in microseconds */
};

/*
 * Tells the longest time that the bucket counts.
 *
 * Any thread.
 *
 * Returns: 1 ms for the first, 5 min for the last but one; of the last, and beyond: TW_FOREVER.
 */
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
	/* Times that this worker could not work out when a task is due next by the calendar: it has
	 * no such zone. Until another worker does, the task is not run again. */
	uint64_t unscheduled;
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

/*
 * Tells the worker's counts, of all its namespaces together.
 *
 * Any thread, also once it has been stopped.
 *
 * Returns:
 *   TW_OK                     *stats is filled
 *   TW_INVALID                no worker or nothing to fill
 */
TW_API enum tw_status tw_redis_worker_get_stats(struct tw_redis_worker *worker,
						struct tw_redis_worker_stats *stats);

/*
 * Tells the worker's counts of one of its namespaces.
 *
 * Losses, reconnects, round_trips and turned are those of the worker. Any thread, also once it has
 * been stopped.
 *
 * Returns:
 *   TW_OK                     *stats is filled
 *   TW_NOT_FOUND              the worker does not serve that namespace
 *   TW_INVALID                no worker, no name, or nothing to fill
 */
TW_API enum tw_status tw_redis_worker_get_source_stats(struct tw_redis_worker *worker,
						       const char *name_space,
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
 * Tells the callbacks by host.
 *
 * Fills hosts[] with up to `room` rows (TW_REDIS_HOSTS_MAX + 1 are always enough), and *count with
 * how many there are: first that of all others, then hosts in the order in which the worker met
 * them. A row, once there, stays. Any thread, also once it has been stopped.
 *
 * Returns:
 *   TW_OK                     they are filled
 *   TW_INVALID                no worker or nothing to fill
 */
TW_API enum tw_status tw_redis_worker_get_hosts(struct tw_redis_worker *worker,
						struct tw_redis_host_stats *hosts, size_t room,
						size_t *count);

#ifdef __cplusplus
}
#endif

#endif
