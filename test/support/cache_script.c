/* SPDX-License-Identifier: MIT */
/* The main thread makes the steps. Other threads take, and keep their answers for it. */
#include "test.h"

#include "cache_script.h"

#include <assert.h>

#include "cache_calls.h"
#include "gate.h"
#include "words.h"

enum { SOURCES = 2, ASIDES = 16, THREADS = 100, WORDS = 12, TEXT = 400, STEP = 3000 };

struct source_of {
	char value[TEXT];
	bool has_value;
	bool is_gated;
	bool keeps;
	enum tw_status status;
	tw_duration expire;
	struct gate gate; /* a load that was kept reaches it, too */
	atomic_int loads;
	struct tw_cache_loading *kept;
};

/* A thing that takes beside the main thread: threads, or a callback. */
struct aside {
	struct cache_script *script;
	struct tw_cache *cache;
	char name[16];
	char step[100];
	int threads; /* not joined yet */
	struct aside_thread {
		struct aside *aside;
		pthread_t thread;
		char answer[TEXT];
	} each[THREADS];
	atomic_int times; /* answers of the callback */
	int asked;
	char answer[TEXT];
	pthread_t caller;
};

struct cache_script {
	struct cache_recorder *recorder;
	struct source_of sources[SOURCES];
	struct aside asides[ASIDES];
	char adopted[100];
	size_t compared; /* removals */
};

/* A call has the words of a step, and writes its answer. */
struct call {
	struct cache_script *script;
	struct tw_cache *cache;
	char *words[WORDS];
	int count;
	const char *key;
	size_t key_size;
	char answer[TEXT];
};

/* ---- Answers ---- */

static void write_entry(char *answer, enum tw_status status, const struct tw_cache_entry *entry)
{
	size_t size;
	const char *value;

	if (entry) {
		value = tw_cache_entry_value(entry, &size);
		assert(value);
		snprintf(answer, TEXT, "%s%.*s", status == TW_STALE ? "STALE " : "", (int)size,
			 value);
	} else if (strcmp(tw_status_name(status), "TW_UNKNOWN")) {
		snprintf(answer, TEXT, "%s", words_of_status(status));
	} else {
		snprintf(answer, TEXT, "%d", (int)status);
	}
	if ((status == TW_OK || status == TW_STALE) != (entry != NULL))
		snprintf(answer, TEXT, "a status and an entry that do not agree");
	tw_cache_entry_release(entry);
}

static enum tw_status answer_number(struct call *call, uint64_t number)
{
	snprintf(call->answer, TEXT, "%llu", (unsigned long long)number);
	return TW_OK;
}

static tw_duration time_of(const char *word)
{
	return words_time(word, INTERVAL);
}

/* Returns the lifetime that is word `at`, or 0. */
static tw_duration lifetime_of(const struct call *call, int at)
{
	return at < call->count ? time_of(call->words[at]) : 0;
}

static bool has_word(const struct call *call, const char *word)
{
	for (int i = 1; i < call->count; i++)
		if (!strcmp(call->words[i], word))
			return true;
	return false;
}

static struct source_of *source_named(const struct call *call)
{
	return &call->script->sources[has_word(call, "other")];
}

/* ---- Calls. Each returns its status, which is the answer unless it writes another ---- */

static enum tw_status call_set(struct call *call)
{
	const char *value = call->words[2];

	if (call->count > 3)
		return tw_cache_set_with_expire(call->cache, call->key, call->key_size, value,
						strlen(value), time_of(call->words[3]));
	return tw_cache_set(call->cache, call->key, call->key_size, value, strlen(value));
}

static enum tw_status call_letters(struct call *call)
{
	cache_set_letters(call->script->recorder, call->words[1]);
	return TW_OK;
}

static enum tw_status call_put(struct call *call)
{
	struct tw_cache_value value = {.data = call->words[2], .size = strlen(call->words[2])};
	const char *verb = call->words[0];
	enum tw_cache_put_mode mode = TW_CACHE_PUT_SET;

