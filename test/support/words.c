/* SPDX-License-Identifier: MIT */
#include "words.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *words_cut(char *text, const char *mark)
{
	char *found = strstr(text, mark);

	if (!found)
		return NULL;
	*found = '\0';
	return found + strlen(mark);
}

char *words_trim(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	for (length = strlen(text); length > 0 && isspace((unsigned char)text[length - 1]);)
		text[--length] = '\0';
	return text;
}

int words_split(char *text, char *words[], int room)
{
	int count = 0;

	for (text += strspn(text, " \t\n"); *text; text += strspn(text, " \t\n")) {
		bool is_quoted = *text == '\'';

		assert(count < room);
		words[count++] = text += is_quoted;
		text += strcspn(text, is_quoted ? "'" : " \t\n");
		if (*text)
			*text++ = '\0';
	}
	return count;
}

tw_duration words_time(const char *text, tw_duration unit)
{
	static const struct {
		const char *name;
		tw_duration unit;
	} units[] = {{"ms", TW_MILLISECOND}, {"us", TW_MICROSECOND}, {"ns", 1},
		     {"h", TW_HOUR},         {"m", TW_MINUTE},       {"s", TW_SECOND}};
	bool is_negative = false;
	bool is_endless = !strncmp(text, "never", 5) || !strncmp(text, "ever", 4);
	tw_duration time = is_endless ? TW_FOREVER : 0;

	if (!strcmp(text, "least"))
		return INT64_MIN;
	text += is_endless ? strcspn(text, "r") + 1 : 0;
	while (*text) {
		char *end;
		double number;
		tw_duration of = unit;
		tw_duration part;

		if (*text == '-' || *text == '+')
			is_negative = *text++ == '-';
		number = strtod(text, &end);
		assert(end != text);
		text = end;
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
			if (!strncmp(text, units[i].name, strlen(units[i].name))) {
				of = units[i].unit;
				text += strlen(units[i].name);
				break;
			}
		part = number == (double)(tw_duration)number
			       ? (tw_duration)number * of
			       : (tw_duration)(number * (double)of + 0.5);
		time += is_negative ? -part : part;
	}
	return time;
}

void words_write_time(char *text, size_t size, tw_duration time, tw_duration unit)
{
	size_t length = strlen(text);
	int digits = 0;

	for (tw_duration part = unit; part > 1; part /= 10)
		digits++;
	if (time == TW_FOREVER) {
		snprintf(text + length, size - length, "never");
		return;
	}
	length += (size_t)snprintf(text + length, size - length, "%lld.%0*lld",
				   (long long)(time / unit), digits, (long long)(time % unit));
	while (text[length - 1] == '0')
		text[--length] = '\0';
	if (text[length - 1] == '.')
		text[--length] = '\0';
}

bool words_have_number(const char *expected, size_t number)
{
	char *end;
	size_t least = strtoul(expected, &end, 10);

	return number >= least && number <= (*end == '-' ? strtoul(end + 1, NULL, 10) : least);
}

const char *words_of_status(enum tw_status status)
{
	const char *name = tw_status_name(status) + strlen("TW_");

	return strncmp(name, "REDIS_", 6) ? name : name + 6;
}

void words_choose(const char *text, void (*run)(void *context, const char *text), void *context)
{
	const char *open = strchr(text, '{');
	const char *close = open ? strchr(open, '}') : NULL;
	size_t room = strlen(text) + 1;
	char *chosen;

	if (!close) {
		run(context, text);
		return;
	}
	chosen = malloc(room);
	assert(chosen);
	for (const char *at = open; *at != '}';) {
		size_t size = strcspn(++at, "|}");

		snprintf(chosen, room, "%.*s%.*s%s", (int)(open - text), text, (int)size, at,
			 close + 1);
		words_choose(chosen, run, context);
		at += size;
	}
	free(chosen);
}
