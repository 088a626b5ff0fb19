/* SPDX-License-Identifier: MIT */
#include "support/steps.h"

#include <assert.h>
#include <ctype.h>
#include <sys/mman.h>

#include "redis/client/client.h"
#include "support/ends.h"
#include "support/words.h"

enum { WORDS = 60, BATCHES = 100, TASKS = 16, TEXT = 4000 };

static const int64_t begin_ms = INT64_C(1893456000000); /* 2030-01-01, a Tuesday */
static _Atomic int64_t *clock_us; /* the server's clock, which it has mapped, too */

struct steps {
	struct fixture *fixture;
	struct tw_redis *redis;
	char *words[WORDS];
	int count;
	int at;                                  /* where the next word is */
	char said[TEXT];                         /* the answer so far */
	struct tw_redis_batch *batches[BATCHES]; /* what all claims have given */
	size_t batch_count;
	tw_duration next;
	redisContext *listener; /* has subscribed to hints, or NULL */
};

/* ---- The clock ---- */

void clocked_set(int64_t us)
{
	atomic_store(clock_us, begin_ms * 1000 + us);
}

int clocked_start_server(void **state)
{
	const struct redis_server_options options = {.preload =
							     "test/redis/torture/shifted_clock.so"};
	int file = memfd_create("clock", MFD_CLOEXEC);
	char path[64];

	assert(file >= 0 && ftruncate(file, sizeof(*clock_us)) == 0);
	clock_us = mmap(NULL, sizeof(*clock_us), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert(clock_us != MAP_FAILED);
	clocked_set(0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), file);
	setenv("TORTURE_CLOCK", path, 1);
	return fixture_start_server_with(state, &options);
}

/* ---- Words ---- */

/* Returns the next word of the step, or NULL. */
static const char *word_next(struct steps *steps)
{
	return steps->at < steps->count ? steps->words[steps->at++] : NULL;
}

static const char *word_need(struct steps *steps)
{
	const char *word = word_next(steps);

	assert(word);
	return word;
}

/* Reads a length, or a time since the beginning, in nanoseconds. */
static tw_duration length_read(const char *text)
{
	return words_time(text, TW_SECOND);
}

__attribute__((format(printf, 2, 3))) static void say(struct steps *steps, const char *format, ...)
{
	size_t used = strlen(steps->said);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(steps->said + used, TEXT - used, format, arguments);
	va_end(arguments);
}

/* Says a length as length_read() reads it. */
static void say_length(struct steps *steps, tw_duration length)
{
	static const tw_duration units[] = {TW_HOUR,        TW_MINUTE,      TW_SECOND,
					    TW_MILLISECOND, TW_MICROSECOND, 1};
	static const char *const names[] = {"h", "m", "s", "ms", "us", "ns"};

	if (length == TW_FOREVER || length == 0) {
		say(steps, "%s", length ? "never" : "0");
		return;
	}
	say(steps, "%s", length < 0 ? "-" : "");
	length = length < 0 ? -length : length;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); length %= units[i++])
		if (length / units[i])
			say(steps, "%lld%s", (long long)(length / units[i]), names[i]);
}

static void say_time(struct steps *steps, int64_t ms)
{
	if (ms)
		say_length(steps, (ms - begin_ms) * TW_MILLISECOND);
	else
		say(steps, "none");
}

static void say_status(struct steps *steps, enum tw_status status)
{
	say(steps, "%s", words_of_status(status));
}

/* ---- Fields of tasks ---- */

enum field_kind { LENGTH, TIME, NUMBER, TOKEN, STRING, BYTES, CHOICE };

static const char *const missed_names[] = {"one", "skip", "all", NULL};
static const char *const mode_names[] = {"any", "new", "replace", NULL};
static const char *const state_names[] = {"pending", "leased", "waiting", "dead", NULL};

