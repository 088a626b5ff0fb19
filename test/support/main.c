/* SPDX-License-Identifier: MIT */
/*
 * This is the main function of each test program. A program has the cases of many files and runs
 * those of one: "all test_take". In the environment CASE is a pattern of cmocka's, such as
 * "*loaded*", for the names of the cases to run, and AFTER the name of a case: those after it run.
 */
#include "support/ends.h"
#include "support/test.h"

const struct test_kind kind_once = {NULL, NULL, NULL};

/* These are the ends of the section, which the linker knows. */
extern const struct test_case *const __start_test_cases[];
extern const struct test_case *const __stop_test_cases[];

/* Returns whether the case is of the file that is called so, without folder and ending. */
static bool case_is_of(const struct test_case *test, const char *name)
{
	const char *slash = strrchr(test->file, '/');
	const char *file = slash ? slash + 1 : test->file;

	return strncmp(file, name, strlen(name)) == 0 && strcmp(file + strlen(name), ".c") == 0;
}

static int compare_lines(const void *a, const void *b)
{
	const struct test_case *const *first = a;
	const struct test_case *const *second = b;

	return ((*first)->line > (*second)->line) - ((*first)->line < (*second)->line);
}

/* A row is a case in one variant. */
struct row {
	const struct test_case *test;
	void *state;
};

static const struct row *running;
static const struct test_kind *file_kind;
static void *file_state; /* what the file's cases have for *state, unless a variant has its own */

static int file_open(void **state)
{
	return file_kind->open ? file_kind->open(&file_state) : 0;
}

static int file_close(void **state)
{
	return file_kind->close ? file_kind->close(&file_state) : 0;
}

static int row_open(void **state)
{
	running = *state;
	*state = running->state ? running->state : file_state;
	return running->test->kind->open ? running->test->kind->open(state) : 0;
}

static void row_run(void **state)
{
	ends_begin();
	running->test->run(state);
}

static int row_close(void **state)
{
	ends_run();
	return running->test->kind->close ? running->test->kind->close(state) : 0;
}

/* Writes the rows of a case to `rows`, unless that is NULL, and returns their number. */
static size_t case_rows(const struct test_case *test, struct CMUnitTest *rows)
{
	static const struct test_variant once[] = {{"", NULL}, {NULL, NULL}};
	const struct test_variant *variants = test->kind->variants ? test->kind->variants : once;
	size_t count = 0;

	for (; variants[count].name; count++) {
		struct row *row;
		char *name;

		if (!rows)
			continue;
		row = malloc(sizeof(*row));
		*row = (struct row){test, variants[count].state};
		if (variants == once)
			name = strdup(test->name);
		else if (asprintf(&name, "%s (%s)", test->name, variants[count].name) < 0)
			name = NULL;
		rows[count] = (struct CMUnitTest){name, row_run, row_open, row_close, row};
	}
	return count;
}

/* Returns the number of cases that failed. */
static int run_rows(const char *name, const struct CMUnitTest *rows, size_t count,
		    const struct test_kind *file)
{
	struct CMUnitTest those[count];

	memcpy(those, rows, sizeof(those));
	if (getenv("CASE") && *getenv("CASE"))
		cmocka_set_test_filter(getenv("CASE"));
	file_kind = file;
	return cmocka_run_group_tests_name(name, those, file_open, file_close);
}

int main(int argc, char **argv)
{
	size_t all = (size_t)(__stop_test_cases - __start_test_cases);
	const struct test_case *cases[all];
	const struct test_case *file = NULL;
	size_t case_count = 0;
	size_t row_count = 0;

	for (size_t i = 0; argc == 2 && i < all; i++) {
		const struct test_case *test = __start_test_cases[i];

		if (!case_is_of(test, argv[1]))
			continue;
		if (!test->run) {
			file = test;
			continue;
		}
		cases[case_count++] = test;
		row_count += case_rows(test, NULL);
	}
	if (row_count == 0) {
		fprintf(stderr, "usage: %s FILE, a file of this program such as test_take\n",
			argv[0]);
		return 2;
	}
	qsort(cases, case_count, sizeof(cases[0]), compare_lines);

	struct CMUnitTest rows[row_count];
	const char *after = getenv("AFTER");
	size_t first = 0;
	size_t row = 0;
	int failed;

	for (size_t i = 0; i < case_count; i++)
		row += case_rows(cases[i], &rows[row]);
	if (after && *after) {
		while (first < row_count && strcmp(rows[first].name, after) != 0)
			first++;
		if (++first >= row_count)
			return 0;
	}
	failed = run_rows(argv[1], &rows[first], row_count - first, file ? file->kind : &kind_once);
	for (size_t i = 0; i < row_count; i++) {
		free((char *)(uintptr_t)rows[i].name);
		free(rows[i].initial_state);
	}
	return failed;
}
