/* SPDX-License-Identifier: MIT */
/*
 * The table of errors in timingwheel-redis(7) is checked cell by cell: what happens to each call,
 * and to each step of a worker, when the server refuses it, closes the connection, or does not
 * reply. The server is a false one, the only node of a cluster, that has one task.
 */
#include "support/fixture.h"

#include <limits.h>

#include "redis/wire/script.h"
#include "support/calls.h"
#include "support/false_server.h"
#include "support/runs.h"
#include "support/sockets.h"

enum { ERROR_SIZE = 160 };
/* Replies time out after this in the tests of a silent server. */
static const tw_duration silence = 300 * TW_MILLISECOND;

/* This is the text of an error on the wire, without the "-". */
static const struct {
	const char *error; /* %d is the server's own port */
	/* A call whose patience ends returns this; the other field is whether it retried until
	 * then. */
	enum tw_status status;
	bool repeated;
	/* What a worker reports: 'l' a loss of Redis, 'n' a notice, '-' nothing. */
	char hook;
} errors[] = {
	{"MOVED 7 127.0.0.1:%d", TW_REDIS_UNREACHABLE, true, '-'},
	{"ASK 7 127.0.0.1:%d", TW_REDIS_UNREACHABLE, true, '-'},
	{"TRYAGAIN Multiple keys request during rehashing of slot", TW_REDIS_UNREACHABLE, true,
	 '-'},
	{"BUSY Redis is busy running a script.", TW_REDIS_UNREACHABLE, true, '-'},
	{"LOADING Redis is loading the dataset in memory", TW_REDIS_UNREACHABLE, true, 'l'},
	{"READONLY You can't write against a read only replica.", TW_REDIS_UNREACHABLE, true, 'l'},
	{"CLUSTERDOWN The cluster is down", TW_REDIS_UNREACHABLE, true, 'l'},
	{"MASTERDOWN Link with MASTER is down", TW_REDIS_UNREACHABLE, true, 'l'},
	{"MISCONF Redis is configured to save RDB snapshots", TW_REDIS_UNREACHABLE, true, 'l'},
	{"NOREPLICAS Not enough good replicas to write.", TW_REDIS_UNREACHABLE, true, 'l'},
	/* Redis 5 and 6 have this form. */
	{"ERR Error running script (call to f_0): @user_script:4: @user_script: 4: -MISCONF no",
	 TW_REDIS_UNREACHABLE, true, 'l'},
	{"OOM command not allowed when used memory > 'maxmemory'.", TW_REDIS_FAILED, false, 'n'},
	{"WRONGTYPE Operation against a key holding the wrong kind of value", TW_REDIS_FAILED,
	 false, 'n'},
	{"ERR something else", TW_REDIS_FAILED, false, 'n'},
	{"NOPERM this user has no permissions", TW_REDIS_REFUSED, false, 'l'},
	{"ERR The user executing the script can't run this command", TW_REDIS_REFUSED, false, 'l'},
	{"NOAUTH Authentication required.", TW_REDIS_REFUSED, false, 'l'},
	{"WRONGPASS invalid username-password pair", TW_REDIS_REFUSED, false, 'l'},
	/* The script's text is sent then. */
	{"NOSCRIPT No matching script.", TW_OK, true, '-'},
};
enum { ERRORS = sizeof(errors) / sizeof(errors[0]) };

static struct false_server server;

enum fault { FAULT_ERROR, FAULT_CLOSE, FAULT_SILENCE };

static struct {
	pthread_mutex_t lock; /* guards the fields below */
	enum fault fault;
	int faults;                  /* how often the fault still occurs */
	const struct script *script; /* the script that meets it, or NULL for any */
	char error[ERROR_SIZE];
	const char *fine; /* the normal reply; NULL means that of a server with a task */

