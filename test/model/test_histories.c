/* SPDX-License-Identifier: MIT */
/*
 * Short histories of three and four threads are recorded and checked: is there one order of all
 * calls, each at some moment between its begin and its end, in which a wheel or a cache that does
 * one thing at a time gives the same answers (support/linearize.h)?
 *
 * Keyed timers: a command answers before it is applied; it counts from its place in the queue,
 * which it takes within the call. The model applies it there: the answers of tw_contains and the
 * fate of each value show whether the wheel seems to do the same. A value leaves the model once, by
 * the step that explains its function's arguments: replaced by a set, removed, drained by that very
 * drain, run by a move under one interval, or expired: a step of its own, from the begin of the set
 * to the call of execute. No step that began after a value's function was called comes while the
 * model still has the value. An advance is two steps: from the first on, timers due by its target
 * may expire; before the second all of these have expired that were armed before the first. Only
 * the first thread advances, so each advance's target is known.
 *
 * One key of a cache: the effect of a call depends on the clock that it read, which lies between
 * the clock before the call and after it. An entry past its deadline is not there. A take that ran
 * its loader puts a value where none is, or, if the key was set or deleted meanwhile, gives it to
 * the threads that wait and does not keep it. Each value that was kept leaves with the cause that
 * the order explains.
 *
 * HISTORIES=n sets the number of histories in each case; SEED=n replays what the threads do, though
 * not when. At the end the main thread looks, too; in some histories its answer is then turned
 * into its contrary, for which no order may be found. Loads by the cache's loader are in the
 * simulation (sim/cache_world.c).
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/linearize.h"

#include <sched.h>

enum {
	THREADS_MOST = 4,
	CALLS_OF_THREADS = 12,
	LAST_LOOK = CALLS_OF_THREADS, /* when these are over, a call by the main thread */
	CALLS_A_HISTORY = CALLS_OF_THREADS + 1,
	VALUES = CALLS_A_HISTORY + 1, /* by the number of their call, from 1 on */
	KEYS = 2,
	HISTORIES = TEST_SHARE_OF(1000), /* default per case */
	FALSE_ONCE_IN = 10,
};

/* The models have times in half ticks since the history began. */
#define HALF (INTERVAL / 2)

enum action {
	/* These are a timer's. */
	SET_TIMER,
	MOVE_TIMER,
	MOVE_NOW, /* by less than an interval */
	REMOVE_TIMER,
	CONTAINS,
	DRAIN,
	FLUSH,
	/* These are a cache's. */
	GET,
	SET,
	ADD,
	REPLACE,
	DELETE,
	TOUCH,
	TAKE,
	/* Both have this. */
	ADVANCE
};

static const char *const action_names[] = {
	"set_timer", "move_timer", "move_now", "remove_timer", "contains", "drain", "flush",  "get",
	"set",       "add",        "replace",  "delete",       "touch",    "take",  "advance"};

struct call {
	enum action action;
	int thread;
	unsigned value; /* the value that it gives */
	unsigned key;
	int length; /* delay, lifetime or advance, in half ticks */
	/* These are the call's time by the common counter, and the clock before and after it. */
	struct step step;
	int from;
	int to;
	/* These are the call's results. */
	enum tw_status status;
	unsigned found; /* value, or 0 */
	int remaining;  /* half ticks */
	int target;     /* an advance's */
	/* These are the times of its loader's call and return, if it ran. */
	bool has_loaded;
	uint64_t called;
	uint64_t returned;
	struct history *history;
};

/* An end is the fate of a value. */
enum end_kind { END_NONE, END_EXECUTED, END_RELEASED, END_DRAINED, END_LEFT };

struct end {
	_Atomic unsigned count;
	enum end_kind kind;
	unsigned reason;          /* the release's reason, or the cache's cause */
	const struct call *drain; /* NULL for the drain after the history */
	int deadline;
	int now;
	uint64_t at; /* by the common counter */
};

struct history {
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	int threads;
	int calls_each;
	tw_duration base; /* the clock when it began */
	atomic_ulong time;
	struct call calls[CALLS_A_HISTORY];
	struct end ends[VALUES];
	uint64_t over; /* when all calls were over */
	/* All threads begin a round at the same moment. */
	atomic_uint round;
	atomic_uint ready; /* threads that have ended a round, summed over rounds */
	atomic_bool is_last;
};

static uint64_t history_stamp(struct history *history)
{
	return atomic_fetch_add(&history->time, 1);
}

static int half_ticks(const struct history *history, tw_duration time)
{
	return (int)((time - history->base) / HALF);
}

