/* SPDX-License-Identifier: MIT */
/* Timers run again and again by a schedule. */
#include "support/test.h"

#include "support/script.h"

SCRIPT(everywhere, russell_luo_schedule_runs_after_each_gap_and_ends,
       "schedule p 1 5 10 50 100 500 1000; pass 1200 -> p@1 p@5 p@10 p@50 p@100 p@500 p@1000;"
       "asked p = 0 1 5 10 50 100 500 1000; stop p = NOT_FOUND; pending = 0; stop; idle")
SCRIPT(everywhere, next_is_asked_with_now_and_then_with_the_deadline_of_the_run,
       "advance 5+5ns; schedule p 7+3ns 9-1ns 10 20; asked p = 5.000005; advance 1-5ns;"
       "pass 50 -> p@8 p@9/8.999999 p@10/10 p@20; asked p = 5.000005 7.000003 8.999999 10 20;"
       "pending = 0")
SCRIPT(everywhere, schedule_that_does_not_advance_at_first_is_invalid,
       "advance 5; schedule p 5 = NOT_FOUND; asked p = 5; schedule p 5-1ns = NOT_FOUND;"
       "schedule p 0 = NOT_FOUND; schedule p -1 = NOT_FOUND; schedule p least = NOT_FOUND;"
       "asked p = 5; pass 9; stop; idle")
SCRIPT(everywhere, schedule_that_no_longer_advances_ends,
       "schedule a 2 4 4 99; schedule b 2 4 4-1ns 99; schedule c 2 least 99;"
       "pass 120 -> a@2 a@4 b@2 b@4 c@2; asked a = 0 2 4; asked b = 0 2 4; asked c = 0 2;"
       "stop a = NOT_FOUND; stop b = NOT_FOUND; stop c = NOT_FOUND; stop; idle")
SCRIPT(everywhere, schedule_to_never_stays_pending,
       "schedule p 2 never; schedule q never; pass 20 -> p@2; pending = 2;"
       "stop -> p:stopped q:stopped")
SCRIPT(pool, schedule_runs_what_it_asks_for_in_the_past_now,
       "hold p; schedule p 10 10+1ns 20 60; clock 10; reached p; clock 40; go p;"
       "wait -> p@10 p@50 p@50; pass 20 -> p@60; asked p = 0 10 10.000001 20 60")
SCRIPT(everywhere, schedule_goes_on_from_where_it_is_reset_to,
       "schedule p 10 30; pass 3; reset p 2; pass 50 -> p@5 p@30; asked p = 0 5 30")
SCRIPT(everywhere, stopped_schedule_is_not_asked_again,
       "schedule p 10 30 40; pass 12 -> p@10; stop_wait p; pass 50; asked p = 0 10")
SCRIPT(everywhere, schedule_that_stops_itself_is_not_asked_again,
       "in p: stop p = REARMED; schedule p 10 30; pass 50 -> p@10; asked p = 0")
SCRIPT(everywhere, schedule_that_resets_itself_is_asked_after_the_next_run,
       "in p 1: reset p 5; schedule p 10 30; pass 12 -> p@10; asked p = 0;"
       "pass 30 -> p@15 p@30; asked p = 0 15 30")
SCRIPT(everywhere, schedule_may_be_stopped_while_it_is_asked,
       "asking p 3: stop p = REARMED, reset p 1 = NOT_FOUND; schedule p 10 20 30 40;"
       "pass 50 -> p@10 p@20; asked p = 0 10 20; pending = 0")
SCRIPT(everywhere, reset_does_not_bring_back_a_schedule_that_its_next_is_ending,
       "asking p 2: reset p 1; schedule p 10 10; pass 20 -> p@10; asked p = 0 10;"
       "reset p 1 = NOT_FOUND; stop p = NOT_FOUND; pending = 0")
SCRIPT(everywhere, next_does_not_wait_for_itself,
       "asking p 2: stop_wait p = REARMED; schedule p 10 20 30; pass 50 -> p@10; pending = 0")
