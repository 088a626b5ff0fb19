/* SPDX-License-Identifier: MIT */
/* These tests check how URLs and options are parsed, that errors never repeat a password, and
 * names. */
#include "support/test.h"

#include <sys/un.h>

#include "redis/wire/settings.h"
#include "redis/wire/space.h"

static enum tw_status read_url(struct settings *settings, const char *url,
			       struct tw_redis_error *error)
{
	return settings_read(settings, &(struct tw_redis_options){.url = url}, error);
}

enum { SHOWN_SIZE = 400 };

/* Adds " NAME=TEXT" if there is a text. */
static void show(char *shown, const char *name, const char *text)
{
	size_t used = strlen(shown);

	if (text)
		snprintf(shown + used, SHOWN_SIZE - used, " %s=%s", name, text);
}

/* Writes what has been read from a URL, as "HOST:PORT HOST:PORT /DATABASE NAME=TEXT". */
static void settings_show(const struct settings *settings, char shown[SHOWN_SIZE])
{
	size_t used = 0;

	for (size_t i = 0; i < settings->address_count; i++)
		used += (size_t)snprintf(shown + used, SHOWN_SIZE - used, "%s:%d ",
					 settings->addresses[i].host, settings->addresses[i].port);
	snprintf(shown + used, SHOWN_SIZE - used, "/%d", settings->database);
	show(shown, "tls", settings->tls ? "yes" : NULL);
	show(shown, "master", settings->master);
#define SETTINGS_SHOW(name) show(shown, #name, settings->name);
	SETTINGS_TEXTS(SETTINGS_SHOW)
}