static int history_now(struct history *history)
{
	return half_ticks(history, tw_now(history->wheel));
}

static int histories_of_a_case(void)
{
	const char *given = getenv("HISTORIES");

	return given ? atoi(given) : HISTORIES;
}

/* ---- Records by the functions of wheel and cache ---- */

static void note_end(struct history *history, unsigned value, const struct end *end)
{
	struct end *note = &history->ends[value];

	note->kind = end->kind;
	note->reason = end->reason;
	note->drain = end->drain;
	note->deadline = end->deadline;
	note->now = history_now(history);
	note->at = history_stamp(history);
	atomic_fetch_add(&note->count, 1);
}

static void note_task(struct history *history, const struct tw_task *task, struct end end)
{
	end.deadline = half_ticks(history, task->deadline);
	note_end(history, (unsigned)(uintptr_t)task->value, &end);
}

static void on_expiry(void *context, const struct tw_task *task)
{
	note_task(context, task, (struct end){.kind = END_EXECUTED});
}

static void on_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	note_task(context, task, (struct end){.kind = END_RELEASED, .reason = reason});
}

/* The drain is in the history, or comes after it. */
struct drained {
	struct history *history;
	const struct call *call;
};

static void on_drain(void *context, const struct tw_task *task)
{
	struct drained *drained = context;

	note_task(drained->history, task,
		  (struct end){.kind = drained->call ? END_DRAINED : END_LEFT,
			       .drain = drained->call});
}

static void on_removal(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	struct history *history = context;
	size_t size;
	unsigned value;

	memcpy(&value, tw_cache_entry_value(entry, &size), sizeof(value));
	note_end(history, value,
		 &(struct end){.kind = END_RELEASED,
			       .reason = cause,
			       .deadline = half_ticks(history, tw_cache_entry_deadline(entry))});
}

/* ---- The calls ---- */

/* One is long, so that its moves and removes are carried. */
static const char *const keys[KEYS] = {"key", "a key that is longer than a cell of the queue"};

static enum tw_status call_contains(struct history *history, struct call *call)
{
	tw_duration remaining = 0;
	enum tw_status status =
		tw_contains(history->wheel, keys[call->key], strlen(keys[call->key]), &remaining);

	call->remaining = (int)(remaining / HALF);
	return status;
}

static enum tw_status call_timer(struct history *history, struct call *call,
				 struct drained *drained)
{
	const char *key = keys[call->key];

	switch (call->action) {
	case SET_TIMER:
		return tw_set_timer(history->wheel, key, strlen(key), VALUE(call->value),
				    call->length * HALF);
	case MOVE_TIMER:
	case MOVE_NOW:
		return tw_move_timer(history->wheel, key, strlen(key), call->length * HALF);
	case REMOVE_TIMER:
		return tw_remove_timer(history->wheel, key, strlen(key));
	case CONTAINS:
		return call_contains(history, call);
	case DRAIN:
		*drained = (struct drained){history, call};
		return tw_drain(history->wheel, on_drain, drained);
	case FLUSH:
		return tw_flush(history->wheel);
	default:
		return tw_advance(history->wheel, call->length * HALF);
	}
}

static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct call *call = argument;
	enum tw_status status;

	call->has_loaded = true;
	call->called = history_stamp(call->history);
	sched_yield();
	status = give_copied(loading, &call->value, sizeof(call->value), call->length * HALF);
	call->returned = history_stamp(call->history);
	return status;
}

static enum tw_status call_take(struct history *history, struct call *call)
{
	const struct tw_cache_entry *entry;
	enum tw_status status =
		tw_cache_take(history->cache, "key", 3, load, call, TW_HOUR, &entry);

	if (entry)
		memcpy(&call->found, tw_cache_entry_value(entry, NULL), sizeof(call->found));
	tw_cache_entry_release(entry);
	return status;
}

static enum tw_status call_cache(struct history *history, struct call *call)
{
	struct tw_cache *cache = history->cache;
	const void *value = &call->value;
	size_t size = sizeof(call->value);
	tw_duration expire = call->length * HALF;

	switch (call->action) {
	case GET:
		return tw_cache_get(cache, "key", 3, &call->found, size, NULL);
	case SET:
		return tw_cache_set_with_expire(cache, "key", 3, value, size, expire);
	case ADD:
		return put_added(cache, "key", 3, value, size, expire);
	case REPLACE:
		return put_replaced(cache, "key", 3, value, size, expire);
	case DELETE:
		return tw_cache_delete(cache, "key", 3);
	case TOUCH:
		return touch_key(cache, "key", 3, expire);
	case TAKE:
		return call_take(history, call);
	default:
		return tw_advance(history->wheel, expire);
	}
}

