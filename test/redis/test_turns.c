/* SPDX-License-Identifier: MIT */
/*
 * A shard is compared with a model: random histories add, move, remove, claim, extend and end tasks
 * of some groups by weights, and set limits. Leases of batches end, tasks are replaced while they
 * run, and runs are reported late and twice. The scripts read the test's clock in place of the
 * server's, so their results are exact to the microsecond. The model takes one task after the
 * other, as deficit round robin is defined. Apart from the model it is checked that no more
 * tasks run than may, and that no rate is exceeded in any time.
 *
 * HISTORIES in the environment is the number of histories.
 */
#include "support/fixture.h"

#include "support/scripts.h"

enum { END_MOST = 3, TEXT_SIZE = 256 };
enum { HISTORIES = 1000, STEPS = 60, KEYS = 12, GROUPS = 5, LIMIT_MOST = 9, ADD_MOST = 3 };
/* RUNS is more than a history has. STAR is the rule of all groups without one. */
enum { RUNS = STEPS * LIMIT_MOST, STAR = GROUPS, RULES = GROUPS + 1 };
/* The rates are tasks in this time, so that a task has whole microseconds. */
enum { PER_MS = 12 };
static const int64_t per_us = PER_MS * 1000;
static const char *const groups[GROUPS] = {"", "a", "b", "b/x", "d d"};

/* TAKEN is within a claim. */
enum state { ABSENT, WAITING, LEASED, TAKEN };

struct task {
	enum state state;
	int group;
	int64_t due;
	int64_t own;    /* the due time in its record */
	int64_t latest; /* the latest due time, or 0 */
	unsigned attempts;
	int64_t token;
};

/* A run. Its task may have another by now, or none. The token is that of its batch. */
struct run {
	int task;
	int group;
	unsigned attempts;
	int64_t token;
	int slot;
	int64_t lease_end;
	bool is_over; /* it was reported, or its lease has ended and a script has seen that */
	bool has_place;
};

/* Limits of a group, of the namespace, or of all groups without a rule. */
struct rule {
	bool exists;
	int weight;
	int most;
	int rate; /* in PER_MS; 0 means none */
	bool is_paused;
};

/* A group, or the namespace itself, which is the first. */
struct node {
	bool has_turn;
	int64_t turn; /* microseconds */
	int64_t used; /* the microsecond up to which its rate is used up */
	/* These are of the present claim. */
	int spent; /* tasks in the present turn */
	int round; /* the round of its last turn, or 0 */
	int taken;
	bool had_one_before;
	int allowed;
	int64_t again; /* the microsecond when to look for more than are allowed */
	bool is_kept_back;
	/* These are the microseconds of all begins since its rule was set. */
	int64_t begins[RUNS];
	int begin_count;
};

struct model {
	redisContext *context;
	struct random random;
	int64_t now_us;
	int64_t token;
	struct task tasks[KEYS];
	struct run runs[RUNS];
	int run_count;
	struct rule rules[RULES];
	struct node nodes[GROUPS];
	/* The nodes that have a turn in the present claim. */
	int order[GROUPS];
	int count;
	int at;
	int round;
	int cut; /* the node whose turn the last claim interrupted, or -1 */
	int cut_spent;
	bool uses_groups;
};

/* ---- The scripts, by the test's clock ---- */

/* Runs a script with the words of the text, which has a | between two. */
__attribute__((format(printf, 3, 4))) static redisReply *run(struct model *model,
							     const struct script *script,
							     const char *format, ...)
{
	const char *words[TEXT_SIZE];
	char text[TEXT_SIZE];
	char *next = text;
	int count = 0;
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	while (next)
		words[count++] = strsep(&next, "|");
	return script_call(model->context, script, count, words);
}

static void clock_set(struct model *model, int64_t now_us)
{
	model->now_us = now_us;
	script_clock_set(model->context, now_us);
}

/* ---- The model ---- */

static int64_t now_ms(const struct model *model)
{
	return model->now_us / 1000;
}

static void key_write(char key[8], int index)
{
	snprintf(key, 8, "k%02d", index);
}

/* Returns the run that has the task on lease, or NULL. */
static struct run *run_of(struct model *model, const struct task *task)
{
	for (int i = 0; i < model->run_count; i++) {
		struct run *run = &model->runs[i];

		if (!run->is_over && task->state == LEASED && run->token == task->token &&
		    &model->tasks[run->task] == task)
			return run;
	}
	return NULL;
}

/* Returns the group's waiting task with the lowest due time, then key, or -1. */
static int first_task(const struct model *model, int group)
{
	int first = -1;

	for (int i = 0; i < KEYS; i++) {
		const struct task *task = &model->tasks[i];

		if (task->state == WAITING && task->group == group &&
		    (first < 0 || task->due < model->tasks[first].due))
			first = i;
	}
	return first;
}

