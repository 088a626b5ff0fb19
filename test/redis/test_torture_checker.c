/* SPDX-License-Identifier: MIT */
/*
 * The checker of `make torture-redis` reads histories that are written by hand. It accepts a right
 * one, and finds each kind of fault, alone. Lines here begin with one time, in milliseconds. All
 * clocks are the same, so a token of 65000 was claimed at 65.
 */
#include "support/test.h"

#include "torture/checker.h"

#define BEGIN "1 main settings 1 1 1000 single\n"
#define END "9000 rest rest all -\n"
#define ADD                          \
	"10 a call add k t any 50\n" \
	"12 a answer TW_OK 61\n"
#define RUN                        \
	"70 w begin k t 65000 1\n" \
	"80 w end k t 65000\n"
#define DONE "90 w report k t 65000 done 0\n"

/* EVERY is a recurring task, due at 61, 161, 261 and so on; two of its occurrences, and its end,
 * follow. */
#define EVERY(missed)                             \
	"10 a call every e r 50 100 " missed "\n" \
	"12 a answer TW_OK 61\n"
#define FIRST                         \
	"62 w begin e r 61500 1 61\n" \
	"70 w end e r 61500\n"        \
	"72 w report e r 61500 done 0\n"
#define SECOND                           \
	"162 w begin e r 161500 1 161\n" \
	"170 w end e r 161500\n"         \
	"172 w report e r 161500 done 0\n"
#define LAST                  \
	"8000 a call end e\n" \
	"8001 a answer TW_OK 0\n"

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