#define FIELD(member) offsetof(struct tw_redis_info, member)
static const struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	const char *const *names;
} fields[] = {
	{"in", LENGTH, FIELD(task.delay), NULL},
	{"at", TIME, FIELD(task.at_ms), NULL},
	{"every", LENGTH, FIELD(task.every), NULL},
	{"cron", STRING, FIELD(task.cron), NULL},
	{"zone", STRING, FIELD(task.zone), NULL},
	{"missed", CHOICE, FIELD(task.missed), missed_names},
	{"mode", CHOICE, FIELD(task.mode), mode_names},
	{"max", NUMBER, FIELD(task.max_attempts), NULL},
	{"grace", LENGTH, FIELD(task.grace), NULL},
	{"latest", LENGTH, FIELD(task.latest), NULL},
	{"body", BYTES, FIELD(task.body), NULL},
	{"url", STRING, FIELD(task.url), NULL},
	{"group", STRING, FIELD(task.group), NULL},
	{"state", CHOICE, FIELD(state), state_names},
	{"due", TIME, FIELD(due_ms), NULL},
	{"latest_due", TIME, FIELD(latest_due_ms), NULL},
	{"tried", NUMBER, FIELD(attempts), NULL},
	{"token", TOKEN, FIELD(token), NULL},
	{"why", STRING, FIELD(reason), NULL},
};

static const struct field *field_find(const char *name)
{
	const struct field *field = fields;

	while (strcmp(field->name, name))
		assert(++field < fields + sizeof(fields) / sizeof(fields[0]));
	return field;
}

static void field_read(const struct field *field, struct tw_redis_info *info, const char *text)
{
	void *place = (char *)info + field->offset;
	int choice = 0;

	switch (field->kind) {
	case LENGTH:
		*(tw_duration *)place = length_read(text);
		break;
	case TIME:
		*(int64_t *)place = begin_ms + length_read(text) / TW_MILLISECOND;
		break;
	case CHOICE:
		while (strcmp(field->names[choice], text))
			assert(field->names[++choice]);
		*(int *)place = choice;
		break;
	case BYTES:
		info->task.body_size = strlen(text);
		*(const void **)place = text;
		break;
	case STRING:
		*(const char **)place = text;
		break;
	default:
		*(unsigned *)place = (unsigned)strtoul(text, NULL, 10);
	}
}

static void field_say(struct steps *steps, const struct field *field,
		      const struct tw_redis_info *info)
{
	const void *place = (const char *)info + field->offset;
	const char *text;

	switch (field->kind) {
	case LENGTH:
		say_length(steps, *(const tw_duration *)place);
		break;
	case TIME:
		say_time(steps, *(const int64_t *)place);
		break;
	case CHOICE:
		say(steps, "%s", field->names[*(const int *)place]);
		break;
	case BYTES:
		say(steps, "%.*s", (int)info->task.body_size, (const char *)info->task.body);
		break;
	case STRING:
		text = *(const char *const *)place;
		say(steps, "%s", text ? text : "");
		break;
	case TOKEN:
		say(steps, "%s", *(const uint64_t *)place ? "some" : "none");
		break;
	default:
		say(steps, "%u", *(const unsigned *)place);
	}
}

/* Reads a key and the fields behind it, up to a comma, which may end a word. */
static struct tw_redis_info info_read(struct steps *steps)
{
	const char *key = word_need(steps);
	struct tw_redis_info info = {.task = {.key = key, .key_size = strlen(key)}, .reason = ""};

	while (steps->at < steps->count && strcmp(steps->words[steps->at], ",")) {
		const struct field *field = field_find(word_need(steps));

		field_read(field, &info, word_need(steps));
	}
	steps->at += steps->at < steps->count;
	return info;
}

/* ---- Calls: each says its answer, unless that is the status it returns ---- */

static enum tw_status add(struct steps *steps, int what)
{
	struct tw_redis_task tasks[TASKS];
	struct tw_redis_added each[TASKS];
	size_t count = 0;

	while (steps->at < steps->count) {
		assert(count < TASKS);
		tasks[count++] = info_read(steps).task;
	}
	may_fail(tw_redis_add(steps->redis, tasks, count, each));
	for (size_t i = 0; i < count; i++) {
		say(steps, i ? " " : "");
		if (each[i].status == TW_OK)
			say_time(steps, each[i].due_ms);
		else
			say_status(steps, each[i].status);
	}
	return TW_OK;
}

static enum tw_status restore(struct steps *steps, int what)
{
	struct tw_redis_info info = info_read(steps);

	return tw_redis_restore(steps->redis, &info, 1, NULL);
}

static enum tw_status move(struct steps *steps, int what)
{
	struct tw_redis_task task = info_read(steps).task;
	int64_t due_ms;
	enum tw_status status = tw_redis_move(steps->redis, task.key, task.key_size, task.at_ms,
					      task.delay, &due_ms);

	if (status == TW_OK)
		say_time(steps, due_ms);
	return status;
}

