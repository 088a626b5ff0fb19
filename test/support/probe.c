/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "probe.h"

#include "wait.h"

void probe_run(void *argument)
{
	struct probe *probe = argument;
	struct tw_task task = {.key = "", .value = VALUE(probe->number)};

	probe->runs++;
	record_execute(probe->recorder, &task);
	if (probe->in_run != NULL)
		probe->in_run(probe);
}

void run_nothing(void *argument)
{
}

/* A handle comes back without a key: its probe's number replaces it. Other tasks are unchanged. */
static struct tw_task recorded_task(const struct tw_task *task)
{
	struct tw_task recorded = *task;

	if (task->key != NULL || task->key_size != 0)
		return recorded;
	recorded.key = "";
	if (task->value != NULL)
		recorded.value = VALUE(((struct probe *)task->value)->number);
	return recorded;
}

void probe_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct recorder *recorder = context;
	struct tw_task recorded;

	/* The probe may have been a variable of the case. */
	if (atomic_load(&recorder->is_over))
		return;
	recorded = recorded_task(task);
	record_release(recorder, &recorded, reason);
}

void probe_drain(void *recorder, const struct tw_task *task)
{
	struct tw_task recorded = recorded_task(task);

	record_drain(recorder, &recorded);
}

struct recorder *probes_open(const struct variant *variant)
{
	return recorder_open_with(variant, 10, (struct tw_options){.release = probe_release});
}

void probe_start(struct recorder *recorder, struct probe *probe, uintptr_t number,
		 tw_duration delay)
{
	probe->recorder = recorder;
	probe->number = number;
	assert_status(tw_after_func(recorder->wheel, delay, probe_run, probe, &probe->timer),
		      TW_OK);
	assert_true(probe->timer.id != 0);
}

void probe_repeat(struct recorder *recorder, struct probe *probe, uintptr_t number,
		  tw_duration first, tw_duration period)
{
	probe->recorder = recorder;
	probe->number = number;
	assert_status(tw_every(recorder->wheel, first, period, TW_MISSED_BURST, probe_run, probe,
			       &probe->timer),
		      TW_OK);
	assert_true(probe->timer.id != 0);
}

enum tw_status probe_stop(const struct probe *probe)
{
	return tw_timer_stop(probe->recorder->wheel, probe->timer);
}

enum tw_status probe_stop_wait(const struct probe *probe)
{
	return tw_timer_stop_wait(probe->recorder->wheel, probe->timer);
}

enum tw_status probe_reset(const struct probe *probe, tw_duration delay)
{
	return tw_timer_reset(probe->recorder->wheel, probe->timer, delay);
}

void assert_runs_ms_(struct recorder *recorder, uintptr_t number, const int *times, size_t count,
		     const char *file, int line)
{
	size_t runs = 0;

	for (size_t i = 0; i < event_count(recorder); i++) {
		struct event event = event_at(recorder, i);

		if (event.kind != EVENT_EXECUTE || event.value != VALUE(number))
			continue;
		if (runs < count && event.now != times[runs] * TW_MILLISECOND) {
			print_error("run %zu of %zu was at %lld, not at %d ms\n", runs,
				    (size_t)number, (long long)event.now, times[runs]);
			_fail(file, line);
		}
		runs++;
	}
	if (runs != count) {
		print_error("timer %zu has run %zu times, not %zu\n", (size_t)number, runs, count);
		_fail(file, line);
	}
}