	/* These are the task's. */
	bool leased;
	bool done;
	int attempts;
} is = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the script whose name or text is in the request. */
static const struct script *script_of(const redisReply *request)
{
#define SCRIPT_ADDRESS(name, ...) &script_##name,
	static const struct script *const scripts[] = {SCRIPT_LIST(SCRIPT_ADDRESS)};
	const char *text = request->element[1]->str;

	if (!strncmp(text, "#!", 2))
		text = strchr(text, '\n') + 1;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (!strcmp(text, scripts[i]->digest) || !strcmp(text, scripts[i]->full_digest) ||
		    !strcmp(text, scripts[i]->text))
			return scripts[i];
	support_failed("a script that is not known");
	return NULL;
}

static const char idle[] = "*7\r\n$1\r\n1\r\n:-1\r\n:0\r\n*0\r\n*0\r\n*0\r\n*0\r\n";

/* Leases the task if the shard is its own. */
static size_t claim(const redisReply *request, char *reply, size_t room)
{
	if (is.leased || is.done || !strstr(request->element[3]->str, "/0}"))
		return (size_t)snprintf(reply, room, "%s", idle);
	is.leased = true;
	return (size_t)snprintf(reply, room,
				"*7\r\n$1\r\n1\r\n:-1\r\n:1\r\n*2\r\n$1\r\nk\r\n$1\r\n1\r\n"
				"*1\r\n$5\r\n9 0\n\n\r\n*1\r\n:%d\r\n*0\r\n",
				++is.attempts);
}

/* Returns whether the request ends a run with that verb. */
static bool ended_by(const redisReply *request, char verb)
{
	size_t keys = (size_t)strtoul(request->element[2]->str, NULL, 10);

	/* The batch, its token and the place there stand before it. */
	return *request->element[6 + keys]->str == verb;
}

/* Replies as a server with one task. */
static size_t serve(const struct script *script, const redisReply *request, char *reply,
		    size_t room)
{
	if (script == &script_claim)
		return claim(request, reply, room);
	if (script == &script_present)
		return (size_t)snprintf(reply, room, ":1\r\n");
	if (script == &script_finish) {
		is.done |= ended_by(request, 'd');
		is.leased = false;
	}
	return (size_t)snprintf(reply, room, "$1\r\no\r\n");
}

static size_t answer_locked(const redisReply *request, char *reply, size_t room)
{
	const struct script *script = script_of(request);

	/* A server that does not know a script sees its name only. */
	if (is.faults > 0 && (!is.script || is.script == script) &&
	    !(!strncmp(is.error, "NOSCRIPT", 8) && !strcmp(request->element[0]->str, "EVAL"))) {
		is.faults--;
		if (is.fault == FAULT_ERROR)
			return (size_t)snprintf(reply, room, "-%s\r\n", is.error);
		if (!is.fine)
			serve(script, request, reply, room);
		return is.fault == FAULT_CLOSE ? FALSE_CLOSE : 0;
	}
	return is.fine ? (size_t)snprintf(reply, room, "%s", is.fine)
		       : serve(script, request, reply, room);
}

static size_t answer(void *context, const redisReply *request, char *reply, size_t room)
{
	size_t size;

	pthread_mutex_lock(&is.lock);
	size = answer_locked(request, reply, room);
	pthread_mutex_unlock(&is.lock);
	return size;
}

/* Sets the fault that the script meets the next `count` times. */
static void set_fault(enum fault fault, const char *error, const struct script *script, int times)
{
	pthread_mutex_lock(&is.lock);
	is.fault = fault;
	snprintf(is.error, sizeof(is.error), error, server.port);
	is.script = script;
	is.faults = times;
	pthread_mutex_unlock(&is.lock);
}

static int open_all(void **state)
{
	char map[128];

	*state = NULL;
	false_server_start(&server, answer, NULL);
	snprintf(map, sizeof(map), "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d",
		 server.port);
	false_server_be(&server, 7, true);
	false_server_refuse(&server, "CLUSTER", map, INT_MAX);
	return 0;
}

