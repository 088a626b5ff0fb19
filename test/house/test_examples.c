/* SPDX-License-Identifier: MIT */
/* The programs in test/examples do what they say. */
#include "support/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"

enum { OUTPUT_MOST = 8192, PATH_MOST = 512 };

/* Writes the path of an example. The test is skipped if the example was not built for want of a
 * library. */
static void example_path(const char *name, char path[PATH_MOST])
{
	const char *build = getenv("BUILD");

	snprintf(path, PATH_MOST, "%s/test/examples/%s", build ? build : "build", name);
	if (access(path, X_OK) != 0)
		TEST_SKIP("its library is missing: try 'make deps-ci'");
}

/* Runs an example, which must end without an error. */
static void run_example(const char *name, char output[OUTPUT_MOST])
{
	char path[PATH_MOST];
	FILE *pipe;
	size_t size;

	example_path(name, path);
	pipe = popen(path, "r");
	assert_non_null(pipe);
	size = fread(output, 1, OUTPUT_MOST - 1, pipe);
	output[size] = '\0';
	assert_int_equal(pclose(pipe), 0);
}

static size_t count_of(const char *output, const char *text)
{
	size_t count = 0;

	while ((output = strstr(output, text))) {
		output += strlen(text);
		count++;
	}
	return count;
}

TEST(once, cores_run_each_timer_once)
{
	char output[OUTPUT_MOST];

	(void)state;
	run_example("cores", output);
	assert_string_equal(output, "200000 of 200000 timers ran\n");
}

TEST(once, retry_backs_off_cancels_and_gives_up)
{
	char output[OUTPUT_MOST];

	(void)state;
	run_example("retry", output);
	assert_int_equal(count_of(output, "third time lucky, attempt"), 3);
	assert_int_equal(count_of(output, "third time lucky is done"), 1);
	/* In 121 s there are attempts at about 1, 2, 4, 8, 16, 32 and 92 s, one more or less. */
	assert_in_range(count_of(output, "hopeless, attempt"), 6, 9);
	assert_int_equal(count_of(output, "hopeless is given up"), 1);
	/* In 21 s. */
	assert_in_range(count_of(output, "cancelled, attempt"), 4, 6);
	assert_int_equal(count_of(output, " cancelled\n"), 1);
	assert_int_equal(count_of(output, "is done"), 1);
}

TEST(once, dump_writes_a_line_for_each_timer)
{
	char output[OUTPUT_MOST];

	(void)state;
	run_example("dump", output);
	assert_int_equal(count_of(output, "\n"), 1);
	assert_int_equal(count_of(output, "session\\x0a42: value (nil), in "), 1);
}

TEST(once, lookup_asks_once_a_key_and_outlives_its_database)
{
	char output[OUTPUT_MOST];

	(void)state;
	run_example("lookup", output);
	assert_string_equal(output,
			    "all threads are done: user 42 is name 42 (TW_OK), 100 queries\n"
			    "unknown: user 4711 is - (TW_NOT_FOUND), 101 queries\n"
			    "unknown again: user 4711 is - (TW_NOT_FOUND), 101 queries\n"
			    "statistics: 803 lookups, 101 loads\n"
			    "two minutes later: user 42 is name 42 (TW_OK), 102 queries\n"
			    "statistics: 804 lookups, 102 loads\n"
			    "the database fails: user 42 is name 42 (TW_STALE), 103 queries\n"
			    "it is back: user 42 is name 42 (TW_OK), 104 queries\n");
}

TEST(once, batch_loads_all_keys_by_few_queries)
{
	static const char found[] = "100 users found, 5 unknown";
	char output[OUTPUT_MOST];
	int queries = 0;
	char *second;

	(void)state;
	run_example("batch", output);
	assert_int_equal(count_of(output, found), 2);
	assert_int_equal(sscanf(output + sizeof(found), "%d queries", &queries), 1);
	assert_in_range(queries, 1, 50);
	/* The second time all are there. */
	second = strchr(output, '\n') + 1;
	assert_int_equal(second - output, strlen(second));
	assert_memory_equal(output, second, strlen(second));
}

/* Containers often deny it. */
static bool has_io_uring(void)
{
	return syscall(SYS_io_uring_setup, 0, NULL) == 0 || (errno != ENOSYS && errno != EPERM);
}

#define LOOP(name)                    \
	{                             \
#name, "loops/" #name \
	}
static const struct test_kind kind_loops = {
	.variants = TEST_VARIANTS(LOOP(epoll), LOOP(libuv), LOOP(libevent), LOOP(io_uring),
				  LOOP(glib), LOOP(asio)),
};

TEST(loops, loop_runs_the_wheel_in_both_ways)
{
	char output[OUTPUT_MOST];

	if (strcmp(*state, "loops/io_uring") == 0 && !has_io_uring())
		TEST_SKIP("the system denies io_uring");
	run_example(*state, output);
	assert_string_equal(output, "first\nmoved\nanother thread's timer\n"
				    "first\nmoved\n");
}

/* ---- The server ---- */

