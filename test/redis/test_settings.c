/* SPDX-License-Identifier: MIT */
/* URLs and options are taken apart as they should, and errors never repeat a password. Names. */
#include "support/test.h"

#include <stdbool.h>
#include <string.h>

#include "settings.h"
#include "space.h"

static enum tw_status read_url(struct settings *settings, const char *url,
			       struct tw_redis_error *error)
{
	return settings_read(settings, &(struct tw_redis_options){.url = url}, error);
}

static void no_options_mean_a_server_on_this_machine(void **state)
{
	struct settings settings;

	(void)state;
	assert_int_equal(settings_read(&settings, NULL, NULL), TW_OK);
	assert_string_equal(settings.host, "127.0.0.1");
	assert_int_equal(settings.port, 6379);
	assert_int_equal(settings.database, 0);
	assert_false(settings.tls);
	assert_null(settings.password);
	assert_string_equal(settings.name_space, "default");
	assert_int_equal(settings.shards, 64);
	settings_free(&settings);
}

static void a_url_with_all_parts_is_taken_apart(void **state)
{
	struct settings settings;

	(void)state;
	assert_int_equal(read_url(&settings, "redis://ann:p%40ss%3aw@[::1]:7000/12", NULL), TW_OK);
	assert_string_equal(settings.user, "ann");
	assert_string_equal(settings.password, "p@ss:w");
	assert_string_equal(settings.host, "::1");
	assert_int_equal(settings.port, 7000);
	assert_int_equal(settings.database, 12);
	settings_free(&settings);
}

static void a_password_needs_no_user_and_may_hold_signs(void **state)
{
	struct settings settings;

	(void)state;
	assert_int_equal(read_url(&settings, "redis://:a@b:c@host", NULL), TW_OK);
	assert_null(settings.user);
	assert_string_equal(settings.password, "a@b:c");
	assert_string_equal(settings.host, "host");
	settings_free(&settings);
}

static void options_go_before_the_url(void **state)
{
	const struct tw_redis_options options = {
		.url = "redis://ann:old@host", .user = "bob", .password = "new", .shards = 8};
	struct settings settings;

	(void)state;
	assert_int_equal(settings_read(&settings, &options, NULL), TW_OK);
	assert_string_equal(settings.user, "bob");
	assert_string_equal(settings.password, "new");
	assert_int_equal(settings.shards, 8);
	settings_free(&settings);
}

static void malformed_urls_are_refused_and_not_repeated(void **state)
{
	static const char *const urls[] = {"",
					   "host",
					   "http://:secret@host",
					   "redis://:secret@host:0",
					   "redis://:secret@host:70000",
					   "redis://:secret@host:12x",
					   "redis://:secret@host/x",
					   "redis://:secret@host/1/2",
					   "redis://:secret@host/-1",
					   "redis://:secret%0@host",
					   "redis://:secret%00@host",
					   "redis://:secret%zz@host",
					   "redis://[::1",
					   "redis://secret@host"};

	(void)state;
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

static void options_out_of_range_are_refused(void **state)
{
	static const struct tw_redis_options options[] = {
		{.name_space = ""},          {.name_space = "a b"},
		{.name_space = "a{b}"},      {.shards = TW_REDIS_SHARDS_MAX + 1},
		{.connect_timeout = -1},     {.reply_timeout = -1},
		{.user = "without password"}};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct settings settings;

		assert_int_equal(settings_read(&settings, &options[i], NULL), TW_INVALID);
	}
}

static void longest_namespace_is_taken(void **state)
{
	char name[TW_REDIS_NAMESPACE_MAX + 2] = "";
	const struct tw_redis_options options = {.name_space = name};
	struct settings settings;

	(void)state;
	memset(name, 'n', TW_REDIS_NAMESPACE_MAX);
	assert_int_equal(settings_read(&settings, &options, NULL), TW_OK);
	assert_string_equal(settings.name_space, name);
	settings_free(&settings);
	name[TW_REDIS_NAMESPACE_MAX] = 'n';
	assert_int_equal(settings_read(&settings, &options, NULL), TW_INVALID);
}

static void errors_are_one_line(void **state)
{
	struct tw_redis_error error;

	(void)state;
	assert_int_equal(error_set(&error, TW_REDIS_FAILED, "ERR %s", "a\r\nb"), TW_REDIS_FAILED);
	assert_string_equal(error.text, "ERR a  b");
}

static void every_status_has_its_name_and_a_text(void **state)
{
	(void)state;
#define ASSERT_STATUS(name, text)                         \
	assert_string_equal(tw_status_name(name), #name); \
	assert_string_equal(tw_status_text(name), text);
	TW_REDIS_STATUS_LIST(ASSERT_STATUS)
#undef ASSERT_STATUS
	assert_string_equal(tw_status_name(TW_STATUS_MAX), "TW_UNKNOWN");
	assert_string_equal(tw_redis_status_name(TW_OK), "TW_UNKNOWN");
}

/* The check value of this CRC; and the cluster's own example. */
static void slots_are_those_of_the_cluster(void **state)
{
	struct space space;

	(void)state;
	assert_int_equal(crc16("123456789", 9), 0x31c3);
	assert_int_equal(crc16("foo", 3) % SLOTS, 12182);
	space_init(&space, "default", 64);
	assert_int_equal(space_slot(&space, 7), crc16("tw/default/7", 12) % SLOTS);
	assert_int_equal(space_shard(&space, "123456789", 9), 0x31c3 % 64);
}

static void keys_of_a_shard_share_one_tag(void **state)
{
	struct buffer buffer = {0};
	struct space space;

	(void)state;
	space_init(&space, "n", 64);
	space_write_keys(&space, 63, 2, &buffer);
	assert_string_equal(buffer.data, "$12\r\n{tw/n/63}due\r\n$13\r\n{tw/n/63}body\r\n");
	buffer_free(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_options_mean_a_server_on_this_machine),
		cmocka_unit_test(a_url_with_all_parts_is_taken_apart),
		cmocka_unit_test(a_password_needs_no_user_and_may_hold_signs),
		cmocka_unit_test(options_go_before_the_url),
		cmocka_unit_test(malformed_urls_are_refused_and_not_repeated),
		cmocka_unit_test(options_out_of_range_are_refused),
		cmocka_unit_test(longest_namespace_is_taken),
		cmocka_unit_test(errors_are_one_line),
		cmocka_unit_test(every_status_has_its_name_and_a_text),
		cmocka_unit_test(slots_are_those_of_the_cluster),
		cmocka_unit_test(keys_of_a_shard_share_one_tag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
