/* SPDX-License-Identifier: MIT */
/*
 * top_command.c is twr top. Each second it shows Redis's counts of tasks, or all of the page of a
 * worker that listens. Both come as the same JSON (status_page.h), Redis's without most members.
 *
 * On a terminal it redraws a screen of its own, and removes it at the end. It waits for signals, so
 * that none ends the program before. Elsewhere it writes a line each time.
 */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "board.h"
#include "outcome.h"
#include "show.h"
#include "status_page.h"
#include "when.h"

enum { ANSWER_MAX = 4 * 1024 * 1024, ANSWER_MS = 5000, URL_ROOM = 2048, ROWS = 24 };

struct top {
	const struct arguments *arguments;
	struct tw_redis *redis; /* NULL if it asks the worker */
	CURL *curl;             /* NULL if it asks Redis */
	bool terminal;
	char url[URL_ROOM];
	char curl_error[CURL_ERROR_SIZE]; /* libcurl's text */
	char error[CURL_ERROR_SIZE + 16]; /* why there is no status */
};

/* ---- Asking ---- */

static size_t answer_take(char *data, size_t size, size_t count, void *argument)
{
	FILE *answer = argument;

	if (ftell(answer) > ANSWER_MAX)
		return CURL_WRITEFUNC_ERROR;
	return fwrite(data, size, count, answer);
}

/* Notes why there is no status. */
static void worker_explain(struct top *top, CURLcode result)
{
	long status = 0;

	if (result == CURLE_HTTP_RETURNED_ERROR) {
		curl_easy_getinfo(top->curl, CURLINFO_RESPONSE_CODE, &status);
		snprintf(top->error, sizeof(top->error), "HTTP %ld", status);
	} else if (result == CURLE_OK || result == CURLE_WRITE_ERROR) {
		snprintf(top->error, sizeof(top->error), "the answer is not from a worker");
	} else {
		snprintf(top->error, sizeof(top->error), "no answer: %s",
			 *top->curl_error ? top->curl_error : curl_easy_strerror(result));
	}
}

/* Returns the worker's status, or NULL without an answer of a worker. */
static json_t *worker_ask(struct top *top)
{
	char *text = NULL;
	size_t size;
	FILE *answer = open_memstream(&text, &size);
	json_t *status = NULL;
	CURLcode result = CURLE_OUT_OF_MEMORY;

	*top->curl_error = '\0';
	if (answer) {
		curl_easy_setopt(top->curl, CURLOPT_WRITEDATA, answer);
		result = curl_easy_perform(top->curl);
		if (fclose(answer))
			result = CURLE_OUT_OF_MEMORY;
	}
	if (result == CURLE_OK)
		status = json_loadb(text, size, 0, NULL);
	if (!json_is_object(status)) {
		json_decref(status);
		status = NULL;
	}
	if (!status)
		worker_explain(top, result);
	free(text);
	return status;
}

static json_t *redis_ask(struct top *top)
{
	struct tw_redis_stats tasks;
	struct tw_redis_error error = {0};

	if (tasks_ask(top->redis, &tasks))
		return json_pack("{s:o}", "tasks", status_page_tasks(&tasks));
	tw_redis_last_error(top->redis, &error);
	snprintf(top->error, sizeof(top->error), "%.200s", error.text);
	return NULL;
}

/* ---- Showing ---- */

/* Writes a text that a terminal must not obey, without its control characters, also those of UTF-8
 * above 0x7f. */
static void write_text(FILE *out, const char *text)
{
	for (size_t i = 0; text && text[i]; i++) {
		unsigned char byte = (unsigned char)text[i];
		unsigned char next = (unsigned char)text[i + 1];

		/* These are 0x80 to 0x9f. */
		bool control = byte == 0xc2 && (next & 0xe0) == 0x80;

		if (byte < ' ' || byte == 0x7f || control)
			fprintf(out, "%%%02X", byte);
		else
			fputc(byte, out);
		if (control)
			fprintf(out, "%%%02X", (unsigned char)text[++i]);
	}
}

