/* SPDX-License-Identifier: MIT */
/* Calls are drawn, made and compared here, all but those that load. */
#include "cache_model.h"

#include "support/cache_calls.h"

/* ---- Around each call ---- */

struct call_begun client_enter(struct cache_client *client, const char *call)
{
	struct call_begun begun = {client->model->is_stopped, host_refusals()};

	host_enter(client, call);
	return begun;
}

void client_leave(struct cache_client *client, const char *call, struct call_begun begun,
		  enum tw_status status)
{
	const struct cache_model *model = client->model;

	host_leave(client);
	host_trace("client %u: %s: %s", client->number, call, tw_status_name(status));
	if (status == TW_NO_MEMORY && begun.refused == host_refusals())
		host_fail("%s: TW_NO_MEMORY, and no memory was refused", call);
	if (begun.was_stopped && status != TW_CLOSED && status != TW_NO_MEMORY)
		host_fail("%s: %s, and the cache is stopped", call, tw_status_name(status));
	if (status == TW_CLOSED && !model->stop_begun && !model->wheel_is_stopped)
		host_fail("%s: TW_CLOSED, and nothing is stopped", call);
}

void client_check_answer(const char *call, enum tw_status status, size_t sum, size_t counted)
{
	if (status != TW_OK && status != TW_NO_MEMORY && status != TW_CLOSED)
		host_fail("%s: %s", call, tw_status_name(status));
	if (sum != counted)
		host_fail("%s: %zu of %zu", call, sum, counted);
}

/* ---- Random numbers ---- */

tw_duration cache_draw_lifetime(struct cache_model *model)
{
	switch (host_draw(6)) {
	case 0:
		return TW_FOREVER - draw_from(0, 1);
	case 1:
		return draw_from(1, TW_MICROSECOND);
	case 2:
		return model->unit * draw_from(1, 200);
	default:
		return draw_from(1, 5 * model->unit);
	}
}

static unsigned draw_any(const struct cache_model *model)
{
	return (unsigned)host_draw(model->key_count);
}

unsigned client_draw_taken(const struct cache_model *model)
{
	unsigned first = model->loads_all ? 0 : model->first_loaded;

	return first + (unsigned)host_draw(model->key_count - first);
}

static unsigned draw_own(const struct cache_client *client)
{
	const struct cache_model *model = client->model;

	if (model->first_loaded < model->key_count && host_draw(4) == 0)
		return model->first_loaded +
		       (unsigned)host_draw(model->key_count - model->first_loaded);
	return client->first_key + (unsigned)host_draw(client->own_keys);
}

/* ---- Changes ---- */

void client_set(struct cache_client *client, unsigned number)
{
	static const enum key_call_kind kinds[] = {CALL_SET, CALL_ADD, CALL_REPLACE,
						   CALL_SET, CALL_SET, CALL_SET};
	struct cache_model *model = client->model;
	struct tw_cache *cache = model->cache;
	unsigned way = (unsigned)host_draw(6);
	tw_duration life = way == 0 ? model->expire : cache_draw_lifetime(model);
	struct cache_value *value = cache_value_new(model, number, life);
	struct key_call call;
	enum tw_status status;

	if (!value)
		return;
	value->is_adopted = way == 3 && model->adopts;
	call = key_call_begin(client, kinds[way], number, value, life);
	if (way == 0)
		status = CACHE_CALL(client, tw_cache_set(cache, call.name, call.size, value->bytes,
							 value->size));
	else if (way == 1)
		status = CACHE_CALL(client, put_added(cache, call.name, call.size, value->bytes,
						      value->size, life));
	else if (way == 2)
		status = CACHE_CALL(client, put_replaced(cache, call.name, call.size, value->bytes,
							 value->size, life));
	else if (value->is_adopted)
		status = CACHE_CALL(client, put_adopted(cache, call.name, call.size, value->bytes,
							value->size, value->weight,
							cache_value_free, value, life));
	else
		status = CACHE_CALL(client,
				    tw_cache_set_with_expire(cache, call.name, call.size,
							     value->bytes, value->size, life));
	key_call_end(&call, status, NULL);
}

void client_delete(struct cache_client *client, unsigned number)
{
	struct key_call call = key_call_begin(client, CALL_DELETE, number, NULL, 0);

	key_call_end(&call,
		     CACHE_CALL(client, tw_cache_delete(call.model->cache, call.name, call.size)),
		     NULL);
}

