/* SPDX-License-Identifier: MIT */
/*
 * The pages of a worker in the test's own process meet the failure of each allocation, descriptor
 * and thread. The test sets the time.
 */
#include "support/fixture.h"

#include <sys/socket.h>

#include <jansson.h>

#include "faults/faults.h"
#include "twr/board.h"
#include "twr/listener.h"
#include "support/runs.h"
#include "support/sockets.h"

enum { REPLY_ROOM = 1024 * 1024 };

static struct tw_redis_worker *worker;
static const struct tw_redis_options *redis_options;
static struct tw_redis_worker_options options;
/* The monotonic clock is ahead by this many seconds. */
static atomic_long ahead;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = __real_clock_gettime(clock, now);

	now->tv_sec += clock == CLOCK_MONOTONIC ? atomic_load(&ahead) : 0;
	return result;
}

/* These count the questions about groups, and set how many seconds each takes. */
static atomic_int groups_questions;
static atomic_long groups_take;

enum tw_status __real_tw_redis_get_groups(struct tw_redis *redis,
					  struct tw_redis_group_stats *groups, size_t room,
					  size_t *count);
enum tw_status __wrap_tw_redis_get_groups(struct tw_redis *redis,
					  struct tw_redis_group_stats *groups, size_t room,
					  size_t *count);

enum tw_status __wrap_tw_redis_get_groups(struct tw_redis *redis,
					  struct tw_redis_group_stats *groups, size_t room,
					  size_t *count)
{
	atomic_fetch_add(&groups_questions, 1);
	atomic_fetch_add(&ahead, atomic_load(&groups_take));
	return __real_tw_redis_get_groups(redis, groups, room, count);
}

static int open_all(void **state)
{
	int result = fixture_open(state);
	struct fixture *fixture = *state;

	json_set_alloc_funcs(malloc, free);
	options = (struct tw_redis_worker_options){0};
	runs_attach(&options);
	redis_options = &fixture->options;
	worker = worker_start(redis_options, &options);
	return result;
}