/* Draws an action; the first thread advances now and then. */
static enum action random_action(struct random *random, const struct history *history,
				 bool is_first)
{
	static const enum action timers[] = {SET_TIMER,  SET_TIMER,    SET_TIMER, MOVE_TIMER,
					     MOVE_TIMER, REMOVE_TIMER, CONTAINS,  CONTAINS,
					     MOVE_NOW,   DRAIN,        FLUSH};
	static const enum action entries[] = {GET,     GET,    GET,   SET,  SET, ADD,
					      REPLACE, DELETE, TOUCH, TAKE, TAKE};

	if (is_first && random_once_in(random, 3))
		return ADVANCE;
	return history->cache ? entries[random_below(random, sizeof(entries) / sizeof(entries[0]))]
			      : timers[random_below(random, sizeof(timers) / sizeof(timers[0]))];
}

static void draw_call(struct random *random, struct history *history, struct call *call)
{
	unsigned number = (unsigned)(call - history->calls);

	*call = (struct call){.thread = (int)number / history->calls_each,
			      .value = number + 1,
			      .history = history};
	call->action = random_action(random, history, call->thread == 0);
	call->key = random_once_in(random, 4);
	/* These are one to three ticks. */
	call->length = 2 * (int)random_between(random, 1, 3);
	if (call->action == MOVE_NOW)
		call->length = 1;
}

static void make_call(struct history *history, struct call *call, struct drained *drained)
{
	call->step.began = history_stamp(history);
	call->from = history_now(history);
	call->status =
		history->cache ? call_cache(history, call) : call_timer(history, call, drained);
	call->to = history_now(history);
	call->step.ended = history_stamp(history);
}

static void linger(struct random *random)
{
	for (volatile uint64_t left = random_below(random, 400); left > 0; left--)
		;
}

static void spin_until(atomic_uint *number, unsigned value)
{
	for (int spins = 0; (int)(atomic_load(number) - value) < 0; spins++) {
		if (spins > 200)
			give_way();
	}
}

struct caller {
	pthread_t thread;
	struct history *history;
	int number;
	uint64_t seed;
};

static void *caller_run(void *argument)
{
	struct caller *caller = argument;
	struct history *history = caller->history;
	struct random random = random_from(caller->seed, (uint64_t)caller->number);
	struct drained drained[CALLS_A_HISTORY];

	for (unsigned round = 1;; round++) {
		spin_until(&history->round, round);
		if (atomic_load(&history->is_last))
			return NULL;
		for (int i = 0; i < history->calls_each; i++) {
			struct call *call =
				&history->calls[caller->number * history->calls_each + i];

			draw_call(&random, history, call);
			linger(&random);
			make_call(history, call, &drained[i]);
		}
		atomic_fetch_add(&history->ready, 1);
		/* The drains' functions are called until the main thread has waited for them. */
		spin_until(&history->round, round + 1);
	}
}

/* ---- The models ---- */

/* A judge has a history's calls, and then its other steps. */
struct judge {
	struct history *history;
	struct step steps[LINEARIZE_MOST];
	size_t count;
	/* The steps after the calls have the call whose advance ends there, or the value that
	 * expires. */
	const struct call *advance[LINEARIZE_MOST];
	unsigned expires[LINEARIZE_MOST];
};

/* The models use a state like this. Deadlines are half ticks since the history began. */
struct key_state {
	uint8_t value;
	uint8_t is_fresh;   /* armed since the current advance began */
	uint8_t is_expired; /* an entry that a call has found past its deadline */
	int16_t deadline;
};

struct timers_state {
	struct key_state keys[KEYS];
	int16_t target; /* the last advance that began has this target */
	uint8_t is_advancing;
};

_Static_assert(sizeof(struct timers_state) <= LINEARIZE_STATE, "fits");

static struct end *end_of(struct judge *judge, unsigned value)
{
	return &judge->history->ends[value];
}

/* Sets `now` to the clock that a call of this choice read. Returns false if there is none. */
static bool clock_read(const struct call *call, unsigned choice, int *now)
{
	*now = call->from + (int)choice;
	return *now <= call->to;
}

/* The value leaves by the step. Returns false if that contradicts its end. */
static bool timer_leaves(struct judge *judge, struct key_state *key, enum end_kind kind,
			 unsigned reason, const struct call *drain)
{
	const struct end *end = end_of(judge, key->value);
	bool fits = end->kind == kind && end->reason == reason && end->drain == drain &&
		    end->deadline == key->deadline;

	*key = (struct key_state){0};
	return fits;
}