static int close_all(void **state)
{
	false_server_stop(&server);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

/* ---- Calls ---- */

/* A change whose reply is lost may have been made. These calls change nothing, or can be
 * repeated. */
static bool call_is_repeatable(const char *name)
{
	return strstr(" get each dead_each stats ping pause limits set_limits extend workers "
		      "delete set_group_limits each_group_limits groups ",
		      name);
}

static struct tw_redis *open_with(tw_duration patience, tw_duration reply_timeout)
{
	return client_open(&(struct tw_redis_options){.url = server.url,
						      .shards = 4,
						      .patience = patience,
						      .reply_timeout = reply_timeout});
}

/* Calls of several steps have tests of their own: each step may meet the fault. */
static bool call_is_plain(const struct redis_call *call)
{
	return call->fine;
}

/* Makes the server know the call's scripts, and later reply normally. */
static void prepare(const struct redis_call *call, struct tw_redis *redis)
{
	is.fine = call->fine;
	set_fault(FAULT_ERROR, "", NULL, 0);
	assert_ok(redis, call->call(redis));
}

TEST(opened, each_error_has_each_call_repeated_or_ended)
{
	struct tw_redis *patient = open_with(10 * TW_SECOND, 0);
	struct tw_redis *hasty = open_with(25 * TW_MILLISECOND, 0);

	for (size_t i = 0; i < redis_call_count; i++) {
		const struct redis_call *call = &redis_calls[i];

		if (!call_is_plain(call))
			continue;
		prepare(call, hasty);
		prepare(call, patient);
		for (size_t k = 0; k < ERRORS; k++) {
			enum tw_status status;

			set_fault(FAULT_ERROR, errors[k].error, NULL, INT_MAX);
			status = call->call(hasty);
			if (status != errors[k].status)
				fail_msg("%s, %s: %s", call->name, errors[k].error,
					 tw_status_name(status));
			set_fault(FAULT_ERROR, errors[k].error, NULL, 1);
			status = call->call(patient);
			if (status != (errors[k].repeated ? TW_OK : errors[k].status))
				fail_msg("%s, %s once: %s", call->name, errors[k].error,
					 tw_status_name(status));
			set_fault(FAULT_ERROR, "", NULL, 0);
		}
	}
	client_close(patient);
	client_close(hasty);
	is.fine = NULL;
}

TEST(opened, lost_reply_has_each_call_repeated_or_unknown)
{
	static const enum fault faults[] = {FAULT_CLOSE, FAULT_SILENCE};
	struct tw_redis *redis = open_with(10 * TW_SECOND, silence);

	for (size_t i = 0; i < redis_call_count; i++) {
		const struct redis_call *call = &redis_calls[i];

		if (!call_is_plain(call))
			continue;
		for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++) {
			enum tw_status status;

			prepare(call, redis);
			set_fault(faults[k], "", NULL, 1);
			status = call->call(redis);
			if (status !=
			    (call_is_repeatable(call->name) ? TW_OK : TW_REDIS_OUTCOME_UNKNOWN))
				fail_msg("%s: %s", call->name, tw_status_name(status));
			/* The connection was closed before the next call. */
			assert_ok(redis, call->call(redis));
		}
	}
	client_close(redis);
	is.fine = NULL;
}

/* ---- A worker ---- */

/* These are the steps of a task, and the handler's outcome that leads to them. */
static const struct {
	const struct script *script;
	enum tw_redis_outcome first; /* the outcome of the first run; the next one is done */
	int runs;
	/* These are the attempts if the step's reply is lost after the server has done it. */
	int runs_if_lost;
} steps[] = {
	{&script_claim, TW_REDIS_DONE, 1, 0},   {&script_finish, TW_REDIS_DONE, 1, 1},
	{&script_finish, TW_REDIS_RETRY, 2, 2}, {&script_finish, TW_REDIS_SNOOZE, 2, 2},
	{&script_extend, TW_REDIS_DONE, 1, 1},
};
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

