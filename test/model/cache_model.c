/* SPDX-License-Identifier: MIT */
/*
 * The model counts events. Each call, change, load and removal has the events of its begin and its
 * end, and what is known of a key follows from their order. A value's place is reused when all
 * calls are over that ran when the value left.
 */
#include "cache_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* A value begins with this content; the rest is the number's last byte. */
struct content {
	uint64_t number;
	uint32_t place;
	uint32_t key;
};

/* This precedes any access here, for other threads may run meanwhile. */
static void read_clock(struct cache_model *model)
{
	model->now = host_now(model);
}

static _Noreturn void fail_of(const struct cache_value *value, const char *what)
{
	host_fail("value %llu of key %u, until %lld or %lld, %s; it is %lld",
		  (unsigned long long)value->number, value->key, (long long)value->deadline.low,
		  (long long)value->deadline.high, what, (long long)value->model->now);
}

/* ---- Values ---- */

size_t cache_key_name(unsigned key, char *name)
{
	return (size_t)snprintf(name, CACHE_NAME_SIZE, "%u%s", key,
				key % 3 == 0 ? ", a key with a name that is a little longer" : "");
}

uint64_t cache_model_weigh(void *context, const void *key, size_t key_size, const void *value,
			   size_t value_size)
{
	return key_size + value_size;
}

static size_t draw_size(void)
{
	static const unsigned some[] = {sizeof(struct content), 20, 100, 300, CACHE_SIZE_MOST};

	if (host_draw(2) == 0)
		return some[host_draw(sizeof(some) / sizeof(some[0]))];
	return (size_t)draw_from(sizeof(struct content), 600);
}

/* Returns the end of a life that begins now; an end too far ahead is never. */
static tw_duration deadline_after(tw_duration now, tw_duration life)
{
	return life > TW_FOREVER - 2 ? TW_FOREVER : time_add(now, life);
}

/* Restarts the idle time, whose end is exact for one thread alone. */
static void value_start_idle(struct cache_value *value)
{
	const struct cache_model *model = value->model;
	tw_duration idle_end = time_add(model->now, model->options.idle);

	value->deadline = value->end;
	if (!model->options.idle)
		return;
	if (idle_end < value->deadline.low)
		value->deadline.low = idle_end;
	if (model->is_alone && idle_end < value->deadline.high)
		value->deadline.high = idle_end;
}

/* Notes that its set or load is over, or about to be. */
static void value_is_over(struct cache_value *value)
{
	value->end.high = deadline_after(value->model->now, value->life);
	value_start_idle(value);
	if (value->over == 0)
		value->over = ++value->model->events;
}

struct cache_value *cache_value_new(struct cache_model *model, unsigned number, tw_duration life)
{
	const struct cache_key *key = &model->keys[number];
	struct cache_value *value;
	struct content content;
	char name[CACHE_NAME_SIZE];

	read_clock(model);
	value = model->free_values;
	if (value)
		model->free_values = value->next;
	else if (model->placed < model->value_count)
		value = &model->values[model->placed++];
	else
		return NULL;
	memset(value, 0, offsetof(struct cache_value, bytes));
	value->model = model;
	value->number = ++model->numbers;
	value->key = number;
	value->size = draw_size();
	value->puts = key->puts_over;
	value->deletes = key->deletes_over;
	value->touches = key->touches_over;
	value->weight = cache_key_name(number, name) + value->size;
	content = (struct content){value->number, (uint32_t)(value - model->values), number};
	memset(value->bytes, (int)(value->number & 0xff), value->size);
	memcpy(value->bytes, &content, sizeof(content));
	value->life = life > 0 ? life : model->expire;
	value->end = (struct span){deadline_after(model->now, value->life), TW_FOREVER};
	value_start_idle(value);
	return value;
}

