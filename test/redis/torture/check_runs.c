/* SPDX-License-Identifier: MIT */
/* check_runs.c checks runs: when they were claimed, in which order, and under which lease. */
#include "checker.h"

/* The end of a lease is truncated to a millisecond, and the clock of a line is read a little
 * later. */
static const int64_t slack_us = 2000;
static const int64_t slack = 2000000;

/* Returns the earliest due time that the call allows, in milliseconds since 1970. */
static int64_t call_due_least(const struct call *call)
{
	if (call_certainty(call) == CERTAIN_YES)
		return call->due_ms;
	return (call->begin_real_us + call->delay_ms * 1000 - slack_us) / 1000;
}

/* Returns the begin of the last call that certainly set the task's due time before. */
static int64_t last_sure_move(const struct run *run, const struct life *life)
{
	const struct call *added = run->task->added;
	const struct key *key = run->task->key;
	int64_t last = call_certainty(added) == CERTAIN_YES ? added->begin : INT64_MIN;

	for (size_t i = added->index; i < key->calls.count; i++) {
		const struct call *call = key->calls.items[i];

		if (call->begin >= run->claim)
			break;
		if (call->kind == CALL_MOVE && call->begin > life->from && call->begin > last &&
		    call->end < run->claim && call_certainty(call) == CERTAIN_YES)
			last = call->begin;
	}
	return last;
}

static void check_due(const struct run *run, const struct life *life, struct faults *faults)
{
	const struct call *added = run->task->added;
	const struct key *key = run->task->key;
	int64_t last = last_sure_move(run, life);
	const struct call *least = added;

	if (call_certainty(added) == CERTAIN_YES &&
	    added->due_ms * 1000 < added->begin_real_us + added->delay_ms * 1000 - slack_us)
		fault_add(faults, "early", key, run->task->id, added->line, added->answer);
	if (added->end < last)
		least = NULL;
	for (size_t i = 0; i < key->calls.count; i++) {
		const struct call *call = key->calls.items[i];

		if (call->begin >= run->claim)
			break;
		if (call->kind == CALL_MOVE && call->end >= added->begin && call->end >= last &&
		    call_certainty(call) != CERTAIN_NO &&
		    (!least || call_due_least(call) < call_due_least(least)))
			least = call;
	}
	if (least && (int64_t)run->token < call_due_least(least) * 1000)
		fault_add(faults, "early", key, run->task->id,
			  least->answer ? least->answer : least->line, run->begin_line);
}

/*
 * Returns whether a move may have happened between the two moments, or a cancel, which brings the
 * next occurrence of a recurring task.
 */
static bool may_be_moved(const struct key *key, int64_t from, int64_t to)
{
	for (size_t i = 0; i < key->calls.count; i++) {
		const struct call *call = key->calls.items[i];

		if ((call->kind == CALL_MOVE || call->kind == CALL_CANCEL) && call->begin < to &&
		    call->end > from && call_certainty(call) != CERTAIN_NO)
			return true;
	}
	return false;
}

void check_pair(const struct story *story, const struct run *first, const struct run *second,
		struct faults *faults)
{
	bool recurs = first->task->period_ms;
	const struct key *key = first->task->key;
	const char *id = first->task->id;
	int64_t between_us = (int64_t)(second->token - first->token);
	bool is_sure = run_end_is_sure(first);
	bool is_clear = !first->is_unclear && !second->is_unclear;
	bool came_before_end = is_clear && (int64_t)second->token < first->end_real_us - slack_us;

	if ((first->attempt >= second->attempt && !recurs && !first->may_be_lost) ||
	    first->token == second->token)
		fault_add(faults, "token falls", key, id, first->begin_line, second->begin_line);
	if (is_sure && ((first->outcome != RUN_RETRIED && !recurs) || came_before_end))
		fault_add(faults, "overtaken", key, id, first->report_line, second->begin_line);
	if (is_clear && first->end >= second->claim &&
	    between_us < story->lease_ms * 1000 - slack_us)
		fault_add(faults, "two at once", key, id, first->begin_line, second->begin_line);
	if (is_clear && is_sure && first->outcome == RUN_RETRIED && !came_before_end &&
	    (int64_t)second->token < first->end_real_us + first->wait_ms * 1000 - slack_us &&
	    !may_be_moved(key, first->end, second->claim))
		fault_add(faults, "early", key, id, first->report_line, second->begin_line);
}

