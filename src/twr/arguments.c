/* SPDX-License-Identifier: MIT */
/*
 * arguments.c reads the command line by one table. The table says which commands an option is for,
 * how its value is read and where it goes, and has the help. Options may stand anywhere after the
 * program's name.
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
#include "task_line.h"
#include "when.h"

#define BIT(number) (UINT64_C(1) << (number))
/* These are sets of commands that an option is for. */
enum {
	ADD = BIT(COMMAND_ADD),
	TIMED = ADD | BIT(COMMAND_MOVE),
	LETTERS = BIT(COMMAND_RETRY) | BIT(COMMAND_DROP),
	ONE_TASK = TIMED | BIT(COMMAND_CANCEL) | BIT(COMMAND_GET) | LETTERS,
	MODES = ADD | BIT(COMMAND_LOAD),
	WORKER = BIT(COMMAND_WORKER),
	LIMITS = BIT(COMMAND_LIMITS),
	DROP = BIT(COMMAND_DROP),
	EVERY = BIT(COMMAND_COUNT) - 1
};

#define COMMAND_ROW(enumerator, name, word, help) {#name, word, help},
static const struct {
	const char *name;
	const char *word;
	const char *help;
} commands[] = {COMMANDS(COMMAND_ROW)};

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
	const char *const *names; /* what its value may be; NULL if that is no name */
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

static bool take_number(void *place, const struct program_option *option, char *value)
{
	int64_t found;
	char *end;

	if (*value < '0' || *value > '9')
		return false;
	found = strtoll(value, &end, 10);
	*(unsigned *)place = (unsigned)found;
	return !*end && found >= option->least && found <= option->most;
}

static bool take_duration(void *place, const struct program_option *option, char *value)
{
	tw_duration *duration = place;

	return duration_parse(value, duration) && *duration >= option->least &&
	       *duration <= option->most;
}

static bool take_rate(void *place, const struct program_option *option, char *value)
{
	(void)option;
	return rate_parse(value, place);
}

