/* SPDX-License-Identifier: MIT */
/*
 * These tests are about the targets of callbacks: which patterns are valid, which one decides, and
 * that a worker applies them to names, addresses and kept connections. curl itself looks up
 * "localhost" and names below it.
 */
#include "support/fixture.h"

#include "redis/worker/targets.h"

#include "support/http_server.h"
#include "support/program.h"
#include "support/runs.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static size_t list_count(const char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

static struct tw_redis_worker_options options_of(const char *const *allow, const char *const *deny)
{
	return (struct tw_redis_worker_options){.allow = allow,
						.allow_count = list_count(allow),
						.deny = deny,
						.deny_count = list_count(deny)};
}

static enum tw_status read_one(const char *pattern, struct tw_redis_error *error)
{
	struct tw_redis_worker_options options = options_of(NULL, LIST(pattern));
	struct targets targets;
	enum tw_status status = targets_read(&targets, &options, error);

	if (status == TW_OK)
		targets_free(&targets);
	return status;
}

TEST(once, patterns_are_hosts_endings_networks_and_all)
{
	static const char *const good[] = {
		"shop.example", "*.shop.example", "localhost",           "a-b_c.x1", "127.0.0.1",
		"10.0.0.0/8",   "0.0.0.0/0",      "10.1.2.3/32",         "::1",      "fd00::/8",
		"::/0",         "::1/128",        "::ffff:10.0.0.0/104", "*"};
	static const char *const bad[] = {"",           " ",           "*.",
					  ".example",   "a..b",        "a b",
					  "**.a",       "a.*",         "10.0.0.0/33",
					  "10.0.0.0/",  "10.0.0.0/8x", "10.0.0.0/-1",
					  "10.0.0.0/a", "10.0.0/8",    "10.0.0.0.",
					  "1.2.3",      "*.10",        "::/129",
					  "[::1]",      "fe80::1%lo",  "http://a",
					  "a:80",       "a/8",         "*.*.example",
					  "10.0.0.0/ 8"};
	struct tw_redis_error error;
	char longest[300];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (read_one(good[i], &error) != TW_OK)
			fail_msg("%s: %s", good[i], error.text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (read_one(bad[i], &error) != TW_INVALID)
			fail_msg("%s is a pattern", bad[i]);
		assert_non_null(strstr(error.text, bad[i]));
	}
	memset(longest, 'a', sizeof(longest));
	longest[253] = '\0';
	assert_int_equal(read_one(longest, &error), TW_OK);
	longest[253] = 'a';
	longest[254] = '\0';
	assert_int_equal(read_one(longest, &error), TW_INVALID);
}

TEST(once, invalid_lists_are_refused)
{
	struct tw_redis_worker_options options = {.allow_count = 1};
	const char *const hole[] = {NULL};
	struct targets targets;

	assert_int_equal(targets_read(&targets, &options, NULL), TW_INVALID);
	options = (struct tw_redis_worker_options){.deny_count = 1};
	assert_int_equal(targets_read(&targets, &options, NULL), TW_INVALID);
	options = (struct tw_redis_worker_options){.deny = hole, .deny_count = 1};
	assert_int_equal(targets_read(&targets, &options, NULL), TW_INVALID);
	options = (struct tw_redis_worker_options){.deny = hole,
						   .deny_count = TW_REDIS_TARGETS_MAX + 1};
	assert_int_equal(targets_read(&targets, &options, NULL), TW_INVALID);
	options = (struct tw_redis_worker_options){.allow = hole,
						   .allow_count = TW_REDIS_TARGETS_MAX + 1};
	assert_int_equal(targets_read(&targets, &options, NULL), TW_INVALID);
}

