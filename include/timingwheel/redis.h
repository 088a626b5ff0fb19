/* SPDX-License-Identifier: MIT */
/*
 * timingwheel on Redis: tasks kept in Redis and run by a group of workers. Any process adds tasks.
 * When a task is due, one worker runs it, with a function in its process or as an HTTP callback.
 *
 *     struct tw_redis_options options = {.url = "redis://127.0.0.1:6379"};
 *     struct tw_redis_task task = {.key = "order:7", .key_size = 7, .delay = 30 * TW_MINUTE,
 *                                  .url = "http://shop.example/expire"};
 *     struct tw_redis *redis;
 *     if (tw_redis_open(&redis, &options, NULL) != TW_OK ||
 *         tw_redis_add(redis, &task, 1, NULL) != TW_OK)
 *             return;
 *     tw_redis_cancel(redis, "order:7", 7, TW_REDIS_WHOLE);       (it was paid)
 *     tw_redis_close(redis);
 *
 * Guarantees:
 *  - An accepted task runs at least once, and never before it is due by the server's clock. The
 *    task stays in Redis until a worker acknowledges it. If a worker dies, its lease ends and the
 *    task runs again. The task lasts as long as the server keeps acknowledged writes, which depends
 *    on the server's settings (appendonly, replication) and on tw_redis_options.durability.
 *  - A key has at most one task. Adding the key again replaces the task or is refused, as
 *    tw_redis_task.mode selects.
 *  - Each run has a token higher than the tokens of all earlier runs of the task. A service that
 *    keeps the highest token seen for each key can refuse a late run; Redis itself refuses its
 *    acknowledgement. A token is the server's time in microseconds since 1970, or slightly more.
 *    Tokens rise even if the server crashes and loses the last one, unless its clock goes back.
 *  - All times are taken from the server's clock, inside the scripts. The clocks of clients and
 *    workers do not matter. Each node of a cluster has its own clock; a task follows its node's.
 *
 * Namespaces are independent of each other. The key of a task determines its shard. All of a shard
 * lies on one node of a cluster, and one script call works on one shard.
 *
 * A worker (below) runs tasks; tw_redis_claim() and tw_redis_finish() take and finish tasks without
 * one. Link with -ltimingwheel-redis -ltimingwheel. timingwheel.h says what reserved fields are.
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

/* The longest values, in bytes, and the highest numbers. */
#define TW_REDIS_KEY_MAX 1024                  /* a key: any bytes */
#define TW_REDIS_GROUP_MAX 255                 /* the name of a group */
#define TW_REDIS_BODY_MAX ((size_t)256 * 1024) /* a body */
#define TW_REDIS_URL_MAX 8192                  /* the URL of a callback */
#define TW_REDIS_HEADERS_MAX 16384             /* all headers of a callback together */
#define TW_REDIS_HEADER_COUNT_MAX 64           /* headers of a callback */
#define TW_REDIS_NAMESPACE_MAX 64              /* a namespace: letters, digits, '.', '_', '-' */
#define TW_REDIS_REASON_MAX 255                /* the reason of a failure, truncated to this */
#define TW_REDIS_CRON_MAX 255                  /* a cron expression of a task */
#define TW_REDIS_SHARDS_MAX 1024               /* shards of a namespace */
#define TW_REDIS_BATCH_MAX 1000                /* tasks of one claim; a worker's `batch` */
#define TW_REDIS_ATTEMPTS_MAX 1000000          /* attempts of a task */
#define TW_REDIS_TARGETS_MAX 1024              /* patterns in a worker's `allow`, and in `deny` */
#define TW_REDIS_SOURCES_MAX 64                /* namespaces of a worker */
#define TW_REDIS_WEIGHT_MAX 1000               /* the weight of a group */
#define TW_REDIS_GROUPS_MAX 100                /* groups that are listed */
#define TW_REDIS_WORKERS_MAX 1000              /* workers of a namespace that are listed */
#define TW_REDIS_WORKER_NAME_MAX 255           /* the name of a worker */
#define TW_REDIS_DELAY_MAX (100 * 365 * 24 * TW_HOUR) /* a delay from now: 100 years */

/*
 * Statuses of this library, in addition to those of timingwheel.h. They are values of enum
 * tw_status without being its enumerators, so compilers warn about a `case` with one of them unless
 * the switch is `switch ((int)status)`. tw_status_name() and tw_status_text() know these statuses
 * in a program that links this library.
 */
#define TW_REDIS_BAD_DATA ((enum tw_status)64)
#define TW_REDIS_UNREACHABLE ((enum tw_status)65)
#define TW_REDIS_REFUSED ((enum tw_status)66)
#define TW_REDIS_UNFIT ((enum tw_status)67)
#define TW_REDIS_FAILED ((enum tw_status)68)
#define TW_REDIS_OUTCOME_UNKNOWN ((enum tw_status)69)
#define TW_REDIS_STALE ((enum tw_status)70)

/* X(name, text) */
#define TW_REDIS_STATUS_LIST(X)                                                            \
	X(TW_REDIS_BAD_DATA, "the task's data can't be accepted")                          \
	X(TW_REDIS_UNREACHABLE, "Redis can't be reached")                                  \
	X(TW_REDIS_REFUSED, "Redis refused the login or a permission")                     \
	X(TW_REDIS_UNFIT, "this Redis server can't be used")                               \
	X(TW_REDIS_FAILED, "Redis replied with an error")                                  \
	X(TW_REDIS_OUTCOME_UNKNOWN, "no confirmation came; the change may have been made") \
	X(TW_REDIS_STALE, "another run has taken over")

/* Describes a failure. The text never contains a password. */
struct tw_redis_error {
	enum tw_status status;
	char text[256];       /* one line without a newline at its end; may be "" */
	uint64_t reserved[4]; /* for later versions; 0 */
};

/*
 * What the server confirms of a change before the call returns. timingwheel-redis(7) says which
 * fault each durability survives, and which settings of the server it needs.
 *
 * The server is asked once for all changes that are sent to it together (WAITAOF, WAIT), and has
 * three quarters of `reply_timeout`. If it does not confirm a change in that time, the change is
 * made, and the call returns TW_REDIS_OUTCOME_UNKNOWN. Repeated, it finds the change made
 * (TW_EXISTS, TW_NOT_FOUND), and returns when that is confirmed. Leases and a new namespace's
 * number of shards are not waited for.
 */
enum tw_redis_durability {
	TW_REDIS_DURABLE_SERVER,  /* nothing: the server has made the change in its memory */
	TW_REDIS_DURABLE_DISK,    /* the server's append-only file is on its disk (fsync) */
	TW_REDIS_DURABLE_REPLICA, /* at least one replica has the change in its memory */
	TW_REDIS_DURABLE_BOTH     /* both of these */
};

