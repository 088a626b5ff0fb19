/* SPDX-License-Identifier: MIT */
/*
 * A cache with options drawn at random, and a few threads that use it. Of most keys one thread is
 * the only writer, and all read; so each write has a number, and a reader knows which values it may
 * find: none older than the last write that was over before it looked, none that was not begun. The
 * other keys are loaded by any thread, and deleted.
 *
 * The oracle: no value is handed out at or past its deadline, none that is older than it may be; a
 * key that must be there is found; a value is whole, as long as it is pinned; one load a key at a
 * time; each entry leaves once and is told of once; what was adopted is freed once, after its pins;
 * after the end nothing is left but what is pinned; a cache that is stopped answers so. When all
 * threads sleep, no call may be waiting for time to pass, and no entry may be past its deadline for
 * more than two ticks.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include <timingwheel/cache.h>

#include "base/clock.h"
#include "caller.h"

enum {
	USERS_MOST = 4,
	KEYS_A_USER = 3,
	LOADED_KEYS = 3,
	KEYS = USERS_MOST * KEYS_A_USER + LOADED_KEYS,
	FIRST_LOADED = USERS_MOST * KEYS_A_USER,
	VALUES_MOST = 2048,
	PINS_A_USER = 4,
	LONGEST = 1500,
	LOADER_ERROR = 200
};

enum fate { OFFERED, ACCEPTED, REFUSED };

/* What a value begins with; the rest is the number's last byte. */
struct content {
	uint32_t number;
	uint32_t key;
};

struct value {
	unsigned key;
	size_t size;
	enum fate fate;
	bool is_adopted;
	bool is_cleared;  /* by a call that is over */
	uint64_t write;   /* number of the write, of its key */
	uint64_t began;   /* when its load began, in events */
	uint64_t over;    /* when its set was over */
	uint64_t cleared; /* when the clear was over */
	uint64_t clears;  /* over before it was set */
	tw_duration low;  /* its deadline */
	tw_duration high;
	tw_duration life; /* of one that is loaded */
	unsigned touches;
	unsigned pins;
	unsigned told;
	unsigned freed;
	unsigned char memory[LONGEST]; /* of one that is adopted */
};

struct key {
	uint64_t writes_begun;
	uint64_t writes_over;  /* the number of the last that is */
	struct value *current; /* NULL: deleted, as far as its writer knows */
	bool is_loading;
	uint64_t delete_begun; /* of the last delete that is over */
};

struct user {
	struct caller caller;
	const struct tw_cache_entry *pins[PINS_A_USER];
	struct value *loaded; /* by the take that is under way */
};

static struct world {
	struct tw_cache *cache;
	struct tw_cache_options options;
	struct tw_wheel *wheel; /* NULL: the cache's own */
	struct tw_options wheel_options;
	tw_duration interval;
	tw_duration expire;
	bool is_manual;
	bool has_limits;
	bool writes_much;
	bool is_ending;
	bool stop_begun; /* of the cache, by tw_cache_stop */
	bool is_stopped; /* that has returned */
	bool wheel_is_stopped;
	bool in_listener;
	unsigned users;
	unsigned calls;
	unsigned sleeping; /* listeners and loaders */
	uint64_t events;
	uint64_t clears_begun;
	uint64_t clears_over;
	struct user user[USERS_MOST];
	struct key key[KEYS];
	unsigned values;
	struct value value[VALUES_MOST];
} world;

static tw_duration now_here(void)
{
	struct timespec now;

	if (world.wheel)
		return tw_now(world.wheel);
	/* The cache's own wheel has the system's clock. */
	sim_clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * TW_SECOND + now.tv_nsec;
}

static void check_stopped(bool was_stopped, const char *call, enum tw_status status)
{
	if (was_stopped && status != TW_CLOSED && status != TW_NO_MEMORY)
		sim_fail("%s: %s, and the cache is stopped", call, tw_status_name(status));
	if (status == TW_CLOSED && !world.stop_begun && !world.wheel_is_stopped)
		sim_fail("%s: TW_CLOSED, and nothing is stopped", call);
}