/* Returns whether the host would be called at the address. */
static bool allows(const char *const *allow, const char *const *deny, const char *host,
		   const char *address)
{
	struct tw_redis_worker_options options = options_of(allow, deny);
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	enum target_verdict verdict;
	char text[INET6_ADDRSTRLEN];
	struct targets targets;
	bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
	bool allowed;

	assert_true(is_v4 || inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
	assert_int_equal(targets_read(&targets, &options, NULL), TW_OK);
	verdict = targets_judge_host(&targets, host);
	allowed = verdict != TARGET_DENIED &&
		  targets_allow_address(&targets, verdict,
					is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
					text);
	targets_free(&targets);
	return allowed;
}

TEST(once, nothing_said_allows_all_but_link_local_addresses)
{
	assert_true(allows(NULL, NULL, "a.example", "192.0.2.1"));
	assert_true(allows(NULL, NULL, "a.example", "127.0.0.1"));
	assert_true(allows(NULL, NULL, "a.example", "2001:db8::1"));
	assert_true(allows(NULL, NULL, "a.example", "169.253.255.255"));
	assert_true(allows(NULL, NULL, "a.example", "169.255.0.0"));
	assert_true(allows(NULL, NULL, "a.example", "fe7f:ffff::1"));
	assert_true(allows(NULL, NULL, "a.example", "fec0::1"));
	assert_false(allows(NULL, NULL, "a.example", "169.254.0.0"));
	assert_false(allows(NULL, NULL, "169.254.169.254", "169.254.169.254"));
	assert_false(allows(NULL, NULL, "a.example", "::ffff:169.254.169.254"));
	assert_false(allows(NULL, NULL, "[fe80::1]", "fe80::1"));
	assert_false(allows(NULL, NULL, "a.example", "febf:ffff::1"));
}

TEST(once, link_local_addresses_are_allowed_by_a_network_of_theirs_alone)
{
	const char *const metadata = "169.254.169.254";

	assert_false(allows(LIST("*"), NULL, "a", metadata));
	assert_false(allows(LIST("0.0.0.0/0"), NULL, "a", metadata));
	assert_false(allows(LIST("169.254.0.0/15"), NULL, "a", metadata));
	assert_false(allows(LIST("a"), NULL, "a", metadata));
	assert_true(allows(LIST("169.254.0.0/16"), NULL, "a", metadata));
	assert_true(allows(LIST("169.254.169.254"), NULL, "a", metadata));
	assert_true(allows(LIST("169.254.169.254"), NULL, "a", "::ffff:169.254.169.254"));
	assert_true(allows(LIST("::ffff:169.254.0.0/112"), NULL, "a", metadata));
	assert_false(allows(LIST("169.254.169.253"), NULL, "a", metadata));
	assert_false(allows(LIST("169.254.0.0/16"), LIST("169.254.169.254"), "a", metadata));
	assert_true(allows(LIST("169.254.169.254"), LIST("169.254.0.0/16"), "a", metadata));
	assert_false(allows(LIST("::/0"), NULL, "a", "fe80::1"));
	assert_true(allows(LIST("fe80::/10"), NULL, "a", "fe80::1"));
}

TEST(once, addresses_of_metadata_are_allowed_by_a_network_of_theirs_alone)
{
	static const struct {
		const char *address;
		const char *beside; /* an address outside */
		const char *network;
		const char *wider;
	} guarded[] = {{"fd00:ec2::254", "fd00:ec3::254", "fd00:ec2::/32", "fd00:ec2::/31"},
		       {"fd00:ec2::23", "fd00:ec1:ffff::23", "fd00:ec2::23", "fd00::/8"},
		       {"fd20:ce::254", "fd20:ce::255", "fd20:ce::254", "fd20:ce::254/127"},
		       {"100.100.100.200", "100.100.100.201", "100.100.100.200", "100.64.0.0/10"},
		       {"168.63.129.16", "168.63.129.17", "168.63.129.16/32", "168.63.129.16/31"},
		       {"192.0.0.192", "192.0.0.193", "192.0.0.192", "192.0.0.0/24"}};

	for (size_t i = 0; i < sizeof(guarded) / sizeof(guarded[0]); i++) {
		assert_false(allows(NULL, NULL, "a", guarded[i].address));
		assert_true(allows(NULL, NULL, "a", guarded[i].beside));
		assert_false(allows(LIST("*", "a"), NULL, "a", guarded[i].address));
		assert_false(allows(LIST(guarded[i].wider), NULL, "a", guarded[i].address));
		assert_true(allows(LIST(guarded[i].network), NULL, "a", guarded[i].address));
	}
}

/* Each of these is 10.1.2.3 behind a gateway. */
static const char *const embedded[] = {
	"::ffff:10.1.2.3", "64:ff9b::10.1.2.3",   "64:ff9b:1::10.1.2.3", "64:ff9b:1:abcd::10.1.2.3",
	"2002:a01:203::1", "2002:a01:203:ffff::", "::ffff:0:10.1.2.3",   "::10.1.2.3"};
enum { EMBEDDED = sizeof(embedded) / sizeof(embedded[0]) };

TEST(once, ipv4_address_inside_an_ipv6_one_is_judged)
{
	for (size_t i = 0; i < EMBEDDED; i++) {
		assert_true(allows(NULL, NULL, "a", embedded[i]));
		assert_false(allows(NULL, LIST("10.0.0.0/8"), "a", embedded[i]));
		assert_false(allows(LIST("*"), LIST("10.1.2.3"), "a", embedded[i]));
		assert_true(allows(NULL, LIST("10.1.2.2"), "a", embedded[i]));
		assert_true(allows(LIST("10.1.0.0/16"), NULL, "a", embedded[i]));
		assert_false(allows(LIST("10.2.0.0/16"), NULL, "a", embedded[i]));
		/* Other forms of the address do not match. */
		assert_true(allows(NULL, LIST("1.2.3.0/24", "0.0.0.0/8"), "a", embedded[i]));
	}
	assert_false(allows(NULL, NULL, "a", "64:ff9b::169.254.169.254"));
	assert_false(allows(LIST("64:ff9b::/96"), NULL, "a", "64:ff9b::169.254.169.254"));
	assert_true(allows(LIST("169.254.169.254"), NULL, "a", "64:ff9b::169.254.169.254"));
	assert_false(allows(NULL, NULL, "a", "2002:6464:64c8::1"));
	assert_true(allows(NULL, LIST("0.0.0.0/0"), "a", "::1"));
	assert_true(allows(NULL, LIST("0.0.0.0/0"), "a", "::"));
	assert_true(allows(NULL, LIST("0.0.0.0/0"), "a", "64:ff9b:0:1::10.1.2.3"));
	assert_true(allows(NULL, LIST("0.0.0.0/0"), "a", "64:ff9b:2::10.1.2.3"));
	assert_true(allows(NULL, LIST("0.0.0.0/0"), "a", "2003:a01:203::1"));
}

TEST(once, ipv6_address_with_an_ipv4_one_inside_is_judged_itself_too)
{
	for (size_t i = 1; i < EMBEDDED; i++) {
		assert_false(allows(NULL, LIST("::/0"), "a", embedded[i]));
		assert_false(allows(LIST("10.1.2.3"), LIST("::/0"), "a", embedded[i]));
		assert_true(allows(LIST(embedded[i]), NULL, "a", embedded[i]));
		assert_false(allows(LIST(embedded[i]), LIST("0.0.0.0/0"), "a", embedded[i]));
	}
	assert_false(allows(LIST("0.0.0.0/0"), LIST("2002::/16"), "a", embedded[4]));
	assert_true(allows(LIST("64:ff9b::/96"), NULL, "a", embedded[1]));
	assert_true(allows(LIST("a"), NULL, "a", embedded[1]));
}

TEST(once, what_is_denied_is_denied_and_the_rest_is_not)
{
	const char *const *deny = LIST("10.0.0.0/8", "evil.example", "*.bad.example", "fd00::/8");

	assert_false(allows(NULL, deny, "a.example", "10.255.255.255"));
	assert_true(allows(NULL, deny, "a.example", "11.0.0.0"));
	assert_false(allows(NULL, deny, "a.example", "::ffff:10.0.0.1"));
	assert_false(allows(NULL, deny, "a.example", "fdff::1"));
	assert_true(allows(NULL, deny, "a.example", "fc00::1"));
	assert_false(allows(NULL, deny, "evil.example", "192.0.2.1"));
	assert_true(allows(NULL, deny, "good.example", "192.0.2.1"));
	assert_false(allows(NULL, deny, "EVIL.example.", "192.0.2.1"));
	assert_true(allows(NULL, deny, "not-evil.example", "192.0.2.1"));
	assert_true(allows(NULL, deny, "sub.evil.example", "192.0.2.1"));
	assert_false(allows(NULL, deny, "a.b.bad.example", "192.0.2.1"));
	assert_true(allows(NULL, deny, "bad.example", "192.0.2.1"));
	assert_true(allows(NULL, deny, "verybad.example", "192.0.2.1"));
}

TEST(once, what_is_allowed_is_all_that_is)
{
	const char *const *allow = LIST("shop.example", "*.pay.example", "10.1.0.0/20");

	assert_true(allows(allow, NULL, "shop.example", "192.0.2.1"));
	assert_true(allows(allow, NULL, "eu.pay.example", "127.0.0.1"));
	assert_true(allows(allow, NULL, "other.example", "10.1.15.255"));
	assert_true(allows(allow, NULL, "10.1.0.1", "10.1.0.1"));
	assert_false(allows(allow, NULL, "other.example", "10.1.16.0"));
	assert_false(allows(allow, NULL, "pay.example", "192.0.2.1"));
	assert_false(allows(allow, NULL, "192.0.2.1", "192.0.2.1"));
	assert_false(allows(allow, NULL, "[2001:db8::1]", "2001:db8::1"));
}

TEST(once, what_fits_most_closely_decides)
{
	const char *const *allow =
		LIST("*", "10.1.0.0/16", "inner.corp.example", "*.ok.corp.example", "192.0.2.9");
	const char *const *deny = LIST("10.0.0.0/8", "*.corp.example", "192.0.2.9");

	assert_true(allows(allow, deny, "a.example", "192.0.2.1"));
	assert_true(allows(allow, deny, "a.example", "2001:db8::1"));
	assert_false(allows(allow, deny, "a.example", "10.2.0.1"));
	assert_true(allows(allow, deny, "a.example", "10.1.0.1"));
	assert_false(allows(allow, deny, "a.corp.example", "192.0.2.1"));
	assert_true(allows(allow, deny, "inner.corp.example", "192.0.2.1"));
	assert_true(allows(allow, deny, "a.ok.corp.example", "192.0.2.1"));
	/* Hosts precede networks, and a denied pattern precedes an equal one that is allowed. */
	assert_true(allows(allow, deny, "inner.corp.example", "10.2.0.1"));
	assert_false(allows(allow, deny, "a.example", "192.0.2.9"));
	assert_false(allows(LIST("a.example"), LIST("a.example"), "a.example", "192.0.2.1"));
	assert_true(allows(LIST("a.example", "A.example"), NULL, "a.example", "192.0.2.1"));
}

TEST(once, address_of_another_kind_is_denied)
{
	struct tw_redis_worker_options options = options_of(LIST("*"), NULL);
	const struct sockaddr local = {.sa_family = AF_UNIX};
	char text[INET6_ADDRSTRLEN];
	struct targets targets;

	assert_int_equal(targets_read(&targets, &options, NULL), TW_OK);
	assert_false(targets_allow_address(&targets, TARGET_BY_ADDRESS, &local, text));
	assert_false(targets_allow_address(&targets, TARGET_ALLOWED, &local, text));
	assert_string_equal(text, "?");
	targets_free(&targets);
}

TEST(once, address_of_nobody_is_this_machine)
{
	assert_false(allows(NULL, LIST("127.0.0.0/8"), "0", "0.0.0.0"));
	assert_false(allows(NULL, LIST("::1"), "[::]", "::"));
	assert_false(allows(NULL, LIST("127.0.0.1"), "a", "::ffff:0.0.0.0"));
	assert_true(allows(NULL, LIST("::1"), "0", "0.0.0.0"));
}

static struct http_server http;

static int open_all(void **state)
{
	http_server_start(&http, NULL, NULL);
	return fixture_open(state);
}

static int close_all(void **state)
{
	http_server_stop(&http);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

static struct tw_redis_worker *start(struct fixture *fixture, const char *const *allow,
				     const char *const *deny)
{
	struct tw_redis_worker_options options = options_of(allow, deny);

	runs_attach(&options);
	options.handler = NULL;
	options.retry_first = 20 * TW_MILLISECOND;
	return worker_start(&fixture->options, &options);
}

/* Adds a callback. Its key is the host of the URL. */
static void add_host(struct fixture *fixture, const char *host)
{
	char url[128];

	snprintf(url, sizeof(url), "http://%s:%d/", host, http.port);
	add_callback(fixture->redis, host, url, 3);
}

static void assert_denied(const char *host, const char *reason)
{
	struct end_seen end = end_of(host, 0);

	assert_int_equal(end.end, TW_REDIS_END_DEAD);
	assert_int_equal(end.http_status, 0);
	assert_string_equal(end.reason, reason);
}

STORED(opened, denied_network_is_not_called_by_whatever_name)
{
	static const char *const hosts[] = {
		"127.0.0.1", "localhost",    "a.localhost", "2130706433",
		"0x7f.1",    "017700000001", "0.0.0.0",     "[::ffff:127.0.0.1]"};

	start(fixture, NULL, LIST("127.0.0.0/8", "::1"));
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		add_host(fixture, hosts[i]);
	WAIT_UNTIL(ends_count() == sizeof(hosts) / sizeof(hosts[0]));
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (strcmp(hosts[i], "localhost") && strcmp(hosts[i], "a.localhost"))
			assert_denied(hosts[i], "the address is denied: 127.0.0.1");
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DEAD), 8);
	assert_non_null(strstr(end_of("localhost", 0).reason, "the address is denied: "));
	assert_non_null(strstr(find_dead(fixture->redis, "localhost").reason, "denied"));
	assert_int_equal(http_server_count(&http), 0);
}

