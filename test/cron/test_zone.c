/* SPDX-License-Identifier: MIT */
/*
 * A zone agrees with the C library, with TZ set here and nowhere in the library. Files that are
 * damaged or malicious are refused.
 */
#include "support/test.h"

#include "support/recorder.h"
#include "support/tzif.h"

#include <sys/stat.h>

#include <timingwheel/cron.h>

#include "cron/calendar.h"
#include "cron/zone.h"

enum { HEADER_SIZE = 44, FOLDER_SIZE = 64 };

/* These are 1850, 1972 and 2250. Before 1970 the C library has no rules. */
static const int64_t earliest = -3786912000;
/* musl has offsets of its own for times before the first in a zone's file. */
static const int64_t earliest_of_library =
#ifdef __GLIBC__
	-3786912000;
#else
	0;
#endif
static const int64_t earliest_by_rule = 63072000;
static const int64_t latest = 8835984000;

TEST(once, days_and_dates_agree_with_the_c_library)
{
	struct random random = random_from(seed_choose(), 1);

	for (int i = 0; i < TEST_SHARE_OF(200000); i++) {
		/* These are the years -8000 to 12000. */
		int64_t day = random_between(&random, -3650000, 3650000);
		time_t time = (time_t)(day * DAY_SECONDS);
		struct date date = date_of_day(day);
		struct tm tm;

		gmtime_r(&time, &tm);
		assert_int_equal(date.year, (int64_t)tm.tm_year + 1900);
		assert_int_equal(date.month, tm.tm_mon + 1);
		assert_int_equal(date.day, tm.tm_mday);
		assert_int_equal(weekday_of_day(day), tm.tm_wday);
		assert_int_equal(day_of_date(date.year, date.month, date.day), day);
		assert_true(date.day <= month_length(date.year, date.month));
	}
}

TEST(once, months_have_their_lengths)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	for (int month = 1; month <= 12; month++)
		assert_int_equal(month_length(2100, month), lengths[month - 1]);
	assert_int_equal(month_length(2000, 2), 29);
	assert_int_equal(month_length(2096, 2), 29);
}

static void set_zone(const char *name)
{
	assert_int_equal(setenv("TZ", name, 1), 0);
	tzset();
}

static int64_t offset_by_c_library(int64_t time)
{
	time_t value = (time_t)time;
	struct tm tm;

	assert_non_null(localtime_r(&value, &tm));
	return tm.tm_gmtoff;
}

/* TZ must be this zone. */
static void assert_offset(const struct zone *zone, const char *name, int64_t time)
{
	int64_t until;
	int32_t offset = zone_offset(zone, time, &until);
	int64_t expected = offset_by_c_library(time);

	if (offset != expected)
		fail_msg("%s at %" PRId64 ": offset %d, not %" PRId64, name, time, offset,
			 expected);
	assert_true(until > time);
}

/* Compares at random times, and around the zone's changes from a random one on. */
static void assert_same_as_c_library(const struct zone *zone, const char *name, int64_t from,
				     struct random *random)
{
	int64_t time = random_between(random, from, latest);

	for (int i = 0; i < 50; i++)
		assert_offset(zone, name, random_between(random, from, latest));
	for (int i = 0; i < 40 && time < latest; i++) {
		int64_t until;

		zone_offset(zone, time, &until);
		if (until == INT64_MAX)
			break;
		assert_offset(zone, name, until - 1);
		assert_offset(zone, name, until);
		time = until;
	}
}

/* These are all names in the third column of zone1970.tab. */
TEST(once, each_zone_of_the_system_is_as_the_c_library_has_it)
{
	struct random random = random_from(seed_choose(), 1);
	FILE *list = fopen("/usr/share/zoneinfo/zone1970.tab", "r");
	char line[1024];
	char name[256];
	int count = 0;

	assert_non_null(list);
	while (fgets(line, sizeof(line), list)) {
		struct zone zone;
		const char *wrong = NULL;

		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%*s %*s %255s", name), 1);
		assert_status(zone_load(&zone, name, &wrong), TW_OK);
		set_zone(name);
		assert_same_as_c_library(&zone, name, earliest_of_library, &random);
		zone_destroy(&zone);
		count++;
	}
	fclose(list);
	assert_true(count > 200);
}