#define CALL(user, expression)                                                     \
	__extension__({                                                            \
		bool was_stopped = world.is_stopped;                               \
		enum tw_status answer = CALLER_CALLS(&(user)->caller, expression); \
		check_stopped(was_stopped, #expression, answer);                   \
		answer;                                                            \
	})

static void sleep_for(tw_duration most)
{
	struct timespec time = {.tv_nsec = draw_between(1, most)};

	world.sleeping++;
	sim_nanosleep(&time, NULL);
	world.sleeping--;
}

/* ---- Values ---- */

static size_t key_name(unsigned key, char *name)
{
	return (size_t)snprintf(name, 64, "key %u%s", key,
				key % 3 == 0 ? ", with a name that is a little longer" : "");
}

static struct value *value_new(unsigned key)
{
	struct value *value;
	struct content content;

	if (world.values == VALUES_MOST)
		return NULL;
	value = &world.value[world.values++];
	*value = (struct value){.key = key, .high = TW_FOREVER, .clears = world.clears_over};
	value->size = (size_t)DRAW_ONE_OF(sizeof(content), 20, 100, 300, LONGEST);
	content = (struct content){(uint32_t)(value - world.value), (uint32_t)key};
	memset(value->memory, (int)(content.number & 0xff), value->size);
	memcpy(value->memory, &content, sizeof(content));
	return value;
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
	value = &world.value[content.number];
	if (value->size != size)
		sim_fail("value %u has %zu bytes instead of %zu", content.number, size,
			 value->size);
	for (size_t i = 0; i < size - sizeof(content); i++)
		if (rest[i] != (content.number & 0xff))
			sim_fail("byte %zu of value %u has changed", i, content.number);
	return value;
}

static struct value *value_of_entry(const struct tw_cache_entry *entry)
{
	size_t size;
	size_t key_size;
	const void *bytes = tw_cache_entry_value(entry, &size);
	const void *key = tw_cache_entry_key(entry, &key_size);
	struct content content;
	char name[64];

	if (size < sizeof(content))
		sim_fail("an entry of %zu bytes", size);
	memcpy(&content, bytes, sizeof(content));
	if (content.key >= KEYS || key_name(content.key, name) != key_size ||
	    memcmp(name, key, key_size) != 0)
		sim_fail("an entry has another key than its value");
	return value_of_bytes(content.key, bytes, size);
}

static void free_value(void *memory, size_t size, void *context)
{
	struct value *value = context;

	(void)memory;
	(void)value_of_bytes(value->key, value->memory, size);
	if (++value->freed > 1)
		sim_fail("an adopted value is freed again");
	if (value->pins > 0)
		sim_fail("an adopted value is freed while it is pinned");
	memset(value->memory, 0xee, value->size);
}

static void on_remove(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	struct value *value = value_of_entry(entry);

	(void)context;
	if (world.in_listener)
		sim_fail("two calls of on_remove at a time");
	world.in_listener = true;
	if (value->fate == REFUSED || ++value->told > 1)
		sim_fail("on_remove is told of value %d, %s", (int)(value - world.value),
			 value->fate == REFUSED ? "which was refused" : "again");
	if (cause == TW_CAUSE_EXPIRED && world.options.idle == 0 && now_here() < value->low)
		sim_fail("expired before its deadline");
	/* No key is loaded while its value may be read, and nobody sets it. */
	if (cause == TW_CAUSE_REPLACED && world.options.idle == 0 && value->key >= FIRST_LOADED)
		sim_fail("a loaded value is replaced");
	if (cause == TW_CAUSE_SHUTDOWN && !world.is_ending)
		sim_fail("TW_CAUSE_SHUTDOWN before the end");
	if (cause == TW_CAUSE_SIZE && !world.has_limits)
		sim_fail("TW_CAUSE_SIZE without limits");
	if (sim_draw(10) == 0)
		sleep_for(3 * TW_MILLISECOND);
	(void)value_of_entry(entry);
	world.in_listener = false;
}

/* ---- Writing ---- */

static tw_duration draw_lifetime(void)
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

static void begin_write(struct key *key, struct value *value)
{
	value->write = ++key->writes_begun;
}

static void user_set(struct user *user, unsigned number)
{
	struct key *key = &world.key[number];
	struct value *value = value_new(number);
	tw_duration life = draw_lifetime();
	char name[64];
	size_t size = key_name(number, name);
	bool had = key->current != NULL;
	int kind = (int)sim_draw(6);
	enum tw_status status;

	if (!value)
		return;
	begin_write(key, value);
	if (kind == 0)
		life = world.expire;
	value->low = time_add(now_here(), life);
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
	sim_trace("  value %d of key %u", (int)(value - world.value), number);
	value->fate = status == TW_OK ? ACCEPTED : REFUSED;
	value->high = time_add(now_here(), life);
	value->over = ++world.events;
	if (status == TW_EXISTS && !had)
		sim_fail("tw_cache_add finds a key that is not there");
	if (value->fate == REFUSED && (value->told > 0 || value->freed > 0))
		sim_fail("a value that was refused is told of or freed");
	if (value->fate == REFUSED)
		return;
	key->writes_over = value->write;
	key->current = value;
}

static void user_delete(struct user *user, unsigned number)
{
	struct key *key = &world.key[number];
	uint64_t began = ++world.events;
	char name[64];
	size_t size = key_name(number, name);
	bool is_own = number < FIRST_LOADED;
	uint64_t write = 0;
	enum tw_status status;

	if (is_own)
		write = ++key->writes_begun;
	status = CALL(user, tw_cache_delete(world.cache, name, size));
	if (status != TW_OK && status != TW_NOT_FOUND)
		return;
	if (began > key->delete_begun)
		key->delete_begun = began;
	if (!is_own)
		return;
	if (status == TW_OK && !key->current)
		sim_fail("a key that is not there is deleted");
	key->writes_over = write;
	key->current = NULL;
}

static void user_touch(struct user *user, unsigned number)
{
	struct value *value = world.key[number].current;
	tw_duration life = draw_lifetime();
	char name[64];
	size_t size = key_name(number, name);
	tw_duration low = time_add(now_here(), life);

	if (value) {
		value->touches++;
		value->low = low < value->low ? low : value->low;
	}
	if (CALL(user, tw_cache_touch(world.cache, name, size, life)) != TW_OK || !value) {
		if (value)
			value->touches++;
		return;
	}
	value->high = time_add(now_here(), life);
	value->low = low;
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
	for (unsigned i = 0; i < world.values; i++) {
		struct value *value = &world.value[i];

		if (value->fate != ACCEPTED || value->is_cleared || value->over == 0 ||
		    value->over > began)
			continue;
		value->is_cleared = true;
		value->cleared = ++world.events;
	}
}

/* ---- Reading ---- */

/* What a reader knows before it looks. */
struct look {
	unsigned key;
	uint64_t event;
	uint64_t writes_over;
	uint64_t writes_begun;
	struct value *current;
	uint64_t touches; /* of that */
	tw_duration now;
};

static struct look look_begin(unsigned number)
{
	const struct key *key = &world.key[number];
	struct look look = {.key = number,
			    .event = ++world.events,
			    .writes_over = key->writes_over,
			    .writes_begun = key->writes_begun,
			    .current = key->current,
			    .now = now_here()};

	look.touches = look.current ? look.current->touches : 0;
	return look;
}

static void check_found(const struct look *look, const struct value *value)
{
	const struct key *key = &world.key[look->key];
	int number = (int)(value - world.value);

	if (value->fate == REFUSED)
		sim_fail("value %d is found, which was refused", number);
	if (value->write < look->writes_over || value->write > key->writes_begun)
		sim_fail("value %d is found, of write %llu; %llu were over", number,
			 (unsigned long long)value->write, (unsigned long long)look->writes_over);
	if (value->is_cleared && value->cleared < look->event)
		sim_fail("value %d is found after a clear", number);
	if (value != look->current || value->touches != look->touches)
		return;
	if (value->high <= look->now)
		sim_fail("value %d is found at %lld, past its deadline %lld", number,
			 (long long)look->now, (long long)value->high);
}

static void check_not_found(const struct look *look)
{
	const struct key *key = &world.key[look->key];
	const struct value *value = look->current;

	if (world.has_limits || world.options.idle > 0 || !value ||
	    key->writes_begun != look->writes_begun || look->writes_begun != look->writes_over ||
	    value->touches != look->touches || value->touches % 2 != 0 ||
	    value->clears != world.clears_begun || value->low <= now_here())
		return;
	sim_fail("value %d, of key %u, is not found", (int)(value - world.value), look->key);
}

static void user_get(struct user *user, unsigned number)
{
	unsigned char buffer[LONGEST];
	struct look look = look_begin(number);
	char name[64];
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

static void user_pin(struct user *user, const struct tw_cache_entry *entry)
{
	unsigned place = (unsigned)sim_draw(PINS_A_USER);

	value_of_entry(entry)->pins++;
	user_unpin(user, place);
	user->pins[place] = entry;
}

static void user_acquire(struct user *user, unsigned number)
{
	struct look look = look_begin(number);
	const struct tw_cache_entry *entry;
	char name[64];
	size_t size = key_name(number, name);
	enum tw_status status = CALL(user, tw_cache_acquire(world.cache, name, size, &entry));

	if (status == TW_OK) {
		check_found(&look, value_of_entry(entry));
		user_pin(user, entry);
	} else if (status == TW_NOT_FOUND) {
		check_not_found(&look);
	}
}

/* ---- Loading ---- */

/* The thread is cancelled in its loader, in its sleep. */
static void abandon(void *argument)
{
	struct value *value = argument;

	world.key[value->key].is_loading = false;
	world.sleeping--;
	value->fate = REFUSED;
	/* The library's handlers run as in a call. */
	sim_call_begin();
}

static enum tw_status load(void *argument, const void *key_bytes, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct user *user = argument;
	struct value *value;
	struct key *key;
	unsigned number = FIRST_LOADED;
	char name[64];
	enum tw_status status;
	tw_duration life = draw_lifetime();

	while (key_name(number, name) != key_size || memcmp(name, key_bytes, key_size) != 0)
		number++;
	key = &world.key[number];
	if (key->is_loading)
		sim_fail("two loads of a key at a time");
	value = value_new(number);
	if (!value)
		return (enum tw_status)LOADER_ERROR;
	key->is_loading = true;
	value->began = ++world.events;
	if (sim_draw(3) == 0) {
		struct sim_cleanup cleanup;

		/* The loader is the program's own: there it may be cancelled. */
		caller_end(&user->caller);
		sim_cleanup_push(&cleanup, abandon, value);
		sleep_for(3 * TW_MILLISECOND);
		sim_cleanup_pop(&cleanup, 0);
		caller_begin(&user->caller, "tw_cache_take");
	}
	key->is_loading = false;
	if (sim_draw(5) == 0) {
		value->fate = REFUSED;
		return sim_draw(2) == 0 ? TW_NOT_FOUND : (enum tw_status)LOADER_ERROR;
	}
	value->is_adopted = sim_draw(2) == 0;
	/* Its lifetime counts from the loader's end, at some time before the take's. */
	value->life = life;
	value->low = time_add(now_here(), life);
	user->loaded = value;
	if (value->is_adopted)
		status = tw_cache_load_adopt(loading, value->memory, value->size, 0, free_value,
					     value, life);
	else
		status = tw_cache_load_copy(loading, value->memory, value->size, life);
	/* Accepted or not: it may be given out and not kept. */
	value->is_adopted &= status == TW_OK;
	value->fate = status == TW_OK ? OFFERED : REFUSED;
	return status;
}

static void user_take(struct user *user, unsigned number)
{
	uint64_t deleted = world.key[number].delete_begun;
	uint64_t event = ++world.events;
	const struct tw_cache_entry *entry;
	struct value *value;
	char name[64];
	size_t size = key_name(number, name);
	tw_duration wait = DRAW_ONE_OF(0, TW_MILLISECOND, TW_FOREVER, TW_FOREVER);
	tw_duration now = now_here();
	enum tw_status status;

	user->loaded = NULL;
	status = CALL(user, tw_cache_take(world.cache, name, size, load, user, wait, &entry));
	if (user->loaded)
		user->loaded->high = time_add(now_here(), user->loaded->life);
	if (status != TW_OK) {
		if (entry)
			sim_fail("a take that fails leaves an entry");
		return;
	}
	value = value_of_entry(entry);
	if (value->began < deleted)
		sim_fail("a take is given what was loaded before a delete that was over");
	if (value->is_cleared && value->cleared < event)
		sim_fail("a take is given what was cleared");
	if (value->high <= now)
		sim_fail("a take at %lld is given value %d, past its deadline %lld", (long long)now,
			 (int)(value - world.value), (long long)value->high);
	user_pin(user, entry);
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
	unsigned any = (unsigned)sim_draw(FIRST_LOADED);
	unsigned loaded = FIRST_LOADED + (unsigned)sim_draw(LOADED_KEYS);
	struct tw_cache_stats stats;
	/* Where it writes much, memory is used again soon. */
	uint64_t command = sim_draw(world.writes_much ? 48 : 24);

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
		user_take(user, loaded);
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

/* Of a wheel that the program has no timers on. */
static void execute(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	sim_fail("a timer of the cache reaches the wheel's own function");
}

static bool may_fail(void)
{
	return sim_plan_here()->memory_failures > 0 || sim_plan_here()->thread_failures > 0;
}

static bool open_cache(void)
{
	enum tw_status status = TW_OK;

	if (sim_draw(4) != 0) {
		status = tw_create(&world.wheel, world.interval, 4, NULL, NULL);
		if (status != TW_INVALID)
			sim_fail("a wheel without execute: %s", tw_status_name(status));
		status = tw_create(&world.wheel, world.interval, 4, execute, &world.wheel_options);
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
		(void)sim_pthread_cancel(world.user[0].caller.thread);
	}
	if (sim_draw(12) == 0) {
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
}

static void close_cache(void)
{
	struct user *body = &world.user[0];

	world.is_ending = true;
	caller_begin(&body->caller, "tw_cache_destroy");
	tw_cache_destroy(world.cache);
	caller_end(&body->caller);
	world.cache = NULL;
	for (unsigned i = 0; i < USERS_MOST; i++)
		for (unsigned j = 0; j < PINS_A_USER; j++)
			user_unpin(&world.user[i], j);
	for (unsigned i = 0; i < world.values; i++) {
		const struct value *value = &world.value[i];

		if (value->fate == ACCEPTED && world.options.on_remove && value->told != 1)
			sim_fail("on_remove was told %u times of value %u, of key %u", value->told,
				 i, value->key);
		if (value->fate != REFUSED && value->is_adopted && value->freed != 1)
			sim_fail("adopted value %u was freed %u times", i, value->freed);
	}
}

void cache_world_run(void *argument)
{
	(void)argument;
	draw_world();
	sim_limit_time_step(world.interval / 4);
	if (open_cache()) {
		run_users();
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
}

/* ---- When all sleep ---- */

void cache_world_idle(void *argument, int64_t now, int64_t next)
{
	/* So often a flush looks whether the wheel goes on. */
	tw_duration longest_look = 21 * TW_MILLISECOND;
	tw_duration slack = 2 * world.interval + 20 * TW_MILLISECOND;

	(void)argument;
	if (!world.cache || world.sleeping > 0 || next - now <= WORLD_NAP)
		return;
	for (unsigned i = 0; i < USERS_MOST && next - now > longest_look; i++)
		if (world.user[i].caller.call)
			sim_fail("%s waits, and all sleep for %lld ns", world.user[i].caller.call,
				 (long long)(next - now));
	if (world.is_manual || !world.options.on_remove || world.wheel_is_stopped ||
	    world.is_ending || (world.wheel && world.wheel_options.drive == TW_DRIVE_CALLER))
		return;
	for (unsigned i = 0; i < world.values; i++) {
		const struct value *value = &world.value[i];

		if (value->fate == ACCEPTED && value->told == 0 && value->touches % 2 == 0 &&
		    time_add(value->high, slack) < next)
			sim_fail("value %u, of key %u, is past its deadline at %lld, and all "
				 "sleep until %lld",
				 i, value->key, (long long)value->high, (long long)next);
	}
}
