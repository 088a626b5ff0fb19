/* SPDX-License-Identifier: MIT */
/*
 * The main thread makes the steps; the tasks' threads record events and make the steps of `in`. The
 * lock guards the things' list, the events and the first mismatch.
 */
#include "test.h"

#include "script.h"

#include <assert.h>
#include <ctype.h>
#include <poll.h>
#include <timingwheel/cron.h>

#include "blocked_call.h"
#include "gate.h"
#include "inside.h"
#include "words.h"

enum {
	THINGS = 40,
	EVENTS = 600,
	ACTS = 4,
	WORDS = 16,
	ASKED = 12,
	TEXT = 80,
	LONG_KEY = 1000,
	BESIDES = 4
};

enum thing_kind { KEYED, HANDLE, ALARM };

/* A thing has a name: a value of a key, or the argument of a timer by handle or an alarm. */
struct thing {
	struct script *script;
	enum thing_kind kind;
	char name[TEXT / 2];
	char key[LONG_KEY]; /* the name's first bytes, and zeros after a capital letter */
	size_t key_size;
	struct tw_timer timer;
	struct tw_alarm *alarm; /* NULL once it has ended */
	atomic_uint owed;       /* times that it has been accepted by key and has not come back */
	unsigned times;         /* times that it has come back */
	struct act {
		unsigned time; /* 0 means each time */
		bool is_asked; /* when it is asked for its next deadline, not in its run */
		const char *steps;
	} acts[ACTS];
	bool is_held;
	struct gate gate;
	/* These are a schedule's deadlines, and the arguments of next. */
	tw_duration deadlines[ASKED];
	tw_duration asked[ASKED];
	size_t times_asked;
};

/* A call beside the main thread has a name. */
struct beside {
	struct script *script;
	char name[TEXT / 2];
	char step[TEXT];
	char answer[4 * TEXT];
	int caller;      /* the system id of the thread that has begun it */
	bool is_destroy; /* it destroys the wheel */
	struct blocked_call call;
};

struct script {
	struct tw_wheel *wheel;
	struct tw_cron *hourly;
	bool is_ordered;
	bool has_descriptor;
	int descriptor; /* the wheel's, if it has been asked for */
	pthread_mutex_t lock;
	struct thing things[THINGS];
	size_t thing_count;
	char events[EVENTS][TEXT];
	size_t event_count;
	size_t compared; /* events */
	struct beside besides[BESIDES];
	atomic_int beside_count;
	atomic_int met;      /* steps that meet */
	atomic_bool is_over; /* no step of `in` is made */
	struct half_command half;
	atomic_bool is_wrong;
	char wrong[4000];
};

/* A call is a step's words, and its answer. */
struct call {
	struct script *script;
	struct tw_wheel *wheel;
	char *words[WORDS];
	int count;
	struct thing *thing;
	char answer[4 * TEXT];
	bool is_beside; /* not in the main thread */
};