TEST(once, rules_are_as_the_c_library_has_them)
{
	static const char *const rules[] = {
		"UTC0",
		"<+0530>-5:30",
		"<-04>4:30:15",
		"CET-1CEST,M3.5.0,M10.5.0/3",
		"EST5EDT,M3.2.0,M11.1.0",
		"IST-1GMT0,M10.5.0,M3.5.0/1",
		"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
		"<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
		"IST-2IDT,M3.4.4/26,M10.5.0",
		"AAA3BBB,J60/0,J300",
		"AAA-3BBB,59/1:30,299/2:00:30",
		"AAA3BBB,J59,J300",
		"AAA0BBB-2,M2.5.6/2,M8.4.3/-3",
	};
	struct random random = random_from(seed_choose(), 1);

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct zone zone;

		zone_init(&zone);
		zone.has_rule = true;
		if (!zone_rule_parse(&zone.rule, rules[i], strlen(rules[i])))
			fail_msg("%s is refused", rules[i]);
		set_zone(rules[i]);
		for (int round = 0; round < 5; round++)
			assert_same_as_c_library(&zone, rules[i], earliest_by_rule, &random);
	}
}

/* The C library has an hour of winter in each of these. */
TEST(once, summer_that_ends_as_the_next_begins_is_always)
{
	static const char *const rules[] = {"EST5EDT,0/0,J365/25", "XXX3EDT4,0/0,J365/23"};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct zone_rule rule;
		int64_t until;

		assert_true(zone_rule_parse(&rule, rules[i], strlen(rules[i])));
		for (int64_t time = earliest; time < latest; time += 35 * MINUTE_SECONDS + 59)
			if (zone_rule_offset(&rule, time, &until) != -4 * HOUR_SECONDS)
				fail_msg("%s at %" PRId64, rules[i], time);
	}
}

/* The C library does not know a summer that began in the year before, either. */
TEST(once, summer_may_begin_after_its_year_and_end_before_it)
{
	static const char rule[] = "AAA0BBB,J365/167,J1/-167";
	/* In 2026 summer begins on 6 January and ends on 24 December. */
	static const struct {
		int64_t time;
		int32_t offset;
		int64_t until;
	} expected[] = {
		{1767225600, 0, 1767740400},
		{1767740400, 3600, 1798156800},
		{1783000000, 3600, 1798156800},
		{1798156800, 0, 1799276400},
	};
	struct zone zone;

	zone_init(&zone);
	zone.has_rule = true;
	assert_true(zone_rule_parse(&zone.rule, rule, strlen(rule)));
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		int64_t until;

		assert_int_equal(zone_offset(&zone, expected[i].time, &until), expected[i].offset);
		assert_int_equal(until, expected[i].until);
	}
}

TEST(once, what_is_no_rule_is_refused)
{
	static const char *const rules[] = {
		"",
		"C",
		"CE-1",
		"CET",
		"CET-",
		"CET-25",
		"CET-1:60",
		"CET-1:00:60",
		"CET-1 ",
		"CET-1CEST",
		"CET-1CEST,M3.5.0",
		"CET-1CEST,M3.5.0,",
		"CET-1CEST,M3.5.0,M10.5.0/3,",
		"CET-1CEST,M0.5.0,M10.5.0/3",
		"CET-1CEST,M13.5.0,M10.5.0/3",
		"CET-1CEST,M3.0.0,M10.5.0/3",
		"CET-1CEST,M3.6.0,M10.5.0/3",
		"CET-1CEST,M3.5.7,M10.5.0/3",
		"CET-1CEST,M3.5,M10.5.0/3",
		"CET-1CEST,M3.5.0/168,M10.5.0/3",
		"CET-1CEST,M3.5.0/-168,M10.5.0/3",
		"CET-1CEST,J0,J300",
		"CET-1CEST,J60,J366",
		"CET-1CEST,60,366",
		"CET-1CEST,60,4294967296",
		"CET-1CEST;60,300",
		"<CET-1",
		"<>-1",
		"<C+>-1CEST,M3.5.0,M10.5.0",
		":Europe/Berlin",
		"1CET-1",
		"CET{-1",
	};
	struct zone_rule rule;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (zone_rule_parse(&rule, rules[i], strlen(rules[i])))
			fail_msg("%s is accepted", rules[i]);
	/* A NUL does not end the rule. */
	assert_false(zone_rule_parse(&rule, "CET-1\0", 6));
	assert_true(zone_rule_parse(&rule, "CET-1\0", 5));
}