static bool has_due(const struct model *model, int group)
{
	int first = first_task(model, group);

	return first >= 0 && model->tasks[first].due <= now_ms(model);
}

static void model_put(struct model *model, int index, int64_t due)
{
	struct task *task = &model->tasks[index];
	struct node *node = &model->nodes[task->group];

	task->state = WAITING;
	task->due = due;
	task->token = 0;
	if (task->group == 0)
		return;
	if (!node->has_turn || node->turn > due * 1000)
		node->turn = due * 1000;
	node->has_turn = model->nodes[0].has_turn = model->uses_groups = true;
}

/* ---- The model's limits ---- */

static bool has_rules(const struct model *model)
{
	for (int i = 0; i < RULES; i++)
		if (model->rules[i].exists)
			return true;
	return false;
}

static const struct rule *rule_of(const struct model *model, int group)
{
	bool by_star = group > 0 && !model->rules[group].exists;

	return &model->rules[by_star ? STAR : group];
}

static int weight_of(const struct model *model, int group)
{
	int weight = group ? rule_of(model, group)->weight : 1;

	return weight ? weight : 1;
}

static int places_of(const struct model *model, int group)
{
	int count = 0;

	for (int i = 0; i < model->run_count; i++)
		count += model->runs[i].has_place && (group == 0 || model->runs[i].group == group);
	return count;
}

/* Gives a group a turn now, if it has one later. */
static void node_wake(struct model *model, int index)
{
	struct node *node = &model->nodes[index];

	if (index && node->has_turn && node->turn > model->now_us)
		node->turn = model->now_us;
}

static void run_leave(struct model *model, struct run *run)
{
	int most = rule_of(model, run->group)->most;

	if (run->has_place && most && places_of(model, run->group) >= most)
		node_wake(model, run->group);
	run->has_place = false;
	run->is_over = true;
}

/* Makes the tasks due that a batch still has, as its lease has ended. */
static void batch_lapse(struct model *model, int64_t token)
{
	for (int i = 0; i < model->run_count; i++) {
		struct run *run = &model->runs[i];

		if (run->token == token && run_of(model, &model->tasks[run->task]) == run)
			model_put(model, run->task, run->lease_end);
	}
	for (int i = 0; i < model->run_count; i++)
		if (model->runs[i].token == token && !model->runs[i].is_over)
			run_leave(model, &model->runs[i]);
}

/* Lets the batches lapse whose leases have ended, the first to end first. */
static void leases_lapse(struct model *model)
{
	for (;;) {
		const struct run *first = NULL;

		for (int i = 0; i < model->run_count; i++) {
			const struct run *run = &model->runs[i];

			if (!run->is_over && run->lease_end <= now_ms(model) &&
			    (!first || run->lease_end < first->lease_end))
				first = run;
		}
		if (!first)
			return;
		batch_lapse(model, first->token);
	}
}

/* Returns whether the task is on lease. One whose lease has ended waits from now on. */
static bool is_on_lease(struct model *model, const struct task *task)
{
	const struct run *run = run_of(model, task);

	if (run && run->lease_end <= now_ms(model)) {
		batch_lapse(model, run->token);
		return false;
	}
	return run;
}

/* Returns how much of a slow rate may be taken at once: one task, and half the time of another. */
static int64_t room_of(const struct rule *rule)
{
	return per_us / rule->rate * 3 / 2;
}

static void node_limit(struct model *model, int index)
{
	const struct rule *rule = rule_of(model, index);
	struct node *node = &model->nodes[index];

	node->allowed = rule->is_paused ? 0 : RUNS;
	node->again = model->now_us + 10000000;
	if (rule->most && !rule->is_paused) {
		int free = rule->most - places_of(model, index);

		node->allowed = free > 0 ? free : 0;
	}
	if (rule->rate && !rule->is_paused) {
		int64_t each = per_us / rule->rate;
		int64_t end = model->now_us + room_of(rule);
		int count;

		if (node->used < model->now_us)
			node->used = model->now_us;
		if (node->used > end)
			node->used = end;
		count = (int)((end - node->used) / each);
		if (count <= node->allowed) {
			node->allowed = count;
			node->again = node->used + (count + 1) * each - room_of(rule);
		}
	}
}

/* Notes that a task has begun. The rate must hold since each earlier begin. */
static void node_begin(struct model *model, int index)
{
	const struct rule *rule = rule_of(model, index);
	struct node *node = &model->nodes[index];

	if (!rule->rate)
		return;
	node->used += per_us / rule->rate;
	node->begins[node->begin_count++] = model->now_us;
	for (int i = 0; i < node->begin_count; i++)
		assert_true((node->begin_count - i) * (per_us / rule->rate) <=
			    model->now_us - node->begins[i] + room_of(rule));
}

