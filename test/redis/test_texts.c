/* SPDX-License-Identifier: MIT */
/* These are the texts that twr reads and writes: times, durations, and tasks as lines of JSON. */
#include "support/test.h"

#include <timingwheel/redis.h>

#include "twr/when.h"
#include "twr/task_line.h"

TEST(once, length_of_time_is_a_sum_of_numbers_with_units)
{
	static const struct {
		const char *text;
		tw_duration duration; /* -1 if the text is invalid */
	} cases[] = {
		{"0", 0},
		{"90", 90 * TW_SECOND},
		{"1.5", 1500 * TW_MILLISECOND},
		{"250ms", 250 * TW_MILLISECOND},
		{"3us", 3 * TW_MICROSECOND},
		{"1h30m", 90 * TW_MINUTE},
		{"1m1s", 61 * TW_SECOND},
		{"7d", 7 * 24 * TW_HOUR},
		{"0.1234567891s", 123456789},
		{"", -1},
		{"s", -1},
		{"1.", -1},
		{"1.s", -1},
		{"1x", -1},
		{"1sec", -1},
		{"1mss", -1},
		{"1h30", -1},
		{"-1", -1},
		{" 1", -1},
		{"9223372036", -1},
		{"9000000000h", -1},
		{"50000d50000d50000d", -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		tw_duration duration = -1;

		assert_int_equal(duration_parse(cases[i].text, &duration), cases[i].duration >= 0);
		assert_int_equal(duration, cases[i].duration);
	}
}

TEST(once, time_has_a_zone_or_is_a_number)
{
	static const struct {
		const char *text;
		int64_t at_ms; /* -1 if the text is invalid */
	} cases[] = {
		{"0", 0},
		{"1.0001", 1001},
		{"1970-01-01T00:00Z", 0},
		{"1970-01-01t00:01:00z", 60000},
		{"1970-01-01 00:00:30.2501Z", 30251},
		{"1970-01-01T02:00+02:00", 0},
		{"1970-01-01T00:00-0130", 5400000},
		{"1972-02-29T00:00Z", 68169600000},
		{"1973-02-29T00:00Z", -1},
		{"1970-04-31T00:00Z", -1},
		{"1970-13-01T00:00Z", -1},
		{"1970-01-01T24:00Z", -1},
		{"1970-01-01T00:60Z", -1},
		{"1970-01-01T00:00:60Z", -1},
		{"1970-01-01T00:00:1Z", -1},
		{"1970-01-01T00:00:00.Z", -1},
		{"1970-01-01T00:00", -1},
		{"1970-01-01T00:00Zz", -1},
		{"1970-01-01T00:00 02:00", -1},
		{"1970-01-01T00:00+2:00", -1},
		{"1970-01-01T00:00+02:000", -1},
		{"1970-01-01T00:00+24:00", -1},
		{"1970-01-01T00:00+00:60", -1},
		{"1970-01-01T00:00+02:00", -1}, /* before 1970 */
		{"1970-01-01X00:00Z", -1},
		{"1970-1-01T00:00Z", -1},
		{"tomorrow", -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t at_ms = -1;
		bool is_time = time_parse(cases[i].text, &at_ms);

		assert_int_equal(is_time, cases[i].at_ms >= 0);
		if (is_time)
			assert_int_equal(at_ms, cases[i].at_ms);
	}
}

TEST(once, time_is_written_in_utc)
{
	char text[WHEN_SIZE];

	assert_string_equal(time_write(1250, text), "1970-01-01T00:00:01.250Z");
	assert_string_equal(time_write(INT64_MAX, text), "292278994-08-17T07:12:55.807Z");
	assert_string_equal(duration_write(250 * TW_MICROSECOND, text), "250 us");
	assert_string_equal(duration_write(12300 * TW_MICROSECOND, text), "12.3 ms");
	assert_string_equal(duration_write(4560 * TW_MILLISECOND, text), "4.56 s");
}

TEST(once, what_is_written_as_base64_is_read_again)
{
	static const char *const wrong[] = {
		"A",    "AAA",  "AA=A",  "====",     "A===",      "AB==",
		"AAB=", "AA!=", "AAAAA", "AA==AAAA", "AA\\u0000="};
	const struct tw_redis_task task = {.key = "\xff\0\x10 bytes"};

	for (size_t count = 1; count < 10; count++) {
		struct tw_redis_info info = {.task = task};
		struct task_line line;
		char *text;
		json_t *object;

		info.task.key_size = count;
		info.task.max_attempts = 1;
		object = task_line_write(&info);
		text = json_dumps(object, 0);
		assert_non_null(strstr(text, "key_base64"));
		assert_true(task_line_read(&line, text, strlen(text)));
		assert_int_equal(line.info.task.key_size, count);
		assert_memory_equal(line.info.task.key, task.key, count);
		task_line_free(&line);
		json_decref(object);
		free(text);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct task_line line;
		char text[64];

		snprintf(text, sizeof(text), "{\"key_base64\": \"%s\"}", wrong[i]);
		assert_false(task_line_read(&line, text, strlen(text)));
		assert_string_equal(line.reason, "\"key_base64\" is not bytes in base64");
		task_line_free(&line);
	}
}

TEST(once, line_is_a_task_or_has_a_reason)
{
	static const struct {
		const char *text;
		const char *reason; /* NULL if the line is a task */
	} cases[] = {
		{"{\"key\": \"a\"}", NULL},
		{"{\"key\": \"a\", \"due\": \"1970-01-01T00:00Z\", \"missed\": \"all\"}", NULL},
		{"{\"key\": \"a\", \"due\": 7, \"due_ms\": 7}", NULL},
		{"{\"key\": \"a\", \"method\": \"PATCH\", \"attempts\": 4294967295}", NULL},
		{"{\"key\": \"a\", \"state\": \"waiting\", \"token\": 3}", NULL},
		{"{\"key_base64\": \"AA==\", \"body_base64\": \"\"}", NULL},
		{"{\"key\": \"a\", \"headers\": [\"A: b\"], \"callback\": \"c\"}", NULL},
		{"{\"key\": \"a\", \"state\": \"dead\", \"due_ms\": 1, \"reason_base64\": "
		 "\"/w==\"}",
		 NULL},
		{"", "the line is not JSON (byte 0)"},
		{"[]", "the line is not a JSON object"},
		{"{\"key\": \"a\", \"key\": \"a\"}", "a field occurs twice"},
		{"{}", "the line has no key"},
		{"{\"key\": \"\"}", "\"key\" is not a string of 1 to 1024 bytes"},
		{"{\"key\": 1}", "\"key\" is not a string of 1 to 1024 bytes"},
		{"{\"key_base64\": 1}", "\"key_base64\" is not bytes in base64"},
		{"{\"key_base64\": \"\"}", "\"key\" is not a string of 1 to 1024 bytes"},
		{"{\"key\": \"a\", \"nothing\": 1}", "there is no field \"nothing\""},
		{"{\"key\": \"a\", \"body\": 1}", "\"body\" is not a string"},
		{"{\"key\": \"a\", \"body_base64\": 1}", "\"body_base64\" is not bytes in base64"},
		{"{\"key\": \"a\", \"due_ms\": \"1\"}",
		 "\"due_ms\" is not milliseconds since 1970, up to the year 9999"},
		{"{\"key\": \"a\", \"due_ms\": -1}",
		 "\"due_ms\" is not milliseconds since 1970, up to the year 9999"},
		{"{\"key\": \"a\", \"due_ms\": 1000000000000000}",
		 "\"due_ms\" is not milliseconds since 1970, up to the year 9999"},
		{"{\"key\": \"a\", \"due\": 1}",
		 "\"due\" is not a time such as \"2031-05-01T12:00:00Z\""},
		{"{\"key\": \"a\", \"due\": \"soon\"}",
		 "\"due\" is not a time such as \"2031-05-01T12:00:00Z\""},
		{"{\"key\": \"a\", \"due\": \"9000000000\"}", NULL},
		{"{\"key\": \"a\", \"due\": \"900000000000\"}",
		 "\"due\" is not a time such as \"2031-05-01T12:00:00Z\""},
		{"{\"key\": \"a\", \"due\": \"9999-12-31T23:59:59.999Z\"}", NULL},
		{"{\"key\": \"a\", \"due\": \"9999-12-31T23:59-00:01\"}",
		 "\"due\" is not a time such as \"2031-05-01T12:00:00Z\""},
		{"{\"key\": \"a\", \"due\": \"0\\u0000\"}",
		 "\"due\" is not a time such as \"2031-05-01T12:00:00Z\""},
		{"{\"key\": \"a\", \"every_ms\": 0}",
		 "\"every_ms\" is not milliseconds, up to 100 years"},
		{"{\"key\": \"a\", \"every_ms\": 4000000000000}",
		 "\"every_ms\" is not milliseconds, up to 100 years"},
		{"{\"key\": \"a\", \"missed\": \"none\"}",
		 "\"missed\" is not \"one\", \"skip\" or \"all\""},
		{"{\"key\": \"a\", \"missed\": \"all\\u0000\"}",
		 "\"missed\" is not \"one\", \"skip\" or \"all\""},
		{"{\"key\": \"a\", \"missed\": 1}",
		 "\"missed\" is not \"one\", \"skip\" or \"all\""},
		{"{\"key\": \"a\", \"method\": 1}", "\"method\" is not \"POST\", \"GET\", \"PUT\", "
						    "\"PATCH\", \"DELETE\" or \"HEAD\""},
		{"{\"key\": \"a\", \"headers\": 1}",
		 "\"headers\" is not an array of strings \"Name: value\""},
		{"{\"key\": \"a\", \"headers\": [1]}",
		 "\"headers\" is not an array of strings \"Name: value\""},
		{"{\"key\": \"a\", \"state\": \"gone\"}",
		 "\"state\" is not \"pending\", \"leased\", \"waiting\" or \"dead\""},
		{"{\"key\": \"a\", \"state\": 1}",
		 "\"state\" is not \"pending\", \"leased\", \"waiting\" or \"dead\""},
		{"{\"key\": \"a\", \"attempts\": \"1\"}", "\"attempts\" is not a number"},
		{"{\"key\": \"a\", \"attempts\": -1}", "\"attempts\" is not a number"},
		{"{\"key\": \"a\", \"attempts\": 4294967296}", "\"attempts\" is not a number"},
		{"{\"key\": \"a\", \"reason_base64\": 1}",
		 "\"reason_base64\" is not bytes in base64"},
		{"{\"key\": \"a\", \"reason_base64\": \"AA==\"}", "\"reason\" is not a string"},
		{"{\"group\": \"a\", \"running\": 3, \"paused\": false}", NULL},
		{"{\"key\": \"a\", \"in\": \"-5\"}",
		 "\"in\" is not a duration such as \"90\" or \"1h30m\", up to 100 years"},
		{"{\"key\": \"a\", \"in\": 90}",
		 "\"in\" is not a duration such as \"90\" or \"1h30m\", up to 100 years"},
		{"{\"key\": \"a\", \"in\": \"40000d\"}",
		 "\"in\" is not a duration such as \"90\" or \"1h30m\", up to 100 years"},
		{"{\"key\": \"a\", \"latest\": \"0\"}",
		 "\"latest\" is not a duration such as \"30s\", up to 100 years"},
		{"{\"key\": \"a\", \"latest\": 30}",
		 "\"latest\" is not a duration such as \"30s\", up to 100 years"},
		{"{\"key\": \"a\", \"latest\": \"40000d\"}",
		 "\"latest\" is not a duration such as \"30s\", up to 100 years"},
		{"{\"key\": \"a\", \"due_ms\": 1.5}",
		 "\"due_ms\" is not milliseconds since 1970, up to the year 9999"},
		{"{\"key\": \"a\", \"latest_due_ms\": -1}",
		 "\"latest_due_ms\" is not milliseconds since 1970, up to the year 9999"},
		{"{\"key\": \"a\", \"occurrence_ms\": -1}",
		 "\"occurrence_ms\" is not milliseconds since 1970, up to the year 9999"},
		{"{\"key\": \"a\", \"grace_ms\": 999}",
		 "\"grace_ms\" is not milliseconds, from a second to 100 years"},
		{"{\"key\": \"a\", \"max_attempts\": 0}",
		 "\"max_attempts\" is not a number from 1 to 1000000"},
		{"{\"key\": \"a\", \"max_attempts\": 1000001}",
		 "\"max_attempts\" is not a number from 1 to 1000000"},
		{"{\"key\": \"a\", \"callback\": \"c\\u0000\"}", "\"callback\" is not a URL"},
		{"{\"key\": \"a\", \"body_base64\": \"YWI\"}",
		 "\"body_base64\" is not bytes in base64"},
		{"{\"key\": \"a\", \"body\": \"a\", \"body_base64\": \"YQ==\"}",
		 "\"body\" and \"body_base64\" exclude each other"},
		{"{\"key\": \"a\", \"in\": \"1s\", \"due\": \"7\"}",
		 "\"in\" and \"due\" exclude each other"},
		{"{\"key\": \"a\", \"in\": \"1s\", \"due_ms\": 1}",
		 "\"in\" and \"due_ms\" exclude each other"},
		{"{\"key\": \"a\", \"latest\": \"1s\", \"state\": \"pending\"}",
		 "\"latest\" and \"state\" exclude each other"},
		{"{\"group\": 1}", "\"group\" is not a string of up to 255 bytes"},
		{"{\"key\": \"a\", \"key_base64\": \"AA==\"}",
		 "\"key\" and \"key_base64\" exclude each other"},
		{"{\"key\": \"a\", \"state\": \"dead\"}",
		 "a dead letter requires \"due_ms\", the time of its death"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct task_line line;
		bool is_task = task_line_read(&line, cases[i].text, strlen(cases[i].text));

		if (is_task != !cases[i].reason)
			fail_msg("%s: %s", cases[i].text, line.reason);
		if (!is_task)
			assert_string_equal(line.reason, cases[i].reason);
		task_line_free(&line);
	}
}

TEST(once, key_of_a_line_has_a_limit)
{
	char text[TW_REDIS_KEY_MAX + 20];
	struct task_line line;
	char line_text[2 * TW_REDIS_KEY_MAX];

	snprintf(text, sizeof(text), "{\"key\": \"%0*d\"}", TW_REDIS_KEY_MAX, 0);
	assert_true(task_line_read(&line, text, strlen(text)));
	task_line_free(&line);
	snprintf(text, sizeof(text), "{\"key\": \"%0*d\"}", TW_REDIS_KEY_MAX + 1, 0);
	assert_false(task_line_read(&line, text, strlen(text)));
	task_line_free(&line);
	/* 4 digits are 3 bytes, and 1,025 are 341 times 3 and 2. */
	snprintf(line_text, sizeof(line_text), "{\"key_base64\": \"%0*d=\"}",
		 TW_REDIS_KEY_MAX / 3 * 4 + 3, 0);
	assert_false(task_line_read(&line, line_text, strlen(line_text)));
	task_line_free(&line);
}
