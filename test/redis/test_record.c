/* SPDX-License-Identifier: MIT */
/* A task's record is read back as it was written, and a task that can't be accepted is refused when
 * it is added. */
#include "support/test.h"

#include "redis/client/record.h"
#include "redis/client/recurrence.h"

#define KEY .key = "k", .key_size = 1

static const char *const two_headers[] = {"A: b", "Content-Type: text/plain; x=\"y\""};

/* Reads the record that has been written, with a due time before it, as add.lua puts it there. */
static enum tw_status read_due(struct record *record, struct buffer *buffer)
{
	struct buffer whole = {0};

	buffer_append_text(&whole, "1700000000123 ");
	buffer_append(&whole, buffer->data, buffer->size);
	buffer_free(buffer);
	*buffer = whole;
	return record_read(record, buffer->data, buffer->size);
}

TEST(once, a_task_for_a_handler_is_its_numbers_and_its_body)
{
	const struct tw_redis_task task = {KEY, .body = "a\0b", .body_size = 3, .max_attempts = 5};
	struct buffer buffer = {0};
	struct record record;

	assert_int_equal(record_write(&buffer, &task, 0, NULL), TW_OK);
	assert_int_equal(buffer.size, 8);
	assert_memory_equal(buffer.data, "5 0\n\na\0b", 8);
	assert_int_equal(read_due(&record, &buffer), TW_OK);
	assert_int_equal(record.task.max_attempts, 5);
	assert_int_equal(record.task.body_size, 3);
	assert_memory_equal(record.task.body, "a\0b", 3);
	assert_null(record.task.url);
	record_free(&record);
	buffer_free(&buffer);
}

TEST(once, a_callback_comes_back_as_it_was_given)
{
	const struct tw_redis_task task = {KEY,
					   .body = "{}\n{",
					   .body_size = 4,
					   .url = "http://h/\xc3\xa4?a=\"b\"",
					   .headers = two_headers,
					   .header_count = 2};
	struct buffer buffer = {0};
	struct record record;

	assert_int_equal(task_check(&task, NULL), TW_OK);
	assert_int_equal(record_write(&buffer, &task, 0, NULL), TW_OK);
	assert_int_equal(read_due(&record, &buffer), TW_OK);
	assert_string_equal(record.task.url, task.url);
	assert_int_equal(record.task.method, TW_REDIS_POST);
	assert_int_equal(record.task.header_count, 2);
	assert_string_equal(record.task.headers[0], two_headers[0]);
	assert_string_equal(record.task.headers[1], two_headers[1]);
	assert_int_equal(record.task.body_size, 4);
	assert_memory_equal(record.task.body, "{}\n{", 4);
	record_free(&record);
	buffer_free(&buffer);
}

TEST(once, numbers_of_the_head_come_back)
{
	static const struct {
		struct tw_redis_task task;
		int64_t latest_due_ms;
		const char *head;
	} heads[] = {
		{{KEY, .grace = TW_SECOND}, 0, "25 1000\n\n"},
		{{KEY, .latest = 1}, 0, "25 0\n\n"},
		{{KEY, .group = "a b"}, 0, "25 0\nG a b\n\n"},
		{{KEY}, 1700000000000, "25 0 1700000000000\n\n"},
		{{KEY, .grace = TW_REDIS_DELAY_MAX},
		 253402300799999,
		 "25 3153600000000 253402300799999\n\n"},
	};
	struct buffer buffer = {0};
	struct record record;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		assert_int_equal(
			record_write(&buffer, &heads[i].task, heads[i].latest_due_ms, NULL), TW_OK);
		assert_int_equal(buffer.size, strlen(heads[i].head));
		assert_memory_equal(buffer.data, heads[i].head, buffer.size);
		assert_int_equal(read_due(&record, &buffer), TW_OK);
		assert_true(record.due_ms == 1700000000123);
		assert_true(record.task.grace == heads[i].task.grace);
		assert_true(record.latest_due_ms == heads[i].latest_due_ms);
		record_free(&record);
	}
	buffer_free(&buffer);
}

TEST(once, records_of_others_are_recognized)
{
	static const char *const records[] = {"",
					      "8 0\n\n",
					      "-7 8 0\n\n",
					      "7\n\n",
					      "7 8",
					      "7 8 0",
					      "7 8 0\n",
					      "7 x 0\n\n",
					      "7 99999999999 0\n\n",
					      "7 8\n\n",
					      "7 8 \n\n",
					      "7 8 -1\n\n",
					      "7 8 x\n\n",
					      "7 8 12345678901234\n\n",
					      "7 8 0 \n\n",
					      "7 8 0 1",
					      "7 8 0 1 1\n\n",
					      "7 8 0\nG\n\n",
					      "7 8 0\nG a\x1b\n\n",
					      "7 8 0\nG \xff\n\n",
					      "7 8 0\nX a\n\n",
					      "7 8 0\nPOST\n\n",
					      "7 8 0\nPOST ftp://h/x\n\n",
					      "7 8 0\nPOST http://h",
					      "7 8 0\nPOST http://h\n",
					      "7 8 0\nTRACE http://h\n\n",
					      "7 8 0\npost http://h\n\n",
					      "7 8 0\nH A: b\n\n",
					      "7 8 0\nPOST http://h\nH no colon\n\n"};

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		char data[64];
		struct record record;

		strcpy(data, records[i]);
		if (record_read(&record, data, strlen(data)) != TW_REDIS_BAD_DATA)
			fail_msg("%s was accepted", records[i]);
	}
	assert_int_equal(
		record_read(&(struct record){0}, (char[]){"7 8 0\nPOST http://h\0\n\n"}, 22),
		TW_REDIS_BAD_DATA);
}