static enum tw_status cancel(struct steps *steps, int what)
{
	const char *key = word_need(steps);
	enum tw_redis_scope scope = word_next(steps) ? TW_REDIS_WHOLE : TW_REDIS_OCCURRENCE;

	return tw_redis_cancel(steps->redis, key, strlen(key), scope);
}

static enum tw_status claim(struct steps *steps, int what)
{
	struct tw_redis_batch *batch;
	tw_duration lease = TW_MINUTE;
	size_t most = 100;

	for (const char *word; (word = word_next(steps));)
		if (!strcmp(word, "most"))
			most = strtoul(word_need(steps), NULL, 10);
		else
			lease = length_read(word_need(steps));
	assert_ok(steps->redis, tw_redis_claim(steps->redis, 0, most, lease, &batch, &steps->next));
	assert(steps->batch_count < BATCHES);
	steps->batches[steps->batch_count++] = batch;
	for (size_t i = 0; i < batch->count; i++) {
		const struct tw_redis_job *job = &batch->jobs[i];

		say(steps, "%s%.*s#%u@", i ? " " : "", (int)job->key_size, (const char *)job->key,
		    job->attempt);
		say_time(steps, job->due_ms);
	}
	if (!batch->count)
		say(steps, "none");
	return TW_OK;
}

static enum tw_status next(struct steps *steps, int what)
{
	say_length(steps, steps->next);
	return TW_OK;
}

/* Returns the last job of the key, or with ":2" behind it the second. */
static const struct tw_redis_job *job_find(struct steps *steps)
{
	char *key = steps->words[steps->at++];
	char *colon = strchr(key, ':');
	size_t wanted = colon ? strtoul(colon + 1, NULL, 10) : SIZE_MAX;
	size_t size = colon ? (size_t)(colon - key) : strlen(key);
	const struct tw_redis_job *found = NULL;

	for (size_t i = 0; i < steps->batch_count && wanted; i++)
		for (size_t k = 0; k < steps->batches[i]->count && wanted; k++) {
			const struct tw_redis_job *job = &steps->batches[i]->jobs[k];

			if (job->key_size != size || memcmp(job->key, key, size))
				continue;
			/* A later run has a higher token. */
			assert_true(!found || job->token > found->token);
			found = job;
			wanted--;
		}
	assert_non_null(found);
	return found;
}

static enum tw_status finish(struct steps *steps, int outcome)
{
	const struct tw_redis_job *job = job_find(steps);
	struct tw_redis_verdict verdict = {0};
	enum tw_status each = TW_INVALID;

	for (const char *word; (word = word_next(steps));)
		if (!strcmp(word, "in"))
			verdict.retry_in = length_read(word_need(steps));
		else
			snprintf(verdict.reason, sizeof(verdict.reason), "%s", word_need(steps));
	may_fail(tw_redis_finish(steps->redis, job, 1, (enum tw_redis_outcome)outcome, &verdict,
				 &each));
	return each;
}

/* Ends a first run as a worker does that puts it off. */
static enum tw_status put_off(struct steps *steps, int what)
{
	const struct tw_redis_job *job = job_find(steps);

	return redis_ask(steps->redis, &script_finish, job->shard, NULL, NULL, "siimksi", "b",
			 (int64_t)job->token, (int64_t)job->slot + 1, "w", job->key, job->key_size,
			 "", length_read(word_need(steps)) / TW_MILLISECOND);
}

static enum tw_status extend(struct steps *steps, int what)
{
	const struct tw_redis_job *job = job_find(steps);
	enum tw_status each = TW_INVALID;

	may_fail(tw_redis_extend(steps->redis, job, 1, length_read(word_need(steps)), &each));
	return each;
}

/* Says the fields that the step names, of the task or the letter with its key. */
static bool info_say(void *context, const struct tw_redis_info *info)
{
	struct steps *steps = context;

	if (info->state == TW_REDIS_DEAD &&
	    (strlen(steps->words[1]) != info->task.key_size ||
	     memcmp(steps->words[1], info->task.key, info->task.key_size)))
		return true;
	if (steps->at == steps->count)
		say_status(steps, TW_OK);
	for (int at = steps->at; at < steps->count; at++) {
		say(steps, at > steps->at ? " " : "");
		field_say(steps, field_find(steps->words[at]), info);
	}
	return false;
}

