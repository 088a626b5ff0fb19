/* SPDX-License-Identifier: MIT */
/*
 * In each command of twr each allocation, each descriptor and each thread fails in turn. The
 * command ends by itself, and reports an error if it has not done its work. The program under test
 * is twr with calls that fail as its environment says.
 */
#include "support/fixture.h"

#include <sys/socket.h>

#include "faults/faults.h"
#include "faults/stacks.h"
#include "support/false_server.h"
#include "support/program.h"
#include "support/sockets.h"

static struct program_environment environment;
static char file[300];
static char allocations[300];

static int open_all(void **state)
{
	struct fixture *fixture;
	int result = fixture_open_one_shard(state);
	FILE *lines;

	fixture = *state;
	environment = (struct program_environment){.program = "test/redis/twr_faults",
						   .url = fixture->server.url,
						   .name_space = fixture->name_space,
						   .password = ""};
	redis_server_path(&fixture->server, "tasks", file, sizeof(file));
	redis_server_path(&fixture->server, "allocations", allocations, sizeof(allocations));
	lines = fopen(file, "w");
	assert_non_null(lines);
	fputs("{\"key\": \"one\", \"callback\": \"http://a.example/\", \"headers\": [\"A: b\"], "
	      "\"body\": \"{}\"}\n"
	      "{\"key_base64\": \"AAEC\", \"body_base64\": \"AAEC\"}\n"
	      "{\"key\": \"dead\", \"state\": \"dead\", \"due_ms\": 1, \"attempts\": 1, "
	      "\"reason_base64\": \"/w==\"}\n"
	      "{\"group\": \"g\", \"running\": 1}\n",
	      lines);
	fclose(lines);
	return result;
}

static const struct test_kind kind_opened = {.open = open_all, .close = fixture_close};

/* Asks for each of its pages; it may have no memory for them. */
static void ask_for_pages(struct program *program)
{
	static const char *const paths[] = {"/", "/metrics", "/status.json", "/readyz", "/healthz"};
	const char *listens = strstr(program_text(program), "127.0.0.1:");
	int port = listens ? atoi(listens + strlen("127.0.0.1:")) : 0;

	for (size_t i = 0; port && i < sizeof(paths) / sizeof(paths[0]); i++) {
		char text[1024];
		int size = snprintf(text, sizeof(text),
				    "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", paths[i]);
		int descriptor = socket_connect(port);

		assert_true(descriptor >= 0);
		(void)socket_send(descriptor, text, (size_t)size);
		while (recv(descriptor, text, sizeof(text), 0) > 0)
			continue;
		close(descriptor);
	}
}

/* A command that runs until it is stopped prints `begun` when it has started. */
static void run(struct program *program, const char *const *arguments, const char *begun)
{
	program_start(program, &environment, arguments);
	if (begun && program_wait_text(program, begun)) {
		ask_for_pages(program);
		kill(program->pid, SIGTERM);
	}
	program_wait(program);
}

/* Returns whether the failure occurred. A variable of the environment selects which one. */
static bool meet(const char *const *arguments, const char *begun, const char *name, uint64_t value)
{
	struct program program;
	char text[24];
	bool met;

	snprintf(text, sizeof(text), "%" PRIu64, value);
	setenv(name, text, 1);
	run(&program, arguments, begun);
	unsetenv(name);
	met = strstr(program_text(&program), "failures injected");
	if (program.exit_code &&
	    (!met || program.exit_code > 77 || !strstr(program_text(&program), "twr: ")))
		fail_msg("%s %s, %s %" PRIu64 ": exit code %d: %s", arguments[0], arguments[1],
			 name, value, program.exit_code, program_text(&program));
	program_end(&program);
	return met;
}

/* Processes start slowly under a sanitizer. The thread sanitizer finds little here; the address
 * sanitizer makes more allocations, one for each block of a slab. */
enum { STEP = SANITIZER_THREAD ? 10 : SANITIZER_ADDRESS ? 5 : 1 };

static void meet_by_number(const char *const *arguments, const char *begun, enum fault fault)
{
	static const char *const names[] = {[FAULT_ALLOCATION] = "FAIL_ALLOCATION",
					    [FAULT_DESCRIPTOR] = "FAIL_DESCRIPTOR",
					    [FAULT_THREAD] = "FAIL_THREAD"};

	for (uint64_t number = 1; meet(arguments, begun, names[fault], number); number += STEP)
		note_injected(fault);
}