/* Asserts that the history has these faults. NULL means none. */
static void assert_fault(const char *lines, const char *names)
{
	char *copied = strdup(lines);
	char *text = NULL;
	size_t size = 0;
	char *rest = NULL;
	FILE *file = open_memstream(&text, &size);
	struct story story;
	struct faults faults;

	for (char *line = strtok_r(copied, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		line_write(file, line);
	fclose(file);
	story_read(&story, text);
	story_check(&story, &faults);
	assert_names(&faults, names ? names : "");
	faults_free(&faults);
	story_free(&story);
	free(copied);
	free(text);
}

TEST(once, right_history_passes)
{
	assert_fault(BEGIN ADD RUN DONE END, NULL);
	/* The task is moved, retried, overtaken after its lease, seen, cancelled, and a dead
	 * letter. */
	assert_fault(BEGIN ADD "20 a call move k 20\n"
			       "22 a answer TW_OK 41\n" /* sooner */
			       "50 w begin k t 45000 1\n"
			       "60 w end k t 45000\n"
			       "62 w report k t 45000 retried 100\n"
			       "100 a call get k\n"
			       "101 a answer TW_OK t\n"
			       "170 w begin k t 165000 2\n"
			       "1300 v begin k t 1200000 3\n"
			       "1310 v end k t 1200000\n"
			       "1320 v report k t 1200000 done 0\n"
			       "1400 w end k t 165000\n"
			       "1410 w report k t 165000 stale 0\n"
			       "1500 a call cancel k\n"
			       "1501 a answer TW_NOT_FOUND 0\n"
			       "1600 a call add k u new 100\n"
			       "1602 a answer TW_OK 1702\n"
			       "1610 a call cancel k\n"
			       "1612 a answer TW_OK 0\n"
			       "1700 a call add l x any 0\n"
			       "1701 a answer TW_OK 1701\n"
			       "1702 w begin l x 1701500 1\n"
			       "1710 w end l x 1701500\n"
			       "1720 w report l x 1701500 dead 0\n"
			       "8999 rest rest dead l x\n" END,
		     NULL);
}

TEST(once, order_of_lines_does_not_matter)
{
	assert_fault(BEGIN RUN DONE END ADD, NULL);
}

TEST(once, history_without_the_end_is_invalid)
{
	assert_fault(BEGIN ADD RUN DONE, "unread");
	assert_fault(BEGIN "5 a call shout k\n" END, "unread");
	assert_fault(BEGIN "5 a answer TW_OK 0\n" END, "unread");
	assert_fault(BEGIN ADD RUN DONE END "what is this?\n", "unread");
}

TEST(once, lost_task_is_found)
{
	assert_fault(BEGIN ADD END, "lost");
	/* Its run was killed before its end. */
	assert_fault(BEGIN ADD "70 w begin k t 65000 1\n" END, "lost");
	/* The dead letter is missing. */
	assert_fault(BEGIN ADD RUN "90 w report k t 65000 dead 0\n" END, "lost");
	assert_fault(BEGIN ADD RUN "90 w report k t 65000 stale 0\n" END, "lost");
	/* A possible removal was too early, was refused, or removes nothing. */
	assert_fault(BEGIN "2 a call cancel k\n"
			   "3 a answer TW_NOT_FOUND 0\n" ADD END,
		     "lost");
	assert_fault(BEGIN ADD "20 a call add k u replace 5\n"
			       "21 a answer TW_REDIS_FAILED 0\n" END,
		     "lost");
	assert_fault(BEGIN ADD "20 b call add k u new 5\n"
			       "21 b answer TW_REDIS_OUTCOME_UNKNOWN 0\n" END,
		     "lost");
}

TEST(once, task_that_may_have_been_removed_is_not_lost)
{
	assert_fault(BEGIN ADD "20 a call cancel k\n"
			       "21 a answer TW_REDIS_OUTCOME_UNKNOWN 0\n" END,
		     NULL);
	assert_fault(BEGIN ADD "20 a call cancel k\n" END, NULL);
	assert_fault(BEGIN ADD RUN END, NULL);
	assert_fault(BEGIN ADD RUN "90 w report k t 65000 unconfirmed 0\n" END, NULL);
}

TEST(once, task_that_does_not_run_is_found)
{
	assert_fault(BEGIN ADD "8999 rest rest task k t\n" END, "stays");
}

TEST(once, early_run_is_found)
{
	assert_fault(BEGIN ADD "59 w begin k t 58000 1\n"
			       "80 w end k t 58000\n"
			       "90 w report k t 58000 done 0\n" END,
		     "early");
	/* A move to a later time counts. */
	assert_fault(BEGIN ADD "20 a call move k 100\n"
			       "22 a answer TW_OK 121\n" RUN DONE END,
		     "early");
	/* A call may not be the last if another may have happened at the same time. */
	assert_fault(BEGIN ADD "20 a call move k 100\n"
			       "21 b call move k 20\n"
			       "22 b answer TW_OK 41\n"
			       "23 a answer TW_OK 121\n" RUN DONE END,
		     NULL);
	/* A call without an answer need not have happened. */
	assert_fault(BEGIN ADD "20 a call move k 500\n" RUN DONE END, NULL);
	/* The answered time is earlier than the call asked for. */
	assert_fault(BEGIN "10 a call add k t any 50\n"
			   "12 a answer TW_OK 12\n" RUN DONE END,
		     "early");
	/* The attempt began before its time. */
	assert_fault(BEGIN ADD RUN "90 w report k t 65000 retried 100\n"
				   "150 w begin k t 140000 2\n"
				   "155 w end k t 140000\n"
				   "156 w report k t 140000 done 0\n" END,
		     "early");
}

TEST(once, token_that_does_not_rise_is_found)
{
	assert_fault(BEGIN ADD RUN "90 w report k t 65000 retried 1\n"
				   "120 w begin k t 64000 2\n"
				   "125 w end k t 64000\n"
				   "126 w report k t 64000 done 0\n" END,
		     "token falls,overtaken,two at once");
	/* Another task has the key. */
	assert_fault(BEGIN ADD "70 w begin k t 79000 1\n"
			       "75 w end k t 79000\n"
			       "76 w report k t 79000 done 0\n"
			       "77 a call add k u any 0\n"
			       "78 a answer TW_OK 78\n"
			       "80 w begin k u 79000 1\n"
			       "81 w end k u 79000\n"
			       "82 w report k u 79000 done 0\n" END,
		     "token falls");
}

TEST(once, end_of_an_overtaken_run_is_found)
{
	assert_fault(BEGIN ADD "70 w begin k t 65000 1\n"
			       "1100 v begin k t 1090000 2\n"
			       "1200 w end k t 65000\n"
			       "1201 w report k t 65000 done 0\n"
			       "1300 v end k t 1090000\n"
			       "1301 v report k t 1090000 stale 0\n" END,
		     "overtaken");
	assert_fault(BEGIN ADD "70 w begin k t 65000 1\n"
			       "1100 v begin k t 1090000 2\n"
			       "1200 w end k t 65000\n"
			       "1201 w report k t 65000 retried 10\n"
			       "1300 v end k t 1090000\n"
			       "1301 v report k t 1090000 done 0\n" END,
		     "overtaken");
}

/* The worker retried, and took "gone" for success. */
TEST(once, end_whose_answer_may_have_been_lost_is_not_sure)
{
	static const char overtaken[] = BEGIN ADD "70 w begin k t 65000 1\n"
						  "1100 v begin k t 1090000 2\n"
						  "1110 v end k t 1090000\n"
						  "1120 v report k t 1090000 done 0\n"
						  "1200 w end k t 65000\n"
						  "1900 w report k t 65000 done 0\n" END;
	static const char exact[] = BEGIN ADD "70 w begin k t 65000 1\n"
					      "1100 v begin k t 1090000 2\n"
					      "1110 v end k t 1090000\n"
					      "1120 v report k t 1090000 done 0\n"
					      "1200 w end k t 65000\n"
					      "1900 w exact k t 65000 done 0\n" END;
	char text[1024];

	assert_fault(overtaken, "overtaken,comes back");
	snprintf(text, sizeof(text), "%s%s", overtaken,
		 "1210 nemesis deed cut w\n1800 nemesis heal cut w\n");
	assert_fault(text, NULL);
	/* The worker was frozen when its connection broke. */
	snprintf(text, sizeof(text), "%s%s", overtaken,
		 "20 nemesis deed freeze w\n30 nemesis deed server server\n"
		 "40 nemesis heal server server\n1199 nemesis heal freeze w\n");
	assert_fault(text, NULL);
	/* Another worker's connection broke. */
	snprintf(text, sizeof(text), "%s%s", overtaken,
		 "1210 nemesis deed cut v\n1800 nemesis heal cut v\n");
	assert_fault(text, "overtaken,comes back");
	/* One call's answer leaves no doubt. */
	snprintf(text, sizeof(text), "%s%s", exact,
		 "1210 nemesis deed cut w\n1800 nemesis heal cut w\n");
	assert_fault(text, "overtaken,comes back");
}

TEST(once, two_runs_under_one_lease_are_found)
{
	assert_fault(BEGIN ADD "70 w begin k t 65000 1\n"
			       "80 v begin k t 75000 2\n"
			       "90 v end k t 75000\n"
			       "91 v report k t 75000 done 0\n"
			       "95 w end k t 65000\n"
			       "96 w report k t 65000 stale 0\n" END,
		     "two at once");
}

/* Only the killed master knew the claim. Acknowledgements are confirmed nevertheless. */
TEST(once, claim_that_is_lost_with_its_master_is_no_fault)
{
	static const char killed[] = "75 nemesis deed master server\n"
				     "78 nemesis heal master server\n";
	static const char again[] = BEGIN ADD "70 w begin k t 65000 1\n"
					      "80 v begin k t 79000 1\n"
					      "90 v end k t 79000\n"
					      "91 v report k t 79000 done 0\n"
					      "95 w end k t 65000\n"
					      "96 w report k t 65000 stale 0\n" END;
	static const char occurrence[] = BEGIN EVERY("one") "62 w begin e r 61500 1 61\n"
							    "80 w end e r 61500\n"
							    "82 w begin e r 81500 1 61\n" LAST END;
	char text[1024];

	assert_fault(again, "two at once,token falls");
	snprintf(text, sizeof(text), "%s%s", again, killed);
	assert_fault(text, NULL);
	assert_fault(occurrence, "twice");
	snprintf(text, sizeof(text), "%s%s", occurrence, killed);
	assert_fault(text, NULL);
	snprintf(text, sizeof(text), BEGIN ADD RUN DONE "5000 v begin k t 4990000 2\n" END "%s",
		 "95 nemesis deed master server\n98 nemesis heal master server\n");
	assert_fault(text, "overtaken,comes back");
}

TEST(once, cancel_and_move_of_a_leased_task_are_found)
{
	assert_fault(BEGIN ADD "70 w begin k t 65000 1\n"
			       "75 a call move k 500\n"
			       "77 a answer TW_OK 577\n"
			       "80 w end k t 65000\n"
			       "82 w report k t 65000 stale 0\n"
			       "600 w begin k t 590000 2\n"
			       "605 w end k t 590000\n"
			       "606 w report k t 590000 done 0\n" END,
		     "on lease");
	assert_fault(BEGIN ADD "70 w begin k t 65000 1\n"
			       "75 a call cancel k\n"
			       "77 a answer TW_OK 0\n"
			       "80 w end k t 65000\n"
			       "82 w report k t 65000 stale 0\n" END,
		     "on lease");
	/* The cancelled task was another. */
	assert_fault(BEGIN ADD "70 w begin k t 65000 1\n"
			       "71 a call add k u any 50\n"
			       "72 a answer TW_OK 122\n"
			       "73 a call cancel k\n"
			       "74 a answer TW_OK 0\n"
			       "80 w end k t 65000\n"
			       "82 w report k t 65000 stale 0\n" END,
		     NULL);
	/* Another task was cancelled here, too: its add has waited for long. */
	assert_fault(BEGIN "5 b call add k u any 50\n" ADD "70 w begin k t 65000 1\n"
			   "71 b answer TW_OK 121\n"
			   "73 a call cancel k\n"
			   "74 a answer TW_OK 0\n"
			   "80 w end k t 65000\n"
			   "82 w report k t 65000 stale 0\n" END,
		     NULL);
}

TEST(once, run_after_a_cancel_is_found)
{
	assert_fault(BEGIN ADD "20 a call cancel k\n"
			       "22 a answer TW_OK 0\n"
			       "70 w begin k t 65000 1\n" END,
		     "comes back");
	assert_fault(BEGIN ADD "20 a call cancel k\n"
			       "22 a answer TW_OK 0\n"
			       "30 a call get k\n"
			       "31 a answer TW_OK t\n" END,
		     "comes back");
	/* The acknowledgement came after the lease and the cancel. */
	assert_fault(BEGIN ADD "70 w begin k t 65000 1\n"
			       "1100 a call cancel k\n"
			       "1101 a answer TW_OK 0\n"
			       "1110 w end k t 65000\n"
			       "1111 w report k t 65000 done 0\n" END,
		     "comes back");
	/* The task had been claimed before, and its worker was frozen. */
	assert_fault(BEGIN ADD "1100 a call cancel k\n"
			       "1101 a answer TW_OK 0\n"
			       "1110 w begin k t 65000 1\n"
			       "1111 w end k t 65000\n"
			       "1112 w report k t 65000 stale 0\n" END,
		     NULL);
}

TEST(once, run_after_its_end_is_found)
{
	/* The task was replaced. */
	assert_fault(BEGIN ADD "20 a call add k u any 50\n"
			       "22 a answer TW_OK 71\n" RUN DONE "100 w begin k u 98000 1\n"
			       "101 w end k u 98000\n"
			       "102 w report k u 98000 done 0\n" END,
		     "comes back");
	/* The task was acknowledged; its run is overtaken as well. */
	assert_fault(BEGIN ADD RUN DONE "100 a call get k\n"
					"101 a answer TW_OK t\n" END,
		     "comes back");
}

TEST(once, unknown_add_that_happened_twice_is_found)
{
	assert_fault(BEGIN "10 a call add k t any 50\n"
			   "12 a answer TW_REDIS_OUTCOME_UNKNOWN 0\n" RUN DONE
			   "95 v begin k t 92000 1\n"
			   "96 v end k t 92000\n"
			   "97 v report k t 92000 done 0\n" END,
		     "token falls,overtaken,comes back");
	/* The task may run once, or not at all. */
	assert_fault(BEGIN "10 a call add k t any 50\n"
			   "12 a answer TW_REDIS_OUTCOME_UNKNOWN 0\n" RUN DONE END,
		     NULL);
	assert_fault(BEGIN "10 a call add k t any 50\n"
			   "12 a answer TW_REDIS_OUTCOME_UNKNOWN 0\n" END,
		     NULL);
}

TEST(once, run_of_a_task_that_was_refused_is_found)
{
	assert_fault(BEGIN "10 a call add k t any 50\n"
			   "12 a answer TW_REDIS_FAILED 0\n" RUN DONE END,
		     "refused");
	assert_fault(BEGIN RUN DONE END, "unknown");
}

TEST(once, wrong_answers_are_found)
{
	assert_fault(BEGIN ADD "20 a call cancel k\n"
			       "22 a answer TW_NOT_FOUND 0\n" RUN DONE END,
		     "denied");
	assert_fault(BEGIN ADD "20 a call add k u replace 9\n"
			       "22 a answer TW_NOT_FOUND 0\n" RUN DONE END,
		     "denied");
	assert_fault(BEGIN "10 a call cancel k\n"
			   "12 a answer TW_OK 0\n" END,
		     "from nothing");
	assert_fault(BEGIN ADD RUN DONE "100 a call add k u new 0\n"
					"101 a answer TW_EXISTS 0\n" END,
		     "from nothing");
}

TEST(once, recurring_task_that_is_right_passes)
{
	assert_fault(BEGIN EVERY("all") FIRST SECOND LAST END, NULL);
	/* Occurrences are retried, cancelled, seen, overtaken after the lease, and missed. */
	assert_fault(BEGIN EVERY("all") "62 w begin e r 61500 1 61\n"
					"70 w end e r 61500\n"
					"72 w report e r 61500 retried 10\n"
					"85 w begin e r 84000 2 80\n"
					"90 w end e r 84000\n"
					"92 w report e r 84000 done 0\n"
					"100 a call cancel e\n"
					"101 a answer TW_OK 0\n"
					"110 a call get e\n"
					"111 a answer TW_OK r\n"
					"262 w begin e r 261500 1 261\n"
					"1270 v begin e r 1262000 2 1261\n"
					"1280 v end e r 1262000\n"
					"1282 v report e r 1262000 done 0\n"
					"1284 w end e r 261500\n"
					"1285 w report e r 261500 stale 0\n"
					"1290 v begin e r 1284000 1 361\n" LAST END,
		     NULL);
	assert_fault(BEGIN EVERY("one") FIRST "400 a call end e\n"
					      "401 a answer TW_RUNNING 0\n" END,
		     NULL);
	/* The last run's report came at 472: of the times until then one remains, or none. */
	assert_fault(BEGIN EVERY("one") "62 w begin e r 61500 1 61\n"
					"470 w end e r 61500\n"
					"472 w report e r 61500 done 0\n"
					"480 w begin e r 473000 1 461\n" LAST END,
		     NULL);
	assert_fault(BEGIN EVERY("skip") "62 w begin e r 61500 1 61\n"
					 "470 w end e r 61500\n"
					 "472 w report e r 61500 done 0\n"
					 "580 w begin e r 562000 1 561\n" LAST END,
		     NULL);
}

/* The token of the claim is unclear: the worker was frozen when the cancel came. */
TEST(once, occurrence_that_was_cancelled_at_a_stepped_clock_is_not_left_out)
{
	static const char story[] = BEGIN EVERY("all") "1100 a call cancel e\n"
						       "1101 a answer TW_OK 0\n"
						       "1200 w begin e r 1400000 1 61\n"
						       "1210 w end e r 1400000\n"
						       "1212 w report e r 1400000 stale 0\n"
						       "1500 w begin e r 1499000 1 161\n" LAST END;
	char text[1024];

	assert_fault(story, "skipped");
	snprintf(text, sizeof(text), "%s%s", story,
		 "60 nemesis deed clock server\n61 nemesis heal clock server\n");
	assert_fault(text, NULL);
}

TEST(once, occurrence_that_is_left_out_is_found)
{
	static const char later[] = "262 w begin e r 261500 1 261\n"
				    "270 w end e r 261500\n"
				    "272 w report e r 261500 done 0\n";
	static const char *const all[] = {EVERY("all"), EVERY("one"), EVERY("skip")};
	char text[1024];

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		snprintf(text, sizeof(text), BEGIN "%s%s%s" LAST END, all[i], FIRST, later);
		assert_fault(text, "skipped");
		/* The occurrence was cancelled. */
		snprintf(text, sizeof(text),
			 BEGIN "%s%s%s" LAST END "100 a call cancel e\n101 a answer TW_OK 0\n",
			 all[i], FIRST, later);
		assert_fault(text, NULL);
		/* The first occurrence has not ended. */
		snprintf(text, sizeof(text), BEGIN "%s62 w begin e r 61500 1 61\n%s" LAST END,
			 all[i], SECOND);
		assert_fault(text, "skipped,two at once");
	}
	/* One missed time is to be run, or all. */
	assert_fault(BEGIN EVERY("one") "62 w begin e r 61500 1 61\n"
					"470 w end e r 61500\n"
					"472 w report e r 61500 done 0\n"
					"580 w begin e r 562000 1 561\n" LAST END,
		     "skipped");
	assert_fault(BEGIN EVERY("all") "62 w begin e r 61500 1 61\n"
					"470 w end e r 61500\n"
					"472 w report e r 61500 done 0\n"
					"480 w begin e r 473000 1 461\n" LAST END,
		     "skipped");
}

TEST(once, occurrence_that_comes_twice_is_found)
{
	assert_fault(BEGIN EVERY("all") FIRST "82 w begin e r 81500 1 61\n" LAST END, "twice");
	/* Two attempts of one occurrence were accepted. */
	assert_fault(BEGIN EVERY("all") FIRST "82 w begin e r 81500 2 80\n"
					      "90 w end e r 81500\n"
					      "92 w report e r 81500 done 0\n" SECOND LAST END,
		     "twice");
	/* Both attempts are under one lease. */
	assert_fault(BEGIN EVERY("all") "62 w begin e r 61500 1 61\n"
					"82 v begin e r 81500 2 80\n"
					"90 v end e r 81500\n"
					"92 v report e r 81500 done 0\n"
					"95 w end e r 61500\n"
					"96 w report e r 61500 stale 0\n" LAST END,
		     "two at once");
}

TEST(once, occurrence_at_a_wrong_time_is_found)
{
	assert_fault(BEGIN EVERY("one") FIRST "170 w begin e r 169000 1 167\n" LAST END,
		     "unplanned");
	assert_fault(BEGIN EVERY("one") FIRST "158 w begin e r 157500 1 161\n" LAST END, "early");
}

TEST(once, recurring_task_that_is_not_there_is_found)
{
	assert_fault(BEGIN EVERY("all") FIRST SECOND END, "lost");
	assert_fault(BEGIN EVERY("all") FIRST "8000 a call end e\n"
					      "8001 a answer TW_NOT_FOUND 0\n" END,
		     "lost,denied");
	assert_fault(BEGIN EVERY("all") FIRST "80 a call get e\n"
					      "81 a answer TW_NOT_FOUND -\n" LAST END,
		     "denied");
	/* The task is there: nothing has ended it. */
	assert_fault(BEGIN EVERY("all") FIRST "8999 rest rest task e r\n" END, NULL);
}

TEST(once, recurring_task_that_outlives_its_end_is_found)
{
	assert_fault(BEGIN EVERY("all") FIRST "100 a call end e\n"
					      "101 a answer TW_OK 0\n" SECOND END,
		     "comes back");
	/* The current run was its last. */
	assert_fault(BEGIN EVERY("all") "62 w begin e r 61500 1 61\n"
					"64 a call end e\n"
					"65 a answer TW_RUNNING 0\n"
					"70 w end e r 61500\n"
					"72 w report e r 61500 done 0\n" SECOND END,
		     "comes back");
	assert_fault(BEGIN EVERY("all") FIRST LAST "8999 rest rest task e r\n" END, "stays");
	assert_fault(BEGIN EVERY("all") "62 w begin e r 61500 1 61\n"
					"65 a call end e\n"
					"67 a answer TW_OK 0\n"
					"80 w end e r 61500\n"
					"82 w report e r 61500 stale 0\n" END,
		     "on lease");
}

TEST(once, claim_during_a_pause_is_found)
{
	assert_fault(BEGIN ADD "30 p call pause -\n"
			       "32 p answer TW_OK 0\n" RUN DONE "95 p call resume -\n"
			       "96 p answer TW_OK 0\n" END,
		     "paused");
	assert_fault(BEGIN ADD "30 p call pause -\n"
			       "32 p answer TW_OK 0\n" RUN DONE END,
		     "paused");
	/* The claim is before the pause has returned, after it ended, or where it may have
	 * failed. */
	assert_fault(BEGIN ADD "60 p call pause -\n"
			       "70 p answer TW_OK 0\n" RUN DONE "95 p call resume -\n"
			       "96 p answer TW_OK 0\n" END,
		     NULL);
	assert_fault(BEGIN ADD "30 p call pause -\n"
			       "32 p answer TW_OK 0\n"
			       "60 p call resume -\n"
			       "90 p answer TW_OK 0\n" RUN DONE END,
		     NULL);
	assert_fault(BEGIN ADD "30 p call pause -\n"
			       "32 p answer TW_REDIS_UNREACHABLE 0\n" RUN DONE END,
		     NULL);
}

TEST(once, runs_over_the_limit_are_found)
{
	static const char other[] = "10 b call add l u any 50\n"
				    "12 b answer TW_OK 61\n"
				    "71 %s begin l u %d 1\n"
				    "%d %s end l u %d\n"
				    "%d %s report l u %d done 0\n";
	static const char limited[] = "1 main settings 1 1 1000 single 1\n";
	char text[1024];
	char run[512];

	snprintf(run, sizeof(run), other, "w1", 66000, 85, "w1", 66000, 91, "w1", 66000);
	snprintf(text, sizeof(text), "%s%s" ADD RUN DONE END, limited, run);
	assert_fault(text, "over the limit");
	/* There is no limit. */
	snprintf(text, sizeof(text), BEGIN "%s" ADD RUN DONE END, run);
	assert_fault(text, NULL);
	/* Claims by hand have no limit. */
	snprintf(run, sizeof(run), other, "h1", 66000, 85, "h1", 66000, 91, "h1", 66000);
	snprintf(text, sizeof(text), "%s%s" ADD RUN DONE END, limited, run);
	assert_fault(text, NULL);
	/* The other run had ended. */
	snprintf(run, sizeof(run), other, "w1", 64000, 85, "w1", 64000, 91, "w1", 64000);
	snprintf(text, sizeof(text), "%s%s" ADD "95 w begin k t 92000 1\n" END, limited, run);
	assert_fault(text, "lost");
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
		 BEGIN "%s"
		       "10 a call add k t any 50 %s\n"
		       "12 a answer TW_OK 61\n"
		       "13 a call add l u any 50 %s\n"
		       "14 a answer TW_OK 64\n" RUN DONE "%d %s begin l u %d 1\n"
		       "100 %s end l u %d\n"
		       "101 %s report l u %d done 0\n" END,
		 limits, first, second, second_ms + 1, worker, token, worker, token, worker, token);
	assert_fault(text, names);
}