static void script_fail(struct script *script, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void script_fail(struct script *script, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	pthread_mutex_lock(&script->lock);
	if (!atomic_exchange(&script->is_wrong, true))
		vsnprintf(script->wrong, sizeof(script->wrong), format, arguments);
	pthread_mutex_unlock(&script->lock);
	va_end(arguments);
}

/* ---- Things ---- */

static struct thing *find_thing(struct script *script, const char *name)
{
	struct thing *thing = script->things;

	pthread_mutex_lock(&script->lock);
	while (thing < script->things + script->thing_count && strcmp(thing->name, name) != 0)
		thing++;
	if (thing == script->things + script->thing_count) {
		assert(++script->thing_count < THINGS);
		thing->script = script;
		assert(strlen(name) < sizeof(thing->name));
		strcpy(thing->name, name);
		thing->key_size = strcspn(name, "0123456789");
		memcpy(thing->key, name, thing->key_size);
		if (isupper((unsigned char)*name))
			thing->key_size = LONG_KEY;
		gate_init(&thing->gate);
	}
	pthread_mutex_unlock(&script->lock);
	return thing;
}

/* ---- Events ---- */

static void make_step(struct script *script, const char *text, bool is_main);
static void run(void *thing);

static void make_steps(struct script *script, const char *text, const char *separator, bool is_main)
{
	while (*text && !atomic_load(&script->is_wrong)) {
		size_t length = strcspn(text, separator);
		char step[1000];

		snprintf(step, sizeof(step), "%.*s", (int)length, text);
		make_step(script, step, is_main);
		text += length + (text[length] != '\0');
	}
}

static bool is_task_of(const struct tw_task *task, const struct thing *thing, bool runs)
{
	if (task->wheel != thing->script->wheel || task->value != thing)
		return false;
	if (thing->kind == KEYED)
		return task->key_size == thing->key_size && task->timer.id == 0 && !task->run &&
		       memcmp(task->key, thing->key, thing->key_size) == 0;
	/* The call that makes the timer may not have returned yet. */
	return task->key_size == 0 && (thing->kind == ALARM || runs ||
				       (task->run == run && task->timer.id == thing->timer.id));
}

/* Makes the steps that are kept for the thing's run, or question, with this number. */
static void make_acts(struct thing *thing, bool is_asked, unsigned time)
{
	for (const struct act *act = thing->acts; act < thing->acts + ACTS && act->steps; act++)
		if (act->is_asked == is_asked && (act->time == 0 || act->time == time))
			make_steps(thing->script, act->steps, ",", false);
}

/* The thing comes back: `how` is empty for a run. */
static void come_back(struct thing *thing, const char *how)
{
	struct script *script = thing->script;
	const struct tw_task *task = tw_current_task();
	tw_duration now = tw_now(script->wheel);
	tw_duration late = task->deadline < now - TW_FOREVER ? TW_FOREVER : now - task->deadline;
	char *event;

	if (*how == '\0' && script->is_ordered && task->lateness != (late > 0 ? late : 0))
		script_fail(script, "%s has another lateness", thing->name);
	if (!is_task_of(task, thing, *how == '\0'))
		script_fail(script, "%s comes back with another key or handle", thing->name);
	if (thing->kind == KEYED)
		atomic_fetch_sub(&thing->owed, 1);
	pthread_mutex_lock(&script->lock);
	assert(script->event_count < EVENTS);
	event = script->events[script->event_count++];
	snprintf(event, TEXT, "%s%s%s", thing->name, *how ? ":" : "@", how);
	if (*how == '\0')
		words_write_time(event, TEXT, now, INTERVAL);
	strcat(event, "/");
	words_write_time(event, TEXT, task->deadline, INTERVAL);
	pthread_mutex_unlock(&script->lock);
	thing->times++;
	if (atomic_load(&script->is_over))
		return;
	make_acts(thing, false, thing->times);
	if (thing->is_held) {
		thing->is_held = false;
		gate_pass(&thing->gate);
	}
}

static void run(void *thing)
{
	come_back(thing, "");
}

static void execute(void *context, const struct tw_task *task)
{
	run(task->value);
}

static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	static const char *const how[] = {
		[TW_REPLACED] = "replaced", [TW_REMOVED] = "removed", [TW_STOPPED] = "stopped"};

	come_back(task->value, how[reason]);
}

static void drain(void *context, const struct tw_task *task)
{
	come_back(task->value, "drained");
}

/* Nothing may use the alarm's memory after this. */
static void closed(void *argument)
{
	struct thing *thing = argument;

	come_back(thing, "closed");
	free(thing->alarm);
	thing->alarm = NULL;
}

static tw_duration next(void *argument, tw_duration previous)
{
	struct thing *thing = argument;

	assert(thing->times_asked < ASKED);
	thing->asked[thing->times_asked++] = previous;
	make_acts(thing, true, (unsigned)thing->times_asked);
	return thing->deadlines[thing->times_asked - 1];
}

/* Returns whether the event, which has its deadline, is the expected one, which need not. */
static bool is_event(const char *event, const char *expected)
{
	size_t length = strlen(expected);

	return strncmp(event, expected, length) == 0 &&
	       (event[length] == '\0' || (event[length] == '/' && !strchr(expected, '/')));
}

/* Returns how many of the expected events have come back since the last comparison. */
static size_t count_matches(const struct script *script, char *expected, size_t *count,
			    bool in_order)
{
	bool is_found[EVENTS] = {false};
	size_t matches = 0;

	*count = 0;
	for (char *event; (event = strtok_r(expected, " ", &expected)); ++*count) {
		size_t i = script->compared + (in_order ? *count : 0);

		while (!in_order && i < script->event_count &&
		       (is_found[i] || !is_event(script->events[i], event)))
			i++;
		if (i >= script->event_count || !is_event(script->events[i], event))
			continue;
		is_found[i] = true;
		matches++;
	}
	return matches;
}