/* Copies the bytes, with none to spare, so that the address sanitizer sees a read behind them. */
static enum tw_status parse(struct zone *zone, const void *bytes, size_t size)
{
	const char *wrong = NULL;
	void *copy = malloc(size > 0 ? size : 1);
	enum tw_status status;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	status = zone_parse(zone, size > 0 ? copy : (char *)copy + 1, size, &wrong);
	free(copy);
	assert_true(status == TW_OK || wrong != NULL);
	return status;
}

static const int32_t offsets[] = {3208, 3600, 7200};
static const struct tzif_change changes[] = {{-1000, 1}, {1000, 2}, {2000, 1}};

static struct tzif_contents contents_of(char version)
{
	return (struct tzif_contents){
		.version = version,
		.offsets = offsets,
		.offset_count = 3,
		.changes = changes,
		.change_count = 3,
		.rule = "ABC-1DEF,M3.5.0,M10.5.0/3",
	};
}

TEST(once, versions_2_to_4_are_read)
{
	static const char versions[] = {'2', '3', '4', 0, '1', '5'};

	for (size_t i = 0; i < sizeof(versions); i++) {
		struct tzif_contents contents = contents_of(versions[i]);
		struct tzif file;
		struct zone zone;
		int64_t until;

		tzif_write(&file, &contents);
		assert_status(parse(&zone, file.bytes, file.size), i < 3 ? TW_OK : TW_INVALID);
		if (i >= 3)
			continue;
		assert_int_equal(zone_offset(&zone, -1001, &until), 3208);
		assert_int_equal(until, -1000);
		assert_int_equal(zone_offset(&zone, -1000, &until), 3600);
		assert_int_equal(until, 1000);
		assert_int_equal(zone_offset(&zone, 1999, &until), 7200);
		assert_int_equal(until, 2000);
		assert_int_equal(zone_offset(&zone, 2000, &until), 3600);
		/* In July 2026 the rule holds. */
		assert_int_equal(zone_offset(&zone, 1783000000, &until), 7200);
		assert_true(until < INT64_MAX);
		zone_destroy(&zone);
	}
}

TEST(once, zone_without_a_rule_keeps_its_last_offset)
{
	struct tzif_contents contents = contents_of('2');
	struct tzif file;
	struct zone zone;
	int64_t until;

	contents.rule = NULL;
	contents.change_count = 2;
	tzif_write(&file, &contents);
	assert_status(parse(&zone, file.bytes, file.size), TW_OK);
	assert_int_equal(zone_offset(&zone, 1783000000, &until), 7200);
	assert_int_equal(until, INT64_MAX);
	zone_destroy(&zone);
	contents.change_count = 0;
	tzif_write(&file, &contents);
	assert_status(parse(&zone, file.bytes, file.size), TW_OK);
	assert_int_equal(zone_offset(&zone, 1783000000, &until), 3208);
	assert_int_equal(until, INT64_MAX);
	zone_destroy(&zone);
}

TEST(once, file_that_ends_too_early_is_refused)
{
	struct tzif_contents contents = contents_of('3');
	struct tzif file;
	struct zone zone;

	tzif_write(&file, &contents);
	for (size_t size = 0; size < file.size; size++)
		assert_status(parse(&zone, file.bytes, size), TW_INVALID);
}

/* These are offsets in the second part of a file of contents_of('2'). */
enum {
	PART = HEADER_SIZE + 6 + 4,
	COUNTS = PART + 20,
	TIMES = PART + HEADER_SIZE,
	KINDS = TIMES + 3 * 8,
	TYPES = KINDS + 3,
	RULE = TYPES + 3 * 6 + 4,
};

