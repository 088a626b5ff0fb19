/* SPDX-License-Identifier: MIT */
/*
 * The input is any text as the Host header of a request. Only an address, and a header with one of
 * our names in it, is ours; so is each name, with a port and without.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "twr/host_name.h"

#include "fuzz.h"
#include "lines.h"

static const char own[] = "10.0.0.7";
static const char *const names[] = {"pages.example", "fd00::7"};

static bool is_ours(const char *header)
{
	return host_name_is_ours(header, own, names, 2);
}

static bool may_be_address(const char *header)
{
	return !header[strspn(header, "0123456789abcdefABCDEF.:[]")];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const all[] = {own,         "pages.example", "[fd00::7]",
					  "localhost", "127.0.0.1",     "[::1]"};
	struct lines lines;
	const char *header;
	bool has_one = false;
	char extended[64];

	lines_read(&lines, data, size);
	header = lines.line[0];
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t bracket = all[i][0] == '[';
		char name[32] = "";

		memcpy(name, all[i] + bracket, strlen(all[i]) - 2 * bracket);
		has_one |= strcasestr(header, name) != NULL;
		snprintf(extended, sizeof(extended), "%s:%zu", all[i], size);
		assert(is_ours(all[i]) && is_ours(extended));
		/* With more characters at its end, other than a port, it is another name. */
		snprintf(extended, sizeof(extended), "%s%.20s", name, header);
		assert(!*header || strpbrk(extended, ":]") || may_be_address(extended) ||
		       !is_ours(extended));
	}
	assert(has_one || may_be_address(header) || !is_ours(header));
	lines_free(&lines);
	return 0;
}
