/* SPDX-License-Identifier: MIT */
#include "support/talk.h"

#include <assert.h>
#include <ctype.h>

#include "support/ends.h"
#include "support/fixture.h"
#include "support/runs.h"
#include "support/sockets.h"
#include "support/words.h"

enum { SERVERS = 3, CALLS = 4, TEXT = 16000, WORDS = 40 };

static struct false_server servers[SERVERS];
static int away;

/* This is the present run of a text. */
static struct {
	struct false_server *server; /* the one that rules and questions are for */
	struct false_server *down;   /* the one that is, or NULL */
	char opened[TEXT];           /* the last open's words */
	char url[TEXT];
	struct tw_redis_options options;
	struct tw_redis *redis;
	struct tw_redis_error error; /* the last call's */
	tw_duration took;
	size_t asked[SERVERS]; /* each server, by the last question */

	struct {
		pthread_t thread;
		char key[16];
		enum tw_status status;
	} calls[CALLS];
	size_t begun;

	struct tw_redis_worker *worker;
	tw_redis_handler_fn *handler;
	struct false_server *holder; /* runs go on while it has a rule for the word `until` */
	char until[16];
} talk;

const struct test_kind kind_talk = {NULL, NULL, NULL};

/* ---- Words ---- */

static char *words[WORDS]; /* the step's */
static int word_count;

/* Returns what follows the word in the step, or NULL. */
static const char *option(const char *name)
{
	for (int i = 1; i + 1 < word_count; i++)
		if (!strcmp(words[i], name))
			return words[i + 1];
	return NULL;
}

static tw_duration length_read(const char *text)
{
	return !text ? 0 : !strcmp(text, "none") ? -1 : words_time(text, TW_SECOND);
}

static size_t choice_read(const char *text, const char *names)
{
	size_t choice = 0;
	size_t size = text ? strlen(text) : 0;

	while (text && (strncmp(names, text, size) != 0 || !strchr("|", names[size]))) {
		names = strchr(names, '|');
		assert(names);
		names++;
		choice++;
	}
	return choice;
}

/* ---- Servers ---- */

static struct false_server *server_named(const char *name)
{
	assert(*name >= 'a' && *name < 'a' + SERVERS && !name[1]);
	return &servers[*name - 'a'];
}

/* Sets a rule: HOW WORD REPLY. */
static void rule_set(const char *text)
{
	char how[16];
	char word[32];
	int size;

	assert(sscanf(text, "%15s %31s %n", how, word, &size) == 2);
	false_server_set(talk.server, word, text + size,
			 !strcmp(how, "on")     ? FALSE_ALWAYS
			 : !strcmp(how, "once") ? 1
						: atoi(how));
}

/* Makes all servers nodes of a cluster with this map: NAME FIRST-LAST ... */
static void cluster_set(void)
{
	char map[TEXT] = "[";

	for (int i = 1; i + 1 < word_count; i += 2) {
		int first;
		int last;

		assert(sscanf(words[i + 1], "%d-%d", &first, &last) == 2);
		snprintf(map + strlen(map), TEXT - strlen(map), "[%d %d ['127.0.0.1' %d]] ", first,
			 last, strcmp(words[i], "away") ? server_named(words[i])->port : away);
	}
	strcat(map, "]");
	for (size_t i = 0; i < SERVERS; i++) {
		false_server_set(&servers[i], "INFO",
				 "info redis_version:7.2.0 maxmemory_policy:noeviction "
				 "cluster_enabled:1",
				 FALSE_ALWAYS);
		false_server_set(&servers[i], "CLUSTER", map, FALSE_ALWAYS);
	}
}

/* Starts the server that is down. */
static void server_up(void)
{
	struct false_server *server = talk.down;
	int port = server->port;

	talk.down = NULL;
	false_server_start_at(server, socket_listen(&port));
	server->port = port;
	snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%d", port);
}

static void server_down(void)
{
	false_server_stop(talk.server);
	talk.down = talk.server;
}

static void servers_reset(void)
{
	for (size_t i = 0; i < SERVERS; i++) {
		false_server_reset(&servers[i]);
		false_server_set(&servers[i], "#break", "close", FALSE_ALWAYS);
	}
}

/* ---- Calls ---- */

