/* SPDX-License-Identifier: MIT */
/* This tests the latest due time of tasks that are added repeatedly. */
#include "support/steps.h"

#define OF_A_GROUP " group g"

#define WITHOUT_A_PAUSE(group)                                                     \
	"add k in 1s latest 3s" group " = 1s; pass 900ms; claim = none;"           \
	"add k in 1s latest 3s" group " = 1s900ms; pass 900ms; claim = none;"      \
	"add k in 1s latest 3s" group " = 2s800ms; pass 900ms; claim = none;"      \
	"add k in 1s latest 3s body last" group " = 3s; pass 299ms; claim = none;" \
	"pass 1ms; claim = k#1@3s; get k body = last; done k; pass 6s; claim = none"
STEPS(adds_without_a_pause_run_once_at_the_latest_time, WITHOUT_A_PAUSE(""))
STEPS(adds_to_a_group_without_a_pause_run_once_at_the_latest_time, WITHOUT_A_PAUSE(OF_A_GROUP))

#define BURST(group)                                                                    \
	"add k in 1s latest 3s" group " = 1s; pass 800ms; claim = none;"                \
	"add k in 1s latest 3s" group " = 1s800ms; pass 700ms;"                         \
	"add k in 1s latest 3s" group " = 2s500ms; pass 999ms; claim = none;"           \
	"pass 1ms; claim = k#1@2s500ms; done k; clock 10s;"                             \
	"add k in 1s latest 3s" group " = 11s; pass 900ms; add k in 1s latest 3s" group \
	" = 11s900ms; get k latest_due = 13s"
STEPS(burst_runs_once_a_delay_after_its_last_add, BURST(""))
STEPS(burst_of_a_group_runs_once_a_delay_after_its_last_add, BURST(OF_A_GROUP))

STEPS(first_add_fixes_the_latest_time,
      "add k in 1s latest 500ms = 500ms; pass 100ms; add k in 1s latest 1m = 500ms; pass 600ms;"
      "add k in 1s latest 1m body last = 700ms; claim = k#1@700ms; get k body = last")
STEPS(task_that_has_begun_is_replaced_with_a_new_latest_time,
      "add k in 1s latest 500ms = 500ms; pass 500ms; claim = k; pass 100ms;"
      "add k in 1s latest 1500ms = 1s600ms; pass 900ms; add k in 1s latest 1500ms = 2s100ms;"
      "done k = STALE; pass 600ms; claim = k#1@2s100ms")
STEPS(task_that_is_retried_is_replaced_with_a_new_latest_time,
      "add k in 1s latest 500ms = 500ms; pass 500ms; claim = k; retry k in 1m; pass 100ms;"
      "add k in 1s latest 1500ms = 1s600ms; pass 900ms; add k in 1s latest 1500ms = 2s100ms;"
      "done k = STALE; pass 600ms; claim = k#1@2s100ms")

#define WITHOUT_A_LIMIT(group)                                                                   \
	"add k in 1s latest 500ms" group " = 500ms; pass 100ms; add k in 1s" group " = 1s100ms;" \
	"pass 100ms; add k in 1s latest 700ms" group " = 900ms;"
#define MOVED(group)                                                                         \
	"add k in 1s latest 3s" group " = 1s; move k at 5s = 5s; pass 2500ms; claim = none;" \
	"add k in 1s latest 3s body last" group                                              \
	" = 3s; pass 500ms; claim = k#1@3s; get k body = last"
STEPS(add_without_a_limit_removes_it, WITHOUT_A_LIMIT(""))
STEPS(add_without_a_limit_removes_it_in_a_group, WITHOUT_A_LIMIT(OF_A_GROUP))
STEPS(move_passes_the_latest_time_and_keeps_it, MOVED(""))
STEPS(move_passes_the_latest_time_and_keeps_it_in_a_group, MOVED(OF_A_GROUP))

STEPS(latest_may_be_less_than_the_delay_or_the_longest,
      "add a in 1h latest 1m = 1m; get a due latest_due = 1m 1m;"
      "add b in 1h latest 876000h = 1h; get b latest_due = 876000h; add c in 1h;"
      "get c latest_due = none")
STEPS(modes_apply_with_a_limit,
      "add a mode replace in 1h latest 1m = NOT_FOUND; add a mode new in 1h latest 1m;"
      "add a mode new in 1h latest 1m = EXISTS; add a mode replace in 1h latest 1m = 1m")
STEPS(tasks_of_a_batch_have_their_limits,
      "add a in 1h latest 1m , plain in 1h , grouped in 1h group g ,"
      " b in 1h latest 1m group g , a in 1s latest 1h , b = 1m 1h 1h 1m 1s 0;"
      "get a due latest_due = 1s 1m; get plain latest_due = none;"
      "get grouped latest_due = none; get b latest_due = none")
STEPS(grace_applies_beside_a_limit,
      "add a latest 1m grace 2s; pass 3s; claim = none; get a = NOT_FOUND; add a latest 1m;"
      "pass 1h; claim = a#1")
STEPS(restored_task_has_its_limit,
      "restore a due 1s latest_due 1m; get a latest_due = 1m; add a in 1h latest 24h = 1m;"
      "restore a latest_due -1893456000001ms = INVALID")

STORED(one_shard, latest_time_after_the_year_9999_is_refused)
{
	const struct tw_redis_info info = {.task = {.key = "a", .key_size = 1},
					   .latest_due_ms = INT64_C(253402300800000)};

	assert_int_equal(tw_redis_restore(fixture->redis, &info, 1, NULL), TW_INVALID);
}

CLOCKED_FILE
