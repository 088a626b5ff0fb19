/* SPDX-License-Identifier: MIT */
/*
 * All ranks have columns of the same height. The excess of a frequent rank fills up the columns of
 * rare ones: a column holds its own rank below `share`, and one other above.
 */
#include "zipf.h"

#include "process.h"

#include <math.h>
#include <stdlib.h>

struct column {
	double share;
	uint32_t other;
};

struct zipf {
	size_t count;
	struct column columns[];
};

static double total_weight(size_t count, double exponent)
{
	double total = 0;

	/* Small ones come first: they would be lost beside the large. */
	for (size_t rank = count; rank > 0; rank--)
		total += pow((double)rank, -exponent);
	return total;
}

/* These are ranks whose columns hold too much, and those that are not full yet. */
struct unfinished {
	uint32_t *rich;
	uint32_t *poor;
	size_t rich_count;
	size_t poor_count;
};

static void unfinished_add(struct unfinished *unfinished, const struct zipf *zipf, uint32_t rank)
{
	if (zipf->columns[rank].share < 1)
		unfinished->poor[unfinished->poor_count++] = rank;
	else
		unfinished->rich[unfinished->rich_count++] = rank;
}

static void fill_up(struct zipf *zipf)
{
	struct unfinished unfinished = {
		.rich = process_allocate(zipf->count * sizeof(uint32_t)),
		.poor = process_allocate(zipf->count * sizeof(uint32_t)),
	};

	for (size_t rank = 0; rank < zipf->count; rank++)
		unfinished_add(&unfinished, zipf, (uint32_t)rank);
	/* Those left in the end are full except for rounding. */
	while (unfinished.rich_count > 0 && unfinished.poor_count > 0) {
		uint32_t poor = unfinished.poor[--unfinished.poor_count];
		uint32_t rich = unfinished.rich[--unfinished.rich_count];

		zipf->columns[poor].other = rich;
		zipf->columns[rich].share -= 1 - zipf->columns[poor].share;
		unfinished_add(&unfinished, zipf, rich);
	}
	free(unfinished.rich);
	free(unfinished.poor);
}

struct zipf *zipf_create(size_t count, double exponent)
{
	struct zipf *zipf = process_allocate(sizeof(*zipf) + count * sizeof(struct column));
	double scale = (double)count / total_weight(count, exponent);

	zipf->count = count;
	for (size_t rank = 0; rank < count; rank++)
		zipf->columns[rank] =
			(struct column){scale * pow((double)rank + 1, -exponent), (uint32_t)rank};
	fill_up(zipf);
	return zipf;
}

void zipf_destroy(struct zipf *zipf)
{
	free(zipf);
}

size_t zipf_draw(const struct zipf *zipf, struct generator *generator)
{
	size_t rank = (size_t)generator_range(generator, 0, (int64_t)zipf->count);
	double height = (double)(generator_next(generator) >> 11) * 0x1p-53;

	return height < zipf->columns[rank].share ? rank : zipf->columns[rank].other;
}