static enum tw_status get(struct steps *steps, int what)
{
	const char *key = word_need(steps);

	return tw_redis_get(steps->redis, key, strlen(key), info_say, steps);
}

static enum tw_status letter(struct steps *steps, int what)
{
	(void)word_need(steps);
	assert_ok(steps->redis, tw_redis_each(steps->redis, TW_REDIS_LETTERS, info_say, steps));
	return TW_NOT_FOUND;
}

static bool key_say(void *context, const struct tw_redis_info *info)
{
	struct steps *steps = context;

	say(steps, "%s%.*s", *steps->said ? " " : "", (int)info->task.key_size,
	    (const char *)info->task.key);
	return true;
}

static enum tw_status list(struct steps *steps, int what)
{
	return tw_redis_each(steps->redis, TW_REDIS_TASKS, key_say, steps);
}

static enum tw_status stats(struct steps *steps, int what)
{
	static const struct {
		const char *name;
		size_t offset;
	} numbers[] = {{"tasks", offsetof(struct tw_redis_stats, tasks)},
		       {"due", offsetof(struct tw_redis_stats, due)},
		       {"started", offsetof(struct tw_redis_stats, started)},
		       {"dead", offsetof(struct tw_redis_stats, dead)},
		       {"recurring", offsetof(struct tw_redis_stats, recurring)},
		       {"added", offsetof(struct tw_redis_stats, added)}};
	const struct tw_redis_stats stats = stats_of(steps->redis);

	for (const char *word; (word = word_next(steps));) {
		say(steps, *steps->said ? " " : "");
		if (!strcmp(word, "next"))
			say_time(steps, stats.next_ms);
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			if (!strcmp(word, numbers[i].name))
				say(steps, "%" PRIu64,
				    *(const uint64_t *)((const char *)&stats + numbers[i].offset));
	}
	return TW_OK;
}

static enum tw_status revive(struct steps *steps, int what)
{
	const char *key = word_need(steps);

	return tw_redis_retry(steps->redis, key, strlen(key));
}

static enum tw_status drop(struct steps *steps, int what)
{
	const char *key = word_need(steps);

	return tw_redis_drop(steps->redis, key, strlen(key));
}

static enum tw_status set_limits(struct steps *steps, int what)
{
	const char *group = word_need(steps);
	struct tw_redis_limits limits = {0};

	for (const char *word; (word = word_next(steps));) {
		bool is_rate = !strcmp(word, "rate");
		unsigned *place = is_rate ? &limits.rate : &limits.running;

		word = word_need(steps);
		*place = (unsigned)strtoul(word, NULL, 10);
		limits.per = is_rate ? length_read(strchr(word, '/') + 1) : limits.per;
	}
	return tw_redis_set_limits(steps->redis, *group ? group : NULL, &limits);
}

static enum tw_status keys(struct steps *steps, int what)
{
	say(steps, "%" PRId64,
	    redis_server_count_keys(&steps->fixture->server, steps->fixture->name_space));
	return TW_OK;
}

static enum tw_status redis(struct steps *steps, int what)
{
	redisReply *reply;
	char texts[WORDS][200];
	const char *words[WORDS];
	int count = 0;

	for (const char *word; (word = word_next(steps)); count++) {
		bool is_key = !strncmp(word, "{}", 2);

		snprintf(texts[count], sizeof(texts[0]), is_key ? "{tw/%s/0}%s" : "%s%s",
			 is_key ? steps->fixture->name_space : "", is_key ? word + 2 : word);
		words[count] = texts[count];
	}
	/* The test's connection is opened by its first use. */
	freeReplyObject(redis_server_ask(&steps->fixture->server, "PING"));
	reply = redisCommandArgv(steps->fixture->server.context, count, words, NULL);
	assert_non_null(reply);
	assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
	freeReplyObject(reply);
	return TW_OK;
}

static enum tw_status listen_to_hints(struct steps *steps, int what)
{
	steps->listener = redisConnect("127.0.0.1", steps->fixture->server.port);
	assert_int_equal(steps->listener->err, 0);
	freeReplyObject(
		redisCommand(steps->listener, "SUBSCRIBE tw/%s/hint", steps->fixture->name_space));
	return TW_OK;
}

/* The server answers the PING after all messages that it has. */
static enum tw_status hints(struct steps *steps, int what)
{
	redisReply *reply = redisCommand(steps->listener, "PING");
	void *next;
	long long wait_us;