/* Compares what has come back since the last comparison with the expected events. */
static void compare(struct script *script, const char *step, const char *expected, bool in_order)
{
	char text[4000];
	char got[3000] = "";
	size_t count;
	size_t matches;
	bool is_as_expected;

	snprintf(text, sizeof(text), "%s", expected);
	pthread_mutex_lock(&script->lock);
	matches = count_matches(script, text, &count, in_order);
	for (size_t i = script->compared; i < script->event_count; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), " %s", script->events[i]);
	is_as_expected = matches == count && count == script->event_count - script->compared;
	script->compared = script->event_count;
	pthread_mutex_unlock(&script->lock);
	if (!is_as_expected)
		script_fail(script, "%s: expected %s; got%s", step,
			    *expected ? expected : "nothing", *got ? got : " nothing");
}

static size_t events_to_compare(struct script *script)
{
	size_t count;

	pthread_mutex_lock(&script->lock);
	count = script->event_count - script->compared;
	pthread_mutex_unlock(&script->lock);
	return count;
}

/* ---- Calls. Each returns its status, which is the answer unless it writes another ---- */

/* The time was -1 before the call. */
static enum tw_status answer_time(struct call *call, enum tw_status status, tw_duration time)
{
	if (status == TW_OK)
		words_write_time(call->answer, sizeof(call->answer), time, INTERVAL);
	else if (time != -1)
		script_fail(call->script, "a call that fails writes a time");
	return status;
}

static enum tw_status answer_number(struct call *call, size_t number)
{
	snprintf(call->answer, sizeof(call->answer), "%zu", number);
	return TW_OK;
}

static tw_duration call_time(const struct call *call, int word)
{
	assert(word < call->count);
	return words_time(call->words[word], INTERVAL);
}

static enum tw_status call_set(struct call *call)
{
	struct thing *thing = call->thing;
	enum tw_status status;

	if (thing->kind == ALARM)
		return tw_alarm_set(thing->alarm, call_time(call, 2));
	/* The task may come before the answer. */
	atomic_fetch_add(&thing->owed, 1);
	status = (*call->words[0] == 'a' ? tw_add_timer : tw_set_timer)(
		call->wheel, thing->key, thing->key_size, thing, call_time(call, 2));
	if (status != TW_OK)
		atomic_fetch_sub(&thing->owed, 1);
	return status;
}

static enum tw_status call_set_at(struct call *call)
{
	return tw_alarm_set_at(call->thing->alarm, call_time(call, 2));
}

static enum tw_status call_move(struct call *call)
{
	return tw_move_timer(call->wheel, call->thing->key, call->thing->key_size,
			     call_time(call, 2));
}

static enum tw_status call_remove(struct call *call)
{
	return tw_remove_timer(call->wheel, call->thing->key, call->thing->key_size);
}

static enum tw_status call_take(struct call *call)
{
	struct thing *thing = call->thing;
	void *value = NULL;
	enum tw_status status;

	if (thing->kind == HANDLE)
		status = tw_timer_take(call->wheel, thing->timer, &value);
	else
		status = tw_take_timer(call->wheel, thing->key, thing->key_size, &value);
	if ((status == TW_OK || status == TW_REARMED) != (value != NULL))
		script_fail(call->script, "a take has no value, or one although it fails");
	if (!value)
		return status;
	thing = value;
	if (thing->kind == KEYED)
		atomic_fetch_sub(&thing->owed, 1);
	snprintf(call->answer, sizeof(call->answer), "%s%s", thing->name,
		 status == TW_REARMED ? " REARMED" : "");
	return status;
}

static enum tw_status call_left(struct call *call)
{
	struct thing *thing = call->thing;
	tw_duration left = -1;
	enum tw_status status;

	if (thing->kind == HANDLE)
		status = tw_timer_remaining(call->wheel, thing->timer, &left);
	else
		status = tw_contains(call->wheel, thing->key, thing->key_size, &left);
	return answer_time(call, status, left);
}

/* Returns where the call writes the handle, which is not there yet. */
static struct tw_timer *handle_of(struct call *call)
{
	call->thing->kind = HANDLE;
	call->thing->timer.id = 77;
	return &call->thing->timer;
}

