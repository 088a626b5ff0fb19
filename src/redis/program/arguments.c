/* SPDX-License-Identifier: MIT */
/*
 * One table says which option belongs to which commands, reads it, and writes the help. Options may
 * stand anywhere behind the program's name. A key may be given as --key or as the last word.
 *
 * A password in --url is seen in a list of processes in the moment between the start and our
 * blotting it out; TWR_PASSWORD and TWR_URL are seen by the same user alone, and blotted out too.
 */
#include "arguments.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome.h"
#include "when.h"

#define BIT(command) (1u << (command))
/* Of the commands that an option is for. */
enum {
	ONE_TASK = BIT(COMMAND_ADD) | BIT(COMMAND_CANCEL) | BIT(COMMAND_MOVE) | BIT(COMMAND_GET) |
		   BIT(COMMAND_DEAD_RETRY) | BIT(COMMAND_DEAD_DROP),
	TIMED = BIT(COMMAND_ADD) | BIT(COMMAND_MOVE),
	DEAD_ONES = BIT(COMMAND_DEAD_RETRY) | BIT(COMMAND_DEAD_DROP),
	EVERY = BIT(COMMAND_PING + 1) - 1
};

static const tw_duration day = 24 * TW_HOUR;

enum option_name {
	OPTION_URL = 256, /* beyond every character */
	OPTION_NAMESPACE,
	OPTION_SHARDS,
	OPTION_PATIENCE,
	OPTION_ALLOW_EVICTION,
	OPTION_JSON,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_KEY,
	OPTION_AT,
	OPTION_IN,
	OPTION_NEW,
	OPTION_REPLACE,
	OPTION_CALLBACK,
	OPTION_METHOD,
	OPTION_HEADER,
	OPTION_DATA,
	OPTION_MAX_ATTEMPTS,
	OPTION_LIMIT,
	OPTION_ALL,
	OPTION_LEASE,
	OPTION_CONCURRENCY,
	OPTION_BATCH,
	OPTION_TIMEOUT,
	OPTION_RETRY_FIRST,
	OPTION_RETRY_MAX,
	OPTION_GRACE,
	OPTION_COUNT_EVERY,
	OPTION_VERBOSE
};

struct program_option {
	const char *name;
	enum option_name number;
	const char *value; /* what it is called in the help; NULL: it has none */
	unsigned commands;
	const char *help;
};

