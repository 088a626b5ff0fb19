/* SPDX-License-Identifier: MIT */
/*
 * In every call of a tw_redis each allocation (other libraries' too), each thread and each
 * descriptor fails in turn. Calls that open and start something have every other allocation fail. A
 * call that fails reports it, and the next one works. The run with the address sanitizer finds
 * leaks.
 */
#include "support/fixture.h"

#include "redis/client/client.h"

#include "faults/faults.h"
#include "support/calls.h"
#include "support/http_server.h"
#include "support/runs.h"

/* A stage is a client of a new namespace, where the call finds what its name asks for. */
struct stage {
	struct fixture *fixture;
	const char *name;
	enum tw_status (*call)(struct tw_redis *redis);
	struct tw_redis *redis;
	enum tw_redis_durability durability;
};

static const char *const headers[] = {"A: b", "C: d"};

static enum tw_status call_open_beside(struct tw_redis *redis)
{
	struct tw_redis *beside = NULL;
	enum tw_status status = tw_redis_open_beside(redis, "beside", 4, &beside, NULL);

	assert_int_equal(status == TW_OK, beside != NULL);
	client_close(beside);
	return status;
}

static struct tw_redis_task callback(const char *key)
{
	return (struct tw_redis_task){.key = key,
				      .key_size = strlen(key),
				      .delay = TW_HOUR,
				      .url = "http://127.0.0.1:1/",
				      .headers = headers,
				      .header_count = 2,
				      .body = "{}",
				      .body_size = 2};
}

static struct tw_redis_options options_of(struct fixture *fixture)
{
	struct tw_redis_options options = fixture->options;

	/* This allows one attempt. */
	options.patience = -1;
	options.client_name = "faults";
	return options;
}

static void key_of_shard(const struct tw_redis *redis, unsigned shard, int number,
			 char key[KEY_SIZE])
{
	for (int i = 0; i == 0 || shard_of(redis, key) != shard; i++)
		snprintf(key, KEY_SIZE, "letter-%d-%d", number, i);
}

/* The calls are about the key "a": a task on lease, a dead letter or a callback. */
static void stage_open(struct stage *stage)
{
	struct fixture *fixture = stage->fixture;
	struct tw_redis_options options = options_of(fixture);
	const struct tw_redis_task with_callback = callback("a");
	const struct tw_redis_task grouped = {
		.key = "grouped", .key_size = 7, .delay = TW_HOUR, .group = "g"};
	struct tw_redis_info letter = {.task = with_callback, .state = TW_REDIS_DEAD};
	char key[KEY_SIZE];

	fixture_close((void **)&(struct fixture *){fixture});
	fixture_open((void **)&(struct fixture *){fixture});
	options.name_space = fixture->name_space;
	options.durability = stage->durability;
	if (strstr("dead_retry dead_drop", stage->name))
		assert_ok(fixture->redis, tw_redis_restore(fixture->redis, &letter, 1, NULL));
	else
		add_one(fixture->redis, &with_callback);
	if (strstr("ack extend fail release", stage->name))
		redis_server_number(&fixture->server, "HSET {tw/%s/3}state s7 1",
				    fixture->name_space);
	add_one(fixture->redis, &grouped);
	assert_ok(fixture->redis,
		  tw_redis_set_limits(fixture->redis, "g", &(struct tw_redis_limits){.weight = 2}));
	/* A claim finds the last one. The others are in one shard, so a listing that fails at the
	 * first has another before it. */
	for (int i = 0; i < 3; i++) {
		key_of_shard(fixture->redis, 0, i, key);
		letter.task = callback(key);
		letter.reason = "why";
		if (i < 2)
			assert_ok(fixture->redis,
				  tw_redis_restore(fixture->redis, &letter, 1, NULL));
	}
	add_task(fixture->redis, key, 0);
	stage->redis = client_open(&options);
}

static void assert_failure(enum tw_status status)
{
	if (status != TW_REDIS_UNREACHABLE && status != TW_REDIS_OUTCOME_UNKNOWN &&
	    status != TW_SYSTEM)
		assert_string_equal(tw_status_name(status), "TW_NO_MEMORY");
}

/* The call may have been done if the reply was lost. */
static void assert_done_or_gone(struct stage *stage)
{
	enum tw_status status = stage->call(stage->redis);

	if (status != TW_NOT_FOUND && status != TW_REDIS_STALE)
		assert_ok(stage->redis, status);
}