struct cache_value *cache_value_of(struct cache_model *model, unsigned key, const void *bytes,
				   size_t size)
{
	struct content content;
	struct cache_value *value;
	const unsigned char *rest = (const unsigned char *)bytes + sizeof(content);
	size_t rest_size = size - sizeof(content);
	unsigned char filling;

	if (size < sizeof(content))
		host_fail("a value of %zu bytes", size);
	memcpy(&content, bytes, sizeof(content));
	filling = (unsigned char)content.number;
	if (content.key != key || content.place >= model->value_count)
		host_fail("what is found under key %u is no value of it", key);
	value = &model->values[content.place];
	if (value->number != content.number || value->key != key)
		host_fail("value %llu of key %u is found, but has left and has no pins",
			  (unsigned long long)content.number, key);
	if (value->size != size)
		fail_of(value, "has another size");
	/* Each byte equals the one before it. */
	if (rest_size > 0 && (rest[0] != filling || memcmp(rest, rest + 1, rest_size - 1) != 0))
		host_fail("a value of key %u has changed", key);
	return value;
}

struct cache_value *cache_value_of_entry(struct cache_model *model,
					 const struct tw_cache_entry *entry)
{
	size_t size;
	size_t key_size;
	const void *bytes = tw_cache_entry_value(entry, &size);
	const void *key = tw_cache_entry_key(entry, &key_size);
	struct content content;
	char name[CACHE_NAME_SIZE];

	if (size < sizeof(content))
		host_fail("an entry of %zu bytes", size);
	memcpy(&content, bytes, sizeof(content));
	if (content.key >= model->key_count || cache_key_name(content.key, name) != key_size ||
	    memcmp(name, key, key_size) != 0)
		host_fail("an entry has another key than its value");
	return cache_value_of(model, content.key, bytes, size);
}

void cache_value_retire(struct cache_value *value)
{
	struct cache_model *model = value->model;
	struct cache_key *key = &model->keys[value->key];
	bool is_done = value->reported > 0 || value->fate == CACHE_REFUSED ||
		       (value->fate == CACHE_DROPPED && value->over > 0);

	if (!is_done || value->pins > 0 || value->is_lent || value->is_retired ||
	    value->fate == CACHE_OFFERED || (key->current == value && key->open > 0))
		return;
	if (key->current == value)
		key->current = NULL;
	value->is_retired = true;
	value->next = model->retired[model->epoch % 2];
	model->retired[model->epoch % 2] = value;
}

void cache_value_settle(struct cache_value *value, bool is_accepted)
{
	value->is_lent = value->is_adopted && is_accepted && !value->is_freed;
	if (!is_accepted && value->is_freed)
		fail_of(value, "is adopted, and freed, and was refused");
	if (!is_accepted)
		value->fate = CACHE_REFUSED;
}

void cache_value_free(void *memory, size_t size, void *context)
{
	struct cache_value *value = context;

	host_leave(NULL);
	if (memory != value->bytes || size != value->size || value->is_freed)
		fail_of(value, "is adopted, and freed again, or another");
	(void)cache_value_of(value->model, value->key, memory, size);
	if (value->fate == CACHE_REFUSED || value->pins > 0)
		fail_of(value, "is adopted, and freed, though refused or pinned");
	memset(memory, 0xee, size);
	value->is_freed = true;
	value->is_lent = false;
	cache_value_retire(value);
	host_enter(NULL, NULL);
}

unsigned cache_model_begin(struct cache_model *model)
{
	model->in_epoch[model->epoch % 2]++;
	return model->epoch;
}

void cache_model_end(struct cache_model *model, unsigned epoch)
{
	unsigned before = (model->epoch + 1) % 2;
	struct cache_value *value;

	model->in_epoch[epoch % 2]--;
	if (model->in_epoch[before] > 0)
		return;
	while ((value = model->retired[before])) {
		model->retired[before] = value->next;
		value->is_retired = false;
		/* A value pinned meanwhile is retired when it is released. */
		if (value->pins > 0)
			continue;
		value->number = 0;
		value->next = model->free_values;
		model->free_values = value;
	}
	model->epoch++;
}

/* Returns whether entries stand for absences, or for failures of loads. */
static bool keeps_absences(const struct tw_cache_options *options)
{
	return options->negative_expire > 0 || options->retry_after > 0;
}

/* ---- Knowledge of a key ---- */

static bool key_is_known(const struct cache_key *key)
{
	return key->is_known && key->loaded <= key->since;
}

