/* SPDX-License-Identifier: MIT */
/*
 * The checker of `make torture-redis` reads histories that are written by hand. It accepts a right
 * one, and finds each kind of fault, alone. Lines here begin with one time, in milliseconds. All
 * clocks are the same, so a token of 65000 was claimed at 65.
 */
#include "support/test.h"

#include "torture/checker.h"

/* Lines of a history, with commas between them. */
#define BEGIN "1 main settings 1 1 1000 single"
#define END "9000 rest rest all -"
#define ADD "10 a call add k t any 50", "12 a answer TW_OK 61"
#define RUN "70 w begin k t 65000 1", "80 w end k t 65000"
#define DONE "90 w report k t 65000 done 0"

/* EVERY is a recurring task, due at 61, 161, 261 and so on; two of its occurrences, and its end,
 * follow. */
#define EVERY(missed) "10 a call every e r 50 100 " missed, "12 a answer TW_OK 61"
#define FIRST "62 w begin e r 61500 1 61", "70 w end e r 61500", "72 w report e r 61500 done 0"
#define SECOND \
	"162 w begin e r 161500 1 161", "170 w end e r 161500", "172 w report e r 161500 done 0"
#define LAST "8000 a call end e", "8001 a answer TW_OK 0"

/* Writes the line as a process would. */
static void line_write(FILE *file, const char *line)
{
	char *rest;
	long ms = strtol(line, &rest, 10);

	fprintf(file, "%ld000000 %ld000%s\n", ms, ms, rest);
}

static bool faults_have(const struct faults *faults, const char *name)
{
	for (size_t i = 0; i < faults->count; i++)
		if (!strcmp(faults->items[i].name, name))
			return true;
	return false;
}

