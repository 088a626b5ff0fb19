/* SPDX-License-Identifier: MIT */
/*
 * A cache with options drawn at random, and a few threads that use it. Of most keys one thread is
 * the only writer, and all read; so each write has a number, and a reader knows which values it may
 * find: none older than the last write that was over before it looked, none that was not begun. The
 * other keys are loaded by any thread, and deleted. In some cases all keys are loaded
 * (cache_loads.c), so that a value may take another's place which nobody has written: it may be
 * found only if its load began after the last change of the key that was over.
 *
 * The oracle: no value is handed out at or past its deadline, none that is older than it may be; a
 * key that must be there is found; a value is whole, as long as it is pinned; one load a key at a
 * time; each entry leaves once and is told of once, for a cause that there was; what was adopted is
 * freed once, after its pins; after the end nothing is left but what is pinned; a cache that is
 * stopped answers so. When all threads sleep, no call may be waiting for time to pass, and no entry
 * may be past its deadline for more than two ticks.
 */
#include "cache_world.h"

#include <stdio.h>
#include <string.h>

#include "cache_loads.h"

/* What a value begins with; the rest is the number's last byte. */
struct content {
	uint32_t number;
	uint32_t key;
};

struct world world;
struct value values[VALUES_MOST];

tw_duration now_here(void)
{
	struct timespec now;

	if (world.wheel)
		return tw_now(world.wheel);
	/* The cache's own wheel has the system's clock. */
	sim_clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * TW_SECOND + now.tv_nsec;
}

void check_stopped(bool was_stopped, const char *call, enum tw_status status)
{
	if (was_stopped && status != TW_CLOSED && status != TW_NO_MEMORY)
		sim_fail("%s: %s, and the cache is stopped", call, tw_status_name(status));
	if (status == TW_CLOSED && !world.stop_begun && !world.wheel_is_stopped)
		sim_fail("%s: TW_CLOSED, and nothing is stopped", call);
}

/* The thread is cancelled in its sleep. */
static void wake_up(void *unused)
{
	(void)unused;
	world.sleeping--;
}

void sleep_for(tw_duration most)
{
	struct timespec time = {.tv_nsec = draw_between(1, most)};
	struct sim_cleanup cleanup;

	world.sleeping++;
	sim_cleanup_push(&cleanup, wake_up, NULL);
	sim_nanosleep(&time, NULL);
	sim_cleanup_pop(&cleanup, 1);
}

/* ---- Values ---- */

size_t key_name(unsigned key, char *name)
{
	return (size_t)snprintf(name, NAME_SIZE, "key %u%s", key,
				key % 3 == 0 ? ", with a name that is a little longer" : "");
}

struct value *value_new(unsigned key)
{
	struct value *value;
	struct content content;

	if (world.values == VALUES_MOST)
		return NULL;
	value = &values[world.values++];
	*value = (struct value){.key = key,
				.high = TW_FOREVER,
				.clears = world.clears_over,
				.deletes = world.key[key].deletes_over,
				.key_touches = world.key[key].touches_over};
	value->size = (size_t)DRAW_ONE_OF(sizeof(content), 20, 100, 300, LONGEST);
	content = (struct content){(uint32_t)(value - values), (uint32_t)key};
	memset(value->memory, (int)(content.number & 0xff), value->size);
	memcpy(value->memory, &content, sizeof(content));
	return value;
}

int value_number(const struct value *value)
{
	return (int)(value - values);
}

static struct value *value_of_bytes(unsigned key, const void *bytes, size_t size)
{
	struct content content;
	struct value *value;
	const unsigned char *rest = (const unsigned char *)bytes + sizeof(content);

	if (size < sizeof(content))
		sim_fail("a value of %zu bytes", size);
	memcpy(&content, bytes, sizeof(content));
	if (content.number >= world.values || content.key != key)
		sim_fail("what is found under key %u is no value of it", key);
	value = &values[content.number];
	if (value->size != size)
		sim_fail("value %u has %zu bytes instead of %zu", content.number, size,
			 value->size);
	for (size_t i = 0; i < size - sizeof(content); i++)
		if (rest[i] != (content.number & 0xff))
			sim_fail("byte %zu of value %u has changed", i, content.number);
	return value;
}

struct value *value_of_entry(const struct tw_cache_entry *entry)
{
	size_t size;
	size_t key_size;
	const void *bytes = tw_cache_entry_value(entry, &size);
	const void *key = tw_cache_entry_key(entry, &key_size);
	struct content content;
	char name[NAME_SIZE];

