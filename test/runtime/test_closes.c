/* SPDX-License-Identifier: MIT */
/*
 * Closing an alarm returns at once. Its `closed` function is called once, when no run is under way
 * or to come. Runs end each other's timers, and wait for none.
 */
#include "support/test.h"

#include "support/script.h"

SCRIPT(everywhere, closed_alarm_runs_no_more_and_says_so_once,
       "alarm x; alarm y; set x 1; close x; close y; advance 10 -> x:closed y:closed")
SCRIPT(everywhere, alarm_may_close_itself,
       "alarm x; in x 1: set x 0, close x, close x = CLOSED; set x 0; wait => x@0 x:closed;"
       "advance 10")

SCRIPT(pool, alarm_is_closed_after_the_run_that_is_under_way,
       "alarm x; hold x; set x 0; clock 0; reached x; close x; clock 10; events = 1; go x;"
       "idle -> x@0 x:closed; pass 10")
/* Each is closed by the `closed` function of the one before it. */
SCRIPT(everywhere, alarms_closed_before_the_end_are_notified_by_then,
       "alarm a; alarm b; alarm c; alarm d; set a 1h; set b 1h; set c 1h; set d 1h;"
       "in a: close b; in b: close c; in c: close d; close a;"
       "destroy -> a:closed b:closed c:closed d:closed")

/* Runs that are all under way end each other's timers: none waits for another. The alarms are
 * closed instead. */
SCRIPT(pool, two_alarms_that_destroy_each_other_do_not_wait_for_ever,
       "alarm a; alarm b; set a 1; set b 1;"
       "in a 1: meet 2, destroy b = RUNNING, meet 4, close b;"
       "in b 1: meet 2, destroy a = RUNNING, meet 4, close a;"
       "pass 1 -> a@1 b@1 a:closed b:closed")
SCRIPT(pool, alarms_that_destroy_each_other_do_not_wait_for_ever,
       "alarm a; alarm b; alarm c; set a 1; set b 1; set c 1;"
       "in a 1: meet 3, destroy b = RUNNING, meet 6, close b;"
       "in b 1: meet 3, destroy c = RUNNING, meet 6, close c;"
       "in c 1: meet 3, destroy a = RUNNING, meet 6, close a;"
       "pass 1 -> a@1 b@1 c@1 a:closed b:closed c:closed",
       .workers = 3)
SCRIPT(pool, two_timers_that_stop_each_other_do_not_wait_for_ever,
       "every p 1 1h; every q 1 1h; in p: meet 2, stop_wait q = REARMED, meet 4;"
       "in q: meet 2, stop_wait p = REARMED, meet 4; pass 1 -> p@1 q@1; pending = 0")
SCRIPT(pool, timers_that_stop_each_other_do_not_wait_for_ever,
       "every p 1 1h; every q 1 1h; every r 1 1h; in p: meet 3, stop_wait q = REARMED, meet 6;"
       "in q: meet 3, stop_wait r = REARMED, meet 6; in r: meet 3, stop_wait p = REARMED, meet 6;"
       "pass 1 -> p@1 q@1 r@1; pending = 0",
       .workers = 3)
SCRIPT(pool, run_may_close_alarms_whose_runs_are_under_way,
       "alarm a; alarm b; alarm c; set a 1; set b 1; set c 1; in b 1: meet 3; in c 1: meet 3;"
       "in a 1: meet 3, close a, close b, close c;"
       "pass 1 -> a@1 b@1 c@1 a:closed b:closed c:closed; pass 1",
       .workers = 3)

/* They are never set, in the queue, put off, stopped but still filed, past their run, and closed by
 * their run. */
SCRIPT(everywhere, alarm_that_is_closed_leaves_its_memory_alone_wherever_it_was,
       "alarm a; alarm b; alarm c; alarm d; alarm e; alarm f; in f 1: close f; close a; set b 1;"
       "close b; set c 1; set d 1; set e 1; set f 1; flush; set c 9; close c; stop d; close d;"
       "idle -> a:closed b:closed c:closed d:closed; advance 1 -> e@1 f@1 f:closed; close e;"
       "advance 20 -> e:closed")