static void client_touch(struct cache_client *client, unsigned number)
{
	struct cache_model *model = client->model;
	tw_duration life = cache_draw_lifetime(model);
	struct key_call call = key_call_begin(client, CALL_TOUCH, number, NULL, life);

	key_call_end(&call, CACHE_CALL(client, touch_key(model->cache, call.name, call.size, life)),
		     NULL);
}

static void begin_all(struct cache_client *client, enum key_call_kind kind, struct key_call *calls)
{
	for (unsigned i = 0; i < client->model->key_count; i++)
		calls[i] = key_call_begin(client, kind, i, NULL, 0);
}

static void client_clear(struct cache_client *client)
{
	struct cache_model *model = client->model;
	struct key_call calls[CACHE_KEYS_MOST];
	enum tw_status status;

	begin_all(client, CALL_CLEAR, calls);
	status = CACHE_CALL(client, tw_cache_clear(model->cache));
	for (unsigned i = 0; i < model->key_count; i++)
		key_call_end(&calls[i], status, NULL);
}

/* A computing is a tw_cache_compute that is under way. */
struct computing {
	struct key_call call;
	enum tw_cache_verdict verdict;
};

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_value *computed)
{
	struct computing *computing = context;
	const struct cache_value *value = computing->call.value;

	host_leave(NULL);
	key_call_see(&computing->call,
		     entry ? cache_value_of_entry(computing->call.model, entry) : NULL);
	if (value) {
		computed->data = value->bytes;
		computed->size = value->size;
		computed->expire = computing->call.life;
	}
	host_enter(NULL, NULL);
	return computing->verdict;
}

static void client_compute(struct cache_client *client, unsigned number)
{
	static const enum tw_cache_verdict verdicts[] = {TW_CACHE_KEEP, TW_CACHE_REPLACE,
							 TW_CACHE_DELETE};
	static const enum key_call_kind kinds[] = {[TW_CACHE_KEEP] = CALL_PEEK,
						   [TW_CACHE_REPLACE] = CALL_SET,
						   [TW_CACHE_DELETE] = CALL_CLEAR};
	struct cache_model *model = client->model;
	struct computing computing = {.verdict = verdicts[host_draw(3)]};
	tw_duration life = cache_draw_lifetime(model);
	struct cache_value *value = NULL;
	struct key_call *call = &computing.call;
	enum tw_status status;

	if (computing.verdict == TW_CACHE_REPLACE &&
	    !(value = cache_value_new(model, number, life)))
		return;
	*call = key_call_begin(client, kinds[computing.verdict], number, value, life);
	status = CACHE_CALL(client, tw_cache_compute(model->cache, call->name, call->size, compute,
						     &computing));
	if (computing.verdict != TW_CACHE_KEEP || status != TW_OK)
		key_call_end(call, status, NULL);
}

static void client_set_limit(struct cache_client *client)
{
	struct cache_model *model = client->model;
	uint64_t entries = host_draw(model->key_count + 2);
	uint64_t bytes = host_draw(2) == 0 ? host_draw(4000) : 0;

	model->options.max_bytes |= bytes;
	client_check_answer("tw_cache_set_limit",
			    CACHE_CALL(client, tw_cache_set_limit(model->cache, entries, bytes)), 0,
			    0);
	model->options.max_entries = entries;
	model->options.max_bytes = bytes;
}

static void client_give_nonsense(struct cache_client *client)
{
	static const char key[TW_KEY_SIZE_MAX + 1];
	const struct tw_cache_entry *entry;
	struct tw_cache *cache = client->model->cache;
	bool has_loader = client->model->options.load != NULL;
	tw_duration life = -draw_from(0, 2);
	const enum tw_status answers[] = {
		tw_cache_set(cache, key, 0, "v", 1),
		tw_cache_set(cache, key, sizeof(key), "v", 1),
		tw_cache_set(cache, "k", 1, NULL, 1),
		tw_cache_set_with_expire(cache, "k", 1, "v", 1, life),
		put_added(cache, "k", 1, "v", 1, life - 1),
		tw_cache_get(cache, key, 0, NULL, 0, NULL),
		tw_cache_get(cache, "k", 1, NULL, 1, NULL),
		tw_cache_delete(cache, NULL, 1),
		tw_cache_acquire(cache, "k", 0, 0, &entry),
		tw_cache_take(cache, "k", has_loader ? 0 : 1, NULL, NULL, 0, &entry),
		tw_cache_compute(cache, "k", 1, NULL, NULL),
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i] != TW_INVALID &&
		    (answers[i] != TW_CLOSED || !client->model->stop_begun))
			host_fail("nonsense %zu is answered %s", i, tw_status_name(answers[i]));
}

