/* SPDX-License-Identifier: MIT */
/*
 * board.c has one thread that asks Redis and fills the board. Figures are copied under the lock,
 * which is not held while Redis is asked. Each second the thread also notes the worker's rates,
 * which cost Redis nothing. The worker's own statistics are read at each look.
 *
 * The thread asks Redis when a look needs an answer and the last one is older than a second. Looks
 * wait for the answer on the thread of the listener, so the wait is short: a question that is under
 * way for longer than look_waits delays nobody, and the pages for probes go on.
 *
 * The groups cost Redis more than the counts do. After a question about them there is none for
 * GROUPS_PAUSE times as long as it took, so they take at most a twentieth of Redis's time.
 *
 * Dead letters are in no order and have bodies, so the thread looks at LETTERS_SEEN of a namespace
 * at most, and only when their number has changed or letters_again has passed.
 */
#include "board.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LETTERS_SEEN = 1000, GROUPS_PAUSE = 20 };
static const tw_duration note_every = TW_SECOND;
static const tw_duration answer_is_fresh = TW_SECOND;
static const tw_duration look_waits = TW_SECOND;
static const tw_duration letters_again = 30 * TW_SECOND;
static const tw_duration answer_lasts = 10 * TW_SECOND;

struct space {
	/* These are constant after the start. */
	const char *name;
	struct tw_redis *redis; /* its calls try once */

	struct tw_redis_stats asked; /* the thread alone uses it */
	/* The board's lock guards these. */
	struct tw_redis_stats tasks;
	struct tw_redis_group_stats groups[BOARD_GROUPS];
	size_t group_count;
};

struct board {
	/* These are constant after the start. */
	struct tw_redis_worker *worker;
	struct space spaces[TW_REDIS_SOURCES_MAX];
	size_t space_count;
	pthread_t thread;
	tw_duration start; /* monotonic, like all times here */

	/* The thread alone uses these. */
	struct tw_redis_worker_stats last; /* at the end of the last second */
	tw_duration last_at;
	uint64_t letters_known; /* their number when they were read */
	tw_duration letters_at; /* when they were read, or 0 */
	struct letters reading;
	size_t reading_space;
	size_t seen;
	tw_duration groups_at; /* the next question about groups is not before */
	struct tw_redis_group_stats asked_groups[BOARD_GROUPS];
	struct tw_redis_worker_info asked_workers[BOARD_WORKERS];
	struct colleague found[BOARD_WORKERS];

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed;
	bool stop;
	bool stopping;
	enum board_need wanted; /* by looks since the last question began */
	tw_duration
		wanted_at; /* when the first look wanted it, or 0 if none does and none is asked */
	tw_duration asked_at;    /* when the last question for counts ended, or 0 */
	tw_duration all_at;      /* when the last question for all ended */
	bool answered;           /* the last question was */
	tw_duration answered_at; /* Redis's last answer, or 0 */
	struct letters letters;
	struct colleague colleagues[BOARD_WORKERS];
	size_t colleague_count;
	struct second seconds[BOARD_SECONDS]; /* a ring */
	size_t second_count;                  /* all since the start */
};

static tw_duration now_read(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * TW_SECOND + time.tv_nsec;
}

/* ---- The last second ---- */

static double added_to(const struct tw_redis_histogram *before,
		       const struct tw_redis_histogram *after, unsigned bucket)
{
	return (double)(after->counts[bucket] - before->counts[bucket]);
}

/* Returns how late, in seconds, that share of the runs between the two was at most, or a negative
 * number if there were none. Times of a bucket count as evenly spread. The last bucket has no
 * bound. */