/* A timer that is refused has no handle. */
static enum tw_status made(struct call *call, enum tw_status status)
{
	if ((status == TW_OK) != (call->thing->timer.id != 0))
		script_fail(call->script, "%s has a wrong handle", call->thing->name);
	return status;
}

static enum tw_status call_after(struct call *call)
{
	return made(call, tw_after_func(call->wheel, call_time(call, 2), run, call->thing,
					handle_of(call)));
}

static enum tw_status call_every(struct call *call)
{
	enum tw_missed missed = TW_MISSED_BURST;

	if (call->count > 4)
		missed = call->words[4][0] == 'd' ? TW_MISSED_DELAY : TW_MISSED_SKIP;
	return made(call, tw_every(call->wheel, call_time(call, 2), call_time(call, 3), missed, run,
				   call->thing, handle_of(call)));
}

static enum tw_status call_schedule(struct call *call)
{
	struct thing *thing = call->thing;

	thing->times_asked = 0;
	for (int i = 2; i < call->count; i++)
		thing->deadlines[i - 2] = call_time(call, i);
	return made(call, tw_schedule_func(call->wheel, next, run, thing, handle_of(call)));
}

/* The timer comes at the next full hour of the calendar. */
static enum tw_status call_cron(struct call *call)
{
	return made(call, tw_schedule_cron(call->wheel, call->script->hourly, run, call->thing,
					   handle_of(call)));
}

static enum tw_status call_asked(struct call *call)
{
	for (size_t i = 0; i < call->thing->times_asked; i++) {
		strcat(call->answer, i > 0 ? " " : "");
		words_write_time(call->answer, sizeof(call->answer), call->thing->asked[i],
				 INTERVAL);
	}
	return TW_OK;
}

static enum tw_status call_stop(struct call *call)
{
	if (!call->thing)
		return tw_stop(call->wheel);
	if (call->thing->kind == ALARM)
		return tw_alarm_stop(call->thing->alarm);
	return tw_timer_stop(call->wheel, call->thing->timer);
}

static enum tw_status call_stop_wait(struct call *call)
{
	return tw_timer_stop_wait(call->wheel, call->thing->timer);
}

static enum tw_status call_reset(struct call *call)
{
	return tw_timer_reset(call->wheel, call->thing->timer, call_time(call, 2));
}

static enum tw_status call_alarm(struct call *call)
{
	call->thing->kind = ALARM;
	return tw_alarm_init(call->wheel, call->thing->alarm, run, call->thing);
}

static enum tw_status call_close(struct call *call)
{
	if (tw_alarm_close(call->thing->alarm, NULL) != TW_INVALID)
		script_fail(call->script, "an alarm is closed without a function");
	return tw_alarm_close(call->thing->alarm, closed);
}

/* A destroyed alarm refuses all calls, and nothing uses its memory. */
static enum tw_status destroy_alarm(struct thing *thing)
{
	enum tw_status status = tw_alarm_destroy(thing->alarm);

	if (status != TW_OK)
		return status;
	if (tw_alarm_set(thing->alarm, 0) != TW_CLOSED ||
	    tw_alarm_destroy(thing->alarm) != TW_CLOSED)
		script_fail(thing->script, "the destroyed %s is not closed", thing->name);
	free(thing->alarm);
	thing->alarm = NULL;
	return status;
}

static enum tw_status call_destroy(struct call *call)
{
	enum tw_status status;

	if (call->thing)
		return destroy_alarm(call->thing);
	status = tw_destroy(call->wheel);
	if (status == TW_OK && !call->is_beside)
		call->script->wheel = NULL;
	return status;
}

static enum tw_status call_drain(struct call *call)
{
	return tw_drain(call->wheel, drain, NULL);
}

static enum tw_status call_flush(struct call *call)
{
	return tw_flush(call->wheel);
}

static enum tw_status call_poll(struct call *call)
{
	tw_duration left = -1;
	enum tw_status status = tw_poll(call->wheel, &left);

	return answer_time(call, status, left);
}

/* Answers OK or quiet. */
static enum tw_status call_rings(struct call *call)
{
	struct script *script = call->script;
	struct pollfd descriptor = {.events = POLLIN};

