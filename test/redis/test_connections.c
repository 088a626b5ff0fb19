/* SPDX-License-Identifier: MIT */
/* These tests connect in every way: TLS and its refusals, unix sockets, several addresses, time
 * limits. */
#include "support/fixture.h"

#include <dlfcn.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <openssl/err.h>

#include "support/false_server.h"
#include "support/proxy.h"
#include "support/runs.h"
#include "support/sockets.h"
#include "redis/wire/tls.h"

enum { URL_SIZE = 1200, PATH_SIZE = 320 };

static struct redis_server server;
static char url[URL_SIZE];
static char ca[PATH_SIZE];

static int open_server(void **state)
{
	*state = NULL;
	redis_server_start(&server, &(struct redis_server_options){.tls = true});
	snprintf(ca, sizeof(ca), "%s/ca.pem", server.folder);
	return 0;
}

static int close_server(void **state)
{
	redis_server_stop(&server);
	return 0;
}

/* Each test begins with the server's valid certificate, and clients need none. */
static int reset_server(void **state)
{
	redis_server_number(&server, "CONFIG SET tls-cert-file server.pem tls-auth-clients no");
	snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", server.tls_port);
	return 0;
}

static const struct test_kind kind_opened = {.open = reset_server};

static struct tw_redis_options secure_options(void)
{
	return (struct tw_redis_options){.url = url, .shards = 4, .ca_file = ca};
}

/* Opening with these options returns that status and that text. */
static void assert_refused(const struct tw_redis_options *options, enum tw_status expected,
			   const char *words)
{
	struct tw_redis_error error = {0};
	struct tw_redis *redis;
	enum tw_status status = tw_redis_open(&redis, options, &error);

	if (status != expected || error.status != status || !strstr(error.text, words))
		fail_msg("%s: %s", tw_status_name(status), error.text);
	assert_null(redis);
}

TEST(opened, tasks_and_their_worker_go_over_tls)
{
	struct tw_redis_options options = secure_options();
	struct tw_redis_worker *worker;
	struct tw_redis *redis = client_open(&options);

	worker = WORK_AT(&options);
	add_tasks(redis, 50, 0, 20 * TW_MILLISECOND);
	WAIT_UNTIL(ends_count() == 50);
	assert_each_ran(50, 1);
	/* Hints come over TLS as well. */
	add_task(redis, "later", 200 * TW_MILLISECOND);
	WAIT_UNTIL(worker_stats(worker).hints > 0);
	/* Its end must not reach the next test. */
	WAIT_UNTIL(ends_count() == 51);
	worker_stop(worker);
}

TEST(opened, large_body_goes_over_tls)
{
	const struct tw_redis_options options = secure_options();
	struct tw_redis *redis = client_open(&options);
	struct tw_redis_task task = {.key = "large", .key_size = 5, .body_size = TW_REDIS_BODY_MAX};
	struct tw_redis_batch *batch;
	char *body = malloc(TW_REDIS_BODY_MAX);

	for (size_t i = 0; i < TW_REDIS_BODY_MAX; i++)
		body[i] = (char)(i * 31 >> 3);
	task.body = body;
	add_one(redis, &task);
	batch = await_claim(redis, "large", TW_MINUTE);
	assert_int_equal(only_job(batch)->body_size, TW_REDIS_BODY_MAX);
	assert_memory_equal(only_job(batch)->body, body, TW_REDIS_BODY_MAX);
	assert_int_equal(finish_job(redis, batch, TW_REDIS_DONE), TW_OK);
	client_close(redis);
	free(body);
}

/* These are a certificate that the server presents, whether it wants one too, and the options of
 * the client's URL, in which $ is the folder. */