	*(*verb == 'u' ? &value.deadline : &value.expire) = lifetime_of(call, 3);
	if (!strcmp(verb, "adopt")) {
		/* Nothing is freed. */
		value.data = strcpy(call->script->adopted, call->words[2]);
		value.free_value = leave_value;
	} else if (*verb != 'u') {
		mode = *verb == 'a' ? TW_CACHE_PUT_ADD : TW_CACHE_PUT_REPLACE;
	}
	return tw_cache_put(call->cache, call->key, call->key_size, &value, mode);
}

static enum tw_status call_touch(struct call *call)
{
	return touch_key(call->cache, call->key, call->key_size, time_of(call->words[2]));
}

static enum tw_status call_delete(struct call *call)
{
	return tw_cache_delete(call->cache, call->key, call->key_size);
}

static enum tw_status call_clear(struct call *call)
{
	return tw_cache_clear(call->cache);
}

static enum tw_status call_get(struct call *call)
{
	char buffer[TEXT];
	bool is_over = *call->words[0] == 'o';
	size_t size = 77;
	enum tw_status status;

	memcpy(buffer, call->key, call->key_size);
	status = tw_cache_get(call->cache, is_over ? buffer : call->key, call->key_size, buffer,
			      sizeof(buffer), &size);
	if (status == TW_OK)
		snprintf(call->answer, TEXT, "%.*s", (int)size, buffer);
	else if (size)
		strcpy(call->answer, "a size without a value");
	return status;
}

static enum tw_status call_many(struct call *call)
{
	char buffer[TEXT];
	struct tw_cache_lookup item = {call->key, call->key_size, buffer, sizeof(buffer),
				       77,        TW_OK};
	enum tw_status status = tw_cache_get_many(call->cache, &item, 1, NULL);

	if (status == TW_OK && item.status == TW_OK)
		snprintf(call->answer, TEXT, "%.*s", (int)item.value_size, buffer);
	return status == TW_OK ? item.status : status;
}

static enum tw_status call_acquire(struct call *call)
{
	const struct tw_cache_entry *entry = NULL;
	enum tw_status status =
		tw_cache_acquire(call->cache, call->key, call->key_size,
				 *call->words[0] == 'p' ? TW_CACHE_NO_USE : 0, &entry);

	write_entry(call->answer, status, entry);
	return status;
}

struct computed {
	const struct call *call;
	char seen[TEXT];
};

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_value *value)
{
	struct computed *computed = context;
	const struct call *call = computed->call;

	snprintf(computed->seen, TEXT, "none");
	if (entry)
		write_entry(computed->seen, TW_OK, tw_cache_entry_pin(entry));
	if (*call->words[2] != 'r')
		return *call->words[2] == 'k' ? TW_CACHE_KEEP : TW_CACHE_DELETE;
	value->data = call->words[3];
	value->size = strlen(call->words[3]);
	value->expire = lifetime_of(call, 4);
	return TW_CACHE_REPLACE;
}

static enum tw_status call_compute(struct call *call)
{
	struct computed computed = {.call = call};
	enum tw_status status =
		tw_cache_compute(call->cache, call->key, call->key_size, compute, &computed);

	if (status == TW_OK)
		strcpy(call->answer, computed.seen);
	return status;
}

static enum tw_status call_pop(struct call *call)
{
	const struct tw_cache_entry *entry = (const void *)call;
	enum tw_status status = pop_key(call->cache, call->key, call->key_size, &entry);

	write_entry(call->answer, status, entry);
	return status;
}

/* Inserts the key into the sorted keys of the answer. */
static int visit(void *context, const struct tw_cache_entry *entry)
{
	struct call *call = context;
	size_t size;
	const char *key = tw_cache_entry_key(entry, &size);
	char *at = call->answer;
	char rest[TEXT];

	while (*at && strncmp(at, key, size) < 0)
		at += strcspn(at, " ") + (strchr(at, ' ') != NULL);
	strcpy(rest, at);
	at += sprintf(at, "%s%.*s", !*rest && at > call->answer ? " " : "", (int)size, key);
	if (*rest)
		sprintf(at, " %s", rest);
	return 1;
}

static enum tw_status call_each(struct call *call)
{
	enum tw_status status = tw_cache_each(call->cache, visit, call);

	if (status == TW_OK && !*call->answer)
		strcpy(call->answer, "none");
	return status;
}

