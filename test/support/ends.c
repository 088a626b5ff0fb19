/* SPDX-License-Identifier: MIT */
#include "support/ends.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

enum { ENDS_MAX = 20000 };

static bool has_begun;
static size_t count;
static struct {
	void (*end)(void *what);
	void *what;
} ends[ENDS_MAX];

void at_end(void (*end)(void *what), void *what)
{
	if (!has_begun)
		return;
	assert(count < ENDS_MAX);
	ends[count].end = end;
	ends[count++].what = what;
}

void at_end_not(void *what)
{
	size_t i = count;

	while (i > 0 && ends[i - 1].what != what)
		i--;
	if (i == 0)
		return;
	count--;
	for (i--; i < count; i++)
		ends[i] = ends[i + 1];
}

void ends_begin(void)
{
	has_begun = true;
}

void ends_run(void)
{
	has_begun = false;
	while (count > 0) {
		count--;
		ends[count].end(ends[count].what);
	}
}