bool cache_key_is_known(const struct cache_model *model, unsigned key)
{
	return key_is_known(&model->keys[key]);
}

/* Returns whether its deadline is between the model's two. */
static bool deadline_is_known(const struct cache_value *value)
{
	const struct cache_model *model = value->model;

	return value->touches == model->keys[value->key].touches_begun &&
	       (model->is_alone || model->options.idle == 0);
}

bool cache_value_is_too_heavy(const struct cache_value *value)
{
	uint64_t most = value->model->options.max_bytes;

	return most > 0 && value->weight > most;
}

/* Notes a use, by one thread alone. */
static void value_use(struct cache_value *value)
{
	if (value->model->is_alone)
		value_start_idle(value);
}

static void value_come_in(struct cache_value *value)
{
	value->fate = CACHE_ACCEPTED;
	value_use(value);
}

/* ---- Removals ---- */

static void check_leaves(const struct cache_value *value, enum tw_cache_cause cause)
{
	const struct cache_model *model = value->model;
	bool made_room = cause == TW_CAUSE_SIZE && model->has_limits &&
			 (!model->is_alone || model->has_guest);

	if (!(value->leaves >> cause & 1) && !made_room && cause != TW_CAUSE_SHUTDOWN)
		fail_of(value, "leaves for another cause than it was removed for");
}

/* Notes that a call which overlapped no other has removed the value. */
static void value_leave(struct cache_value *value, enum tw_cache_cause cause, uint64_t began,
			tw_duration now)
{
	struct cache_model *model = value->model;
	bool is_known = deadline_is_known(value);

	if (value->reported > 0 && value->reported < began)
		return;
	if (!is_known || value->deadline.low <= model->now)
		value->leaves |= 1u << TW_CAUSE_EXPIRED;
	if (!is_known || value->deadline.high > now)
		value->leaves |= 1u << cause;
	value->left = ++model->events;
	if (value->reported > 0)
		check_leaves(value, value->cause);
}

/* Returns whether a loaded value may be one that is not kept. */
static bool may_refuse_loads(const struct cache_model *model)
{
	return model->has_limits || host_refusals() > 0;
}

/* Checks the cause of a removal that no call is known to have made. */
static void check_cause(const struct cache_value *value, enum tw_cache_cause cause)
{
	const struct cache_model *model = value->model;
	const struct cache_key *key = &model->keys[value->key];
	bool is_early = deadline_is_known(value) && model->now < value->deadline.low;
	bool is_reloaded = model->options.refresh_after > 0 && key->loaded > value->began;
	bool may_be = !model->is_alone;

	switch (cause) {
	case TW_CAUSE_EXPLICIT:
		may_be &= key->deletes_begun > value->deletes ||
			  (is_reloaded && (key->absences > 0 || may_refuse_loads(model)));
		break;
	case TW_CAUSE_REPLACED:
		may_be &= key->puts_begun - !value->is_loaded > value->puts || is_reloaded;
		break;
	case TW_CAUSE_SIZE:
		may_be = model->has_limits && (may_be || is_early);
		break;
	case TW_CAUSE_EXPIRED:
		may_be = !is_early;
		break;
	case TW_CAUSE_SHUTDOWN:
		may_be = model->is_ending;
	}
	if (!may_be)
		fail_of(value, "leaves for a cause that there was not");
}

/* Counts a value that one thread alone saw leave without a call that removes. */
static void count_eviction(struct cache_model *model, const struct cache_value *value)
{
	tw_duration late = time_add(value->deadline.low, model->options.stale_if_error);

	/* Past its deadline it has to make room, too, unless a load has outgrown it. */
	model->evicted +=
		!model->is_ending && model->now < late && !model->keys[value->key].is_outgrown;
	if (value->weight > model->heaviest)
		model->heaviest = value->weight;
}

void cache_model_on_remove(void *context, const struct tw_cache_entry *entry,
			   enum tw_cache_cause cause)
{
	struct cache_model *model = context;
	struct cache_value *value;