	if (size < sizeof(content))
		sim_fail("an entry of %zu bytes", size);
	memcpy(&content, bytes, sizeof(content));
	if (content.key >= KEYS || key_name(content.key, name) != key_size ||
	    memcmp(name, key, key_size) != 0)
		sim_fail("an entry has another key than its value");
	return value_of_bytes(content.key, bytes, size);
}

void free_value(void *memory, size_t size, void *context)
{
	struct value *value = context;

	(void)memory;
	(void)value_of_bytes(value->key, value->memory, size);
	if (++value->freed > 1)
		sim_fail("an adopted value is freed again");
	if (value->fate == REFUSED)
		sim_fail("an adopted value is freed that was refused");
	if (value->pins > 0)
		sim_fail("an adopted value is freed while it is pinned");
	memset(value->memory, 0xee, value->size);
}

/* Whether somebody may have removed it by its key. */
static bool value_is_deleted(const struct value *value)
{
	const struct key *key = &world.key[value->key];

	return key->deletes_begun > value->deletes || world.clears_begun > value->clears ||
	       (world.options.refresh_after > 0 && key->absences > 0 && key->loaded > value->began);
}

/* Whether another value may have taken its place while it could be read. */
static bool value_is_replaced(const struct value *value)
{
	const struct key *key = &world.key[value->key];
	bool is_written = value->is_loaded ? key->writes_begun > 0 && value->key < FIRST_LOADED
					   : key->writes_begun > value->write;

	return is_written || (world.options.refresh_after > 0 && key->loaded > value->began);
}

/* Since the value was loaded: maybe in its place. */
static bool key_was_touched(const struct value *value)
{
	return world.key[value->key].touches_begun > value->key_touches;
}

static void check_cause(const struct value *value, enum tw_cache_cause cause)
{
	int number = value_number(value);

	switch (cause) {
	case TW_CAUSE_EXPLICIT:
		if (!value_is_deleted(value))
			sim_fail("value %d leaves as deleted, and nobody deletes it", number);
		break;
	case TW_CAUSE_REPLACED:
		if (!value_is_replaced(value))
			sim_fail("value %d is replaced, and nothing comes in its place", number);
		break;
	case TW_CAUSE_SIZE:
		if (!world.has_limits)
			sim_fail("TW_CAUSE_SIZE without limits");
		break;
	case TW_CAUSE_EXPIRED:
		if (world.options.idle == 0 && now_here() < value->low &&
		    (!value->is_loaded || !key_was_touched(value)))
			sim_fail("value %d has expired before its deadline", number);
		break;
	case TW_CAUSE_SHUTDOWN:
		if (!world.is_ending)
			sim_fail("TW_CAUSE_SHUTDOWN before the end");
	}
}

static void on_remove(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	struct value *value = value_of_entry(entry);

	(void)context;
	if (world.in_listener)
		sim_fail("two calls of on_remove at a time");
	world.in_listener = true;
	world.told++;
	if (value->fate == REFUSED || value->fate == DROPPED || ++value->told > 1)
		sim_fail("on_remove is told of value %d, %s", value_number(value),
			 value->told > 1 ? "again" : "which was not accepted");
	check_cause(value, cause);
	if (sim_draw(10) == 0)
		sleep_for(3 * TW_MILLISECOND);
	(void)value_of_entry(entry);
	world.in_listener = false;
}

static void check_found(const struct look *look, struct value *value);

/* ---- Writing ---- */

tw_duration draw_lifetime(void)
{
	switch (sim_draw(6)) {
	case 0:
		return TW_FOREVER;
	case 1:
		return draw_between(1, TW_MICROSECOND);
	default:
		return draw_between(1, 5 * world.interval);
	}
}

/* Keys that are loaded alone have no writer: any thread may delete them. */
static bool key_has_writer(unsigned number)
{
	return number < FIRST_LOADED;
}

/* Whether the key may have a value that its writer knows nothing of, or knows to be there. */
static bool key_may_be_there(const struct key *key)
{
	return key->current || key->loaded > key->changed;
}

/* A set or delete of the key that is about to be called, or, with many keys, one of those. */
struct change {
	unsigned key;
	struct value *value; /* NULL: a delete */
	uint64_t began;
	uint64_t write;
	bool may_be_there;
	tw_duration life;
};

static struct change change_begin(unsigned number, struct value *value)
{
	struct key *key = &world.key[number];
	struct change change = {.key = number,
				.value = value,
				.began = ++world.events,
				.may_be_there = key_may_be_there(key)};

	if (key_has_writer(number))
		change.write = ++key->writes_begun;
	key->deletes_begun += !value;
	return change;
}