static bool timer_is_set(struct judge *judge, const struct call *call, int now,
			 struct timers_state *state)
{
	struct key_state *key = &state->keys[call->key];
	bool fits = key->value == 0 || timer_leaves(judge, key, END_RELEASED, TW_REPLACED, NULL);

	*key = (struct key_state){.value = (uint8_t)call->value,
				  .is_fresh = state->is_advancing,
				  .deadline = (int16_t)(now + call->length)};
	return fits;
}

static bool timer_is_moved(struct judge *judge, const struct call *call, int now,
			   struct timers_state *state)
{
	struct key_state *key = &state->keys[call->key];

	if (key->value == 0)
		return true;
	key->deadline = (int16_t)(now + call->length);
	key->is_fresh = state->is_advancing;
	return call->action != MOVE_NOW || timer_leaves(judge, key, END_EXECUTED, 0, NULL);
}

/* `remaining` was computed from the deadline and some clock up to the call's end. */
static bool contains_fits(const struct call *call, const struct key_state *key)
{
	int left = call->remaining;

	if (call->status != TW_OK || key->value == 0)
		return (call->status == TW_OK) == (key->value != 0);
	if (left == 0)
		return key->deadline <= call->to;
	return key->deadline >= call->from + left && key->deadline <= call->to + left;
}

static bool timers_are_drained(struct judge *judge, const struct call *call,
			       struct timers_state *state)
{
	bool fits = true;

	for (int i = 0; i < KEYS; i++)
		if (state->keys[i].value != 0)
			fits &= timer_leaves(judge, &state->keys[i], END_DRAINED, 0, call);
	return fits;
}

static bool advance_begins(const struct call *call, struct timers_state *state)
{
	state->target = (int16_t)call->target;
	state->is_advancing = true;
	for (int i = 0; i < KEYS; i++)
		state->keys[i].is_fresh = false;
	return true;
}

/* Returns false also where it has not begun. */
static bool advance_ends(const struct call *call, struct timers_state *state)
{
	if (!state->is_advancing || state->target != call->target)
		return false;
	state->is_advancing = false;
	for (int i = 0; i < KEYS; i++) {
		const struct key_state *key = &state->keys[i];

		if (key->value != 0 && !key->is_fresh && key->deadline <= state->target)
			return false;
	}
	return true;
}

static bool timer_expires(struct judge *judge, unsigned value, struct timers_state *state)
{
	for (int i = 0; i < KEYS; i++) {
		struct key_state *key = &state->keys[i];

		if (key->value == value)
			return key->deadline <= state->target &&
			       timer_leaves(judge, key, END_EXECUTED, 0, NULL);
	}
	return false;
}

static bool timer_call_fits(struct judge *judge, const struct call *call, int now,
			    struct timers_state *state)
{
	switch (call->action) {
	case SET_TIMER:
		return timer_is_set(judge, call, now, state);
	case MOVE_TIMER:
	case MOVE_NOW:
		return timer_is_moved(judge, call, now, state);
	case REMOVE_TIMER:
		return state->keys[call->key].value == 0 ||
		       timer_leaves(judge, &state->keys[call->key], END_RELEASED, TW_REMOVED, NULL);
	case CONTAINS:
		return contains_fits(call, &state->keys[call->key]);
	case DRAIN:
		return timers_are_drained(judge, call, state);
	case ADVANCE:
		return advance_begins(call, state);
	default:
		return true;
	}
}

/* Returns whether a value is there whose end was reported before the step began. */
static bool timers_are_stale(struct judge *judge, size_t step, const struct timers_state *state)
{
	for (int i = 0; i < KEYS; i++)
		if (state->keys[i].value != 0 &&
		    end_of(judge, state->keys[i].value)->at < judge->steps[step].began)
			return true;
	return false;
}

static enum step_answer timers_take(void *context, size_t step, unsigned choice,
				    union model_state *bytes)
{
	struct judge *judge = context;
	struct timers_state state;
	int now = 0;
	bool fits;

	memcpy(&state, bytes, sizeof(state));
	if (timers_are_stale(judge, step, &state))
		return choice > 0 ? STEP_HAS_NO_MORE_CHOICES : STEP_DOES_NOT;
	if (step >= CALLS_A_HISTORY) {
		if (choice > 0)
			return STEP_HAS_NO_MORE_CHOICES;
		fits = judge->advance[step] ? advance_ends(judge->advance[step], &state)
					    : timer_expires(judge, judge->expires[step], &state);
	} else {
		const struct call *call = &judge->history->calls[step];
		bool reads = call->action == SET_TIMER || call->action == MOVE_TIMER ||
			     call->action == MOVE_NOW;

		if (reads ? !clock_read(call, choice, &now) : choice > 0)
			return STEP_HAS_NO_MORE_CHOICES;
		fits = timer_call_fits(judge, call, now, &state);
	}
	memcpy(bytes, &state, sizeof(state));
	return fits ? STEP_FITS : STEP_DOES_NOT;
}

