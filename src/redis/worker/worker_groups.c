/* SPDX-License-Identifier: MIT */
/*
 * worker_groups.c is a worker's part of the limits of groups, which have a row each. A claim says
 * which groups with limits lack permits in its shard, and the shard keeps them back. The worker
 * asks the node of the namespace's own keys for permits, and passes them to the shard's next claim.
 * A question also reports how many tasks of the group the worker has, at most: those on lease,
 * those that claims under way may bring, and the permits that are left. Redis believes a report for
 * two leases' time, and the worker repeats it after a third of one.
 *
 * While claims want more the worker asks ahead, so that a limit that is not reached delays nothing.
 * Permits that nothing wants, or that found no task for keep_time, are returned. The room that a
 * question asks for is kept free of claims until the answer, so that busy groups without limits
 * leave some to those with limits.
 */
#include "worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* These are numbers of rows: that a turn looks at, with permits in a claim, in one of the last
 * questions, and in all: more groups that are kept back are named again later. */
enum { LOOKED_MOST = 400, PASSED_MOST = 100, LEFT_MOST = 1000, ROWS_MOST = 100000 };
static const tw_duration failure_time = 100 * TW_MILLISECOND;
/* A row that is given nothing waits twice as long each time, up to this. */
static const tw_duration wait_most = TW_SECOND;
static const tw_duration keep_time = TW_SECOND;

/* ---- Rows ---- */

/* Puts the row where the next turn looks at it. */
static void row_look(struct group_row *row)
{
	if (!row->is_due)
		list_append(&row->source->groups.due, &row->due);
	row->is_due = true;
}

static void row_leave_due(struct group_row *row)
{
	if (row->is_due)
		list_remove(&row->due);
	row->is_due = false;
}

static void row_set_limited(struct group_row *row, bool limited)
{
	if (row->is_limited)
		list_remove(&row->limited);
	/* The last asked is the last. */
	if (limited)
		list_append(&row->source->groups.limited, &row->limited);
	row->is_limited = limited;
}

static void row_free(struct group_row *row)
{
	row_leave_due(row);
	row_set_limited(row, false);
	if (row->timer.id)
		tw_timer_stop(row->source->worker->wheel, row->timer);
	HASH_DEL(row->source->groups.rows, row);
	free(row);
}

/* Frees the row if nothing needs it. */
static void row_let_go(struct group_row *row)
{
	if (!row->held && !row->claims && !row->left && !row->is_asked && !row->reported &&
	    !row->shard)
		row_free(row);
}

/* Returns the row of a group, or NULL. */
static struct group_row *row_find(const struct groups *groups, const char *name, size_t size)
{
	struct group_row *row = NULL;

	HASH_FIND(hh, groups->rows, name, size, row);
	return row;
}

/* Returns the row of a group, which it makes. Returns NULL without memory. */
static struct group_row *row_get(struct source *source, const char *name)
{
	size_t size = strlen(name);
	struct group_row *row = row_find(&source->groups, name, size);

	if (row)
		return row;
	row = calloc(1, sizeof(*row) + size + 1);
	if (!row)
		return NULL;
	row->source = source;
	memcpy(row->name, name, size);
	HASH_ADD_KEYPTR(hh, source->groups.rows, row->name, size, row);
	if (!row->hh.tbl) {
		free(row);
		return NULL;
	}
	return row;
}

bool run_join_group(struct run *run)
{
	struct source *source = run->shard->source;

	if (!run->job->group)
		return true;
	run->group = row_get(source, run->job->group);
	if (!run->group)
		return false;
	run->group->held++;
	run->group->left -= run->group->left > 0;
	return true;
}

void run_leave_group(struct run *run)
{
	struct group_row *row = run->group;

	if (!row)
		return;
	run->group = NULL;
	row->held--;
	if (row->is_limited)
		row_look(row);
	row_let_go(row);
}

/* ---- What a shard keeps back ---- */

/* Has the shard's next claim pass the permits that are left. */
static void row_offer(struct group_row *row)
{
	if (!row->left || !row->shard)
		return;
	if (!row->is_offered)
		list_append(&row->source->groups.offered, &row->offered);
	row->is_offered = true;
	shard_look_in(row->shard, 0);
}

static void row_withdraw(struct group_row *row)
{
	if (row->is_offered)
		list_remove(&row->offered);
	row->is_offered = false;
}

/* Notes that the shard keeps the group back. Without memory the shard names it again. So does
 * another shard than that whose claim has permits. */