TEST(once, damaged_file_is_refused)
{
	static const struct {
		size_t at;
		unsigned char byte;
	} damages[] = {
		{0, 't'},
		{4, '1'},
		{4, '5'},
		{20, 0xff},
		{24, 0xff},
		{28, 0xff},
		{32, 0xff},
		{36, 0xff},
		{40, 0xff},
		{PART, 't'},
		{PART + 4, 0},
		{COUNTS, 0xff},
		{COUNTS + 3, 1},
		{COUNTS + 4, 0xff},
		{COUNTS + 7, 1},
		{COUNTS + 8, 0xff},
		{COUNTS + 12, 0xff},
		{COUNTS + 15, 2},
		{COUNTS + 16, 0xff},
		{COUNTS + 19, 0},
		{COUNTS + 20, 0xff},
		{COUNTS + 23, 0},
		{TIMES, 0x7f},   /* the first change is the last one */
		{TIMES + 15, 0}, /* the second time becomes the first */
		{TIMES + 16, 0xff},
		{KINDS + 1, 3},
		{TYPES, 0x7f},
		{TYPES, 0x80},
		{TYPES + 1, 2},
		{TYPES + 4, 2},
		{TYPES + 5, 4},
		{RULE, ' '},
		{RULE + 1, '!'},
	};
	struct tzif_contents contents = contents_of('2');
	struct tzif file;
	struct zone zone;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		tzif_write(&file, &contents);
		assert_true(damages[i].at < file.size);
		assert_int_not_equal(file.bytes[damages[i].at], damages[i].byte);
		file.bytes[damages[i].at] = damages[i].byte;
		if (damages[i].at == TIMES + 15)
			memcpy(file.bytes + TIMES + 8, file.bytes + TIMES, 8);
		if (parse(&zone, file.bytes, file.size) != TW_INVALID)
			fail_msg("damage %zu is not seen", i);
	}
	tzif_write(&file, &contents);
	file.bytes[file.size - 1] = ' ';
	assert_status(parse(&zone, file.bytes, file.size), TW_INVALID);
	contents.leap_count = 1;
	tzif_write(&file, &contents);
	assert_status(parse(&zone, file.bytes, file.size), TW_INVALID);
}

/* A change has one byte for its kind. */
TEST(once, file_has_at_most_256_kinds_of_time)
{
	static const int32_t none[257];
	struct tzif_contents contents = contents_of('2');
	struct tzif file;
	struct zone zone;

	contents.offsets = none;
	for (contents.offset_count = 256; contents.offset_count <= 257; contents.offset_count++) {
		tzif_write(&file, &contents);
		assert_status(parse(&zone, file.bytes, file.size),
			      contents.offset_count == 256 ? TW_OK : TW_INVALID);
		zone_destroy(&zone);
	}
}

TEST(once, names_that_lead_astray_are_refused)
{
	static const struct {
		const char *name;
		size_t position;
	} names[] = {
		{"", 0},
		{"/etc/localtime", 0},
		{"..", 0},
		{".", 0},
		{"Europe/Berlin:1", 13},
		{"Europe/[Berlin]", 7},
		{"Europe/Berlin|", 13},
		{"Europe/`Berlin`", 7},
		{"../zoneinfo/UTC", 0},
		{"Europe/../Europe/Berlin", 7},
		{"Europe/./Berlin", 7},
		{"Europe//Berlin", 7},
		{"Europe/", 7},
		{"Europe/Berlin/..", 14},
		{"Europe/Ber lin", 10},
		{"Europe\\Berlin", 6},
		{":UTC", 0},
		{"UTC\n", 3},
		{"Europe/\xc3\xbc", 7},
	};
	char longest[TW_CRON_ZONE_MAX + 2];
	size_t position;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!zone_name_check(names[i].name, &position))
			fail_msg("%s is accepted", names[i].name);
		assert_int_equal(position, names[i].position);
	}
	assert_null(zone_name_check("America/Argentina/Buenos_Aires", &position));
	assert_null(zone_name_check("Etc/GMT+5", &position));
	assert_null(zone_name_check("...", &position));
	assert_null(zone_name_check("a/bc/Z_0-9", &position));
	memset(longest, 'a', sizeof(longest));
	longest[TW_CRON_ZONE_MAX] = '\0';
	assert_null(zone_name_check(longest, &position));
	longest[TW_CRON_ZONE_MAX] = 'a';
	longest[TW_CRON_ZONE_MAX + 1] = '\0';
	assert_non_null(zone_name_check(longest, &position));
}