static void call_with_fault(void *context)
{
	struct stage *stage = context;
	struct call *other;
	enum tw_status status;
	bool met;

	stage_open(stage);
	/* Another thread's call has what the client keeps. */
	other = call_begin(stage->redis->access, 1);
	begin_faults();
	status = stage->call(stage->redis);
	met = end_faults();
	call_end(other, TW_OK);
	if (status != TW_OK) {
		if (!met)
			fail_msg("%s: %s", stage->name, tw_status_name(status));
		assert_failure(status);
		assert_done_or_gone(stage);
	}
	client_close(stage->redis);
}

TEST(fixture, each_call_meets_each_failure)
{
	for (size_t i = 0; i <= redis_call_count; i++) {
		struct stage stage = {
			.fixture = *state, .name = "open_beside", .call = call_open_beside};

		if (i < redis_call_count) {
			stage.name = redis_calls[i].name;
			stage.call = redis_calls[i].call;
		}
		(void)fail_each(FAULT_ALLOCATION, call_with_fault, &stage);
		(void)fail_each(FAULT_DESCRIPTOR, call_with_fault, &stage);
	}
}

/* The wait after a change is a request of its own. */
TEST(fixture, waited_call_meets_each_failure)
{
	struct stage stage = {.fixture = *state, .durability = TW_REDIS_DURABLE_REPLICA};
	struct redis_server *server = &stage.fixture->server;
	struct redis_server replica;

	redis_server_start(&replica, &(struct redis_server_options){.replica_of = server->port});
	WAIT_UNTIL(redis_server_number(server, "INCRBY {tw/x}a 1") > 0 &&
		   redis_server_number(server, "WAIT 1 1000") == 1);
	for (size_t i = 0; i < redis_call_count; i++) {
		stage.name = redis_calls[i].name;
		stage.call = redis_calls[i].call;
		if (strstr("add set_limits", stage.name))
			(void)fail_each(FAULT_ALLOCATION, call_with_fault, &stage);
	}
	redis_server_stop(&replica);
}

/* Nothing of the request was sent, so another connection sends it again. */
STORED(fixture, request_that_cannot_be_written_is_sent_again)
{
	stats_of(fixture->redis);
	fail_calls("send", EPIPE);
	assert_ok(fixture->redis, try_add(fixture->redis, "once", TW_HOUR, TW_REDIS_NEW));
	assert_true(end_faults());
}

/* The next claim finds the time that this one has not found or reported. */
static void claim_calendar_with_fault(void *context)
{
	static const struct tw_redis_task task = {.key = "daily",
						  .key_size = 5,
						  .cron = "@daily",
						  .zone = "Europe/Berlin",
						  .url = "http://127.0.0.1:1/"};
	struct fixture *fixture = context;
	struct tw_redis_batch *batch;
	struct tw_redis_options options;
	enum tw_status status;
	struct tw_redis *redis;
	struct found found;
	bool met;

	fixture_close((void **)&(struct fixture *){fixture});
	fixture_open((void **)&(struct fixture *){fixture});
	options = options_of(fixture);
	redis = client_open(&options);
	add_one(fixture->redis, &task);
	assert_ok(fixture->redis, move_task(fixture->redis, "daily", 0));
	begin_faults();
	status = tw_redis_claim(redis, shard_of(redis, "daily"), 1, 10 * TW_MILLISECOND, &batch,
				NULL);
	met = end_faults();
	if (status != TW_OK) {
		assert_true(met);
		assert_failure(status);
		assert_null(batch);
	}
	/* The next lease is long enough for the rest. */
	claim_end(batch);
	batch = await_claim(fixture->redis, "daily", TW_MINUTE);
	assert_int_equal(finish_job(fixture->redis, batch, TW_REDIS_DONE), TW_OK);
	claim_end(batch);
	assert_nothing_due(fixture->redis, "daily");
	found = find_task(fixture->redis, "daily");
	assert_int_equal(found.state, TW_REDIS_PENDING);
	assert_true(found.due_ms > found.now_ms);
	client_close(redis);
}

TEST(fixture, claim_of_a_calendar_meets_each_failure)
{
	assert_true(fail_each(FAULT_ALLOCATION, claim_calendar_with_fault, *state) > 3);
	assert_true(fail_each(FAULT_DESCRIPTOR, claim_calendar_with_fault, *state) > 0);
}