static bool timers_may_end(void *context, const union model_state *bytes)
{
	struct judge *judge = context;
	struct timers_state state;

	memcpy(&state, bytes, sizeof(state));
	for (int i = 0; i < KEYS; i++)
		if (state.keys[i].value != 0 &&
		    !timer_leaves(judge, &state.keys[i], END_LEFT, 0, NULL))
			return false;
	return true;
}

/* An entry that one call finds expired stays expired for later lookups. A change, which has the
 * lock, judges by the clock that it read: it may come before a deadline that a lookup sees pass. */
static bool entry_is_there(const struct key_state *key, int now, bool is_change)
{
	return key->value != 0 && (is_change || !key->is_expired) && key->deadline > now;
}

/* Returns whether the call may have found no entry: by the clock that it read, or by a later one of
 * a concurrent lookup. */
static bool entry_may_be_gone(const struct key_state *key, const struct call *call)
{
	return key->value == 0 || key->is_expired || key->deadline <= call->to;
}

/* The entry's value leaves for that cause. Returns false if that contradicts its end. */
static bool entry_leaves(struct judge *judge, struct key_state *key, unsigned cause)
{
	const struct end *end = end_of(judge, key->value);
	bool fits = end->reason == cause && end->deadline == key->deadline &&
		    end->at < judge->history->over;

	*key = (struct key_state){0};
	return fits;
}

static bool entry_is_put(struct judge *judge, const struct call *call, int now,
			 struct key_state *key)
{
	unsigned cause = key->value == 0 ? TW_CAUSE_EXPIRED : end_of(judge, key->value)->reason;
	bool is_gone = cause == TW_CAUSE_EXPIRED && entry_may_be_gone(key, call);
	bool is_set = call->action == SET;
	bool is_there = cause == TW_CAUSE_REPLACED && key->deadline > now;
	bool fits = (is_gone && call->action != REPLACE) ||
		    (is_there && (is_set || call->action == REPLACE));

	if (key->value != 0)
		fits &= entry_leaves(judge, key, cause);
	*key = (struct key_state){.value = (uint8_t)call->value,
				  .deadline = (int16_t)(now + call->length)};
	return fits;
}

static bool calls_overlap(const struct call *left, const struct call *right)
{
	return left->step.began < right->step.ended && right->step.began < left->step.ended;
}

static bool overrides(const struct call *call)
{
	return call->action == SET || call->action == ADD || call->action == REPLACE ||
	       call->action == DELETE;
}

/* Returns whether a set or delete may have come while the load was listed, and not before the take,
 * which would have loaded itself. */
static bool load_may_be_overridden(const struct history *history, const struct call *load,
				   const struct call *take)
{
	for (int i = 0; i < CALLS_A_HISTORY; i++) {
		const struct call *other = &history->calls[i];

		if (overrides(other) && other->step.ended > load->step.began &&
		    other->step.began < load->step.ended && take->step.began < other->step.ended)
			return true;
	}
	return false;
}

/* Returns whether a set or delete did come while its loader ran. */
static bool load_is_overridden(const struct history *history, const struct call *load)
{
	for (int i = 0; i < CALLS_A_HISTORY; i++) {
		const struct call *other = &history->calls[i];

		if (overrides(other) && other->status == TW_OK &&
		    other->step.began > load->called && other->step.ended < load->returned)
			return true;
	}
	return false;
}

/* Returns whether the value is that of a load, by this take or one that overlaps it, that a set or
 * delete overrode. A take that begins after that one loads itself. */
static bool take_was_given(struct judge *judge, const struct call *call)
{
	const struct call *loader = &judge->history->calls[call->found - 1];

	return loader->action == TAKE && loader->has_loaded && loader->status == TW_OK &&
	       calls_overlap(loader, call) &&
	       atomic_load(&end_of(judge, call->found)->count) == 0 &&
	       load_may_be_overridden(judge->history, loader, call);
}