static void row_want(struct worker_shard *shard, const char *name, size_t count)
{
	struct groups *groups = &shard->source->groups;
	struct group_row *row = HASH_COUNT(groups->rows) < ROWS_MOST
					? row_get(shard->source, name)
					: row_find(groups, name, strlen(name));

	if (!row || (row->passed && row->shard != shard))
		return;
	row->shard = shard;
	row->wanted = count;
	row->named = shard->source->stats.claims;
	row_look(row);
}

/* Returns whether the permits that are left are to be returned: if the worker has stood still for
 * half a lease, others may have them by now. */
static bool permits_are_old(const struct group_row *row, tw_duration now)
{
	tw_duration half = row->source->worker->options.lease / 2;

	return row->left && now - row->given_at > (half < keep_time ? half : keep_time);
}

void groups_pass(struct worker_shard *shard, struct eval *eval, size_t limit)
{
	struct groups *groups = &shard->source->groups;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	size_t passed = 0;
	struct list *next;

	for (struct list *at = groups->offered.next; at != &groups->offered && passed < PASSED_MOST;
	     at = next) {
		struct group_row *row = list_entry(at, struct group_row, offered);
		size_t count = row->left < limit ? row->left : limit;

		next = at->next;
		if (row->shard != shard)
			continue;
		if (!count || permits_are_old(row, now)) {
			row_withdraw(row);
			continue;
		}
		claim_permit(eval, row->name, count);
		row->passed = count;
		row->left -= count;
		row->claims += count;
		passed++;
	}
}

void groups_settle(struct worker_shard *shard, enum claim_end end)
{
	struct groups *groups = &shard->source->groups;

	for (struct list *at = groups->offered.next; at != &groups->offered; at = at->next) {
		struct group_row *row = list_entry(at, struct group_row, offered);

		if (row->shard != shard)
			continue;
		row->claims -= row->passed;
		/* The tasks of a lost reply have permits until they are given back. */
		if (end != CLAIM_LOST)
			row->left += row->passed;
		if (end != CLAIM_READ)
			row->passed = 0;
		row_look(row);
	}
}

/* Decides what becomes of a row whose permits were in a claim. */
static void row_review(struct group_row *row, bool is_empty)
{
	/* The claim that is being read lacked permits for it. */
	bool is_named = row->named == row->source->stats.claims;

	row->passed = 0;
	/* A claim that left something due may not have come to this group. */
	if (!is_named && is_empty) {
		row_withdraw(row);
		row->shard = NULL;
		row_look(row);
	} else if (is_named && row->left) {
		/* They were passed for a place in the queue that had no task any more. */
		shard_look_in(row->shard, 0);
	}
}

void groups_lack(struct worker_shard *shard, const struct batch *batch)
{
	struct groups *groups = &shard->source->groups;
	struct list *next;
	const char *name;
	size_t count;

	for (size_t i = 0; batch_lack(batch, i, &name, &count); i++)
		row_want(shard, name, count);
	for (struct list *at = groups->offered.next; at != &groups->offered; at = next) {
		struct group_row *row = list_entry(at, struct group_row, offered);

		next = at->next;
		if (row->shard == shard && row->passed)
			row_review(row, batch->next);
	}
}

/* ---- Questions ---- */

static void row_wakes(void *argument)
{
	struct group_row *row = argument;

	row->timer.id = 0;
	row->is_waiting = false;
	row_look(row);
}

/* Lets the row want nothing for a while. */
static void row_wait(struct group_row *row, tw_duration wait)
{
	struct tw_wheel *wheel = row->source->worker->wheel;

	if (row->timer.id)
		tw_timer_stop(wheel, row->timer);
	row->timer.id = 0;
	row->is_waiting = tw_after_func(wheel, wait, row_wakes, row, &row->timer) == TW_OK;
}

static bool report_is_old(const struct group_row *row, tw_duration now)
{
	return row->is_limited && now - row->asked_at > row->source->worker->options.lease / 3;
}

static size_t row_has(const struct group_row *row)
{
	return row->held + row->claims + row->left;
}

static void question_begin(struct source *source, struct eval *eval)
{
	eval_begin(eval, &script_group_permit, &source->redis->space, SHARD_NONE);
	eval_text(eval, source->worker->name);
	eval_number(eval, delay_to_ms(2 * source->worker->options.lease));
}

