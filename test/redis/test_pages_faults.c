/* SPDX-License-Identifier: MIT */
/*
 * The pages of a worker in the test's own process meet the failure of each allocation, descriptor
 * and thread. The test sets the time.
 */
#include "support/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "faults/faults.h"
#include "twr/board.h"
#include "twr/listener.h"
#include "support/runs.h"
#include "support/sockets.h"
#include "support/wait.h"

enum { REPLY_ROOM = 1024 * 1024 };

static struct runs runs;
static struct tw_redis_worker *worker;
static const struct tw_redis_options *redis_options;
static struct tw_redis_worker_options options;
/* The monotonic clock is ahead by this many seconds. */
static atomic_long ahead;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  const struct timespec *until);

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

/* All conditions here use the monotonic clock. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	const struct timespec really = {until->tv_sec - atomic_load(&ahead), until->tv_nsec};

	return __real_pthread_cond_timedwait(condition, lock, &really);
}

static int open_all(void **state)
{
	int result = fixture_open(state);
	struct fixture *fixture = *state;

	json_set_alloc_funcs(malloc, free);
	runs_init(&runs, 1);
	options = (struct tw_redis_worker_options){0};
	runs_attach(&runs, &options);
	redis_options = &fixture->options;
	worker = worker_start(redis_options, &options);
	return result;
}

static int close_all(void **state)
{
	worker_stop(worker);
	runs_free(&runs);
	return fixture_close(state);
}

static struct board *board_open(void)
{
	struct board *board;

	assert_int_equal(board_start(&board, worker, redis_options, &options, NULL), TW_OK);
	return board;
}

/* ---- The board ---- */

static void put_letter(struct tw_redis *redis, const char *reason)
{
	const struct tw_redis_info letter = {.state = TW_REDIS_DEAD,
					     .task = {.key = "a", .key_size = 1, .max_attempts = 1},
					     .due_ms = 1,
					     .attempts = 1,
					     .reason = reason};

	assert_ok(redis, tw_redis_restore(redis, &letter, 1, NULL));
}

/* Asks for all figures until the dead letter has that reason, for half a minute at most. */
static void await_reason(struct board *board, struct figures *figures, const char *reason)
{
	for (int i = 0; i < 3000; i++) {
		board_look(board, BOARD_ALL, figures);
		if (figures->letters.count == 1 && !strcmp(figures->letters.rows[0].reason, reason))
			return;
		wait_for(10 * TW_MILLISECOND);
	}
	fail_msg("there is no dead letter because of %s", reason);
}

/* Waits until Redis has been asked twice more, so at least once entirely after the call. */
static void await_questions(struct board *board, struct figures *figures)
{
	size_t count;

	board_look(board, BOARD_ALL, figures);
	count = figures->second_count + 2;
	for (int i = 0; i < 3000 && figures->second_count < count; i++) {
		wait_for(10 * TW_MILLISECOND);
		board_look(board, BOARD_ALL, figures);
	}
	assert_true(figures->second_count >= count);
}

static void as_many_letters_are_read_again_after_half_a_minute(void **state)
{
	struct fixture *fixture = *state;
	struct figures *figures = calloc(1, sizeof(*figures));
	struct board *board = board_open();

	put_letter(fixture->redis, "one");
	await_reason(board, figures, "one");
	/* The letter may have come after their number was read. */
	await_questions(board, figures);
	put_letter(fixture->redis, "another");
	await_questions(board, figures);
	assert_string_equal(figures->letters.rows[0].reason, "one");
	atomic_fetch_add(&ahead, 31);
	await_reason(board, figures, "another");
	board_stop(board);
	free(figures);
}

static void start_board(void *context)
{
	struct board *board;
	struct figures *figures = calloc(1, sizeof(*figures));
	enum tw_status status;

	begin_faults();
	status = board_start(&board, worker, redis_options, &options, NULL);
	assert_int_equal(status == TW_OK, board != NULL);
	if (board)
		board_look(board, BOARD_ALL, figures);
	assert_true(status != TW_OK || figures->space_count == 1);
	board_stop(board);
	end_faults();
	free(figures);
}

static void board_meets_each_failure(void **state)
{
	assert_true(fail_each(FAULT_ALLOCATION, start_board, NULL) > 0);
	assert_true(fail_each(FAULT_DESCRIPTOR, start_board, NULL) > 0);
	assert_true(fail_each(FAULT_THREAD, start_board, NULL) > 0);
}