/* Makes a folder and sets TZDIR to it. */
static void folder_make(char folder[FOLDER_SIZE])
{
	snprintf(folder, FOLDER_SIZE, "/tmp/test_zone.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("TZDIR", folder, 1), 0);
}

static void path_of(char path[2 * FOLDER_SIZE], const char *folder, const char *name)
{
	snprintf(path, 2 * FOLDER_SIZE, "%s/%s", folder, name);
}

static void folder_write(const char *folder, const char *name, const void *bytes, size_t size)
{
	char path[2 * FOLDER_SIZE];
	FILE *file;

	path_of(path, folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void folder_remove(const char *folder, const char *const *names, size_t count)
{
	char path[2 * FOLDER_SIZE];

	for (size_t i = 0; i < count; i++) {
		path_of(path, folder, names[i]);
		assert_int_equal(remove(path), 0);
	}
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(unsetenv("TZDIR"), 0);
}

static void assert_load(const char *name, enum tw_status expected)
{
	const char *wrong = NULL;
	struct zone zone;
	enum tw_status status = zone_load(&zone, name, &wrong);

	if (status != expected)
		fail_msg("%s: %s", name, tw_status_name(status));
	assert_true(status == TW_OK || wrong != NULL);
	zone_destroy(&zone);
}

TEST(once, files_are_looked_for_in_tzdir)
{
	static const char *const names[] = {"good", "empty", "text",  "large",
					    "pipe", "loop",  "folder"};
	struct tzif_contents contents = contents_of('2');
	char folder[FOLDER_SIZE];
	char path[2 * FOLDER_SIZE];
	char *zeros = calloc(1, 1 << 20);
	struct tzif file;

	assert_non_null(zeros);
	assert_load("Europe/Berlin", TW_OK);
	folder_make(folder);
	tzif_write(&file, &contents);
	folder_write(folder, "good", file.bytes, file.size);
	folder_write(folder, "empty", "", 0);
	folder_write(folder, "text", "no zone\n", 8);
	folder_write(folder, "large", zeros, 1 << 20);
	path_of(path, folder, "pipe");
	assert_int_equal(mkfifo(path, 0600), 0);
	path_of(path, folder, "loop");
	assert_int_equal(symlink("loop", path), 0);
	path_of(path, folder, "folder");
	assert_int_equal(mkdir(path, 0700), 0);

	assert_load("good", TW_OK);
	assert_load("Europe/Berlin", TW_NOT_FOUND);
	assert_load("good/or/bad", TW_NOT_FOUND);
	assert_load("folder", TW_NOT_FOUND);
	assert_load("pipe", TW_NOT_FOUND);
	assert_load("empty", TW_INVALID);
	assert_load("text", TW_INVALID);
	assert_load("large", TW_INVALID);
	errno = 0;
	assert_load("loop", TW_SYSTEM);
	assert_int_equal(errno, ELOOP);
	folder_remove(folder, names, sizeof(names) / sizeof(names[0]));
	free(zeros);
	assert_load("Europe/Berlin", TW_OK);
}

TEST(once, missing_folder_of_zones_is_no_missing_zone)
{
	static const char *const names[] = {"zone"};
	struct zone zone;
	char folder[FOLDER_SIZE];
	const char *wrong;

	folder_make(folder);
	folder_write(folder, "zone", "", 0);
	assert_int_equal(zone_load(&zone, "Europe/Berlin", &wrong), TW_NOT_FOUND);
	assert_string_equal(wrong, "there is no such zone");
	folder_remove(folder, names, 1);
	assert_int_equal(setenv("TZDIR", folder, 1), 0);
	assert_int_equal(zone_load(&zone, "Europe/Berlin", &wrong), TW_NOT_FOUND);
	assert_string_equal(wrong, "there are no zones here: tzdata is not installed");
	assert_int_equal(unsetenv("TZDIR"), 0);
}

TEST(once, folder_may_be_empty_and_not_endless)
{
	char *folder = calloc(1, 10000);

	assert_non_null(folder);
	assert_int_equal(setenv("TZDIR", "", 1), 0);
	assert_load("Europe/Berlin", TW_OK);
	memset(folder, 'a', 9999);
	assert_int_equal(setenv("TZDIR", folder, 1), 0);
	errno = 0;
	assert_load("Europe/Berlin", TW_SYSTEM);
	assert_int_equal(errno, ENAMETOOLONG);
	assert_int_equal(unsetenv("TZDIR"), 0);
	free(folder);
}

static void *load_while_cancelled(void *status)
{
	const char *wrong = NULL;
	struct zone zone;

	pthread_cancel(pthread_self());
	*(enum tw_status *)status = zone_load(&zone, "Europe/Berlin", &wrong);
	zone_destroy(&zone);
	pthread_testcancel();
	return NULL;
}

TEST(once, cancelled_thread_goes_on_to_the_end_of_the_call)
{
	enum tw_status status = TW_RUNNING;
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, load_while_cancelled, &status), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_status(status, TW_OK);
}