/* Checks that no more tasks of the node are on lease than may, as it has got some. */
static void node_check(const struct model *model, int index)
{
	const struct rule *rule = rule_of(model, index);
	int count = 0;

	for (int i = 0; i < KEYS; i++)
		count += model->tasks[i].state == LEASED &&
			 (index == 0 || model->tasks[i].group == index);
	assert_false(rule->is_paused);
	assert_true(!rule->most || count <= rule->most);
}

/* ---- The model's claims ---- */

/* Orders the nodes that have a turn by now. */
static void rotation_begin(struct model *model)
{
	model->count = model->at = 0;
	model->round = 1;
	for (int i = 0; i < GROUPS; i++) {
		struct node *node = &model->nodes[i];
		int at = model->count;

		node->spent = node->round = node->taken = 0;
		node->had_one_before = node->is_kept_back = false;
		if (!node->has_turn || node->turn > model->now_us || (!i && !has_due(model, 0)))
			continue;
		for (; at > 0; at--) {
			int other = model->order[at - 1];

			if (model->nodes[other].turn < node->turn ||
			    (model->nodes[other].turn == node->turn &&
			     strcmp(groups[other], groups[i]) < 0))
				break;
			model->order[at] = other;
		}
		model->order[at] = i;
		model->count++;
	}
}

/* Begins the node's first turn in the present claim: its limits are those of now. */
static void node_begin_turn(struct model *model, int index)
{
	if (index)
		node_limit(model, index);
	if (index == model->cut)
		model->nodes[index].spent = model->cut_spent % weight_of(model, index);
}

/* Keeps the node back if it may begin no more. Returns whether it does. */
static bool node_keep_back(struct node *node, bool is_own)
{
	node->is_kept_back = !is_own && node->taken == node->allowed;
	return node->is_kept_back;
}

/* Takes the next task by turns. Returns it, or -1 if nothing is due. */
static int rotation_take(struct model *model)
{
	for (;;) {
		struct node *node;
		int index;
		int task = -1;
		bool is_kept_back;

		if (model->at >= model->count) {
			if (model->count == 0)
				return -1;
			model->at = 0;
			model->round++;
		}
		index = model->order[model->at];
		node = &model->nodes[index];
		if (!node->round)
			node_begin_turn(model, index);
		node->had_one_before |= node->round > 0 && node->round < model->round;
		node->round = model->round;
		is_kept_back = has_due(model, index) && node_keep_back(node, !index);
		if (!is_kept_back && has_due(model, index)) {
			task = first_task(model, index);
			model->tasks[task].state = TAKEN;
			node->spent++;
			node->taken++;
			is_kept_back = has_due(model, index) && node_keep_back(node, !index);
		}
		if (is_kept_back || !has_due(model, index)) {
			node->spent = 0;
			memmove(&model->order[model->at], &model->order[model->at + 1],
				(size_t)(--model->count - model->at) * sizeof(model->order[0]));
		} else if (node->spent == weight_of(model, index)) {
			node->spent = 0;
			model->at++;
		}
		if (task >= 0)
			return task;
	}
}

/* Returns how many nodes have their next turns after this one's. */
static int rotation_behind(const struct model *model, int index)
{
	for (int i = 0; i < model->count; i++)
		if (model->order[i] == index)
			return (model->at + model->count - i - 1) % model->count;
	return 0;
}

/* Notes the next turn of a node that took part in this claim. */
static void node_rest(struct model *model, int index)
{
	struct node *node = &model->nodes[index];
	int first = first_task(model, index);

	if (node->is_kept_back) {
		node->turn = node->again;
		return;
	}
	if (node->spent > 0 && !node->had_one_before)
		return;
	if (has_due(model, index) || index == 0) {
		node->turn = model->now_us - rotation_behind(model, index);
		return;
	}
	node->has_turn = first >= 0;
	if (node->has_turn)
		node->turn = model->tasks[first].due * 1000;
}

static void rotation_end(struct model *model)
{
	int cut = -1;
	bool cut_has_come = false;

	for (int i = 0; i < GROUPS; i++) {
		struct node *node = &model->nodes[i];

		if (node->round == 0)
			continue;
		cut_has_come |= i == model->cut;
		if (node->spent > 0) {
			cut = i;
			model->cut_spent = node->spent;
		}
		node_rest(model, i);
	}
	if (cut >= 0 || cut_has_come)
		model->cut = cut;
}