STORED(opened, allowed_host_is_called_and_no_other)
{
	start(fixture, LIST("localhost", "*.shop.localhost"), LIST("127.0.0.0/8"));
	add_host(fixture, "localhost");
	add_host(fixture, "eu.shop.localhost");
	add_host(fixture, "127.0.0.1");
	add_host(fixture, "shop.localhost");
	WAIT_UNTIL(ends_count() == 4);
	assert_int_equal(end_of("localhost", 0).end, TW_REDIS_END_DONE);
	assert_int_equal(end_of("eu.shop.localhost", 0).end, TW_REDIS_END_DONE);
	assert_denied("127.0.0.1", "the address is denied: 127.0.0.1");
	assert_int_equal(end_of("shop.localhost", 0).end, TW_REDIS_END_DEAD);
	assert_int_equal(http_server_count(&http), 2);
}

STORED(opened, denied_host_is_not_looked_up_however_it_is_written)
{
	start(fixture, NULL, LIST("localhost"));
	add_host(fixture, "LocalHost");
	add_host(fixture, "local%68ost");
	add_host(fixture, "127.0.0.1@localhost");
	add_host(fixture, "127.0.0.1");
	add_host(fixture, "localhost@127.0.0.1");
	WAIT_UNTIL(ends_count() == 5);
	assert_denied("LocalHost", "the host is denied: LocalHost");
	assert_denied("local%68ost", "the host is denied: localhost");
	assert_denied("127.0.0.1@localhost", "the host is denied: localhost");
	assert_int_equal(end_of("127.0.0.1", 0).end, TW_REDIS_END_DONE);
	assert_int_equal(end_of("localhost@127.0.0.1", 0).end, TW_REDIS_END_DONE);
	assert_int_equal(http_server_count(&http), 2);
}

