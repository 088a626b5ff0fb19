/* SPDX-License-Identifier: MIT */
/*
 * What do calls to Redis cost their client? They are answered by a redis-server, which is not
 * counted. Locked instructions are those of our code alone: the libraries are shared ones here.
 *
 * The linker puts the functions here in place of send() and recv(). A client finds the reply at its
 * first attempt, so the counts do not depend on the server's pace.
 */
#include "costs.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <valgrind/callgrind.h>

#include <timingwheel/redis.h>

#include "support/redis_server.h"

enum { ADDS = 512, MANY = 64 };

static struct tw_redis *redis;
static unsigned first;

/* A request was sent, and no part of its reply received. */
static bool is_waiting;

ssize_t __real_send(int descriptor, const void *data, size_t size, int flags);
ssize_t __wrap_send(int descriptor, const void *data, size_t size, int flags);
ssize_t __wrap_send(int descriptor, const void *data, size_t size, int flags)
{
	is_waiting = true;
	return __real_send(descriptor, data, size, flags);
}

ssize_t __real_recv(int descriptor, void *data, size_t size, int flags);
ssize_t __wrap_recv(int descriptor, void *data, size_t size, int flags);
ssize_t __wrap_recv(int descriptor, void *data, size_t size, int flags)
{
	struct pollfd waited = {.fd = descriptor, .events = POLLIN};

	CALLGRIND_TOGGLE_COLLECT;
	if (is_waiting)
		(void)poll(&waited, 1, -1);
	is_waiting = false;
	CALLGRIND_TOGGLE_COLLECT;
	return __real_recv(descriptor, data, size, flags);
}

static struct tw_redis_task task_of(unsigned i)
{
	static const char body[64] = "{\"order\":7}";

	return (struct tw_redis_task){.key = keys[first + i],
				      .key_size = KEY_SIZE,
				      .delay = TW_HOUR,
				      .body = body,
				      .body_size = sizeof(body)};
}

static void add_one(unsigned i)
{
	const struct tw_redis_task task = task_of(i);

	MUST(tw_redis_add(redis, &task, 1, NULL));
}

static void cancel_one(unsigned i)
{
	MUST(tw_redis_cancel(redis, keys[first + i], KEY_SIZE, TW_REDIS_OCCURRENCE));
}

static void add_many(unsigned i)
{
	struct tw_redis_task tasks[MANY];

	for (unsigned k = 0; k < MANY; k++)
		tasks[k] = task_of(i * MANY + k);
	MUST(tw_redis_add(redis, tasks, MANY, NULL));
}

int main(void)
{
	struct tw_redis_options options = {.shards = 1};
	struct redis_server server;

	costs_init();
	redis_server_start(&server, NULL);
	options.url = server.url;
	MUST(tw_redis_open(&redis, &options, NULL));
	/* The first calls load the scripts and bind the program's functions. */
	for (unsigned i = 0; i < 2 * MANY; i++)
		add_one(i);
	add_many(0);
	cancel_one(0);

	first = costs_n;
	measure("redis.add", ADDS, add_one);
	measure("redis.cancel", ADDS, cancel_one);
	phase_begin();
	for (unsigned i = 0; i < ADDS / MANY; i++)
		add_many(i);
	phase_end("redis.add_many_64", ADDS);
	tw_redis_close(redis);
	redis_server_stop(&server);
	return 0;
}