static const struct program_option table[] = {
	{"url", OPTION_URL, "URL", EVERY, "redis://[[user]:password@]host[:port][/database]"},
	{"namespace", OPTION_NAMESPACE, "NAME", EVERY, "whose tasks (default)"},
	{"shards", OPTION_SHARDS, "N", EVERY, "shards of a namespace that is new, up to 1024 (64)"},
	{"patience", OPTION_PATIENCE, "TIME", EVERY, "how long to try while Redis is away (5s)"},
	{"allow-eviction", OPTION_ALLOW_EVICTION, NULL, EVERY, "even if Redis may drop tasks"},
	{"json", OPTION_JSON, NULL, EVERY, "write JSON, an object a line"},
	{"help", OPTION_HELP, NULL, EVERY, "show this"},
	{"version", OPTION_VERSION, NULL, EVERY, "show the version"},
	{"key", OPTION_KEY, "KEY", ONE_TASK, "the task's key"},
	{"at", OPTION_AT, "WHEN", TIMED, "2031-05-01T12:00:00Z, or seconds since 1970"},
	{"in", OPTION_IN, "TIME", TIMED, "from now: 90, 250ms, 1h30m, 7d (add: 0)"},
	{"new", OPTION_NEW, NULL, BIT(COMMAND_ADD), "only if no task has the key"},
	{"replace", OPTION_REPLACE, NULL, BIT(COMMAND_ADD), "only if a task has the key"},
	{"callback", OPTION_CALLBACK, "URL", BIT(COMMAND_ADD), "http:// or https://"},
	{"method", OPTION_METHOD, "GET|POST", BIT(COMMAND_ADD), "of the callback (POST)"},
	{"header", OPTION_HEADER, "'NAME: VALUE'", BIT(COMMAND_ADD), "of the callback; several"},
	{"data", OPTION_DATA, "TEXT|@FILE|@-", BIT(COMMAND_ADD),
	 "its body: JSON, if no Content-Type says otherwise"},
	{"max-attempts", OPTION_MAX_ATTEMPTS, "N", BIT(COMMAND_ADD), "until it is dead (8)"},
	{"limit", OPTION_LIMIT, "N", BIT(COMMAND_LIST) | BIT(COMMAND_DEAD_LIST), "show no more"},
	{"all", OPTION_ALL, NULL, DEAD_ONES, "every dead letter"},
	{"lease", OPTION_LEASE, "TIME", BIT(COMMAND_WORKER),
	 "after which a dead worker's tasks run again, 100ms to 1d (30s)"},
	{"concurrency", OPTION_CONCURRENCY, "N", BIT(COMMAND_WORKER),
	 "callbacks at a time, up to 1024 (64)"},
	{"batch", OPTION_BATCH, "N", BIT(COMMAND_WORKER),
	 "most tasks taken at once, up to 1000 (100)"},
	{"timeout", OPTION_TIMEOUT, "TIME", BIT(COMMAND_WORKER),
	 "for one callback, 1ms to 1d (30s)"},
	{"retry-first", OPTION_RETRY_FIRST, "TIME", BIT(COMMAND_WORKER),
	 "before the second attempt, doubled with each (1s)"},
	{"retry-max", OPTION_RETRY_MAX, "TIME", BIT(COMMAND_WORKER), "up to (5m)"},
	{"grace", OPTION_GRACE, "TIME", BIT(COMMAND_WORKER),
	 "for running tasks to end after SIGTERM (30s)"},
	{"count-every", OPTION_COUNT_EVERY, "TIME", BIT(COMMAND_WORKER), "tell the counts (1m)"},
	{"verbose", OPTION_VERBOSE, NULL, BIT(COMMAND_WORKER), "a line for each task"},
};
enum { TABLE_SIZE = sizeof(table) / sizeof(table[0]) };