static const struct {
	const char *presented;
	bool wants_one;
	const char *options;
	enum tw_status status;
	const char *words;
} handshakes[] = {
	{"elsewhere.pem", false, "ca_file=$/ca.pem", TW_REDIS_UNFIT, "IP address mismatch"},
	{"elsewhere.pem", false, "ca_file=$/ca.pem&server_name=elsewhere.example", TW_OK, ""},
	{"server.pem", false, "ca_file=$/ca.pem&server_name=elsewhere.example", TW_REDIS_UNFIT,
	 "ostname mismatch"},
	{"server.pem", false, "ca_file=$/ca.pem&server_name=127.0.0.1", TW_OK, ""},
	{"server.pem", false, "ca_file=$/ca.pem&server_name=::1", TW_REDIS_UNFIT,
	 "IP address mismatch"},
	{"expired.pem", false, "ca_file=$/ca.pem", TW_REDIS_UNFIT, "certificate has expired"},
	{"server.pem", false, "ca_file=$/other.pem", TW_REDIS_UNFIT, "the server's certificate: "},
	/* The system's store lacks our authority. */
	{"server.pem", false, "", TW_REDIS_UNFIT, "the server's certificate: "},
	{"server.pem", true, "ca_file=$/ca.pem", TW_REDIS_UNREACHABLE, ""},
	{"server.pem", true, "ca_file=$/ca.pem&certificate_file=$/client.pem&key_file=$/key.pem",
	 TW_OK, ""},
	/* The server does not trust this authority. */
	{"server.pem", true, "ca_file=$/ca.pem&certificate_file=$/other.pem&key_file=$/key.pem",
	 TW_REDIS_UNREACHABLE, ""},
	{"server.pem", false, "ca_file=/nowhere/ca.pem", TW_INVALID, "/nowhere/ca.pem"},
	{"server.pem", false, "certificate_file=$/ca.pem", TW_INVALID, "key"},
	/* This key belongs to another certificate. */
	{"server.pem", false, "certificate_file=$/ca.pem&key_file=$/key.pem", TW_INVALID, "key"},
};

TEST(opened, certificates_are_judged)
{
	const struct tw_redis_options options = {.url = url, .shards = 4};

	for (size_t i = 0; i < sizeof(handshakes) / sizeof(handshakes[0]); i++) {
		size_t used = (size_t)snprintf(url, sizeof(url), "rediss://127.0.0.1:%d?timeout=10",
					       server.tls_port);

		if (*handshakes[i].options)
			url[used++] = '&';
		for (const char *at = handshakes[i].options; *at; at++)
			used += (size_t)snprintf(url + used, sizeof(url) - used, "%.*s",
						 *at == '$' ? INT_MAX : 1,
						 *at == '$' ? server.folder : at);
		redis_server_number(&server, "CONFIG SET tls-cert-file %s tls-auth-clients %s",
				    handshakes[i].presented,
				    handshakes[i].wants_one ? "yes" : "no");
		print_message("%s of %s\n", url, handshakes[i].presented);
		if (handshakes[i].status == TW_OK)
			client_close(client_open(&options));
		else
			assert_refused(&options, handshakes[i].status, handshakes[i].words);
	}
}

TEST(opened, system_may_have_the_authority)
{
	setenv("SSL_CERT_FILE", ca, 1);
	client_close(client_open(&(struct tw_redis_options){.url = url, .shards = 4}));
	unsetenv("SSL_CERT_FILE");
}

/* No file can have such a long name. The reason must not be cut off. */
TEST(opened, name_that_no_file_can_have_is_refused)
{
	char longer[PATH_MAX + 10];
	struct tw_redis_options options = {.url = url, .certificate_file = ca, .key_file = longer};

	memset(longer, 'n', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_refused(&options, TW_INVALID, "too long");
	options.certificate_file = longer;
	assert_refused(&options, TW_INVALID, "too long");
	options.ca_file = longer;
	assert_refused(&options, TW_INVALID, "too long");
}

TEST(opened, error_of_openssl_without_a_text_has_words)
{
	char text[64];

	ERR_raise(ERR_LIB_USER, 77);
	tls_explain(NULL, text, sizeof(text));
	assert_string_equal(text, "an error without a message");
	/* No error may be left in the queue of OpenSSL, which the caller may use. */
	assert_int_equal(ERR_peek_error(), 0);
}

/* This is a server that treats one connection so. */
struct peer {
	int port;
	int listener;
	pthread_t thread;
	void (*meet)(int descriptor);
};

static void *peer_serve(void *argument)
{
	const struct peer *peer = argument;
	int descriptor = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);

	if (descriptor < 0)
		support_failed("accept4");
	peer->meet(descriptor);
	close(descriptor);
	return NULL;
}

