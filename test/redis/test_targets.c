/* SPDX-License-Identifier: MIT */
/*
 * These tests are about the targets of callbacks: which patterns are valid, which one decides, and
 * that a worker applies them to names, addresses and kept connections. curl itself looks up
 * "localhost" and names below it.
 */
#include "support/fixture.h"

#include "redis/worker/targets.h"

#include "support/http_server.h"
#include "support/runs.h"

enum { WORDS = 8 };

/* Cuts the text into its words, which stay valid until the next call for `words`. */
static size_t cut(const char *text, char copy[200], const char *words[WORDS])
{
	size_t count = 0;
	char *rest = NULL;

	snprintf(copy, 200, "%s", text);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	return count;
}

static enum tw_status read_one(const char *pattern, struct tw_redis_error *error)
{
	const struct tw_redis_worker_options options = {.deny = &pattern, .deny_count = 1};
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
	const char *const hole[] = {NULL};
	const struct tw_redis_worker_options bad[] = {
		{.allow_count = 1},
		{.deny_count = 1},
		{.deny = hole, .deny_count = 1},
		{.deny = hole, .deny_count = TW_REDIS_TARGETS_MAX + 1},
		{.allow = hole, .allow_count = TW_REDIS_TARGETS_MAX + 1},
	};
	struct targets targets;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(targets_read(&targets, &bad[i], NULL), TW_INVALID);
}

/* Returns whether the host would be called at the address. */
static bool allows(const char *allow, const char *deny, const char *host, const char *address)
{
	char texts[2][200];
	const char *words[2][WORDS];
	struct tw_redis_worker_options options = {.allow = words[0],
						  .allow_count = cut(allow, texts[0], words[0]),
						  .deny = words[1],
						  .deny_count = cut(deny, texts[1], words[1])};
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

/* What these lists allow and deny: addresses of the host "a", or HOST=ADDRESS. */
struct judged {
	const char *allow;
	const char *deny;
	const char *called;
	const char *not_called;
};

static void judge(const struct judged *row)
{
	for (int i = 0; i < 2; i++) {
		const char *words[WORDS];
		char text[200];
		size_t count = cut(i ? row->not_called : row->called, text, words);

		for (size_t k = 0; k < count; k++) {
			const char *equals = strchr(words[k], '=');
			const char *host = equals ? words[k] : "a";

			if (equals)
				text[equals - text] = '\0';
			if (allows(row->allow, row->deny, host, equals ? equals + 1 : words[k]) ==
			    i)
				fail_msg("allow %s, deny %s: %s at %s", row->allow, row->deny, host,
					 equals ? equals + 1 : words[k]);
		}
	}
}

#define JUDGED(name, ...)                                                   \
	TEST(once, name)                                                    \
	{                                                                   \
		static const struct judged rows[] = {__VA_ARGS__};          \
                                                                            \
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) \
			judge(&rows[i]);                                    \
	}

JUDGED(nothing_said_allows_all_but_link_local_addresses,
       {"", "", "192.0.2.1 127.0.0.1 2001:db8::1 169.253.255.255 169.255.0.0 fe7f:ffff::1 fec0::1",
	"169.254.0.0 169.254.169.254=169.254.169.254 ::ffff:169.254.169.254 [fe80::1]=fe80::1 "
	"febf:ffff::1"})

#define METADATA "169.254.169.254"
JUDGED(link_local_addresses_are_allowed_by_a_network_of_theirs_alone, {"*", "", "", METADATA},
       {"0.0.0.0/0", "", "", METADATA}, {"169.254.0.0/15", "", "", METADATA},
       {"a", "", "", METADATA}, {"169.254.0.0/16", "", METADATA, ""},
       {METADATA, "", METADATA " ::ffff:" METADATA, ""},
       {"::ffff:169.254.0.0/112", "", METADATA, ""}, {"169.254.169.253", "", "", METADATA},
       {"169.254.0.0/16", METADATA, "", METADATA}, {METADATA, "169.254.0.0/16", METADATA, ""},
       {"::/0", "", "", "fe80::1"}, {"fe80::/10", "", "fe80::1", ""})

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
		judge(&(struct judged){"", "", guarded[i].beside, guarded[i].address});
		judge(&(struct judged){"* a", "", "", guarded[i].address});
		judge(&(struct judged){guarded[i].wider, "", "", guarded[i].address});
		judge(&(struct judged){guarded[i].network, "", guarded[i].address, ""});
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
		judge(&(struct judged){"", "", embedded[i], ""});
		judge(&(struct judged){"", "10.0.0.0/8", "", embedded[i]});
		judge(&(struct judged){"*", "10.1.2.3", "", embedded[i]});
		judge(&(struct judged){"", "10.1.2.2", embedded[i], ""});
		judge(&(struct judged){"10.1.0.0/16", "", embedded[i], ""});
		judge(&(struct judged){"10.2.0.0/16", "", "", embedded[i]});
		/* Other forms of the address do not match. */
		judge(&(struct judged){"", "1.2.3.0/24 0.0.0.0/8", embedded[i], ""});
	}
}