/* Options of tw_redis_open(). A field that is 0 or NULL has its default. Strings are copied. */
struct tw_redis_options {
	/*
	 * The server's address. NULL means redis://127.0.0.1:6379. Parts may contain %XX escapes.
	 *   redis://[[user]:password@]host[:port][/database]
	 *                    one server, or any node of a cluster, which names the others. Of
	 *                    `host:port,host:port` the first one that can be reached is used
	 *   rediss://...     the same address, over TLS
	 *   redis+unix://[[user]:password@]/path
	 *                    a unix socket; the path has at most 107 bytes. A cluster's node whose
	 *                    host is not reported is expected at 127.0.0.1
	 *   redis+sentinel://[[user]:password@]host:port,host:port/master[/database]
	 *                    Sentinels, which are asked for the master at each connection
	 *   rediss+sentinel://...
	 *                    the same, with TLS to the Sentinels and to the master
	 * Each may end in ?name=value&name=value with these names: timeout (in seconds; sets both
	 * timeouts below), database, client_name, durability (server, disk, replica or both),
	 * ca_file, certificate_file, key_file, server_name. An option below overrides the URL.
	 */
	const char *url;
	const char *user;     /* NULL means the URL's user; requires a password */
	const char *password; /* NULL means the URL's password */
	/* The login at the Sentinels. NULL means no login. A user requires a password. */
	const char *sentinel_user;
	const char *sentinel_password;
	/* The name that CLIENT LIST shows, printable and without blanks. NULL means the URL's
	 * client_name, or "timingwheel". */
	const char *client_name;
	/*
	 * TLS, version 1.2 or later; files in PEM format; NULL means the URL's value. An authority
	 * in ca_file (by default, in the system's store) must have issued the server's certificate,
	 * for server_name (by default, the host connected to). certificate_file, with its chain,
	 * and key_file, set together, are the client's, for servers that require them.
	 */
	const char *ca_file;
	const char *certificate_file;
	const char *key_file;
	const char *server_name;
	const char *name_space; /* NULL means "default" */
	/* The number of shards of the namespace, up to TW_REDIS_SHARDS_MAX. The first client to
	 * open the namespace fixes it; another number is TW_REDIS_UNFIT. 0 means the namespace's
	 * own; a new one gets 1, in a cluster 16. Limits need one shard. */
	unsigned shards;
	/* The timeout of one connection, including the TLS handshake. 0 means the URL's, or 2 s.
	 * The addresses of a host are tried in order, each for an equal share of the time left. */
	tw_duration connect_timeout;
	tw_duration reply_timeout; /* the timeout of one reply; 0 means the URL's, or 5 s */
	/* How long a call retries while the server can't be reached, has its maximum number of
	 * clients, is loading its data, is busy with a script, is read-only, can't write to its
	 * disk (MISCONF), lacks replicas (NOREPLICAS, `durability`), or moves slots. 0 means 5 s,
	 * TW_FOREVER no limit, a negative value one try. tw_redis_open() always tries once. */
	tw_duration patience;
	/* Accept a server that may evict the library's keys (maxmemory-policy allkeys-…) or does
	 * not report its policy. */
	bool allow_eviction;
	/* What is confirmed of each change; 0 means the URL's durability, if it has one. Each
	 * connection checks whether the server can give it. */
	enum tw_redis_durability durability;
	uint64_t reserved[4]; /* for later versions; must be 0 */
};

/* A handle: one namespace, over connections that other handles may share. */
struct tw_redis;

/*
 * Rules of the calls.
 *
 * Any thread may make any call, except those that free a handle or a worker: no other call with it
 * may run at the same time or follow. Calls made at the same time share round trips. A call
 * reconnects by itself, and retries for `patience`. A node of a cluster that is slow to reply or to
 * connect delays no call for other nodes; a call about all shards asks one node after another.
 *
 * A call that returns a status returns TW_OK, one of its own list, or one of these:
 *  - TW_INVALID: a pointer is NULL that is not said to be so at times, a key is empty or too long,
 *    an argument or a field is out of range, or a reserved field is not 0. Nothing has changed.
 *    Also: the server at which the call reconnects has no such database.
 *  - TW_NO_MEMORY: out of memory. Nothing has changed, unless a call says otherwise.
 *  - TW_REDIS_UNREACHABLE: the server was away for `patience`. Nothing has changed, except that a
 *    call about all shards may have changed some. It can be repeated.
 *  - TW_REDIS_OUTCOME_UNKNOWN, from calls that change something: the connection broke after the
 *    change was sent and before its reply came. The change may have been made, and the call can be
 *    repeated. A call that changes nothing, or does the same twice, is retried instead. With
 *    `durability` also: a change, of any call, was made and not confirmed in time; nothing is
 *    retried then.
 *  - TW_REDIS_REFUSED: the server refused the login, or a command for lack of permission.
 *  - TW_REDIS_UNFIT: the server can't be used. It is too old, may evict tasks, has a certificate
 *    that can't be verified, can't give the `durability`, runs no scripts, or is a Sentinel; or the
 *    namespace has another number of shards. Each connection checks that.
 *  - TW_REDIS_FAILED: the server replied with an error that a retry does not solve, for example:
 *    its memory is full, or a key has a wrong type. A call about all shards does the others all
 *    the same, and a list ends.
 *
 * No call is a cancellation point while it talks to a server: a cancelled thread completes it,
 * within the timeouts and `patience`. In a fork's child every call with a handle or a worker of the
 * parent returns TW_INVALID, except tw_redis_close(), which leaves the parent's connections alone;
 * the child opens handles of its own.
 */

/*
 * Connects to Redis, logs in, and opens a namespace. A new one is created.
 *
 * `options` may be NULL. The call checks the server's version (5 or later), its eviction policy,
 * whether it is a cluster, and the namespace's number of shards. It tries once, whatever `patience`
 * is. *error (may be NULL) describes a failure. The caller owns *redis, until tw_redis_close(); on
 * failure *redis is NULL. Any number of handles may be open; each has one connection to every node
 * it needs.
 */
TW_CHECKED
TW_API enum tw_status tw_redis_open(struct tw_redis **redis, const struct tw_redis_options *options,
				    struct tw_redis_error *error);

/*
 * Opens another namespace over the connections of `redis`. A new one is created.
 *
 * Calls about several namespaces then share round trips. `name_space` and `shards` are as in struct
 * tw_redis_options; all other options are those of `redis`. The handles may be closed in any order.
 * *error (may be NULL) describes a failure. The caller owns *beside, until tw_redis_close(); on
 * failure *beside is NULL. Costs one round trip.
 */
TW_CHECKED
TW_API enum tw_status tw_redis_open_beside(struct tw_redis *redis, const char *name_space,
					   unsigned shards, struct tw_redis **beside,
					   struct tw_redis_error *error);

/* Frees the handle, which may be NULL. Closes the connections unless another handle uses them. */
TW_API void tw_redis_close(struct tw_redis *redis);

/* Copies the description of the last failed call, of any thread, to *error. Handles that share
 * connections share it. A call that returns TW_INVALID or TW_NO_MEMORY may leave it unchanged. The
 * function does nothing if `redis` or `error` is NULL. */
TW_API void tw_redis_last_error(struct tw_redis *redis, struct tw_redis_error *error);

/* Writes the key as text, as a callback's header Tw-Key has it: with %XX for blanks, '%' and bytes
 * that are not printable ASCII, and a NUL at the end. `text` must have room for 3 * key_size + 1
 * bytes. */
TW_NONNULL(3)
TW_READS(1, 2)
TW_API void tw_redis_write_key(const void *key, size_t key_size, char *text);