static enum tw_status call_deadline(struct call *call)
{
	words_write_time(call->answer, TEXT, deadline_of(call->cache, call->key, call->key_size),
			 INTERVAL);
	return TW_OK;
}

static enum tw_status call_lives(struct call *call)
{
	assert_lives_for(call->script->recorder, call->key, call->words[2],
			 time_of(call->words[3]));
	return TW_OK;
}

static enum tw_status call_pass(struct call *call)
{
	(*call->words[0] == 'p' ? cache_pass : cache_advance)(call->script->recorder,
							      time_of(call->words[1]));
	return TW_OK;
}

static enum tw_status call_settle(struct call *call)
{
	if (call->script->recorder->cache)
		cache_settle(call->script->recorder);
	return TW_OK;
}

static enum tw_status call_stop(struct call *call)
{
	if (!strcmp(call->words[0], "stop"))
		return tw_cache_stop(call->cache);
	if (*call->words[0] == 'w')
		return tw_stop(call->script->recorder->wheel);
	if (call->script->recorder->cache)
		call->script->recorder->cache = NULL;
	tw_cache_destroy(call->cache);
	return TW_OK;
}

/* ---- Loads ---- */

static enum tw_status status_named(const char *name)
{
	int number = -1;

	if (strspn(name, "-0123456789") == strlen(name))
		return (enum tw_status)atoi(name);
	while (strcmp(words_of_status((enum tw_status)++ number), name))
		assert(number < 100);
	return (enum tw_status)number;
}

static enum tw_status call_source(struct call *call)
{
	struct source_of *source = &call->script->sources[*call->words[0] == 'o'];

	source->has_value = source->is_gated = source->keeps = false;
	source->status = TW_OK;
	source->expire = 0;
	for (int i = 1; i < call->count; i++) {
		const char *word = call->words[i];

		if (!strcmp(word, "gated")) {
			source->is_gated = true;
		} else if (!strcmp(word, "kept")) {
			source->keeps = true;
		} else if (!strcmp(word, "lives")) {
			source->expire = time_of(call->words[++i]);
		} else if (strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(word) && *word) {
			source->status = status_named(word);
		} else if (strspn(word, "-0123456789") == strlen(word) && *word) {
			source->status = strcmp(word, "-") ? status_named(word) : TW_OK;
		} else {
			source->has_value = true;
			strcpy(source->value, word);
		}
	}
	return TW_OK;
}

enum tw_status cache_script_load(void *argument, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	struct source_of *source = argument;
	enum tw_status status = TW_OK;

	atomic_fetch_add(&source->loads, 1);
	if (source->keeps) {
		/* A second one is refused. */
		if (tw_cache_load_keep(loading) != TW_OK ||
		    tw_cache_load_keep(loading) != TW_INVALID)
			return TW_SYSTEM;
		source->kept = loading;
		sem_post(&source->gate.reached);
		return source->status;
	}
	if (source->is_gated)
		gate_pass(&source->gate);
	if (source->has_value)
		status = give_copied(loading, source->value, strlen(source->value), source->expire);
	return status == TW_OK ? source->status : status;
}

static enum tw_status call_take(struct call *call)
{
	const struct tw_cache_entry *entry = (const void *)call;
	tw_duration wait = TW_FOREVER;
	bool is_own = has_word(call, "own");
	enum tw_status status;

	for (int i = 2; i + 1 < call->count; i++)
		if (!strcmp(call->words[i], "wait"))
			wait = time_of(call->words[i + 1]);
	status = tw_cache_take(call->cache, call->key, call->key_size,
			       is_own ? NULL : cache_script_load,
			       is_own ? NULL : source_named(call), wait, &entry);
	write_entry(call->answer, status, entry);
	return status;
}

static enum tw_status call_loads(struct call *call)
{
	return answer_number(call, (uint64_t)atomic_load(&source_named(call)->loads));
}

static enum tw_status call_reached(struct call *call)
{
	gate_await(&source_named(call)->gate);
	return TW_OK;
}

static enum tw_status call_go(struct call *call)
{
	gate_open(&source_named(call)->gate);
	return TW_OK;
}

static enum tw_status call_give(struct call *call)
{
	const char *value = call->words[1];

	return give_copied(source_named(call)->kept, value, strlen(value), lifetime_of(call, 2));
}