static double lateness_of(const struct tw_redis_histogram *before,
			  const struct tw_redis_histogram *after, double share)
{
	double wanted = 0;
	double below = 0;
	unsigned bucket = 0;
	double from;
	double to;

	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++)
		wanted += share * added_to(before, after, i);
	if (wanted <= 0)
		return -1;
	while (bucket < TW_REDIS_BUCKETS - 1 && below + added_to(before, after, bucket) < wanted)
		below += added_to(before, after, bucket++);
	from = bucket ? (double)tw_redis_bucket_bound(bucket - 1) / TW_SECOND : 0;
	if (bucket == TW_REDIS_BUCKETS - 1)
		return from;
	to = (double)tw_redis_bucket_bound(bucket) / TW_SECOND;
	return from + (to - from) * (wanted - below) / added_to(before, after, bucket);
}

/* Notes the second that ends now. The lock is held. */
static void second_add(struct board *board, tw_duration now)
{
	double time = (double)(now - board->last_at) / TW_SECOND;
	struct tw_redis_worker_stats stats = board->last;
	const struct tw_redis_worker_stats *last = &board->last;
	struct second second;

	tw_redis_worker_get_stats(board->worker, &stats);
	second = (struct second){
		.claimed = (double)(stats.claimed - last->claimed) / time,
		.done = (double)(stats.done - last->done) / time,
		.retried = (double)(stats.retried - last->retried) / time,
		.dead = (double)(stats.dead - last->dead) / time,
		.late_half = lateness_of(&last->lateness, &stats.lateness, 0.5),
		.late_most = lateness_of(&last->lateness, &stats.lateness, 0.99),
	};
	board->last = stats;
	board->last_at = now;
	board->seconds[board->second_count++ % BOARD_SECONDS] = second;
}

/* ---- What Redis says ---- */

/* Keeps the letter if it is one of those that died last. */
static bool letter_take(void *context, const struct tw_redis_info *info)
{
	struct board *board = context;
	struct letters *letters = &board->reading;
	size_t place = letters->count;
	struct letter *letter;

	if (++board->seen > LETTERS_SEEN) {
		letters->cut = true;
		return false;
	}
	while (place && letters->rows[place - 1].died_ms < info->due_ms)
		place--;
	if (place == BOARD_LETTERS)
		return true;
	letters->count += letters->count < BOARD_LETTERS;
	letter = &letters->rows[place];
	memmove(letter + 1, letter, (letters->count - place - 1) * sizeof(*letter));
	*letter = (struct letter){
		.space = board->reading_space, .died_ms = info->due_ms, .attempts = info->attempts};
	/* The key may have any length, if something else has written it. */
	letter->key_size =
		info->task.key_size < TW_REDIS_KEY_MAX ? info->task.key_size : TW_REDIS_KEY_MAX;
	memcpy(letter->key, info->task.key, letter->key_size);
	strncpy(letter->reason, info->reason, TW_REDIS_REASON_MAX);
	return true;
}

static void letters_ask(struct board *board, uint64_t count, tw_duration now)
{
	enum tw_status status;

	if (board->letters_at && count == board->letters_known &&
	    now - board->letters_at < letters_again)
		return;
	memset(&board->reading, 0, sizeof(board->reading));
	for (size_t i = 0; i < board->space_count; i++) {
		board->reading_space = i;
		board->seen = 0;
		status = tw_redis_dead_each(board->spaces[i].redis, letter_take, board);
		/* A broken key in one shard does not hide the others' letters. */
		if (status != TW_OK && status != TW_REDIS_FAILED)
			return;
	}
	board->letters_known = count;
	board->letters_at = now;
	pthread_mutex_lock(&board->lock);
	board->letters = board->reading;
	pthread_mutex_unlock(&board->lock);
}

/* Asks about all namespaces. Returns whether Redis replied for each. */
static bool spaces_ask(struct board *board)
{
	for (size_t i = 0; i < board->space_count; i++)
		if (!tasks_ask(board->spaces[i].redis, &board->spaces[i].asked))
			return false;
	return true;
}