JUDGED(address_inside_another_is_none_of_these_networks,
       {"", "", "", "64:ff9b::169.254.169.254 2002:6464:64c8::1"},
       {"64:ff9b::/96", "", "", "64:ff9b::169.254.169.254"},
       {METADATA, "", "64:ff9b::169.254.169.254", ""},
       {"", "0.0.0.0/0", "::1 :: 64:ff9b:0:1::10.1.2.3 64:ff9b:2::10.1.2.3 2003:a01:203::1", ""})

TEST(once, ipv6_address_with_an_ipv4_one_inside_is_judged_itself_too)
{
	for (size_t i = 1; i < EMBEDDED; i++) {
		judge(&(struct judged){"", "::/0", "", embedded[i]});
		judge(&(struct judged){"10.1.2.3", "::/0", "", embedded[i]});
		judge(&(struct judged){embedded[i], "", embedded[i], ""});
		judge(&(struct judged){embedded[i], "0.0.0.0/0", "", embedded[i]});
	}
	judge(&(struct judged){"0.0.0.0/0", "2002::/16", "", embedded[4]});
	judge(&(struct judged){"64:ff9b::/96", "", embedded[1], ""});
	judge(&(struct judged){"a", "", embedded[1], ""});
}

JUDGED(what_is_denied_is_denied_and_the_rest_is_not,
       {"", "10.0.0.0/8 evil.example *.bad.example fd00::/8", "11.0.0.0 fc00::1",
	"10.255.255.255 ::ffff:10.0.0.1 fdff::1"},
       {"", "10.0.0.0/8 evil.example *.bad.example fd00::/8",
	"good.example=192.0.2.1 not-evil.example=192.0.2.1 sub.evil.example=192.0.2.1 "
	"bad.example=192.0.2.1 verybad.example=192.0.2.1",
	"evil.example=192.0.2.1 EVIL.example.=192.0.2.1 a.b.bad.example=192.0.2.1"})

JUDGED(what_is_allowed_is_all_that_is,
       {"shop.example *.pay.example 10.1.0.0/20", "",
	"shop.example=192.0.2.1 eu.pay.example=127.0.0.1 10.1.15.255 10.1.0.1=10.1.0.1",
	"10.1.16.0 pay.example=192.0.2.1 192.0.2.1=192.0.2.1 [2001:db8::1]=2001:db8::1"})

/* Hosts precede networks, and a denied pattern precedes an equal one that is allowed. */
JUDGED(what_fits_most_closely_decides,
       {"* 10.1.0.0/16 inner.corp.example *.ok.corp.example 192.0.2.9",
	"10.0.0.0/8 *.corp.example 192.0.2.9",
	"192.0.2.1 2001:db8::1 10.1.0.1 inner.corp.example=192.0.2.1 a.ok.corp.example=192.0.2.1 "
	"inner.corp.example=10.2.0.1",
	"10.2.0.1 a.corp.example=192.0.2.1 192.0.2.9"},
       {"a.example", "a.example", "", "a.example=192.0.2.1"},
       {"a.example A.example", "", "a.example=192.0.2.1", ""})

TEST(once, address_of_another_kind_is_denied)
{
	const char *const all[] = {"*"};
	const struct tw_redis_worker_options options = {.allow = all, .allow_count = 1};
	const struct sockaddr local = {.sa_family = AF_UNIX};
	char text[INET6_ADDRSTRLEN];
	struct targets targets;

	assert_int_equal(targets_read(&targets, &options, NULL), TW_OK);
	assert_false(targets_allow_address(&targets, TARGET_BY_ADDRESS, &local, text));
	assert_false(targets_allow_address(&targets, TARGET_ALLOWED, &local, text));
	assert_string_equal(text, "?");
	targets_free(&targets);
}