	if (!script->has_descriptor)
		script->descriptor = tw_fd(call->wheel);
	script->has_descriptor = true;
	descriptor.fd = script->descriptor;
	if (script->descriptor < 0 || poll(&descriptor, 1, 0) == 0)
		strcpy(call->answer, "quiet");
	return TW_OK;
}

static enum tw_status call_pending(struct call *call)
{
	return answer_number(call, tw_pending(call->wheel));
}

static enum tw_status call_places(struct call *call)
{
	return answer_number(call, wheel_places_taken(call->wheel));
}

static enum tw_status call_events(struct call *call)
{
	return answer_number(call, events_to_compare(call->script));
}

static int count_visit(void *count, const struct tw_pending_timer *timer)
{
	++*(size_t *)count;
	return 1;
}

static enum tw_status call_walk(struct call *call)
{
	size_t count = 0;
	enum tw_status status = tw_each(call->wheel, count_visit, &count);

	return status == TW_OK ? answer_number(call, count) : status;
}

static enum tw_status call_now(struct call *call)
{
	return answer_time(call, TW_OK, tw_now(call->wheel));
}

static enum tw_status call_idle(struct call *call)
{
	return tw_wait_idle(call->wheel);
}

static enum tw_status call_until(struct call *call)
{
	return tw_wait_idle_until(call->wheel, call_time(call, 1));
}

static enum tw_status call_stats(struct call *call)
{
	struct tw_stats stats;

	return tw_get_stats(call->wheel, &stats);
}

/* Answers with the counts that are not 0. */
static enum tw_status call_counts(struct call *call)
{
	struct tw_stats stats;
	enum tw_status status = tw_get_stats(call->wheel, &stats);
	const struct {
		const char *name;
		uint64_t number;
	} counts[] = {{"set", stats.set},
		      {"replaced", stats.replaced},
		      {"moved", stats.moved},
		      {"removed", stats.removed},
		      {"fired", stats.fired},
		      {"drained", stats.drained},
		      {"stopped", stats.stopped},
		      {"refused", stats.refused},
		      {"pending", stats.pending},
		      {"unfinished", stats.unfinished},
		      {"running", stats.running},
		      {"begun", stats.lateness.count},
		      {"ended", stats.task_duration.count}};
	size_t length = 0;

	for (size_t i = 0; status == TW_OK && i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].number > 0)
			length += (size_t)snprintf(call->answer + length,
						   sizeof(call->answer) - length, "%s%s %llu",
						   length > 0 ? " " : "", counts[i].name,
						   (unsigned long long)counts[i].number);
	return status;
}

static void ignore_text(void *context, const char *text, size_t size)
{
}

static enum tw_status call_metrics(struct call *call)
{
	return tw_write_metrics(call->wheel, ignore_text, NULL, NULL);
}

static enum tw_status call_clock(struct call *call)
{
	return tw_advance(call->wheel, call_time(call, 1));
}

static enum tw_status call_pass(struct call *call)
{
	enum tw_status status = TW_OK;

	for (int ticks = atoi(call->words[1]); ticks > 0 && status == TW_OK; ticks--) {
		status = tw_advance(call->wheel, INTERVAL);
		may_fail(tw_wait_idle(call->wheel));
	}
	return status;
}

static enum tw_status call_hold(struct call *call)
{
	call->thing->is_held = true;
	return TW_OK;
}

/* Where the caller drives the wheel, one turn may not be the last before that. */
static enum tw_status call_reached(struct call *call)
{
	if (call->script->is_ordered)
		gate_await(&call->thing->gate);
	else
		WAIT_UNTIL((may_fail(tw_advance(call->wheel, 0)),
			    sem_trywait(&call->thing->gate.reached) == 0));
	return TW_OK;
}

static enum tw_status call_await(struct call *call)
{
	WAIT_UNTIL(tw_pending(call->wheel) == (size_t)atoi(call->words[1]));
	return TW_OK;
}

static enum tw_status call_half(struct call *call)
{
	call->script->half = half_command_begin(call->wheel);
	return TW_OK;
}

static enum tw_status call_whole(struct call *call)
{
	half_command_end(&call->script->half);
	return TW_OK;
}

static enum tw_status call_clock_is(struct call *call)
{
	wheel_set_clock(call->wheel, call_time(call, 1));
	return TW_OK;
}