static void peer_start(struct peer *peer, void (*meet)(int descriptor))
{
	*peer = (struct peer){.meet = meet};
	peer->listener = socket_listen(&peer->port);
	assert_int_equal(pthread_create(&peer->thread, NULL, peer_serve, peer), 0);
}

static void peer_end(struct peer *peer)
{
	pthread_join(peer->thread, NULL);
	close(peer->listener);
}

static void take_and_hang_up(int descriptor)
{
	char hello[4096];

	/* Reading all of it avoids a reset. */
	assert_true(recv(descriptor, hello, sizeof(hello), 0) > 0);
}

static void reset(int descriptor)
{
	const struct linger at_once = {.l_onoff = 1};
	char byte;

	assert_int_equal(recv(descriptor, &byte, 1, 0), 1);
	setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

TEST(opened, server_that_ends_a_handshake_is_reported)
{
	struct tw_redis_options options = secure_options();
	struct peer peer;

	peer_start(&peer, take_and_hang_up);
	snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", peer.port);
	assert_refused(&options, TW_REDIS_UNREACHABLE, "TLS: the server closed the connection");
	peer_end(&peer);
	peer_start(&peer, reset);
	snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", peer.port);
	assert_refused(&options, TW_REDIS_UNREACHABLE, "TLS: Connection reset");
	peer_end(&peer);
}

static void send_without_end(int descriptor)
{
	static char data[1 << 20];
	static const char start[] = "$1000000000\r\n";

	for (bool fine = socket_send(descriptor, start, sizeof(start) - 1); fine;)
		fine = socket_send(descriptor, data, sizeof(data));
}

TEST(opened, reply_without_end_is_not_taken)
{
	const struct tw_redis_options options = {.url = url, .reply_timeout = TW_HOUR};
	struct peer peer;

	peer_start(&peer, send_without_end);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", peer.port);
	assert_refused(&options, TW_REDIS_UNREACHABLE, "the reply is too large");
	peer_end(&peer);
}

/* The server closes every connection except the test's own, with TLS's close_notify. */
TEST(opened, closed_connection_with_tls_is_opened_again)
{
	const struct tw_redis_options options = secure_options();
	struct tw_redis *redis = client_open(&options);

	add_task(redis, "closed", TW_HOUR);
	assert_true(redis_server_number(&server, "CLIENT KILL TYPE normal SKIPME yes") > 0);
	assert_int_equal(cancel_task(redis, "closed"), TW_OK);
}

/* The request is longer than the sockets' buffers. */
static void assert_nothing_is_taken(const char *at)
{
	enum { TASKS = 24 };
	const struct tw_redis_options options = {
		.url = at, .shards = 4, .ca_file = ca, .patience = -1, .reply_timeout = TW_SECOND};
	struct tw_redis *redis = client_open(&options);
	struct tw_redis_task tasks[TASKS];
	char keys[TASKS][KEY_SIZE];
	char *body = calloc(1, TW_REDIS_BODY_MAX);
	struct tw_redis_error error;
	enum tw_status status;
	int64_t before = wall_clock();

	for (int i = 0; i < TASKS; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){.key = keys[i],
						  .key_size = strlen(keys[i]),
						  .body = body,
						  .body_size = TW_REDIS_BODY_MAX};
	}
	kill(server.pid, SIGSTOP);
	status = tw_redis_add(redis, tasks, TASKS, NULL);
	kill(server.pid, SIGCONT);
	assert_int_equal(status, TW_REDIS_OUTCOME_UNKNOWN);
	assert_in_range(wall_clock() - before, TW_SECOND, 10 * TW_SECOND);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "the server accepts no data"));
	/* The connection works as before. */
	add_task(redis, "taken", TW_HOUR);
	assert_int_equal(cancel_task(redis, "taken"), TW_OK);
	client_close(redis);
	free(body);
}

TEST(opened, server_that_takes_nothing_is_given_up_in_time)
{
	char plain[URL_SIZE];

	snprintf(plain, sizeof(plain), "redis://127.0.0.1:%d", server.port);
	assert_nothing_is_taken(plain);
	assert_nothing_is_taken(url);
}