/* Asks for the groups of all namespaces. */
static void groups_ask(struct board *board, tw_duration now)
{
	enum tw_status status;
	tw_duration end;

	if (now < board->groups_at)
		return;
	for (size_t i = 0; i < board->space_count; i++) {
		struct space *space = &board->spaces[i];
		size_t count = 0;

		status = tw_redis_get_groups(space->redis, board->asked_groups, BOARD_GROUPS,
					     &count);
		pthread_mutex_lock(&board->lock);
		memcpy(space->groups, board->asked_groups, sizeof(space->groups));
		space->group_count = count;
		pthread_mutex_unlock(&board->lock);
		/* A broken key in one shard does not hide the others' groups. */
		if (status != TW_OK && status != TW_REDIS_FAILED)
			return;
	}
	end = now_read();
	board->groups_at = end + GROUPS_PAUSE * (end - now);
}

/* Asks for all workers. */
static void colleagues_ask(struct board *board)
{
	struct colleague *found = board->found;
	size_t used = 0;

	for (size_t i = 0; i < board->space_count; i++) {
		size_t count = 0;

		if (tw_redis_get_workers(board->spaces[i].redis, board->asked_workers,
					 BOARD_WORKERS, &count) != TW_OK)
			return;
		count = count < BOARD_WORKERS ? count : BOARD_WORKERS;
		for (size_t k = 0; k < count && used < BOARD_WORKERS; k++)
			found[used++] = (struct colleague){i, board->asked_workers[k]};
	}
	pthread_mutex_lock(&board->lock);
	memcpy(board->colleagues, found, used * sizeof(*found));
	board->colleague_count = used;
	pthread_mutex_unlock(&board->lock);
}

/* Returns whether what was asked at that time need not be asked for again. */
static bool is_fresh(tw_duration asked_at, tw_duration now)
{
	return asked_at && asked_at >= now - answer_is_fresh;
}

/* Asks for the counts of all namespaces, and for their groups. */
static void counts_ask(struct board *board)
{
	bool answered = spaces_ask(board);
	tw_duration now = now_read();

	pthread_mutex_lock(&board->lock);
	board->answered = answered;
	board->asked_at = now;
	if (answered)
		board->answered_at = now;
	for (size_t i = 0; i < board->space_count && answered; i++)
		board->spaces[i].tasks = board->spaces[i].asked;
	pthread_mutex_unlock(&board->lock);
	if (answered)
		groups_ask(board, now);
}

static void redis_ask(struct board *board, enum board_need need)
{
	uint64_t dead = 0;

	/* Those that want all may come right after those that want counts. */
	if (!is_fresh(board->asked_at, now_read()))
		counts_ask(board);
	if (!board->answered || need != BOARD_ALL)
		return;
	for (size_t i = 0; i < board->space_count; i++)
		dead += board->spaces[i].tasks.dead;
	letters_ask(board, dead, now_read());
	colleagues_ask(board);
}

/* Asks for what looks want, and wakes them. The lock is held before and after. */
static void wanted_ask(struct board *board)
{
	enum board_need need = board->wanted;

	board->wanted = BOARD_NOTHING;
	pthread_mutex_unlock(&board->lock);
	redis_ask(board, need);
	pthread_mutex_lock(&board->lock);
	if (need == BOARD_ALL)
		board->all_at = now_read();
	board->wanted_at = board->wanted ? now_read() : 0;
	pthread_cond_broadcast(&board->changed);
}

/* Waits for a change, or until the time. Returns false on timeout. The lock is held. */
static bool board_wait(struct board *board, tw_duration until)
{
	const struct timespec time = {until / TW_SECOND, until % TW_SECOND};

	return pthread_cond_timedwait(&board->changed, &board->lock, &time) != ETIMEDOUT;
}

static void *board_thread(void *argument)
{
	struct board *board = argument;

	pthread_mutex_lock(&board->lock);
	while (!board->stop) {
		tw_duration now = now_read();

		if (now >= board->last_at + note_every)
			second_add(board, now);
		else if (board->wanted)
			wanted_ask(board);
		else
			board_wait(board, board->last_at + note_every);
	}
	pthread_mutex_unlock(&board->lock);
	return NULL;
}

/* ---- The calls ---- */