JUDGED(address_of_nobody_is_this_machine, {"", "127.0.0.0/8", "", "0=0.0.0.0"},
       {"", "::1", "0=0.0.0.0", "[::]=::"}, {"", "127.0.0.1", "", "::ffff:0.0.0.0"})

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

/* Adds a callback. Its key is the host of the URL. */
static void add_host(struct fixture *fixture, const char *host)
{
	char url[128];

	snprintf(url, sizeof(url), "http://%s:%d/", host, http.port);
	add_callback(fixture->redis, host, url, 3);
}

/* Has a worker with these lists call the hosts, and waits for an end of each. */
static void call_hosts(struct fixture *fixture, const char *allow, const char *deny,
		       const char *hosts)
{
	char texts[3][200];
	const char *words[3][WORDS];
	size_t count = cut(hosts, texts[2], words[2]);
	struct tw_redis_worker_options options = {.allow = words[0],
						  .allow_count = cut(allow, texts[0], words[0]),
						  .deny = words[1],
						  .deny_count = cut(deny, texts[1], words[1]),
						  .retry_first = 20 * TW_MILLISECOND};

	runs_attach(&options);
	options.handler = NULL;
	worker_start(&fixture->options, &options);
	for (size_t i = 0; i < count; i++)
		add_host(fixture, words[2][i]);
	WAIT_UNTIL(ends_count() >= count);
}

/* Checks that these hosts have been called, and no other. */
static void assert_called(const char *hosts)
{
	char text[200];
	const char *words[WORDS];
	size_t count = cut(hosts, text, words);

	for (size_t i = 0; i < count; i++)
		assert_int_equal(end_of(words[i], 0).end, TW_REDIS_END_DONE);
	assert_int_equal(http_server_count(&http), count);
}

/* Checks that the hosts' tasks are dead, with this reason. */
static void assert_denied(const char *hosts, const char *reason)
{
	char text[200];
	const char *words[WORDS];
	size_t count = cut(hosts, text, words);

	for (size_t i = 0; i < count; i++) {
		struct end_seen end = end_of(words[i], 0);

		assert_int_equal(end.end, TW_REDIS_END_DEAD);
		assert_int_equal(end.http_status, 0);
		assert_non_null(strstr(end.reason, reason));
	}
}

STORED(opened, denied_network_is_not_called_by_whatever_name)
{
	static const char hosts[] = "127.0.0.1 2130706433 0x7f.1 017700000001 0.0.0.0 "
				    "[::ffff:127.0.0.1]";
	char all[200];

	snprintf(all, sizeof(all), "localhost a.localhost %s", hosts);
	call_hosts(fixture, "", "127.0.0.0/8 ::1", all);
	assert_denied(hosts, "the address is denied: 127.0.0.1");
	assert_denied("localhost a.localhost", "the address is denied: ");
	assert_non_null(strstr(find_dead(fixture->redis, "localhost").reason, "denied"));
	assert_called("");
}

STORED(opened, allowed_host_is_called_and_no_other)
{
	call_hosts(fixture, "localhost *.shop.localhost", "127.0.0.0/8",
		   "localhost eu.shop.localhost 127.0.0.1 shop.localhost");
	assert_called("localhost eu.shop.localhost");
	assert_denied("127.0.0.1", "the address is denied: 127.0.0.1");
	assert_denied("shop.localhost", "");
}

STORED(opened, denied_host_is_not_looked_up_however_it_is_written)
{
	call_hosts(fixture, "", "localhost",
		   "LocalHost local%68ost 127.0.0.1@localhost 127.0.0.1 localhost@127.0.0.1");
	assert_denied("LocalHost", "the host is denied: LocalHost");
	assert_denied("local%68ost 127.0.0.1@localhost", "the host is denied: localhost");
	assert_called("127.0.0.1 localhost@127.0.0.1");
}

STORED(opened, link_local_addresses_are_not_called)
{
	call_hosts(fixture, "", "",
		   METADATA " [::ffff:" METADATA "] [fe80::1] 2852039166 127.0.0.1");
	assert_denied(METADATA " [::ffff:" METADATA "] 2852039166",
		      "the address is denied: " METADATA);
	assert_denied("[fe80::1]", "the address is denied: fe80::1");
	assert_called("127.0.0.1");
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
	call_hosts(fixture, "", "127.0.0.0/8", "localhost");
	assert_int_equal(end_of("localhost", 0).end, TW_REDIS_END_RETRIED);
	assert_null(strstr(end_of("localhost", 0).reason, "denied"));
	assert_int_equal(http_server_count(&http), 0);
}

FIXTURE_FILE