	host_leave(NULL);
	read_clock(model);
	value = cache_value_of_entry(model, entry);
	host_trace("  value %llu of key %u leaves with cause %d", (unsigned long long)value->number,
		   value->key, cause);
	if (model->in_listener)
		host_fail("two calls of on_remove at a time");
	if (value->fate == CACHE_REFUSED || value->fate == CACHE_DROPPED || value->reported > 0)
		fail_of(value, "is reported again, or was not accepted");
	if (value->leaves)
		check_leaves(value, cause);
	else
		check_cause(value, cause);
	if (model->is_alone && !value->leaves)
		count_eviction(model, value);
	model->in_listener = true;
	model->reported++;
	model->removed[cause]++;
	value->reported = ++model->events;
	value->cause = cause;
	model->inserts += value->fate == CACHE_OFFERED && value->is_loaded;
	if (value->is_loaded)
		value->fate = CACHE_ACCEPTED;
	value->pins++;
	host_pause(model);
	(void)cache_value_of_entry(model, entry);
	value->pins--;
	model->in_listener = false;
	cache_value_retire(value);
	host_enter(NULL, NULL);
}

/* Returns whether the key has changed since a load whose value may not have been kept. */
static bool load_is_gone(const struct cache_value *value)
{
	return value->is_loaded && value->fate == CACHE_OFFERED && value->over > 0 &&
	       value->over < value->model->keys[value->key].gone;
}

uint64_t cache_flush_begin(struct cache_model *model)
{
	uint64_t event = ++model->events;

	for (unsigned i = 0; i < model->placed; i++)
		if (model->values[i].left == 0 && load_is_gone(&model->values[i]))
			model->values[i].left = event;
	return event;
}

void cache_flush_end(struct cache_model *model, uint64_t event)
{
	for (unsigned i = 0; model->options.on_remove && i < model->placed; i++) {
		struct cache_value *value = &model->values[i];

		if (value->number == 0 || value->reported > 0 || value->left == 0 ||
		    value->left > event)
			continue;
		if (value->fate == CACHE_ACCEPTED)
			fail_of(value, "was removed before a flush, and is not reported");
		/* It was not kept, and is not reported. */
		value->fate = CACHE_ACCEPTED;
		value->reported = ++model->events;
		cache_value_retire(value);
	}
}

/* ---- Calls ---- */

static bool is_change(const struct key_call *call)
{
	return call->kind >= CALL_TOUCH;
}

struct key_call key_call_begin(struct cache_client *client, enum key_call_kind kind,
			       unsigned number, struct cache_value *value, tw_duration life)
{
	struct cache_model *model = client->model;
	struct cache_key *key = &model->keys[number];
	struct key_call call = {
		.model = model, .kind = kind, .key = number, .value = value, .life = life};

	call.size = cache_key_name(number, call.name);
	read_clock(model);
	call.then = *key;
	call.number = key->current ? key->current->number : 0;
	call.began = ++model->events;
	call.inserts = model->inserts;
	call.now = model->now;
	if (!is_change(&call))
		return call;
	if (key->open++ == 0) {
		key->opener = client;
	} else if (key->opener != client) {
		key->opener = NULL;
		key->overlaps++;
	}
	key->changes++;
	key->touches_begun += kind == CALL_TOUCH;
	key->deletes_begun += kind == CALL_DELETE || kind == CALL_CLEAR;
	key->puts_begun += value != NULL;
	if (value)
		value->began = call.began;
	return call;
}

/* Returns whether the key was known, and only this call has changed it. `*had` is its value, which
 * may be past its deadline, or NULL. */
static bool call_knows(const struct key_call *call, struct cache_value **value)
{
	const struct cache_key *key = &call->model->keys[call->key];
	bool is_alone = is_change(call) ? key->overlaps == call->then.overlaps
					: call->then.open == 0 && key_is_known(&call->then) &&
						  key->since == call->then.since &&
						  key->changes == call->then.changes;
	/* Its value's removal may have been reported in the call. */
	bool has_left = !key->current && call->number > 0 && key->since == call->then.since;
	bool is_known = is_alone && key_is_known(key) && !has_left;

	*value = is_known ? key->current : NULL;
	return is_known;
}

bool key_call_is_settled(const struct key_call *call)
{
	struct cache_value *value;

	return call_knows(call, &value);
}

