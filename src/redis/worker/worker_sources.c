/* SPDX-License-Identifier: MIT */
/*
 * worker_sources.c opens a worker's namespaces, the first with the connections and the others
 * beside it. Errors in the list are reported before anything is connected.
 */

#include "worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const char *name_of(const struct tw_redis_source *source)
{
	return source->name_space ? source->name_space : "default";
}

static enum tw_status list_check(const struct tw_redis_source *list, size_t count,
				 struct tw_redis_error *error)
{
	struct space space;

	if (!list)
		return error_set(error, TW_INVALID, "the list of namespaces is NULL");
	if (count > TW_REDIS_SOURCES_MAX)
		return error_set(error, TW_INVALID, "there are more than %d namespaces",
				 TW_REDIS_SOURCES_MAX);
	for (size_t i = 0; i < count; i++) {
		enum tw_status status =
			space_read(&space, list[i].name_space, list[i].shards, error);

		if (status != TW_OK)
			return status;
		for (size_t k = 0; k < i; k++)
			if (!strcmp(space.name, name_of(&list[k])))
				return error_set(error, TW_INVALID, "namespace %s is listed twice",
						 space.name);
	}
	return TW_OK;
}

static enum tw_status shards_create(struct source *source)
{
	unsigned count = tw_redis_shard_count(source->redis);

	source->shards = calloc(count, sizeof(*source->shards));
	if (!source->shards)
		return TW_NO_MEMORY;
	source->shard_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct worker_shard *shard = &source->shards[i];

		shard->source = source;
		shard->number = i;
		shard->slot = space_slot(&source->redis->space, i);
		list_init(&shard->leases);
		run_list_init(&shard->ends);
		for (int kind = 0; kind < STEP_KINDS; kind++) {
			shard->steps[kind].kind = (enum step_kind)kind;
			shard->steps[kind].shard = shard;
		}
	}
	return TW_OK;
}

/* Each shard has an equal share of the letters that may stay, rounded up. */
static void source_limit_letters(struct source *source)
{
	const struct tw_redis_worker_options *options = &source->worker->options;
	unsigned shards = tw_redis_shard_count(source->redis);

	source->letters = (struct letters){
		.age_ms = delay_to_ms(options->dead_max_age),
		.count = ((int64_t)options->dead_max_count + shards - 1) / shards,
	};
}

static enum tw_status source_open(struct source *source, const struct tw_redis_source *given,
				  struct tw_redis_options *options, struct tw_redis_error *error)
{
	struct tw_redis_worker *worker = source->worker;
	unsigned shards = given->shards ? given->shards : options->shards;
	enum tw_status status;

	if (source == worker->sources) {
		options->name_space = given->name_space;
		options->shards = shards;
		status = tw_redis_open(&source->redis, options, error);
	} else {
		status = tw_redis_open_beside(worker->sources[0].redis, given->name_space, shards,
					      &source->redis, error);
	}
	if (status != TW_OK)
		return status;
	atomic_init(&source->running, 0);
	source_limit_letters(source);
	status = shards_create(source);
	return status == TW_OK ? TW_OK : error_set(error, status, "%s", tw_status_text(status));
}

static enum tw_status list_open(struct tw_redis_worker *worker, const struct tw_redis_source *list,
				size_t count, const struct tw_redis_options *options,
				struct tw_redis_error *error)
{
	enum tw_status status = TW_OK;

	worker->sources = calloc(count, sizeof(*worker->sources));
	if (!worker->sources)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	worker->source_count = count;
	for (size_t i = 0; i < count && status == TW_OK; i++) {
		struct tw_redis_options own = *options;
		struct source *source = &worker->sources[i];

		source->worker = worker;
		status = source_open(source, &list[i], &own, error);
		worker->spaces[i] = source->redis;
	}
	return status;
}

/* Gives the connections a descriptor by which their waits are broken off. */
static enum tw_status router_take(struct tw_redis_worker *worker, struct tw_redis_error *error)
{
	struct access *access = worker->sources[0].redis->access;

	access->settings.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (access->settings.stop < 0)
		return error_set(error, TW_SYSTEM, "%s", tw_status_text(TW_SYSTEM));
	worker->router = &access->router;
	worker->hints.spaces = worker->spaces;
	worker->hints.count = worker->source_count;
	worker->hints.mailbox = &worker->mailbox;
	return TW_OK;
}

enum tw_status sources_open(struct tw_redis_worker *worker,
			    const struct tw_redis_options *redis_options,
			    struct tw_redis_error *error)
{
	struct tw_redis_options once = *redis_options;
	const struct tw_redis_source own = {.name_space = once.name_space};
	const struct tw_redis_source *list = worker->options.sources;
	size_t count = worker->options.source_count;
	enum tw_status status;

	if (!count) {
		list = &own;
		count = 1;
	}
	/* The main thread does not wait for Redis: it retries later by itself. */
	once.patience = -1;
	status = list_check(list, count, error);
	if (status == TW_OK)
		status = list_open(worker, list, count, &once, error);
	if (status == TW_OK)
		status = router_take(worker, error);
	/* The caller may free its list. */
	worker->options.sources = NULL;
	return status;
}

void sources_close(struct tw_redis_worker *worker)
{
	if (worker->router)
		close(worker->router->settings->stop);
	for (size_t i = 0; i < worker->source_count; i++) {
		struct source *source = &worker->sources[i];

		for (unsigned k = 0; k < source->shard_count; k++)
			for (size_t kind = 0; kind < STEP_KINDS; kind++)
				eval_free(&source->shards[k].steps[kind].eval);
		free(source->shards);
		tw_redis_close(source->redis);
	}
	free(worker->sources);
}