TEST(opened, plain_port_is_no_port_for_tls)
{
	struct tw_redis_options options = secure_options();
	int64_t before = wall_clock();

	options.connect_timeout = TW_SECOND;
	snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", server.port);
	assert_refused(&options, TW_REDIS_UNREACHABLE, "TLS");
	assert_true(wall_clock() - before < 5 * TW_SECOND);
	/* A TLS port does not speak plain text either. */
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.tls_port);
	assert_refused(&options, TW_REDIS_UNREACHABLE, "");
}

TEST(opened, unix_socket_is_a_server_too)
{
	struct tw_redis_options options = {.url = url, .shards = 4, .client_name = "by-path"};
	char path[PATH_SIZE];
	struct tw_redis *redis;

	redis_server_path(&server, "redis.sock", path, sizeof(path));
	snprintf(url, sizeof(url), "redis+unix://%s?database=3", path);
	redis = client_open(&options);
	add_task(redis, "a", 0);
	assert_int_equal(redis_server_says(&server, "CLIENT LIST", "name=by-path"), 1);
	redis_server_number(&server, "SELECT 3");
	assert_int_equal(redis_server_number(&server, "EXISTS {tw/default}layout"), 1);
	redis_server_number(&server, "SELECT 0");
	client_close(redis);
	redis_server_path(&server, "nothing.sock", path, sizeof(path));
	snprintf(url, sizeof(url), "redis+unix://%s", path);
	assert_refused(&options, TW_REDIS_UNREACHABLE, "nothing.sock");
}

static void *open_by_path(void *argument)
{
	struct tw_redis *redis = NULL;
	enum tw_status status = tw_redis_open(&redis, argument, NULL);

	client_close(redis);
	return VALUE(status);
}

/* Listens with a full queue: the fillers take all of its places. */
static int crowded_listen(const char *path, int fillers[2])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.107s", path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (int i = 0; i < 2; i++) {
		fillers[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fillers[i], (struct sockaddr *)&address, sizeof(address));
	}
	assert_int_equal(errno, EAGAIN);
	return listener;
}

TEST(opened, unix_socket_with_a_full_queue_is_waited_for)
{
	struct tw_redis_options options = {.url = url, .shards = 4};
	char path[PATH_SIZE];
	struct false_server crowded;
	int64_t before = wall_clock();
	pthread_t thread;
	void *status;
	int fillers[2];
	int listener;

	redis_server_path(&server, "crowded.sock", path, sizeof(path));
	snprintf(url, sizeof(url), "redis+unix://%s", path);
	listener = crowded_listen(path, fillers);
	options.connect_timeout = 200 * TW_MILLISECOND;
	assert_refused(&options, TW_REDIS_UNREACHABLE, path);
	assert_in_range(wall_clock() - before, 200 * TW_MILLISECOND, 5 * TW_SECOND - 1);
	/* There is room now. */
	options.connect_timeout = TW_MINUTE;
	pthread_create(&thread, NULL, open_by_path, &options);
	wait_for(50 * TW_MILLISECOND);
	false_server_start_at(&crowded, listener);
	pthread_join(thread, &status);
	assert_ptr_equal(status, VALUE(TW_OK));
	close(fillers[0]);
	close(fillers[1]);
	false_server_stop(&crowded);
}

TEST(opened, first_address_that_answers_is_taken)
{
	const struct tw_redis_options options = {.url = url, .shards = 4};
	struct tw_redis *redis;

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d,127.0.0.1:%d", port_free(), server.port);
	redis = client_open(&options);
	add_task(redis, "several", 0);
	assert_int_equal(cancel_task(redis, "several"), TW_OK);
	client_close(redis);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d,127.0.0.1:%d", port_free(), port_free());
	assert_refused(&options, TW_REDIS_UNREACHABLE, strerror(ECONNREFUSED));
}

/* These ports of 127.0.0.1 stand for the addresses of the host "two.invalid". */
static int two_ports[2];

typedef int lookup_fn(const char *host, const char *service, const struct addrinfo *hints,
		      struct addrinfo **found);

/* This replaces libc's. */
__attribute__((visibility("default"))) int getaddrinfo(const char *restrict host,
						       const char *restrict service,
						       const struct addrinfo *restrict hints,
						       struct addrinfo **restrict found)
{
	union {
		void *address;
		lookup_fn *function;
	} next = {.address = dlsym(RTLD_NEXT, "getaddrinfo")};
	int failed = 0;