static bool must_be_there(const struct cache_value *value)
{
	const struct cache_model *model = value ? value->model : NULL;

	return value && value->reported == 0 && (model->is_alone || !model->has_limits) &&
	       deadline_is_known(value) && value->deadline.low > model->now;
}

static bool cannot_be_there(const struct key_call *call, const struct cache_value *value)
{
	return !value || (value->reported > 0 && value->reported < call->began) ||
	       (deadline_is_known(value) && value->deadline.high <= call->now);
}

void key_call_check_known(const struct key_call *call, const struct cache_value *value)
{
	const struct cache_key *then = &call->then;
	struct cache_value *known;

	if (value->key != call->key)
		fail_of(value, "is found under another key");
	if (value->fate == CACHE_REFUSED || value->fate == CACHE_DROPPED)
		fail_of(value, "is found, and was not accepted");
	if (value->is_loaded && value->began < then->gone)
		fail_of(value, "is found, and its load began before a change that was over");
	if (value->over > 0 && value->over < then->gone)
		fail_of(value, "is found after a change that was over");
	if (value->over > 0 && value->over < then->seen)
		fail_of(value, "is found after one that came later");
	if (value->reported > 0 && value->reported < call->began)
		fail_of(value, "is found after its removal was reported");
	if (call_knows(call, &known) && value != known && value->number != call->number)
		fail_of(value, "is found, and is not the last one");
}

/* By a lookup one thread alone learns whether a load without memory was kept. */
static void key_learn(struct cache_key *key, struct cache_value *found, uint64_t event)
{
	if (found && found->fate == CACHE_OFFERED) {
		found->fate = CACHE_ACCEPTED;
		found->model->inserts++;
	}
	key->current = found;
	key->is_known = true;
	key->since = event;
}

void key_call_see(struct key_call *call, struct cache_value *found)
{
	struct cache_key *key = &call->model->keys[call->key];
	struct cache_value *known;

	read_clock(call->model);
	if (!found) {
		if (call_knows(call, &known) && must_be_there(known))
			fail_of(known, "is not found");
		return;
	}
	key_call_check_known(call, found);
	if (deadline_is_known(found) && found->deadline.high <= call->now)
		fail_of(found, "is found past its deadline");
	if (found->over == 0)
		found->over = ++call->model->events;
	if (found->began > key->seen)
		key->seen = found->began;
}

bool key_call_met_touch(const struct key_call *call)
{
	return call->model->keys[call->key].touches_begun > call->then.touches_over;
}

void key_call_check_deadline(struct key_call *call, tw_duration deadline)
{
	struct cache_value *value;

	if (deadline <= call->now && !key_call_met_touch(call))
		host_fail("key %u is found past its deadline", call->key);
	if (call_knows(call, &value) && value && deadline_is_known(value) &&
	    (deadline < value->deadline.low || deadline > value->deadline.high))
		fail_of(value, "has another deadline");
}

void key_call_count(struct key_call *call, bool is_hit, struct cache_value *found)
{
	struct cache_model *model = call->model;

	model->asked++;
	model->hits += is_hit;
	model->absences += !is_hit && call->then.absent_until > call->now;
	if (found)
		value_use(found);
}

/* Checks an answer; `old` is the key's value if it `was_known`. */
static void check_status(const struct key_call *call, enum tw_status status, bool was_known,
			 const struct cache_value *old)
{
	const struct cache_model *model = call->model;
	enum key_call_kind kind = call->kind;
	bool must_be = was_known && must_be_there(old);
	bool cannot_be = was_known && cannot_be_there(call, old);
	bool is_full = call->value && cache_value_is_too_heavy(call->value);
	bool is_reported = kind != CALL_SET && kind != CALL_CLEAR && kind != CALL_ADD;
	bool may_be = true;

	switch (status) {
	case TW_OK:
		may_be = !(kind == CALL_ADD && must_be) && !(is_reported && cannot_be) &&
			 !(model->is_alone && is_full);
		break;
	case TW_EXISTS:
		may_be = kind == CALL_ADD && !cannot_be;
		break;
	case TW_TRUNCATED:
		may_be = kind == CALL_LOOK && !cannot_be;
		break;
	case TW_NOT_FOUND:
		may_be = is_reported && !must_be;
		break;
	case TW_FULL:
		may_be = call->value && (model->is_alone ? is_full : model->has_limits);
		break;
	case TW_NO_MEMORY:
	case TW_CLOSED:
		break;
	default:
		may_be = false;
	}
	if (!may_be && old)
		fail_of(old, tw_status_name(status));
	if (!may_be)
		host_fail("a call for key %u, of kind %d, is answered %s", call->key, kind,
			  tw_status_name(status));
}

