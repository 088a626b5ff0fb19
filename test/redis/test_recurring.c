/* SPDX-License-Identifier: MIT */
/*
 * These tests are about recurring tasks. Whatever ends an occurrence sets the next one; times don't
 * drift; missed times are run as asked for; none is lost or runs twice.
 */
#include "support/steps.h"

#include "redis/client/recurrence.h"
#include "redis/wire/space.h"

STEPS(occurrences_follow_each_other_without_a_drift,
      "add a every 1m missed all = 0; claim = a#1@0; pass 59s; done a; done a = STALE;"
      "stats tasks recurring = 1 1; get a due = 1m; pass 1s; claim = a#1@1m; done a:1 = STALE;"
      "done a; pass 90s; claim = a#1@2m; done a; get a due = 3m")

/* ---- Missed times ---- */

STEPS(missed_times_are_made_up_for_by_one_run,
      "add a every 1m missed one = 0; pass 10m30s; claim = a#1@0; done a; get a due = 10m;"
      "claim = a#1@10m; done a; get a due = 11m")
STEPS(missed_times_are_skipped,
      "add a every 1m missed skip = 0; pass 10m30s; claim = a#1@0; done a; get a due = 11m")
STEPS(missed_times_are_all_made_up_for,
      "add a every 1m missed all = 0; pass 10m30s; claim = a#1@0; done a; get a due = 1m")

/* ---- A program adds its tasks again at each start ---- */

STEPS(same_beginning_in_the_past_means_the_same_times,
      "add a every 1h at -10h1s = 59m59s; add a every 1h at -10h1s = 59m59s;"
      "get a due = 59m59s; stats tasks = 1; add a every 1h at -10h1s mode new = EXISTS;"
      "add b every 1h at -10h1s mode replace = NOT_FOUND; stats recurring = 1")
/* The first time is no multiple of the period since 1970. */
STEPS(same_period_again_keeps_the_occurrence,
      "clock 1s; add a every 1h in 1h missed skip = 1h1s;"
      "add a every 1h missed skip body new = 1h1s; get a due body = 1h1s new; move a = 1s;"
      "add a every 1h missed skip = 1h1s; claim = a#1;"
      "add a every 1h in 1h missed skip = 1h1s; retry a why busy;"
      "add a every 1h at -8h59m59s missed skip = 1h1s; claim = a#2; done a; get a due = 2h1s")
STEPS(another_rhythm_begins_again,
      "add a every 1h in 1h; move a; claim = a; add a every 2h in 2h = 2h; done a = STALE;"
      "add b every 1h in 1h; move b; claim = b; add b every 1h in 1m = 1m; done b = STALE;"
      "add c every 1h in 1h; move c; claim = c; add c every 1h at -8h59m59s999ms = 1ms;"
      "done c = STALE; add d every 1h in 1h; move d; claim = d; add d every 1h at 2h = 2h;"
      "done d = STALE; add e every 1h in 1h; move e; claim = e;"
      "add e every 1h in 1h missed all = 1h; done e = STALE; add f every 1h in 1h; move f;"
      "claim = f; add f cron '0 0 1 2 *' = 744h; done f = STALE; get a due = 2h;"
      "get b due = 1m; get c due = 1ms; get d due = 2h; get e due = 1h;"
      "get f due every cron = 744h 0 0 0 1 2 *")

/* ---- Ends of an occurrence ---- */

STEPS(cancelled_occurrence_is_followed_by_the_next,
      "add a every 1h in 1m = 1m; cancel a; get a due = 1h1m; cancel a whole;"
      "cancel a whole = NOT_FOUND; keys = 0")
STEPS(moved_occurrence_moves_no_other,
      "add a every 1h in 1m; move a = 0; claim = a; done a; get a due = 1h1m")
STEPS(ended_while_it_runs_it_is_the_last,
      "add a every 1m; claim = a; cancel a whole = RUNNING; stats tasks = 1; done a; keys = 0")
STEPS(failed_occurrence_keeps_its_time,
      "add a every 1m missed all; claim = a#1; retry a in 5m; pass 5m; claim = a#2; done a;"
      "get a due = 1m")
STEPS(overtaken_run_sets_nothing,
      "add a every 1h; claim lease 1s = a#1; pass 1s; claim = a#2; done a:1 = STALE;"
      "get a state = leased; done a; done a:1 = STALE; get a due = 1h")
STEPS(plain_task_takes_the_place_of_a_recurring_one,
      "add a every 1m; add a; stats recurring = 0; claim = a; done a; keys = 0")