static void board_free(struct board *board)
{
	for (size_t i = 0; i < board->space_count; i++)
		tw_redis_close(board->spaces[i].redis);
	pthread_cond_destroy(&board->changed);
	pthread_mutex_destroy(&board->lock);
	free(board);
}

/* Opens a namespace, the first with the connection and the others beside it. */
static enum tw_status space_open(struct board *board, const struct tw_redis_source *source,
				 const struct tw_redis_options *options,
				 struct tw_redis_error *error)
{
	struct space *space = &board->spaces[board->space_count];
	struct tw_redis_options once = *options;
	enum tw_status status;

	once.patience = -1;
	once.name_space = source->name_space;
	status = board->space_count
			 ? tw_redis_open_beside(board->spaces[0].redis, source->name_space,
						options->shards, &space->redis, error)
			 : tw_redis_open(&space->redis, &once, error);
	if (status != TW_OK)
		return status;
	space->name = source->name_space ? source->name_space : "default";
	board->space_count++;
	return TW_OK;
}

static enum tw_status board_open(struct board *board, const struct tw_redis_options *redis,
				 const struct tw_redis_worker_options *options,
				 struct tw_redis_error *error)
{
	const struct tw_redis_source own = {.name_space = redis->name_space};
	const struct tw_redis_source *sources = options->source_count ? options->sources : &own;
	size_t count = options->source_count ? options->source_count : 1;

	board->start = now_read();
	/* The first rates are over this time, and have all that the worker has done since its
	 * start. */
	board->last_at = board->start - note_every;
	for (size_t i = 0; i < count; i++) {
		enum tw_status status = space_open(board, &sources[i], redis, error);

		if (status != TW_OK)
			return status;
	}
	return pthread_create(&board->thread, NULL, board_thread, board) ? TW_SYSTEM : TW_OK;
}

enum tw_status board_start(struct board **board, struct tw_redis_worker *worker,
			   const struct tw_redis_options *redis,
			   const struct tw_redis_worker_options *options,
			   struct tw_redis_error *error)
{
	struct board *started = calloc(1, sizeof(*started));
	pthread_condattr_t monotonic;
	enum tw_status status;