/* Accepts the value that a call has set, or refuses it. */
static void end_put(struct key_call *call, bool is_done)
{
	struct cache_value *value = call->value;

	if (!is_done && value->reported > 0)
		fail_of(value, "is reported, but was refused");
	value_is_over(value);
	cache_value_settle(value, is_done);
	call->model->inserts += is_done;
	if (is_done)
		value_come_in(value);
}

/* Gives the key another value from now on, or none; it is known if `is_known`. */
static void key_turn(struct cache_key *key, struct cache_value *old, struct cache_value *value,
		     bool is_known, uint64_t began, tw_duration now)
{
	if (old)
		value_leave(old, value ? TW_CAUSE_REPLACED : TW_CAUSE_EXPLICIT, began, now);
	key->current = is_known ? value : NULL;
	key->is_known = is_known;
	key->since = began;
	key->absent_until = 0;
}

void key_call_end(struct key_call *call, enum tw_status status, struct cache_value *found)
{
	struct cache_model *model = call->model;
	struct cache_key *key = &model->keys[call->key];
	struct cache_value *value = call->value;
	struct cache_value *old;
	bool is_touch = call->kind == CALL_TOUCH;
	bool is_done = status == TW_OK || (status == TW_NOT_FOUND && call->kind == CALL_DELETE);
	bool is_known;

	host_trace("  key %u, kind %d, value %llu: %s", call->key, call->kind,
		   (unsigned long long)(value ? value->number : 0), tw_status_name(status));
	if (found)
		key_call_see(call, found);
	read_clock(model);
	is_known = call_knows(call, &old);
	if (model->is_alone && !is_known && (call->kind == CALL_LOOK || call->kind == CALL_PEEK) &&
	    (status == TW_OK || status == TW_NOT_FOUND))
		key_learn(key, found, call->began);
	/* Earlier knowledge of the deadline is valid up to here. */
	if (is_touch && old && old->touches + 1 == key->touches_begun)
		old->touches++;
	check_status(call, status, is_known, old);
	if (call->kind == CALL_LOOK && status != TW_NO_MEMORY && status != TW_CLOSED)
		key_call_count(call, status != TW_NOT_FOUND, status == TW_TRUNCATED ? old : found);
	if (!is_change(call))
		return;
	/* A change that fails alone has changed nothing. */
	key->changes -= key->overlaps == call->then.overlaps && !is_done;
	key->open--;
	key->puts_over += value != NULL;
	key->deletes_over += !value && !is_touch;
	key->touches_over += is_touch;
	if (value)
		end_put(call, is_done);
	if (is_touch && old && is_done) {
		old->end = (struct span){deadline_after(call->now, call->life),
					 deadline_after(model->now, call->life)};
		old->touches = key->touches_begun;
		value_start_idle(old);
		value_use(old);
	}
	if (!is_touch && is_done) {
		if (call->began > key->gone)
			key->gone = call->began;
		key_turn(key, old, value, key->overlaps == call->then.overlaps, call->began,
			 call->now);
	}
	if (value)
		cache_value_retire(value);
	if (old && old != value)
		cache_value_retire(old);
}

/* ---- Loads ---- */

bool key_call_has_stale(struct key_call *call)
{
	struct cache_model *model = call->model;
	struct cache_value *value;

	return model->is_alone && call_knows(call, &value) && value && value->reported == 0 &&
	       model->inserts == call->inserts &&
	       time_add(value->deadline.low, model->options.stale_if_error) > model->now;
}