/* With its lifetime. */
static struct change change_begin_set(unsigned number, struct value *value, tw_duration life)
{
	struct change change = change_begin(number, value);

	change.life = life;
	value->began = change.began;
	value->write = change.write;
	value->low = time_add(now_here(), life);
	return change;
}

/* `is_done`: the key is as the change wants it. */
static void change_end(const struct change *change, bool is_done)
{
	struct key *key = &world.key[change->key];
	struct value *value = change->value;

	if (value) {
		value->fate = is_done ? ACCEPTED : REFUSED;
		value->high = time_add(now_here(), change->life);
		value->over = ++world.events;
		if (!is_done && (value->told > 0 || value->freed > 0))
			sim_fail("a value that was refused is told of or freed");
		sim_trace("  value %d of key %u%s", value_number(value), change->key,
			  is_done ? "" : " is refused");
	} else {
		key->deletes_over++;
	}
	if (!is_done)
		return;
	if (change->began > key->changed)
		key->changed = change->began;
	if (!key_has_writer(change->key))
		return;
	key->writes_over = change->write;
	key->current = value;
}

static void change_end_delete(const struct change *change, enum tw_status status)
{
	if (status == TW_OK && key_has_writer(change->key) && !change->may_be_there &&
	    !key_may_be_there(&world.key[change->key]))
		sim_fail("a key that is not there is deleted");
	change_end(change, status == TW_OK || status == TW_NOT_FOUND);
}

static void user_set(struct user *user, unsigned number)
{
	struct value *value = value_new(number);
	tw_duration life = draw_lifetime();
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	int kind = (int)sim_draw(6);
	struct change change;
	enum tw_status status;

	if (!value)
		return;
	change = change_begin_set(number, value, kind == 0 ? world.expire : life);
	switch (kind) {
	case 0:
		status = CALL(user,
			      tw_cache_set(world.cache, name, size, value->memory, value->size));
		break;
	case 1:
		status = CALL(user, tw_cache_add(world.cache, name, size, value->memory,
						 value->size, life));
		break;
	case 2:
		status = CALL(user, tw_cache_replace(world.cache, name, size, value->memory,
						     value->size, life));
		break;
	case 3:
		value->is_adopted = true;
		status = CALL(user, tw_cache_adopt(world.cache, name, size, value->memory,
						   value->size, 0, free_value, value, life));
		break;
	default:
		status = CALL(user, tw_cache_set_with_expire(world.cache, name, size, value->memory,
							     value->size, life));
	}
	change_end(&change, status == TW_OK);
	if (status == TW_EXISTS && !change.may_be_there && !key_may_be_there(&world.key[number]))
		sim_fail("tw_cache_add finds a key that is not there");
}

void user_delete(struct user *user, unsigned number)
{
	struct change change = change_begin(number, NULL);
	char name[NAME_SIZE];
	size_t size = key_name(number, name);

	change_end_delete(&change, CALL(user, tw_cache_delete(world.cache, name, size)));
}

static void user_pop(struct user *user, unsigned number)
{
	struct look look = look_begin(number);
	struct change change = change_begin(number, NULL);
	const struct tw_cache_entry *entry;
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	enum tw_status status = CALL(user, tw_cache_pop(world.cache, name, size, &entry));

	if (status == TW_OK) {
		struct value *value = value_of_entry(entry);

		check_found(&look, value);
		if (value->is_popped)
			sim_fail("value %d is popped twice", value_number(value));
		value->is_popped = true;
		user_pin(user, entry);
	} else if (entry) {
		sim_fail("a pop that fails leaves an entry");
	} else if (status == TW_NOT_FOUND) {
		look.own_writes = key_has_writer(number);
		check_not_found(&look);
	}
	change_end_delete(&change, status);
}

static void user_set_many(struct user *user)
{
	struct tw_cache_item items[ITEMS_MOST] = {{.key = NULL}};
	struct change changes[ITEMS_MOST];
	char names[ITEMS_MOST][NAME_SIZE];
	unsigned count = 0;
	size_t set;
	size_t sum = 0;
	enum tw_status status;

	for (unsigned most = (unsigned)draw_between(1, ITEMS_MOST); count < most; count++) {
		unsigned number =
			user->caller.number * KEYS_A_USER + (unsigned)sim_draw(KEYS_A_USER);
		struct value *value = value_new(number);
		struct tw_cache_item *item = &items[count];

		if (!value)
			break;
		item->key = names[count];
		item->key_size = key_name(number, names[count]);
		item->value = value->memory;
		item->value_size = value->size;
		item->expire = sim_draw(4) == 0 ? 0 : draw_lifetime();
		changes[count] = change_begin_set(number, value,
						  item->expire > 0 ? item->expire : world.expire);
	}
	status = CALL(user, tw_cache_set_many(world.cache, items, count, &set));
	for (unsigned i = 0; i < count; i++) {
		bool is_done = status == TW_OK && items[i].status == TW_OK;

		sum += is_done;
		change_end(&changes[i], is_done);
	}
	if (sum != set)
		sim_fail("tw_cache_set_many: %zu of %zu are set", sum, set);
}