static struct runs runs;
static enum tw_redis_outcome first_outcome;
static atomic_int runs_begun;

static bool extension_is_awaited(void)
{
	bool is_awaited;

	pthread_mutex_lock(&is.lock);
	is_awaited = is.script == &script_extend && is.faults > 0;
	pthread_mutex_unlock(&is.lock);
	return is_awaited;
}

/* A run takes longer than an end that is sent again, for the server compares no tokens. One whose
 * lease is to be extended ends after that. */
static enum tw_redis_outcome run(void *context, const struct tw_redis_job *job,
				 struct tw_redis_verdict *verdict)
{
	wait_for(60 * TW_MILLISECOND);
	while (extension_is_awaited())
		wait_for(TW_MILLISECOND);
	verdict->retry_in = 1;
	/* relaxed: a count */
	atomic_fetch_add_explicit(&runs_begun, 1, memory_order_relaxed);
	return job->attempt == 1 ? first_outcome : TW_REDIS_DONE;
}

static void run_task(size_t step, int attempts, char hook, tw_duration reply_timeout)
{
	const struct tw_redis_options options = {
		.url = server.url, .shards = 4, .reply_timeout = reply_timeout};
	struct tw_redis_worker_options worker_options = {.lease = TW_SECOND,
							 .poll = 10 * TW_MILLISECOND};
	struct tw_redis_worker *worker;
	struct tw_redis_error last;

	runs_init(&runs, 10);
	runs_attach(&runs, &worker_options);
	worker_options.handler = run;
	first_outcome = steps[step].first;
	/* relaxed: there is no worker */
	atomic_store_explicit(&runs_begun, 0, memory_order_relaxed);
	pthread_mutex_lock(&is.lock);
	is.attempts = 0;
	is.done = is.leased = false;
	pthread_mutex_unlock(&is.lock);
	worker = worker_start(&options, &worker_options);
	WAIT_UNTIL(ends_count_of(&runs, "k", TW_REDIS_END_DONE) == 1);
	/* relaxed: a count */
	assert_int_equal(atomic_load_explicit(&runs_begun, memory_order_relaxed), attempts);
	assert_int_equal(is.attempts, attempts);
	if (hook == 'l')
		WAIT_UNTIL(runs_found(&runs) >= 1);
	if ((runs_errors(&runs, &last) > 0) != (hook == 'l') ||
	    (runs_notices(&runs, &last) > 0) != (hook == 'n'))
		fail_msg("%s, %s: %zu losses, %zu notices", steps[step].script->name, is.error,
			 runs_errors(&runs, &last), runs_notices(&runs, &last));
	assert_int_equal(runs_lost(&runs), runs_found(&runs));
	worker_stop(worker);
	runs_free(&runs);
}

/* A refused step costs no attempt: the task's runs are those without it. */
TEST(opened, each_error_has_a_worker_say_each_step_again)
{
	for (size_t i = 0; i < STEPS; i++) {
		for (size_t k = 0; k < ERRORS; k++) {
			set_fault(FAULT_ERROR, errors[k].error, steps[i].script, 2);
			run_task(i, steps[i].runs, errors[k].hook, 0);
		}
	}
}

/* The end of a run is sent again. Only a claim whose reply is lost costs an attempt: its lease must
 * end first, which test_outages waits for. */
TEST(opened, lost_reply_has_a_worker_say_each_step_again)
{
	static const enum fault faults[] = {FAULT_CLOSE, FAULT_SILENCE};

	for (size_t i = 0; i < STEPS; i++) {
		for (size_t k = 0; k < 2 && steps[i].runs_if_lost; k++) {
			set_fault(faults[k], "", steps[i].script, 1);
			run_task(i, steps[i].runs_if_lost, 'l', silence);
		}
	}
}