TEST(once, runs_over_the_limit_of_a_group_are_found)
{
	static const char over[] = "over the limit";
	static const char limit[] = "2 main limit c 1\n";

	assert_fault_of_groups(limit, "c", "c", "w2", 70, over);
	/* Each limit is separate. */
	assert_fault_of_groups("2 main limit c 1\n2 main limit d 1\n", "c", "d", "w2", 70, NULL);
	/* Other groups have no limit. */
	assert_fault_of_groups(limit, "c", "cc", "w2", 70, NULL);
	assert_fault_of_groups(limit, "c", "-", "w2", 70, NULL);
	/* The first run had ended; claims by hand have no limit. */
	assert_fault_of_groups(limit, "c", "c", "w2", 85, NULL);
	assert_fault_of_groups(limit, "c", "c", "h", 70, NULL);
}

/* The group may have one task on lease: another worker claims the second at `claim_ms`. */
static void assert_fault_beside(const char *first, int claim_ms, const char *names)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 BEGIN "2 main limit c 1\n"
		       "10 a call add k t any 50 c\n"
		       "12 a answer TW_OK 61\n"
		       "13 a call add l u any 50 c\n"
		       "14 a answer TW_OK 64\n"
		       "%s"
		       "%d w2 begin l u %d000 1\n"
		       "1200 w2 end l u %d000\n"
		       "1201 w2 report l u %d000 done 0\n"
		       "1300 w2 begin k t 1290000 2\n"
		       "1310 w2 end k t 1290000\n"
		       "1320 w2 report k t 1290000 done 0\n" END,
		 first, claim_ms + 1, claim_ms, claim_ms, claim_ms);
	assert_fault(text, names);
}

TEST(once, run_has_its_place_in_the_limit_while_its_worker_has_a_lease)
{
	static const char frozen[] = "70 w begin k t 65000 1\n"
				     "1500 w end k t 65000\n"
				     "1501 w report k t 65000 stale 0\n";
	static const char killed[] = "70 w begin k t 65000 1\n";

	assert_fault_beside(frozen, 1050, "over the limit");
	assert_fault_beside(frozen, 1070, NULL);
	assert_fault_beside(killed, 80, NULL);
}
