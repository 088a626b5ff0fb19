/* SPDX-License-Identifier: MIT */
/*
 * The table of errors in timingwheel-redis(7) is checked cell by cell: what happens to each call,
 * and to each step of a worker, when the server refuses it, closes the connection, or does not
 * reply. The server is a false one, the only node of a cluster.
 */
#include "support/fixture.h"

#include "support/calls.h"
#include "support/runs.h"
#include "support/talk.h"

/* Replies time out after this in the tests of a silent server. */
#define SILENCE "reply 300ms"

/* This is the text of an error on the wire, without the "-". */
static const struct {
	const char *error; /* $a is the server's own port */
	/* A call whose patience ends returns this; the other field is whether it retried until
	 * then. */
	enum tw_status status;
	bool repeated;
	/* What a worker reports: 'l' a loss of Redis, 'n' a notice, '-' nothing. */
	char hook;
} errors[] = {
	{"MOVED 7 127.0.0.1:$a", TW_REDIS_UNREACHABLE, true, '-'},
	{"ASK 7 127.0.0.1:$a", TW_REDIS_UNREACHABLE, true, '-'},
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

/* ---- Calls ---- */

/* A change whose reply is lost may have been made. These calls change nothing, or can be
 * repeated. */
static bool call_is_repeatable(const char *name)
{
	return strstr(" get each dead_each stats ping pause limits set_limits extend workers "
		      "delete set_group_limits each_group_limits groups ",
		      name);
}

/* Opens a client with the options, and has the server know the call's scripts. Returns false for a
 * call of several steps: each of them may meet the fault, so they have tests of their own. */
static bool prepare(const struct redis_call *call, const char *options)
{
	if (!call->fine)
		return false;
	SAY("cluster a 0-16383; on script %s; open %s", call->fine, options);
	assert_ok(talk_client(), call->call(talk_client()));
	return true;
}

static void assert_answer(const struct redis_call *call, const char *fault, enum tw_status expected)
{
	enum tw_status status = call->call(talk_client());

	if (status != expected)
		fail_msg("%s, %s: %s", call->name, fault, tw_status_name(status));
}

TEST(talk, each_error_has_each_call_repeated_or_ended)
{
	for (size_t i = 0; i < redis_call_count; i++) {
		const struct redis_call *call = &redis_calls[i];

		for (size_t k = 0; k < ERRORS; k++) {
			const char *error = errors[k].error;

			if (!prepare(call, "patience 25ms"))
				break;
			CONTINUE("1000000x script -%s", error);
			assert_answer(call, error, errors[k].status);
			CONTINUE("on script %s; once script -%s; patience 10s", call->fine, error);
			assert_answer(call, error, errors[k].repeated ? TW_OK : errors[k].status);
		}
	}
}

TEST(talk, lost_reply_has_each_call_repeated_or_unknown)
{
	static const char *const faults[] = {"close", "silence"};

	for (size_t i = 0; i < redis_call_count; i++) {
		const struct redis_call *call = &redis_calls[i];

		for (size_t k = 0; k < 2 && prepare(call, "patience 10s " SILENCE); k++) {
			CONTINUE("once script %s", faults[k]);
			assert_answer(call, faults[k],
				      call_is_repeatable(call->name) ? TW_OK
								     : TW_REDIS_OUTCOME_UNKNOWN);
			/* The connection was closed before the next call. */
			assert_answer(call, "nothing", TW_OK);
		}
	}
}

/* ---- A worker ---- */

/* These are the steps of a task, and the handler's outcome that leads to them. */
static const struct {
	const char *script;
	const char *first; /* the outcome of the first run; the next one is done */
	int runs;
	/* These are the runs if the step's reply is lost after the server has done it. */
	int runs_if_lost;
} steps[] = {
	{"claim", "done", 1, 0},    {"finish", "done", 1, 1}, {"finish", "retry", 2, 2},
	{"finish", "snooze", 2, 2}, {"extend", "done", 1, 1},
};
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

/* Runs the task by a worker whose step meets the fault. If that is an extension of the lease, the
 * run lasts until then. */
static void run_task(size_t step, int times, const char *fault, char hook, const char *options)
{
	bool extends = !strcmp(steps[step].script, "extend");

	SAY("cluster a 0-16383; open %s; %s; give k;"
	    "work lease 600ms poll 10ms run %s until %s;"
	    "await done 1; attempts = %d; runs = %d; await found %d; lost = %s; notices = %s",
	    options, fault, steps[step].first, extends ? "extend" : "none", times, times,
	    hook == 'l', hook == 'l' ? "1-99" : "0", hook == 'n' ? "1-99" : "0");
}

/* A refused step costs no attempt: the task's runs are those without it. */
TEST(talk, each_error_has_a_worker_say_each_step_again)
{
	char fault[200];

	for (size_t i = 0; i < STEPS; i++) {
		for (size_t k = 0; k < ERRORS; k++) {
			snprintf(fault, sizeof(fault), "2x %s -%s", steps[i].script,
				 errors[k].error);
			run_task(i, steps[i].runs, fault, errors[k].hook, "");
		}
	}
}

/* The end of a run is sent again. Only a claim whose reply is lost costs an attempt: its lease must
 * end first, which test_outages waits for. */
TEST(talk, lost_reply_has_a_worker_say_each_step_again)
{
	static const char *const faults[] = {"close", "silence"};
	char fault[200];

	for (size_t i = 0; i < STEPS; i++) {
		for (size_t k = 0; k < 2 && steps[i].runs_if_lost; k++) {
			snprintf(fault, sizeof(fault), "once %s %s", steps[i].script, faults[k]);
			run_task(i, steps[i].runs_if_lost, fault, 'l', SILENCE);
		}
	}
}

TALK_FILE