static bool take_fits(struct judge *judge, const struct call *call, int now, struct key_state *key)
{
	if (call->has_loaded && call->found != call->value)
		return false;
	if (call->has_loaded && atomic_load(&end_of(judge, call->value)->count) > 0)
		return entry_is_put(judge, call, now, key);
	if (call->has_loaded)
		return entry_may_be_gone(key, call) && take_was_given(judge, call);
	return (entry_is_there(key, now, false) && call->found == key->value) ||
	       take_was_given(judge, call);
}

static bool entry_call_fits(struct judge *judge, const struct call *call, int now,
			    struct key_state *key)
{
	bool is_change = call->action != GET;
	bool is_there = entry_is_there(key, now, is_change);
	bool succeeded = call->status == TW_OK;

	if (call->action == GET || call->action == REPLACE || call->action == TOUCH)
		key->is_expired = key->value != 0 && !is_there;
	switch (call->action) {
	case GET:
		return call->found == (is_there ? key->value : 0);
	case SET:
		return entry_is_put(judge, call, now, key);
	case ADD:
		return succeeded ? entry_is_put(judge, call, now, key) : is_there;
	case REPLACE:
		return succeeded ? entry_is_put(judge, call, now, key) : !is_there;
	case DELETE:
		return succeeded == is_there &&
		       (key->value == 0 ||
			entry_leaves(judge, key, is_there ? TW_CAUSE_EXPLICIT : TW_CAUSE_EXPIRED));
	case TOUCH:
		if (succeeded)
			key->deadline = (int16_t)(now + call->length);
		return succeeded == is_there;
	case TAKE:
		return take_fits(judge, call, now, key);
	default:
		return true;
	}
}

static enum step_answer entry_take(void *context, size_t step, unsigned choice,
				   union model_state *bytes)
{
	struct judge *judge = context;
	const struct call *call = &judge->history->calls[step];
	enum step_answer answer;
	struct key_state key;
	bool is_old;
	int now = 0;

	if (!clock_read(call, choice, &now) || (call->action == ADVANCE && choice > 0))
		return STEP_HAS_NO_MORE_CHOICES;
	memcpy(&key, bytes, sizeof(key));
	/* An entry was replaced or deleted before its listener was called. */
	is_old = key.value != 0 && end_of(judge, key.value)->reason != TW_CAUSE_EXPIRED &&
		 end_of(judge, key.value)->at < call->step.began;
	answer = entry_call_fits(judge, call, now, &key) ? STEP_FITS : STEP_DOES_NOT;
	memcpy(bytes, &key, sizeof(key));
	return is_old && answer == STEP_FITS ? STEP_DOES_NOT : answer;
}

/* Remaining entries have expired, or were cleared after the history. */
static bool entry_may_end(void *context, const union model_state *bytes)
{
	struct judge *judge = context;
	const struct end *end;
	struct key_state key;

	memcpy(&key, bytes, sizeof(key));
	if (key.value == 0)
		return true;
	end = end_of(judge, key.value);
	if (end->deadline != key.deadline)
		return false;
	return end->reason == TW_CAUSE_EXPIRED ||
	       (end->reason == TW_CAUSE_EXPLICIT && end->at > judge->history->over);
}

/* ---- Judging ---- */

static void judge_add(struct judge *judge, uint64_t began, uint64_t ended,
		      const struct call *advance, unsigned expires)
{
	judge->steps[judge->count] = (struct step){began, ended};
	judge->advance[judge->count] = advance;
	judge->expires[judge->count] = expires;
	judge->count++;
}

/* The steps are the calls, the ends of advances, and the expiries. */
static void judge_timers(struct judge *judge, struct history *history)
{
	int target = 0;

	*judge = (struct judge){.history = history};
	for (int i = 0; i < CALLS_A_HISTORY; i++) {
		struct call *call = &history->calls[i];
		const struct end *end = &history->ends[call->value];
		bool is_set = call->action == SET_TIMER;

		if (call->action == ADVANCE)
			call->target = target += call->length;
		/* A set comes before its value's end is reported. */
		judge_add(judge, call->step.began,
			  is_set && end->at < call->step.ended ? end->at : call->step.ended, NULL,
			  0);
	}
	for (int i = 0; i < CALLS_A_HISTORY; i++) {
		const struct call *call = &history->calls[i];
		const struct end *end = &history->ends[call->value];

		if (call->action == ADVANCE)
			judge_add(judge, call->step.began, call->step.ended, call, 0);
		/* A move under an interval runs the value itself; then this is not an expiry. */
		if (call->action == SET_TIMER && end->kind == END_EXECUTED &&
		    end->deadline % 2 == 0)
			judge_add(judge, call->step.began, end->at, NULL, call->value);
	}
}