/* ---- Dead letters: 1893456000000 is the beginning ---- */

STEPS(dead_occurrence_is_followed_by_the_next,
      "add a every 1m missed all; claim = a; kill a why no;"
      "letter a#due=1893456000000 why = no; get a due tried = 1m 0")
STEPS(dead_occurrences_can_be_retried,
      "add a every 1m missed all; claim = a; kill a; pass 1m; claim = a; kill a; move a in 1h;"
      "stats dead = 2; revive a = NOT_FOUND; revive a#due=1893456000000;"
      "claim = a#due=1893456000000#1; done a#due=1893456000000;"
      "get a#due=1893456000000 = NOT_FOUND; revive a#due=1893456060000;"
      "claim = a#due=1893456060000#1; done a#due=1893456060000;"
      "stats dead tasks recurring = 0 1 1")
STEPS(occurrence_whose_last_lease_ended_is_followed_by_the_next,
      "add a every 1h max 1; claim lease 1s = a; pass 1s; claim = none;"
      "letter a#due=1893456000000 = OK; get a due = 1h")

/* ---- Others ---- */

STEPS(many_are_added_with_others,
      "add a in 1h , a every 1m , a in 1h , b every 1m = 1h 0 1h 0;"
      "stats tasks recurring = 2 1; add a every 1m , b in 1h = 0 1h; stats recurring = 1;"
      "add a in 1h; stats recurring = 0")
STEPS(listings_show_how_it_recurs,
      "add a every 1m missed skip; get a every missed = 1m skip; add a every 1m missed all;"
      "get a every missed = 1m all; add a in 1h; get a every = 0")
STEPS(restored_task_replaces_all_of_another_as_its_mode_says,
      "restore a mode replace due 5s = NOT_FOUND; get a = NOT_FOUND; add a every 1m;"
      "restore a mode new due 5s tried 2 = EXISTS; get a due tried = 0 0; claim = a;"
      "restore a mode replace due 5s tried 2; stats recurring = 0;"
      "get a due tried token = 5s 2 none; done a = STALE; restore b mode new due 5s;"
      "restore b due 6s; get b due = 6s")
/* The period goes on from the occurrence, and not from the end of the lease. */
STEPS(restored_rhythm_goes_on,
      "add a every 1h; claim = a#1; restore a every 1h at 0 due 1m tried 1; pass 1m; claim = a#2;"
      "done a; get a due tried = 1h 0")
STEPS(occurrences_that_would_begin_too_late_are_skipped,
      "restore a every 1h grace 2h due -10h30m at -10h30m; claim = none; claim = a#1@-30m;"
      "restore b every 1h grace 2h due -10h30m at -10h30m missed skip; claim = none;"
      "get b at = 30m; restore c every 1h grace 2h due -10h30m at -10h30m missed all;"
      "claim = none; claim = c#1@-1h30m; restore d grace 1s due -2s; claim = none;"
      "get d = NOT_FOUND; stats dead = 0")

/* The key has no room for a due time in the letter's key. */
STORED(fixture, letter_of_a_long_key_has_that_key)
{
	char key[TW_REDIS_KEY_MAX + 1];
	struct tw_redis_task task = {.key = key, .every = TW_HOUR};
	struct tw_redis_batch *batch;

	memset(key, 'k', TW_REDIS_KEY_MAX);
	for (task.key_size = 1000; task.key_size <= TW_REDIS_KEY_MAX; task.key_size += 24) {
		key[task.key_size] = '\0';
		add_one(fixture->redis, &task);
		batch = await_claim(fixture->redis, key, TW_MINUTE);
		assert_int_equal(fail_job(fixture->redis, batch, TW_FOREVER, "hopeless"), TW_OK);
		assert_int_equal(find_dead(fixture->redis, key).status,
				 task.key_size == 1000 ? TW_NOT_FOUND : TW_OK);
		key[task.key_size] = 'k';
	}
	assert_int_equal(stats_of(fixture->redis).dead, 2);
}

/* A letter that names an occurrence is in its task's shard; any other letter stays in its key's. */
TEST(fixture, occurrences_are_in_the_shard_of_their_task)
{
	static const char *const others[] = {"#due=1",   "a#due=", "a#dux=1",
					     "a#due=1x", "due=1",  "1"};
	struct space space;

	space_init(&space, "name", TW_REDIS_SHARDS_MAX);
	assert_int_equal(space_shard(&space, "a#due=1", 7), crc16("a", 1) % TW_REDIS_SHARDS_MAX);
	assert_int_equal(space_shard(&space, "a#due=1064319972740", 19),
			 crc16("a", 1) % TW_REDIS_SHARDS_MAX);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(space_shard(&space, others[i], strlen(others[i])),
				 crc16(others[i], strlen(others[i])) % TW_REDIS_SHARDS_MAX);
}

