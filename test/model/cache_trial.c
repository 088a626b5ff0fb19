/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cache_trial.h"

#include "base/clock.h"
#include "support/cache_check.h"
#include "support/recorder.h"
#include "support/wait.h"

enum { TICK = 1000, KEYS = 40, VALUES = 2048 };

/* ---- The host's functions ---- */

static struct random *source;

uint64_t (*cache_trial_refusals)(void);
static uint64_t refused_before; /* when the trial began */

uint64_t host_draw(uint64_t limit)
{
	return random_below(source, limit);
}

_Noreturn void host_fail(const char *format, ...)
{
	char text[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fail_msg("%s", text);
	abort();
}

void host_trace(const char *format, ...)
{
}

tw_duration host_now(const struct cache_model *model)
{
	return tw_now(model->wheel);
}

void host_enter(struct cache_client *client, const char *call)
{
}

void host_leave(struct cache_client *client)
{
}

void host_pause(struct cache_model *model)
{
	if (model->pending + model->running == 0)
		return;
	/* This thread drives the wheel, and so runs the loads. */
	(void)tw_poll(model->wheel, NULL);
}

uint64_t host_refusals(void)
{
	return cache_trial_refusals ? cache_trial_refusals() - refused_before : 0;
}

uint64_t host_thread(void)
{
	return (uint64_t)pthread_self();
}

void host_kept(void)
{
}

/* ---- The trial ---- */

static struct tw_cache_options random_options(void)
{
	struct tw_cache_options options = {
		.jitter = -1,
		.policy = host_draw(2) ? TW_POLICY_S3FIFO : TW_POLICY_LRU,
		.weigh = cache_model_weigh,
		.shards = 1,
	};
	uint64_t extras = host_draw(64);

	if (extras & 1)
		options.max_entries = host_draw(KEYS) + 1;
	if (extras & 2)
		options.max_bytes = host_draw(4000) + 1;
	if (extras & 4)
		options.idle = draw_from(1, 20 * TICK);
	if (extras & 8)
		options.stale_if_error = draw_from(1, 20 * TICK);
	/* With a limit or idle times for such values, their removal is not determined. */
	if ((extras & 16) && !(extras & 7))
		options.negative_expire = draw_from(1, 20 * TICK);
	return options;
}

static void begin(struct cache_trial *trial, struct random random)
{
	memset(trial, 0, sizeof(*trial));
	trial->random = random;
	source = &trial->random;
	refused_before = 0;
	refused_before = host_refusals();
	trial->model.unit = 10 * TICK;
	trial->model.value_count = VALUES;
	trial->model.is_alone = trial->model.adopts = trial->model.loads_all = true;
	trial->model.failures = 6;
}

static void open_cache(struct cache_trial *trial, unsigned keys)
{
	struct cache_model *model = &trial->model;
	struct tw_options wheel = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};

	model->key_count = model->first_loaded = keys;
	trial->client = (struct cache_client){.model = model, .own_keys = keys};
	assert_status(tw_create(&model->wheel, TICK, 16, ignore_task, &wheel), TW_OK);
	model->options.wheel = model->wheel;
	model->options.context = model->options.load_context = model;
	model->options.on_remove = cache_model_on_remove;
	model->expire = cache_draw_lifetime(model);
	assert_status(tw_cache_create(&model->cache, model->expire, &model->options), TW_OK);
	cache_model_open(model);
	host_leave(NULL);
}

void cache_trial_begin(struct cache_trial *trial, struct random random)
{
	begin(trial, random);
	trial->model.options = random_options();
	/* Absent keys count, too, and are removed without a report. */
	trial->model.sets_limits =
		trial->model.options.negative_expire == 0 &&
		(trial->model.options.max_entries > 0 || trial->model.options.max_bytes > 0);
	open_cache(trial, KEYS);
}

void cache_trial_begin_with(struct cache_trial *trial, struct random random,
			    const struct tw_cache_options *options, unsigned keys)
{
	begin(trial, random);
	trial->model.options = *options;
	trial->model.options.load = cache_model_load;
	trial->model.options.loaders = 1;
	open_cache(trial, keys);
}

/* Lets some time pass, or goes up to the deadline of a key, or to one nanosecond before it. */
static void pass_time(struct cache_model *model)
{
	const struct cache_value *value = model->keys[host_draw(model->key_count)].current;
	tw_duration time = draw_from(0, (host_draw(4) ? 2 : 60) * TICK);
	tw_duration left = value ? time_left(value->deadline.low, tw_now(model->wheel)) : 0;

	if (left > 0 && left < TW_SECOND && host_draw(2) == 0)
		time = left - draw_from(0, 1);
	host_enter(NULL, NULL);
	assert_status(tw_advance(model->wheel, time), TW_OK);
	host_leave(NULL);
}

/* Has the cache report the call's removals, and whether loads without memory were kept. */
static void finish_call(struct cache_trial *trial)
{
	struct cache_model *model = &trial->model;
	unsigned epoch = cache_model_begin(model);

	for (unsigned i = 0; i < model->key_count; i++)
		if (!cache_key_is_known(model, i))
			client_get(&trial->client, i);
	client_flush(&trial->client);
	cache_model_end(model, epoch);
	cache_model_settle(model, TICK);
	cache_check(model->cache);
}

void cache_trial_step(struct cache_trial *trial)
{
	if (host_draw(4) > 0)
		cache_client_call(&trial->client);
	else
		pass_time(&trial->model);
	finish_call(trial);
}

void cache_trial_end(struct cache_trial *trial)
{
	struct cache_model *model = &trial->model;

	finish_call(trial);
	cache_model_check_stats(model);
	model->stop_begun = true;
	assert_status(tw_cache_stop(model->cache), TW_OK);
	model->is_stopped = true;
	assert_status(tw_cache_set(model->cache, "k", 1, "v", 1), TW_CLOSED);
	assert_status(tw_cache_get(model->cache, "k", 1, NULL, 0, NULL), TW_CLOSED);
	assert_status(tw_cache_delete(model->cache, "k", 1), TW_CLOSED);
	assert_status(tw_cache_clear(model->cache), TW_CLOSED);
	model->is_ending = true;
	host_enter(NULL, NULL);
	tw_cache_destroy(model->cache);
	host_leave(NULL);
	client_unpin_all(&trial->client);
	cache_model_close(model, model->inserts);
	host_enter(NULL, NULL);
	tw_destroy(model->wheel);
}