static const struct {
	const char *word;
	const char *second; /* second: NULL if there is none */
	enum command_name command;
	const char *help;
} commands[] = {
	{"add", NULL, COMMAND_ADD, "schedule a task"},
	{"cancel", NULL, COMMAND_CANCEL, "take it out"},
	{"move", NULL, COMMAND_MOVE, "give it another due time"},
	{"get", NULL, COMMAND_GET, "show it"},
	{"list", NULL, COMMAND_LIST, "show all tasks"},
	{"stats", NULL, COMMAND_STATS, "how many there are"},
	{"dead", "list", COMMAND_DEAD_LIST, "show the dead letters: tasks that failed for good"},
	{"dead", "retry", COMMAND_DEAD_RETRY, "make one a task again, due now"},
	{"dead", "drop", COMMAND_DEAD_DROP, "delete one"},
	{"worker", NULL, COMMAND_WORKER, "run what is due, until SIGTERM"},
	{"ping", NULL, COMMAND_PING, "is Redis there?"},
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

int usage_error(const char *format, ...)
{
	va_list arguments;

	fputs("twr: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs(" (twr --help)\n", stderr);
	return EXIT_USAGE;
}

static void help_option(const struct program_option *option)
{
	char text[64];

	snprintf(text, sizeof(text), "--%s%s%s", option->name, option->value ? " " : "",
		 option->value ? option->value : "");
	printf("  %-26s %s\n", text, option->help);
}

static void help_write(void)
{
	static const struct {
		unsigned commands;
		const char *title;
	} groups[] = {{EVERY, "Every command"},
		      {ONE_TASK, "One task"},
		      {TIMED, "add, move"},
		      {BIT(COMMAND_ADD), "add"},
		      {BIT(COMMAND_LIST) | BIT(COMMAND_DEAD_LIST), "list, dead list"},
		      {DEAD_ONES, "dead retry, dead drop"},
		      {BIT(COMMAND_WORKER), "worker"}};

	puts("usage: twr COMMAND [OPTION...] [KEY]\n\n"
	     "Tasks that are scheduled in Redis and run once they are due, by any worker.\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		const char *second = commands[i].second ? commands[i].second : "";

		printf("  %s%s%-*s  %s\n", commands[i].word, *second ? " " : "",
		       10 - (int)strlen(commands[i].word) - !!*second, second, commands[i].help);
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		printf("\n%s:\n", groups[i].title);
		for (size_t k = 0; k < TABLE_SIZE; k++)
			if (table[k].commands == groups[i].commands)
				help_option(&table[k]);
	}
	puts("\nEnvironment: TWR_URL, TWR_PASSWORD, TWR_NAMESPACE; options go before them.\n"
	     "Exit status: 0 done; 1 no such task, it exists, or it is leased; 2 usage; "
	     "65 bad data;\n"
	     "69 Redis can't be reached or used; 71 system error; 75 outcome unknown, try again;\n"
	     "77 login refused.");
}

/* The password of "redis://user:password@host", with its length; NULL: there is none. */
static char *url_password(char *url, size_t *size)
{
	char *login = strstr(url, "://");
	char *end;
	char *at = NULL;
	char *colon;

	if (!login)
		return NULL;
	login += 3;
	end = login + strcspn(login, "/?#");
	for (char *c = login; c < end; c++)
		if (*c == '@')
			at = c;
	colon = at ? memchr(login, ':', (size_t)(at - login)) : NULL;
	if (!colon)
		return NULL;
	*size = (size_t)(at - colon - 1);
	return colon + 1;
}

/* Takes a copy of the URL and blots out the password in the original. */
static bool url_take(struct arguments *arguments, char *url)
{
	char *copy = strdup(url);
	char *password;
	size_t size;

	if (!copy)
		return false;
	free(arguments->url);
	arguments->url = copy;
	password = url_password(url, &size);
	if (password)
		memset(password, '*', size);
	return true;
}

static bool environment_read(struct arguments *arguments)
{
	char *url = getenv("TWR_URL");
	char *password = getenv("TWR_PASSWORD");

	arguments->redis.name_space = getenv("TWR_NAMESPACE");
	if (password && *password) {
		arguments->password = strdup(password);
		memset(password, '*', strlen(password));
		if (!arguments->password)
			return false;
	}
	return !url || !*url || url_take(arguments, url);
}

/* Whatever else is wrong with the command line, no password of it stays in the process list. */
static void blot_out(char **texts)
{
	for (; *texts; texts++) {
		size_t size;
		char *password = strstr(*texts, "redis") || strstr(*texts, "--url")
					 ? url_password(*texts, &size)
					 : NULL;

		if (password)
			memset(password, '*', size);
	}
}

static bool number_read(const char *text, unsigned least, unsigned most, unsigned *number)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	value = strtoul(text, &end, 10);
	*number = (unsigned)value;
	return !*end && value >= least && value <= most;
}

static bool duration_read(const char *text, tw_duration least, tw_duration most,
			  tw_duration *duration)
{
	return duration_parse(text, duration) && *duration >= least && *duration <= most;
}

static bool header_add(struct arguments *arguments, const char *header)
{
	/* One too many is kept, so that the library can refuse it. */
	if (arguments->task.header_count <= TW_REDIS_HEADER_COUNT_MAX)
		arguments->headers[arguments->task.header_count++] = header;
	return true;
}

static bool method_read(const char *text, enum tw_redis_method *method)
{
	*method = strcmp(text, "GET") ? TW_REDIS_POST : TW_REDIS_GET;
	return !strcmp(text, "GET") || !strcmp(text, "POST");
}

static bool key_take(struct arguments *arguments, const char *key)
{
	arguments->task.key = key;
	arguments->task.key_size = strlen(key);
	return *key;
}

/* --at and --in: the last one counts. */
static bool time_take(struct arguments *arguments, const char *at, const char *in)
{
	arguments->timed = true;
	arguments->task.at_ms = 0;
	arguments->task.delay = 0;
	if (in)
		return duration_read(in, 0, TW_REDIS_DELAY_MAX, &arguments->task.delay);
	if (!time_parse(at, &arguments->task.at_ms))
		return false;
	/* To the library 0 is "no time"; the beginning of 1970 is now, as any past is. */
	arguments->task.at_ms += !arguments->task.at_ms;
	return true;
}

static bool worker_option_take(struct arguments *arguments, int option, const char *value)
{
	struct tw_redis_worker_options *worker = &arguments->worker;

	switch (option) {
	case OPTION_LEASE:
		return duration_read(value, 100 * TW_MILLISECOND, day, &worker->lease);
	case OPTION_CONCURRENCY:
		return number_read(value, 1, 1024, &worker->callbacks);
	case OPTION_BATCH:
		return number_read(value, 1, TW_REDIS_BATCH_MAX, &worker->batch);
	case OPTION_TIMEOUT:
		return duration_read(value, TW_MILLISECOND, day, &worker->http_timeout);
	case OPTION_RETRY_FIRST:
		return duration_read(value, TW_MILLISECOND, TW_REDIS_DELAY_MAX,
				     &worker->retry_first);
	case OPTION_RETRY_MAX:
		return duration_read(value, TW_MILLISECOND, TW_REDIS_DELAY_MAX, &worker->retry_max);
	case OPTION_GRACE:
		return duration_read(value, 0, TW_FOREVER, &arguments->grace);
	case OPTION_COUNT_EVERY:
		return duration_read(value, TW_MILLISECOND, TW_FOREVER, &arguments->count_every);
	default:
		arguments->verbose = true;
		return true;
	}
}

static bool task_option_take(struct arguments *arguments, int option, const char *value)
{
	struct tw_redis_task *task = &arguments->task;

	switch (option) {
	case OPTION_KEY:
		return key_take(arguments, value);
	case OPTION_AT:
		return time_take(arguments, value, NULL);
	case OPTION_IN:
		return time_take(arguments, NULL, value);
	case OPTION_NEW:
	case OPTION_REPLACE:
		task->mode = option == OPTION_NEW ? TW_REDIS_NEW : TW_REDIS_REPLACE;
		return true;
	case OPTION_CALLBACK:
		task->url = value;
		return true;
	case OPTION_METHOD:
		return method_read(value, &task->method);
	case OPTION_HEADER:
		return header_add(arguments, value);
	case OPTION_DATA:
		arguments->data = value;
		return true;
	case OPTION_MAX_ATTEMPTS:
		return number_read(value, 1, TW_REDIS_ATTEMPTS_MAX, &task->max_attempts);
	case OPTION_LIMIT:
		return number_read(value, 1, UINT32_MAX, &arguments->limit);
	case OPTION_ALL:
		arguments->all = true;
		return true;
	default:
		return worker_option_take(arguments, option, value);
	}
}

/* A password in the URL goes before that of the environment, as every option does. */
static bool url_option_take(struct arguments *arguments, char *url)
{
	size_t size;

	if (url_password(url, &size)) {
		free(arguments->password);
		arguments->password = NULL;
	}
	return url_take(arguments, url);
}

/* False: the value is not one for this option. */
static bool option_take(struct arguments *arguments, int option, char *value)
{
	switch (option) {
	case OPTION_URL:
		return url_option_take(arguments, value);
	case OPTION_NAMESPACE:
		arguments->redis.name_space = value;
		return true;
	case OPTION_SHARDS:
		return number_read(value, 1, TW_REDIS_SHARDS_MAX, &arguments->redis.shards);
	case OPTION_PATIENCE:
		if (!duration_read(value, 0, TW_FOREVER, &arguments->redis.patience))
			return false;
		/* To the library 0 is its default. */
		arguments->redis.patience -= !arguments->redis.patience;
		return true;
	case OPTION_ALLOW_EVICTION:
		arguments->redis.allow_eviction = true;
		return true;
	case OPTION_JSON:
		arguments->json = true;
		return true;
	default:
		return task_option_take(arguments, option, value);
	}
}

/* Finds the command of the words, and how many of them it is. */
static int command_find(struct arguments *arguments, char **words)
{
	if (!words[0])
		return 0;
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		const char *second = commands[i].second;

		if (strcmp(words[0], commands[i].word) ||
		    (second && (!words[1] || strcmp(words[1], second))))
			continue;
		arguments->command = commands[i].command;
		return second ? 2 : 1;
	}
	return 0;
}

