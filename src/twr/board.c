/* SPDX-License-Identifier: MIT */
/*
 * board.c asks Redis on the thread that looks, under the lock. Another look waits for the same
 * answer, or for the news that there is none.
 *
 * The groups cost Redis more than the counts do. After a question about them there is none for
 * GROUPS_PAUSE times as long as it took, so they take at most a twentieth of Redis's time.
 */
#include "board.h"

#include <stdlib.h>
#include <string.h>

#include "when.h"

enum { GROUPS_PAUSE = 20 };
static const tw_duration answer_is_fresh = TW_SECOND;

/* ---- What Redis says ---- */

/* Asks about all namespaces. Returns whether Redis replied for each. */
static bool counts_ask(struct board *board)
{
	for (size_t i = 0; i < board->space_count; i++) {
		struct board_space *space = &board->spaces[i];
		struct task_figures asked = {0};

		if (figures_ask(space->redis, &asked) != TW_OK) {
			tw_redis_last_error(space->redis, &board->failure);
			return false;
		}
		space->tasks = asked;
	}
	return true;
}

/* Asks for the groups of all namespaces. */
static void groups_ask(struct board *board)
{
	tw_duration begin = now_read();
	tw_duration end;

	if (begin < board->groups_at)
		return;
	for (size_t i = 0; i < board->space_count; i++) {
		struct board_space *space = &board->spaces[i];

		space->group_count = 0;
		if (tw_redis_get_groups(space->redis, space->groups, BOARD_GROUPS,
					&space->group_count) != TW_OK)
			return;
	}
	end = now_read();
	board->groups_at = end + GROUPS_PAUSE * (end - begin);
}

static void redis_ask(struct board *board)
{
	board->figures.redis_up = counts_ask(board);
	if (board->figures.redis_up)
		groups_ask(board);
	board->asked_at = now_read();
}

/* ---- What the worker says ---- */

static void worker_look(struct board *board)
{
	for (size_t i = 0; i < board->space_count; i++)
		tw_redis_worker_get_stats(board->worker, board->spaces[i].name,
					  &board->spaces[i].runs);
	tw_redis_worker_get_stats(board->worker, NULL, &board->figures.stats);
	if (board->figures.stats.error.status != TW_OK)
		board->failure = board->figures.stats.error;
	board->figures.uptime = now_read() - board->start;
	board->figures.ready = board_is_ready(board);
}

/* ---- The calls ---- */

void board_stop(struct board *board)
{
	if (!board)
		return;
	for (size_t i = 0; i < board->space_count; i++)
		tw_redis_close(board->spaces[i].redis);
	pthread_mutex_destroy(&board->lock);
	free(board);
}

/* Opens a namespace, the first with the connection and the others beside it. */
static enum tw_status space_open(struct board *board, const char *name,
				 const struct tw_redis_options *options,
				 struct tw_redis_error *error)
{
	struct board_space *space = &board->spaces[board->space_count];
	struct tw_redis_options once = *options;
	enum tw_status status;

	once.patience = -1;
	once.name_space = name;
	status = board->space_count ? tw_redis_open_beside(board->spaces[0].redis, name,
							   options->shards, &space->redis, error)
				    : tw_redis_open(&space->redis, &once, error);
	if (status != TW_OK)
		return status;
	space->name = name ? name : "default";
	board->space_count++;
	return TW_OK;
}

enum tw_status board_start(struct board **board, struct tw_redis_worker *worker,
			   const struct tw_redis_options *redis,
			   const struct tw_redis_worker_options *options,
			   struct tw_redis_error *error)
{
	const struct tw_redis_source own = {.name_space = redis->name_space};
	const struct tw_redis_source *sources = options->source_count ? options->sources : &own;
	size_t count = options->source_count ? options->source_count : 1;
	struct board *started = calloc(1, sizeof(*started));
	enum tw_status status = TW_OK;

	*board = NULL;
	if (!started)
		return TW_NO_MEMORY;
	started->worker = worker;
	started->start = now_read();
	pthread_mutex_init(&started->lock, NULL);
	for (size_t i = 0; i < count && status == TW_OK; i++)
		status = space_open(started, sources[i].name_space, redis, error);
	if (status == TW_OK)
		*board = started;
	else
		board_stop(started);
	return status;
}

void board_look(struct board *board)
{
	pthread_mutex_lock(&board->lock);
	if (!board->asked_at || board->asked_at < now_read() - answer_is_fresh)
		redis_ask(board);
	worker_look(board);
}

void board_leave(struct board *board)
{
	pthread_mutex_unlock(&board->lock);
}

bool board_is_ready(const struct board *board)
{
	return board->figures.redis_up &&
	       board->figures.stats.losses == board->figures.stats.reconnects &&
	       !atomic_load_explicit(&board->stopping, memory_order_relaxed);
}