static void judge_entry(struct judge *judge, struct history *history)
{
	*judge = (struct judge){.history = history};
	for (unsigned i = 0; i < CALLS_A_HISTORY; i++)
		judge_add(judge, history->calls[i].step.began, history->calls[i].step.ended, NULL,
			  0);
}

static void print_history(const struct history *history)
{
	for (unsigned i = 0; i < CALLS_A_HISTORY; i++) {
		const struct call *call = &history->calls[i];

		print_message("thread %d, %llu to %llu, clock %d to %d: %s %u value %u length %d: "
			      "%s, found %u, remaining %d, loaded from %llu to %llu\n",
			      call->thread, (unsigned long long)call->step.began,
			      (unsigned long long)call->step.ended, call->from, call->to,
			      action_names[call->action], call->key, call->value, call->length,
			      tw_status_name(call->status), call->found, call->remaining,
			      (unsigned long long)call->called, (unsigned long long)call->returned);
	}
	for (unsigned value = 1; value < VALUES; value++) {
		const struct end *end = &history->ends[value];

		if (end->count > 0)
			print_message("value %u, at %llu, clock %d: kind %d, reason %u, drained by "
				      "%u, deadline %d, %u times\n",
				      value, (unsigned long long)end->at, end->now, (int)end->kind,
				      end->reason, end->drain ? end->drain->value : 0,
				      end->deadline, (unsigned)end->count);
	}
}

/* Returns why the end of the call's value is impossible, or NULL. */
static const char *value_fault(const struct history *history, const struct call *call)
{
	const struct end *end = &history->ends[call->value];
	bool is_given = history->cache ? (call->action == SET || call->action == ADD ||
					  call->action == REPLACE) &&
						 call->status == TW_OK
				       : call->action == SET_TIMER;
	bool may_be_given = history->cache && call->has_loaded && call->status == TW_OK;

	if (end->count > 1 || (is_given && end->count == 0))
		return "a value did not come back once";
	if (!is_given && !may_be_given && end->count > 0)
		return "a value came back that was not taken";
	if (end->count > 0 && end->now < end->deadline &&
	    (history->cache ? end->reason == TW_CAUSE_EXPIRED
			    : end->kind == END_EXECUTED && end->deadline % 2 == 0))
		return "a value expired early";
	return NULL;
}

/* Returns whether the loads may overlap: one begins after a set or delete that overrode the
 * other. */
static bool may_run_beside(const struct history *history, const struct call *load,
			   const struct call *other)
{
	uint64_t called = load->called > other->called ? load->called : other->called;

	for (int i = 0; i < CALLS_A_HISTORY; i++) {
		const struct call *call = &history->calls[i];

		if (overrides(call) && call->step.began < called &&
		    (call->step.ended > load->step.began || call->step.ended > other->step.began))
			return true;
	}
	return false;
}

/* Returns why the load is impossible, or NULL. */
static const char *load_fault(const struct history *history, const struct call *load)
{
	if (history->ends[load->value].count > 0 && load_is_overridden(history, load))
		return "a load was kept over what was set or deleted meanwhile";
	for (unsigned i = 0; i < CALLS_A_HISTORY; i++) {
		const struct call *other = &history->calls[i];

		if (other != load && other->has_loaded && other->called < load->returned &&
		    load->called < other->returned && !may_run_beside(history, load, other))
			return "two loads of the key ran at the same time";
	}
	return NULL;
}

/* Returns why the history is impossible, or NULL, without a search for an order. */
static const char *history_fault(const struct history *history)
{
	for (unsigned i = 0; i < CALLS_A_HISTORY; i++) {
		const struct call *call = &history->calls[i];
		const char *fault = value_fault(history, call);

		if (!history->cache && call->status != TW_OK && call->action != CONTAINS)
			return "a call failed";
		if (call->action == TAKE &&
		    (call->status != TW_OK || call->found == 0 || call->found >= VALUES))
			return "a take failed, or found no value of the history";
		if (!fault && call->has_loaded)
			fault = load_fault(history, call);
		if (fault)
			return fault;
	}
	return NULL;
}

static bool has_order(struct history *history)
{
	struct judge judge;
	const struct sequential timers = {&judge, timers_take, timers_may_end};
	const struct sequential entry = {&judge, entry_take, entry_may_end};

	if (history->cache)
		judge_entry(&judge, history);
	else
		judge_timers(&judge, history);
	return linearize(judge.steps, judge.count, history->cache ? &entry : &timers);
}

/* The last look says the contrary of what it found. */
static void falsify(struct history *history)
{
	struct call *look = &history->calls[LAST_LOOK];

	if (history->cache)
		look->found = look->found == 0;
	else
		look->status = look->status == TW_OK ? TW_NOT_FOUND : TW_OK;
}