/* Returns the namespace's number of shards, without asking the server; 0 if `redis` is NULL. */
TW_API unsigned tw_redis_shard_count(const struct tw_redis *redis);

/* What tw_redis_add() does when a task has the key. */
enum tw_redis_mode {
	TW_REDIS_ANY,    /* add the task; replace an existing one, even while it runs */
	TW_REDIS_NEW,    /* add the task only if no task has the key; otherwise TW_EXISTS */
	TW_REDIS_REPLACE /* add the task only if one has the key; otherwise TW_NOT_FOUND */
};

/* The HTTP method of a callback. */
enum tw_redis_method {
	TW_REDIS_POST,
	TW_REDIS_GET,
	TW_REDIS_PUT,
	TW_REDIS_PATCH,
	TW_REDIS_DELETE,
	TW_REDIS_HEAD
};
/* Their names, for an array of strings. */
#define TW_REDIS_METHOD_NAMES "POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"

/* What happens to due times of a recurring task that pass before its current occurrence ends. */
enum tw_redis_missed {
	TW_REDIS_MISSED_ONE,  /* the task runs once for all of them, at once */
	TW_REDIS_MISSED_SKIP, /* the task does not run for them */
	TW_REDIS_MISSED_ALL   /* the task runs once for each of them, one after the other */
};

/* A task to add. With all fields 0 except the key, it is due now, has no body, and is for a
 * handler. */
struct tw_redis_task {
	const void *key;
	size_t key_size; /* in bytes, 1 to TW_REDIS_KEY_MAX */
	/* The due time: `at_ms` if it is not 0, otherwise `delay` from now, by the server's clock.
	 * A time in the past, or a delay ≤ 0, means now. Rounded up to a millisecond. */
	int64_t at_ms;     /* milliseconds since 1970 UTC, ≥ 0, up to the end of the year 9999 */
	tw_duration delay; /* nanoseconds, up to TW_REDIS_DELAY_MAX */
	/*
	 * The period of a recurring task, 1 ms to TW_REDIS_DELAY_MAX. 0 means the task runs once.
	 * The first due time is the one above; if `at_ms` has passed, it is the next time of the
	 * series. Each later due time is one period after the previous one, however long the runs
	 * take. An occurrence has max_attempts, and ends when it is done, dead or cancelled; the
	 * script that ends it also sets the next due time. So no occurrence is lost or repeated,
	 * and two never exist at the same time.
	 *
	 * Adding the task again with the same period and `missed` replaces only its record (body,
	 * callback, max_attempts): due time, attempts and run stay. This requires that no time is
	 * given above, or a delay of one period, or an `at_ms` that begins the task's series. Any
	 * other time begins a new series.
	 */
	tw_duration every; /* rounded up to a millisecond */
	/*
	 * A cron expression (timingwheel/cron.h) of up to TW_REDIS_CRON_MAX bytes, at whose times
	 * the task recurs. NULL means none. `every` must be 0 with it. The first due time is the
	 * first match that is neither before now nor before the time above. Otherwise the rules of
	 * `every` apply; adding the task again requires the same expression, zone and `missed`, and
	 * no time above or an `at_ms` that has passed.
	 *
	 * The next due time is computed as an occurrence ends, from that worker's time zone files.
	 */
	const char *cron;
	const char *zone; /* an IANA time zone such as "Europe/Berlin"; NULL means UTC */
	enum tw_redis_missed missed;
	enum tw_redis_mode mode;
	/* The number of runs before the task becomes a dead letter, up to TW_REDIS_ATTEMPTS_MAX. 0
	 * means 25. Runs ended by a worker's death count. */
	unsigned max_attempts;
	/*
	 * How late the task may begin, 1 s to TW_REDIS_DELAY_MAX; 0 means no limit. When its first
	 * attempt would begin later than this after its due time, by the server's clock, the task
	 * is removed, or a recurring one goes on with its next occurrence that is not too old.
	 * Workers count this (`skipped`). Retries are not skipped. A task that was moved or snoozed
	 * has another due time; one that a worker returned has the one from before.
	 */
	tw_duration grace; /* rounded up to a millisecond */
	/*
	 * How long after its first add the task is due at the latest, up to TW_REDIS_DELAY_MAX; 0
	 * means no limit. With it a program may add the task at each event: the task runs when no
	 * event has come for `delay`, or when `latest` has passed since the first one (debouncing).
	 *
	 * The first add fixes the latest due time. Later adds replace the task and keep that time,
	 * whatever their `latest` is: the task is due at the time above, or then if that is
	 * earlier. An add is the first one if no task has the key, or one that has no latest due
	 * time or has begun an attempt: it runs, or waits for a retry. An add whose `latest` is 0
	 * removes the limit. tw_redis_move() neither obeys nor changes it. A recurring task can't
	 * have one.
	 */
	tw_duration latest; /* rounded up to a millisecond */
	/* The body of the request: any bytes. Without a header Content-Type the request is sent as
	 * JSON. */
	const void *body;
	size_t body_size; /* up to TW_REDIS_BODY_MAX */
	/* The callback, http:// or https://. NULL means a handler runs the task. */
	const char *url;
	enum tw_redis_method method;
	const char *const *headers; /* strings "Name: value"; may be NULL */
	size_t header_count;
	/* The group that the task belongs to, for example a tenant: any UTF-8 of 1 to
	 * TW_REDIS_GROUP_MAX bytes without control characters. NULL means the namespace itself.
	 * Claims take turns among the groups that have something due in a shard, so that no group
	 * waits for all tasks of another. Within a group, tasks go by due time. */
	const char *group;
	uint64_t reserved[4]; /* for later versions; must be 0 */
};

/* What has become of a task of tw_redis_add() or tw_redis_restore(). */
struct tw_redis_added {
	enum tw_status status; /* what the call would return for this task alone */
	int64_t due_ms;        /* the due time, by the server's clock; 0 unless it was added */
	uint64_t reserved[4];  /* for later versions; 0 */
};

/*
 * Adds tasks. Their data is copied.
 *
 * Replacing a task discards it: a run of the replaced task is not stopped, but its end is refused
 * and it is not retried. Tasks with the same key are added in their order. A task that is not added
 * does not stop the others; an unreachable server does. each[i] (may be NULL) becomes what has
 * become of tasks[i], unless the call has no memory to begin. The call's status is that of the
 * first task that was not added.
 *
 * Up to 256 tasks share a round trip, and those of one shard a script call. Cron expressions, and
 * an `at_ms` of a task that recurs, cost another round trip.
 *
 * Returns:
 *   TW_EXISTS                 a task has the key, and the mode is TW_REDIS_NEW; nothing has changed
 *   TW_NOT_FOUND              no task has the key, and the mode is TW_REDIS_REPLACE
 *   TW_REDIS_BAD_DATA         the URL is not http or https, has no host, or contains a blank; a
 *                             header has no name, contains a control character, or is set by the
 *                             worker (Tw-…, Content-Length, Host, Transfer-Encoding, Connection,
 *                             Expect); headers without a URL; HEAD with a body; the cron expression
 *                             or the zone is invalid, or has no future time; text is not UTF-8; a
 *                             limit is exceeded
 *   TW_SYSTEM                 the time zone file could not be read
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_redis_add(struct tw_redis *redis, const struct tw_redis_task *tasks,
				   size_t count, struct tw_redis_added *each);

/* What tw_redis_cancel() removes of a recurring task. */
enum tw_redis_scope {
	TW_REDIS_OCCURRENCE, /* the present occurrence: the next one follows */
	TW_REDIS_WHOLE       /* the task with all its later occurrences */
};

