/* SPDX-License-Identifier: MIT */
/* Inline tasks run in the order of deadlines, equal ones of a kind in the order of their sets. */
#include "support/test.h"

#include "support/script.h"

SCRIPT(ordered, keys_of_a_tick_run_in_the_order_of_deadlines,
       "set e 10.5; set a 10.1; set i 10.9; set c 10.3; set g 10.7; set b 10.2; set d 10.4;"
       "advance 30 => a@11 b@11 c@11 d@11 e@11 g@11 i@11;"
       "set c 10+3ns; set a 10+1ns; set b 10+2ns; advance 30 => a@41 b@41 c@41;"
       "set c 13; set a 11; set b 12; advance 30 => a@71 b@72 c@73")
SCRIPT(ordered, handles_of_a_tick_run_in_the_order_of_deadlines,
       "after e 10.5; after a 10.1; after i 10.9; after c 10.3; after g 10.7; after b 10.2;"
       "advance 30 => a@11 b@11 c@11 e@11 g@11 i@11;"
       "after c 10+3ns; after a 10+1ns; after b 10+2ns; advance 30 => a@41 b@41 c@41;"
       "after c 13; after a 11; after b 12; advance 30 => a@71 b@72 c@73")
SCRIPT(ordered, alarms_of_a_tick_run_in_the_order_of_deadlines,
       "alarm a; alarm b; alarm c; alarm d; alarm e; set e 10.5; set a 10.1; set c 10.3;"
       "set d 10.4; set b 10.2;"
       "advance 30 => a@11 b@11 c@11 d@11 e@11;"
       "set c 10+3ns; set a 10+1ns; set b 10+2ns; advance 30 => a@41 b@41 c@41;"
       "set c 13; set a 11; set b 12; advance 30 => a@71 b@72 c@73")
SCRIPT(ordered, timers_of_all_kinds_run_in_the_order_of_deadlines,
       "alarm x; alarm y; alarm z; set e 10.5; after a 10.1; set y 10.9; set c 10.3; after g 10.7;"
       "set x 10.2; set h 10.8; after d 10.4; set z 10.6;"
       "advance 30 => a@11 x@11 c@11 d@11 e@11 z@11 g@11 h@11 y@11;"
       "set c 10+3ns; after a 10+1ns; set x 10+2ns; advance 30 => a@41 x@41 c@41")
SCRIPT(ordered, timers_of_a_kind_with_one_deadline_run_in_the_order_of_their_sets,
       "set c 10; set a 10; set d 10; set b 10; advance 30 => c@10 a@10 d@10 b@10;"
       "after r 10; after p 10; after s 10; after q 10; advance 30 => r@40 p@40 s@40 q@40;"
       "alarm x; alarm y; alarm z; set z 10; set x 10; set y 10; advance 30 => z@70 x@70 y@70")
/* The later timers lie in other slots than the earlier ones, which come down to theirs. */
SCRIPT(ordered, timers_set_from_far_and_near_run_in_the_order_of_deadlines,
       "set a 1000+1ns; set c 1000+3ns; set e 1000+5ns; set g 1000+7ns; advance 990;"
       "set h 10+8ns; set f 10+6ns; set d 10+4ns; set b 10+2ns;"
       "advance 20 => a@1001 b@1001 c@1001 d@1001 e@1001 f@1001 g@1001 h@1001")
SCRIPT(ordered, timer_moved_or_set_again_takes_its_new_place,
       "set a 10+1ns; set b 10+2ns; set c1 10+3ns; set d 10+4ns; flush; move a 10+4ns;"
       "set c2 10+1ns; advance 11 => c1:replaced c2@11 b@11 d@11 a@11")
SCRIPT(inline, alarms_with_deadlines_that_have_passed_run_in_their_order,
       "alarm a; alarm b; alarm c; alarm d; alarm e; advance 10; set_at e 10-1ns; set_at a 10-9ns;"
       "set_at d 10-3ns; set_at b 10-8ns; set_at c 10-5ns;"
       "advance 0 => a@10 b@10 c@10 d@10 e@10")
SCRIPT(ordered, repeated_run_comes_before_what_the_run_before_it_has_set,
       "in p 1: after q 5; every p 5 5; advance 10 => p@5 p@10 q@10; stop p")