static void user_delete_many(struct user *user)
{
	struct tw_cache_key keys[ITEMS_MOST];
	struct change changes[ITEMS_MOST];
	char names[ITEMS_MOST][NAME_SIZE];
	unsigned count = (unsigned)draw_between(1, ITEMS_MOST);
	size_t deleted;
	size_t sum = 0;
	enum tw_status status;

	for (unsigned i = 0; i < count; i++) {
		unsigned number = sim_draw(3) == 0 ? FIRST_LOADED + (unsigned)sim_draw(LOADED_KEYS)
						   : user->caller.number * KEYS_A_USER +
							     (unsigned)sim_draw(KEYS_A_USER);

		keys[i].key = names[i];
		keys[i].key_size = key_name(number, names[i]);
		changes[i] = change_begin(number, NULL);
	}
	status = CALL(user, tw_cache_delete_many(world.cache, keys, count, &deleted));
	for (unsigned i = 0; i < count; i++) {
		enum tw_status answer = status == TW_OK ? keys[i].status : status;

		sum += answer == TW_OK;
		change_end_delete(&changes[i], answer);
	}
	if (sum != deleted)
		sim_fail("tw_cache_delete_many: %zu of %zu are deleted", sum, deleted);
}

/* A tw_cache_compute that is under way. */
struct computing {
	struct look look;
	struct value *value; /* to replace */
	tw_duration life;
	enum tw_cache_verdict verdict;
};

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_computed *computed)
{
	struct computing *computing = context;

	if (entry)
		check_found(&computing->look, value_of_entry(entry));
	else
		check_not_found(&computing->look);
	if (computing->verdict == TW_CACHE_REPLACE) {
		computed->value = computing->value->memory;
		computed->value_size = computing->value->size;
		computed->expire = computing->life;
	}
	return computing->verdict;
}

static void user_compute(struct user *user, unsigned number)
{
	struct computing computing = {.verdict = (enum tw_cache_verdict)(key_has_writer(number)
										 ? sim_draw(3)
										 : 2 * sim_draw(2)),
				      .life = draw_lifetime()};
	struct change change;
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	enum tw_status status;

	if (computing.verdict == TW_CACHE_REPLACE)
		computing.value = value_new(number);
	if (computing.verdict == TW_CACHE_REPLACE && !computing.value)
		return;
	computing.look = look_begin(number);
	if (computing.verdict == TW_CACHE_REPLACE)
		change = change_begin_set(number, computing.value, computing.life);
	else if (computing.verdict == TW_CACHE_DELETE)
		change = change_begin(number, NULL);
	computing.look.own_writes = computing.verdict != TW_CACHE_KEEP && key_has_writer(number);
	status = CALL(user, tw_cache_compute(world.cache, name, size, compute, &computing));
	if (computing.verdict != TW_CACHE_KEEP)
		change_end(&change, status == TW_OK);
}

static void user_touch(struct user *user, unsigned number)
{
	struct key *key = &world.key[number];
	struct value *value = key->current;
	tw_duration life = draw_lifetime();
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	tw_duration low = time_add(now_here(), life);
	enum tw_status status;

	key->touches_begun++;
	if (value) {
		value->touches++;
		value->low = low < value->low ? low : value->low;
	}
	status = CALL(user, tw_cache_touch(world.cache, name, size, life));
	key->touches_over++;
	if (status != TW_OK || !value) {
		if (value)
			value->touches++;
		return;
	}
	/* Else it may be another that was touched. */
	if (key->loaded < value->began) {
		value->high = time_add(now_here(), life);
		value->low = low;
	} else {
		value->high = TW_FOREVER;
	}
	value->touches++;
}

static void user_clear(struct user *user)
{
	uint64_t began = ++world.events;
	enum tw_status status;

	world.clears_begun++;
	status = CALL(user, tw_cache_clear(world.cache));
	if (status == TW_CLOSED)
		return;
	if (status != TW_OK)
		sim_fail("tw_cache_clear: %s", tw_status_name(status));
	world.clears_over++;
	if (began > world.cleared)
		world.cleared = began;
}