/*
 * Removes a task, or of a recurring one what `scope` selects. Costs one round trip, or three.
 *
 * Returns:
 *   TW_REDIS_BAD_DATA         the time zone is not known here, so nothing has changed
 *   TW_OK                     the task, or the occurrence, will not run
 *   TW_NOT_FOUND              no task has the key, for example because the task is done
 *   TW_RUNNING                a run has the task on lease, and continues; it may be retried. With
 *                             TW_REDIS_WHOLE no occurrence follows, else nothing has changed
 */
TW_READS(2, 3)
TW_API enum tw_status tw_redis_cancel(struct tw_redis *redis, const void *key, size_t key_size,
				      enum tw_redis_scope scope);

/*
 * Sets another due time: `at_ms` if it is not 0, otherwise `delay` from now.
 *
 * Both are as in struct tw_redis_task. The attempts begun still count. *due_ms (may be NULL)
 * receives the new due time, by the server's clock. Costs one round trip.
 *
 * Returns:
 *   TW_NOT_FOUND              no task has the key, for example because the task is done
 *   TW_RUNNING                a run has the task on lease; nothing has changed
 */
TW_READS(2, 3)
TW_API enum tw_status tw_redis_move(struct tw_redis *redis, const void *key, size_t key_size,
				    int64_t at_ms, tw_duration delay, int64_t *due_ms);

/* The state of a task. */
enum tw_redis_state {
	TW_REDIS_PENDING, /* waits for its due time, or for a worker */
	TW_REDIS_LEASED,  /* a worker has it on lease */
	TW_REDIS_WAITING, /* has failed, and waits for its next attempt */
	TW_REDIS_DEAD     /* is a dead letter */
};

/* A stored task. All fields of `task` are set except delay, latest and mode. For a recurring task,
 * task.at_ms is the due time of its current occurrence, which a retry, a lease or a move does not
 * change; for any other task it equals `due_ms`. */
struct tw_redis_info {
	struct tw_redis_task task;
	enum tw_redis_state state;
	/* Milliseconds since 1970, by the server's clock: the due time, the time of the next
	 * attempt, or the end of the lease; for a dead letter, the time of its death. */
	int64_t due_ms;
	int64_t latest_due_ms; /* the latest due time, which task.latest has fixed, or 0 */
	int64_t now_ms;        /* the server's time when the task was read */
	unsigned attempts;     /* attempts begun */
	uint64_t token;        /* the token of the run that has the lease; 0 means no run has it */
	unsigned shard;
	const char *reason;   /* why a dead letter died; otherwise "" */
	uint64_t reserved[4]; /* for later versions; must be 0 */
};

/* Receives a task, whose pointers are valid during the call. May use the same struct tw_redis.
 * Returns true to continue the listing, false to end it. */
typedef bool tw_redis_each_fn(void *context, const struct tw_redis_info *info);

/*
 * Passes the key's task to `each`, once. Dead letters are not found. Costs one round trip.
 *
 * Returns: TW_NOT_FOUND if no task has the key
 */
TW_READS(2, 3)
TW_API enum tw_status tw_redis_get(struct tw_redis *redis, const void *key, size_t key_size,
				   tw_redis_each_fn *each, void *context);

/* What tw_redis_each() lists. */
enum tw_redis_kind {
	TW_REDIS_TASKS,  /* tasks, by due time within a shard */
	TW_REDIS_LETTERS /* dead letters, in no order within a shard */
};

/*
 * Passes every task, or every dead letter, to `each`, shard by shard, until it returns false.
 *
 * What changes during the listing may be missed or passed twice. Costs one round trip for about
 * every 100 of them, and at least one for every shard.
 *
 * A dead letter stays until it is retried, dropped, replaced, or deleted by a worker (dead_max_age,
 * dead_max_count). Each failed occurrence of a recurring task has a letter of its own, with the key
 * KEY#due=TIME: TIME is its due time in milliseconds since 1970. It can be retried while the task
 * recurs; then a task with that key runs once. If KEY has more than 1000 bytes, the letter has the
 * key KEY, and the next one replaces it.
 */
TW_API enum tw_status tw_redis_each(struct tw_redis *redis, enum tw_redis_kind kind,
				    tw_redis_each_fn *each, void *context);

/* Counts of a namespace. The shards are counted one after the other, not at the same moment. */
struct tw_redis_stats {
	uint64_t tasks;     /* tasks that wait or run */
	uint64_t due;       /* tasks that are due and not on lease */
	uint64_t started;   /* tasks with an attempt begun: on lease, or waiting for another */
	uint64_t dead;      /* dead letters */
	uint64_t recurring; /* tasks that recur */
	uint64_t paused;    /* paused shards; normally none or all */
	/* Tasks ever added, including replacements. A recurring task counts once. */
	uint64_t added;
	int64_t next_ms;      /* the earliest due time or lease end, by the server's clock, or 0 */
	int64_t now_ms;       /* the server's time */
	uint64_t missing;     /* shards whose counts are missing, because of an error */
	uint64_t reserved[4]; /* for later versions; 0 */
};

/*
 * Counts the tasks and dead letters of the namespace.
 *
 * On failure *stats has the counts of all shards but `missing` ones. Costs one round trip to each
 * node; a program can measure by it how long Redis takes to reply.
 */
TW_CHECKED
TW_API enum tw_status tw_redis_get_stats(struct tw_redis *redis, struct tw_redis_stats *stats);

/* Counts of a group. */
struct tw_redis_group_stats {
	char name[TW_REDIS_GROUP_MAX + 1];
	uint64_t waiting;     /* tasks that wait, whether due or not */
	uint64_t running;     /* tasks on lease */
	int64_t oldest_ms;    /* the earliest due time of those that wait, or 0 if none waits */
	uint64_t reserved[4]; /* for later versions; 0 */
};

/*
 * Lists the largest groups of the namespace: those with the most waiting tasks first, then those
 * with the most running tasks, then by name.
 *
 * Fills groups[] with up to `room` rows, at most TW_REDIS_GROUPS_MAX, and *count with their number.
 * The call costs a round trip to each node, or two if there are several shards. It looks at N
 * waiting tasks, N groups and N claims of each shard: 256 divided by the number of shards, at least
 * 16. As far as there is room, the list has each group with a fiftieth of the waiting tasks, and
 * all groups if each shard has fewer than N.
 *
 * `waiting` and `oldest_ms` are exact, except that a task just replaced or moved may count twice.
 * `running` is exact up to N claims, and scaled up beyond.
 */
TW_CHECKED
TW_FILLS(2, 3)
TW_API enum tw_status tw_redis_get_groups(struct tw_redis *redis,
					  struct tw_redis_group_stats *groups, size_t room,
					  size_t *count);