static void history_judge(struct history *history, unsigned round)
{
	const char *fault = history_fault(history);

	if (!fault && !has_order(history))
		fault = "no order explains it";
	if (!fault && round % FALSE_ONCE_IN == 0) {
		falsify(history);
		if (has_order(history))
			fault = "an order explains it, though its last answer is wrong";
	}
	if (!fault)
		return;
	print_history(history);
	fail_msg("history %u: %s", round, fault);
}

/* ---- Histories ---- */

static void history_begin(struct history *history)
{
	history->base = tw_now(history->wheel);
	atomic_store(&history->time, 1);
	for (unsigned value = 0; value < VALUES; value++)
		history->ends[value] = (struct end){0};
}

/* Ends the history: remaining values leave, and are reported. */
static void history_settle(struct history *history)
{
	struct call *look = &history->calls[LAST_LOOK];
	struct drained rest = {history, NULL};

	assert_int_equal(tw_wait_idle(history->wheel), TW_OK);
	if (history->cache)
		assert_int_equal(tw_cache_flush(history->cache), TW_OK);
	*look = (struct call){.action = history->cache ? GET : CONTAINS,
			      .thread = THREADS_MOST,
			      .value = LAST_LOOK + 1,
			      .history = history};
	make_call(history, look, NULL);
	history->over = history_stamp(history);
	if (history->cache) {
		assert_int_equal(tw_cache_clear(history->cache), TW_OK);
		assert_int_equal(tw_cache_flush(history->cache), TW_OK);
	} else {
		assert_int_equal(tw_drain(history->wheel, on_drain, &rest), TW_OK);
	}
	assert_int_equal(tw_wait_idle(history->wheel), TW_OK);
}

static void run_histories(struct history *history)
{
	unsigned rounds = (unsigned)histories_of_a_case();
	struct caller callers[THREADS_MOST];
	uint64_t seed = seed_choose();

	for (int i = 0; i < history->threads; i++) {
		callers[i] = (struct caller){.history = history, .number = i, .seed = seed};
		assert_int_equal(pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]),
				 0);
	}
	for (unsigned round = 1; round <= rounds; round++) {
		history_begin(history);
		atomic_store(&history->round, round);
		spin_until(&history->ready, round * (unsigned)history->threads);
		history_settle(history);
		history_judge(history, round);
	}
	atomic_store(&history->is_last, true);
	atomic_store(&history->round, rounds + 1);
	for (int i = 0; i < history->threads; i++)
		pthread_join(callers[i].thread, NULL);
}

static struct history *history_open(const struct variant *variant, int threads, size_t capacity)
{
	struct history *history = calloc(1, sizeof(*history));
	struct tw_options options = variant_options(
		variant, (struct tw_options){.release = on_release, .queue_capacity = capacity});

	assert_non_null(history);
	options.context = history;
	history->threads = threads;
	history->calls_each = CALLS_OF_THREADS / threads;
	assert_int_equal(tw_create(&history->wheel, INTERVAL, 4, on_expiry, &options), TW_OK);
	return history;
}

static void history_close(struct history *history)
{
	tw_cache_destroy(history->cache);
	tw_destroy(history->wheel);
	free(history);
}

static void run_timers(const struct variant *variant, int threads, size_t capacity)
{
	struct history *history = history_open(variant, threads, capacity);

	run_histories(history);
	history_close(history);
}

/* The cache has room for one entry: of this key, which leaves for no other. */
static void run_entries(const struct variant *variant, int threads)
{
	struct history *history = history_open(variant, threads, 0);
	const struct tw_cache_options options = {.context = history,
						 .wheel = history->wheel,
						 .jitter = -1,
						 .on_remove = on_removal,
						 .max_entries = 1,
						 .shards = 1};

	assert_int_equal(tw_cache_create(&history->cache, TW_HOUR, &options), TW_OK);
	run_histories(history);
	history_close(history);
}

TEST(by_caller, timers_of_three_threads_are_linearizable)
{
	run_timers(*state, 3, 0);
}

TEST(with_owner, timers_of_four_threads_are_linearizable)
{
	run_timers(*state, 4, 0);
}

TEST(inline_and_threads, timers_with_a_full_queue_are_linearizable)
{
	run_timers(*state, 4, 2);
}

TEST(inline, entries_of_three_threads_are_linearizable)
{
	run_entries(*state, 3);
}

TEST(with_owner, entries_of_four_threads_are_linearizable)
{
	run_entries(*state, 4);
}