static void open_with_fault(void *context)
{
	const struct tw_redis_options *options = context;
	struct tw_redis_error error = {0};
	int anything;
	struct tw_redis *redis = (void *)&anything;
	enum tw_status status;
	bool met;

	begin_faults();
	status = tw_redis_open(&redis, options, &error);
	met = end_faults();
	assert_int_equal(error.status, status);
	if (status != TW_OK) {
		assert_true(met);
		assert_failure(status);
		assert_null(redis);
		assert_true(*error.text);
	}
	client_close(redis);
}

/* The server is gone when something is sent to it; the first send has no room. */
static void open_with_sending_that_fails(const struct tw_redis_options *options)
{
	struct tw_redis_error error = {0};
	struct tw_redis *redis;

	fail_calls("send", ECONNRESET);
	assert_int_equal(tw_redis_open(&redis, options, &error), TW_REDIS_UNREACHABLE);
	assert_true(end_faults());
	assert_null(redis);
	assert_non_null(strstr(error.text, strerror(ECONNRESET)));
	fail_calls("send", EAGAIN);
	assert_int_equal(tw_redis_open(&redis, options, &error), TW_OK);
	assert_true(end_faults());
	client_close(redis);
}

static void open_with_each_failure(const struct tw_redis_options *options)
{
	void *context = (void *)(uintptr_t)options;

	assert_true(fail_each(FAULT_ALLOCATION, open_with_fault, context) > 3);
	(void)fail_each(FAULT_PAIR, open_with_fault, context);
	assert_true(fail_each(FAULT_DESCRIPTOR, open_with_fault, context) > 0);
	open_with_sending_that_fails(options);
}

/* The process's first opening learns how replies are made. */
STORED(once, first_opening_without_memory_spoils_no_other)
{
	struct tw_redis_options options = {.url = fixture->server.url, .shards = 4};

	open_with_each_failure(&options);
}

TEST(fixture, opening_meets_each_failure)
{
	struct tw_redis_options options = options_of(*state);

	open_with_each_failure(&options);
}

TEST(fixture, opening_over_tls_meets_each_failure)
{
	struct redis_server server;
	char url[64];
	char ca[300];
	char certificate[300];
	char key[300];
	struct tw_redis_options options = {.url = url,
					   .shards = 4,
					   .ca_file = ca,
					   .certificate_file = certificate,
					   .key_file = key,
					   .server_name = "localhost",
					   .user = "default",
					   .password = "secret",
					   .patience = -1};

	redis_server_start(&server,
			   &(struct redis_server_options){.tls = true, .password = "secret"});
	snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", server.tls_port);
	redis_server_path(&server, "ca.pem", ca, sizeof(ca));
	redis_server_path(&server, "client.pem", certificate, sizeof(certificate));
	redis_server_path(&server, "key.pem", key, sizeof(key));
	open_with_each_failure(&options);
	/* The system's authorities are used. */
	options.ca_file = NULL;
	setenv("SSL_CERT_FILE", ca, 1);
	assert_true(fail_each(FAULT_ALLOCATION, open_with_fault, &options) > 3);
	unsetenv("SSL_CERT_FILE");
	redis_server_stop(&server);
}

/* The Sentinel has a login of its own. */
STORED(fixture, opening_by_a_sentinel_meets_each_failure)
{
	const struct redis_server_options server_options = {.sentinel_of = fixture->server.port,
							    .password = "secret"};
	struct redis_server sentinel;
	char url[64];
	struct tw_redis_options options = {.url = url, .shards = 4, .patience = -1};
	struct tw_redis *redis = NULL;

	redis_server_start(&sentinel, &server_options);
	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/main?client_name=f%%61ults",
		 sentinel.port);
	assert_int_equal(tw_redis_open(&redis, &options, NULL), TW_REDIS_REFUSED);
	options.sentinel_password = "not the secret";
	assert_int_equal(tw_redis_open(&redis, &options, NULL), TW_REDIS_REFUSED);
	options.sentinel_user = "default";
	options.sentinel_password = "secret";
	open_with_each_failure(&options);
	/* This Sentinel needs no login. */
	redis_server_number(&sentinel, "ACL SETUSER default nopass");
	options.sentinel_user = options.sentinel_password = NULL;
	open_with_each_failure(&options);
	redis_server_stop(&sentinel);
}

static enum tw_redis_outcome succeed(void *context, const struct tw_redis_job *job,
				     struct tw_redis_verdict *verdict)
{
	return TW_REDIS_DONE;
}

