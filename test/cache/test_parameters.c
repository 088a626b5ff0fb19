/* SPDX-License-Identifier: MIT */
/*
 * Every public call is made with each of its pointers NULL and each of its sizes 0 and as large as
 * possible: the status is the header's, and a refused call changes nothing. All answer TW_CLOSED
 * after a stop.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"

#include <limits.h>
#include <math.h>

/* These are all parameters, by purpose. Some calls have only a few. */
enum parameter {
	CACHE,
	KEY,
	KEY_SIZE,
	VALUE,
	VALUE_SIZE,
	WEIGHT,
	FREE_VALUE,
	BUFFER,
	CAPACITY,
	FLAGS,
	RESULT,   /* the result: an entry, a time, the statistics, a cache */
	FUNCTION, /* the user's */
	ITEMS,
	COUNT,
	SUM, /* a size or number that the call sets */
	LOADING,
	PREFIX,
	OPTIONS,
	PARAMETERS
};

static const char *const parameter_names[] = {
	"cache",      "key",    "key_size", "value",   "value_size", "weight",
	"free_value", "buffer", "capacity", "flags",   "result",     "function",
	"items",      "n",      "sum",      "loading", "prefix",     "options"};

typedef uintptr_t arguments[PARAMETERS];
typedef enum tw_status call_fn(const arguments given);

#define CACHE_OF(given) ((struct tw_cache *)(given)[CACHE])
#define KEY_OF(given) (const void *)(given)[KEY], (given)[KEY_SIZE]
#define VALUE_OF(given) (const void *)(given)[VALUE], (given)[VALUE_SIZE]
#define ADOPTED_OF(given)                                             \
	(void *)(given)[VALUE], (given)[VALUE_SIZE], (given)[WEIGHT], \
		(tw_cache_free_fn *)(given)[FREE_VALUE], NULL

/* ---- The user's functions ---- */

static int freed;

static void count_free(void *value, size_t size, void *context)
{
	freed++;
}

static enum tw_status load_nothing(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	return TW_NOT_FOUND;
}

static enum tw_cache_verdict keep(void *context, const struct tw_cache_entry *entry,
				  struct tw_cache_value *computed)
{
	return TW_CACHE_KEEP;
}

/* The context is the arguments. */
static enum tw_cache_verdict replace_with(void *context, const struct tw_cache_entry *entry,
					  struct tw_cache_value *computed)
{
	const uintptr_t *given = context;

	computed->data = (const void *)given[VALUE];
	computed->size = given[VALUE_SIZE];
	return TW_CACHE_REPLACE;
}

static int visit(void *context, const struct tw_cache_entry *entry)
{
	return 1;
}

static void on_value(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
}

static void write_nothing(void *context, const char *text, size_t size)
{
}

/* ---- Calls ---- */

static enum tw_status set(const arguments given)
{
	return tw_cache_set(CACHE_OF(given), KEY_OF(given), VALUE_OF(given));
}

static enum tw_status set_with_expire(const arguments given)
{
	return tw_cache_set_with_expire(CACHE_OF(given), KEY_OF(given), VALUE_OF(given), TW_HOUR);
}

static enum tw_status put(const arguments given)
{
	return put_added(CACHE_OF(given), KEY_OF(given), VALUE_OF(given), TW_HOUR);
}

static enum tw_status adopt(const arguments given)
{
	return put_adopted(CACHE_OF(given), KEY_OF(given), ADOPTED_OF(given), TW_HOUR);
}

static enum tw_status compute_value(const arguments given)
{
	return tw_cache_compute(CACHE_OF(given), KEY_OF(given), replace_with, (void *)given);
}

static enum tw_status compute(const arguments given)
{
	return tw_cache_compute(CACHE_OF(given), KEY_OF(given),
				(tw_cache_compute_fn *)given[FUNCTION], NULL);
}

static enum tw_status get(const arguments given)
{
	return tw_cache_get(CACHE_OF(given), KEY_OF(given), (void *)given[BUFFER], given[CAPACITY],
			    (size_t *)given[SUM]);
}