static void options_read(void)
{
	const char *at = option("at");

	snprintf(talk.url, sizeof(talk.url), "%s%s", at && strchr(at, ':') ? "" : talk.server->url,
		 at ? at : "");
	talk.options = (struct tw_redis_options){
		.url = talk.url,
		.shards = 4,
		.password = option("password"),
		.sentinel_password = option("sentinel_password"),
		.allow_eviction = option("evict"),
		.durability = (enum tw_redis_durability)choice_read(option("durability"),
								    "server|disk|replica|both"),
		.patience = length_read(option("patience")),
		.reply_timeout = length_read(option("reply")),
		.connect_timeout = length_read(option("connect")),
	};
}

static enum tw_status client_make(void)
{
	struct tw_redis *redis = NULL;
	enum tw_status status;

	tw_redis_close(talk.redis);
	talk.redis = NULL;
	options_read();
	status = tw_redis_open(&redis, &talk.options, &talk.error);
	assert_int_equal(status, talk.error.status);
	assert_int_equal(status == TW_OK, redis != NULL);
	talk.redis = redis;
	for (size_t i = 0; i < SERVERS; i++)
		talk.asked[i] = false_server_asked(&servers[i]);
	return status;
}

/* Makes the step's call. Returns false if it is none. */
static bool call_make(enum tw_status *status)
{
	const char *call = words[0];
	const char *key = word_count > 1 ? words[1] : NULL;

	if (!strcmp(call, "open"))
		*status = client_make();
	else if (!strcmp(call, "cancel"))
		*status = cancel_task(talk.redis, key);
	else if (!strcmp(call, "add"))
		*status = try_add(talk.redis, key, TW_HOUR, TW_REDIS_ANY);
	else if (!strcmp(call, "stats"))
		*status = tw_redis_get_stats(talk.redis, &(struct tw_redis_stats){0});
	else if (!strcmp(call, "pause") || !strcmp(call, "limits"))
		*status = tw_redis_set_limits(talk.redis, NULL,
					      &(struct tw_redis_limits){.paused = *call == 'p'});
	else if (!strcmp(call, "drop"))
		*status = tw_redis_drop_namespace(talk.redis, true);
	else
		return false;
	if (talk.redis && strcmp(call, "open") != 0)
		tw_redis_last_error(talk.redis, &talk.error);
	return true;
}

static void *call_run_begun(void *argument)
{
	size_t i = (size_t)(uintptr_t)argument;

	talk.calls[i].status = cancel_task(talk.redis, talk.calls[i].key);
	return NULL;
}

static void call_begin_aside(const char *key)
{
	size_t i = talk.begun++;

	assert(i < CALLS);
	snprintf(talk.calls[i].key, sizeof(talk.calls[i].key), "%s", key);
	pthread_create(&talk.calls[i].thread, NULL, call_run_begun, VALUE(i));
}

/* ---- A worker, and numbers ---- */

/* The first run ends as the test wants, and others well. */
static enum tw_redis_outcome run(void *context, const struct tw_redis_job *job,
				 struct tw_redis_verdict *verdict)
{
	enum tw_redis_outcome outcome = talk.handler(context, job, verdict);

	while (false_server_has(talk.holder, talk.until))
		wait_for(TW_MILLISECOND);
	verdict->retry_in = 1;
	return job->attempt == 1 ? outcome : TW_REDIS_DONE;
}

static void worker_begin(void)
{
	struct tw_redis_worker_options options = {.lease = length_read(option("lease")),
						  .poll = length_read(option("poll"))};

	/* With hints a shard would be polled rarely. */
	for (size_t i = 0; i < SERVERS; i++)
		false_server_set(&servers[i], "SUBSCRIBE", "-ERR no", FALSE_ALWAYS);
	runs_attach(&options);
	talk.handler = options.handler;
	options.handler = run;
	talk.holder = talk.server;
	snprintf(talk.until, sizeof(talk.until), "%s", option("until") ? option("until") : "");
	runs.outcome = (enum tw_redis_outcome)choice_read(option("run"), "done|retry|kill|"
									 "snooze");
	assert_int_equal(tw_redis_worker_start(&talk.worker, &talk.options, &options, &talk.error),
			 TW_OK);
}

static void worker_end(void)
{
	if (!talk.worker)
		return;
	may_fail(tw_redis_worker_stop(talk.worker, TW_SECOND));
	assert_int_equal(tw_redis_worker_destroy(talk.worker), TW_OK);
	talk.worker = NULL;
}