	for (; reply->elements == 3; reply = next) {
		assert_int_equal(sscanf(reply->element[2]->str, "0 %lld", &wait_us), 1);
		say(steps, *steps->said ? " " : "");
		say_length(steps, wait_us * TW_MICROSECOND);
		freeReplyObject(reply);
		assert_int_equal(redisGetReply(steps->listener, &next), REDIS_OK);
	}
	freeReplyObject(reply);
	say(steps, *steps->said ? "" : "none");
	return TW_OK;
}

enum { FROM_NOW, FROM_BEGINNING };

static enum tw_status set_clock(struct steps *steps, int from)
{
	int64_t now_us = from == FROM_NOW ? atomic_load(clock_us) - begin_ms * 1000 : 0;

	clocked_set(now_us + length_read(word_need(steps)) / TW_MICROSECOND);
	return TW_OK;
}

static const struct {
	const char *name;
	enum tw_status (*call)(struct steps *steps, int what);
	int what;
} calls[] = {
	{"add", add, 0},
	{"restore", restore, 0},
	{"move", move, 0},
	{"cancel", cancel, 0},
	{"claim", claim, 0},
	{"next", next, 0},
	{"done", finish, TW_REDIS_DONE},
	{"retry", finish, TW_REDIS_RETRY},
	{"kill", finish, TW_REDIS_KILL},
	{"snooze", finish, TW_REDIS_SNOOZE},
	{"put_off", put_off, 0},
	{"extend", extend, 0},
	{"get", get, 0},
	{"letter", letter, 0},
	{"list", list, 0},
	{"stats", stats, 0},
	{"revive", revive, 0},
	{"drop", drop, 0},
	{"limits", set_limits, 0},
	{"listen", listen_to_hints, 0},
	{"hints", hints, 0},
	{"keys", keys, 0},
	{"redis", redis, 0},
	{"pass", set_clock, FROM_NOW},
	{"clock", set_clock, FROM_BEGINNING},
};

/* ---- Steps ---- */

/* Returns whether the answer is the expected one, whose words may be beginnings of jobs. */
static bool is_answer(const char *said, const char *expected)
{
	while (*said && *expected) {
		size_t length = strcspn(expected, " ");

		if (strncmp(said, expected, length) || !strchr(" #@", said[length]))
			return false;
		said += strcspn(said, " ");
		expected += length;
		said += strspn(said, " ");
		expected += strspn(expected, " ");
	}
	return *said == *expected;
}

/* Makes the step. Its answer goes to steps->said. */
static void step_make(struct steps *steps, char *text, const char *expected)
{
	enum tw_status status;
	size_t i = 0;

	steps->count = words_split(text, steps->words, WORDS);
	*steps->said = '\0';
	while (strcmp(calls[i].name, steps->words[0]))
		assert(++i < sizeof(calls) / sizeof(calls[0]));
	steps->at = 1;
	status = calls[i].call(steps, calls[i].what);
	if (!*steps->said)
		say_status(steps, status);
	/* An add or a move whose answer is not written is to succeed. */
	if (!expected && !isupper((unsigned char)*steps->said))
		strcpy(steps->said, "OK");
}

static void steps_end(void *context)
{
	struct steps *steps = context;

	while (steps->batch_count)
		tw_redis_batch_free(steps->batches[--steps->batch_count]);
	redisFree(steps->listener);
	steps->listener = NULL;
	clocked_set(0);
}

void steps_run(struct fixture *fixture, const char *text, const char *file, int line)
{
	static struct steps steps;

	/* A case may run several texts. */
	at_end_not(&steps);
	steps_end(&steps);
	steps = (struct steps){.fixture = fixture, .redis = fixture->redis};
	at_end(steps_end, &steps);
	while (*text) {
		size_t length = strcspn(text, ";");
		char step[1000];
		char shown[1000];
		char *expected;

		snprintf(step, sizeof(step), "%.*s", (int)length, text);
		strcpy(shown, step);
		expected = words_cut(step, " = ");
		if (expected)
			expected += strspn(expected, " ");
		if (step[strspn(step, " ")]) {
			step_make(&steps, step, expected);
			if (!is_answer(steps.said, expected ? expected : "OK") &&
			    !(expected && !strcmp(expected, "any")))
				fail_msg("%s:%d:%s: got %s", file, line, shown, steps.said);
		}
		text += length + (text[length] == ';');
	}
}