/* One allocation fails for each call stack that no other command has had, and a few random ones. */
static void meet_by_stack(const char *const *arguments, const char *begun)
{
	enum { SAMPLE = 3 };
	static struct stack_set seen;
	static uint64_t stacks[20000];
	/* They are sums over all commands: some have no more than one stack of their own. */
	static size_t tried;
	static size_t met;
	struct random random = random_from(seed_choose(), seen.count);
	struct program program;
	size_t count;
	FILE *written;

	setenv("ALLOCATIONS", allocations, 1);
	run(&program, arguments, begun);
	unsetenv("ALLOCATIONS");
	program_end(&program);
	written = fopen(allocations, "r");
	assert_non_null(written);
	count = fread(stacks, sizeof(stacks[0]), sizeof(stacks) / sizeof(stacks[0]), written);
	fclose(written);
	assert_in_range(count, 1, sizeof(stacks) / sizeof(stacks[0]) - 1);
	for (size_t i = 0; i < count; i += STEP)
		if (stack_set_add(&seen, stacks[i])) {
			tried++;
			if (meet(arguments, begun, "FAIL_STACK", stacks[i])) {
				met++;
				note_injected(FAULT_ALLOCATION);
			}
		}
	/* Threads may do something else the next time. */
	assert_true(2 * met >= tried);
	for (int i = 0; i < SAMPLE; i++)
		if (meet(arguments, begun, "FAIL_ALLOCATION", random_below(&random, count) + 1))
			note_injected(FAULT_ALLOCATION);
}

static void meet_each(const char *const *arguments, const char *begun)
{
	if (faults_are_all())
		meet_by_number(arguments, begun, FAULT_ALLOCATION);
	else
		meet_by_stack(arguments, begun);
	meet_by_number(arguments, begun, FAULT_DESCRIPTOR);
	meet_by_number(arguments, begun, FAULT_THREAD);
}

#define MEET_EACH(...) meet_each(ARGUMENTS("--patience=1ms", __VA_ARGS__), NULL)

TEST(opened, commands_about_tasks_meet_each_failure)
{
	MEET_EACH("add", "a", "--in=1h", "--callback=http://a.example/", "--header=A: b",
		  "--group=g", "--data={\"a\": 1}");
	MEET_EACH("add", "b", "--in=1h", "--handler", "--data", "@/proc/self/status");
	MEET_EACH("add", "c", "--every=1h", "--handler", "--json");
	MEET_EACH("move", "a", "--in=2h");
	MEET_EACH("get", "a");
	MEET_EACH("get", "a", "--json");
	MEET_EACH("load", file);
	MEET_EACH("list");
	MEET_EACH("list", "--json");
	MEET_EACH("list", "--dead", "--json");
}

TEST(opened, commands_about_a_namespace_meet_each_failure)
{
	MEET_EACH("stats");
	MEET_EACH("stats", "--json");
	MEET_EACH("groups", "--json");
	MEET_EACH("workers", "--json");
	MEET_EACH("limits", "--running=3", "--pause");
	MEET_EACH("limits", "--json");
	MEET_EACH("retry", "--all", "--json");
	MEET_EACH("drop", "--all");
}

TEST(opened, worker_meets_each_failure)
{
	meet_each(ARGUMENTS("worker", "--patience=1ms", "--concurrency=2", "--listen=127.0.0.1:0",
			    "--allow=a.example", "--namespace=a,b", "--verbose"),
		  "the worker runs");
}

TEST(opened, password_meets_each_failure)
{
	const struct redis_server_options guarded_options = {.password = "the-secret"};
	struct redis_server guarded;

	redis_server_start(&guarded, &guarded_options);
	environment.url = guarded.url;
	environment.password = "the-secret";
	MEET_EACH("groups");
	redis_server_stop(&guarded);
}

/* Each shard lists a dead letter, which is gone when it is to be dropped. */
TEST(opened, dead_letter_that_is_gone_meanwhile_is_no_failure)
{
	struct false_server server;
	struct program program;

	false_server_start(&server);
	false_server_set(&server, "scan", "[1 '0' ['k' '1:1:0:1 8 0\n\n'] 9]", FALSE_ALWAYS);
	false_server_set(&server, "dead_drop", ":-2", FALSE_ALWAYS);
	environment.url = server.url;
	run(&program, ARGUMENTS("drop", "--all"), NULL);
	assert_int_equal(program.exit_code, 0);
	assert_string_equal(program_text(&program), "0\n");
	program_end(&program);
	run(&program, ARGUMENTS("list", "--dead"), NULL);
	assert_non_null(strstr(program_text(&program), "dead     1/8  k\n"));
	program_end(&program);
	false_server_stop(&server);
}

FIXTURE_FILE
