/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "format.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit count_units[] = {
	{"", 1}, {"k", 1000}, {"m", 1000000}, {"g", 1000000000}, {NULL, 0},
};

static const struct unit duration_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", INT64_C(1000000000)},
	{"m", INT64_C(60000000000)},
	{"h", INT64_C(3600000000000)},
	{NULL, 0},
};

/* This name is for messages. It is static, as a program has one command line. */
static const char *program_name = "bench";

void options_refuse(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", program_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, " (%s --help lists the options)\n", program_name);
	exit(2);
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++) {
		if (!strcmp(units->name, name))
			return units;
	}
	return NULL;
}

/* Returns whether it starts as a plain decimal number: no sign, hexadecimal digits, "inf". */
static bool starts_plainly(const char *text)
{
	if (*text == '.')
		text++;
	return isdigit((unsigned char)text[0]) && text[1] != 'x' && text[1] != 'X';
}

/* Parses "1.5ms" with units of time as 1500000. Returns false if it is no such number. */
static bool parse_number(const char *text, const struct unit *units, const char *bare_unit,
			 double *number)
{
	char *end;
	const struct unit *unit;

	if (!starts_plainly(text))
		return false;
	*number = strtod(text, &end);
	unit = find_unit(units, *end ? end : bare_unit);
	if (!unit)
		return false;
	*number *= (double)unit->factor;
	return true;
}

static const char *bound_text(const struct program_option *option, int64_t bound, struct text *text)
{
	*text = option->kind == OPTION_COUNT ? format_count(bound) : format_duration(bound);
	return text->characters;
}

static void parse_quantity(const struct program_option *option, const char *value)
{
	bool counts = option->kind == OPTION_COUNT;
	const char *bare_unit = counts ? "" : option->kind == OPTION_SECONDS ? "s" : "none";
	struct text bound;
	double number;

	if (!parse_number(value, counts ? count_units : duration_units, bare_unit, &number))
		options_refuse("--%s=%s: not %s", option->name, value,
			       counts ? "a number like 250000, 250k or 1m"
				      : "a duration like 500us, 1ms or 10s");
	if (counts && number < 9e15 && number != (double)(int64_t)number)
		options_refuse("--%s=%s: not a whole number", option->name, value);
	if (number < (double)option->least)
		options_refuse("--%s=%s: must be at least %s", option->name, value,
			       bound_text(option, option->least, &bound));
	if (number > (double)option->most)
		options_refuse("--%s=%s: must be at most %s", option->name, value,
			       bound_text(option, option->most, &bound));
	*(int64_t *)option->target = (int64_t)number;
}

static void parse_choice(const struct program_option *option, const char *value)
{
	const char *word = option->choices;
	size_t length = strlen(value);

	for (int position = 0; *word; position++) {
		size_t word_length = strcspn(word, ",");

		if (length == word_length && !strncmp(word, value, length)) {
			*(int *)option->target = position;
			return;
		}
		word += word_length;
		word += *word == ',';
	}
	options_refuse("--%s=%s: must be one of %s", option->name, value, option->choices);
}

static void parse_value(const struct program_option *option, const char *value)
{
	if (option->kind == OPTION_CHOICE)
		parse_choice(option, value);
	else if (option->kind == OPTION_TEXT)
		*(const char **)option->target = value;
	else
		parse_quantity(option, value);
}

static const struct program_option *find_option(const struct program_option *options,
						const char *name, size_t length)
{
	for (; options->name; options++) {
		if (strlen(options->name) == length && !strncmp(options->name, name, length))
			return options;
	}
	options_refuse("unknown option --%.*s", (int)length, name);
}

static struct text default_choice(const struct program_option *option)
{
	const char *word = option->choices;
	struct text text;

	for (int left = *(const int *)option->target; left > 0; left--)
		word += strcspn(word, ",") + 1;
	snprintf(text.characters, sizeof(text.characters), "%.*s", (int)strcspn(word, ","), word);
	return text;
}

static struct text default_text(const struct program_option *option)
{
	struct text text = {""};

	if (option->kind == OPTION_COUNT)
		text = format_count(*(const int64_t *)option->target);
	else if (option->kind == OPTION_DURATION || option->kind == OPTION_SECONDS)
		text = format_duration(*(const int64_t *)option->target);
	else if (option->kind == OPTION_CHOICE)
		text = default_choice(option);
	return text;
}

static void print_help(const char *question, const struct program_option *options)
{
	static const char *const value_names[] = {"COUNT", "TIME", "SECONDS", "CHOICE", "FILE", ""};

	printf("%s: %s\n\n", program_name, question);
	for (; options->name; options++) {
		const char *equals = options->kind == OPTION_FLAG ? "" : "=";
		const char *value = options->kind == OPTION_CHOICE ? options->choices
								   : value_names[options->kind];
		struct text standard = default_text(options);
		int width = printf("  --%s%s%s", options->name, equals, value);

		printf("%*s%s", width < 26 ? 26 - width : 2, "", options->help);
		printf(*standard.characters ? " (%s)\n" : "%s\n", standard.characters);
	}
	printf("  --help%18sthis text\n", "");
	printf("\nA count takes k, m or g; a time ns, us, ms, s, m or h.\n");
	exit(0);
}

/* Parses argv[at]. Returns the number of arguments that it took. */
static int parse_argument(char **arguments, const struct program_option *options)
{
	const char *name = arguments[0] + 2;
	size_t length = strcspn(name, "=");
	const struct program_option *option;

	if (strncmp(arguments[0], "--", 2) != 0)
		options_refuse("unexpected argument \"%s\"", arguments[0]);
	option = find_option(options, name, length);
	if (option->kind == OPTION_FLAG) {
		if (name[length])
			options_refuse("--%s takes no value", option->name);
		*(bool *)option->target = true;
		return 1;
	}
	if (name[length]) {
		parse_value(option, name + length + 1);
		return 1;
	}
	if (!arguments[1])
		options_refuse("--%s needs a value", option->name);
	parse_value(option, arguments[1]);
	return 2;
}

void options_parse(int argc, char **argv, const char *question,
		   const struct program_option *options)
{
	const char *slash = strrchr(argv[0], '/');

	program_name = slash ? slash + 1 : argv[0];
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			print_help(question, options);
	}
	for (int i = 1; i < argc;)
		i += parse_argument(argv + i, options);
}
