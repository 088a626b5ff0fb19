/* SPDX-License-Identifier: MIT */
#include "cache_use.h"

#include "checks.h"
#include "support/cache_calls.h"
#include "support/cache_value.h"

#include <string.h>

/* ---- Values ---- */

static void value_fill(struct cache_use *use, unsigned char *value, uint64_t number, size_t size)
{
	/* relaxed: unique is enough */
	uint64_t sequence = atomic_fetch_add_explicit(&use->sequence, 1, memory_order_relaxed);

	checked_value_fill(value, number, sequence, size);
}

void cache_use_judge(struct cache_use *use, const struct tw_cache_entry *entry, tw_duration asked)
{
	uint64_t number;
	uint64_t sequence;
	size_t size;
	const void *value = tw_cache_entry_value(entry, &size);

	memcpy(&number, tw_cache_entry_key(entry, NULL), sizeof(number));
	if (!checked_value_is_sound(value, size, number, &sequence))
		atomic_fetch_add(&use->wrong, 1);
	if (asked != 0 && tw_cache_entry_deadline(entry) <= asked)
		atomic_fetch_add(&use->expired, 1);
}

static size_t draw_size(struct cache_use *use, struct generator *generator)
{
	size_t size = (size_t)atomic_load(&use->size);
	int64_t most = 4096;

	switch ((enum sizes)atomic_load(&use->sizes)) {
	case ONE_SIZE:
		return size;
	case TWO_SIZES:
		return generator_range(generator, 0, 2) ? 40 : 8000;
	case DRIFTING:
		return size + (size_t)generator_range(generator, 0, 64);
	case SOME_HUGE:
		most = generator_range(generator, 0, 200) == 0 ? CACHE_VALUE_MOST : 1000;
		break;
	default:
		break;
	}
	return (size_t)generator_range(generator, CHECKED_VALUE_LEAST, most);
}

/* ---- What a thread does ---- */

static tw_duration draw_lifetime(struct generator *generator)
{
	return generator_range(generator, 1, generator_range(generator, 0, 4) == 0 ? 100 : 20000) *
	       TW_MILLISECOND;
}

/* Only these two statuses are right, and TW_CLOSED while the cache is being stopped. */
static void judge_status(struct cache_use *use, enum tw_status status, enum tw_status other)
{
	if (status == TW_OK || status == other)
		return;
	if (status != TW_CLOSED || !atomic_load(&use->is_stopping))
		atomic_fetch_add(&use->wrong, 1);
}

static void user_set(struct cache_user *user, uint64_t number)
{
	struct cache_use *use = user->use;
	size_t size = draw_size(use, &user->generator);
	enum tw_status status;

	value_fill(use, user->value, number, size);
	status = tw_cache_set_with_expire(use->cache, &number, sizeof(number), user->value, size,
					  draw_lifetime(&user->generator));
	judge_status(use, status, TW_FULL);
	if (status == TW_OK)
		atomic_fetch_add(&use->sets, 1);
}

static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct cache_user *user = argument;
	size_t size = draw_size(user->use, &user->generator);
	uint64_t number;

	memcpy(&number, key, key_size);
	value_fill(user->use, user->value, number, size);
	return give_copied(loading, user->value, size, draw_lifetime(&user->generator));
}

/* Keeps the pin until some thread needs its place. */
static void pin_for_long(struct cache_user *user, const struct tw_cache_entry *entry)
{
	int place = (int)generator_range(&user->generator, 0, CACHE_PINS);

	tw_cache_entry_release(atomic_exchange(&user->use->pins[place], entry));
}

static void user_look(struct cache_user *user, uint64_t number, bool takes)
{
	struct cache_use *use = user->use;
	const struct tw_cache_entry *entry;
	tw_duration asked = tw_now(use->wheel);
	enum tw_status status =
		takes ? tw_cache_take(use->cache, &number, sizeof(number), load, user, TW_FOREVER,
				      &entry)
		      : tw_cache_acquire(use->cache, &number, sizeof(number), 0, &entry);

	judge_status(use, status, takes ? TW_OK : TW_NOT_FOUND);
	if (!entry)
		return;
	cache_use_judge(use, entry, asked);
	if (generator_range(&user->generator, 0, 100) == 0)
		pin_for_long(user, entry);
	else
		tw_cache_entry_release(entry);
}

static enum tw_cache_verdict touch(void *generator, const struct tw_cache_entry *entry,
				   struct tw_cache_value *lifetime)
{
	(void)entry;
	lifetime->expire = draw_lifetime(generator);
	return TW_CACHE_TOUCH;
}

void cache_user_act(struct cache_user *user)
{
	struct generator *generator = &user->generator;
	struct tw_cache *cache = user->use->cache;
	uint64_t number = (uint64_t)generator_range(generator, 0, CACHE_KEYS);
	int64_t die = generator_range(generator, 0, 100);
	size_t size;

	atomic_fetch_add(&user->use->calls, 1);
	if (die < 40)
		user_set(user, number);
	else if (die < 75)
		(void)tw_cache_get(cache, &number, sizeof(number), user->value, CACHE_VALUE_MOST,
				   &size);
	else if (die < 90)
		user_look(user, number, false);
	else if (die < 93)
		user_look(user, number, true);
	else if (die < 97)
		(void)tw_cache_delete(cache, &number, sizeof(number));
	else
		(void)tw_cache_compute(cache, &number, sizeof(number), touch, generator);
}

/* ---- The whole ---- */

void cache_use_on_remove(void *use, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	(void)cause;
	cache_use_judge(use, entry, 0);
	atomic_fetch_add(&((struct cache_use *)use)->removals, 1);
}

void cache_use_release_pins(struct cache_use *use)
{
	for (int i = 0; i < CACHE_PINS; i++)
		tw_cache_entry_release(atomic_exchange(&use->pins[i], NULL));
}

void cache_use_check(const struct cache_use *use, const struct tw_cache_stats *stats)
{
	check_equal("removals reported, of all entries", (int64_t)atomic_load(&use->removals),
		    (int64_t)stats->inserts);
	check_equal("wrong values and answers", (int64_t)atomic_load(&use->wrong), 0);
	check_equal("values past their deadline", (int64_t)atomic_load(&use->expired), 0);
}