static enum tw_status call_end(struct call *call)
{
	return tw_cache_load_end(source_named(call)->kept, status_named(call->words[1]));
}

static enum tw_status call_keep(struct call *call)
{
	return tw_cache_load_keep(source_named(call)->kept);
}

/* ---- Beside the main thread ---- */

static void make_call(struct call *call, char *text);

static struct aside *aside_named(struct cache_script *script, const char *name)
{
	struct aside *aside = script->asides;

	while (*aside->name && strcmp(aside->name, name))
		assert(++aside < script->asides + ASIDES);
	aside->script = script;
	snprintf(aside->name, sizeof(aside->name), "%s", name);
	return aside;
}

static void *aside_run(void *argument)
{
	struct aside_thread *thread = argument;
	struct call call = {.script = thread->aside->script, .cache = thread->aside->cache};
	char step[100];

	strcpy(step, thread->aside->step);
	make_call(&call, step);
	strcpy(thread->answer, call.answer);
	return NULL;
}

static enum tw_status call_begin(struct call *call)
{
	int threads = atoi(call->words[1]);
	int at = threads ? 2 : 1;
	struct aside *aside = aside_named(call->script, call->words[at]);

	aside->cache = call->cache; /* its alone, if it is destroyed there */
	if (!strcmp(call->words[at + 1], "destroy"))
		call->script->recorder->cache = NULL;
	aside->step[0] = '\0';
	for (int i = at + 1; i < call->count; i++)
		snprintf(aside->step + strlen(aside->step),
			 sizeof(aside->step) - strlen(aside->step), "%s ", call->words[i]);
	for (aside->threads = 0; aside->threads < (threads ? threads : 1); aside->threads++) {
		struct aside_thread *thread = &aside->each[aside->threads];

		thread->aside = aside;
		assert_int_equal(pthread_create(&thread->thread, NULL, aside_run, thread), 0);
	}
	return TW_OK;
}

static enum tw_status call_ended(struct call *call)
{
	struct aside *aside = aside_named(call->script, call->words[1]);

	assert(aside->threads > 0);
	while (aside->threads > 0) {
		struct aside_thread *thread = &aside->each[--aside->threads];

		pthread_join(thread->thread, NULL);
		if (*call->answer && strcmp(call->answer, thread->answer))
			strcpy(call->answer, "more than one answer");
		else
			strcpy(call->answer, thread->answer);
	}
	return TW_OK;
}

static void be_answered(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct aside *aside = context;

	char answer[TEXT];

	aside->caller = pthread_self();
	write_entry(answer, status, entry ? tw_cache_entry_pin(entry) : NULL);
	if (atomic_load(&aside->times) > 0 && strcmp(aside->answer, answer))
		strcpy(answer, "more than one answer");
	strcpy(aside->answer, answer);
	atomic_fetch_add(&aside->times, 1);
}

static enum tw_status call_async(struct call *call)
{
	int times = atoi(call->words[1]);
	int at = times ? 2 : 1;
	struct aside *aside = aside_named(call->script, call->words[at]);
	const char *key = call->words[at + 1];
	enum tw_status status = TW_OK;

	atomic_store(&aside->times, 0);
	aside->asked = times ? times : 1;
	for (int i = 0; i < aside->asked && status == TW_OK; i++)
		status = tw_cache_take_async(call->cache, key, strlen(key), be_answered, aside);
	return status;
}

static enum tw_status call_answered(struct call *call)
{
	struct aside *aside = aside_named(call->script, call->words[1]);

	WAIT_UNTIL(atomic_load(&aside->times) >= aside->asked);
	strcpy(call->answer,
	       atomic_load(&aside->times) == aside->asked ? aside->answer : "too many answers");
	return TW_OK;
}

static enum tw_status call_answers(struct call *call)
{
	return answer_number(
		call, (uint64_t)atomic_load(&aside_named(call->script, call->words[1])->times));
}

static enum tw_status call_thread(struct call *call)
{
	bool is_own =
		pthread_equal(aside_named(call->script, call->words[1])->caller, pthread_self());

	strcpy(call->answer, is_own ? "own" : "another");
	return TW_OK;
}

/* ---- Counts ---- */