/*
 * Deletes the namespace with all its keys, also those that stay when it has no task.
 *
 * Unless `force` is set, a namespace with tasks, dead letters or workers is refused, and nothing
 * has changed; a worker counts for 30 s after its last report. With `force`, tasks and dead letters
 * are deleted, and running tasks are not stopped. No other call for the namespace may be made
 * meanwhile. Close its handles afterwards; the next tw_redis_open() makes a new namespace. On
 * failure some shards may be deleted: call again. Costs a round trip to each node, and up to three
 * more.
 *
 * Returns:
 *   TW_EXISTS                 it has tasks or dead letters
 *   TW_RUNNING                a worker serves it
 */
TW_API enum tw_status tw_redis_drop_namespace(struct tw_redis *redis, bool force);

/* Limits of a namespace or of a group, for all workers and claims together. 0 means no limit. */
struct tw_redis_limits {
	bool paused;      /* nothing is taken */
	unsigned weight;  /* a group's tasks in a turn, up to TW_REDIS_WEIGHT_MAX; 0 means 1 */
	unsigned running; /* tasks on lease */
	unsigned rate;    /* tasks taken in `per`; a tenth of it, at least one, at once */
	/* Up to TW_REDIS_DELAY_MAX, rounded up to a millisecond; 0 means 1 s. */
	tw_duration per;
	uint64_t reserved[4]; /* for later versions; must be 0 */
};

/*
 * Sets the limits of a group, of each group without limits of its own if `group` is "*", or of the
 * whole namespace if it is NULL. They replace all that it had, so a program that only pauses sets
 * those of tw_redis_get_limits() with `paused` changed. Two programs must not set those of one name
 * at the same time.
 *
 * After a pause has returned, nothing more is leased; a task whose lease ends meanwhile runs again
 * after the pause. Running tasks continue, and adding, moving and cancelling still work. Workers
 * learn of new limits and of the end of a pause at once; of those of "*" within 10 s.
 *
 * `running` and `rate` need a namespace with one shard, where a claim sees all tasks and counts
 * them. They are exact, over all workers, by the server's clock. A task counts as running until it
 * is finished or returned, or its lease ends, whichever is first; so does the run of a task that
 * was replaced.
 *
 * Limits last as long as tasks do. After a failure some shards may have them: call again. Costs a
 * round trip to each node; the first ones also look at all tasks on lease: about 1 ms for 1,000.
 *
 * Returns:
 *   TW_REDIS_BAD_DATA         the group has a control character or is not UTF-8
 *   TW_REDIS_UNFIT            `running` or `rate` in a namespace with several shards
 */
TW_API enum tw_status tw_redis_set_limits(struct tw_redis *redis, const char *group,
					  const struct tw_redis_limits *limits);

/*
 * Returns the limits that were set for `group`, "*", or the namespace if it is NULL, in *limits:
 * all 0 if there are none. It reads the first shard, in one round trip.
 *
 * Returns: TW_REDIS_BAD_DATA as tw_redis_set_limits()
 */
TW_CHECKED
TW_API enum tw_status tw_redis_get_limits(struct tw_redis *redis, const char *group,
					  struct tw_redis_limits *limits);

/* Receives limits, valid during the call; `group` is NULL for the namespace's, and "*" for those of
 * all other groups. Returns false to end the listing. */
typedef bool tw_redis_limits_fn(void *context, const char *group,
				const struct tw_redis_limits *limits);

/*
 * Passes the namespace's limits to `each`, then those of all groups that have some, in no order.
 *
 * `each` may use this tw_redis. Limits that change meanwhile may be missed or passed twice. Costs
 * one round trip, and one for about every 1,000 groups.
 */
TW_API enum tw_status tw_redis_each_limits(struct tw_redis *redis, tw_redis_limits_fn *each,
					   void *context);

/*
 * Removes all waiting tasks of a group. Recurring tasks end. Tasks on lease run on, and may be
 * retried. Tasks that are added meanwhile may stay.
 *
 * *removed (may be NULL) becomes the number of removed tasks. Costs round trips to each node:
 * one for every 1,000 tasks of a shard, and at least one.
 *
 * Returns: TW_REDIS_BAD_DATA as tw_redis_set_limits()
 */
TW_API enum tw_status tw_redis_drop_group(struct tw_redis *redis, const char *group,
					  uint64_t *removed);

/* A worker, as of its last report to Redis. The counts are those of one namespace. */
struct tw_redis_worker_info {
	char name[TW_REDIS_WORKER_NAME_MAX + 1]; /* host and process, such as "shop-3:4711" */
	tw_duration up;                          /* time since the worker's start */
	tw_duration report_age;                  /* time since its last report */
	uint64_t running;                        /* tasks that are running */
	uint64_t held;                           /* tasks on lease, including running ones */
	uint64_t done;                           /* runs since the start, by their ends */
	uint64_t retried;
	uint64_t dead;
	uint64_t reserved[4]; /* for later versions; 0 */
};

/*
 * Lists the workers of the namespace, the most recent report first.
 *
 * Fills workers[] with up to `room` rows, and *count with the number of workers, up to
 * TW_REDIS_WORKERS_MAX. A worker reports every 5 s, or every 10 s while it is idle. It is removed
 * 30 s after its last report. Costs one round trip.
 */
TW_CHECKED
TW_FILLS(2, 3)
TW_API enum tw_status tw_redis_get_workers(struct tw_redis *redis,
					   struct tw_redis_worker_info *workers, size_t room,
					   size_t *count);

/*
 * Make a dead letter a task again, due now, with no attempt begun, and delete a dead letter. Each
 * costs one round trip.
 *
 * Returns:
 *   TW_NOT_FOUND              no dead letter has the key
 *   TW_EXISTS                 tw_redis_retry() alone: a task has the key; nothing has changed
 */
TW_READS(2, 3)
TW_API enum tw_status tw_redis_retry(struct tw_redis *redis, const void *key, size_t key_size);
TW_READS(2, 3)
TW_API enum tw_status tw_redis_drop(struct tw_redis *redis, const void *key, size_t key_size);

/*
 * Stores tasks and dead letters that tw_redis_each() or tw_redis_get() returned, from this Redis or
 * another one, as they were.
 *
 * A task keeps its due time, even if that has passed, its attempts, its series and its occurrence.
 * A leased task is due when its lease would have ended. The fields used are task, except its delay
 * and latest; due_ms; latest_due_ms; and attempts. task.at_ms 0 means due_ms.
 *
 * With the state TW_REDIS_DEAD a dead letter is stored. The fields used are task, except its at_ms,
 * delay and latest; due_ms, the time of its death, from 0 to the end of the year 9999; attempts;
 * and reason, which may be NULL and is truncated to TW_REDIS_REASON_MAX. Its task.mode is about
 * dead letters with the same key.
 *
 * Modes, each[], costs and statuses are otherwise those of tw_redis_add(). Limits and pauses are
 * not restored. Repeating the call resets tasks that have changed since.
 */
TW_READS(2, 3)
TW_API enum tw_status tw_redis_restore(struct tw_redis *redis, const struct tw_redis_info *infos,
				       size_t count, struct tw_redis_added *each);