/* Begins a run of the task, in that slot of the present batch. */
static void task_begin(struct model *model, int index, int slot, int64_t lease_end)
{
	struct task *task = &model->tasks[index];

	task->state = LEASED;
	task->attempts++;
	task->token = model->token;
	model->runs[model->run_count++] = (struct run){.task = index,
						       .group = task->group,
						       .attempts = task->attempts,
						       .token = task->token,
						       .slot = slot,
						       .lease_end = lease_end,
						       .has_place = has_rules(model)};
	if (has_rules(model))
		node_begin(model, 0);
	if (task->group)
		node_begin(model, task->group);
}

/* Takes up to `most` tasks, one after the other. Returns how many these are. */
static int model_take(struct model *model, int most, int taken[])
{
	int count = 0;

	if (model->uses_groups)
		rotation_begin(model);
	while (count < most) {
		int task = model->uses_groups  ? rotation_take(model)
			   : has_due(model, 0) ? first_task(model, 0)
					       : -1;

		if (task < 0)
			break;
		model->tasks[task].state = TAKEN;
		taken[count++] = task;
	}
	if (model->uses_groups)
		rotation_end(model);
	return count;
}

/* Returns how many of the tasks have keys and records of at most that size together. */
static int count_fitting(const struct model *model, const int tasks[], int count, int bytes)
{
	int size = 0;

	for (int i = 0; i < count; i++) {
		const struct task *task = &model->tasks[tasks[i]];

		size += (int)strlen("k001700000000000 9999 0\n\n");
		size += task->latest ? (int)strlen(" 1700000000000") : 0;
		size += task->group ? (int)strlen("G \n") + (int)strlen(groups[task->group]) : 0;
		if (size > bytes)
			return i;
	}
	return count;
}

/* Begins up to `most` tasks whose sizes are at most `bytes`. Returns how many. */
static int model_claim(struct model *model, int most, int bytes, int64_t lease_end, int begun[])
{
	static struct model before;
	int count;
	int fit;

	leases_lapse(model);
	if (has_rules(model)) {
		node_limit(model, 0);
		if (model->nodes[0].allowed < most)
			most = model->nodes[0].allowed;
	}
	if (!most)
		return 0;
	before = *model;
	count = model_take(model, most, begun);
	fit = count_fitting(model, begun, count, bytes);
	if (fit < count) {
		*model = before;
		count = model_take(model, fit, begun);
	}
	for (int i = 0; i < count; i++)
		task_begin(model, begun[i], i, lease_end);
	for (int i = 0; i < count; i++) {
		node_check(model, 0);
		if (model->tasks[begun[i]].group)
			node_check(model, model->tasks[begun[i]].group);
	}
	return count;
}

/* ---- Steps of a history ---- */

/* Returns the latest due time of a task that is added in place of another. */
static int64_t latest_of(const struct model *model, const struct task *replaced, int64_t latest_us)
{
	if (latest_us == 0)
		return 0;
	return replaced->state == WAITING && replaced->attempts == 0 && replaced->latest
		       ? replaced->latest
		       : (model->now_us + latest_us + 999) / 1000;
}

static void step_add(struct model *model)
{
	int index = (int)random_below(&model->random, KEYS);
	int group = (int)random_below(&model->random, GROUPS);
	int64_t due = now_ms(model) + random_between(&model->random, 0, 3) * 5;
	int64_t chosen_us = random_between(&model->random, -20000, 20000);
	int64_t latest_us = chosen_us > 0 ? chosen_us : 0;
	int64_t latest = latest_of(model, &model->tasks[index], latest_us);
	char limit[24] = "";
	redisReply *reply;

	if (latest_us)
		snprintf(limit, sizeof(limit), "|%" PRId64, latest_us);
	reply = run(model, &script_add, "%s|k%02d|%" PRId64 "|0|9999 0\n%s%s%s\n%s",
		    latest_us   ? "al"
		    : group > 0 ? "ag"
				: "ap",
		    index, due, group > 0 ? "G " : "", groups[group], group > 0 ? "\n" : "", limit);
	if (latest && latest < due)
		due = latest > now_ms(model) ? latest : now_ms(model);
	assert_int_equal(reply->element[0]->integer, due);
	freeReplyObject(reply);
	model->tasks[index] = (struct task){.group = group, .own = due, .latest = latest};
	model_put(model, index, due);
}