TEST(once, record_with_more_headers_than_a_task_may_have_is_refused)
{
	for (int more = 0; more < 2; more++) {
		char data[32 + 7 * (TW_REDIS_HEADER_COUNT_MAX + 1)] = "7 8 0\nPOST http://h\n";
		struct record record;

		for (int i = 0; i < TW_REDIS_HEADER_COUNT_MAX + more; i++)
			strcat(data, "H A:b\n");
		strcat(data, "\n");
		assert_int_equal(record_read(&record, data, strlen(data)),
				 more ? TW_REDIS_BAD_DATA : TW_OK);
		if (!more)
			assert_int_equal(record.task.header_count, TW_REDIS_HEADER_COUNT_MAX);
		record_free(&record);
	}
}

TEST(once, bad_callbacks_are_refused)
{
	static const char *const urls[] = {"ftp://h",
					   "file:///etc/passwd",
					   "h",
					   "",
					   "http://",
					   "http:///path",
					   "http://:80/",
					   "http://u@/x",
					   "http://h/a b",
					   "http://h/\r\n",
					   "https://?x",
					   "http://h/\x7f",
					   "http://u@v@/x",
					   "http://h/a\tb",
					   "javascript:x",
					   "HTTP//host"};
	struct tw_redis_error error;

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		if (task_check(&(struct tw_redis_task){KEY, .url = urls[i]}, &error) !=
		    TW_REDIS_BAD_DATA)
			fail_msg("%s was accepted", urls[i]);
	assert_int_equal(task_check(&(struct tw_redis_task){KEY, .url = "HTTPS://h"}, NULL), TW_OK);
	assert_int_equal(
		task_check(&(struct tw_redis_task){KEY, .url = "http://h", .method = TW_REDIS_HEAD,
						   .body = "x", .body_size = 1},
			   &error),
		TW_REDIS_BAD_DATA);
}

TEST(once, bad_headers_are_refused)
{
	static const char *const headers[] = {"",
					      "no colon",
					      ": x",
					      "a b: c",
					      "a: b\r\nc: d",
					      "a: b\n",
					      "tw-token: 9",
					      "content-length: 3",
					      "Host: other",
					      "Connection: x",
					      "Transfer-Encoding: chunked",
					      "Tw-a-name-that-is-longer-than-what-the-error-"
					      "tells-of-a-name: x",
					      NULL};
	const char *const fine = "A: b\tc";

	assert_int_equal(task_check(&(struct tw_redis_task){KEY, .url = "http://h",
							    .headers = &fine, .header_count = 1},
				    NULL),
			 TW_OK);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		const struct tw_redis_task task = {KEY, .url = "http://h", .headers = &headers[i],
						   .header_count = 1};
		struct tw_redis_error error;

		if (task_check(&task, &error) != TW_REDIS_BAD_DATA)
			fail_msg("%s was accepted", headers[i] ? headers[i] : "NULL");
		assert_true(strlen(error.text) < 100);
	}
}

TEST(once, bad_fields_are_invalid)
{
	const struct tw_redis_task bad[] = {
		{.key_size = 1},
		{.key = "k"},
		{KEY, .cron = "@daily", .missed = TW_REDIS_MISSED_ALL + 1},
		{KEY, .every = TW_HOUR, .missed = TW_REDIS_MISSED_ALL + 1},
		{KEY, .at_ms = -1},
		{KEY, .every = 1},
		{KEY, .every = TW_MILLISECOND - 1},
		{KEY, .every = -1},
		{KEY, .every = TW_REDIS_DELAY_MAX + 1},
		{KEY, .every = TW_FOREVER},
		{KEY, .every = TW_HOUR, .cron = "@daily"},
		{KEY, .zone = "UTC"},
		{KEY, .grace = -1},
		{KEY, .grace = 1},
		{KEY, .grace = TW_SECOND - 1},
		{KEY, .grace = TW_REDIS_DELAY_MAX + 1},
		{KEY, .grace = TW_FOREVER},
		{KEY, .latest = -1},
		{KEY, .latest = INT64_MIN},
		{KEY, .latest = TW_FOREVER},
		{KEY, .latest = TW_REDIS_DELAY_MAX + 1},
		{KEY, .latest = TW_HOUR, .every = TW_HOUR},
		{KEY, .latest = TW_HOUR, .cron = "@daily"},
		{KEY, .mode = TW_REDIS_REPLACE + 1},
		{KEY, .method = TW_REDIS_HEAD + 1},
		{KEY, .url = "http://h", .header_count = 1},
		{KEY, .body_size = 1}};
	struct tw_redis_error error;

	assert_int_equal(task_check(NULL, &error), TW_INVALID);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error.status = TW_OK;
		assert_int_equal(task_check(&bad[i], &error), TW_INVALID);
		assert_int_equal(error.status, TW_INVALID);
	}
}