/* Checks and releases what a call has set. Returns the call's status. */
static enum tw_status found(enum tw_status status, const struct tw_cache_entry **entry)
{
	if (entry) {
		assert_true((status == TW_OK) == (*entry != NULL));
		tw_cache_entry_release(*entry);
	}
	return status;
}

#define RESULT_OF(given) ((const struct tw_cache_entry **)(given)[RESULT])

static enum tw_status acquire(const arguments given)
{
	return found(tw_cache_acquire(CACHE_OF(given), KEY_OF(given), (unsigned)given[FLAGS],
				      RESULT_OF(given)),
		     RESULT_OF(given));
}

static enum tw_status take(const arguments given)
{
	return found(tw_cache_take(CACHE_OF(given), KEY_OF(given), load_nothing, NULL, TW_FOREVER,
				   RESULT_OF(given)),
		     RESULT_OF(given));
}

/* Takes from a cache that has no loader of its own. */
static enum tw_status take_without_loader(const arguments given)
{
	const struct tw_cache_entry *entry;

	return tw_cache_take(CACHE_OF(given), KEY_OF(given), (tw_cache_load *)given[FUNCTION], NULL,
			     0, &entry);
}

static enum tw_status take_async(const arguments given)
{
	return tw_cache_take_async(CACHE_OF(given), KEY_OF(given), on_value, NULL);
}

static enum tw_status delete (const arguments given) {
	return tw_cache_delete(CACHE_OF(given), KEY_OF(given));
}

/* Returns the status of the call or, if that is TW_OK, that of its item, if any. */
static enum tw_status status_of(const arguments given, enum tw_status status,
				enum tw_status of_item)
{
	return status == TW_OK && given[COUNT] > 0 ? of_item : status;
}

static enum tw_status get_many(const arguments given)
{
	struct tw_cache_lookup item = {(const void *)given[KEY],
				       given[KEY_SIZE],
				       (void *)given[BUFFER],
				       given[CAPACITY],
				       0,
				       TW_OK};
	enum tw_status status = tw_cache_get_many(CACHE_OF(given), given[ITEMS] ? &item : NULL,
						  given[COUNT], (size_t *)given[SUM]);

	return status_of(given, status, item.status);
}

static enum tw_status each(const arguments given)
{
	return tw_cache_each(CACHE_OF(given),
			     (int (*)(void *, const struct tw_cache_entry *))given[FUNCTION], NULL);
}

static enum tw_status clear(const arguments given)
{
	return tw_cache_clear(CACHE_OF(given));
}

static enum tw_status set_limit(const arguments given)
{
	enum tw_status status = tw_cache_set_limit(CACHE_OF(given), given[COUNT], given[WEIGHT]);

	(void)tw_cache_set_limit(CACHE_OF(given), 0, 0);
	return status;
}

static enum tw_status get_stats(const arguments given)
{
	return tw_cache_get_stats(CACHE_OF(given), (struct tw_cache_stats *)given[RESULT]);
}

static enum tw_status write_metrics(const arguments given)
{
	return tw_cache_write_metrics(CACHE_OF(given), (tw_write_fn *)given[FUNCTION], NULL,
				      (const char *)given[PREFIX]);
}

static enum tw_status flush(const arguments given)
{
	return tw_cache_flush(CACHE_OF(given));
}

static enum tw_status stop(const arguments given)
{
	return tw_cache_stop(CACHE_OF(given));
}

static enum tw_status create(const arguments given)
{
	struct tw_cache **cache = (struct tw_cache **)given[RESULT];
	enum tw_status status = tw_cache_create(cache, TW_HOUR, (const void *)given[OPTIONS]);

	if (cache) {
		assert_true((status == TW_OK) == (*cache != NULL));
		tw_cache_destroy(*cache);
	}
	return status;
}

/* ---- Calls of a loader ---- */

struct inside {
	call_fn *call;
	arguments given;
	enum tw_status status;
};

static enum tw_status run_inside(void *argument, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	struct inside *inside = argument;

	if (inside->given[LOADING])
		inside->given[LOADING] = (uintptr_t)loading;
	inside->status = inside->call(inside->given);
	return TW_LOAD_FAILED;
}