/* Adds tasks of groups by one call. */
static void step_add_many(struct model *model)
{
	const char *words[5 * ADD_MOST];
	char key[ADD_MOST][8];
	char at[ADD_MOST][24];
	char record[ADD_MOST][64];
	int first = (int)random_below(&model->random, KEYS);
	int count = (int)random_between(&model->random, 2, ADD_MOST);
	redisReply *reply;

	for (int i = 0; i < count; i++) {
		int index = (first + i) % KEYS;
		int group = (int)random_between(&model->random, 1, GROUPS - 1);
		int64_t due = now_ms(model) + random_between(&model->random, 0, 3) * 5;
		const char *task[5] = {"ag", key[i], at[i], "0", record[i]};

		key_write(key[i], index);
		snprintf(at[i], sizeof(at[i]), "%" PRId64, due);
		snprintf(record[i], sizeof(record[i]), "9999 0\nG %s\n\n", groups[group]);
		memcpy(&words[5 * i], task, sizeof(task));
		model->tasks[index] = (struct task){.group = group, .due = due};
	}
	reply = script_call(model->context, &script_add, 5 * count, words);
	for (int i = 0; i < count; i++) {
		int index = (first + i) % KEYS;

		assert_int_equal(reply->element[i]->integer, model->tasks[index].due);
		model->tasks[index].own = model->tasks[index].due;
		model_put(model, index, model->tasks[index].due);
	}
	freeReplyObject(reply);
}

static void step_move(struct model *model)
{
	int index = (int)random_below(&model->random, KEYS);
	struct task *task = &model->tasks[index];
	int64_t due = now_ms(model) + random_between(&model->random, 0, 3) * 5;
	redisReply *reply = run(model, &script_add, "rm|k%02d|%" PRId64 "|0", index, due);

	assert_int_equal(reply->element[0]->integer, is_on_lease(model, task) ? -3
						     : task->state == ABSENT  ? -2
									      : due);
	freeReplyObject(reply);
	if (task->state == WAITING) {
		task->own = due;
		model_put(model, index, due);
	}
}

static void step_cancel(struct model *model)
{
	int index = (int)random_below(&model->random, KEYS);
	struct task *task = &model->tasks[index];
	redisReply *reply = run(model, &script_cancel, "k%02d|0|||0", index);

	assert_int_equal(reply->integer, is_on_lease(model, task) ? -3
					 : task->state == ABSENT  ? -2
								  : 0);
	freeReplyObject(reply);
	if (task->state == WAITING)
		*task = (struct task){0};
}

/* Returns the letter that a report of the run is answered with. */
static const char *answer_of(struct model *model, const struct run *run)
{
	const struct task *task = &model->tasks[run->task];

	return run_of(model, task) == run ? "o" : task->state == ABSENT ? "g" : "s";
}

/* Adds the end of a run to the words of a call. It may be one of a task that was replaced or taken
 * over. */
static void end_write(const struct run *run, char kind, int64_t wait, char text[TEXT_SIZE])
{
	char *end = text + strlen(text);
	size_t room = (size_t)(text + TEXT_SIZE - end);
	int used = snprintf(end, room, "%sb|%" PRId64 "|%d|", *text ? "|" : "", run->token,
			    run->slot + 1);

	end += used;
	room -= (size_t)used;
	if (kind == 'd')
		snprintf(end, room, "d|1|k%02d", run->task);
	else if (kind == 'p' && run->attempts == 1)
		snprintf(end, room, "w|k%02d||%" PRId64, run->task, wait);
	else
		snprintf(end, room, "w|k%02d|%u|%" PRId64, run->task, run->attempts - (kind != 'w'),
			 wait);
}

/* Takes the end of a run that its task still has. */
static void end_take(struct model *model, const struct run *run, char kind, int64_t wait)
{
	struct task *task = &model->tasks[run->task];

	if (kind == 'd') {
		*task = (struct task){0};
		return;
	}
	model_put(model, run->task, wait ? (model->now_us + 999) / 1000 + wait : now_ms(model));
	task->attempts -= kind != 'w';
	if (kind == 'r' && !task->attempts)
		task->own = task->due;
}

/* Reports some runs by one call. Some of them are reported again later. */
static void step_end(struct model *model)
{
	int first = (int)random_below(&model->random, (uint64_t)model->run_count + 1);
	int most = (int)random_between(&model->random, 1, END_MOST);
	char text[TEXT_SIZE] = "";
	char answers[END_MOST + 1] = "";
	char kinds[END_MOST];
	int64_t waits[END_MOST];
	bool is_reported[KEYS] = {false};
	redisReply *reply;
	int count = 0;

	for (; count < most && first + count < model->run_count; count++) {
		struct run *run = &model->runs[first + count];

		if (is_reported[run->task])
			break;
		is_reported[run->task] = true;
		kinds[count] = "dwrp"[random_below(&model->random, 4)];
		waits[count] = random_between(&model->random, 0, 3) * 5;
		strcat(answers, answer_of(model, run));
		end_write(run, kinds[count], waits[count], text);
	}
	if (!count)
		return;
	reply = run(model, &script_finish, "%s", text);
	assert_string_equal(reply->str, answers);
	freeReplyObject(reply);
	for (int i = 0; i < count; i++)
		if (answers[i] == 'o')
			end_take(model, &model->runs[first + i], kinds[i], waits[i]);
	for (int i = count - 1; i >= 0; i--) {
		if (!model->runs[first + i].is_over)
			run_leave(model, &model->runs[first + i]);
		if (!random_once_in(&model->random, 4))
			model->runs[first + i] = model->runs[--model->run_count];
	}
}