TEST(once, what_is_over_a_limit_is_refused)
{
	static char long_url[TW_REDIS_URL_MAX + 2];
	static char long_header[TW_REDIS_HEADERS_MAX + 2] = "A:";
	const char *headers[TW_REDIS_HEADER_COUNT_MAX + 1];
	struct tw_redis_task task = {KEY, .body = "x", .body_size = TW_REDIS_BODY_MAX + 1};
	struct tw_redis_error error;

	assert_int_equal(task_check(&task, &error), TW_REDIS_BAD_DATA);
	task.body_size = 1;
	task.url = long_url;
	memset(long_url, 'a', sizeof(long_url) - 1);
	memcpy(long_url, "http://", 7);
	assert_int_equal(task_check(&task, &error), TW_REDIS_BAD_DATA);
	long_url[TW_REDIS_URL_MAX] = '\0';
	assert_int_equal(task_check(&task, &error), TW_OK);
	task.headers = headers;
	for (size_t i = 0; i <= TW_REDIS_HEADER_COUNT_MAX; i++)
		headers[i] = "A: b";
	task.header_count = TW_REDIS_HEADER_COUNT_MAX + 1;
	assert_int_equal(task_check(&task, &error), TW_REDIS_BAD_DATA);
	task.header_count = TW_REDIS_HEADER_COUNT_MAX;
	assert_int_equal(task_check(&task, &error), TW_OK);
	/* Two of these exceed the limit together. */
	memset(long_header + 2, 'b', sizeof(long_header) - 3);
	headers[0] = long_header;
	task.header_count = 2;
	long_header[TW_REDIS_HEADERS_MAX - 3] = '\0';
	assert_int_equal(task_check(&task, &error), TW_REDIS_BAD_DATA);
	long_header[TW_REDIS_HEADERS_MAX - 4] = '\0';
	assert_int_equal(task_check(&task, &error), TW_OK);
	task.header_count = 0;
	task.url = NULL;
	task.key_size = TW_REDIS_KEY_MAX + 1;
	assert_int_equal(task_check(&task, &error), TW_INVALID);
	task.key_size = 1;
	task.delay = TW_REDIS_DELAY_MAX + 1;
	assert_int_equal(task_check(&task, &error), TW_INVALID);
	task.delay = 0;
	task.max_attempts = TW_REDIS_ATTEMPTS_MAX + 1;
	assert_int_equal(task_check(&task, &error), TW_INVALID);
}

TEST(once, text_that_is_not_utf8_is_refused)
{
	static const char *const good[] = {"\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf",
					   "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\xff",
					  "\x80",
					  "\xc3",
					  "\xc1\xbf",
					  "\xe0\x9f\xbf",
					  "\xed\xa0\x80",
					  "\xe2\x82",
					  "\xf0\x8f\xbf\xbf",
					  "\xf4\x90\x80\x80",
					  "\xf8\x88\x80\x80\x80"};
	char url[32];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(group_check(good[i], NULL), TW_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *const header = url + strlen("http://");
		const struct tw_redis_task tasks[] = {
			{KEY, .url = url},
			{KEY, .group = bad[i]},
			{KEY, .url = "http://h/", .headers = &header, .header_count = 1}};

		snprintf(url, sizeof(url), "http://A:%s", bad[i]);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(task_check(&tasks[k], NULL), TW_REDIS_BAD_DATA);
	}
}

/* Other entries are those of a task that runs once. */
TEST(once, entry_that_cannot_be_read_recurs_no_more)
{
	static char too_long[64 + TW_REDIS_CRON_MAX] = "1 0 one cron UTC ";
	char none[][40] = {
		"",           "1 0 one cron UTC", "1 0 one -1", "1 0 all 9999999999999999",
		"-1 0 one 5", "1 0 one",          "nothing",    "-1 0 one cron UTC @daily"};
	char long_zone[64 + TW_CRON_ZONE_MAX];
	struct recurrence how;

	memset(too_long + strlen(too_long), '*', TW_REDIS_CRON_MAX + 1);
	assert_false(recurrence_read(&how, too_long));
	snprintf(long_zone, sizeof(long_zone), "1 0 one cron %0*d @daily", TW_CRON_ZONE_MAX + 1, 0);
	assert_false(recurrence_read(&how, long_zone));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(recurrence_read(&how, none[i]));
}