/* A job: one run of a task, which the caller has on lease. */
struct tw_redis_job {
	const void *key;
	size_t key_size;
	const void *body;
	size_t body_size;
	const char *url; /* NULL means no callback */
	enum tw_redis_method method;
	const char *const *headers;
	size_t header_count;
	unsigned attempt; /* 1 for the first run */
	unsigned max_attempts;
	/* Higher than those of all earlier runs of this task. Other tasks may have the same. */
	uint64_t token;
	int64_t due_ms; /* the due time, or the end of the previous lease, by the server's clock */
	/* How late the claim was; in a handler or a report, how late the run began. */
	tw_duration lateness;
	unsigned shard;
	unsigned slot;          /* the place among the tasks of its lease */
	const char *name_space; /* the task's namespace */
	const char *group;      /* the task's group; NULL means none */
	const void *series;     /* the batch's: how the task recurs, or NULL */
	uint64_t reserved[4];   /* for later versions; must be 0 */
};

/* A batch: jobs claimed together, with the memory that they point to. Only `name_space` belongs to
 * the handle instead, or to the worker. Only the library makes one. */
struct tw_redis_batch {
	const struct tw_redis_job *jobs;
	size_t count; /* the number of jobs, which may be 0 */
};

/*
 * Leases up to `limit` due tasks of the shard for `lease`, the longest due first.
 *
 * `limit` is 1 to TW_REDIS_BATCH_MAX, `lease` 10 ms to 1 day. No other claim gets these tasks until
 * their lease ends. A claim takes at most 1 MiB of tasks, or one task. A task that has used all its
 * attempts becomes a dead letter instead. *batch receives the jobs; it may be empty. The caller
 * owns *batch, until tw_redis_batch_free(); on failure *batch is NULL. *next (may be NULL) receives
 * the time until the shard should be claimed from again: 0 while more tasks are due, TW_FOREVER if
 * no task waits or the shard is paused. Costs one round trip, or two if it ends tasks.
 *
 * If the call fails, also with TW_NO_MEMORY, tasks may be on lease: they are due again when it
 * ends, and the attempt counts. A worker takes back the tasks of a lost reply.
 */
TW_CHECKED
TW_API enum tw_status tw_redis_claim(struct tw_redis *redis, unsigned shard, size_t limit,
				     tw_duration lease, struct tw_redis_batch **batch,
				     tw_duration *next);

/* Frees the batch, which may be NULL, with its jobs. Their leases continue. */
TW_API void tw_redis_batch_free(struct tw_redis_batch *batch);

/* The outcome of a run, which a handler returns and tw_redis_finish() takes. */
enum tw_redis_outcome {
	TW_REDIS_DONE,  /* the task is done */
	TW_REDIS_RETRY, /* the run failed: retry the task if attempts are left */
	TW_REDIS_KILL,  /* the run failed for good: make the task a dead letter */
	TW_REDIS_SNOOZE /* postpone the task; this attempt does not count */
};

/* Details of the outcome. All fields are zero when a handler is called. */
struct tw_redis_verdict {
	/* The wait until the next attempt, for TW_REDIS_RETRY and TW_REDIS_SNOOZE. 0 means none
	 * for tw_redis_finish(); ≤ 0 from a handler means the worker's backoff for a retry, its
	 * retry_first for a snooze. */
	tw_duration retry_in;
	char reason[TW_REDIS_REASON_MAX + 1]; /* kept in a dead letter, and passed to `report` */
};

/*
 * Finishes jobs, with the outcomes that a handler returns:
 *  - TW_REDIS_DONE acknowledges them: their tasks are removed. The next occurrence of a recurring
 *    task follows.
 *  - TW_REDIS_RETRY reports that they failed: their tasks are due again verdict->retry_in from now.
 *    A task without attempts left becomes a dead letter with verdict->reason.
 *  - TW_REDIS_KILL makes their tasks dead letters.
 *  - TW_REDIS_SNOOZE returns them: their tasks are due again verdict->retry_in from now, and the
 *    attempt does not count.
 *
 * `verdict` may be NULL, which is one with all fields zero. Its retry_in is 0 to
 * TW_REDIS_DELAY_MAX. `jobs` is an array of `count` jobs, of any shards. Costs one round trip;
 * adjacent jobs of one shard share a script call. A lease that has ended is still accepted until
 * another run takes the task.
 *
 * each[i] (may be NULL) becomes the status of jobs[i], unless the call returns TW_INVALID or
 * TW_NO_MEMORY: TW_OK if it was processed; TW_NOT_FOUND if the task no longer exists, for example
 * because it was acknowledged, or cancelled after the lease had ended; TW_REDIS_STALE if another
 * run has the task, or it was replaced or moved, and nothing has changed; or the reason why the
 * server did not process the job.
 *
 * Returns: TW_OK if the server processed all jobs, otherwise the first failure
 */
TW_READS(2, 3)
TW_API enum tw_status tw_redis_finish(struct tw_redis *redis, const struct tw_redis_job *jobs,
				      size_t count, enum tw_redis_outcome outcome,
				      const struct tw_redis_verdict *verdict, enum tw_status *each);

/*
 * Extends the leases of the jobs, each for all jobs of a claim: they end `lease` from now.
 *
 * `lease` is 10 ms to 1 day. It may be shorter than the remaining time. `jobs`, each[], costs and
 * statuses are those of tw_redis_finish().
 */
TW_READS(2, 3)
TW_API enum tw_status tw_redis_extend(struct tw_redis *redis, const struct tw_redis_job *jobs,
				      size_t count, tw_duration lease, enum tw_status *each);

/*
 * Runs a task, and returns its outcome.
 *
 * The worker's threads call it, up to `handlers` at the same time. They inherit from the thread
 * that called tw_redis_worker_start what a wheel's worker inherits (timingwheel.h). The job's
 * pointers are valid during the call. The worker extends the lease while it runs. It may use any
 * tw_redis, and must not stop its own worker.
 */
typedef enum tw_redis_outcome tw_redis_handler_fn(void *context, const struct tw_redis_job *job,
						  struct tw_redis_verdict *verdict);

/* How a run ended, for `report`. */
enum tw_redis_end {
	TW_REDIS_END_DONE,     /* acknowledged */
	TW_REDIS_END_RETRIED,  /* failed; the task waits for its next attempt */
	TW_REDIS_END_DEAD,     /* failed; the task is a dead letter */
	TW_REDIS_END_STALE,    /* overtaken by another run or a new task, or the task was removed */
	TW_REDIS_END_RELEASED, /* returned to Redis by tw_redis_worker_stop() */
	TW_REDIS_END_UNCONFIRMED, /* Redis did not confirm the end: the task may run again */
	TW_REDIS_END_SNOOZED      /* postponed by its handler or receiver */
};

/* Describes a run that ended. Its pointers are valid during the call of `report`. */
struct tw_redis_report {
	const struct tw_redis_job *job; /* job->lateness: how late the run began */
	enum tw_redis_end end;
	int http_status;      /* 0 means no callback, or no answer */
	tw_duration took;     /* the duration of the run; 0 if it did not begin */
	tw_duration retry_in; /* for TW_REDIS_END_RETRIED and TW_REDIS_END_SNOOZED */
	const char *reason;   /* why the run failed; otherwise "" */
};