static void start_with_fault(void *context)
{
	static const char *const networks[] = {"127.0.0.0/8", "shop.example"};
	struct fixture *fixture = context;
	const struct tw_redis_options redis_options = options_of(fixture);
	const struct tw_redis_source sources[] = {{.name_space = fixture->name_space},
						  {.name_space = "faults-beside"}};
	const struct tw_redis_worker_options options = {.sources = sources,
							.source_count = 2,
							.handler = succeed,
							.handlers = 2,
							.callbacks = 2,
							.allow = networks,
							.allow_count = 2,
							.dead_max_count = 100};
	struct tw_redis_error error = {0};
	int anything;
	struct tw_redis_worker *worker = (void *)&anything;
	enum tw_status status;
	bool met;

	begin_faults();
	status = tw_redis_worker_start(&worker, &redis_options, &options, &error);
	if (status == TW_OK)
		worker_stop(worker);
	met = end_faults();
	if (status != TW_OK) {
		assert_true(met);
		assert_failure(status);
		assert_null(worker);
	}
}

TEST(fixture, start_of_a_worker_meets_each_failure)
{
	for (enum fault fault = 0; fault < FAULT_KINDS; fault++)
		(void)fail_each(fault, start_with_fault, *state);
}

/* This is a worker for one task without a callback and three with one, which meets a failure as
 * it runs them. It retries what it could not begin or report, at the latest when the lease has
 * ended. */
struct work {
	struct fixture *fixture;
	struct http_server http;
};

static bool work_is_done(struct work *work)
{
	bool is_done = ends_count_of("handled", TW_REDIS_END_DONE) > 0;

	for (int i = 0; i < 3; i++) {
		char key[KEY_SIZE];

		number_key(key, i);
		is_done &= ends_count_of(key, TW_REDIS_END_DONE) > 0;
	}
	return is_done;
}

static void work_with_fault(void *context)
{
	static const char *const networks[] = {"127.0.0.0/8", "shop.example"};
	static const enum tw_redis_method methods[] = {TW_REDIS_POST, TW_REDIS_GET, TW_REDIS_HEAD};
	static const char *const lines[] = {"A: b", "C:"};
	static const struct tw_redis_limits limits = {.running = 1000};
	struct work *work = context;
	struct tw_redis_worker_options options = {.lease = 100 * TW_MILLISECOND,
						  .retry_first = TW_MILLISECOND,
						  .retry_max = TW_MILLISECOND,
						  .poll = 10 * TW_MILLISECOND,
						  .callbacks = 3,
						  .callbacks_per_host = 3,
						  .allow = networks,
						  .allow_count = 2};
	/* On a busy machine a lease may end often. */
	const struct tw_redis_task handled = {
		.key = "handled", .key_size = 7, .max_attempts = 1000};
	struct tw_redis_worker *worker;
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", work->http.port);
	fixture_close((void **)&(struct fixture *){work->fixture});
	fixture_open_one_shard((void **)&(struct fixture *){work->fixture});
	runs_reset();
	runs_attach(&options);
	set_paused(work->fixture->redis, true);
	worker = worker_start(&work->fixture->options, &options);
	add_one(work->fixture->redis, &handled);
	for (int i = 0; i < 3; i++) {
		char key[KEY_SIZE];
		struct tw_redis_task task = {.key = key,
					     .url = url,
					     .method = methods[i],
					     .headers = lines,
					     .header_count = 2,
					     .max_attempts = 1000};

		number_key(key, i);
		task.key_size = strlen(key);
		add_one(work->fixture->redis, &task);
	}
	begin_faults();
	/* The call publishes hints; the worker claims. */
	WAIT_UNTIL(tw_redis_set_limits(work->fixture->redis, NULL, &limits) == TW_OK);
	WAIT_UNTIL(work_is_done(work));
	/* Fixed pauses let events that come late in one attempt come in each. */
	for (int i = 0; i < 20; i++)
		(void)cancel_task(work->fixture->redis, "none");
	end_faults();
	worker_stop(worker);
	assert_int_equal(stats_of(work->fixture->redis).dead, 0);
}

TEST(fixture, running_tasks_meets_each_failure)
{
	static struct work work;

	work.fixture = *state;
	http_server_start_counting(&work.http, NULL, NULL);
	assert_true(fail_each(FAULT_ALLOCATION, work_with_fault, &work) > 20);
	http_server_stop(&work.http);
}