/* Makes the call in a loader of another key. */
static enum tw_status call_inside(const arguments given, call_fn *call)
{
	struct inside inside = {.call = call};
	const struct tw_cache_entry *entry;

	memcpy(inside.given, given, sizeof(arguments));
	may_fail(tw_cache_take(CACHE_OF(given), "loaded", 6, run_inside, &inside, TW_FOREVER,
			       &entry));
	tw_cache_entry_release(entry);
	return inside.status;
}

static enum tw_status copy_inside(const arguments given)
{
	return give_copied((struct tw_cache_loading *)given[LOADING], VALUE_OF(given), 0);
}

static enum tw_status load_give(const arguments given)
{
	return call_inside(given, copy_inside);
}

static enum tw_status adopt_inside(const arguments given)
{
	return give_adopted((struct tw_cache_loading *)given[LOADING], ADOPTED_OF(given), 0);
}

static enum tw_status load_give_adopted(const arguments given)
{
	return call_inside(given, adopt_inside);
}

static enum tw_status keep_inside(const arguments given)
{
	enum tw_status status = tw_cache_load_keep((struct tw_cache_loading *)given[LOADING]);

	if (status == TW_OK)
		assert_status(tw_cache_load_end((struct tw_cache_loading *)given[LOADING],
						TW_LOAD_FAILED),
			      TW_OK);
	return status;
}

static enum tw_status load_keep(const arguments given)
{
	return call_inside(given, keep_inside);
}

static enum tw_status end_inside(const arguments given)
{
	return tw_cache_load_end((struct tw_cache_loading *)given[LOADING], TW_LOAD_FAILED);
}

static enum tw_status load_end(const arguments given)
{
	return call_inside(given, end_inside);
}

/* ---- The tables ---- */

/* These are the kinds of parameters of a call. */
enum { OF_CACHE = 1, OF_KEY = 2, OF_COPY = 4, OF_ADOPTED = 8, OF_LOADING = 16, OF_MANY = 32 };

struct call {
	const char *name;
	call_fn *call;
	unsigned kinds;
	enum tw_status usual; /* with the usual arguments */
};

#define CALL(call, kinds, usual)          \
	{                                 \
#call, call, kinds, usual \
	}