/* Asserts these faults and no others. Commas separate the names. */
static void assert_names(const struct faults *faults, const char *names)
{
	char *copied = strdup(names);
	char *rest = NULL;

	for (size_t i = 0; i < faults->count; i++)
		if (!strstr(names, faults->items[i].name))
			fail_msg("%s: %s", faults->items[i].name, faults->items[i].text);
	for (char *name = strtok_r(copied, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		if (!faults_have(faults, name))
			fail_msg("not found: %s", name);
	free(copied);
}

/* Asserts that the history has these faults; "" means none. Each text is one line or several. */
#define assert_fault(names, ...) assert_faults(names, (const char *const[]){__VA_ARGS__, NULL})

static void assert_faults(const char *names, const char *const *texts)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	struct story story;
	struct faults faults;

	for (; *texts; texts++) {
		char *copied = strdup(*texts);
		char *rest = NULL;

		for (char *line = strtok_r(copied, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			line_write(file, line);
		free(copied);
	}
	fclose(file);
	story_read(&story, text);
	story_check(&story, &faults);
	assert_names(&faults, names);
	faults_free(&faults);
	story_free(&story);
	free(text);
}

TEST(once, right_history_passes)
{
	assert_fault("", BEGIN, ADD, RUN, DONE, END);
	/* The task is moved, retried, overtaken after its lease, seen, cancelled, and a dead
	 * letter. */
	assert_fault("", BEGIN, ADD, "20 a call move k 20", "22 a answer TW_OK 41",
		     "50 w begin k t 45000 1", "60 w end k t 45000",
		     "62 w report k t 45000 retried 100", "100 a call get k",
		     "101 a answer TW_OK t", "170 w begin k t 165000 2",
		     "1300 v begin k t 1200000 3", "1310 v end k t 1200000",
		     "1320 v report k t 1200000 done 0", "1400 w end k t 165000",
		     "1410 w report k t 165000 stale 0", "1500 a call cancel k",
		     "1501 a answer TW_NOT_FOUND 0", "1600 a call add k u new 100",
		     "1602 a answer TW_OK 1702", "1610 a call cancel k", "1612 a answer TW_OK 0",
		     "1700 a call add l x any 0", "1701 a answer TW_OK 1701",
		     "1702 w begin l x 1701500 1", "1710 w end l x 1701500",
		     "1720 w report l x 1701500 dead 0", "8999 rest rest dead l x", END);
}

TEST(once, order_of_lines_does_not_matter)
{
	assert_fault("", BEGIN, RUN, DONE, END, ADD);
}

TEST(once, history_without_the_end_is_invalid)
{
	assert_fault("unread", BEGIN, ADD, RUN, DONE);
	assert_fault("unread", BEGIN, "5 a call shout k", END);
	assert_fault("unread", BEGIN, "5 a answer TW_OK 0", END);
	assert_fault("unread", BEGIN, ADD, RUN, DONE, END, "what is this?");
}

TEST(once, lost_task_is_found)
{
	assert_fault("lost", BEGIN, ADD, END);
	/* Its run was killed before its end. */
	assert_fault("lost", BEGIN, ADD, "70 w begin k t 65000 1", END);
	/* The dead letter is missing. */
	assert_fault("lost", BEGIN, ADD, RUN, "90 w report k t 65000 dead 0", END);
	assert_fault("lost", BEGIN, ADD, RUN, "90 w report k t 65000 stale 0", END);
	/* A possible removal was too early, was refused, or removes nothing. */
	assert_fault("lost", BEGIN, "2 a call cancel k", "3 a answer TW_NOT_FOUND 0", ADD, END);
	assert_fault("lost", BEGIN, ADD, "20 a call add k u replace 5",
		     "21 a answer TW_REDIS_FAILED 0", END);
	assert_fault("lost", BEGIN, ADD, "20 b call add k u new 5",
		     "21 b answer TW_REDIS_OUTCOME_UNKNOWN 0", END);
}

TEST(once, task_that_may_have_been_removed_is_not_lost)
{
	assert_fault("", BEGIN, ADD, "20 a call cancel k", "21 a answer TW_REDIS_OUTCOME_UNKNOWN 0",
		     END);
	assert_fault("", BEGIN, ADD, "20 a call cancel k", END);
	assert_fault("", BEGIN, ADD, RUN, END);
	assert_fault("", BEGIN, ADD, RUN, "90 w report k t 65000 unconfirmed 0", END);
}

TEST(once, task_that_does_not_run_is_found)
{
	assert_fault("stays", BEGIN, ADD, "8999 rest rest task k t", END);
}

TEST(once, early_run_is_found)
{
	assert_fault("early", BEGIN, ADD, "59 w begin k t 58000 1", "80 w end k t 58000",
		     "90 w report k t 58000 done 0", END);
	/* A move to a later time counts. */
	assert_fault("early", BEGIN, ADD, "20 a call move k 100", "22 a answer TW_OK 121", RUN,
		     DONE, END);
	/* A call may not be the last if another may have happened at the same time. */
	assert_fault("", BEGIN, ADD, "20 a call move k 100", "21 b call move k 20",
		     "22 b answer TW_OK 41", "23 a answer TW_OK 121", RUN, DONE, END);
	/* A call without an answer need not have happened. */
	assert_fault("", BEGIN, ADD, "20 a call move k 500", RUN, DONE, END);
	/* The answered time is earlier than the call asked for. */
	assert_fault("early", BEGIN, "10 a call add k t any 50", "12 a answer TW_OK 12", RUN, DONE,
		     END);
	/* The attempt began before its time. */
	assert_fault("early", BEGIN, ADD, RUN, "90 w report k t 65000 retried 100",
		     "150 w begin k t 140000 2", "155 w end k t 140000",
		     "156 w report k t 140000 done 0", END);
}

TEST(once, token_that_does_not_rise_is_found)
{
	assert_fault("token falls,overtaken,two at once", BEGIN, ADD, RUN,
		     "90 w report k t 65000 retried 1", "120 w begin k t 64000 2",
		     "125 w end k t 64000", "126 w report k t 64000 done 0", END);
	/* Another task has the key. */
	assert_fault("token falls", BEGIN, ADD, "70 w begin k t 79000 1", "75 w end k t 79000",
		     "76 w report k t 79000 done 0", "77 a call add k u any 0",
		     "78 a answer TW_OK 78", "80 w begin k u 79000 1", "81 w end k u 79000",
		     "82 w report k u 79000 done 0", END);
}

TEST(once, end_of_an_overtaken_run_is_found)
{
	assert_fault("overtaken", BEGIN, ADD, "70 w begin k t 65000 1",
		     "1100 v begin k t 1090000 2", "1200 w end k t 65000",
		     "1201 w report k t 65000 done 0", "1300 v end k t 1090000",
		     "1301 v report k t 1090000 stale 0", END);
	assert_fault("overtaken", BEGIN, ADD, "70 w begin k t 65000 1",
		     "1100 v begin k t 1090000 2", "1200 w end k t 65000",
		     "1201 w report k t 65000 retried 10", "1300 v end k t 1090000",
		     "1301 v report k t 1090000 done 0", END);
}

/* The worker retried, and took "gone" for success. */
TEST(once, end_whose_answer_may_have_been_lost_is_not_sure)
{
#define OVERTAKEN                                                             \
	BEGIN, ADD, "70 w begin k t 65000 1", "1100 v begin k t 1090000 2",   \
		"1110 v end k t 1090000", "1120 v report k t 1090000 done 0", \
		"1200 w end k t 65000", END
	static const char done[] = "1900 w report k t 65000 done 0";
	static const char cut[] = "1210 nemesis deed cut w\n1800 nemesis heal cut w";

	assert_fault("overtaken,comes back", OVERTAKEN, done);
	assert_fault("", OVERTAKEN, done, cut);
	/* The worker was frozen when its connection broke. */
	assert_fault("", OVERTAKEN, done, "20 nemesis deed freeze w",
		     "30 nemesis deed server server", "40 nemesis heal server server",
		     "1199 nemesis heal freeze w");
	/* Another worker's connection broke. */
	assert_fault("overtaken,comes back", OVERTAKEN, done, "1210 nemesis deed cut v",
		     "1800 nemesis heal cut v");
	/* One call's answer leaves no doubt. */
	assert_fault("overtaken,comes back", OVERTAKEN, "1900 w exact k t 65000 done 0", cut);
}

TEST(once, two_runs_under_one_lease_are_found)
{
	assert_fault("two at once", BEGIN, ADD, "70 w begin k t 65000 1", "80 v begin k t 75000 2",
		     "90 v end k t 75000", "91 v report k t 75000 done 0", "95 w end k t 65000",
		     "96 w report k t 65000 stale 0", END);
}

/* Only the killed master knew the claim. Acknowledgements are confirmed nevertheless. */
TEST(once, claim_that_is_lost_with_its_master_is_no_fault)
{
#define AGAIN                                                                                 \
	BEGIN, ADD, "70 w begin k t 65000 1", "80 v begin k t 79000 1", "90 v end k t 79000", \
		"91 v report k t 79000 done 0", "95 w end k t 65000",                         \
		"96 w report k t 65000 stale 0", END
#define OCCURRENCE                                                              \
	BEGIN, EVERY("one"), "62 w begin e r 61500 1 61", "80 w end e r 61500", \
		"82 w begin e r 81500 1 61", LAST, END
	static const char killed[] = "75 nemesis deed master server\n78 nemesis heal master server";

	assert_fault("two at once,token falls", AGAIN);
	assert_fault("", AGAIN, killed);
	assert_fault("twice", OCCURRENCE);
	assert_fault("", OCCURRENCE, killed);
	assert_fault("overtaken,comes back", BEGIN, ADD, RUN, DONE, "5000 v begin k t 4990000 2",
		     END, "95 nemesis deed master server", "98 nemesis heal master server");
}

TEST(once, cancel_and_move_of_a_leased_task_are_found)
{
	assert_fault("on lease", BEGIN, ADD, "70 w begin k t 65000 1", "75 a call move k 500",
		     "77 a answer TW_OK 577", "80 w end k t 65000", "82 w report k t 65000 stale 0",
		     "600 w begin k t 590000 2", "605 w end k t 590000",
		     "606 w report k t 590000 done 0", END);
	assert_fault("on lease", BEGIN, ADD, "70 w begin k t 65000 1", "75 a call cancel k",
		     "77 a answer TW_OK 0", "80 w end k t 65000", "82 w report k t 65000 stale 0",
		     END);
	/* The cancelled task was another. */
	assert_fault("", BEGIN, ADD, "70 w begin k t 65000 1", "71 a call add k u any 50",
		     "72 a answer TW_OK 122", "73 a call cancel k", "74 a answer TW_OK 0",
		     "80 w end k t 65000", "82 w report k t 65000 stale 0", END);
	/* Another task was cancelled here, too: its add has waited for long. */
	assert_fault("", BEGIN, "5 b call add k u any 50", ADD, "70 w begin k t 65000 1",
		     "71 b answer TW_OK 121", "73 a call cancel k", "74 a answer TW_OK 0",
		     "80 w end k t 65000", "82 w report k t 65000 stale 0", END);
}

TEST(once, run_after_a_cancel_is_found)
{
	assert_fault("comes back", BEGIN, ADD, "20 a call cancel k", "22 a answer TW_OK 0",
		     "70 w begin k t 65000 1", END);
	assert_fault("comes back", BEGIN, ADD, "20 a call cancel k", "22 a answer TW_OK 0",
		     "30 a call get k", "31 a answer TW_OK t", END);
	/* The acknowledgement came after the lease and the cancel. */
	assert_fault("comes back", BEGIN, ADD, "70 w begin k t 65000 1", "1100 a call cancel k",
		     "1101 a answer TW_OK 0", "1110 w end k t 65000",
		     "1111 w report k t 65000 done 0", END);
	/* The task had been claimed before, and its worker was frozen. */
	assert_fault("", BEGIN, ADD, "1100 a call cancel k", "1101 a answer TW_OK 0",
		     "1110 w begin k t 65000 1", "1111 w end k t 65000",
		     "1112 w report k t 65000 stale 0", END);
}

TEST(once, run_after_its_end_is_found)
{
	/* The task was replaced. */
	assert_fault("comes back", BEGIN, ADD, "20 a call add k u any 50", "22 a answer TW_OK 71",
		     RUN, DONE, "100 w begin k u 98000 1", "101 w end k u 98000",
		     "102 w report k u 98000 done 0", END);
	/* The task was acknowledged; its run is overtaken as well. */
	assert_fault("comes back", BEGIN, ADD, RUN, DONE, "100 a call get k",
		     "101 a answer TW_OK t", END);
}

TEST(once, unknown_add_that_happened_twice_is_found)
{
	assert_fault("token falls,overtaken,comes back", BEGIN, "10 a call add k t any 50",
		     "12 a answer TW_REDIS_OUTCOME_UNKNOWN 0", RUN, DONE, "95 v begin k t 92000 1",
		     "96 v end k t 92000", "97 v report k t 92000 done 0", END);
	/* The task may run once, or not at all. */
	assert_fault("", BEGIN, "10 a call add k t any 50",
		     "12 a answer TW_REDIS_OUTCOME_UNKNOWN 0", RUN, DONE, END);
	assert_fault("", BEGIN, "10 a call add k t any 50",
		     "12 a answer TW_REDIS_OUTCOME_UNKNOWN 0", END);
}

TEST(once, run_of_a_task_that_was_refused_is_found)
{
	assert_fault("refused", BEGIN, "10 a call add k t any 50", "12 a answer TW_REDIS_FAILED 0",
		     RUN, DONE, END);
	assert_fault("unknown", BEGIN, RUN, DONE, END);
}

TEST(once, wrong_answers_are_found)
{
	assert_fault("denied", BEGIN, ADD, "20 a call cancel k", "22 a answer TW_NOT_FOUND 0", RUN,
		     DONE, END);
	assert_fault("denied", BEGIN, ADD, "20 a call add k u replace 9",
		     "22 a answer TW_NOT_FOUND 0", RUN, DONE, END);
	assert_fault("from nothing", BEGIN, "10 a call cancel k", "12 a answer TW_OK 0", END);
	assert_fault("from nothing", BEGIN, ADD, RUN, DONE, "100 a call add k u new 0",
		     "101 a answer TW_EXISTS 0", END);
}

TEST(once, recurring_task_that_is_right_passes)
{
	assert_fault("", BEGIN, EVERY("all"), FIRST, SECOND, LAST, END);
	/* Occurrences are retried, cancelled, seen, overtaken after the lease, and missed. */
	assert_fault("", BEGIN, EVERY("all"), "62 w begin e r 61500 1 61", "70 w end e r 61500",
		     "72 w report e r 61500 retried 10", "85 w begin e r 84000 2 80",
		     "90 w end e r 84000", "92 w report e r 84000 done 0", "100 a call cancel e",
		     "101 a answer TW_OK 0", "110 a call get e", "111 a answer TW_OK r",
		     "262 w begin e r 261500 1 261", "1270 v begin e r 1262000 2 1261",
		     "1280 v end e r 1262000", "1282 v report e r 1262000 done 0",
		     "1284 w end e r 261500", "1285 w report e r 261500 stale 0",
		     "1290 v begin e r 1284000 1 361", LAST, END);
	assert_fault("", BEGIN, EVERY("one"), FIRST, "400 a call end e",
		     "401 a answer TW_RUNNING 0", END);
	/* The last run's report came at 472: of the times until then one remains, or none. */
	assert_fault("", BEGIN, EVERY("one"), "62 w begin e r 61500 1 61", "470 w end e r 61500",
		     "472 w report e r 61500 done 0", "480 w begin e r 473000 1 461", LAST, END);
	assert_fault("", BEGIN, EVERY("skip"), "62 w begin e r 61500 1 61", "470 w end e r 61500",
		     "472 w report e r 61500 done 0", "580 w begin e r 562000 1 561", LAST, END);
}

/* The token of the claim is unclear: the worker was frozen when the cancel came. */
TEST(once, occurrence_that_was_cancelled_at_a_stepped_clock_is_not_left_out)
{
#define STEPPED                                                               \
	BEGIN, EVERY("all"), "1100 a call cancel e", "1101 a answer TW_OK 0", \
		"1200 w begin e r 1400000 1 61", "1210 w end e r 1400000",    \
		"1212 w report e r 1400000 stale 0", "1500 w begin e r 1499000 1 161", LAST, END

	assert_fault("skipped", STEPPED);
	assert_fault("", STEPPED, "60 nemesis deed clock server", "61 nemesis heal clock server");
}

TEST(once, occurrence_that_is_left_out_is_found)
{
	static const char later[] = "262 w begin e r 261500 1 261\n"
				    "270 w end e r 261500\n"
				    "272 w report e r 261500 done 0\n";
	static const char *const all[][2] = {{EVERY("all")}, {EVERY("one")}, {EVERY("skip")}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		assert_fault("skipped", BEGIN, all[i][0], all[i][1], FIRST, later, LAST, END);
		/* The occurrence was cancelled. */
		assert_fault("", BEGIN, all[i][0], all[i][1], FIRST, later, LAST, END,
			     "100 a call cancel e", "101 a answer TW_OK 0");
		/* The first occurrence has not ended. */
		assert_fault("skipped,two at once", BEGIN, all[i][0], all[i][1],
			     "62 w begin e r 61500 1 61", SECOND, LAST, END);
	}
	/* One missed time is to be run, or all. */
	assert_fault("skipped", BEGIN, EVERY("one"), "62 w begin e r 61500 1 61",
		     "470 w end e r 61500", "472 w report e r 61500 done 0",
		     "580 w begin e r 562000 1 561", LAST, END);
	assert_fault("skipped", BEGIN, EVERY("all"), "62 w begin e r 61500 1 61",
		     "470 w end e r 61500", "472 w report e r 61500 done 0",
		     "480 w begin e r 473000 1 461", LAST, END);
}

TEST(once, occurrence_that_comes_twice_is_found)
{
	assert_fault("twice", BEGIN, EVERY("all"), FIRST, "82 w begin e r 81500 1 61", LAST, END);
	/* Two attempts of one occurrence were accepted. */
	assert_fault("twice", BEGIN, EVERY("all"), FIRST, "82 w begin e r 81500 2 80",
		     "90 w end e r 81500", "92 w report e r 81500 done 0", SECOND, LAST, END);
	/* Both attempts are under one lease. */
	assert_fault("two at once", BEGIN, EVERY("all"), "62 w begin e r 61500 1 61",
		     "82 v begin e r 81500 2 80", "90 v end e r 81500",
		     "92 v report e r 81500 done 0", "95 w end e r 61500",
		     "96 w report e r 61500 stale 0", LAST, END);
}

TEST(once, occurrence_at_a_wrong_time_is_found)
{
	assert_fault("unplanned", BEGIN, EVERY("one"), FIRST, "170 w begin e r 169000 1 167", LAST,
		     END);
	assert_fault("early", BEGIN, EVERY("one"), FIRST, "158 w begin e r 157500 1 161", LAST,
		     END);
}

TEST(once, recurring_task_that_is_not_there_is_found)
{
	assert_fault("lost", BEGIN, EVERY("all"), FIRST, SECOND, END);
	assert_fault("lost,denied", BEGIN, EVERY("all"), FIRST, "8000 a call end e",
		     "8001 a answer TW_NOT_FOUND 0", END);
	assert_fault("denied", BEGIN, EVERY("all"), FIRST, "80 a call get e",
		     "81 a answer TW_NOT_FOUND -", LAST, END);
	/* The task is there: nothing has ended it. */
	assert_fault("", BEGIN, EVERY("all"), FIRST, "8999 rest rest task e r", END);
}

TEST(once, recurring_task_that_outlives_its_end_is_found)
{
	assert_fault("comes back", BEGIN, EVERY("all"), FIRST, "100 a call end e",
		     "101 a answer TW_OK 0", SECOND, END);
	/* The current run was its last. */
	assert_fault("comes back", BEGIN, EVERY("all"), "62 w begin e r 61500 1 61",
		     "64 a call end e", "65 a answer TW_RUNNING 0", "70 w end e r 61500",
		     "72 w report e r 61500 done 0", SECOND, END);
	assert_fault("stays", BEGIN, EVERY("all"), FIRST, LAST, "8999 rest rest task e r", END);
	assert_fault("on lease", BEGIN, EVERY("all"), "62 w begin e r 61500 1 61",
		     "65 a call end e", "67 a answer TW_OK 0", "80 w end e r 61500",
		     "82 w report e r 61500 stale 0", END);
}

TEST(once, claim_during_a_pause_is_found)
{
	assert_fault("paused", BEGIN, ADD, "30 p call pause -", "32 p answer TW_OK 0", RUN, DONE,
		     "95 p call resume -", "96 p answer TW_OK 0", END);
	assert_fault("paused", BEGIN, ADD, "30 p call pause -", "32 p answer TW_OK 0", RUN, DONE,
		     END);
	/* The claim is before the pause has returned, after it ended, or where it may have
	 * failed. */
	assert_fault("", BEGIN, ADD, "60 p call pause -", "70 p answer TW_OK 0", RUN, DONE,
		     "95 p call resume -", "96 p answer TW_OK 0", END);
	assert_fault("", BEGIN, ADD, "30 p call pause -", "32 p answer TW_OK 0",
		     "60 p call resume -", "90 p answer TW_OK 0", RUN, DONE, END);
	assert_fault("", BEGIN, ADD, "30 p call pause -", "32 p answer TW_REDIS_UNREACHABLE 0", RUN,
		     DONE, END);
}

TEST(once, runs_over_the_limit_are_found)
{
	static const char other[] = "10 b call add l u any 50\n"
				    "12 b answer TW_OK 61\n"
				    "71 %s begin l u %d 1\n"
				    "%d %s end l u %d\n"
				    "%d %s report l u %d done 0\n";
	static const char limited[] = "1 main settings 1 1 1000 single 1";
	char run[512];

	snprintf(run, sizeof(run), other, "w1", 66000, 85, "w1", 66000, 91, "w1", 66000);
	assert_fault("over the limit", limited, run, ADD, RUN, DONE, END);
	/* There is no limit. */
	assert_fault("", BEGIN, run, ADD, RUN, DONE, END);
	/* Claims by hand have no limit. */
	snprintf(run, sizeof(run), other, "h1", 66000, 85, "h1", 66000, 91, "h1", 66000);
	assert_fault("", limited, run, ADD, RUN, DONE, END);
	/* The other run had ended. */
	snprintf(run, sizeof(run), other, "w1", 64000, 85, "w1", 64000, 91, "w1", 64000);
	assert_fault("lost", limited, run, ADD, "95 w begin k t 92000 1", END);
}

/*
 * Checks a task of each of two groups: the first runs from 65 to 80, the second from `second_ms` to
 * 100.
 */
static void assert_fault_of_groups(const char *limits, const char *first, const char *second,
				   const char *worker, int second_ms, const char *names)
{
	char text[1024];
	int token = 1000 * second_ms;

	snprintf(text, sizeof(text),
		 "10 a call add k t any 50 %s\n"
		 "12 a answer TW_OK 61\n"
		 "13 a call add l u any 50 %s\n"
		 "14 a answer TW_OK 64\n"
		 "%d %s begin l u %d 1\n"
		 "100 %s end l u %d\n"
		 "101 %s report l u %d done 0\n",
		 first, second, second_ms + 1, worker, token, worker, token, worker, token);
	assert_fault(names, BEGIN, limits, text, RUN, DONE, END);
}

TEST(once, runs_over_the_limit_of_a_group_are_found)
{
	static const char over[] = "over the limit";
	static const char limit[] = "2 main limit c 1\n";

	assert_fault_of_groups(limit, "c", "c", "w2", 70, over);
	/* Each limit is separate. */
	assert_fault_of_groups("2 main limit c 1\n2 main limit d 1\n", "c", "d", "w2", 70, "");
	/* Other groups have no limit. */
	assert_fault_of_groups(limit, "c", "cc", "w2", 70, "");
	assert_fault_of_groups(limit, "c", "-", "w2", 70, "");
	/* The first run had ended; claims by hand have no limit. */
	assert_fault_of_groups(limit, "c", "c", "w2", 85, "");
	assert_fault_of_groups(limit, "c", "c", "h", 70, "");
}

/* The group may have one task on lease: another worker claims the second at `claim_ms`. */
static void assert_fault_beside(const char *first, int claim_ms, const char *names)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "%d w2 begin l u %d000 1\n"
		 "1200 w2 end l u %d000\n"
		 "1201 w2 report l u %d000 done 0\n",
		 claim_ms + 1, claim_ms, claim_ms, claim_ms);
	assert_fault(names, BEGIN, "2 main limit c 1", "10 a call add k t any 50 c",
		     "12 a answer TW_OK 61", "13 a call add l u any 50 c", "14 a answer TW_OK 64",
		     first, text, "1300 w2 begin k t 1290000 2", "1310 w2 end k t 1290000",
		     "1320 w2 report k t 1290000 done 0", END);
}

TEST(once, run_has_its_place_in_the_limit_while_its_worker_has_a_lease)
{
	static const char frozen[] = "70 w begin k t 65000 1\n"
				     "1500 w end k t 65000\n"
				     "1501 w report k t 65000 stale 0\n";
	static const char killed[] = "70 w begin k t 65000 1\n";

	assert_fault_beside(frozen, 1050, "over the limit");
	assert_fault_beside(frozen, 1070, "");
	assert_fault_beside(killed, 80, "");
}
