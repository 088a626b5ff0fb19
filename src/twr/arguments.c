/* SPDX-License-Identifier: MIT */
/*
 * arguments.c reads the command line by one table. The table says which commands an option is for,
 * how its value is read and where it goes, and has the help. Options may stand anywhere after the
 * program's name. A key may be given as --key or as the last word.
 *
 * A list of processes shows a password in --url for the moment between the start and its blotting
 * out. Only the same user sees TWR_PASSWORD and TWR_URL, which are blotted out too.
 */
#include "arguments.h"

#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome.h"
#include "when.h"

#define BIT(number) (UINT64_C(1) << (number))
/* These are sets of commands that an option is for. */
enum {
	RECURRING = BIT(COMMAND_EVERY),
	ADD = BIT(COMMAND_ADD) | RECURRING,
	TIMED = ADD | BIT(COMMAND_MOVE),
	LISTS = BIT(COMMAND_LIST) | BIT(COMMAND_DEAD_LIST),
	DEAD_ONES = BIT(COMMAND_DEAD_RETRY) | BIT(COMMAND_DEAD_DROP),
	ONE_TASK = ADD | BIT(COMMAND_CANCEL) | BIT(COMMAND_END) | BIT(COMMAND_MOVE) |
		   BIT(COMMAND_GET) | DEAD_ONES,
	WORKER = BIT(COMMAND_WORKER),
	LIMITS = BIT(COMMAND_LIMITS) | BIT(COMMAND_GROUP_LIMITS),
	GROUP_LIMITS = BIT(COMMAND_GROUP_LIMITS),
	GROUPS = GROUP_LIMITS | BIT(COMMAND_GROUP_PAUSE) | BIT(COMMAND_GROUP_RESUME) |
		 BIT(COMMAND_GROUP_DRAIN),
	TOP = BIT(COMMAND_TOP),
	NAMESPACE = BIT(COMMAND_NAMESPACE_DELETE),
	EVERY = BIT(COMMAND_NAMESPACE_DELETE + 1) - 1
};