static int words_read(struct arguments *arguments, char **words, unsigned used)
{
	int length = command_find(arguments, words);
	unsigned command = BIT(arguments->command);

	if (!length)
		return usage_error(words[0] ? "there is no such command" : "which command?");
	words += length;
	for (size_t i = 0; i < TABLE_SIZE; i++)
		if (used & BIT(table[i].number - OPTION_URL) && !(table[i].commands & command))
			return usage_error("--%s is not for this command", table[i].name);
	if (*words && command & ONE_TASK && !arguments->task.key && key_take(arguments, *words))
		words++;
	if (*words)
		return usage_error("a word too many");
	if (command & ONE_TASK && !arguments->task.key && !arguments->all)
		return usage_error("which task? --key is missing");
	if (arguments->all && arguments->task.key)
		return usage_error("--all and a key");
	if (command & BIT(COMMAND_MOVE) && !arguments->timed)
		return usage_error("move when? --at or --in is missing");
	return EXIT_DONE;
}

static const struct program_option *option_find(int number)
{
	const struct program_option *option = table;

	while ((int)option->number != number)
		option++;
	return option;
}

/* getopt_long has found something wrong. What was typed is not repeated: it may hold a password. */
static int option_refuse(int found)
{
	if (optopt < OPTION_URL)
		return usage_error("there is no such option");
	return usage_error("--%s %s", option_find(optopt)->name,
			   found == ':' ? "has no value" : "takes no value");
}