static const struct call calls[] = {
	CALL(set, OF_CACHE | OF_KEY | OF_COPY, TW_OK),
	CALL(set_with_expire, OF_CACHE | OF_KEY | OF_COPY, TW_OK),
	CALL(put, OF_CACHE | OF_KEY | OF_COPY, TW_EXISTS),
	CALL(adopt, OF_CACHE | OF_KEY | OF_ADOPTED, TW_OK),
	CALL(compute_value, OF_CACHE | OF_KEY | OF_COPY, TW_OK),
	CALL(compute, OF_CACHE | OF_KEY, TW_OK),
	CALL(get, OF_CACHE | OF_KEY, TW_OK),
	CALL(acquire, OF_CACHE | OF_KEY, TW_OK),
	CALL(take, OF_CACHE | OF_KEY, TW_OK),
	CALL(take_without_loader, OF_CACHE | OF_KEY, TW_OK),
	CALL(take_async, OF_CACHE | OF_KEY, TW_INVALID),
	CALL(delete, OF_CACHE | OF_KEY, TW_OK),
	CALL(get_many, OF_CACHE | OF_KEY | OF_MANY, TW_OK),
	CALL(each, OF_CACHE, TW_OK),
	CALL(clear, OF_CACHE, TW_OK),
	CALL(set_limit, OF_CACHE, TW_OK),
	CALL(get_stats, OF_CACHE, TW_OK),
	CALL(write_metrics, OF_CACHE, TW_OK),
	CALL(flush, OF_CACHE, TW_OK),
	CALL(stop, OF_CACHE, TW_OK),
	CALL(create, 0, TW_OK),
	CALL(load_give, OF_COPY | OF_LOADING, TW_OK),
	CALL(load_give_adopted, OF_ADOPTED | OF_LOADING, TW_OK),
	CALL(load_keep, OF_LOADING, TW_OK),
	CALL(load_end, OF_LOADING, TW_OK),
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* The key of SIZE_MAX bytes is not read, nor are values of refused sizes. */
static const struct common {
	unsigned kind;
	enum parameter parameter;
	uintptr_t value;
	enum tw_status expected; /* TW_OK stands for the usual status */
} commons[] = {
	{OF_CACHE, CACHE, 0, TW_INVALID},
	{OF_KEY, KEY, 0, TW_INVALID},
	{OF_KEY, KEY_SIZE, 0, TW_INVALID},
	{OF_KEY, KEY_SIZE, TW_KEY_SIZE_MAX + 1, TW_INVALID},
	{OF_KEY, KEY_SIZE, (uintptr_t)UINT32_MAX + 4, TW_INVALID},
	{OF_KEY, KEY_SIZE, SIZE_MAX, TW_INVALID},
	{OF_COPY, VALUE, 0, TW_INVALID},
	{OF_COPY, VALUE_SIZE, 0, TW_OK},
	{OF_COPY, VALUE_SIZE, (uintptr_t)UINT32_MAX + 1, TW_INVALID},
	{OF_COPY, VALUE_SIZE, SIZE_MAX, TW_INVALID},
	{OF_ADOPTED, VALUE, 0, TW_INVALID},
	{OF_ADOPTED, VALUE_SIZE, 0, TW_OK},
	{OF_ADOPTED, VALUE_SIZE, (uintptr_t)UINT32_MAX + 1, TW_OK},
	{OF_ADOPTED, VALUE_SIZE, SIZE_MAX, TW_OK},
	{OF_ADOPTED, WEIGHT, 1, TW_OK},
	{OF_ADOPTED, WEIGHT, SIZE_MAX, TW_OK},
	{OF_ADOPTED, FREE_VALUE, 0, TW_OK},
	{OF_LOADING, LOADING, 0, TW_INVALID},
	{OF_MANY, ITEMS, 0, TW_INVALID},
	{OF_MANY, SUM, 0, TW_OK},
	/* No item is read. */
	{OF_MANY, COUNT, 0, TW_OK},
};

enum { COMMONS = sizeof(commons) / sizeof(commons[0]) };

static char long_prefix[TW_METRICS_PREFIX_MAX + 2];
static const struct tw_cache_options no_options;

static const struct row {
	call_fn *call;
	enum parameter parameter;
	uintptr_t value;
	enum tw_status expected;
} rows[] = {
	{get, BUFFER, 0, TW_INVALID},
	{get, CAPACITY, 0, TW_TRUNCATED},
	{get, CAPACITY, SIZE_MAX, TW_OK},
	{get, SUM, 0, TW_OK},
	{get_many, BUFFER, 0, TW_INVALID},
	{get_many, CAPACITY, 0, TW_TRUNCATED},
	{get_many, CAPACITY, SIZE_MAX, TW_OK},
	{acquire, RESULT, 0, TW_INVALID},
	{acquire, FLAGS, TW_CACHE_NO_USE, TW_OK},
	{acquire, FLAGS, 2, TW_INVALID},
	{acquire, FLAGS, UINT_MAX, TW_INVALID},
	{take, RESULT, 0, TW_INVALID},
	{take_without_loader, FUNCTION, 0, TW_INVALID},
	{compute, FUNCTION, 0, TW_INVALID},
	{each, FUNCTION, 0, TW_INVALID},
	{get_stats, RESULT, 0, TW_INVALID},
	{set_limit, COUNT, 0, TW_OK},
	{set_limit, COUNT, SIZE_MAX, TW_OK},
	{set_limit, WEIGHT, SIZE_MAX, TW_OK},
	{set_limit, WEIGHT, (uintptr_t)1 << 63, TW_OK},
	{write_metrics, FUNCTION, 0, TW_INVALID},
	{write_metrics, PREFIX, 0, TW_OK},
	{write_metrics, PREFIX, (uintptr_t) "", TW_INVALID},
	{write_metrics, PREFIX, (uintptr_t)long_prefix, TW_INVALID},
	{create, RESULT, 0, TW_INVALID},
	{create, OPTIONS, 0, TW_OK},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- The tests ---- */

/* This has room for each result: statistics are the largest. */
static struct tw_cache_stats result;
static size_t sum;
static char buffer[64];

static uintptr_t function_for(call_fn *call)
{
	if (call == compute)
		return (uintptr_t)keep;
	if (call == each)
		return (uintptr_t)visit;
	if (call == write_metrics)
		return (uintptr_t)write_nothing;
	return (uintptr_t)load_nothing;
}

static void give_usual(arguments given, struct tw_cache *cache, call_fn *call)
{
	static const char key[TW_KEY_SIZE_MAX + 1] = "key";
	/* The listener reads the first bytes of values that claim to be longer. */
	static const char value[64] = "value";

	given[CACHE] = (uintptr_t)cache;
	given[KEY] = (uintptr_t)key;
	given[KEY_SIZE] = 3;
	given[VALUE] = (uintptr_t)value;
	given[VALUE_SIZE] = 5;
	given[WEIGHT] = 0;
	given[FREE_VALUE] = (uintptr_t)count_free;
	given[BUFFER] = (uintptr_t)buffer;
	given[CAPACITY] = sizeof(buffer);
	given[FLAGS] = 0;
	given[RESULT] = (uintptr_t)&result;
	given[FUNCTION] = function_for(call);
	given[ITEMS] = 1;
	given[COUNT] = 1;
	given[SUM] = (uintptr_t)&sum;
	given[LOADING] = 1;
	given[PREFIX] = (uintptr_t) "prefix";
	given[OPTIONS] = (uintptr_t)&no_options;
}

static void check(struct cache_recorder *recorder, const struct call *call,
		  enum parameter parameter, uintptr_t value, enum tw_status expected)
{
	struct tw_cache *cache = recorder->cache;
	struct tw_cache_stats before;
	enum tw_status status;
	arguments given;

	cache_set(recorder, "key", "present");
	cache_settle(recorder);
	before = cache_stats(recorder);
	freed = 0;
	sum = 99;
	give_usual(given, cache, call->call);
	if (parameter < PARAMETERS)
		given[parameter] = value;
	status = call->call(given);
	if (status != expected)
		fail_msg("%s with %s %#zx: %s in place of %s", call->name,
			 parameter < PARAMETERS ? parameter_names[parameter] : "the usual",
			 (size_t)value, tw_status_name(status), tw_status_name(expected));
	if (status == TW_INVALID) {
		assert_holds(recorder, "key", "present");
		assert_int_equal(cache_stats(recorder).inserts, before.inserts);
		assert_int_equal(cache_stats(recorder).bytes, before.bytes);
		assert_int_equal(freed, 0);
		/* The take that a loader's call needs is a miss. */
		assert_int_equal(cache_stats(recorder).misses,
				 before.misses + ((call->kinds & OF_LOADING) != 0));
		if (call->call == get || (call->kinds & OF_MANY))
			assert_int_equal(sum, 0);
	}
}

/* These take an entry of the caller, or are tested with each cache. */
static const char *const others[] = {"destroy",        "count",     "entry_value",  "entry_key",
				     "entry_deadline", "entry_pin", "entry_release"};

static bool call_has_rows(const char *name)
{
	for (int i = 0; i < CALLS; i++)
		if (strcmp(calls[i].name, name) == 0)
			return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i], name) == 0)
			return true;
	return false;
}