static bool take_patience(void *place, const struct program_option *option, char *value)
{
	tw_duration *patience = place;
	bool fine = take_duration(patience, option, value);

	/* For the library 0 means its default. */
	*patience -= !*patience;
	return fine;
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

static bool take_name(void *place, const struct program_option *option, char *value)
{
	return name_read(value, option->names, place);
}

/* Adds to a list, which keeps up to `most` values. */
static bool take_list(void *place, const struct program_option *option, char *value)
{
	struct text_list *list = place;

	if (list->count < (size_t)option->most)
		list->texts[list->count++] = value;
	return *value;
}

static bool take_listen(void *place, const struct program_option *option, char *value)
{
	take_text(place, option, value);
	return listen_address_is_valid(value);
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

static const char *const durability_names[] = {"server", "disk", "replica", "both", NULL};

/* These are second halves of rows. */
#define TAKE(take, member, least, most) take, offsetof(struct arguments, member), least, most, NULL
#define NAME(member, names) take_name, offsetof(struct arguments, member), 0, 0, names
#define FLAG(member) TAKE(take_flag, member, 0, 0)
#define TEXT(member) TAKE(take_text, member, 0, 0)
#define NUMBER(member, least, most) TAKE(take_number, member, least, most)
#define LIST(member, most) TAKE(take_list, member, 0, (most) + 1)
#define DURATION(member, least, most) TAKE(take_duration, member, least, most)

static const struct program_option table[] = {
	{"url", "URL", EVERY, "redis[s]://[[user]:password@]host[:port][/database][?...]", take_url,
	 0, 0, 0, NULL},
	{"namespace", "NAME", EVERY, "the namespace (default); worker: several, as A,B",
	 TEXT(redis.name_space)},
	{"shards", "N", EVERY, "number of shards of a new namespace, up to 1024 (1)",
	 NUMBER(redis.shards, 1, TW_REDIS_SHARDS_MAX)},
	{"patience", "TIME", EVERY, "how long to retry while Redis is unavailable (5s)",
	 TAKE(take_patience, redis.patience, 0, TW_FOREVER)},
	{"durability", "WHAT", EVERY, "confirm changes by server, disk, replica, both (server)",
	 NAME(redis.durability, durability_names)},
	{"allow-eviction", NULL, EVERY, "accept a Redis that may evict tasks",
	 FLAG(redis.allow_eviction)},
	{"json", NULL, EVERY, "write JSON, one object per line", FLAG(json)},
	{"help", NULL, EVERY, "show this help", TAKE(take_help, answered, 0, 0)},
	{"version", NULL, EVERY, "show the version", TAKE(take_version, answered, 0, 0)},
	{"at", "WHEN", TIMED, "due time: 2031-05-01T12:00:00Z, or seconds since 1970",
	 TAKE(take_at, task.at_ms, 0, 0)},
	{"in", "TIME", TIMED, "delay from now: 90, 250ms, 1h30m, 7d (add: 0)",
	 TAKE(take_in, task, 0, TW_REDIS_DELAY_MAX)},
	{"new", NULL, MODES, "add only if no task has the key",
	 TAKE(take_mode, task.mode, TW_REDIS_NEW, 0)},
	{"replace", NULL, MODES, "add only if a task has the key",
	 TAKE(take_mode, task.mode, TW_REDIS_REPLACE, 0)},
	{"callback", "URL", ADD, "URL to call, http:// or https://", TEXT(task.url)},
	{"method", "NAME", ADD, "POST, GET, PUT, PATCH, DELETE, HEAD (POST)",
	 NAME(task.method, method_names)},
	{"header", "'NAME: VALUE'", ADD, "header of the callback; can be repeated",
	 LIST(headers, TW_REDIS_HEADER_COUNT_MAX)},
	{"handler", NULL, ADD, "confirm: no callback, another program's handler runs it",
	 FLAG(handler)},
	{"data", "TEXT|@FILE|@-", ADD, "body of the request, JSON unless a Content-Type is set",
	 TEXT(data)},
	{"max-attempts", "N", ADD, "number of runs before it is a dead letter (25)",
	 NUMBER(task.max_attempts, 1, TW_REDIS_ATTEMPTS_MAX)},
	{"not-later-than", "TIME", ADD, "skip it if it would begin later than this, 1s or more",
	 DURATION(task.grace, TW_SECOND, TW_REDIS_DELAY_MAX)},
	{"latest", "TIME", ADD,
	 "latest due time after the first add, however often it is added again",
	 DURATION(task.latest, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"cron", "'M H D MON WDAY'", ADD, "recur by a cron expression: \"0 3 * * 1-5\", \"@daily\"",
	 TEXT(task.cron)},
	{"zone", "NAME", ADD, "time zone of --cron, such as Europe/Berlin (UTC)", TEXT(task.zone)},
	{"missed", "WHAT", ADD, "for missed due times: one run (one), no run (skip), all (all)",
	 NAME(task.missed, missed_names)},
	{"every", "TIME", ADD, "period; first due after one period, or --at, --in",
	 DURATION(task.every, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"group", "NAME", ADD | DROP, "the task's group; drop: remove its waiting tasks",
	 TEXT(task.group)},
	{"dead", NULL, BIT(COMMAND_LIST), "show the dead letters", FLAG(dead)},
	{"all", NULL, LETTERS | BIT(COMMAND_CANCEL),
	 "apply to every dead letter; cancel: to all occurrences", FLAG(all)},
	{"everything", NULL, DROP, "delete the namespace that --namespace names, with all its keys",
	 FLAG(everything)},
	{"force", NULL, DROP, "even if it has tasks, dead letters or workers", FLAG(force)},
	{"pause", NULL, LIMITS, "stop workers from taking tasks", FLAG(limits.paused)},
	{"resume", NULL, LIMITS, "end the pause", FLAG(resume)},
	{"running", "N", LIMITS, "most tasks on lease; 0 means no limit, here and below",
	 NUMBER(limits.running, 0, LIMIT_NOT_GIVEN - 1)},
	{"rate", "N/TIME", LIMITS, "most tasks taken in a time: 5/1s, 15/1m, 300/1h",
	 TAKE(take_rate, limits, 0, 0)},
	{"weight", "N", LIMITS, "tasks in a turn of the group (1)",
	 NUMBER(limits.weight, 0, TW_REDIS_WEIGHT_MAX)},
	{"lease", "TIME", WORKER, "lease of a task, 100ms to 1d (30s)",
	 DURATION(worker.lease, 100 * TW_MILLISECOND, 24 * TW_HOUR)},
	{"concurrency", "N", WORKER, "concurrent callbacks, up to 1024 (64)",
	 NUMBER(worker.callbacks, 1, 1024)},
	{"per-host", "N", WORKER, "concurrent callbacks to one host, up to 1024 (7/8 of all)",
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
	{"retry-max", "TIME", WORKER, "longest such wait (1h)",
	 DURATION(worker.retry_max, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"ca-file", "FILE", WORKER, "certificates that callbacks trust (the system's)",
	 TEXT(worker.ca_file)},
	{"allow", "PATTERN", WORKER,
	 "allowed target: *.shop.example, 10.0.0.0/8, *; can be repeated",
	 LIST(allow, TW_REDIS_TARGETS_MAX)},
	{"deny", "PATTERN", WORKER, "denied target; the most specific decides; can be repeated",
	 LIST(deny, TW_REDIS_TARGETS_MAX)},
	{"dead-max-age", "TIME", WORKER, "delete dead letters that are older (no limit)",
	 DURATION(worker.dead_max_age, TW_MILLISECOND, TW_REDIS_DELAY_MAX)},
	{"dead-max-count", "N", WORKER,
	 "delete the oldest dead letters above this number (no limit)",
	 NUMBER(worker.dead_max_count, 1, UINT32_MAX)},
	{"grace", "TIME", WORKER, "time for running tasks to end after SIGTERM (25s)",
	 DURATION(grace, 0, TW_FOREVER)},
	{"verbose", NULL, WORKER, "print a line for each run", FLAG(verbose)},
	{"listen", "HOST:PORT", WORKER, "serve pages and /metrics there, without a password",
	 TAKE(take_listen, listen.address, 0, 0)},
	{"listen-host", "NAME", WORKER, "another host name for these pages; can be repeated",
	 LIST(listen_hosts, TW_REDIS_TARGETS_MAX)},
	{"health-limit", "TIME", WORKER, "/healthz fails if the loop is stuck for this time (1m)",
	 DURATION(listen.health_limit, TW_MILLISECOND, TW_FOREVER)},
};
enum { TABLE_SIZE = sizeof(table) / sizeof(table[0]), FIRST_OPTION = 256 /* no character */ };

/* Writes the names of the commands in the set. */
static void help_title(uint64_t set)
{
	const char *separator = "\n";

	if (set == EVERY) {
		puts("\nEvery command:");
		return;
	}
	for (unsigned i = 0; i < COMMAND_COUNT; i++)
		if (set & BIT(i)) {
			printf("%s%s", separator, commands[i].name);
			separator = ", ";
		}
	puts(":");
}

/* Shows the options of each set of commands together. */
static bool take_help(void *place, const struct program_option *option, char *value)
{
	uint64_t shown = 0;

	puts("usage: twr COMMAND [OPTION...] [KEY|GROUP|FILE]\n\n"
	     "Schedules tasks in Redis, and runs them when they are due.\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		printf("  %-7s %-6s  %s\n", commands[i].name, commands[i].word, commands[i].help);
	for (size_t i = 0; i < TABLE_SIZE; i++) {
		if (!(shown & BIT(i)))
			help_title(table[i].commands);
		for (size_t k = i; k < TABLE_SIZE; k++) {
			if (table[k].commands != table[i].commands || shown & BIT(k))
				continue;
			shown |= BIT(k);
			printf("  --%s %-*s %s\n", table[k].name, 23 - (int)strlen(table[k].name),
			       table[k].value ? table[k].value : "", table[k].help);
		}
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

/* Reads --namespace of a worker, "a,b". One namespace above the limit is kept, so that the library
 * can refuse it. */
static int namespaces_read(struct arguments *arguments)
{
	struct tw_redis_worker_options *worker = &arguments->worker;
	const char *given = arguments->redis.name_space;
	const char *name;
	char *next;

	if (!given || !strchr(given, ','))
		return EXIT_DONE;
	arguments->names = strdup(given);
	if (!arguments->names)
		return outcome(TW_NO_MEMORY, &(struct tw_redis_error){0});
	worker->sources = arguments->sources;
	next = arguments->names;
	while ((name = strsep(&next, ",")) && worker->source_count <= TW_REDIS_SOURCES_MAX)
		arguments->sources[worker->source_count++].name_space = name;
	return EXIT_DONE;
}

/* Finds the command of the first word. */
static int command_find(struct arguments *arguments, const char *word)
{
	if (!word)
		return usage_error("no command is given");
	for (unsigned i = 0; i < COMMAND_COUNT; i++)
		if (!strcmp(word, commands[i].name)) {
			arguments->command = (enum command_name)i;
			return EXIT_DONE;
		}
	return usage_error("unknown command");
}

/* Takes the last word. Returns false if the command has none. */
static bool word_take(struct arguments *arguments, const char *word)
{
	const char *kind = commands[arguments->command].word;

	if (*kind == 'G')
		arguments->task.group = word;
	else if (*kind == 'F')
		arguments->file = word;
	else
		arguments->task.key = word;
	arguments->task.key_size = strlen(word);
	return *kind && *word;
}

/* Checks that the command line says exactly once what is meant. `named` and `timed` say whether a
 * namespace and a due time were given. The library checks what a task has. */
static int choice_check(const struct arguments *arguments, bool named, bool timed)
{
	uint64_t command = BIT(arguments->command);
	bool letters = arguments->all && command & LETTERS;
	bool group = arguments->task.group && command & DROP;
	int choices = !!arguments->task.key + letters + group + arguments->everything;
	const struct {
		bool wrong;
		const char *text;
	} rules[] = {
		{command & ONE_TASK && !choices, "no key is given"},
		{choices > 1, "KEY, --all, --group and --everything exclude each other"},
		{command & BIT(COMMAND_LOAD) && !arguments->file, "no file is given"},
		{command & BIT(COMMAND_MOVE) && !timed, "--at or --in is required"},
		{arguments->everything && !named, "--everything requires --namespace"},
		{arguments->force && !arguments->everything, "--force requires --everything"},
		{arguments->limits.paused && arguments->resume,
		 "--pause and --resume exclude each other"},
		{arguments->listen_hosts.count && !arguments->listen.address,
		 "--listen-host requires --listen"},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].wrong)
			return usage_error("%s", rules[i].text);
	return EXIT_DONE;
}

/* Reads the words. `used` has the bits of the table's options that were given. */
static int words_read(struct arguments *arguments, char **words, uint64_t used)
{
	int exit_code = command_find(arguments, *words);
	uint64_t command = BIT(arguments->command);
	bool named = false;
	bool timed = false;

	if (exit_code != EXIT_DONE)
		return exit_code;
	for (size_t i = 0; i < TABLE_SIZE; i++) {
		if (!(used & BIT(i)))
			continue;
		if (!(table[i].commands & command))
			return usage_error("--%s does not apply to this command", table[i].name);
		timed = timed || table[i].commands == TIMED;
		named = named || table[i].place == offsetof(struct arguments, redis.name_space);
		arguments->limits_given |= table[i].commands == LIMITS;
	}
	if (*++words && word_take(arguments, *words))
		words++;
	if (*words)
		return usage_error("there is one argument too many");
	if (!timed)
		arguments->task.delay = arguments->task.every;
	exit_code = choice_check(arguments, named, timed);
	if (exit_code == EXIT_DONE && command & WORKER)
		return namespaces_read(arguments);
	return exit_code;
}

/* Reports an error of getopt_long. It does not repeat the text, which may hold a password. */
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
					.listen.health_limit = TW_MINUTE,
					.limits = {.weight = LIMIT_NOT_GIVEN,
						   .running = LIMIT_NOT_GIVEN,
						   .rate = LIMIT_NOT_GIVEN}};
	if (environment_read(arguments))
		exit_code = options_read(arguments, count, texts, &used);
	else
		fputs("twr: out of memory\n", stderr);
	blot_out(texts);
	if (exit_code == EXIT_DONE && !arguments->answered)
		exit_code = words_read(arguments, texts + optind, used);
	arguments->redis.url = arguments->url;
	arguments->redis.password = arguments->password;
	arguments->task.headers = arguments->headers.texts;
	arguments->task.header_count = arguments->headers.count;
	arguments->listen.hosts = arguments->listen_hosts.texts;
	arguments->listen.host_count = arguments->listen_hosts.count;
	arguments->worker.allow = arguments->allow.texts;
	arguments->worker.allow_count = arguments->allow.count;
	arguments->worker.deny = arguments->deny.texts;
	arguments->worker.deny_count = arguments->deny.count;
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
