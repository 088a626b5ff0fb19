/* SPDX-License-Identifier: MIT */
/*
 * This gives a fuzz target the files named as arguments, and each prefix of each of them: without
 * libFuzzer, and in `make test`. The copies have no byte to spare, for the address sanitizer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { FILE_MOST = 1 << 16 };

static void run(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size > 0 ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static size_t run_file(const char *name)
{
	static uint8_t bytes[FILE_MOST];
	FILE *file = fopen(name, "rb");
	size_t size;

	if (!file) {
		perror(name);
		exit(1);
	}
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	for (size_t part = 0; part <= size; part++)
		run(bytes, part);
	return size + 1;
}

int main(int count, char **names)
{
	size_t inputs = 0;

	for (int i = 1; i < count; i++)
		inputs += run_file(names[i]);
	printf("%d files, %zu inputs\n", count - 1, inputs);
	return inputs == 0;
}