/* ---- Looks ---- */

void client_get(struct cache_client *client, unsigned number)
{
	struct cache_model *model = client->model;
	struct key_call call = key_call_begin(client, CALL_LOOK, number, NULL, 0);
	unsigned char buffer[CACHE_SIZE_MOST];
	size_t room = cache_key_is_known(model, number) && host_draw(8) == 0 ? host_draw(600)
									     : sizeof(buffer);
	size_t size;
	enum tw_status status = CACHE_CALL(
		client, tw_cache_get(model->cache, call.name, call.size, buffer, room, &size));
	struct cache_value *value =
		status == TW_OK ? cache_value_of(model, number, buffer, size) : NULL;

	if ((status == TW_TRUNCATED && size <= room) || (status == TW_NOT_FOUND && size > 0))
		host_fail("tw_cache_get: %s, and %zu bytes", tw_status_name(status), size);
	key_call_end(&call, status, value);
}

static void client_get_many(struct cache_client *client)
{
	struct cache_model *model = client->model;
	struct tw_cache_lookup items[CACHE_MANY];
	struct key_call calls[CACHE_MANY];
	unsigned char buffers[CACHE_MANY][CACHE_SIZE_MOST];
	unsigned count = (unsigned)draw_from(1, CACHE_MANY);
	size_t found;
	size_t sum = 0;
	enum tw_status status;

	for (unsigned i = 0; i < count; i++) {
		calls[i] = key_call_begin(client, CALL_LOOK, draw_any(model), NULL, 0);
		items[i] = (struct tw_cache_lookup){.key = calls[i].name,
						    .key_size = calls[i].size,
						    .buffer = buffers[i],
						    .capacity = sizeof(buffers[i])};
	}
	status = CACHE_CALL(client, tw_cache_get_many(model->cache, items, count, &found));
	for (unsigned i = 0; i < count; i++) {
		enum tw_status answer = status == TW_OK ? items[i].status : status;

		sum += answer == TW_OK;
		key_call_end(&calls[i], answer,
			     answer == TW_OK ? cache_value_of(model, calls[i].key, buffers[i],
							      items[i].value_size)
					     : NULL);
	}
	client_check_answer("tw_cache_get_many", status, found, sum);
}

static void client_unpin(struct cache_client *client, unsigned place)
{
	const struct tw_cache_entry *entry = client->pins[place];
	struct cache_value *value;

	if (!entry)
		return;
	value = cache_value_of_entry(client->model, entry);
	value->pins--;
	cache_value_retire(value);
	client->pins[place] = NULL;
	host_enter(client, "tw_cache_entry_release");
	tw_cache_entry_release(entry);
	host_leave(client);
}

void client_unpin_all(struct cache_client *client)
{
	for (unsigned i = 0; i < CACHE_PINS; i++)
		client_unpin(client, i);
}

void client_pin(struct cache_client *client, const struct tw_cache_entry *entry)
{
	unsigned place = (unsigned)host_draw(CACHE_PINS);

	cache_value_of_entry(client->model, entry)->pins++;
	client_unpin(client, place);
	client->pins[place] = entry;
}