/* Tests run in the folder of the sources. */
TEST(once, each_call_of_the_header_has_rows)
{
	FILE *header = fopen("include/timingwheel/cache.h", "r");
	char line[256];
	int count = 0;

	if (!header)
		TEST_SKIP("the header is not here");
	while (fgets(line, sizeof(line), header)) {
		char *name = strstr(line, "tw_cache_");

		if (strncmp(line, "TW_API", 6) != 0 || !name)
			continue;
		/* The returned type is no call. */
		while (name[strcspn(name, " (")] != '(' && strstr(name + 1, "tw_cache_"))
			name = strstr(name + 1, "tw_cache_");
		name += strlen("tw_cache_");
		name[strcspn(name, "(")] = 0;
		if (!call_has_rows(name))
			fail_msg("tw_cache_%s has no rows", name);
		count++;
	}
	fclose(header);
	assert_in_range(count, CALLS, 2 * CALLS);
}

TEST(once, calls_without_a_cache_or_entry_do_nothing)
{
	tw_cache_destroy(NULL);
	tw_cache_entry_release(NULL);
}

TEST(inline_and_threads, usual_arguments_are_fine)
{
	for (int i = 0; i < CALLS; i++) {
		struct cache_recorder *recorder = cache_recorder_open_with(
			*state, TW_HOUR, (struct tw_cache_options){.max_entries = UINT64_MAX});

		check(recorder, &calls[i], PARAMETERS, 0, calls[i].usual);
		cache_recorder_close(recorder);
	}
}