/* Adds the row to the question, if there is anything to ask or report. */
static void row_ask(struct group_row *row, struct eval *eval, size_t *room, tw_duration now)
{
	struct groups *groups = &row->source->groups;
	size_t wanted = row->wanted < *room ? row->wanted : *room;
	size_t returned = 0;
	bool is_old = permits_are_old(row, now);

	if (is_old || !row->shard) {
		returned = row->left;
		row->left = 0;
		if (is_old)
			row_wait(row, failure_time);
		wanted = 0;
	} else if (row->is_waiting && row_has(row) >= row->reported) {
		wanted = 0;
	} else {
		/* It asks ahead when half is used. */
		wanted = row->left >= (wanted + 1) / 2 ? 0 : wanted - row->left;
	}
	if (!wanted && (!row->is_limited ||
			(!returned && row->reported == row_has(row) && !report_is_old(row, now))))
		return;
	row->is_asked = true;
	row->asked_at = now;
	row->asked_has = row_has(row);
	row->asked_for = wanted;
	if (!groups->asked_count)
		question_begin(row->source, eval);
	groups->asked[groups->asked_count++] = row;
	eval->answers += 2;
	eval_text(eval, row->name);
	eval_number(eval, (int64_t)row->asked_has);
	eval_number(eval, (int64_t)wanted);
	eval_number(eval, (int64_t)returned);
	groups->asked_room += wanted;
	*room -= wanted;
}

/* Puts the rows whose reports become old where the turn looks at them. */
static void reports_look(struct groups *groups, tw_duration now)
{
	for (struct list *at = groups->limited.next; at != &groups->limited; at = at->next) {
		struct group_row *row = list_entry(at, struct group_row, limited);

		if (!report_is_old(row, now))
			return;
		row_look(row);
	}
}

bool groups_ask(struct source *source, struct eval *eval, size_t room)
{
	struct groups *groups = &source->groups;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	size_t looks = 0;
	struct list stay;
	struct list asked;

	reports_look(groups, now);
	list_init(&stay);
	list_init(&asked);
	while (!list_is_empty(&groups->due) && groups->asked_count < GROUPS_ASKED_MOST &&
	       looks++ < LOOKED_MOST) {
		struct group_row *row = list_entry(groups->due.next, struct group_row, due);

		row_ask(row, eval, &room, now);
		list_remove(&row->due);
		/* These may need a question by and by. */
		row->is_due = row->left || (row->shard && !row->is_waiting);
		if (row->is_due)
			list_append(row->is_asked ? &asked : &stay, &row->due);
		row_let_go(row);
	}
	/* Those that were asked for come last the next time: room may be scarce. */
	list_append_all(&groups->due, &stay);
	list_append_all(&groups->due, &asked);
	return groups->asked_count;
}

/* Takes the answer about a row: how many more it may begin, or -1: it has no limits; and how long
 * it must wait for more, or -1. */
static void answer_take(struct group_row *row, int64_t given, int64_t wait_ms)
{
	row_set_limited(row, given >= 0);
	row->reported = given >= 0 ? row->asked_has + (size_t)given : 0;
	/* A shard that has the old limits still wants permits. */
	row->left += given >= 0 ? (size_t)given : row->asked_for;
	if (given != 0) {
		row->given_at = row->asked_at;
		row->wait = 0;
	}
	if (wait_ms >= 0) {
		tw_duration longer = 2 * row->wait < wait_most ? 2 * row->wait : wait_most;

		row->wait = wait_ms * TW_MILLISECOND;
		row->wait = row->wait > longer ? row->wait : longer;
		row_wait(row, row->wait);
	}
	row_offer(row);
}

void groups_read(struct source *source, const struct eval *eval)
{
	struct groups *groups = &source->groups;

	for (size_t i = 0; i < groups->asked_count; i++) {
		struct group_row *row = groups->asked[i];

		row->is_asked = false;
		row_look(row);
		if (eval->status == TW_OK) {
			answer_take(row, eval_integer(eval, 2 * i, -1),
				    eval_integer(eval, 2 * i + 1, -1));
		} else if (row->is_limited || row->asked_for) {
			/* What Redis believes is not known. */
			row_leave_due(row);
			row_set_limited(row, true);
			row->reported = SIZE_MAX;
			row_wait(row, failure_time);
		}
		row_let_go(row);
	}
	groups->asked_count = 0;
	groups->asked_room = 0;
}

bool groups_leave(struct source *source, struct eval *eval)
{
	struct groups *groups = &source->groups;
	size_t count = 0;

	question_begin(source, eval);
	for (; !list_is_empty(&groups->limited) && count < LEFT_MOST; count++) {
		struct group_row *row = list_entry(groups->limited.next, struct group_row, limited);

		eval_text(eval, row->name);
		eval_number(eval, 0);
		eval_number(eval, 0);
		eval_number(eval, (int64_t)row->left);
		row_set_limited(row, false);
	}
	return count;
}

void groups_free(struct source *source)
{
	struct group_row *row;
	struct group_row *next;

	HASH_ITER (hh, source->groups.rows, row, next)
		row_free(row);
}