/* Reports all runs of a batch from one on as done. */
static void step_done(struct model *model)
{
	int at = (int)random_below(&model->random, (uint64_t)model->run_count + 1);
	int64_t token = model->runs[at].token;
	int slot = model->runs[at].slot;
	struct run *runs[LIMIT_MOST];
	char keys[TEXT_SIZE] = "";
	char answers[LIMIT_MOST + 1] = "";
	redisReply *reply;
	int count = 0;

	for (int i = 0; at < model->run_count && i < model->run_count; i++)
		if (model->runs[i].token == token && model->runs[i].slot == slot + count) {
			runs[count] = &model->runs[i];
			snprintf(keys + strlen(keys), 8, "|k%02d", runs[count]->task);
			strcat(answers, answer_of(model, runs[count++]));
			i = -1;
		}
	if (!count)
		return;
	reply = run(model, &script_finish, "b|%" PRId64 "|%d|d|%04d%s", token, slot + 1, count,
		    keys);
	assert_string_equal(reply->str, answers);
	freeReplyObject(reply);
	for (int i = 0; i < count; i++) {
		if (answers[i] == 'o')
			model->tasks[runs[i]->task] = (struct task){0};
		if (!runs[i]->is_over)
			run_leave(model, runs[i]);
	}
}

/* Extends the lease of a batch, for one of its runs or for any. */
static void step_extend(struct model *model)
{
	int index = (int)random_below(&model->random, (uint64_t)model->run_count + 1);
	const struct run *its = &model->runs[index];
	int64_t lease_ms = random_between(&model->random, 1, 20);
	bool any = random_once_in(&model->random, 2);
	const char *answer;
	redisReply *reply;

	if (index == model->run_count)
		return;
	answer = answer_of(model, its);
	for (int i = 0; any && i < model->run_count; i++)
		if (model->runs[i].token == its->token && *answer_of(model, &model->runs[i]) == 'o')
			answer = "o";
	reply = run(model, &script_extend, "%" PRId64 "|%" PRId64 "|%d|k%02d", lease_ms, its->token,
		    any ? 0 : its->slot + 1, its->task);
	assert_string_equal(reply->str, answer);
	freeReplyObject(reply);
	for (int i = 0; *answer == 'o' && i < model->run_count; i++)
		if (model->runs[i].token == its->token)
			model->runs[i].lease_end = now_ms(model) + lease_ms;
}

/* ---- Limits ---- */

static void rule_choose(struct model *model, int index)
{
	struct rule *rule = &model->rules[index];

	*rule = (struct rule){.exists = random_once_in(&model->random, 2),
			      .weight = index ? (int)random_between(&model->random, 1, 3) : 0,
			      .most = random_once_in(&model->random, 2)
					      ? (int)random_between(&model->random, 1, 4)
					      : 0,
			      .rate = random_once_in(&model->random, 3)
					      ? (int)random_between(&model->random, 1, 4)
					      : 0,
			      .is_paused = random_once_in(&model->random, 12)};
	if (!rule->exists)
		*rule = (struct rule){0};
}

/* Gives places to all runs, or takes all back. */
static void places_follow(struct model *model)
{
	for (int i = 0; i < model->run_count; i++)
		model->runs[i].has_place = !model->runs[i].is_over && has_rules(model);
}

static void step_limit(struct model *model)
{
	int index = (int)random_below(&model->random, RULES);
	const struct rule *rule = &model->rules[index];
	char text[64] = "";

	rule_choose(model, index);
	if (rule->exists)
		snprintf(text, sizeof(text), "%d %d %d %d %d", rule->weight, rule->most, rule->rate,
			 PER_MS, rule->is_paused);
	freeReplyObject(
		run(model, &script_limit, "%s|%s", index == STAR ? "*" : groups[index], text));
	places_follow(model);
	if (index != STAR)
		node_wake(model, index);
	for (int i = 0; i < GROUPS; i++)
		model->nodes[i].begin_count = 0;
}

/* Compares a claimed task with the model. */
static void job_check(const struct model *model, const redisReply *reply, int i, int index)
{
	const struct task *task = &model->tasks[index];
	redisReply *const *parts = reply->element;
	char *note = parts[5]->elements ? parts[5]->element[i]->str : "";
	int64_t attempt = *note ? strtoll(note, &note, 10) : 1;
	char key[8];

	key_write(key, index);
	assert_string_equal(parts[3]->element[i]->str, key);
	assert_int_equal(attempt, task->attempts);
	/* Both begin with a due time now. */
	assert_true(strtoll(*note ? note : parts[4]->element[i]->str, NULL, 10) ==
		    (*note ? task->due : task->own));
}