CACHED(inline_and_threads, bad_pointers_and_sizes_have_a_status_and_change_nothing, TW_HOUR,
       .max_entries = UINT64_MAX)
{
	memset(long_prefix, 'p', sizeof(long_prefix) - 1);
	for (int i = 0; i < CALLS; i++) {
		for (int k = 0; k < COMMONS; k++) {
			const struct common *row = &commons[k];
			enum tw_status expected =
				row->expected == TW_OK ? calls[i].usual : row->expected;

			if (calls[i].kinds & row->kind)
				check(recorder, &calls[i], row->parameter, row->value,
				      row->parameter == COUNT ? TW_OK : expected);
		}
		for (int k = 0; k < ROWS; k++)
			if (rows[k].call == calls[i].call)
				check(recorder, &calls[i], rows[k].parameter, rows[k].value,
				      rows[k].expected);
	}
}

/* A size without memory counts as the largest weight. */
TEST(inline_and_threads, sizes_and_weights_at_the_ends_are_weighed_as_the_largest)
{
	static const struct {
		uintptr_t size;
		uintptr_t weight;
	} adopted[] = {
		{SIZE_MAX, 0},       {SIZE_MAX - 1, 0},    {SIZE_MAX - 40, 0},
		{SIZE_MAX - 168, 0}, {SIZE_MAX / 2, 0},    {1, SIZE_MAX},
		{1, SIZE_MAX / 2},   {SIZE_MAX, SIZE_MAX}, {TW_CACHE_WEIGHT_MAX, 0},
	};

	for (size_t i = 0; i < sizeof(adopted) / sizeof(adopted[0]); i++) {
		struct cache_recorder *recorder = cache_recorder_open_with(
			*state, TW_HOUR, (struct tw_cache_options){.max_entries = 1});
		arguments given;

		give_usual(given, recorder->cache, adopt);
		given[VALUE_SIZE] = adopted[i].size;
		given[WEIGHT] = adopted[i].weight;
		assert_status(adopt(given), TW_OK);
		assert_int_equal(cache_stats(recorder).bytes, TW_CACHE_WEIGHT_MAX);
		/* With a limit this is too heavy. */
		assert_status(tw_cache_set_limit(recorder->cache, 0, TW_CACHE_WEIGHT_MAX - 1),
			      TW_OK);
		assert_int_equal(cache_stats(recorder).entries, 0);
		assert_status(adopt(given), TW_FULL);
		cache_recorder_close(recorder);
	}
}