STORED(opened, link_local_addresses_are_not_called)
{
	static const char *const hosts[] = {"169.254.169.254", "[::ffff:169.254.169.254]",
					    "[fe80::1]", "2852039166"};

	start(fixture, NULL, NULL);
	for (size_t i = 0; i < 4; i++)
		add_host(fixture, hosts[i]);
	add_host(fixture, "127.0.0.1");
	WAIT_UNTIL(ends_count() == 5);
	for (size_t i = 0; i < 4; i++)
		assert_denied(hosts[i], i == 2 ? "the address is denied: fe80::1"
					       : "the address is denied: 169.254.169.254");
	assert_int_equal(ends_count_of("127.0.0.1", TW_REDIS_END_DONE), 1);
}

static bool machine_has_ipv6(void)
{
	const struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
					      .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int descriptor = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = !bind(descriptor, (const struct sockaddr *)&loopback, sizeof(loopback));

	close(descriptor);
	return has;
}

/* The name has a denied address, and another one where nobody answers. */
STORED(opened, host_with_an_address_that_is_allowed_is_tried_again)
{
	if (!machine_has_ipv6())
		TEST_SKIP("the machine has no IPv6");
	start(fixture, NULL, LIST("127.0.0.0/8"));
	add_host(fixture, "localhost");
	WAIT_UNTIL(ends_count() >= 1);
	assert_int_equal(end_of("localhost", 0).end, TW_REDIS_END_RETRIED);
	assert_null(strstr(end_of("localhost", 0).reason, "denied"));
	assert_int_equal(http_server_count(&http), 0);
}

STORED(opened, worker_of_twr_allows_and_denies)
{
	struct program program;

	assert_int_equal(TWR("worker", "--deny", "10.0.0.0/33"), 2);
	assert_true(twr_said("or an address: 10.0.0.0/33"));
	assert_int_equal(TWR("worker", "--allow", ""), 2);
	add_host(fixture, "127.0.0.1");
	add_host(fixture, "shop.localhost");
	add_host(fixture, "bad.shop.localhost");
	program_start(&program, &twr_environment,
		      ARGUMENTS("worker", "--verbose", "--allow", "*.localhost", "--deny",
				"bad.shop.localhost", "--deny", "127.0.0.0/8", "--deny", "::1",
				"--allow", "*"));
	assert_true(program_wait_text(&program, "the address is denied: 127.0.0.1"));
	assert_true(program_wait_text(&program, "done     shop.localhost"));
	assert_true(program_wait_text(&program, "the host is denied: bad.shop.localhost"));
	assert_int_equal(kill(program.pid, SIGTERM), 0);
	assert_int_equal(program_wait(&program), 0);
	program_end(&program);
	assert_int_equal(http_server_count(&http), 1);
}

FIXTURE_FILE