enum { CONNECTIONS_MOST = TEST_HAS_SANITIZER ? 1000 : 10000, ACTIVE = 10, TRIES = 20 };

#define IDLE (1000 * TW_MILLISECOND)

struct client {
	int socket; /* -1 after the server has closed it */
	tw_duration connected_at;
};

struct clients {
	pid_t server;
	struct sockaddr_in address;
	struct client client[CONNECTIONS_MOST]; /* the first are active */
	size_t count;
	tw_duration last_active;
	tw_duration longest_pause; /* maximum over all active ones */
};

static tw_duration now(void)
{
	return clock_read_real(CLOCK_MONOTONIC);
}

/* Leaves half of the permitted descriptors for other things. */
static size_t connections_possible(void)
{
	struct rlimit limit;
	size_t possible;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	possible = limit.rlim_max / 2;
	return possible < CONNECTIONS_MOST ? possible : CONNECTIONS_MOST;
}

static struct sockaddr_in free_address(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int any = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(any, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(any, (struct sockaddr *)&address, &size), 0);
	close(any);
	return address;
}

static void server_start(struct clients *clients)
{
	char path[PATH_MOST];
	char port[16];

	example_path("tcp_server", path);
	clients->address = free_address();
	snprintf(port, sizeof(port), "%u", ntohs(clients->address.sin_port));
	clients->server = fork();
	assert_true(clients->server >= 0);
	if (clients->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, port, "1000", (char *)NULL);
		_exit(127);
	}
}

static void server_end(const struct clients *clients)
{
	int status;

	kill(clients->server, SIGTERM);
	assert_int_equal(waitpid(clients->server, &status, 0), clients->server);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static bool client_connect(struct clients *clients, struct client *client)
{
	client->socket = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(client->socket >= 0);
	client->connected_at = now();
	if (connect(client->socket, (struct sockaddr *)&clients->address,
		    sizeof(clients->address)) == 0)
		return true;
	close(client->socket);
	return false;
}

/* The server may not have started yet. */
static void connect_first(struct clients *clients)
{
	while (!client_connect(clients, &clients->client[0])) {
		assert_int_equal(errno, ECONNREFUSED);
		assert_int_equal(waitpid(clients->server, NULL, WNOHANG), 0);
		wait_for(10 * TW_MILLISECOND);
	}
}

/* Sends a byte on each active connection. Returns false if one was closed. */
static bool be_active(struct clients *clients)
{
	tw_duration pause;
	char byte = 'x';

	for (size_t i = 0; i < ACTIVE; i++)
		if (send(clients->client[i].socket, &byte, 1, MSG_NOSIGNAL) != 1 ||
		    recv(clients->client[i].socket, &byte, 1, 0) != 1)
			return false;
	pause = now() - clients->last_active;
	clients->last_active = now();
	if (pause > clients->longest_pause)
		clients->longest_pause = pause;
	return true;
}

/* Closes the connections that the server has closed, none before its time. Returns how many are
 * open. */
static size_t count_open(struct clients *clients)
{
	size_t open = 0;
	char byte;

	for (size_t i = ACTIVE; i < clients->count; i++) {
		struct client *client = &clients->client[i];

		if (client->socket < 0)
			continue;
		if (recv(client->socket, &byte, 1, MSG_DONTWAIT) != 0) {
			open++;
			continue;
		}
		assert_true(now() - client->connected_at >= IDLE);
		close(client->socket);
		client->socket = -1;
	}
	return open;
}

/* Returns false if the server has closed an active connection. */
static bool idle_ones_are_closed_alone(struct clients *clients)
{
	bool active = true;

	clients->last_active = now();
	for (size_t i = 1; i < clients->count && active; i++) {
		assert_true(client_connect(clients, &clients->client[i]));
		/* All active clients are connected from here on. */
		if (i >= ACTIVE && i % 64 == 0)
			active = be_active(clients);
	}
	while (active && count_open(clients) > 0) {
		wait_for(20 * TW_MILLISECOND);
		active = be_active(clients);
	}
	return active && be_active(clients);
}

static void close_all(struct clients *clients)
{
	for (size_t i = 0; i < clients->count; i++)
		if (clients->client[i].socket >= 0)
			close(clients->client[i].socket);
}

/* On a busy machine the test itself may be idle for too long, and tries again, later with less. */
TEST(once, server_closes_idle_connections_and_no_others)
{
	static struct clients clients;
	bool right = false;

	(void)state;
	for (int i = 0; i < TRIES && !right; i++) {
		memset(&clients, 0, sizeof(clients));
		for (size_t j = 0; j < CONNECTIONS_MOST; j++)
			clients.client[j].socket = -1;
		clients.count = connections_possible() >> i / 4;
		server_start(&clients);
		connect_first(&clients);
		right = idle_ones_are_closed_alone(&clients);
		clients.longest_pause += now() - clients.last_active;
		close_all(&clients);
		server_end(&clients);
		assert_true(right || clients.longest_pause > IDLE / 2);
	}
	assert_true(right);
}