/* ---- Reading ---- */

struct look look_begin(unsigned number)
{
	const struct key *key = &world.key[number];
	struct look look = {.key = number,
			    .event = ++world.events,
			    .writes_over = key->writes_over,
			    .writes_begun = key->writes_begun,
			    .gone = key->changed > world.cleared ? key->changed : world.cleared,
			    .seen = key->seen,
			    .current = key->current,
			    .failures = key->failures,
			    .absences = key->absences,
			    .outcome = key->outcome,
			    .now = now_here()};

	look.touches = look.current ? look.current->touches : 0;
	return look;
}

void check_known(const struct look *look, const struct value *value)
{
	const struct key *key = &world.key[look->key];
	int number = value_number(value);

	if (value->key != look->key)
		sim_fail("value %d is of key %u, not of %u", number, value->key, look->key);
	if (value->fate == REFUSED || value->fate == DROPPED)
		sim_fail("value %d is found, which was not accepted", number);
	if (!value->is_loaded &&
	    (value->write < look->writes_over || value->write > key->writes_begun))
		sim_fail("value %d is found, of write %llu; %llu were over", number,
			 (unsigned long long)value->write, (unsigned long long)look->writes_over);
	if (value->is_loaded && value->began < look->gone)
		sim_fail("value %d is found, whose load began before a change that was over",
			 number);
	if (value->over > 0 && (value->over < look->gone || value->over < look->seen))
		sim_fail("value %d is found after %s", number,
			 value->over < look->gone ? "a clear" : "one that was loaded later");
}

/* By a lookup: so it is in the cache. */
static void check_found(const struct look *look, struct value *value)
{
	struct key *key = &world.key[look->key];

	check_known(look, value);
	if (value->is_loaded) {
		if (value->over == 0)
			value->over = ++world.events;
		if (value->began > key->seen)
			key->seen = value->began;
		if (key_was_touched(value))
			return;
	} else if (value != look->current || value->touches != look->touches ||
		   value->touches % 2 != 0) {
		return;
	}
	if (value->high <= look->now)
		sim_fail("value %d is found at %lld, past its deadline %lld", value_number(value),
			 (long long)look->now, (long long)value->high);
}

/* Whether the key had its writer's last value all the time, if it did not expire or make room. */
static bool look_is_settled(const struct look *look)
{
	const struct key *key = &world.key[look->key];
	const struct value *value = look->current;

	return value && look->writes_begun == look->writes_over &&
	       key->writes_begun == look->writes_begun + look->own_writes &&
	       value->touches == look->touches && value->touches % 2 == 0 &&
	       value->clears == world.clears_begun && key->loaded < value->began;
}

void check_not_found(const struct look *look)
{
	const struct value *value = look->current;

	if (world.has_limits || world.options.idle > 0 || !look_is_settled(look) ||
	    value->low <= now_here())
		return;
	sim_fail("value %d, of key %u, is not found", value_number(value), look->key);
}

void user_get(struct user *user, unsigned number)
{
	unsigned char buffer[LONGEST];
	struct look look = look_begin(number);
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	size_t value_size;
	enum tw_status status = CALL(
		user, tw_cache_get(world.cache, name, size, buffer, sizeof(buffer), &value_size));

	if (status == TW_OK)
		check_found(&look, value_of_bytes(number, buffer, value_size));
	else if (status == TW_NOT_FOUND)
		check_not_found(&look);
	else if (status != TW_NO_MEMORY && status != TW_CLOSED)
		sim_fail("tw_cache_get: %s", tw_status_name(status));
	world.asked += status == TW_OK || status == TW_NOT_FOUND;
}

static void user_unpin(struct user *user, unsigned place)
{
	const struct tw_cache_entry *entry = user->pins[place];
	struct value *value;

	if (!entry)
		return;
	value = value_of_entry(entry);
	value->pins--;
	user->pins[place] = NULL;
	tw_cache_entry_release(entry);
}

void user_unpin_all(struct user *user)
{
	for (unsigned i = 0; i < PINS_A_USER; i++)
		user_unpin(user, i);
}

void user_pin(struct user *user, const struct tw_cache_entry *entry)
{
	unsigned place = (unsigned)sim_draw(PINS_A_USER);

	value_of_entry(entry)->pins++;
	user_unpin(user, place);
	user->pins[place] = entry;
}