#define NUMBER(name, field)                                  \
	{                                                    \
		name, offsetof(struct tw_cache_stats, field) \
	}
/* The first ones are those of `counts`. */
static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
	NUMBER("hits", hits),
	NUMBER("misses", misses),
	NUMBER("absent", absent),
	NUMBER("loads_begun", loads),
	NUMBER("load_errors", load_errors),
	NUMBER("load_waits", load_waits),
	NUMBER("wait_timeouts", wait_timeouts),
	NUMBER("inserts", inserts),
	NUMBER("entries", entries),
	NUMBER("refreshes", refreshes),
	NUMBER("loads_ended", loads_ended),
	NUMBER("loads_waiting", loads_waiting),
	NUMBER("loads_running", loads_running),
	NUMBER("stale", stale),
	NUMBER("notified", notified),
	NUMBER("refused", refused),
	NUMBER("bytes", bytes),
	NUMBER("queued_removals", queued_removals),
};
enum { COUNTED = 9, NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static uint64_t number_of(const struct call *call, int at)
{
	const struct tw_cache_stats stats = cache_stats(call->script->recorder);

	return *(const uint64_t *)((const char *)&stats + numbers[at].offset);
}

static int number_named(const char *name)
{
	int at = 0;

	while (strcmp(numbers[at].name, name))
		assert(++at < NUMBERS);
	return at;
}

static enum tw_status call_number(struct call *call)
{
	return answer_number(call, number_of(call, number_named(call->words[0])));
}

static enum tw_status call_counts(struct call *call)
{
	for (int i = 0; i < COUNTED; i++)
		if (number_of(call, i))
			snprintf(call->answer + strlen(call->answer), 100, "%s%s %llu",
				 *call->answer ? " " : "", numbers[i].name,
				 (unsigned long long)number_of(call, i));
	return TW_OK;
}

static const char *const causes[] = {[TW_CAUSE_EXPLICIT] = "explicit",
				     [TW_CAUSE_REPLACED] = "replaced",
				     [TW_CAUSE_SIZE] = "size",
				     [TW_CAUSE_EXPIRED] = "expired",
				     [TW_CAUSE_SHUTDOWN] = "shutdown"};

static enum tw_status call_removed(struct call *call)
{
	int cause = 0;

	while (strcmp(causes[cause], call->words[1]))
		assert(++cause < TW_CACHE_CAUSES);
	return answer_number(call, cache_stats(call->script->recorder).removed[cause]);
}

static enum tw_status call_await(struct call *call)
{
	WAIT_UNTIL(number_of(call, number_named(call->words[1])) ==
		   strtoul(call->words[2], NULL, 10));
	return TW_OK;
}

/* ---- Steps ---- */

static const struct verb {
	const char *name;
	enum tw_status (*call)(struct call *call);
} verbs[] = {
	{"set", call_set},         {"letters", call_letters},   {"add", call_put},
	{"replace", call_put},     {"until", call_put},         {"adopt", call_put},
	{"touch", call_touch},     {"delete", call_delete},     {"clear", call_clear},
	{"get", call_get},         {"over", call_get},          {"many", call_many},
	{"acquire", call_acquire}, {"peek", call_acquire},      {"compute", call_compute},
	{"pop", call_pop},         {"each", call_each},         {"deadline", call_deadline},
	{"lives", call_lives},     {"pass", call_pass},         {"advance", call_pass},
	{"settle", call_settle},   {"stop", call_stop},         {"wheel_stop", call_stop},
	{"destroy", call_stop},    {"source", call_source},     {"other", call_source},
	{"take", call_take},       {"loads", call_loads},       {"reached", call_reached},
	{"go", call_go},           {"give", call_give},         {"end", call_end},
	{"keep", call_keep},       {"begin", call_begin},       {"ended", call_ended},
	{"async", call_async},     {"answered", call_answered}, {"answers", call_answers},
	{"thread", call_thread},   {"counts", call_counts},     {"removed", call_removed},
	{"await", call_await},
};

static void make_call(struct call *call, char *text)
{
	enum tw_status (*make)(struct call *) = call_number;
	enum tw_status status;

	if (!call->cache)
		call->cache = call->script->recorder->cache;
	call->count = words_split(text, call->words, WORDS);
	assert(call->count > 0);
	call->key = call->count > 1 ? call->words[1] : "";
	call->key_size = strlen(call->key);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, call->words[0]))
			make = verbs[i].call;
	status = make(call);
	if (status != TW_OK && !*call->answer)
		write_entry(call->answer, status, NULL);
}