TEST(fixture, next_time_is_the_first_of_the_series_that_counts)
{
	static const struct {
		const char *entry;
		int64_t now_ms, oldest_ms, next_ms;
	} cases[] = {
		{"1000 0 one 100", 900, 0, 1100},
		{"1000 0 one 100", 1099, 0, 1100},
		{"1000 0 one 100", 1100, 0, 1100},
		{"1000 0 one 100", 1350, 0, 1300},
		{"1000 0 skip 100", 1350, 0, 1400},
		{"1000 0 all 100", 1350, 0, 1100},
		{"1000 0 all 100", 1350, 1250, 1300},
		{"1000 0 one 100", 1350, 1200, 1300},
		/* The clock was ahead. */
		{"9000 8900 one 100", 3900, 0, 9100},
		{"9000 8900 one 100", 3899, 0, 3900},
		{"9000 8900 all 100", 1350, 0, 1400},
		{"9000 0 all 100", 1350, 0, 9100},
		{"1000 0 one cron UTC * * * * *", 30000, 0, 60000},
		{"1000 0 one cron UTC * * * * *", 190000, 0, 180000},
		{"1000 0 skip cron UTC * * * * *", 190000, 0, 240000},
		{"1000 0 all cron UTC * * * * *", 190000, 0, 60000},
		{"900000 800000 one cron UTC * * * * *", 190000, 0, 240000},
		{"253339228800000 0 one cron UTC 0 0 1 1 *", INT64_C(253402300799000), 0,
		 INT64_C(253370764800000)},
		{"1000 0 one cron UTC 0 0 30 2 *", 190000, 0, INT64_MAX},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char entry[100];
		struct recurrence how;
		int64_t next_ms;

		snprintf(entry, sizeof(entry), "%s", cases[i].entry);
		assert_true(recurrence_read(&how, entry));
		assert_int_equal(
			recurrence_next(&how, cases[i].now_ms, cases[i].oldest_ms, &next_ms),
			TW_OK);
		if (next_ms != cases[i].next_ms)
			fail_msg("%s at %lld: %lld", cases[i].entry, (long long)cases[i].now_ms,
				 (long long)next_ms);
	}
}

/* ---- A server's clock that was ahead ---- */

/* Adds the task by a clock that is ahead, and has it run once. With `ends_after` that run ends when
 * the clock is right again. Checks that the task is due by the right clock then, and goes on. */
static void check_step(struct fixture *fixture, const char *rhythm, const char *ahead,
		       bool ends_after)
{
	char text[300];
	int64_t now_ms;
	int64_t due_ms;

	snprintf(text, sizeof(text), "clock %s; add k %s; move k; claim = k; %s; claim = none",
		 ahead, rhythm, ends_after ? "clock 10ms; done k" : "done k; clock 10ms");
	steps_run(fixture, text, __FILE__, __LINE__);
	now_ms = redis_server_now(&fixture->server);
	due_ms = find_task(fixture->redis, "k").due_ms - now_ms;
	/* The calendar's time that was moved does not come again. */
	assert_in_range(due_ms, 1, 610000);
	snprintf(text, sizeof(text),
		 "clock %lldms; claim = k#1; done k; claim = none; cancel k whole;"
		 "redis DEL {}state",
		 (long long)due_ms + 10);
	steps_run(fixture, text, __FILE__, __LINE__);
}

STORED(one_shard, task_goes_on_by_the_right_clock_after_a_clock_that_was_ahead)
{
	static const char *const rhythms[] = {"every 5m missed one", "every 5m missed skip",
					      "every 5m missed all", "cron '*/5 * * * *'",
					      "cron '*/5 * * * *' zone Europe/Berlin missed all"};
	static const char *const steps[] = {"1s", "59m", "2h", "24h", "78840h"};

	for (size_t i = 0; i < sizeof(rhythms) / sizeof(rhythms[0]); i++)
		for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++)
			for (int ends_after = 0; ends_after < 2; ends_after++)
				check_step(fixture, rhythms[i], steps[k], ends_after);
}

CLOCKED_FILE