/* Returns whether the load's end is certain to change the key: no change has come since its take
 * began. The cache's own loads may have been queued before that. */
static bool load_is_kept(const struct cache_model *model, const struct cache_load *load)
{
	const struct cache_key *key = &model->keys[load->key];

	if (load->take.began == 0 || load->take.then.open > 0 ||
	    (model->options.load && !model->is_alone) || key->changes != load->take.then.changes ||
	    key->loaded != load->began || model->stop_begun || load->refused != host_refusals())
		return false;
	return load->outcome == CACHE_ABSENT || model->is_alone ||
	       (!model->has_limits && load->given->deadline.low > model->now);
}

void cache_load_settle(struct cache_model *model, const struct cache_load *load)
{
	const struct cache_key *then = &load->take.then;
	struct cache_key *key = &model->keys[load->key];
	struct cache_value *value = load->outcome == CACHE_LOADED ? load->given : NULL;
	struct cache_value *old =
		key_is_known(then) && then->since == key->since ? key->current : NULL;

	read_clock(model);
	if (value)
		value_is_over(value);
	if (load->outcome == CACHE_FAILED || !load_is_kept(model, load))
		return;
	if (value && model->is_alone && cache_value_is_too_heavy(value)) {
		key->since = load->began;
		return;
	}
	key_turn(key, old, value, true, load->began, load->take.now);
	model->inserts += value || model->options.negative_expire > 0;
	if (value)
		value_come_in(value);
	else if (model->options.negative_expire > 0)
		key->absent_until = time_add(model->now, model->options.negative_expire);
	if (old)
		cache_value_retire(old);
}

/* ---- One thread alone ---- */

/* Checks that evictions were necessary: with the last value evicted there was too much. */
static void check_evictions(const struct cache_model *model, uint64_t count, uint64_t weight)
{
	const struct tw_cache_options *options = &model->options;

	if (!(options->max_entries && count + 1 > options->max_entries) &&
	    !(options->max_bytes && weight + model->heaviest > options->max_bytes))
		host_fail("something had to make room, and there was room");
}

void cache_model_settle(struct cache_model *model, tw_duration interval)
{
	const struct tw_cache_options *options = &model->options;
	struct tw_cache_stats stats = {0};
	uint64_t count = 0;
	uint64_t weight = 0;
	bool is_known = true;
	tw_duration tick;

	(void)tw_cache_get_stats(model->cache, &stats);
	read_clock(model);
	tick = model->now / interval * interval;
	for (unsigned i = 0; i < model->key_count; i++) {
		const struct cache_value *value = model->keys[i].current;

		is_known &= key_is_known(&model->keys[i]);
		model->keys[i].is_outgrown = false;
		if (!value || value->reported > 0)
			continue;
		if (time_add(value->deadline.high, options->stale_if_error) <= tick)
			host_fail("key %u is there past its deadline", i);
		count++;
		weight += value->weight;
	}
	if (!is_known && host_refusals() == 0)
		host_fail("a key is not known");
	if (is_known && !keeps_absences(options) && stats.entries != count)
		host_fail("%llu are there, not %llu", (unsigned long long)stats.entries,
			  (unsigned long long)count);
	if ((options->max_entries && count > options->max_entries) ||
	    (options->max_bytes && weight > options->max_bytes))
		host_fail("more is there than the limits allow");
	if (model->evicted > 0 && !model->has_guest)
		check_evictions(model, count, weight);
	model->has_guest = false;
	model->heaviest = model->evicted = 0;
}

/* ---- The whole cache ---- */

void cache_model_check_overdue(const struct cache_model *model, tw_duration then)
{
	for (unsigned i = 0; i < model->placed; i++) {
		const struct cache_value *value = &model->values[i];

		if (value->number > 0 && value->fate == CACHE_ACCEPTED && value->reported == 0 &&
		    value->touches == model->keys[value->key].touches_begun &&
		    value->end.high < then)
			host_fail("value %llu, of key %u, is past its deadline at %lld, and all "
				  "sleep until %lld",
				  (unsigned long long)value->number, value->key,
				  (long long)value->end.high, (long long)then);
	}
}