static size_t number_of(const char *name)
{
	struct tw_redis_error last;

	if (!strcmp(name, "asked"))
		return false_server_asked(talk.server) - talk.asked[talk.server - servers];
	if (!strcmp(name, "held"))
		return locked_read(&talk.server->lock, &talk.server->held);
	if (!strcmp(name, "keys"))
		return locked_read(&talk.server->lock, &talk.server->keys);
	if (!strcmp(name, "flagged"))
		return locked_read(&talk.server->lock, &talk.server->flagged);
	if (!strcmp(name, "attempts"))
		return locked_read(&talk.server->lock, &talk.server->attempts);
	if (!strcmp(name, "lost"))
		return runs_lost();
	if (!strcmp(name, "found"))
		return runs_found();
	if (!strcmp(name, "ends"))
		return ends_count();
	if (!strcmp(name, "done"))
		return ends_count_of(NULL, TW_REDIS_END_DONE);
	if (!strcmp(name, "runs"))
		return runs_count();
	if (!strcmp(name, "notices"))
		return runs_notices(&last);
	return SIZE_MAX;
}

static bool reason_has_come(const char *text)
{
	struct tw_redis_error last;

	return runs_errors(&last) && strstr(last.text, text);
}

/* ---- Steps ---- */

/* Returns whether the status, and the error's text, are the expected ones. */
static bool is_answer(enum tw_status status, const char *expected)
{
	const char *name = words_of_status(status);
	size_t size = strlen(name);

	if (strncmp(expected, name, size) != 0 || !strchr(" ", expected[size]))
		return false;
	return !expected[size] || strstr(talk.error.text, expected + size + 1);
}

static const char *end_name(enum tw_redis_end end)
{
	static const char *const names[] = {[TW_REDIS_END_DONE] = "DONE",
					    [TW_REDIS_END_RETRIED] = "RETRIED",
					    [TW_REDIS_END_DEAD] = "DEAD",
					    [TW_REDIS_END_UNCONFIRMED] = "UNCONFIRMED"};

	return (size_t)end < sizeof(names) / sizeof(names[0]) && names[end] ? names[end] : "?";
}

/* Makes a step that says something to the servers. Returns false if it is none. */
static bool server_step(const char *text)
{
	const char *what = words[0];

	if (!strcmp(what, "on") || !strcmp(what, "once") || isdigit((unsigned char)*what))
		rule_set(text);
	else if (!strcmp(what, "at"))
		talk.server = server_named(words[1]);
	else if (!strcmp(what, "cluster"))
		cluster_set();
	else if (!strcmp(what, "give"))
		false_server_give(talk.server, words[1]);
	else if (!strcmp(what, "release"))
		false_server_release(talk.server);
	else if (!strcmp(what, "off"))
		false_server_set(talk.server, words[1], "", 0);
	else if (!strcmp(what, "down"))
		server_down();
	else if (!strcmp(what, "up"))
		server_up();
	else
		return false;
	return true;
}

/* Makes a step about a worker, a thread or time. Returns false if it has failed. */
static bool other_step(const char *expected)
{
	const char *what = words[0];

	if (!strcmp(what, "patience")) {
		set_patience(talk.redis, length_read(words[1]));
	} else if (!strcmp(what, "begin")) {
		call_begin_aside(words[1]);
	} else if (!strcmp(what, "ended")) {
		pthread_join(talk.calls[--talk.begun].thread, NULL);
		return is_answer(talk.calls[talk.begun].status, expected ? expected : "OK");
	} else if (!strcmp(what, "took")) {
		tw_duration most = length_read(words_cut(words[1], "-"));

		return talk.took >= length_read(words[1]) && talk.took <= most;
	} else if (!strcmp(what, "work")) {
		worker_begin();
	} else if (!strcmp(what, "stop")) {
		int64_t before = wall_clock();

		worker_end();
		talk.took = wall_clock() - before;
	} else if (!strcmp(what, "await")) {
		WAIT_UNTIL(number_of(words[1]) >= strtoul(words[2], NULL, 10));
	} else if (!strcmp(what, "sleep")) {
		wait_for(length_read(words[1]));
	} else if (!strcmp(what, "trouble")) {
		struct tw_redis_worker_stats stats;

		assert_int_equal(tw_redis_worker_get_stats(talk.worker, NULL, &stats), TW_OK);
		talk.error = stats.error;
		return is_answer(stats.error.status, expected);
	} else if (!strcmp(what, "reason")) {
		WAIT_UNTIL(reason_has_come(expected));
	} else if (!strcmp(what, "end")) {
		size_t ends = ends_count();

		return ends && !strcmp(end_name(end_of(words[1], ends - 1).end), expected);
	} else {
		fail_msg("no step: %s", what);
	}
	return true;
}