/* By tw_cache_acquire or tw_cache_peek. */
static void user_acquire(struct user *user, unsigned number)
{
	struct look look = look_begin(number);
	const struct tw_cache_entry *entry;
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	bool peeks = sim_draw(3) == 0;
	enum tw_status status =
		peeks ? CALL(user, tw_cache_peek(world.cache, name, size, &entry))
		      : CALL(user, tw_cache_acquire(world.cache, name, size, &entry));

	if (status == TW_OK) {
		check_found(&look, value_of_entry(entry));
		if (tw_cache_entry_deadline(entry) <= look.now)
			sim_fail("an entry is found past its deadline");
		user_pin(user, entry);
	} else if (status == TW_NOT_FOUND) {
		check_not_found(&look);
	}
	world.asked += !peeks && (status == TW_OK || status == TW_NOT_FOUND);
}

static void user_ask_remaining(struct user *user, unsigned number)
{
	struct look look = look_begin(number);
	tw_duration remaining;
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	enum tw_status status = CALL(user, tw_cache_remaining(world.cache, name, size, &remaining));

	if ((status == TW_OK) != (remaining > 0))
		sim_fail("tw_cache_remaining: %s and %lld", tw_status_name(status),
			 (long long)remaining);
	if (status == TW_NOT_FOUND)
		check_not_found(&look);
	if (status == TW_OK && world.options.idle == 0 && look_is_settled(&look) &&
	    (time_add(now_here(), remaining) < look.current->low ||
	     time_add(look.now, remaining) > look.current->high))
		sim_fail("%lld remain of value %d, from %lld to %lld", (long long)remaining,
			 value_number(look.current), (long long)look.current->low,
			 (long long)look.current->high);
}

/* ---- Users ---- */

static void user_flush(struct user *user)
{
	enum tw_status status = CALL(user, tw_cache_flush(world.cache));

	if (status != TW_OK && status != TW_CLOSED)
		sim_fail("tw_cache_flush: %s", tw_status_name(status));
}

static int visit(void *context, const struct tw_cache_entry *entry)
{
	(void)context;
	(void)value_of_entry(entry);
	return sim_draw(20) != 0;
}

static void user_sleep(void)
{
	struct timespec time = {.tv_nsec = draw_between(1, 8 * TW_MILLISECOND)};

	if (world.is_manual)
		(void)tw_advance(world.wheel, draw_between(0, 3) * world.interval / 2);
	else
		sim_nanosleep(&time, NULL);
}

static void user_command(struct user *user)
{
	unsigned own = user->caller.number * KEYS_A_USER + (unsigned)sim_draw(KEYS_A_USER);
	unsigned any = (unsigned)sim_draw(KEYS);
	unsigned loaded = FIRST_LOADED + (unsigned)sim_draw(LOADED_KEYS);
	struct tw_cache_stats stats;
	/* Where it writes much, memory is used again soon. */
	uint64_t command = sim_draw(world.writes_much ? 48 : 28);

	if (world.loads_much && sim_draw(3) == 0)
		command = 11;
	if (command >= 40)
		command = 3;
	switch (command) {
	case 0:
	case 1:
		user_delete(user, own);
		break;
	case 2:
		user_touch(user, own);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		user_get(user, any);
		break;
	case 7:
	case 8:
		user_get(user, own);
		break;
	case 9:
	case 10:
		user_acquire(user, any);
		break;
	case 11:
	case 12:
	case 13:
	case 14:
		loads_command(user);
		break;
	case 15:
		user_delete(user, loaded);
		break;
	case 16:
		user_unpin(user, (unsigned)sim_draw(PINS_A_USER));
		break;
	case 17:
		user_flush(user);
		break;
	case 18:
		if (sim_draw(4) == 0)
			user_clear(user);
		else
			(void)CALL(user, tw_cache_each(world.cache, visit, NULL));
		break;
	case 19:
		user_sleep();
		break;
	case 20:
		if (tw_cache_get_stats(world.cache, &stats) != TW_OK)
			sim_fail("tw_cache_get_stats");
		break;
	case 21:
		user_compute(user, sim_draw(4) == 0 ? loaded : own);
		break;
	case 22:
		user_pop(user, sim_draw(4) == 0 ? loaded : own);
		break;
	case 23:
		user_set_many(user);
		break;
	case 24:
		if (sim_draw(2) == 0)
			user_delete_many(user);
		else
			user_ask_remaining(user, own);
		break;
	default:
		user_set(user, own);
	}
}

static void *user_run(void *argument)
{
	struct user *user = argument;

	for (unsigned i = 0; i < world.calls; i++) {
		user_command(user);
		sim_pthread_testcancel();
	}
	return NULL;
}