static const char *const commands[][2] = {
	[COMMAND_ADD] = {"add", "schedule a task"},
	[COMMAND_EVERY] = {"every", "schedule a recurring task"},
	[COMMAND_CANCEL] = {"cancel", "remove a task; if it recurs, its current occurrence only"},
	[COMMAND_END] = {"end", "remove a task with all its later occurrences"},
	[COMMAND_MOVE] = {"move", "set another due time"},
	[COMMAND_GET] = {"get", "show a task"},
	[COMMAND_LIST] = {"list", "show all tasks"},
	[COMMAND_STATS] = {"stats", "show the numbers of tasks"},
	[COMMAND_DEAD_LIST] = {"dead list", "show the dead letters: tasks that failed for good"},
	[COMMAND_DEAD_RETRY] = {"dead retry", "make a dead letter a task again, due now"},
	[COMMAND_DEAD_DROP] = {"dead drop", "delete a dead letter"},
	[COMMAND_WORKER] = {"worker", "run due tasks until SIGTERM"},
	[COMMAND_TOP] = {"top", "show the numbers of tasks every second, until SIGINT"},
	[COMMAND_PING] = {"ping", "show how long Redis takes to reply"},
	[COMMAND_PAUSE] = {"pause", "stop workers from taking tasks of the namespace"},
	[COMMAND_RESUME] = {"resume", "end the pause"},
	[COMMAND_LIMITS] = {"limits", "show or set the limits of the namespace"},
	[COMMAND_GROUP_LIST] = {"group list", "show the groups with the most waiting tasks"},
	[COMMAND_GROUP_LIMITS] = {"group limits", "show or set limits of groups"},
	[COMMAND_GROUP_PAUSE] = {"group pause", "stop workers from taking tasks of a group"},
	[COMMAND_GROUP_RESUME] = {"group resume", "end the group's pause"},
	[COMMAND_GROUP_DRAIN] = {"group drain", "remove all waiting tasks of a group"},
	[COMMAND_NAMESPACE_DELETE] = {"namespace delete", "delete a namespace with all its keys"},
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

struct program_option;
/* Sets the field at the option's place. Returns false if the option may not have the value. */
typedef bool take_option(void *place, const struct program_option *option, char *value);

struct program_option {
	const char *name;
	const char *value; /* its name in the help; NULL if the option has none */
	uint64_t commands;
	const char *help;
	take_option *take;
	size_t place;  /* in struct arguments; 0 is the whole of it */
	int64_t least; /* the least number or duration; for a mode its value */
	int64_t most;
};

static bool take_flag(void *place, const struct program_option *option, char *value)
{
	(void)option;
	(void)value;
	*(bool *)place = true;
	return true;
}

static bool take_text(void *place, const struct program_option *option, char *value)
{
	(void)option;
	*(const char **)place = value;
	return true;
}

static bool number_read(const char *value, int64_t least, int64_t most, unsigned *number)
{
	int64_t found;
	char *end;

	if (*value < '0' || *value > '9')
		return false;
	found = strtoll(value, &end, 10);
	*number = (unsigned)found;
	return !*end && found >= least && found <= most;
}

static bool take_number(void *place, const struct program_option *option, char *value)
{
	return number_read(value, option->least, option->most, place);
}

static bool take_duration(void *place, const struct program_option *option, char *value)
{
	tw_duration *duration = place;

	return duration_parse(value, duration) && *duration >= option->least &&
	       *duration <= option->most;
}

static bool take_patience(void *place, const struct program_option *option, char *value)
{
	tw_duration *patience = place;
	bool fine = take_duration(patience, option, value);

	/* For the library 0 means its default. */
	*patience -= !*patience;
	return fine;
}

static bool take_key(void *place, const struct program_option *option, char *value)
{
	struct tw_redis_task *task = place;

	(void)option;
	task->key = value;
	task->key_size = strlen(value);
	return *value;
}

/* Reads --at. The last of --at and --in counts. */
static bool take_at(void *place, const struct program_option *option, char *value)
{
	int64_t *at_ms = place;
	bool fine = time_parse(value, at_ms);

	(void)option;
	/* For the library 0 means no time. The beginning of 1970 is past anyway. */
	*at_ms += !*at_ms;
	return fine;
}

static bool take_in(void *place, const struct program_option *option, char *value)
{
	struct tw_redis_task *task = place;

	task->at_ms = 0;
	return take_duration(&task->delay, option, value);
}

static bool take_mode(void *place, const struct program_option *option, char *value)
{
	(void)value;
	*(enum tw_redis_mode *)place = (enum tw_redis_mode)option->least;
	return true;
}

static bool take_method(void *place, const struct program_option *option, char *value)
{
	enum tw_redis_method *method = place;

	(void)option;
	for (*method = TW_REDIS_POST; tw_redis_method_name(*method); ++*method)
		if (!strcmp(value, tw_redis_method_name(*method)))
			return true;
	return false;
}

static bool take_missed(void *place, const struct program_option *option, char *value)
{
	(void)option;
	return missed_read(value, place);
}

static bool take_durability(void *place, const struct program_option *option, char *value)
{
	static const char *const names[] = {"server", "disk", "replica", "both"};
	enum tw_redis_durability *durability = place;

	(void)option;
	for (*durability = TW_REDIS_DURABLE_SERVER; *durability <= TW_REDIS_DURABLE_BOTH;
	     ++*durability)
		if (!strcmp(value, names[*durability]))
			return true;
	return false;
}

static bool take_header(void *place, const struct program_option *option, char *value)
{
	struct arguments *arguments = place;

	(void)option;
	/* One header above the limit is kept, so that the library can refuse it. */
	if (arguments->task.header_count <= TW_REDIS_HEADER_COUNT_MAX)
		arguments->headers[arguments->task.header_count++] = value;
	return true;
}

static bool take_listen(void *place, const struct program_option *option, char *value)
{
	take_text(place, option, value);
	return listen_address_is_valid(value);
}

static bool take_listen_host(void *place, const struct program_option *option, char *value)
{
	struct arguments *arguments = place;
	size_t *count = &arguments->listen.host_count;

	(void)option;
	if (*count == LISTEN_HOSTS_MAX)
		return false;
	arguments->listen_hosts[(*count)++] = value;
	return *value;
}

static bool take_worker_url(void *place, const struct program_option *option, char *value)
{
	take_text(place, option, value);
	return !strncasecmp(value, "http://", 7) || !strncasecmp(value, "https://", 8);
}

/* Adds to a list. One pattern above the limit is kept, so that the library can refuse it. */
static bool take_target(const char **list, size_t *count, const char *value)
{
	if (*count <= TW_REDIS_TARGETS_MAX)
		list[(*count)++] = value;
	return *value;
}

static bool take_allow(void *place, const struct program_option *option, char *value)
{
	struct arguments *arguments = place;

	(void)option;
	return take_target(arguments->allow, &arguments->worker.allow_count, value);
}

static bool take_deny(void *place, const struct program_option *option, char *value)
{
	struct arguments *arguments = place;

	(void)option;
	return take_target(arguments->deny, &arguments->worker.deny_count, value);
}

/* Overwrites the password of "redis://user:password@host". Returns false if there is none. */
static bool password_blot_out(char *url)
{
	char *login = strstr(url, "://");
	char *at;
	char *colon;

	if (!login)
		return false;
	login += 3;
	at = memrchr(login, '@', strcspn(login, "/?#"));
	colon = at ? memchr(login, ':', (size_t)(at - login)) : NULL;
	if (colon)
		memset(colon + 1, '*', (size_t)(at - colon - 1));
	return colon;
}

/* Reads --url. Its password precedes that of the environment, as every option does. */
static bool take_url(void *place, const struct program_option *option, char *value)
{
	struct arguments *arguments = place;

	(void)option;
	free(arguments->url);
	arguments->url = strdup(value);
	if (password_blot_out(value)) {
		free(arguments->password);
		arguments->password = NULL;
	}
	return arguments->url;
}

static bool take_version(void *place, const struct program_option *option, char *value)
{
	printf("twr %s\n", TW_VERSION_STRING);
	return take_flag(place, option, value);
}

static take_option take_help;

/* These are second halves of rows. */
#define TAKE(take, member, least, most) take, offsetof(struct arguments, member), least, most
#define FLAG(member) TAKE(take_flag, member, 0, 0)
#define TEXT(member) TAKE(take_text, member, 0, 0)
#define NUMBER(member, least, most) TAKE(take_number, member, least, most)
#define DURATION(member, least, most) TAKE(take_duration, member, least, most)

static const struct program_option table[] = {
	{"url", "URL", EVERY, "redis[s]://[[user]:password@]host[:port][/database][?...]", take_url,
	 0, 0, 0},
	{"namespace", "NAME", EVERY, "the namespace (default); worker: several by weight, A=3,B",
	 TEXT(redis.name_space)},
	{"shards", "N", EVERY, "number of shards of a new namespace, up to 1024 (1)",
	 NUMBER(redis.shards, 1, TW_REDIS_SHARDS_MAX)},
	{"patience", "TIME", EVERY, "how long to retry while Redis is unavailable (5s)",
	 TAKE(take_patience, redis.patience, 0, TW_FOREVER)},
	{"allow-eviction", NULL, EVERY, "accept a Redis that may evict tasks",
	 FLAG(redis.allow_eviction)},
	{"durability", "WHAT", EVERY,
	 "a change is done when it is on the server's disk (disk), a replica, or both",
	 TAKE(take_durability, redis.durability, 0, 0)},
	{"json", NULL, EVERY, "write JSON, one object per line", FLAG(json)},
	{"help", NULL, EVERY, "show this help", TAKE(take_help, answered, 0, 0)},
	{"version", NULL, EVERY, "show the version", TAKE(take_version, answered, 0, 0)},
	{"key", "KEY", ONE_TASK, "the task's key", TAKE(take_key, task, 0, 0)},
	{"at", "WHEN", TIMED, "due time: 2031-05-01T12:00:00Z, or seconds since 1970",
	 TAKE(take_at, task.at_ms, 0, 0)},
	{"in", "TIME", TIMED, "delay from now: 90, 250ms, 1h30m, 7d (add: 0)",
	 TAKE(take_in, task, 0, TW_REDIS_DELAY_MAX)},
	{"new", NULL, ADD, "add only if no task has the key",
	 TAKE(take_mode, task.mode, TW_REDIS_NEW, 0)},
	{"replace", NULL, ADD, "add only if a task has the key",
	 TAKE(take_mode, task.mode, TW_REDIS_REPLACE, 0)},
	{"callback", "URL", ADD, "URL to call, http:// or https://", TEXT(task.url)},
	{"method", "NAME", ADD, "POST, GET, PUT, PATCH, DELETE, HEAD (POST)",
	 TAKE(take_method, task.method, 0, 0)},
	{"header", "'NAME: VALUE'", ADD, "header of the callback; can be repeated", take_header, 0,
	 0, 0},
	{"handler", NULL, ADD, "confirm: no callback, another program's handler runs it",
	 FLAG(handler)},
	{"data", "TEXT|@FILE|@-", ADD, "body of the request: JSON, unless a Content-Type is set",
	 TEXT(data)},
	{"file", "FILE|-", ADD, "add many tasks: a JSON object per line, as list --json writes",
	 TEXT(file)},
	{"group", "NAME", ADD, "group that takes turns with others", TEXT(task.group)},
	{"max-attempts", "N", ADD, "number of runs before it is a dead letter (8)",
	 NUMBER(task.max_attempts, 1, TW_REDIS_ATTEMPTS_MAX)},
	{"not-later-than", "TIME", ADD, "skip it if it would begin later than this, 1s or more",
	 DURATION(task.grace, TW_SECOND, TW_REDIS_DELAY_MAX)},
	{"latest", "TIME", BIT(COMMAND_ADD),
	 "latest due time after the first add, however often it is added again",
	 DURATION(task.latest, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"every", "TIME", RECURRING, "period; first due after one period, or --at, --in, --from",
	 DURATION(task.every, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"cron", "'M H D MON WDAY'", RECURRING,
	 "cron expression instead: \"0 3 * * 1-5\", \"@daily\"", TEXT(task.cron)},
	{"zone", "NAME", RECURRING, "time zone of --cron, such as Europe/Berlin (UTC)",
	 TEXT(task.zone)},
	{"from", "WHEN", RECURRING, "earliest due time, as --at", TAKE(take_at, task.at_ms, 0, 0)},
	{"missed", "WHAT", RECURRING,
	 "for missed due times: one run (one), no run (skip), all (all)",
	 TAKE(take_missed, task.missed, 0, 0)},
	{"running", "N", LIMITS, "most tasks on lease; 0 is no limit",
	 NUMBER(limits.running, 0, LIMIT_NOT_GIVEN - 1)},
	{"per-second", "N", LIMITS, "most tasks taken per second; 0 is no limit",
	 NUMBER(limits.per_second, 0, LIMIT_NOT_GIVEN - 1)},
	{"burst", "N", GROUP_LIMITS, "most tasks taken at once (a tenth of a second's)",
	 NUMBER(limits.burst, 0, LIMIT_NOT_GIVEN - 1)},
	{"weight", "N", GROUP_LIMITS, "tasks in a turn (1)",
	 NUMBER(limits.weight, 0, TW_REDIS_WEIGHT_MAX)},
	{"limit", "N", LISTS, "show at most N", NUMBER(limit, 1, UINT32_MAX)},
	{"all", NULL, DEAD_ONES, "apply to every dead letter", FLAG(all)},
	{"force", NULL, NAMESPACE, "delete tasks and dead letters, too, whatever workers are there",
	 FLAG(force)},
	{"lease", "TIME", WORKER, "lease of a task, 100ms to 1d (30s)",
	 DURATION(worker.lease, 100 * TW_MILLISECOND, 24 * TW_HOUR)},
	{"concurrency", "N", WORKER, "concurrent callbacks, up to 1024 (64)",
	 NUMBER(worker.callbacks, 1, 1024)},
	{"per-host", "N", WORKER, "concurrent callbacks to one host, up to 1024 (an eighth)",
	 NUMBER(worker.callbacks_per_host, 1, 1024)},
	{"batch", "N", WORKER, "most tasks of one claim, up to 1000 (100)",
	 NUMBER(worker.batch, 1, TW_REDIS_BATCH_MAX)},
	{"timeout", "TIME", WORKER, "timeout of a callback, 1ms to 1d (30s)",
	 DURATION(worker.http_timeout, TW_MILLISECOND, 24 * TW_HOUR)},
	{"connection-age", "TIME", WORKER,
	 "highest age of a connection for callbacks, 1s to 1d (1m)",
	 DURATION(worker.connection_age, TW_SECOND, 24 * TW_HOUR)},
	{"retry-first", "TIME", WORKER, "wait before the second attempt, doubles each time (1s)",
	 DURATION(worker.retry_first, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"retry-max", "TIME", WORKER, "longest such wait (5m)",
	 DURATION(worker.retry_max, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"allow", "PATTERN", WORKER,
	 "allowed target: *.shop.example, 10.0.0.0/8, *; can be repeated", take_allow, 0, 0, 0},
	{"deny", "PATTERN", WORKER, "denied target; the most specific decides; can be repeated",
	 take_deny, 0, 0, 0},
	{"dead-max-age", "TIME", WORKER, "delete dead letters that are older (no limit)",
	 DURATION(worker.dead_max_age, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"dead-max-count", "N", WORKER,
	 "delete the oldest dead letters above this number (no limit)",
	 NUMBER(worker.dead_max_count, 1, UINT32_MAX)},
	{"grace", "TIME", WORKER, "time for running tasks to end after SIGTERM (25s)",
	 DURATION(grace, 0, TW_FOREVER)},
	{"count-every", "TIME", WORKER, "how often to log the counts (1m)",
	 DURATION(count_every, TW_MILLISECOND, TW_FOREVER)},
	{"verbose", NULL, WORKER, "print a line for each run", FLAG(verbose)},
	{"listen", "HOST:PORT", WORKER, "serve pages and /metrics there, without a password",
	 TAKE(take_listen, listen.address, 0, 0)},
	{"listen-host", "NAME", WORKER, "another host name for these pages; can be repeated",
	 take_listen_host, 0, 0, 0},
	{"health-limit", "TIME", WORKER, "/healthz fails if the loop is stuck for this time (1m)",
	 DURATION(listen.health_limit, TW_MILLISECOND, TW_FOREVER)},
	{"worker", "URL", TOP, "ask the worker that listens there, instead of Redis",
	 TAKE(take_worker_url, worker_url, 0, 0)},
	{"interval", "TIME", TOP, "time between updates, 100ms to 1h (1s)",
	 DURATION(interval, 100 * TW_MILLISECOND, TW_HOUR)},
};
enum { TABLE_SIZE = sizeof(table) / sizeof(table[0]), FIRST_OPTION = 256 /* no character */ };

static bool take_help(void *place, const struct program_option *option, char *value)
{
	static const struct {
		uint64_t commands;
		const char *title;
	} groups[] = {{EVERY, "Every command"},
		      {ONE_TASK, "One task"},
		      {TIMED, "add, every, move"},
		      {ADD, "add, every"},
		      {BIT(COMMAND_ADD), "add"},
		      {RECURRING, "every"},
		      {LIMITS, "limits, group limits"},
		      {GROUP_LIMITS, "group limits"},
		      {LISTS, "list, dead list"},
		      {DEAD_ONES, "dead retry, dead drop"},
		      {NAMESPACE, "namespace delete"},
		      {WORKER, "worker"},
		      {TOP, "top"}};

	puts("usage: twr COMMAND [OPTION...] [KEY]\n\n"
	     "Schedules tasks in Redis, and runs them when they are due.\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		printf("  %-16s  %s\n", commands[i][0], commands[i][1]);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		printf("\n%s:\n", groups[i].title);
		for (size_t k = 0; k < TABLE_SIZE; k++)
			if (table[k].commands == groups[i].commands)
				printf("  --%s %-*s %s\n", table[k].name,
				       23 - (int)strlen(table[k].name),
				       table[k].value ? table[k].value : "", table[k].help);
	}
	puts("\nEnvironment: TWR_URL, TWR_PASSWORD, TWR_NAMESPACE; options override them.\n"
	     "Exit status: 0 success; 1 no such task, key in use, or task on lease; 2 usage; "
	     "65 bad data;\n"
	     "69 Redis can't be reached or used; 71 system error; 75 outcome unknown, repeat it;\n"
	     "77 login or permission refused.");
	return take_flag(place, option, value);
}

/* Reports wrong usage on stderr. Returns EXIT_USAGE. */
__attribute__((format(printf, 1, 2))) static int usage_error(const char *format, ...)
{
	va_list arguments;

	fputs("twr: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs(" (twr --help)\n", stderr);
	return EXIT_USAGE;
}

static bool environment_read(struct arguments *arguments)
{
	char *url = getenv("TWR_URL");
	char *password = getenv("TWR_PASSWORD");
	bool fine = !url || !*url || take_url(arguments, NULL, url);

	arguments->redis.name_space = getenv("TWR_NAMESPACE");
	if (password && *password) {
		arguments->password = strdup(password);
		memset(password, '*', strlen(password));
		fine = fine && arguments->password;
	}
	return fine;
}

/* Removes the passwords from the process list, even if the command line is wrong. */
static void blot_out(char **texts)
{
	for (; *texts; texts++)
		if (strstr(*texts, "redis") || strstr(*texts, "--url"))
			password_blot_out(*texts);
}

/* Reads "a=3,b", the namespaces of a worker with their weights. Returns false if it is no such
 * list. */
static bool sources_read(struct arguments *arguments)
{
	struct tw_redis_worker_options *worker = &arguments->worker;
	char *next = arguments->names;
	char *name;

	worker->sources = arguments->sources;
	/* One namespace above the limit is kept, so that the library can refuse it. */
	while ((name = strsep(&next, ",")) && worker->source_count <= TW_REDIS_SOURCES_MAX) {
		struct tw_redis_source *source = &arguments->sources[worker->source_count++];
		char *weight = strchr(name, '=');

		if (weight)
			*weight++ = '\0';
		source->name_space = name;
		if (weight && !number_read(weight, 1, TW_REDIS_WEIGHT_MAX, &source->weight))
			return false;
	}
	return true;
}

/* Reads --namespace. One namespace without a weight goes to Redis's options, as with any
 * command. */
static int namespaces_read(struct arguments *arguments)
{
	const char *given = arguments->redis.name_space;

	if (!given || !strpbrk(given, ",="))
		return EXIT_DONE;
	arguments->names = strdup(given);
	if (!arguments->names)
		return outcome(TW_NO_MEMORY, &(struct tw_redis_error){0});
	return sources_read(arguments)
		       ? EXIT_DONE
		       : usage_error("a weight must be a number from 1 to %d", TW_REDIS_WEIGHT_MAX);
}

/* Finds the command of the words. Returns the number of its words. */
static size_t command_find(struct arguments *arguments, char **words)
{
	char two[32];

	if (!words[0])
		return 0;
	snprintf(two, sizeof(two), "%s %s", words[0], words[1] ? words[1] : "");
	for (unsigned i = 0; i < COMMAND_COUNT; i++) {
		bool has_two = strchr(commands[i][0], ' ');

		if (!strcmp(has_two ? two : words[0], commands[i][0])) {
			arguments->command = (enum command_name)i;
			return has_two ? 2 : 1;
		}
	}
	return 0;
}

/* Returns whether an option of add may stand beside --file, because it is about all tasks. */
static bool is_for_many(const struct program_option *option)
{
	return option->commands == EVERY || option->take == take_mode ||
	       option->place == offsetof(struct arguments, file);
}

/* Checks that the command line says exactly once which tasks are meant. */
static int choice_check(const struct arguments *arguments, uint64_t used)
{
	if (!arguments->task.key && !arguments->all && !arguments->file)
		return usage_error("no task is given: --key is missing");
	if (arguments->all && arguments->task.key)
		return usage_error("--all and a key exclude each other");
	if (arguments->file && arguments->task.key)
		return usage_error("--file and a key exclude each other");
	for (size_t i = 0; i < TABLE_SIZE && arguments->file; i++)
		if (used & BIT(i) && !is_for_many(&table[i]))
			return usage_error("--%s and --file exclude each other", table[i].name);
	return EXIT_DONE;
}

/* Reads the words. `used` has the bits of the table's options that were given. */
static int words_read(struct arguments *arguments, char **words, uint64_t used)
{
	size_t length = command_find(arguments, words);
	uint64_t command = BIT(arguments->command);
	bool timed = false;

	if (!length)
		return usage_error(words[0] ? "unknown command" : "no command is given");
	words += length;
	for (size_t i = 0; i < TABLE_SIZE; i++) {
		if (!(used & BIT(i)))
			continue;
		if (!(table[i].commands & command))
			return usage_error("--%s does not apply to this command", table[i].name);
		timed = timed || table[i].commands == TIMED || table[i].take == take_at;
		arguments->limits_given |= (table[i].commands & LIMITS) == table[i].commands;
	}
	if (*words && command & ONE_TASK && !arguments->task.key &&
	    take_key(&arguments->task, NULL, *words))
		words++;
	if (command & NAMESPACE && *words)
		arguments->redis.name_space = *words++;
	else if (command & NAMESPACE)
		return usage_error("no namespace is given");
	if (command & GROUPS && *words)
		arguments->task.group = *words++;
	else if (command & GROUPS && (command != GROUP_LIMITS || arguments->limits_given))
		return usage_error("no group is given");
	if (*words)
		return usage_error("there is one argument too many");
	if (command & RECURRING && !arguments->task.every == !arguments->task.cron)
		return usage_error("either --every or --cron is required");
	if (arguments->task.zone && !arguments->task.cron)
		return usage_error("--zone requires --cron");
	if (command & RECURRING && !timed)
		arguments->task.delay = arguments->task.every;
	if (command & BIT(COMMAND_MOVE) && !timed)
		return usage_error("--at or --in is required");
	if (arguments->listen.host_count && !arguments->listen.address)
		return usage_error("--listen-host requires --listen");
	if (command & WORKER)
		return namespaces_read(arguments);
	return command & ONE_TASK ? choice_check(arguments, used) : EXIT_DONE;
}

/* Reports an error of getopt_long. It does not repeat the argument, which may hold a password. */
static int option_refuse(int found)
{
	if (optopt < FIRST_OPTION)
		return usage_error("unknown option");
	return usage_error("--%s %s", table[optopt - FIRST_OPTION].name,
			   found == ':' ? "requires a value" : "takes no value");
}

static int options_read(struct arguments *arguments, int count, char **texts, uint64_t *used)
{
	struct option options[TABLE_SIZE + 1] = {{0}};
	int found;

	for (int i = 0; i < TABLE_SIZE; i++)
		options[i] = (struct option){table[i].name,
					     table[i].value ? required_argument : no_argument, NULL,
					     FIRST_OPTION + i};
	opterr = 0;
	while (!arguments->answered &&
	       (found = getopt_long(count, texts, ":", options, NULL)) != -1) {
		const struct program_option *option;

		if (found < FIRST_OPTION)
			return option_refuse(found);
		option = &table[found - FIRST_OPTION];
		if (!option->take((char *)arguments + option->place, option, optarg))
			return usage_error("--%s requires a valid %s: %s", option->name,
					   option->value, option->help);
		*used |= BIT(option - table);
	}
	return EXIT_DONE;
}

int arguments_read(struct arguments *arguments, int count, char **texts)
{
	uint64_t used = 0;
	int exit_code = EXIT_SYSTEM;

	*arguments = (struct arguments){.grace = 25 * TW_SECOND,
					.count_every = TW_MINUTE,
					.listen.health_limit = TW_MINUTE,
					.limits = {LIMIT_NOT_GIVEN, LIMIT_NOT_GIVEN,
						   LIMIT_NOT_GIVEN, LIMIT_NOT_GIVEN, false},
					.interval = TW_SECOND};
	arguments->task.headers = arguments->headers;
	arguments->listen.hosts = arguments->listen_hosts;
	arguments->worker.allow = arguments->allow;
	arguments->worker.deny = arguments->deny;
	if (environment_read(arguments))
		exit_code = options_read(arguments, count, texts, &used);
	else
		fputs("twr: out of memory\n", stderr);
	blot_out(texts);
	if (exit_code == EXIT_DONE && !arguments->answered)
		exit_code = words_read(arguments, texts + optind, used);
	arguments->redis.url = arguments->url;
	arguments->redis.password = arguments->password;
	return exit_code;
}

void arguments_free(struct arguments *arguments)
{
	if (arguments->url)
		explicit_bzero(arguments->url, strlen(arguments->url));
	if (arguments->password)
		explicit_bzero(arguments->password, strlen(arguments->password));
	free(arguments->url);
	free(arguments->password);
	free(arguments->names);
}