static void step_claim(struct model *model)
{
	int most = (int)random_between(&model->random, 1, LIMIT_MOST);
	int64_t lease_ms = random_once_in(&model->random, 2)
				   ? 86400000
				   : random_between(&model->random, 1, 20);
	int bytes_most = random_once_in(&model->random, 4)
				 ? (int)random_between(&model->random, 1, 200)
				 : 1000000;
	int begun[LIMIT_MOST];
	int count;
	redisReply *reply;

	reply = run(model, &script_claim, "%d|%" PRId64 "|%d||0|0|0|0", most, lease_ms, bytes_most);
	if (reply->element[2]->integer)
		model->token = reply->element[2]->integer;
	count = model_claim(model, most, bytes_most, now_ms(model) + lease_ms, begun);
	assert_int_equal(reply->element[4]->elements, count);
	for (int i = 0; i < count; i++)
		job_check(model, reply, i, begun[i]);
	freeReplyObject(reply);
}

static int64_t number_at(const struct model *model, const char *format, const char *name)
{
	redisReply *reply = redisCommand(model->context, format, name);
	int64_t number = reply->type == REDIS_REPLY_INTEGER  ? reply->integer
			 : reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10)
							     : 0;

	freeReplyObject(reply);
	return number;
}

/* Compares the turns and places that the scripts have written with the model. */
static void check(const struct model *model)
{
	int queued = 0;

	for (int i = 0; i < GROUPS; i++) {
		redisReply *reply = redisCommand(model->context, "ZSCORE {t/0}turns %s", groups[i]);

		assert_int_equal(reply->type == REDIS_REPLY_STRING, model->nodes[i].has_turn);
		if (reply->type == REDIS_REPLY_STRING)
			assert_true(strtoll(reply->str, NULL, 10) == model->nodes[i].turn);
		freeReplyObject(reply);
		if (i)
			assert_int_equal(number_at(model, "HGET {t/0}busy %s", groups[i]),
					 places_of(model, i));
	}
	assert_int_equal(number_at(model, "HGET {t/0}busy %s", ""), places_of(model, 0));
	for (int i = 0; i < KEYS; i++)
		queued += model->tasks[i].state == WAITING && model->tasks[i].group > 0;
	assert_int_equal(number_at(model, "ZCARD {t/0}queue", NULL), queued);
}

/* Compares all tasks, as a listing shows them, with the model. */
static void check_list(struct model *model)
{
	redisReply *reply = run(model, &script_list, "0|0|100");
	int64_t last = 0;
	size_t count = 0;

	for (size_t i = 2; i < reply->elements; i += 5, count++) {
		redisReply **item = reply->element + i;
		struct task *task = &model->tasks[atoi(item[0]->str + 1)];
		const struct run *its = run_of(model, task);
		int64_t score = strtoll(item[1]->str, NULL, 10);
		char text[48] = "";

		if (its)
			snprintf(text, sizeof(text), "%u:%" PRId64, its->attempts, its->token);
		else if (task->attempts)
			snprintf(text, sizeof(text), "%u", task->attempts);
		assert_string_equal(item[2]->str, text);
		assert_true(score >= last);
		last = score;
		assert_true(score == (its ? its->lease_end : task->due));
	}
	for (int i = 0; i < KEYS; i++)
		count -= model->tasks[i].state != ABSENT;
	assert_int_equal(count, 0);
	freeReplyObject(reply);
}

static void history_run(struct model *model)
{
	bool has_limits = !random_once_in(&model->random, 3);

	freeReplyObject(redisCommand(model->context, "FLUSHDB"));
	memset(model->tasks, 0, sizeof(model->tasks));
	memset(model->rules, 0, sizeof(model->rules));
	memset(model->nodes, 0, sizeof(model->nodes));
	model->uses_groups = false;
	model->token = model->run_count = 0;
	model->cut = -1;
	clock_set(model, INT64_C(1700000000000000) + random_between(&model->random, 0, 999999));
	for (int i = 0; i < STEPS; i++) {
		uint64_t kind = random_below(&model->random, has_limits ? 15 : 14);

		clock_set(model, model->now_us + random_between(&model->random, 3, 6000));
		if (kind < 1)
			step_add_many(model);
		else if (kind < 5)
			step_add(model);
		else if (kind < 6)
			step_move(model);
		else if (kind < 7)
			step_cancel(model);
		else if (kind < 9)
			step_end(model);
		else if (kind < 12)
			step_claim(model);
		else if (kind < 13)
			step_extend(model);
		else if (kind < 14)
			step_done(model);
		else
			step_limit(model);
		check(model);
		check_list(model);
	}
}

