/* SPDX-License-Identifier: MIT */
/* tw_write_metrics writes the wheel's statistics as text for Prometheus. */
#include "support/test.h"

#include "support/probe.h"
#include "support/recorder.h"
#include "support/stats.h"
#include "support/text.h"

static void live(struct recorder *recorder)
{
	set_timer(recorder, "a", 1, INTERVAL * 2);
	set_timer(recorder, "b", 2, INTERVAL * 20);
	set_timer(recorder, "c", 3, INTERVAL * 30);
	set_timer(recorder, "b", 4, INTERVAL * 20);
	move_timer(recorder, "c", INTERVAL * 40);
	settle(recorder);
	advance(recorder, INTERVAL * 5);
	remove_timer(recorder, "c");
	settle(recorder);
}

RECORDED(everywhere, statistics_are_written_by_their_kinds)
{
	static const char *const lines[] = {
		"# TYPE shop:wheel_set_total counter",
		"shop:wheel_set_total 3",
		"shop:wheel_replaced_total 1",
		"shop:wheel_moved_total 1",
		"shop:wheel_removed_total 1",
		"shop:wheel_fired_total 1",
		"# TYPE shop:wheel_pending gauge",
		"shop:wheel_pending 1",
		"# TYPE shop:wheel_longest_running_seconds gauge",
		"# TYPE shop:wheel_lateness_seconds summary",
		"shop:wheel_lateness_seconds_count 1",
		"shop:wheel_task_seconds_count 1",
	};
	static struct text text;

	memset(&text, 0, sizeof(text));
	live(recorder);
	assert_status(tw_write_metrics(recorder->wheel, text_write, &text, "shop:wheel"), TW_OK);
	assert_false(text.is_torn);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!text_has_line(&text, lines[i]))
			fail_msg("%s: missing in %s", lines[i], text.bytes);
}

RECORDED(everywhere, times_are_in_seconds)
{
	static struct text text;

	memset(&text, 0, sizeof(text));
	live(recorder);
	assert_status(tw_after_func(recorder->wheel, INTERVAL / 2 - tw_now(recorder->wheel),
				    run_nothing, NULL, NULL),
		      TW_OK);
	settle(recorder);
	assert_status(tw_write_metrics(recorder->wheel, text_write, &text, NULL), TW_OK);
	assert_true(text_has_line(&text, "tw_wheel_lateness_seconds{quantile=\"1\"} 0.004500000"));
}

RECORDED(everywhere, each_line_is_a_comment_or_a_name_with_a_number)
{
	static struct text text;
	size_t metrics = 0;

	memset(&text, 0, sizeof(text));
	assert_status(tw_write_metrics(recorder->wheel, text_write, &text, "w"), TW_OK);
	for (const char *at = text.bytes; *at; at = strchr(at, '\n') + 1) {
		char *end;

		if (strncmp(at, "# HELP w_", 9) == 0 || strncmp(at, "# TYPE w_", 9) == 0)
			continue;
		assert_int_equal(strncmp(at, "w_", 2), 0);
		(void)strtod(strchr(at, ' ') + 1, &end);
		assert_int_equal(*end, '\n');
		metrics++;
	}
	assert_true(metrics > 20);
}

RECORDED(everywhere, stopped_wheel_writes_its_metrics)
{
	static struct text text;

	memset(&text, 0, sizeof(text));
	set_timer(recorder, "a", 1, TW_HOUR);
	flush_wheel(recorder);
	stop_wheel(recorder);
	assert_status(tw_write_metrics(recorder->wheel, text_write, &text, NULL), TW_OK);
	assert_true(text_has_line(&text, "tw_wheel_stopped_total 1"));
}

RECORDED(everywhere, bad_arguments_are_refused_and_nothing_is_written)
{
	static const char *const bad[] = {"", "1a", "a b", "a-b", "a\n", "\xc3\xa4"};
	static struct text text;
	struct tw_wheel *wheel = recorder->wheel;
	char longest[TW_METRICS_PREFIX_MAX + 2];

	memset(&text, 0, sizeof(text));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_status(tw_write_metrics(wheel, text_write, &text, bad[i]), TW_INVALID);
	assert_status(tw_write_metrics(NULL, text_write, &text, "a"), TW_INVALID);
	assert_status(tw_write_metrics(wheel, NULL, &text, "a"), TW_INVALID);
	memset(longest, 'p', sizeof(longest));
	longest[TW_METRICS_PREFIX_MAX + 1] = '\0';
	assert_status(tw_write_metrics(wheel, text_write, &text, longest), TW_INVALID);
	assert_int_equal(text.size, 0);
	longest[TW_METRICS_PREFIX_MAX] = '\0';
	assert_status(tw_write_metrics(wheel, text_write, &text, longest), TW_OK);
	assert_false(text.is_torn);
	assert_true(text.writes > 1);
}