TEST(once, a_url_is_taken_apart)
{
	static const char *const cases[][2] = {
		{NULL, "127.0.0.1:6379 /0"},
		{"redis://", "127.0.0.1:6379 /0"},
		{"redis://:p@/0", "127.0.0.1:6379 /0 password=p"},
		{"redis://:6379", "127.0.0.1:6379 /0"},
		{"redis://ann:p%40ss%3aw@[::1]:7000/12", "::1:7000 /12 user=ann password=p@ss:w"},
		/* A password needs no user, and may hold signs. */
		{"redis://:a@b:c@host", "host:6379 /0 password=a@b:c"},
		{"rediss://:p@a,b:7000,[::1]:7001/2?client_name=me&ca_file=%2Fca"
		 "&certificate_file=c&key_file=k&server_name=n",
		 "a:6379 b:7000 ::1:7001 /2 tls=yes password=p client_name=me ca_file=/ca "
		 "certificate_file=c key_file=k server_name=n"},
		{"rediss+sentinel://u:p@a,b:7000/main/3",
		 "a:26379 b:7000 /3 tls=yes master=main user=u password=p"},
		{"redis+unix://:p@/run/a%20b.sock?database=4", "/run/a b.sock:0 /4 password=p"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct settings settings;
		char shown[SHOWN_SIZE];

		assert_int_equal(read_url(&settings, cases[i][0], NULL), TW_OK);
		settings_show(&settings, shown);
		assert_string_equal(shown, cases[i][1]);
		assert_string_equal(settings.space.name, "default");
		assert_int_equal(settings.space.shards, 0);
		settings_free(&settings);
	}
}

TEST(once, options_go_before_the_url)
{
	const struct tw_redis_options options = {
		.url = "redis://ann:old@host", .user = "bob", .password = "new", .shards = 8};
	struct settings settings;
	char shown[SHOWN_SIZE];

	assert_int_equal(settings_read(&settings, &options, NULL), TW_OK);
	settings_show(&settings, shown);
	assert_string_equal(shown, "host:6379 /0 user=bob password=new");
	assert_int_equal(settings.space.shards, 8);
	settings_free(&settings);
}

TEST(once, a_url_may_set_timeouts)
{
	struct settings settings;

	assert_int_equal(read_url(&settings, "redis://?timeout=1.25", NULL), TW_OK);
	assert_true(settings.reply_timeout == 1250 * TW_MILLISECOND);
	assert_true(settings.connect_timeout == 1250 * TW_MILLISECOND);
	settings_free(&settings);
}

TEST(once, a_url_may_ask_for_durability_and_an_option_goes_before_it)
{
	static const char *const urls[] = {"redis://?durability=server", "redis://?durability=disk",
					   "redis://?durability=replica",
					   "redis://?durability=both"};
	struct settings settings;

	for (enum tw_redis_durability i = 0; i <= TW_REDIS_DURABLE_BOTH; i++) {
		const struct tw_redis_options options = {.url = urls[i],
							 .durability = TW_REDIS_DURABLE_DISK};

		assert_int_equal(read_url(&settings, urls[i], NULL), TW_OK);
		assert_int_equal(settings.durability, i);
		settings_free(&settings);
		assert_int_equal(settings_read(&settings, &options, NULL), TW_OK);
		assert_int_equal(settings.durability, TW_REDIS_DURABLE_DISK);
		settings_free(&settings);
	}
}

/* Writes a URL whose path has `size` bytes, with its slash. */
static void unix_url(char *url, size_t size)
{
	strcpy(url, "redis+unix:///");
	memset(url + 14, 'p', size - 1);
	url[13 + size] = '\0';
}

TEST(once, longest_path_of_a_unix_socket_is_taken_whole)
{
	const size_t longest = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	char url[400];
	struct settings settings;
	struct tw_redis_error error;

	unix_url(url, longest);
	assert_int_equal(read_url(&settings, url, NULL), TW_OK);
	assert_int_equal(strlen(settings.addresses[0].host), longest);
	settings_free(&settings);
	unix_url(url, longest + 1);
	assert_int_equal(read_url(&settings, url, &error), TW_INVALID);
	assert_non_null(strstr(error.text, "at most 107 bytes"));
	/* This is longer than a host may be. */
	unix_url(url, 300);
	assert_int_equal(read_url(&settings, url, &error), TW_INVALID);
}

TEST(once, longest_host_is_taken_whole)
{
	char url[400] = "redis://";
	struct settings settings;
	struct tw_redis_error error;

	memset(url + 8, 'h', HOST_SIZE - 1);
	assert_int_equal(read_url(&settings, url, NULL), TW_OK);
	assert_int_equal(strlen(settings.addresses[0].host), HOST_SIZE - 1);
	settings_free(&settings);
	url[8 + HOST_SIZE - 1] = 'h';
	assert_int_equal(read_url(&settings, url, &error), TW_INVALID);
	assert_non_null(strstr(error.text, "at most 255 bytes"));
}

TEST(once, as_many_hosts_as_there_may_be_are_taken)
{
	char url[ADDRESSES_MAX * 2 + 16] = "redis://h";
	struct settings settings;
	struct tw_redis_error error;

	for (int i = 1; i < ADDRESSES_MAX; i++)
		strcat(url, ",h");
	assert_int_equal(read_url(&settings, url, NULL), TW_OK);
	assert_int_equal(settings.address_count, ADDRESSES_MAX);
	settings_free(&settings);
	strcat(url, ",h");
	assert_int_equal(read_url(&settings, url, &error), TW_INVALID);
	assert_non_null(strstr(error.text, "at most 32 hosts"));
}

TEST(once, malformed_urls_are_refused_and_not_repeated)
{
	static const char *const urls[] = {"",
					   "host",
					   "http://:secret@host",
					   "redis://:secret@host:0",
					   "redis://:secret@host:70000",
					   "redis://:secret@host:12x",
					   "redis://:secret@host:1234567",
					   "redis://:secret@host/x",
					   "redis://:secret@host/1/2",
					   "redis://:secret@host/-1",
					   "redis://:secret%0@host",
					   "redis://u%zz:secret@host",
					   "redis://:secret%00@host",
					   "redis://:secret%zz@host",
					   "redis://[::1",
					   "redis://:secret@[::1]x",
					   "redis://:secret@host?timeout",
					   "redis://:secret@host?timeout=0",
					   "redis://:secret@host?timeout=-1",
					   "redis://:secret@host?timeout=1s",
					   "redis://:secret@host?timeout=1..5",
					   "redis://:secret@host?time=1",
					   "redis://:secret@host?timeput=1",
					   "redis://:secret@host?durabilite=1",
					   "redis://:secret@host?client_name=%zz",
					   "redis://:secret@host?client_name=",
					   "redis://:secret@host?client_name=a%20b",
					   "redis://:secret@host?client_name=a%7F",
					   "redis://:secret@host?database=x",
					   "redis://:secret@host?durability=",
					   "redis://:secret@host?durability=disks",
					   "redis://:secret@host?durable=disk",
					   "redis://:secret@host?key_file=alone",
					   "redis://:secret@host#x",
					   "redis+unix://:secret@host/path",
					   "redis+unix://:secret@",
					   "redis+unix://:secret@/%zz",
					   "redis+sentinel://:secret@host",
					   "redis+sentinel://:secret@host/",
					   "redis+sentinel://:secret@host//1",
					   "redis+sentinel://:secret@host/%zz",
					   "redis+sentinel://:secret@host/main/x",
					   "redis://secret@host"};

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct tw_redis_error error = {0};
		struct settings settings;

		if (read_url(&settings, urls[i], &error) != TW_INVALID)
			fail_msg("%s was accepted", urls[i]);
		assert_int_equal(error.status, TW_INVALID);
		assert_true(*error.text);
		assert_null(strstr(error.text, "secret"));
	}
}