TEST(inline_and_threads, options_at_the_ends_are_kept_or_refused)
{
	static const struct {
		struct tw_cache_options options;
		enum tw_status expected;
	} table[] = {
		{{.max_entries = UINT64_MAX}, TW_OK},
		{{.max_bytes = UINT64_MAX}, TW_OK},
		{{.max_entries = 1, .max_bytes = 1}, TW_OK},
		{{.max_refreshing = UINT32_MAX, .load = load_nothing, .refresh_after = 1}, TW_OK},
		{{.refresh_after = TW_FOREVER, .load = load_nothing}, TW_OK},
		{{.refresh_after = 1}, TW_INVALID},
		{{.idle = TW_FOREVER}, TW_OK},
		{{.negative_expire = TW_FOREVER}, TW_OK},
		{{.stale_if_error = TW_FOREVER}, TW_OK},
		{{.shards = TW_CACHE_SHARDS_MAX}, TW_OK},
		{{.shards = TW_CACHE_SHARDS_MAX + 1}, TW_INVALID},
		{{.shards = UINT32_MAX}, TW_INVALID},
		{{.loaders = UINT32_MAX}, TW_INVALID},
		{{.loaders = TW_CACHE_LOADERS_MAX + 1, .load = load_nothing}, TW_INVALID},
		{{.jitter = NAN}, TW_INVALID},
		{{.jitter = INFINITY}, TW_INVALID},
		{{.jitter = -INFINITY}, TW_OK},
		{{.policy = (enum tw_cache_policy)2}, TW_INVALID},
		{{.idle = INT64_MIN}, TW_INVALID},
		{{.negative_expire = INT64_MIN}, TW_INVALID},
		{{.refresh_after = INT64_MIN, .load = load_nothing}, TW_INVALID},
		{{.stale_if_error = INT64_MIN}, TW_INVALID},
		{{.retry_after = TW_FOREVER}, TW_OK},
		{{.retry_after = INT64_MIN}, TW_INVALID},
		{{.reserved = {1}}, TW_INVALID},
		{{.reserved = {0, 1}}, TW_INVALID},
		{{.reserved = {0, 0, 1}}, TW_INVALID},
		{{.reserved = {0, 0, 0, 1}}, TW_INVALID},
		{{.name = ""}, TW_OK},
		{{.name = "a name of more than any thread's"}, TW_OK},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct cache_recorder *recorder = cache_recorder_create(*state);
		struct tw_cache_options options = table[i].options;

		options.wheel = recorder->wheel;
		assert_status(tw_cache_create(&recorder->cache, TW_HOUR, &options),
			      table[i].expected);
		assert_true((table[i].expected == TW_OK) == (recorder->cache != NULL));
		if (recorder->cache) {
			/* This is too heavy for a limit of 1. */
			assert_status(tw_cache_set(recorder->cache, "key", 3, "value", 5),
				      options.max_bytes == 1 ? TW_FULL : TW_OK);
			if (options.max_bytes != 1)
				assert_true(deadline_of(recorder->cache, "key", 3) > 0);
			cache_pass(recorder, INTERVAL);
		}
		cache_recorder_close(recorder);
	}
}

static bool call_may_be_closed(const struct call *call)
{
	/* A take without a loader is refused before. */
	return (call->kinds & OF_CACHE) && call->call != get_stats && call->call != write_metrics &&
	       call->call != take_async;
}

static void check_closed(struct cache_recorder *recorder)
{
	struct tw_cache *cache = recorder->cache;
	struct tw_cache_stats before;
	struct tw_cache_stats after;
	arguments given;

	cache_set(recorder, "key", "value");
	cache_set(recorder, "long key", "value");
	before = cache_stats(recorder);
	assert_status(tw_cache_stop(cache), TW_OK);
	for (int i = 0; i < CALLS; i++) {
		enum tw_status status;

		if (!call_may_be_closed(&calls[i]))
			continue;
		give_usual(given, cache, calls[i].call);
		sum = calls[i].call == get ? 99 : 0;
		strcpy(buffer, "before");
		status = calls[i].call(given);
		if (status != TW_CLOSED)
			fail_msg("%s: %s", calls[i].name, tw_status_name(status));
		assert_int_equal(sum, 0);
		assert_string_equal(buffer, "before");
	}
	/* The short path of a get is for keys of 8 bytes and more. */
	assert_status(tw_cache_get(cache, "long key", 8, buffer, sizeof(buffer), NULL), TW_CLOSED);
	/* Bad arguments are refused as before. */
	assert_status(tw_cache_get(cache, NULL, 3, buffer, sizeof(buffer), NULL), TW_INVALID);
	assert_status(tw_cache_delete(cache, "key", 0), TW_INVALID);
	after = cache_stats(recorder);
	/* A refused set has created its entry: the fields from here on may have changed. */
	assert_memory_equal(&before, &after, offsetof(struct tw_cache_stats, memory));
	tw_cache_destroy(cache);
	recorder->cache = NULL;
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_SHUTDOWN), 2);
}

CACHED(inline_and_threads, stopped_cache_answers_closed, TW_HOUR)
{
	check_closed(recorder);
}

CACHED(inline_and_threads, sliding_cache_answers_closed_too, TW_HOUR, .idle = TW_MINUTE)
{
	check_closed(recorder);
}
