/* SPDX-License-Identifier: MIT */
/* The set of slots is compared with an array of booleans. */
#include "support/test.h"

#include "base/slot_set.h"

static const size_t sizes[] = {1, 2, 63, 64, 65, 4096, 4097, 300000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

struct model {
	struct slot_set set;
	uint64_t *words;
	struct random random;
	size_t size;
	bool *members;
};

static struct model model_open(size_t size, uint64_t seed)
{
	struct model model = {.random = random_from(seed, size), .size = size};

	model.words = calloc(slot_set_words(size), sizeof(*model.words));
	model.members = calloc(size, sizeof(*model.members));
	assert_non_null(model.words);
	assert_non_null(model.members);
	slot_set_init(&model.set, size, model.words);
	return model;
}

static void model_close(struct model *model)
{
	free(model->words);
	free(model->members);
}

static void add(struct model *model, size_t slot)
{
	slot_set_add(&model->set, slot);
	model->members[slot] = true;
}

static void take_out(struct model *model, size_t slot)
{
	slot_set_remove(&model->set, slot);
	model->members[slot] = false;
}

static size_t next_by_force(const struct model *model, size_t slot)
{
	while (slot < model->size && !model->members[slot])
		slot++;
	return slot < model->size ? slot : SLOT_NONE;
}

/* Walks over all members and searches from each place between them. */
static void assert_agrees_everywhere(const struct model *model)
{
	size_t next = SLOT_NONE;

	for (size_t slot = model->size; slot-- > 0;) {
		if (model->members[slot])
			next = slot;
		if (slot_set_next(&model->set, slot) != next)
			fail_msg("size %zu: from %zu the next is %zu, not %zu", model->size, slot,
				 slot_set_next(&model->set, slot), next);
	}
}

/* The set is empty at first. */
static void for_each_size(uint64_t seed, void (*run)(struct model *))
{
	for (size_t i = 0; i < SIZES; i++) {
		struct model model = model_open(sizes[i], seed);

		assert_agrees_everywhere(&model);
		run(&model);
		assert_agrees_everywhere(&model);
		model_close(&model);
	}
}

static void fill_and_empty(struct model *model)
{
	for (size_t slot = 0; slot < model->size; slot++)
		add(model, slot);
	assert_agrees_everywhere(model);
	for (size_t slot = 0; slot < model->size; slot++)
		if (!random_once_in(&model->random, 1000))
			take_out(model, slot);
	assert_agrees_everywhere(model);
	for (size_t slot = 0; slot < model->size; slot++)
		take_out(model, slot);
}

TEST(once, full_set_that_is_emptied_agrees_with_the_model)
{
	for_each_size(seed_choose(), fill_and_empty);
}

/* Every second change is in the first words, so that they and the summary words above them fill and
 * empty. */
static void change_at_random(struct model *model)
{
	struct random *random = &model->random;
	size_t size = model->size;
	int changes = TEST_SHARE_OF(size > 10000 ? 3000 : 30000);

	for (int change = 0; change < changes; change++) {
		size_t reach = random_once_in(random, 2) && size > 130 ? 130 : size;
		size_t slot = (size_t)random_below(random, reach);

		if (random_once_in(random, 2))
			add(model, slot);
		else
			take_out(model, slot);
		slot = (size_t)random_below(random, size);
		assert_int_equal(slot_set_next(&model->set, slot), next_by_force(model, slot));
	}
}

TEST(once, random_changes_agree_with_the_model)
{
	for_each_size(seed_choose(), change_at_random);
}