void check_runs(const struct story *story, const struct task *task, const struct life *life,
		struct faults *faults)
{
	for (size_t i = 0; i < task->runs.count; i++) {
		const struct run *run = task->runs.items[i];

		if (!run->is_unclear)
			check_due(run, life, faults);
		for (size_t k = i + 1; k < task->runs.count; k++) {
			const struct run *other = task->runs.items[k];
			bool in_order = run->token < other->token ||
					(run->token == other->token && run->begin < other->begin);

			check_pair(story, in_order ? run : other, in_order ? other : run, faults);
		}
	}
}

/* Returns the run with the highest token among the key's runs that had begun by then. */
static const struct run *highest_before(const struct key *key, int64_t time)
{
	const struct run *highest = NULL;

	for (size_t i = 0; i < key->tasks.count; i++) {
		const struct task *task = key->tasks.items[i];

		for (size_t k = 0; k < task->runs.count; k++) {
			const struct run *run = task->runs.items[k];

			if (run->begin < time && (!highest || run->token > highest->token))
				highest = run;
		}
	}
	return highest;
}

void check_tokens(const struct key *key, struct faults *faults)
{
	for (size_t i = 0; i < key->tasks.count; i++) {
		const struct task *task = key->tasks.items[i];
		const struct run *highest = NULL;

		if (task->added && task->runs.count)
			highest = highest_before(key, task->added->begin);
		for (size_t k = 0; highest && k < task->runs.count; k++) {
			const struct run *run = task->runs.items[k];

			if (run->token <= highest->token)
				fault_add(faults, "token falls", key, task->id, highest->begin_line,
					  run->begin_line);
		}
	}
}

/* Returns whether another task may have taken the key within that time. Its add may have begun
 * before this task's, and have waited for a server that was down. */
static bool may_be_replaced(const struct task *task, int64_t from, int64_t to)
{
	for (size_t i = 0; i < task->key->calls.count; i++) {
		const struct call *call = task->key->calls.items[i];

		if (call->begin > to)
			return false;
		if (call->kind == CALL_ADD && call->task != task && call->end > from &&
		    call_certainty(call) != CERTAIN_NO)
			return true;
	}
	return false;
}

/* Finds cancels and moves that succeeded while one of the task's runs held a lease. */
static void check_leases(const struct story *story, const struct call *call,
			 const struct task *task, struct faults *faults)
{
	for (size_t i = 0; i < task->runs.count && task->added; i++) {
		const struct run *run = task->runs.items[i];
		int64_t until = run->claim + story->lease_ms * 1000000;

		int64_t until_us = (int64_t)run->token + story->lease_ms * 1000;

		if (until > run->end)
			until = run->end;
		/* The server's clock may have been stepped to the lease's end. */
		if (!run->is_unclear && call->begin > run->claim + slack &&
		    call->begin_real_us < until_us - slack_us && call->end < until - slack &&
		    !may_be_replaced(task, run->claim, call->end))
			fault_add(faults, "on lease", task->key, task->id, run->begin_line,
				  call->answer);
	}
}

void check_answers(const struct story *story, const struct key *key, const struct life *lives,
		   struct faults *faults)
{
	for (size_t i = 0; i < key->calls.count; i++) {
		const struct call *call = key->calls.items[i];
		bool none = call_says_none(call);
		bool some = call_says_some(call);
		bool takes = (call->kind == CALL_CANCEL || call->kind == CALL_MOVE ||
			      call->kind == CALL_END) &&
			     call_certainty(call) == CERTAIN_YES;
		bool might = false;

		for (size_t k = 0; k < key->tasks.count && (none || some); k++) {
			const struct task *task = key->tasks.items[k];

			if (takes)
				check_leases(story, call, task, faults);
			if (none && lives[k].from < call->begin && lives[k].seen > call->end)
				fault_add(faults, "denied", key, task->id, call->answer,
					  lives[k].seen_line);
			might |= task != call->task && task->added &&
				 call_certainty(task->added) != CERTAIN_NO &&
				 task->added->begin < call->end && lives[k].gone > call->begin;
		}
		might |= call->kind == CALL_GET;
		if (some && !might)
			fault_add(faults, "from nothing", key, "", call->line, call->answer);
	}
}