static void write_member(FILE *out, const json_t *object, const char *name, int width)
{
	const json_t *value = json_object_get(object, name);

	if (json_is_integer(value))
		fprintf(out, "%*" JSON_INTEGER_FORMAT, width, json_integer_value(value));
	else if (json_is_real(value))
		fprintf(out, "%*.1f", width, json_real_value(value));
	else
		fprintf(out, "%*s", width, "-");
}

static void write_time(FILE *out, const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	double seconds = json_number_value(value);
	char text[WHEN_SIZE];

	/* Something else may answer in place of a worker. */
	if (!json_is_number(value) || !(seconds >= 0 && seconds < 4e9))
		fputs("-", out);
	else
		fputs(duration_write((tw_duration)(seconds * TW_SECOND), text), out);
}

/* Writes "scheduled 5  started 2 ..." of the members that the object has. */
static void write_pairs(FILE *out, const json_t *object, const char *const *names)
{
	for (; *names; names++) {
		fprintf(out, "%s ", *names);
		write_member(out, object, *names, 1);
		fputs("  ", out);
	}
}

static void write_counts(FILE *out, const json_t *status)
{
	static const char *const names[] = {"scheduled", "started", "due", "dead", NULL};
	const json_t *tasks = json_object_get(status, "tasks");

	write_pairs(out, tasks, names);
	fputs("oldest due ", out);
	write_time(out, tasks, "oldest_due_s");
}

static void write_rates(FILE *out, const json_t *status)
{
	static const char *const names[] = {"claimed", "done", "retried", "dead", NULL};
	const json_t *seconds = json_object_get(status, "seconds");
	size_t count = json_array_size(seconds);
	const json_t *last = json_array_get(seconds, count ? count - 1 : 0);

	fputs("per second: ", out);
	write_pairs(out, last, names);
	fputs("lateness: p50 ", out);
	write_time(out, last, "late_p50_s");
	fputs(", p99 ", out);
	write_time(out, last, "late_p99_s");
}

/* Writes members of the status that have the same counts, such as "workers", each with its name. */
static void write_table(FILE *out, const json_t *status, const char *member, const char *title,
			const char *const *names)
{
	const json_t *rows = json_object_get(status, member);

	fputs("\n", out);
	for (size_t i = 0; names[i]; i++)
		fprintf(out, "%9s", names[i]);
	fprintf(out, "  %s\n", title);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		for (size_t k = 0; names[k]; k++)
			write_member(out, row, names[k], 9);
		fputs("  ", out);
		write_text(out, json_string_value(json_object_get(row, "name")));
		fputs("\n", out);
	}
}

static void write_letters(FILE *out, const json_t *status)
{
	const json_t *letters = json_object_get(status, "letters");

	fputs("\ndead letters\n", out);
	for (size_t i = 0; i < json_array_size(letters); i++) {
		const json_t *letter = json_array_get(letters, i);

		write_text(out, json_string_value(json_object_get(letter, "died")));
		fputs("  ", out);
		write_text(out, json_string_value(json_object_get(letter, "key")));
		fputs("  ", out);
		write_text(out, json_string_value(json_object_get(letter, "reason")));
		fputs("\n", out);
	}
}

/* Writes the lines of the screen. */
static void write_screen(FILE *out, const struct top *top, const json_t *status)
{
	static const char *const runs[] = {"running", "held",  "done",     "retried",     "dead",
					   "snoozed", "stale", "released", "unconfirmed", NULL};
	static const char *const groups[] = {"waiting", "running", NULL};

	fprintf(out, "twr top  %s\n\n", top->curl ? top->arguments->worker_url : "Redis");
	if (!status) {
		write_text(out, top->error);
		fputs("\n", out);
		return;
	}
	if (top->curl)
		fprintf(out, "%s\n",
			json_is_true(json_object_get(status, "ready")) ? "ready" : "not ready");
	write_counts(out, status);
	fputs("\n", out);
	if (!top->curl)
		return;
	write_rates(out, status);
	fputs("\n", out);
	write_table(out, status, "workers", "worker", runs);
	write_table(out, status, "namespaces", "namespace", runs);
	if (json_array_size(json_object_get(status, "groups")))
		write_table(out, status, "groups", "group", groups);
	write_letters(out, status);
}