STORED(fixture, scripts_take_turns_as_the_model_does)
{
	const char *given = getenv("HISTORIES");
	int count = given ? atoi(given) : HISTORIES;
	uint64_t seed = seed_choose();
	struct model model = {.context = redisConnect("127.0.0.1", fixture->server.port)};

	assert_int_equal(model.context->err, 0);
	for (int i = 0; i < count; i++) {
		model.random = random_from(seed, (uint64_t)i);
		history_run(&model);
	}
	redisFree(model.context);
}

/* Claims a task with that note, or none, at that time. Returns when to look next. */
static int64_t expect(struct model *model, int64_t now_us, const char *number, const char *note)
{
	redisReply *reply;
	int64_t next;

	clock_set(model, now_us);
	reply = run(model, &script_claim, "9|60000|1000000|w|%s|0|0", number);
	assert_int_equal(reply->element[3]->elements, note != NULL);
	if (note)
		assert_memory_equal(reply->element[5]->element[0]->str, note, strlen(note));
	next = reply->element[1]->integer;
	freeReplyObject(reply);
	return next;
}

/* A claim whose reply was lost took the occurrence, and then the clock is set back. */
STORED(fixture, occurrence_that_is_given_back_does_not_begin_before_its_time)
{
	static const int64_t due = INT64_C(1700000000000000);
	struct model model = {.context = redisConnect("127.0.0.1", fixture->server.port)};

	freeReplyObject(redisCommand(model.context, "FLUSHDB"));
	clock_set(&model, due);
	freeReplyObject(
		run(&model, &script_add, "ae|k|1700000000000|0|9 0\n\n|one 1000|1700000000000"));
	expect(&model, due, "1|0", "1 1700000000000 ");
	expect(&model, due - 500000, "1|1", NULL);
	expect(&model, due, "2|0", "1 1700000000000 ");
	/* The time of another was computed by a clock that was an hour ahead. */
	expect(&model, due + 3600000000, "3|0", "2 1700000060000 ");
	freeReplyObject(run(&model, &script_add, "ae|h|1700003599000|0|9 0\n\n|one 1000|0"));
	freeReplyObject(redisCommand(model.context, "HSET {t/0}every h %s",
				     "1700003599000 1700003598000 one 1000"));
	expect(&model, due, "4|0", "1 1700000000000 1700003599000 ");
	expect(&model, due + 1000000, "4|1", "1 1700000001000 1700003599000 ");
	redisFree(model.context);
}

/* A claim that is cut by bytes takes fewer tasks than it has found, of the same turns. */
STORED(fixture, each_task_of_a_claim_that_is_cut_comes_with_its_own_record)
{
	enum { PAUSED = 12, SINGLE = 30, TASKS = 2 * SINGLE };
	struct model model = {.context = redisConnect("127.0.0.1", fixture->server.port)};
	int left[] = {TASKS, TASKS};

	for (int is_paused = 0; is_paused < 2; is_paused++) {
		freeReplyObject(redisCommand(model.context, "FLUSHDB"));
		clock_set(&model, INT64_C(1700000000000000));
		for (int i = 0; i < PAUSED; i++) {
			freeReplyObject(
				run(&model, &script_add, "ag|p%d|1|0|9 0\nG a%d\n\n", i, i));
			freeReplyObject(is_paused ? run(&model, &script_limit, "a%d|1 0 0 0 1", i)
						  : run(&model, &script_cancel, "p%d|0|||0", i));
		}
		for (int i = 0; i < TASKS; i++)
			freeReplyObject(run(&model, &script_add,
					    "ag|k%02d|1|0|9 0\nG g%02d\n\nk%02d", i, i / 2, i));
		for (int claim = 0; claim < TASKS; claim++) {
			redisReply *reply = run(&model, &script_claim, "100|60000|%d|w|%d|0|0|0",
						is_paused ? 200 : 1000, claim);

			for (size_t i = 0; i < reply->element[3]->elements; i++, left[is_paused]--)
				assert_string_equal(
					strrchr(reply->element[4]->element[i]->str, '\n') + 1,
					reply->element[3]->element[i]->str);
			freeReplyObject(reply);
		}
		assert_int_equal(left[is_paused], 0);
	}
	/* A claim of nine looks at eleven turns, and the next one at others. */
	freeReplyObject(run(&model, &script_add, "ae|z|1700000010000|0|9 0\nG z\n\n|one 1000|0"));
	assert_true(expect(&model, INT64_C(1700000010000000), "0|0", NULL) == now_ms(&model));
	expect(&model, model.now_us, "0|0", "1 1700000010000 ");
	redisFree(model.context);
}

FIXTURE_FILE