	*board = NULL;
	if (!started)
		return TW_NO_MEMORY;
	started->worker = worker;
	pthread_mutex_init(&started->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&started->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	status = board_open(started, redis, options, error);
	if (status == TW_OK)
		*board = started;
	else
		board_free(started);
	return status;
}

void board_stop(struct board *board)
{
	if (!board)
		return;
	pthread_mutex_lock(&board->lock);
	board->stop = true;
	pthread_cond_broadcast(&board->changed);
	pthread_mutex_unlock(&board->lock);
	pthread_join(board->thread, NULL);
	board_free(board);
}

void board_tell_end(struct board *board)
{
	pthread_mutex_lock(&board->lock);
	board->stopping = true;
	pthread_mutex_unlock(&board->lock);
}

/* Adds a host named "other" to the others, which have this name on the pages. */
static void hosts_fold(struct figures *figures)
{
	for (size_t i = 1; i < figures->host_count; i++) {
		struct tw_redis_host_stats *host = &figures->hosts[i];

		if (strcmp(host->name, "other") != 0)
			continue;
		for (unsigned k = 0; k < TW_REDIS_ANSWERS; k++)
			figures->hosts[0].answers[k] += host->answers[k];
		*host = figures->hosts[--figures->host_count];
		return;
	}
}

static void tasks_add(struct tw_redis_stats *sum, const struct tw_redis_stats *more)
{
	sum->missing += more->missing;
	sum->tasks += more->tasks;
	sum->due += more->due;
	sum->started += more->started;
	sum->dead += more->dead;
	sum->added += more->added;
	sum->recurring += more->recurring;
	sum->paused += more->paused;
	sum->now_ms = more->now_ms;
	if (more->next_ms && (!sum->next_ms || more->next_ms < sum->next_ms))
		sum->next_ms = more->next_ms;
}

static void spaces_look(const struct board *board, struct figures *figures)
{
	for (size_t i = 0; i < board->space_count; i++) {
		const struct space *space = &board->spaces[i];
		struct space_figures *shown = &figures->spaces[i];

		snprintf(shown->name, sizeof(shown->name), "%s", space->name);
		tw_redis_worker_get_source_stats(board->worker, space->name, &shown->worker);
		shown->tasks = space->tasks;
		shown->group_count = space->group_count;
		memcpy(shown->groups, space->groups, sizeof(shown->groups));
		tasks_add(&figures->tasks, &space->tasks);
	}
	figures->space_count = board->space_count;
}

/* Waits for an answer that is fresh now. The lock is held. */
static void answer_await(struct board *board, enum board_need need)
{
	tw_duration now = now_read();
	bool waits = need != BOARD_NOTHING;

	while (waits && !board->stop &&
	       (!is_fresh(board->asked_at, now) ||
		(need == BOARD_ALL && !is_fresh(board->all_at, now)))) {
		if (!board->wanted_at)
			board->wanted_at = now_read();
		if (board->wanted < need) {
			board->wanted = need;
			pthread_cond_broadcast(&board->changed);
		}
		waits = board_wait(board, board->wanted_at + look_waits);
	}
}

void board_look(struct board *board, enum board_need need, struct figures *figures)
{
	tw_duration now;
	size_t first;

	pthread_mutex_lock(&board->lock);
	answer_await(board, need);
	pthread_mutex_unlock(&board->lock);
	now = now_read();
	memset(figures, 0, sizeof(*figures));
	/* Hosts come first, so the other counts have whatever they have. */
	tw_redis_worker_get_hosts(board->worker, figures->hosts, BOARD_HOSTS, &figures->host_count);
	tw_redis_worker_get_stats(board->worker, &figures->worker);
	tw_redis_worker_last_error(board->worker, &figures->failure);
	if (figures->failure.status == TW_OK)
		tw_redis_last_error(board->spaces[0].redis, &figures->failure);
	hosts_fold(figures);
	figures->uptime = now - board->start;
	pthread_mutex_lock(&board->lock);
	figures->stopping = board->stopping;
	figures->answer_age = board->answered_at ? now - board->answered_at : TW_FOREVER;
	figures->answered = board->answered && figures->answer_age <= answer_lasts;
	spaces_look(board, figures);
	figures->letters = board->letters;
	figures->colleague_count = board->colleague_count;
	memcpy(figures->colleagues, board->colleagues, sizeof(board->colleagues));
	first = board->second_count > BOARD_SECONDS ? board->second_count - BOARD_SECONDS : 0;
	for (size_t i = first; i < board->second_count; i++)
		figures->seconds[figures->second_count++] = board->seconds[i % BOARD_SECONDS];
	pthread_mutex_unlock(&board->lock);
}

bool figures_are_healthy(const struct figures *figures, tw_duration limit)
{
	return figures->worker.turned <= limit;
}

bool figures_are_ready(const struct figures *figures)
{
	return figures->answered && figures->worker.losses == figures->worker.reconnects &&
	       !figures->stopping;
}

bool tasks_ask(struct tw_redis *redis, struct tw_redis_stats *tasks)
{
	enum tw_status status = tw_redis_get_stats(redis, tasks);

	return status == TW_OK ||
	       (status == TW_REDIS_FAILED && tasks->missing < tw_redis_shard_count(redis));
}

double tasks_oldest_due(const struct tw_redis_stats *tasks)
{
	if (!tasks->due || tasks->next_ms > tasks->now_ms)
		return 0;
	return (double)(tasks->now_ms - tasks->next_ms) / 1000;
}

double group_oldest_due(const struct space_figures *space, const struct tw_redis_group_stats *group)
{
	if (!group->oldest_ms || group->oldest_ms > space->tasks.now_ms)
		return 0;
	return (double)(space->tasks.now_ms - group->oldest_ms) / 1000;
}