/*
 * This is a single callback, so allocations come in the same order each time. They begin to fail
 * when its first request is there, which is answered by a 503.
 */
struct callback {
	struct fixture *fixture;
	struct http_server http;
	enum tw_redis_method method;
	atomic_bool is_called;
};

static void answer_503_and_begin_faults(void *context, const struct http_request *request,
					struct http_answer *answer)
{
	struct callback *callback = context;

	/* relaxed: an independent flag */
	if (atomic_exchange_explicit(&callback->is_called, true, memory_order_relaxed))
		return;
	answer->status = 503;
	begin_faults();
}

static void call_back_with_fault(void *context)
{
	struct callback *callback = context;
	struct fixture *fixture = callback->fixture;
	struct tw_redis_worker *worker;
	char url[64];
	const struct tw_redis_task task = {.key = "a",
					   .key_size = 1,
					   .url = url,
					   .method = callback->method,
					   .headers = headers,
					   .header_count = 2,
					   .max_attempts = 1000};

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", callback->http.port);
	/* relaxed: no worker runs */
	atomic_store_explicit(&callback->is_called, false, memory_order_relaxed);
	fixture_close((void **)&(struct fixture *){fixture});
	fixture_open((void **)&(struct fixture *){fixture});
	add_one(fixture->redis, &task);
	runs_reset();
	worker = WORK(fixture, .lease = 100 * TW_MILLISECOND, .retry_first = TW_MILLISECOND,
		      .retry_max = TW_MILLISECOND, .callbacks = 1);
	WAIT_UNTIL(ends_count_of("a", TW_REDIS_END_DONE) > 0);
	end_faults();
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks + stats_of(fixture->redis).dead, 0);
}

TEST(fixture, callbacks_of_each_kind_meet_each_failure)
{
	static const enum tw_redis_method methods[] = {TW_REDIS_POST, TW_REDIS_GET};
	static struct callback callback;

	callback.fixture = *state;
	http_server_start_counting(&callback.http, answer_503_and_begin_faults, &callback);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		callback.method = methods[i];
		assert_true(fail_each(FAULT_ALLOCATION, call_back_with_fault, &callback) > 25);
	}
	http_server_stop(&callback.http);
}

/* A shard has a key of another type. What the others count is listed, or nothing. */
static void list_groups_with_fault(void *context)
{
	struct fixture *fixture = context;
	struct tw_redis_group_stats groups[4];
	size_t count;

	begin_faults();
	assert_true(tw_redis_get_groups(fixture->redis, groups, 4, &count) != TW_OK);
	end_faults();
	for (size_t i = 0; i < count; i++)
		assert_true(groups[i].waiting > 0);
}

STORED(fixture, groups_without_memory_have_no_wrong_numbers)
{
	struct tw_redis_batch *batch;

	add_to_group(fixture->redis, "a", 50, 0, 0);
	assert_ok(fixture->redis, tw_redis_claim(fixture->redis, 1, 1, TW_HOUR, &batch, NULL));
	claim_end(batch);
	redis_server_number(&fixture->server, "SET {tw/%s/0}turns 1", fixture->name_space);
	assert_true(fail_each(FAULT_ALLOCATION, list_groups_with_fault, fixture) > 2);
}

/* No timer reminds the worker of a shard that it could not ask. */
STORED(fixture, worker_outlives_a_time_without_memory)
{
	struct tw_redis_worker_stats before;
	struct tw_redis_worker *worker;

	worker = WORK(fixture, .lease = 100 * TW_MILLISECOND);
	add_task(fixture->redis, "before", 0);
	WAIT_UNTIL(ends_count() == 1);
	before = worker_stats(worker);
	add_task(fixture->redis, "while", 50 * TW_MILLISECOND);
	fail_allocation(1, true);
	WAIT_UNTIL(worker_stats(worker).round_trips >= before.round_trips + 10);
	assert_true(end_faults());
	WAIT_UNTIL(ends_count_of("while", TW_REDIS_END_DONE) == 1);
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(fixture, worker_without_random_numbers_of_the_system_works)
{
	struct tw_redis_worker_options options = {0};
	struct tw_redis_worker *worker;

	runs_attach(&options);
	fail_calls("getrandom", EAGAIN);
	worker = worker_start(&fixture->options, &options);
	assert_true(end_faults());
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(ends_count_of("a", TW_REDIS_END_DONE) == 1);
	worker_stop(worker);
}

FIXTURE_FILE