static int value_refuse(int number)
{
	const struct program_option *option = option_find(number);

	return usage_error("--%s needs a fitting %s: %s", option->name, option->value,
			   option->help);
}

/* False: the program is to end. */
static bool options_read(struct arguments *arguments, int count, char **texts, unsigned *used,
			 int *exit_code)
{
	struct option options[TABLE_SIZE + 1] = {{0}};
	int option;

	for (size_t i = 0; i < TABLE_SIZE; i++)
		options[i] = (struct option){table[i].name,
					     table[i].value ? required_argument : no_argument, NULL,
					     (int)table[i].number};
	opterr = 0;
	while ((option = getopt_long(count, texts, ":", options, NULL)) != -1) {
		if (option == OPTION_HELP || option == OPTION_VERSION) {
			if (option == OPTION_HELP)
				help_write();
			else
				printf("twr %d.%d.%d\n", TW_VERSION_MAJOR, TW_VERSION_MINOR,
				       TW_VERSION_PATCH);
			*exit_code = EXIT_DONE;
			return false;
		}
		if (option == '?' || option == ':')
			*exit_code = option_refuse(option);
		else if (!option_take(arguments, option, optarg))
			*exit_code = value_refuse(option);
		else
			*used |= BIT(option - OPTION_URL);
		if (*exit_code != EXIT_DONE)
			return false;
	}
	return true;
}

bool arguments_read(struct arguments *arguments, int count, char **texts, int *exit_code)
{
	unsigned used = 0;
	bool fine;

	memset(arguments, 0, sizeof(*arguments));
	arguments->grace = 30 * TW_SECOND;
	arguments->count_every = TW_MINUTE;
	arguments->task.headers = arguments->headers;
	*exit_code = EXIT_DONE;
	if (!environment_read(arguments)) {
		blot_out(texts);
		fputs("twr: out of memory\n", stderr);
		*exit_code = EXIT_SYSTEM;
		return false;
	}
	fine = options_read(arguments, count, texts, &used, exit_code);
	blot_out(texts);
	if (!fine)
		return false;
	*exit_code = words_read(arguments, texts + optind, used);
	arguments->redis.url = arguments->url;
	arguments->redis.password = arguments->password;
	return *exit_code == EXIT_DONE;
}

void arguments_free(struct arguments *arguments)
{
	free(arguments->url);
	free(arguments->password);
}