/* ---- The world ---- */

static void draw_world(void)
{
	struct tw_cache_options *options = &world.options;
	struct tw_options *wheel = &world.wheel_options;

	memset(&world, 0, sizeof(world));
	world.interval = DRAW_ONE_OF(TW_MILLISECOND, 10 * TW_MILLISECOND, 300000);
	options->jitter = -1;
	options->shards = (unsigned)DRAW_ONE_OF(1, 2, 4);
	options->policy = (enum tw_cache_policy)sim_draw(2);
	if (sim_draw(3) == 0)
		options->max_entries = (uint64_t)DRAW_ONE_OF(1, 3, 8);
	if (sim_draw(4) == 0)
		options->max_bytes = (uint64_t)DRAW_ONE_OF(200, 2000, 5000);
	world.has_limits = options->max_entries > 0 || options->max_bytes > 0;
	if (sim_draw(5) == 0)
		options->idle = draw_between(1, 4 * world.interval);
	if (sim_draw(2) == 0)
		options->negative_expire = draw_between(1, 4 * world.interval);
	if (sim_draw(4) != 0)
		options->on_remove = on_remove;
	if (sim_draw(6) == 0)
		options->max_queued_removals = (uint64_t)draw_between(1, 20);
	world.writes_much = sim_draw(2) == 0;
	loads_draw();
	world.expire = draw_between(world.interval, 5 * world.interval);
	world.users = (unsigned)draw_between(1, USERS_MOST);
	world.calls = (unsigned)DRAW_ONE_OF(5, 10, 20, 40, 80, 300);
	for (unsigned i = 0; i < USERS_MOST; i++)
		world.user[i].caller.number = i;
	wheel->clock =
		(enum tw_clock)DRAW_ONE_OF(TW_CLOCK_MONOTONIC, TW_CLOCK_MANUAL, TW_CLOCK_BOOTTIME);
	wheel->workers = (int)DRAW_ONE_OF(TW_WORKERS_INLINE, 1, 2);
	wheel->drive =
		(enum tw_drive)DRAW_ONE_OF(TW_DRIVE_THREAD, TW_DRIVE_THREAD, TW_DRIVE_CALLER);
	wheel->layout = (enum tw_layout)sim_draw(2);
}

static bool may_fail(void)
{
	return sim_plan_here()->memory_failures > 0 || sim_plan_here()->thread_failures > 0;
}

static bool open_cache(void)
{
	enum tw_status status = TW_OK;

	if (sim_draw(4) != 0) {
		/* No timers but the cache's own are on it. */
		status = tw_create(&world.wheel, world.interval, 4, NULL, &world.wheel_options);
		world.is_manual = world.wheel_options.clock == TW_CLOCK_MANUAL;
	} else {
		world.interval = TW_SECOND;
	}
	world.options.wheel = world.wheel;
	if (status == TW_OK)
		status = tw_cache_create(&world.cache, world.expire, &world.options);
	if (status != TW_OK && !may_fail())
		sim_fail("the cache or its wheel can't be made: %s", tw_status_name(status));
	return status == TW_OK;
}

static void run_users(void)
{
	bool has_user[USERS_MOST] = {false};

	for (unsigned i = 0; i < world.users; i++)
		has_user[i] = sim_pthread_create(&world.user[i].caller.thread, NULL, user_run,
						 &world.user[i]) == 0;
	if (sim_draw(6) == 0 && has_user[0]) {
		user_sleep();
		world.ends_threads = true;
		(void)sim_pthread_cancel(world.user[0].caller.thread);
	}
	if (sim_draw(world.options.load ? 6 : 12) == 0) {
		user_sleep();
		world.stop_begun = true;
		if (tw_cache_stop(world.cache) != TW_OK)
			sim_fail("tw_cache_stop");
		world.is_stopped = true;
	}
	if (world.wheel && sim_draw(16) == 0) {
		world.wheel_is_stopped = true;
		(void)tw_stop(world.wheel);
	}
	for (unsigned i = 0; i < world.users; i++)
		if (has_user[i])
			sim_pthread_join(world.user[i].caller.thread, NULL);
}

static void check_stats(void)
{
	struct tw_cache_stats stats;
	uint64_t left = 0;

	(void)tw_cache_get_stats(world.cache, &stats);
	for (int i = 0; i < TW_CACHE_CAUSES; i++)
		left += stats.removed[i];
	/* The wheel may be removing some right now. */
	if (stats.inserts > left + stats.entries + KEYS)
		sim_fail("%llu inserts, %llu left and %llu there",
			 (unsigned long long)stats.inserts, (unsigned long long)left,
			 (unsigned long long)stats.entries);
	loads_check_stats();
}