TEST(once, options_out_of_range_are_refused)
{
	static char name[257];
	static const struct tw_redis_options options[] = {
		{.name_space = ""},           {.name_space = "a b"},
		{.name_space = "a{b}"},       {.shards = TW_REDIS_SHARDS_MAX + 1},
		{.name_space = "wi/th"},      {.name_space = "a,b"},
		{.connect_timeout = -1},      {.reply_timeout = -1},
		{.user = "without password"}, {.sentinel_user = "without password"},
		{.server_name = ""},          {.server_name = name}};

	memset(name, 'n', sizeof(name) - 1);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct settings settings;

		assert_int_equal(settings_read(&settings, &options[i], NULL), TW_INVALID);
	}
}

TEST(once, longest_namespace_is_taken)
{
	char name[TW_REDIS_NAMESPACE_MAX + 2] = "";
	const struct tw_redis_options options = {.name_space = name};
	struct settings settings;

	memset(name, 'n', TW_REDIS_NAMESPACE_MAX);
	assert_int_equal(settings_read(&settings, &options, NULL), TW_OK);
	assert_string_equal(settings.space.name, name);
	settings_free(&settings);
	name[TW_REDIS_NAMESPACE_MAX] = 'n';
	assert_int_equal(settings_read(&settings, &options, NULL), TW_INVALID);
}

TEST(once, errors_are_one_line)
{
	struct tw_redis_error error;

	assert_int_equal(error_set(&error, TW_REDIS_FAILED, "ERR %s", "a\r\nb"), TW_REDIS_FAILED);
	assert_string_equal(error.text, "ERR a  b");
}

TEST(once, every_status_has_its_name_and_a_text)
{
#define ASSERT_STATUS(name, text)                         \
	assert_string_equal(tw_status_name(name), #name); \
	assert_string_equal(tw_status_text(name), text);
	TW_REDIS_STATUS_LIST(ASSERT_STATUS)
#undef ASSERT_STATUS
	assert_string_equal(tw_status_name(TW_STATUS_MAX), "TW_UNKNOWN");
	assert_string_equal(tw_status_text(TW_STATUS_MAX), "unknown status");
}

/* These are the check value of this CRC, and the cluster specification's example. */
TEST(once, slots_are_those_of_the_cluster)
{
	struct space space;

	assert_int_equal(crc16("123456789", 9), 0x31c3);
	assert_int_equal(crc16("foo", 3) % SLOTS, 12182);
	space_init(&space, "default", 64);
	assert_int_equal(space_slot(&space, 7), crc16("tw/default/7", 12) % SLOTS);
	assert_int_equal(space_shard(&space, "123456789", 9), 0x31c3 % 64);
}

TEST(once, keys_of_a_shard_share_one_tag)
{
	struct buffer buffer = {0};
	struct space space;

	space_init(&space, "n", 64);
	space_write_keys(&space, 63, 2, &buffer);
	assert_string_equal(buffer.data, "$12\r\n{tw/n/63}due\r\n$13\r\n{tw/n/63}body\r\n");
	buffer_free(&buffer);
}