	if (host && !strcmp(host, "none.invalid"))
		return EAI_NONAME;
	if (!host || strcmp(host, "two.invalid"))
		return next.function(host, service, hints, found);
	/* libc frees the entries of a list one by one. */
	for (int i = 0; i < 2 && !failed; i++) {
		char port[8];

		snprintf(port, sizeof(port), "%d", two_ports[i]);
		failed = next.function("127.0.0.1", port, hints, found);
		found = &(*found)->ai_next;
	}
	return failed;
}

/* Listens on a port whose queue is full, so it neither accepts nor refuses. */
static int silent_listen(int *port, int fillers[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket_listen(port);

	assert_int_equal(listen(listener, 0), 0);
	address.sin_port = htons((uint16_t)*port);
	for (int i = 0; i < 2; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fillers[i], (struct sockaddr *)&address, sizeof(address));
	}
	return listener;
}

TEST(opened, silent_address_of_a_name_leaves_time_for_the_next)
{
	const struct tw_redis_options options = {
		.url = "redis://two.invalid", .shards = 4, .connect_timeout = TW_SECOND};
	int fillers[2];
	int listener = silent_listen(&two_ports[0], fillers);
	int64_t before = wall_clock();
	struct tw_redis *redis;

	two_ports[1] = server.port;
	/* A machine that stops this process uses up the limit. */
	WAIT_UNTIL(tw_redis_open(&redis, &options, NULL) == TW_OK);
	client_close(redis);
	/* The first address had its share. */
	assert_true(wall_clock() - before >= 400 * TW_MILLISECOND);
	/* Both share one limit. */
	two_ports[1] = two_ports[0];
	before = wall_clock();
	assert_refused(&options, TW_REDIS_UNREACHABLE, strerror(ETIMEDOUT));
	assert_in_range(wall_clock() - before, 900 * TW_MILLISECOND, 10 * TW_SECOND);
	/* The first address works. */
	two_ports[0] = server.port;
	client_close(client_open(&options));
	close(fillers[0]);
	close(fillers[1]);
	close(listener);
}

TEST(opened, name_without_an_address_is_reported)
{
	const struct tw_redis_options options = {.url = "redis://none.invalid"};

	assert_refused(&options, TW_REDIS_UNREACHABLE, gai_strerror(EAI_NONAME));
}

TEST(opened, time_limits_may_be_unlimited)
{
	const struct tw_redis_options options = {.url = url,
						 .shards = 4,
						 .connect_timeout = TW_FOREVER,
						 .reply_timeout = TW_FOREVER};
	struct tw_redis *redis;

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
	redis = client_open(&options);
	add_task(redis, "patient", 0);
	assert_int_equal(cancel_task(redis, "patient"), TW_OK);
}

TEST(opened, connections_have_a_name_and_keepalive)
{
	struct tw_redis_options options = {.url = url, .shards = 4};
	struct tw_redis_worker *worker;

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d?client_name=billing", server.port);
	client_open(&options);
	assert_int_equal(redis_server_says(&server, "CLIENT LIST", "name=billing "), 1);
	worker = WORK_AT(&options);
	/* The worker has one connection, and one for hints. */
	WAIT_UNTIL(redis_server_says(&server, "CLIENT LIST", "name=billing ") == 3);
	worker_stop(worker);
	options.client_name = "two words";
	assert_refused(&options, TW_INVALID, "name");
}

TEST(opened, reply_that_drips_has_one_deadline)
{
	const struct tw_redis_options options = {.url = url, .shards = 4, .patience = -1};
	struct tw_redis *redis;
	struct proxy proxy;
	int64_t before;

	proxy_start(&proxy, server.port);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d?timeout=1.5", proxy.port);
	redis = client_open(&options);
	add_task(redis, "slow", TW_HOUR);
	proxy_drip(&proxy, 100);
	before = wall_clock();
	assert_int_equal(find_task(redis, "slow").status, TW_REDIS_UNREACHABLE);
	assert_true(wall_clock() - before < 5 * TW_SECOND);
	proxy_drip(&proxy, 0);
	proxy_stop(&proxy);
}

TEST_FILE(open_server, close_server)