/* A namespace that a worker serves. */
struct tw_redis_source {
	const char *name_space; /* NULL means "default"; copied */
	unsigned shards;        /* 0 means `shards` of struct tw_redis_options */
};

/* Options of a worker. A field that is 0 or NULL has its default. Without a handler the worker runs
 * callbacks only. */
struct tw_redis_worker_options {
	void *context; /* passed to all functions here */
	/* Runs tasks that have no callback. NULL means such tasks fail, are retried, and become
	 * dead letters. */
	tw_redis_handler_fn *handler;
	/* The number of handler threads, up to 256 (0 means 4), and of concurrent callbacks, up to
	 * 1024 (0 means 64). */
	unsigned handlers;
	unsigned callbacks;
	/* The most of them to one host and port, up to 1024. 0 means all but an eighth. */
	unsigned callbacks_per_host;
	/* The lease of tasks, 100 ms to 1 day. 0 means 30 s. The worker extends it every third of
	 * this time, after which the tasks of a dead worker run again. With `durability` it should
	 * be at least 1.5 times `reply_timeout`: an extension may come after a wait, and a task
	 * whose lease ends meanwhile runs again beside its run. */
	tw_duration lease;
	/* The highest number of tasks of one claim, up to TW_REDIS_BATCH_MAX. 0 means 100. The
	 * worker claims no more tasks than it can run at once, plus those that it can begin within
	 * about 20 ms, at most 10 batches. */
	unsigned batch;
	/* The wait before the second attempt (0 means 1 s). It doubles with each attempt, up to
	 * retry_max (0 means 1 h). Both are at most TW_REDIS_DELAY_MAX. Each wait is shortened by
	 * a random part of up to half. */
	tw_duration retry_first;
	tw_duration retry_max;
	/* The timeout of a callback, up to 1 day. 0 means 30 s. A connection takes at most 5 s. */
	tw_duration http_timeout;
	/* The highest age of a connection that callbacks use again, 1 s to 1 day, rounded up to a
	 * second. 0 means 60 s. Callbacks follow a host's changed name within this time and about 2
	 * s, even if the old address still answers. */
	tw_duration connection_age;
	/*
	 * Patterns of the targets that callbacks may have, and may not have. A pattern is a host,
	 * "shop.example"; all hosts below a name, "*.shop.example"; a network, "10.0.0.0/8" or
	 * "fd00::/8"; an address; or "*", every address. A name that is not ASCII is judged by its
	 * form in ASCII, "xn--mnchen-3ya.example", which a pattern has, too.
	 *
	 * The most specific match decides: the longest pattern that matches the URL's host, or else
	 * the narrowest network that contains the address connected to. A target that the same
	 * pattern allows and denies is denied. A target without a match is denied if `allow` has
	 * patterns, and allowed otherwise.
	 *
	 * Addresses of clouds' metadata are denied even for allowed hosts, unless `allow` has one
	 * of these networks or a part of it: 169.254.0.0/16, fe80::/10 (both link-local),
	 * fd00:ec2::/32, fd20:ce::254, 100.100.100.200, 168.63.129.16, 192.0.0.192. 0.0.0.0 and ::
	 * count as 127.0.0.1 and ::1. ::ffff:a.b.c.d is the IPv4 address. Other IPv6 addresses that
	 * contain one (64:ff9b::/96, 64:ff9b:1::/48, 2002::/16, ::/96, ::ffff:0:0:0/96) are judged
	 * as both, and denied if one of them is.
	 *
	 * A denied callback is neither sent nor retried: the task becomes a dead letter, whose
	 * reason names the host or the address. The patterns do not apply to handlers.
	 */
	const char *const *allow; /* strings, up to TW_REDIS_TARGETS_MAX; copied */
	size_t allow_count;
	const char *const *deny;
	size_t deny_count;
	/* The certificates (PEM) of the authorities that callbacks trust. NULL means those of the
	 * environment's SSL_CERT_FILE and SSL_CERT_DIR, or else the system's. Copied. */
	const char *ca_file;
	/*
	 * The highest age of dead letters, up to TW_REDIS_DELAY_MAX, and their highest number in
	 * the namespace; each shard has an equal share of it, rounded up. 0 means no limit. The
	 * worker deletes the oldest ones, up to 100 at a time, when a run ends as one and at each
	 * claim from the shard, at least every 10 s. While the namespace is paused, or has all
	 * that its limits allow, dead letters stay. Of several workers the strictest limits apply.
	 */
	tw_duration dead_max_age;
	unsigned dead_max_count;
	/* How often each shard is checked while hints can't be received, 10 ms to 10 s. 0 means 1
	 * s. While hints are received, each shard is checked every 10 s. */
	tw_duration poll;
	/*
	 * The namespaces to serve, up to TW_REDIS_SOURCES_MAX, without duplicates. With none, the
	 * worker serves the name_space of its struct tw_redis_options, which is ignored otherwise.
	 * They share the worker's threads and connections. While more tasks are due than the worker
	 * can take, each namespace with due tasks gets an equal share; one that is paused, has
	 * reached its limits or has no due task leaves its share to the others. All other options
	 * apply to each namespace separately; dead_max_count, for example, is the number in each.
	 */
	const struct tw_redis_source *sources; /* copied */
	size_t source_count;
	/*
	 * These functions are called on the worker's main thread, and may be NULL. They should be
	 * short, may use another tw_redis, and must not stop the worker. What they are given is
	 * valid during the call.
	 *
	 * `report` is called for each run that ended, after Redis has confirmed its end, or for
	 * TW_REDIS_END_UNCONFIRMED without that; not for tasks returned because their host did not
	 * answer.
	 */
	void (*report)(void *context, const struct tw_redis_report *report);
	/* Called when Redis, or a node of a cluster, becomes unavailable, and when the reason
	 * changes, with the error; with NULL when it is available again. */
	void (*connection)(void *context, const struct tw_redis_error *error);
	/* Called once for a failure that the worker works around, until it has ended or changed:
	 * hints are refused (TW_REDIS_REFUSED), so it polls; a script fails for a shard
	 * (TW_REDIS_FAILED), and it continues with the others; or a change is not confirmed in time
	 * (TW_REDIS_OUTCOME_UNKNOWN), and it makes the change again. */
	void (*notice)(void *context, const struct tw_redis_error *error);
	uint64_t reserved[4]; /* for later versions; must be 0 */
};

/* A worker: it claims due tasks, runs them and acknowledges them. */
struct tw_redis_worker;

