/* SPDX-License-Identifier: MIT */
/*
 * Static tracepoints of the provider `timingwheel`, for perf, bpftrace and SystemTap:
 *
 *     bpftrace -e 'usdt:./libtimingwheel.so:timingwheel:task_end { @ns = hist(arg1); }' -p PID
 *
 * Each is a nop in the code, and a note in the file that tells where; so they cost nothing while no
 * tracer is attached. Their arguments are values at hand. Without <sys/sdt.h> (systemtap-sdt-dev)
 * where the library is built there are none.
 */
#ifndef TRACE_H
#define TRACE_H

#ifdef __has_include
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#endif
#endif

/* The system's macros leave variable arguments out, which C11 does not know. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

#ifdef DTRACE_PROBE
#define TRACE_PROBE(name) DTRACE_PROBE(timingwheel, name)
#define TRACE_PROBE1(name, a) DTRACE_PROBE1(timingwheel, name, a)
#define TRACE_PROBE2(name, a, b) DTRACE_PROBE2(timingwheel, name, a, b)
#else
#define TRACE_PROBE(name) ((void)0)
#define TRACE_PROBE1(name, a) ((void)(a))
#define TRACE_PROBE2(name, a, b) ((void)(a), (void)(b))
#endif

/* The owner's loop: a turn, and how many commands and changes it applied. */
#define TRACE_TURN_BEGIN() TRACE_PROBE(turn_begin)
#define TRACE_TURN_END(applied) TRACE_PROBE1(turn_end, applied)
/* So many timers have left the wheel to run. */
#define TRACE_EXPIRE(count) TRACE_PROBE1(expire, count)
/* All pending timers were taken away, so many. */
#define TRACE_DRAIN(count) TRACE_PROBE1(drain, count)
#define TRACE_STOP(count) TRACE_PROBE1(stop, count)
/* So many bytes have gone back to the system. */
#define TRACE_GIVE_BACK(bytes) TRACE_PROBE1(give_back, bytes)
/* The owner goes to sleep until that time of its clock (TW_FOREVER: no end), and wakes. */
#define TRACE_SLEEP(until) TRACE_PROBE1(sleep, until)
#define TRACE_WAKE() TRACE_PROBE(wake)

/* Where tasks run: the timer's address tells which; what it took is in nanoseconds. */
#define TRACE_TASK_BEGIN(timer) TRACE_PROBE1(task_begin, timer)
#define TRACE_TASK_END(timer, took) TRACE_PROBE2(task_end, timer, took)
#define TRACE_SLOW_TASK(timer, took) TRACE_PROBE2(slow_task, timer, took)

#endif