/* Draws the screen. Lines without room are left out, and so is the end of a long one. */
static void screen_draw(const char *text)
{
	struct winsize size = {0};
	unsigned rows;

	/* A terminal may not know its size, or be gone. */
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	rows = size.ws_row ? size.ws_row : ROWS;
	fputs("\033[H", stdout);
	while (*text && --rows) {
		size_t length = strcspn(text, "\n");

		printf("%.*s\033[K\n", (int)length, text);
		text += length + (text[length] == '\n');
	}
	fputs("\033[J", stdout);
}

static void show_screen(const struct top *top, const json_t *status)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	write_screen(out, top, status);
	if (!fclose(out))
		screen_draw(text);
	free(text);
}

static void show_status(const struct top *top, const json_t *status)
{
	if (top->terminal) {
		show_screen(top, status);
	} else if (!status) {
		fprintf(stderr, "twr: %s\n", top->error);
	} else if (top->arguments->json) {
		show_json(json_deep_copy(status));
	} else {
		write_counts(stdout, status);
		if (top->curl) {
			fputs("  ", stdout);
			write_rates(stdout, status);
		}
		putchar('\n');
	}
	fflush(stdout);
}

static void terminal_end(void)
{
	fputs("\033[?7h\033[?25h\033[?1049l", stdout);
}

/* Begins another screen, without a cursor, where long lines end at its edge. */
static void terminal_begin(void)
{
	atexit(terminal_end);
	fputs("\033[?1049h\033[?25l\033[?7l", stdout);
}

/* ---- The command ---- */

static int worker_open(struct top *top)
{
	const char *url = top->arguments->worker_url;
	size_t size = strlen(url);

	/* The URL begins with http. */
	while (url[size - 1] == '/')
		size--;
	top->curl = curl_easy_init();
	if (!top->curl || size > URL_ROOM - 16)
		return outcome(top->curl ? TW_INVALID : TW_NO_MEMORY, &(struct tw_redis_error){0});
	snprintf(top->url, sizeof(top->url), "%.*s/status.json", (int)size, url);
	curl_easy_setopt(top->curl, CURLOPT_URL, top->url);
	curl_easy_setopt(top->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(top->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(top->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(top->curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(top->curl, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS);
	curl_easy_setopt(top->curl, CURLOPT_ERRORBUFFER, top->curl_error);
	curl_easy_setopt(top->curl, CURLOPT_WRITEFUNCTION, answer_take);
	return EXIT_DONE;
}

static int redis_open(struct top *top)
{
	struct tw_redis_error error = {0};

	return outcome(tw_redis_open(&top->redis, &top->arguments->redis, &error), &error);
}

/* Asks and shows until a signal comes, or its output is closed. The first question must have an
 * answer. */
static int top_run(struct top *top, const sigset_t *signals)
{
	const tw_duration every = top->arguments->interval;
	const struct timespec time = {every / TW_SECOND, every % TW_SECOND};
	json_t *status = top->curl ? worker_ask(top) : redis_ask(top);

	if (!status) {
		fprintf(stderr, "twr: %s\n", top->error);
		return EXIT_UNREACHABLE;
	}
	if (top->terminal)
		terminal_begin();
	for (;;) {
		show_status(top, status);
		json_decref(status);
		if (ferror(stdout) || sigtimedwait(signals, NULL, &time) > 0)
			break;
		status = top->curl ? worker_ask(top) : redis_ask(top);
	}
	return EXIT_DONE;
}

int command_top(struct arguments *arguments)
{
	struct top top = {.arguments = arguments, .terminal = isatty(STDOUT_FILENO)};
	sigset_t signals;
	int exit_code;

	top.terminal = top.terminal && !arguments->json;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	exit_code = arguments->worker_url ? worker_open(&top) : redis_open(&top);
	if (exit_code == EXIT_DONE)
		exit_code = top_run(&top, &signals);
	curl_easy_cleanup(top.curl);
	tw_redis_close(top.redis);
	return exit_code;
}