/* Returns whether the values that have left since the last comparison are the expected ones. */
static bool events_are(struct cache_script *script, char *expected, char *got)
{
	size_t first = script->compared;
	size_t count = removal_count(script->recorder) - first;
	bool is_found[STEP] = {false};
	char *words[100];
	int wanted = words_split(expected, words, 100);
	int matches = 0;

	script->compared += count;
	*got = '\0';
	for (size_t i = 0; i < count && i < STEP; i++) {
		struct removal removal = removal_at(script->recorder, first + i);
		char event[100];

		snprintf(event, sizeof(event), "%.*s:%s", (int)removal.value_size, removal.value,
			 causes[removal.cause]);
		snprintf(got + strlen(got), STEP - strlen(got), " %s", event);
		for (int k = 0; k < wanted && !is_found[i]; k++)
			if (words[k] && !strcmp(words[k], event)) {
				words[k] = NULL;
				is_found[i] = true;
				matches++;
			}
	}
	return matches == wanted && (size_t)matches == count;
}

static void gates_open(struct cache_script *script)
{
	for (int i = 0; i < SOURCES; i++) {
		script->sources[i].is_gated = false;
		for (int k = 0; k < THREADS; k++)
			gate_open(&script->sources[i].gate);
	}
}

/* Makes the step. Returns whether all is as expected; else *got says what came. */
static bool make_step(struct cache_script *script, char *text, char *got)
{
	char *events = words_cut(text, "->");
	char *expected = words_cut(text, " = ");
	struct call call = {.script = script};

	make_call(&call, text);
	snprintf(got, STEP, "%s", call.answer);
	expected = expected ? words_trim(expected) : "";
	if (*expected == '\'')
		*(expected += strcspn(expected, "\0") - 2) = '\0';
	if (!strcmp(expected, "OK"))
		expected = "";
	if (strcmp(expected, "any") && strcmp(call.answer, expected) &&
	    strcmp(call.answer, *expected ? expected : "OK"))
		return false;
	if (!events)
		return true;
	call_settle(&call);
	return events_are(script, events, got);
}

struct cache_script_text {
	const struct variant *variant;
	tw_duration expire;
	struct tw_cache_options more;
	const char *file;
	int line;
};

static void text_run(void *context, const char *text)
{
	const struct cache_script_text *of = context;
	struct cache_script *script = calloc(1, sizeof(*script));
	struct tw_cache_options more = of->more;
	const char *all = text;

	assert_non_null(script);
	for (int i = 0; i < SOURCES; i++)
		gate_init(&script->sources[i].gate);
	if (more.load)
		more.load_context = &script->sources[0];
	script->recorder = cache_recorder_open_with(of->variant, of->expire, more);
	while (*text) {
		size_t length = strcspn(text, ";");
		char step[STEP];
		char shown[STEP];
		char got[STEP];

		snprintf(step, sizeof(step), "%.*s", (int)length, text);
		strcpy(shown, step);
		text += length + (text[length] == ';');
		if (!step[strspn(step, " ")] || make_step(script, step, got))
			continue;
		gates_open(script);
		print_error("in the script: %s\n", all);
		fail_msg("%s:%d:%s: got %s", of->file, of->line, shown, got);
	}
	for (struct aside *aside = script->asides; aside < script->asides + ASIDES; aside++)
		assert_int_equal(aside->threads, 0);
	cache_recorder_close(script->recorder);
	free(script);
}

void cache_script_run(const struct variant *variant, tw_duration expire,
		      struct tw_cache_options more, const char *file, int line, const char *format,
		      ...)
{
	struct cache_script_text of = {variant, expire, more, file, line};
	char text[STEP];
	va_list arguments;

	va_start(arguments, format);
	assert(vsnprintf(text, sizeof(text), format, arguments) < STEP);
	va_end(arguments);
	words_choose(text, text_run, &of);
}