static int close_all(void **state)
{
	worker_stop(worker);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

static struct board *board_open(void)
{
	struct board *board;

	assert_int_equal(board_start(&board, worker, redis_options, &options, NULL), TW_OK);
	return board;
}

/* ---- The board ---- */

static void start_board(void *context)
{
	struct board *board;
	enum tw_status status;

	begin_faults();
	status = board_start(&board, worker, redis_options, &options, NULL);
	assert_int_equal(status == TW_OK, board != NULL);
	if (board) {
		board_look(board);
		assert_int_equal(board->space_count, 1);
		board_leave(board);
	}
	board_stop(board);
	end_faults();
}

TEST(opened, board_meets_each_failure)
{
	assert_true(fail_each(FAULT_ALLOCATION, start_board, NULL) > 0);
	assert_true(fail_each(FAULT_DESCRIPTOR, start_board, NULL) > 0);
}

TEST(once, worker_is_ready_with_a_redis_that_answers)
{
	struct board *board = calloc(1, sizeof(*board));

	assert_false(board_is_ready(board));
	board->figures.redis_up = 1;
	assert_true(board_is_ready(board));
	board->figures.stats.losses = 2;
	board->figures.stats.reconnects = 1;
	assert_false(board_is_ready(board));
	board->figures.stats.reconnects = 2;
	atomic_store(&board->stopping, true);
	assert_false(board_is_ready(board));
	free(board);
}

/* Returns the value of the metric, or -1. */
static double age_shown(enum figure_scope scope, const void *of, int64_t now_ms, const char *name)
{
	const struct figure_row row = {.of = of, .now_ms = now_ms};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *at;
	double age;

	figures_metrics(out, scope, &row, 1);
	fclose(out);
	at = strstr(text, name);
	age = at ? atof(at + strlen(name)) : -1;
	free(text);
	return age;
}

TEST(once, oldest_due_task_is_never_due_in_the_future)
{
	static const char name[] = "\ntwr_oldest_due_age_seconds ";
	struct task_figures tasks = {0};

	assert_true(age_shown(FIGURES_OF_TASKS, &tasks, 3500, name) == 0);
	tasks.stats.next_ms = 1000;
	assert_true(age_shown(FIGURES_OF_TASKS, &tasks, 3500, name) == 2.5);
	/* The clocks of two servers differ. */
	assert_true(age_shown(FIGURES_OF_TASKS, &tasks, 999, name) == 0);
}

static void add_group(struct tw_redis *redis)
{
	const struct tw_redis_task task = {
		.key = "g", .key_size = 1, .delay = TW_HOUR, .group = "g"};

	add_one(redis, &task);
}

STORED(opened, groups_are_asked_for_at_most_a_twentieth_of_the_time)
{
	struct board *board = board_open();

	add_group(fixture->redis);
	atomic_store(&groups_questions, 0);
	atomic_store(&groups_take, 2);
	/* The question takes 2 s, so there is none for 40 s. */
	for (int looks = 0; looks < 4; looks++) {
		board_look(board);
		assert_int_equal(board->spaces[0].group_count, 1);
		assert_string_equal(board->spaces[0].groups[0].name, "g");
		assert_int_equal(atomic_load(&groups_questions), 1);
		board_leave(board);
		atomic_fetch_add(&ahead, 10);
	}
	/* The question took a little longer. */
	atomic_fetch_add(&ahead, 60);
	board_look(board);
	assert_int_equal(atomic_load(&groups_questions), 2);
	board_leave(board);
	atomic_store(&groups_take, 0);
	board_stop(board);
}

/* ---- The pages ---- */

static const struct listener_options listens = {.address = "127.0.0.1:0",
						.health_limit = TW_MINUTE};

/* The listener is not asked for pages, so it needs no board. */
static void start_listener(void *context)
{
	struct listener *listener;

	begin_faults();
	listener = listener_open(&listens);
	if (listener)
		assert_string_not_equal(listener_name(listener), listens.address);
	listener_close(listener);
	end_faults();
}

TEST(once, listener_meets_each_failure)
{
	assert_true(fail_each(FAULT_ALLOCATION, start_listener, NULL) > 0);
}

struct question {
	int port;
	const char *line; /* "GET / HTTP/1.1\r\nHost: localhost" */
	const char *says; /* a part of the reply's body */
};

/* The reply is complete, or there is none. */
static void ask(void *context)
{
	static char reply[REPLY_ROOM];
	const struct question *question = context;
	int descriptor = socket_connect(question->port);
	char request[256];
	const char *body;
	const char *size_shown;
	size_t size = 0;
	ssize_t more;

	snprintf(request, sizeof(request), "%s\r\nConnection: close\r\n\r\n", question->line);
	begin_faults();
	assert_true(socket_send(descriptor, request, strlen(request)));
	while ((more = recv(descriptor, reply + size, REPLY_ROOM - 1 - size, 0)) > 0)
		size += (size_t)more;
	end_faults();
	close(descriptor);
	reply[size] = '\0';
	if (!size)
		return;
	body = strstr(reply, "\r\n\r\n");
	size_shown = strstr(reply, "\r\nContent-Length: ");
	assert_non_null(body);
	assert_non_null(strstr(body, question->says));
	assert_non_null(size_shown);
	assert_non_null(strstr(reply, "\r\nCache-Control: no-store\r\n"));
	assert_non_null(strstr(reply, "\r\nX-Content-Type-Options: nosniff\r\n"));
	assert_int_equal(strtoul(size_shown + strlen("\r\nContent-Length: "), NULL, 10),
			 strlen(body + 4));
}

STORED(opened, pages_meet_each_failure)
{
	static const char *const lines[] = {
		"GET / HTTP/1.1\r\nHost: localhost",
		"GET /metrics HTTP/1.1\r\nHost: localhost",
		"GET /status.json HTTP/1.1\r\nHost: localhost",
		"GET /healthz HTTP/1.1\r\nHost: localhost",
		"GET /readyz HTTP/1.1\r\nHost: localhost",
		"GET /nothing HTTP/1.1\r\nHost: localhost",
		"GET / HTTP/1.1\r\nHost: evil.example",
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0",
	};
	struct board *board = board_open();
	struct listener *listener = listener_open(&listens);
	struct question question;

	add_group(fixture->redis);
	assert_non_null(listener);
	question.port = atoi(strrchr(listener_name(listener), ':') + 1);
	question.line = lines[0];
	question.says = "the worker is starting";
	assert_true(fail_each(FAULT_ALLOCATION, ask, &question) > 0);
	listener_serve(listener, board);
	question.says = "";
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		question.line = lines[i];
		assert_true(fail_each(FAULT_ALLOCATION, ask, &question) > 0);
	}
	listener_close(listener);
	board_stop(board);
}

FIXTURE_FILE