/*
 * Starts a worker: a main thread that claims and acknowledges, a thread for callbacks, and the
 * threads of the handlers.
 *
 * `redis_options` and `options` may be NULL, which selects the defaults. Strings are copied. The
 * worker opens connections of its own, and checks the server and each namespace as in
 * tw_redis_open(). It ignores `patience`: it tries once here, and reconnects by itself later. With
 * `durability` it reports a run when the server has confirmed its acknowledgement, failure or
 * return. *error (may be NULL) describes a failure. The caller owns *worker, until
 * tw_redis_worker_destroy(); on failure *worker is NULL.
 *
 * A callback is sent with the task's headers and with Tw-Key, Tw-Attempt, Tw-Token, Tw-Due (when
 * this attempt was due, in milliseconds since 1970), Tw-Group if the task has a group, and
 * Idempotency-Key: key and token, such as "order:7 17", unless the task's headers set it. A request
 * may arrive twice with the same token: it is sent again if a reused connection breaks before the
 * first byte of the answer. Only http and https are used. Redirects are not followed, and the
 * environment's proxies are not used. The status of an answer counts whatever becomes of its body;
 * at most 64 KiB of it are read, for at most a second.
 *
 * A status 2xx means done. After 408, 429, 5xx or no answer the task is retried, after Retry-After
 * (seconds or a date; a tenth of a second to a day) if that is longer. Any other status makes it a
 * dead letter. An answer of any status with Tw-Snooze: N postpones the task by N seconds, and the
 * attempt does not count. With 429 or 503 and Retry-After the host has a pause until then: none of
 * its tasks begins, and no attempt counts.
 *
 * A host is away while it has not answered for a second (200 ms if it never did), and after a
 * time-out or a failed connection, until it answers. Its requests leave their places to others, up
 * to 1024 or half of the descriptors beyond 16. Its other tasks return to Redis, and no attempt
 * counts: they are due after a fifth of the time that it was away, 2 to 15 s; one tries it first.
 *
 * A worker that stood still for longer than a lease begins no task of it. If no file descriptor is
 * left for a connection, the task is postponed by a second, and the attempt does not count; for a
 * look-up of a name it does.
 *
 * Returns: TW_SYSTEM if a thread could not be started, or no descriptor was available
 */
TW_CHECKED
TW_API enum tw_status tw_redis_worker_start(struct tw_redis_worker **worker,
					    const struct tw_redis_options *redis_options,
					    const struct tw_redis_worker_options *options,
					    struct tw_redis_error *error);

/*
 * Stops the worker: it claims nothing more, returns tasks that it has not begun, and waits up to
 * `grace` for running tasks to end.
 *
 * `worker` may be NULL. `grace` is ≥ 0; TW_FOREVER means no limit. After it, callbacks are aborted
 * and their tasks are returned to Redis, to run again. The worker then has 2 s more to report to
 * Redis. Runs whose end Redis has not confirmed by then end as TW_REDIS_END_UNCONFIRMED, and may
 * run again. The call waits for all this. Any number of times; of concurrent calls the shortest
 * grace applies. tw_redis_worker_destroy() frees the worker afterwards.
 *
 * Returns:
 *   TW_OK                     the worker has stopped, now or before
 *   TW_RUNNING                handlers still run, and can't be aborted; their leases are extended.
 *                             Call again, or exit
 *   TW_INVALID                called from a handler or hook of this worker, or grace < 0; nothing
 *                             happens
 */
TW_API enum tw_status tw_redis_worker_stop(struct tw_redis_worker *worker, tw_duration grace);

/*
 * Frees the worker, which may be NULL. Stops it with a grace of 0 unless it was stopped before, and
 * waits for handlers that still run.
 *
 * Returns: TW_INVALID if called from a handler or hook of this worker; nothing happens
 */
TW_API enum tw_status tw_redis_worker_destroy(struct tw_redis_worker *worker);

/* A histogram of durations. Buckets do not overlap: their sum is the number of durations. */
#define TW_REDIS_BUCKETS 18
struct tw_redis_histogram {
	/* counts[i] counts durations above tw_redis_bucket_bound(i - 1), up to
	 * tw_redis_bucket_bound(i). */
	uint64_t counts[TW_REDIS_BUCKETS];
	uint64_t total_us; /* the sum of all durations, in microseconds */
};

/* Returns the longest duration that a bucket counts: 1 ms for the first one, 5 min for the last but
 * one, TW_FOREVER for the last or a later one. */
TW_API tw_duration tw_redis_bucket_bound(unsigned bucket);

/* A worker's counts of each namespace, X(field, type, help): a counter rises from the worker's
 * start on, a gauge is a current number. */
#define TW_REDIS_NAMESPACE_COUNTS(X)                                                           \
	X(claimed, counter, "Runs taken on lease.")                                            \
	X(done, counter, "Runs that were done.")                                               \
	X(retried, counter, "Runs that failed and will be retried.")                           \
	X(dead, counter,                                                                       \
	  "Tasks made dead letters: by a failed run, or because all attempts had begun.")      \
	X(stale, counter, "Runs overtaken by another run or a new task.")                      \
	X(released, counter, "Runs returned to Redis because the worker stopped.")             \
	X(unconfirmed, counter, "Runs whose end Redis did not confirm; they may run again.")   \
	X(snoozed, counter, "Runs postponed by their handler or receiver.")                    \
	X(put_off, counter,                                                                    \
	  "Runs returned to Redis: their host did not answer, or their time zone is unknown.") \
	X(skipped, counter,                                                                    \
	  "Tasks and occurrences not run because they would have begun too late.")             \
	X(extended, counter, "Lease extensions.")                                              \
	X(claims, counter, "Script calls that claim tasks.")                                   \
	X(hints, counter, "Hints received, for example of earlier due times.")                 \
	X(held, gauge, "Tasks on lease: waiting to run, running, or to be acknowledged.")      \
	X(running, gauge, "Tasks that are running.")

/* The counts of the worker as a whole. While Redis is unavailable, losses is higher than
 * reconnects. */
#define TW_REDIS_WORKER_COUNTS(X)                                                  \
	X(round_trips, counter,                                                    \
	  "Round trips to Redis. Requests to several nodes at once count as one.") \
	X(losses, counter, "Times that Redis became unavailable.")                 \
	X(reconnects, counter, "Times that Redis became available again.")

/* Statistics of a worker. */
struct tw_redis_worker_stats {
#define TW_REDIS_COUNT(field, type, help) uint64_t field;
	TW_REDIS_NAMESPACE_COUNTS(TW_REDIS_COUNT)
	TW_REDIS_WORKER_COUNTS(TW_REDIS_COUNT)
#undef TW_REDIS_COUNT
	/* How late runs began, and how long they took. Runs that were aborted or did not begin are
	 * not counted. A run is counted together with its end. */
	struct tw_redis_histogram lateness;
	struct tw_redis_histogram duration;
	/* Time since the last pass of the main thread, which makes one at least every 10 s, unless
	 * a slow server (up to its timeouts) or a hook delays it. */
	tw_duration turned;
	/* Why Redis is unavailable: the last error passed to `connection`. While it is available,
	 * the status is TW_OK and the text "". */
	struct tw_redis_error error;
	uint64_t reserved[4]; /* for later versions; 0 */
};

/*
 * Returns the worker's statistics in *stats, for one of its namespaces or, if `name_space` is NULL,
 * for all together. Any time, also after the worker was stopped.
 *
 * losses, reconnects, round_trips, turned and error are always those of the whole worker.
 *
 * Returns: TW_NOT_FOUND if the worker does not serve that namespace
 */
TW_API enum tw_status tw_redis_worker_get_stats(struct tw_redis_worker *worker,
						const char *name_space,
						struct tw_redis_worker_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