static enum tw_status call_meet(struct call *call)
{
	int enough = atoi(call->words[1]);

	atomic_fetch_add(&call->script->met, 1);
	WAIT_UNTIL(atomic_load(&call->script->met) >= enough);
	return TW_OK;
}

static const struct verb *make_call(struct call *call, char *text);

static void beside_run(void *argument)
{
	struct beside *beside = argument;
	struct call call = {
		.script = beside->script, .wheel = beside->script->wheel, .is_beside = true};

	(void)make_call(&call, beside->step);
	strcpy(beside->answer, call.answer);
}

/* Calls the function in another thread, which has the call's name. */
static void start_beside(struct call *call, void (*make)(void *argument))
{
	struct script *script = call->script;
	struct beside *beside = &script->besides[atomic_load(&script->beside_count)];

	beside->script = script;
	beside->caller = gettid();
	beside->is_destroy = call->count == 3 && !strcmp(call->words[2], "destroy");
	strcpy(beside->name, call->words[1]);
	for (int i = 2; i < call->count; i++)
		strcat(strcat(beside->step, call->words[i]), " ");
	blocked_call_start(&beside->call, make, beside);
	assert(atomic_fetch_add(&script->beside_count, 1) < BESIDES);
}

static enum tw_status call_begin(struct call *call)
{
	start_beside(call, beside_run);
	return TW_OK;
}

static void write_the_other_half(void *argument)
{
	struct beside *beside = argument;

	while (!thread_is_asleep(beside->caller))
		give_way();
	half_command_end(&beside->script->half);
	strcpy(beside->answer, "OK");
}

static enum tw_status call_whole_asleep(struct call *call)
{
	start_beside(call, write_the_other_half);
	return TW_OK;
}

static struct beside *find_beside(struct script *script, const char *name)
{
	for (int at = 0; at < atomic_load(&script->beside_count); at++)
		if (strcmp(script->besides[at].name, name) == 0)
			return &script->besides[at];
	return NULL;
}

/* Returns the call with this name, once it has begun. */
static struct beside *beside_of(const struct call *call)
{
	struct beside *beside;

	WAIT_UNTIL((beside = find_beside(call->script, call->words[1])));
	return beside;
}

/* The answer comes all the same, and only then the thread's end. */
static enum tw_status call_cancel(struct call *call)
{
	pthread_cancel(beside_of(call)->call.thread);
	return TW_OK;
}

static enum tw_status call_asleep(struct call *call)
{
	blocked_call_falls_asleep(&beside_of(call)->call);
	return TW_OK;
}

static enum tw_status call_ended(struct call *call)
{
	struct beside *beside = beside_of(call);

	blocked_call_end(&beside->call);
	if (beside->is_destroy)
		call->script->wheel = NULL;
	strcpy(call->answer, beside->answer);
	return TW_OK;
}

static enum tw_status call_go(struct call *call)
{
	gate_open(&call->thing->gate);
	return TW_OK;
}

static const struct verb {
	const char *name;
	enum tw_status (*call)(struct call *call);
} verbs[] = {
	{"set", call_set},
	{"add", call_set},
	{"move", call_move},
	{"remove", call_remove},
	{"take", call_take},
	{"left", call_left},
	{"after", call_after},
	{"every", call_every},
	{"schedule", call_schedule},
	{"asked", call_asked},
	{"stop", call_stop},
	{"stop_wait", call_stop_wait},
	{"reset", call_reset},
	{"alarm", call_alarm},
	{"set_at", call_set_at},
	{"close", call_close},
	{"destroy", call_destroy},
	{"drain", call_drain},
	{"flush", call_flush},
	{"poll", call_poll},
	{"rings", call_rings},
	{"pending", call_pending},
	{"places", call_places},
	{"clock", call_clock},
	{"pass", call_pass},
	{"advance", call_clock},
	{"idle", call_idle},
	{"wait", call_idle},
	{"begin", call_begin},
	{"asleep", call_asleep},
	{"ended", call_ended},
	{"hold", call_hold},
	{"reached", call_reached},
	{"go", call_go},
	{"now", call_now},
	{"events", call_events},
	{"walk", call_walk},
	{"cron", call_cron},
	{"until", call_until},
	{"stats", call_stats},
	{"metrics", call_metrics},
	{"meet", call_meet},
	{"counts", call_counts},
	{"await", call_await},
	{"half", call_half},
	{"whole", call_whole},
	{"whole_asleep", call_whole_asleep},
	{"clock_is", call_clock_is},
	{"cancel", call_cancel},
};