void cache_model_open(struct cache_model *model)
{
	model->has_limits = model->options.max_entries > 0 || model->options.max_bytes > 0;
	model->keys = calloc(model->key_count, sizeof(*model->keys));
	model->values = calloc(model->value_count, sizeof(*model->values));
	if (!model->keys || !model->values)
		host_fail("no memory for the model");
	for (unsigned i = 0; i < model->key_count; i++)
		model->keys[i].is_known = true;
}

static void check_equal_counts(const char *what, uint64_t found, uint64_t expected)
{
	if (found != expected)
		host_fail("%s: %llu, and should be %llu", what, (unsigned long long)found,
			  (unsigned long long)expected);
}

/* Returns whether no call uses the cache. */
static bool is_quiet(const struct cache_model *model)
{
	return model->running == 0 && model->pending == 0;
}

void cache_model_check_stats(struct cache_model *model)
{
	struct tw_cache_stats stats;
	uint64_t loads = model->loads;
	bool was_quiet = is_quiet(model);
	uint64_t left = 0;

	(void)tw_cache_get_stats(model->cache, &stats);
	for (int i = 0; i < TW_CACHE_CAUSES; i++) {
		left += stats.removed[i];
		if (model->is_alone && !keeps_absences(&model->options))
			check_equal_counts("removed", stats.removed[i], model->removed[i]);
	}
	/* The wheel may be removing some right now. */
	if (stats.inserts > left + stats.entries + (model->is_alone ? 0 : model->key_count))
		host_fail("%llu inserts, %llu left and %llu there",
			  (unsigned long long)stats.inserts, (unsigned long long)left,
			  (unsigned long long)stats.entries);
	if (stats.refreshes > 0 && model->options.refresh_after == 0)
		host_fail("a value is loaded again without refresh_after");
	/* A value that is found counts as a hit, even if there is no memory to return it. */
	if (model->is_alone && host_refusals() == 0) {
		check_equal_counts("hits", stats.hits, model->hits);
		check_equal_counts("absent", stats.absent, model->absences);
	}
	if (model->is_alone) {
		check_equal_counts("inserts", stats.inserts, model->inserts);
		check_equal_counts("there and left", left + stats.entries, stats.inserts);
	}
	if (!was_quiet || !is_quiet(model) || loads != model->loads || host_refusals() > 0 ||
	    model->stop_begun || model->wheel_is_stopped)
		return;
	/* The pool may be about to call the loader. */
	if (stats.loads < loads || stats.loads > loads + model->options.loaders ||
	    stats.refreshes > stats.loads || stats.load_errors > model->loads_failed)
		host_fail("%llu loads and %llu errors, says the cache; there were %llu and %llu",
			  (unsigned long long)stats.loads, (unsigned long long)stats.load_errors,
			  (unsigned long long)loads, (unsigned long long)model->loads_failed);
	check_equal_counts("keys asked for", stats.hits + stats.misses + stats.absent,
			   model->asked);
	check_equal_counts("timeouts", stats.wait_timeouts, model->timeouts);
	check_equal_counts("stale", stats.stale, model->stale);
}

void cache_model_close(struct cache_model *model, uint64_t inserts)
{
	bool is_reported = model->options.on_remove != NULL;

	for (unsigned i = 0; i < model->placed; i++) {
		const struct cache_value *value = &model->values[i];

		if (value->number == 0)
			continue;
		if (value->fate == CACHE_ACCEPTED && is_reported && value->reported == 0)
			host_fail("on_remove did not get value %llu, of key %u",
				  (unsigned long long)value->number, value->key);
		if (value->is_lent)
			host_fail("adopted value %llu was not freed",
				  (unsigned long long)value->number);
	}
	if (inserts > 0 && is_reported && !keeps_absences(&model->options))
		check_equal_counts("calls of on_remove", model->reported, inserts);
	for (unsigned i = 0; i < model->ask_count; i++)
		if (model->asks[i].reported != !model->asks[i].is_refused)
			host_fail("a take of key %u got %u results", model->asks[i].take.key,
				  model->asks[i].reported);
	free(model->keys);
	free(model->values);
	model->keys = NULL;
	model->values = NULL;
}