/* Acquires the entry, without a use for CALL_PEEK, or pops it. */
static void client_acquire(struct cache_client *client, enum key_call_kind kind, unsigned number)
{
	struct cache_model *model = client->model;
	struct key_call call = key_call_begin(client, kind, number, NULL, 0);
	const struct tw_cache_entry *entry;
	struct cache_value *value;
	enum tw_status status;

	if (kind == CALL_LOOK)
		status = CACHE_CALL(
			client, tw_cache_acquire(model->cache, call.name, call.size, 0, &entry));
	else if (kind == CALL_PEEK)
		status = CACHE_CALL(client, tw_cache_acquire(model->cache, call.name, call.size,
							     TW_CACHE_NO_USE, &entry));
	else
		status = CACHE_CALL(client, pop_key(model->cache, call.name, call.size, &entry));
	if ((status == TW_OK) != (entry != NULL))
		host_fail("a lookup of kind %d: %s %s an entry", kind, tw_status_name(status),
			  entry ? "with" : "without");
	value = entry ? cache_value_of_entry(model, entry) : NULL;
	if (entry && kind == CALL_DELETE)
		key_call_check_deadline(&call, tw_cache_entry_deadline(entry));
	key_call_end(&call, status, value);
	if (!entry)
		return;
	if (kind != CALL_DELETE)
		key_call_check_deadline(&call, tw_cache_entry_deadline(entry));
	if (kind == CALL_DELETE && value->is_popped)
		host_fail("a value of key %u is popped twice", number);
	value->is_popped |= kind == CALL_DELETE;
	client_pin(client, entry);
}

void client_flush(struct cache_client *client)
{
	struct cache_model *model = client->model;
	uint64_t began = cache_flush_begin(model);
	enum tw_status status = CACHE_CALL(client, tw_cache_flush(model->cache));

	client_check_answer("tw_cache_flush", status, 0, 0);
	if (status == TW_OK)
		cache_flush_end(model, began);
}

/* A visit is a tw_cache_each that is under way. */
struct visit {
	struct cache_model *model;
	struct key_call calls[CACHE_KEYS_MOST];
	bool met[CACHE_KEYS_MOST];
	bool ends;
};

static int visit(void *context, const struct tw_cache_entry *entry)
{
	struct visit *visit = context;
	struct cache_value *value;

	host_leave(NULL);
	value = cache_value_of_entry(visit->model, entry);
	key_call_see(&visit->calls[value->key], value);
	if (visit->met[value->key] && key_call_is_settled(&visit->calls[value->key]))
		host_fail("key %u is visited twice", value->key);
	visit->met[value->key] = true;
	visit->ends = host_draw(40) == 0;
	host_enter(NULL, NULL);
	return !visit->ends;
}

static void client_visit(struct cache_client *client)
{
	struct cache_model *model = client->model;
	struct visit context = {.model = model};
	enum tw_status status;

	begin_all(client, CALL_PEEK, context.calls);
	status = CACHE_CALL(client, tw_cache_each(model->cache, visit, &context));
	client_check_answer("tw_cache_each", status, 0, 0);
	for (unsigned i = 0; i < model->key_count && status == TW_OK && !context.ends; i++)
		if (!context.met[i])
			key_call_see(&context.calls[i], NULL);
}

/* ---- Any call ---- */

static void call_one(struct cache_client *client)
{
	struct cache_model *model = client->model;
	unsigned own = draw_own(client);
	unsigned any = draw_any(model);
	struct tw_cache_stats stats;
	uint64_t command = host_draw(model->writes_much ? 46 : 30);

	if (model->loads_much && host_draw(3) == 0)
		command = 11;
	switch (command) {
	case 0:
		client_delete(client, own);
		break;
	case 1:
	case 2:
		client_touch(client, own);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
	case 7:
		client_get(client, any);
		break;
	case 8:
		client_get_many(client);
		break;
	case 9:
	case 10:
		client_acquire(client, host_draw(3) ? CALL_LOOK : CALL_PEEK, any);
		break;
	case 11:
	case 12:
	case 13:
	case 14:
		client_load(client);
		break;
	case 15:
		client_acquire(client, CALL_PEEK, any);
		break;
	case 16:
		client_unpin(client, (unsigned)host_draw(CACHE_PINS));
		break;
	case 17:
		client_flush(client);
		break;
	case 18:
		client_visit(client);
		break;
	case 19:
		if (host_draw(3) == 0)
			client_clear(client);
		break;
	case 20:
		if (tw_cache_get_stats(model->cache, &stats) != TW_OK)
			host_fail("tw_cache_get_stats");
		break;
	case 21:
		client_compute(client, own);
		break;
	case 22:
		client_acquire(client, CALL_DELETE, own);
		break;
	case 23:
		if (model->sets_limits && host_draw(2) == 0)
			client_set_limit(client);
		else
			client_give_nonsense(client);
		break;
	default:
		client_set(client, own);
	}
}

void cache_client_call(struct cache_client *client)
{
	unsigned epoch = cache_model_begin(client->model);

	call_one(client);
	cache_model_end(client->model, epoch);
}