const struct script_call wheel_calls[] = {
	{"set new 1h", "OK", CALL_ALLOCATES},
	{"set M1 1h", "OK", CALL_ALLOCATES},
	{"set L2 1h", "OK", CALL_PLAIN},
	{"add new 1h", "OK", CALL_ALLOCATES},
	{"add M1 1h", "OK", CALL_ALLOCATES},
	{"take L1", "L1", CALL_PLAIN},
	{"move L1 2h", "OK", CALL_PLAIN},
	{"remove L1", "OK", CALL_PLAIN},
	{"left L1", "3600000", CALL_PLAIN},
	{"after r 1h", "OK", CALL_ALLOCATES},
	{"every r 1h 1h", "OK", CALL_ALLOCATES},
	{"schedule r 1h 2h", "OK", CALL_ALLOCATES},
	{"cron r", "OK", CALL_ALLOCATES},
	{"stop p", "OK", CALL_PLAIN},
	{"stop_wait p", "OK", CALL_PLAIN},
	{"take p", "p", CALL_PLAIN},
	{"reset p 9", "OK", CALL_PLAIN},
	{"left p", "3600000", CALL_PLAIN},
	{"alarm y", "OK", CALL_PLAIN},
	{"set x 1h", "OK", CALL_PLAIN},
	{"set_at x 1h", "OK", CALL_PLAIN},
	{"stop x", "NOT_FOUND", CALL_PLAIN},
	{"drain", "OK", CALL_ALLOCATES},
	{"walk", "5", CALL_PLAIN},
	{"flush", "OK", CALL_PLAIN},
	{"clock 0", "OK", CALL_PLAIN},
	{"clock 1", "OK", CALL_PLAIN},
	{"poll", "any", CALL_PLAIN},
	{"idle", "OK", CALL_WORKS_STOPPED},
	{"until 1h", "OK", CALL_WORKS_STOPPED},
	{"stats", "OK", CALL_WORKS_STOPPED},
	{"metrics", "OK", CALL_WORKS_STOPPED},
	{"stop", "OK", CALL_PLAIN},
	{NULL, NULL, CALL_PLAIN},
};

bool script_has_call(const struct variant *variant, const struct script_call *call)
{
	return strcmp(call->step, "poll") != 0 || variant->drive == TW_DRIVE_CALLER;
}

/* These compare events also where none is written. */
#define COMPARES "pass advance idle wait"

/* ---- Steps ---- */

/* Waits until as many events have come as are expected, and for more than these. */
static void wait_for_events(struct script *script, const char *expected)
{
	size_t count = 0;

	for (const char *word = expected; *word; count++) {
		word += strspn(word, " ");
		word += strcspn(word, " ");
		word += strspn(word, " ");
	}
	WAIT_UNTIL((may_fail(tw_advance(script->wheel, 0)), may_fail(tw_wait_idle(script->wheel)),
		    events_to_compare(script) >= count));
	may_fail(tw_advance(script->wheel, 0));
	may_fail(tw_wait_idle(script->wheel));
}

/* Keeps the steps of "in NAME: steps" or "in NAME 2: steps", or asking, for the thing. */
static void keep_steps(struct script *script, char *text)
{
	char *steps = words_cut(text, ":");
	char *kind = strtok_r(text, " ", &text);
	char *name = strtok_r(text, " ", &text);
	char *time = strtok_r(text, " ", &text);
	struct act *act = find_thing(script, name)->acts;

	while (act->steps)
		act++;
	*act = (struct act){.time = time ? (unsigned)strtol(time, NULL, 10) : 0,
			    .is_asked = strcmp(kind, "asking") == 0,
			    .steps = strdup(steps)};
}

static const struct verb *read_call(struct call *call, char *text)
{
	const struct verb *verb = verbs;

	for (char *word; (word = strtok_r(text, " ", &text));)
		call->words[call->count++] = word;
	assert(call->count > 0);
	while (strcmp(verb->name, call->words[0]) != 0)
		assert(++verb < verbs + sizeof(verbs) / sizeof(verbs[0]));
	if (call->count > 1 && verb->call != call_clock && verb->call != call_pass &&
	    verb->call != call_until && verb->call != call_meet && verb->call != call_await &&
	    verb->call != call_clock_is)
		call->thing = find_thing(call->script, call->words[1]);
	return verb;
}