static void worker_is_ready_with_a_redis_that_answers(void **state)
{
	struct figures *figures = calloc(1, sizeof(*figures));

	assert_false(figures_are_ready(figures));
	figures->answered = true;
	assert_true(figures_are_ready(figures));
	figures->worker.losses = 2;
	figures->worker.reconnects = 1;
	assert_false(figures_are_ready(figures));
	figures->worker.reconnects = 2;
	figures->stopping = true;
	assert_false(figures_are_ready(figures));
	free(figures);
}

static void oldest_due_task_is_never_due_in_the_future(void **state)
{
	struct tw_redis_stats tasks = {.next_ms = 1000, .now_ms = 3500};

	assert_true(tasks_oldest_due(&tasks) == 0);
	tasks.due = 1;
	assert_true(tasks_oldest_due(&tasks) == 2.5);
	/* The clocks of two servers differ. */
	tasks.now_ms = 999;
	assert_true(tasks_oldest_due(&tasks) == 0);
}

static void add_group(struct tw_redis *redis)
{
	const struct tw_redis_task task = {
		.key = "g", .key_size = 1, .delay = TW_HOUR, .group = "g"};

	add_one(redis, &task);
}

static void groups_are_asked_for_at_most_a_twentieth_of_the_time(void **state)
{
	struct fixture *fixture = *state;
	struct figures *figures = calloc(1, sizeof(*figures));
	struct board *board;

	add_group(fixture->redis);
	atomic_store(&groups_questions, 0);
	atomic_store(&groups_take, 2);
	board = board_open();
	while (!figures->spaces[0].group_count)
		board_look(board, BOARD_COUNTS, figures);
	assert_string_equal(figures->spaces[0].groups[0].name, "g");
	assert_int_equal(atomic_load(&groups_questions), 1);
	for (int i = 0; i < 3; i++) {
		atomic_fetch_add(&ahead, 10);
		board_look(board, BOARD_ALL, figures);
		assert_int_equal(figures->spaces[0].group_count, 1);
		assert_int_equal(atomic_load(&groups_questions), 1);
	}
	atomic_fetch_add(&ahead, 10);
	while (atomic_load(&groups_questions) == 1)
		board_look(board, BOARD_COUNTS, figures);
	atomic_store(&groups_take, 0);
	board_stop(board);
	free(figures);
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
	if (listener && listener_serve(listener, NULL))
		assert_string_not_equal(listener_name(listener), listens.address);
	listener_close(listener);
	end_faults();
}

static void listener_meets_each_failure(void **state)
{
	assert_true(fail_each(FAULT_ALLOCATION, start_listener, NULL) > 0);
	assert_true(fail_each(FAULT_DESCRIPTOR, start_listener, NULL) > 0);
}

struct question {
	int port;
	const char *line; /* "GET / HTTP/1.1\r\nHost: localhost" */
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
	assert_non_null(size_shown);
	assert_non_null(strstr(reply, "\r\nCache-Control: no-store\r\n"));
	assert_non_null(strstr(reply, "\r\nX-Content-Type-Options: nosniff\r\n"));
	assert_int_equal(strtoul(size_shown + strlen("\r\nContent-Length: "), NULL, 10),
			 strlen(body + 4));
}

static void pages_meet_each_failure(void **state)
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
	struct fixture *fixture = *state;
	struct figures *figures = calloc(1, sizeof(*figures));
	struct board *board = board_open();
	struct listener *listener = listener_open(&listens);
	struct question question;

	add_group(fixture->redis);
	assert_true(listener && listener_serve(listener, board));
	question.port = atoi(strrchr(listener_name(listener), ':') + 1);
	put_letter(fixture->redis, "one");
	await_reason(board, figures, "one");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		question.line = lines[i];
		assert_true(fail_each(FAULT_ALLOCATION, ask, &question) > 0);
	}
	listener_close(listener);
	board_stop(board);
	free(figures);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(as_many_letters_are_read_again_after_half_a_minute),
		TEST(groups_are_asked_for_at_most_a_twentieth_of_the_time),
		TEST(board_meets_each_failure),
		cmocka_unit_test(worker_is_ready_with_a_redis_that_answers),
		cmocka_unit_test(oldest_due_task_is_never_due_in_the_future),
		cmocka_unit_test(listener_meets_each_failure),
		TEST(pages_meet_each_failure),
	};

	return FIXTURE_RUN(tests);
}