/* How many have come in, when none will any more; 0: not asked. */
static uint64_t stop_cache(void)
{
	struct tw_cache_stats stats = {.inserts = 0};

	if (!world.is_stopped && sim_draw(2) == 0) {
		world.stop_begun = true;
		(void)tw_cache_stop(world.cache);
		world.is_stopped = true;
	}
	if (world.is_stopped)
		(void)tw_cache_get_stats(world.cache, &stats);
	return stats.inserts;
}

static void check_values(uint64_t inserts)
{
	for (unsigned i = 0; i < world.values; i++) {
		const struct value *value = &values[i];

		if (value->fate == ACCEPTED && world.options.on_remove && value->told != 1)
			sim_fail("on_remove was told %u times of value %u, of key %u", value->told,
				 i, value->key);
		if (value->fate != REFUSED && value->is_adopted && value->freed != 1)
			sim_fail("adopted value %u was freed %u times", i, value->freed);
	}
	if (inserts > 0 && world.options.on_remove && world.options.negative_expire == 0 &&
	    world.told != inserts)
		sim_fail("%llu came in, and on_remove was told of %llu",
			 (unsigned long long)inserts, (unsigned long long)world.told);
}

static void close_cache(void)
{
	struct user *body = &world.user[0];
	uint64_t inserts;

	loads_let_go();
	inserts = stop_cache();
	world.is_ending = true;
	world.stop_begun = true;
	caller_begin(&body->caller, "tw_cache_destroy");
	tw_cache_destroy(world.cache);
	caller_end(&body->caller);
	world.is_over = true;
	world.cache = NULL;
	loads_close();
	for (unsigned i = 0; i < USERS_MOST; i++)
		user_unpin_all(&world.user[i]);
	check_values(inserts);
}

void cache_world_run(void *argument)
{
	(void)argument;
	draw_world();
	sim_limit_time_step(world.interval / 4);
	if (open_cache()) {
		loads_open();
		run_users();
		loads_rest();
		if (sim_draw(2) == 0)
			user_flush(&world.user[0]);
		check_stats();
		close_cache();
	}
	tw_destroy(world.wheel);
	sim_pthread_exit(NULL);
}

void cache_world_describe(void)
{
	const struct tw_cache_options *options = &world.options;

	printf("   %s wheel, %s clock, interval %lld, %s, %d workers; %u shards, %s, max_entries "
	       "%llu, max_bytes %llu, idle %lld, negative_expire %lld, %s; %u users of %u calls\n",
	       world.wheel ? "a given" : "its own", world.is_manual ? "manual" : "real",
	       (long long)world.interval,
	       world.wheel_options.drive == TW_DRIVE_THREAD ? "owner thread" : "driven by callers",
	       world.wheel_options.workers, options->shards,
	       options->policy == TW_POLICY_LRU ? "LRU" : "S3-FIFO",
	       (unsigned long long)options->max_entries, (unsigned long long)options->max_bytes,
	       (long long)options->idle, (long long)options->negative_expire,
	       options->on_remove ? "on_remove" : "nobody is told", world.users, world.calls);
	loads_describe();
}

/* ---- When all sleep ---- */

void cache_world_idle(void *argument, int64_t now, int64_t next)
{
	/* So often a flush looks whether the wheel goes on. */
	tw_duration longest_look = 21 * TW_MILLISECOND;
	tw_duration slack = 2 * world.interval + 20 * TW_MILLISECOND + world.options.stale_if_error;

	(void)argument;
	if (!world.cache || world.sleeping > 0 || next - now <= WORLD_NAP)
		return;
	loads_check_idle();
	for (unsigned i = 0; i < USERS_MOST && next - now > longest_look; i++)
		if (world.user[i].caller.call)
			sim_fail("%s waits, and all sleep for %lld ns", world.user[i].caller.call,
				 (long long)(next - now));
	if (world.is_manual || !world.options.on_remove || world.wheel_is_stopped ||
	    world.is_ending || (world.wheel && world.wheel_options.drive == TW_DRIVE_CALLER))
		return;
	for (unsigned i = 0; i < world.values; i++) {
		const struct value *value = &values[i];

		if (value->fate == ACCEPTED && value->told == 0 && value->touches % 2 == 0 &&
		    time_add(value->high, slack) < next)
			sim_fail("value %u, of key %u, is past its deadline at %lld, and all "
				 "sleep until %lld",
				 i, value->key, (long long)value->high, (long long)next);
	}
}