static const struct verb *make_call(struct call *call, char *text)
{
	const struct verb *verb = read_call(call, text);
	enum tw_status status = verb->call(call);

	if (call->answer[0] == '\0')
		snprintf(call->answer, sizeof(call->answer), "%s", tw_status_name(status) + 3);
	return verb;
}

void script_answer(struct script *script, struct tw_wheel *wheel, const char *step, char *answer)
{
	struct call call = {.script = script, .wheel = wheel};
	char copy[SCRIPT_ANSWER];

	snprintf(copy, sizeof(copy), "%s", step);
	(void)make_call(&call, copy);
	snprintf(answer, SCRIPT_ANSWER, "%s", call.answer);
}

static void make_step(struct script *script, const char *text, bool is_main)
{
	struct call call = {.script = script, .wheel = script->wheel};
	const struct verb *verb;
	char copy[1000];
	char *rest = copy;
	char *order;
	char *events;
	char *answer;

	snprintf(copy, sizeof(copy), "%s", text);
	rest = words_trim(copy);
	if (strncmp(rest, "in ", 3) == 0 || strncmp(rest, "asking ", 7) == 0) {
		keep_steps(script, rest);
		return;
	}
	order = words_cut(rest, "=>");
	events = order ? order : words_cut(rest, "->");
	answer = words_cut(rest, "=");
	verb = make_call(&call, rest);
	answer = answer ? words_trim(answer) : "OK";
	if (strcmp(call.answer, answer) != 0 && strcmp(answer, "any") != 0)
		script_fail(script, "%s: answered %s", text, call.answer);
	if (!is_main || (!events && !strstr(COMPARES, verb->name)))
		return;
	if (script->wheel)
		may_fail(tw_wait_idle(script->wheel));
	events = events ? events : "";
	if (strcmp(verb->name, "wait") == 0)
		wait_for_events(script, events);
	compare(script, text, events, order && script->is_ordered);
}

void script_close(struct script *script, const char *text, const char *file, int line)
{
	atomic_store(&script->is_over, true);
	for (size_t i = 0; i < script->thing_count; i++)
		gate_open(&script->things[i].gate);
	tw_destroy(script->wheel);
	for (size_t i = 0; i < THINGS; i++) {
		struct thing *thing = &script->things[i];

		free(thing->alarm);
		if (thing->owed != 0)
			script_fail(script, "%s has not come back once", thing->name);
		for (int act = 0; act < ACTS; act++)
			free((char *)(uintptr_t)thing->acts[act].steps);
	}
	tw_cron_destroy(script->hourly);
	if (script->wrong[0] != '\0') {
		print_error("%s\nin the script: %s\n", script->wrong, text);
		_fail(file, line);
	}
	free(script);
}

struct script *script_open(const struct variant *variant, struct tw_options more)
{
	struct script *script = calloc(1, sizeof(*script));

	assert_non_null(script);
	for (size_t i = 0; i < THINGS; i++)
		assert_non_null(script->things[i].alarm = calloc(1, sizeof(struct tw_alarm)));
	pthread_mutex_init(&script->lock, NULL);
	script->is_ordered = variant->workers == TW_WORKERS_INLINE;
	more.release = release;
	more = variant_options(variant, more);
	assert_status(tw_create(&script->wheel, INTERVAL, 5, execute, &more), TW_OK);
	assert_status(tw_cron_create(&script->hourly, "@hourly", NULL, NULL), TW_OK);
	return script;
}

struct tw_wheel *script_wheel(const struct script *script)
{
	return script->wheel;
}

bool script_is_wrong(const struct script *script)
{
	return atomic_load(&script->is_wrong);
}

void script_make(struct script *script, const char *text)
{
	make_steps(script, text, ";", true);
}

void script_run(const struct variant *variant, struct tw_options more, const char *text,
		const char *file, int line)
{
	struct script *script = script_open(variant, more);

	script_make(script, text);
	if (!atomic_load(&script->is_wrong) && script->wheel)
		make_step(script, "idle", true);
	script_close(script, text, file, line);
}