/* Makes the step. Returns false if its answer is not the expected one. */
static bool step_make(char *text, const char *expected)
{
	static char step[TEXT];
	int64_t before = wall_clock();
	enum tw_status status;
	size_t number;

	strcpy(!strncmp(text, "open", 4) ? talk.opened : step, text);
	word_count = words_split(!strncmp(text, "open", 4) ? talk.opened : step, words, WORDS);
	if (server_step(text))
		return true;
	if (call_make(&status)) {
		talk.took = wall_clock() - before;
		return is_answer(status, expected ? expected : "OK");
	}
	if (!expected || (number = number_of(words[0])) == SIZE_MAX)
		return other_step(expected);
	if (!strcmp(words[0], "asked"))
		talk.asked[talk.server - servers] += number;
	snprintf(talk.error.text, sizeof(talk.error.text), "%zu", number);
	return words_have_number(expected, number);
}

/* Copies the text with ports in place of their names. */
static void ports_put(char *to, const char *text)
{
	while (*text) {
		bool is_away = !strncmp(text, "$away", 5);

		if (is_away || (*text == '$' && text[1] >= 'a' && text[1] < 'a' + SERVERS)) {
			to += sprintf(to, "%d", is_away ? away : servers[text[1] - 'a'].port);
			text += is_away ? 5 : 2;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

static void steps_make(const char *text, const char *file, int line)
{
	const char *all = text;

	while (*text) {
		size_t length = strcspn(text, ";");
		char named[TEXT];
		char step[TEXT];
		char *expected;

		text += strspn(text, " \n\t");
		length = strcspn(text, ";");
		snprintf(named, sizeof(named), "%.*s", (int)length, text);
		text += length + (text[length] == ';');
		if (!*named)
			continue;
		ports_put(step, named);
		/* A reply may end with a line's end. */
		for (size_t size = strlen(step); size && step[size - 1] == ' ';)
			step[--size] = '\0';
		expected = words_cut(step, " = ");
		if (!step_make(step, expected)) {
			print_message("%s\n", all);
			fail_msg("%s:%d: %s: %s, %s", file, line, named,
				 words_of_status(talk.error.status), talk.error.text);
		}
	}
}

/* ---- Runs ---- */

static void talk_end(void *argument)
{
	if (talk.down)
		server_up();
	servers_reset();
	for (size_t i = 0; i < SERVERS; i++)
		false_server_release(&servers[i]);
	worker_end();
	runs_reset();
	while (talk.begun)
		pthread_join(talk.calls[--talk.begun].thread, NULL);
	tw_redis_close(talk.redis);
	memset(&talk, 0, sizeof(talk));
	talk.server = servers;
}

static void talk_begin(void)
{
	at_end_not(&talk);
	talk_end(&talk);
	at_end(talk_end, &talk);
}

struct place {
	bool begins;
	const char *file;
	int line;
};

static void text_run(void *context, const char *text)
{
	const struct place *place = context;

	if (place->begins)
		talk_begin();
	steps_make(text, place->file, place->line);
}

void talk_run(bool begins, const char *file, int line, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	assert(vasprintf(&text, format, arguments) >= 0);
	va_end(arguments);
	words_choose(text, text_run, &(struct place){begins, file, line});
	free(text);
}

int talk_open(void **state)
{
	*state = NULL;
	for (size_t i = 0; i < SERVERS; i++)
		false_server_start(&servers[i]);
	away = port_free();
	talk.server = servers;
	servers_reset();
	return 0;
}

int talk_close(void **state)
{
	for (size_t i = 0; i < SERVERS; i++)
		false_server_stop(&servers[i]);
	return 0;
}

struct false_server *talk_server(void)
{
	return servers;
}

struct tw_redis *talk_client(void)
{
	return talk.redis;
}
