/* SPDX-License-Identifier: MIT */
/*
 * Static tracepoints of the provider `timingwheel`, for perf, bpftrace and SystemTap:
 *
 *     bpftrace -e 'usdt:./libtimingwheel.so:timingwheel:task_end { @ns = hist(arg1); }' -p PID
 *
 * Each is a nop in the code, and a note in the file with its address, so it costs nothing while no
 * tracer is attached. Its arguments are values that the code has anyway. If <sys/sdt.h> (package
 * systemtap-sdt-dev) is missing when the library is built, the library has no tracepoints.
 */
#ifndef TRACE_H
#define TRACE_H

#ifdef __has_include
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#endif
#endif

/* The system's macros leave variable arguments out, which C11 does not allow. The name of clang's
 * warning depends on its version. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wc23-extensions"
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

/* A turn of the owner's loop begins, and ends after `applied` commands and changes. */
#define TRACE_TURN_BEGIN() TRACE_PROBE(turn_begin)
#define TRACE_TURN_END(applied) TRACE_PROBE1(turn_end, applied)
/* `count` timers have left the wheel to run. */
#define TRACE_EXPIRE(count) TRACE_PROBE1(expire, count)
/* A drain or a stop took away all pending timers, `count` of them. */
#define TRACE_DRAIN(count) TRACE_PROBE1(drain, count)
#define TRACE_STOP(count) TRACE_PROBE1(stop, count)
/* `bytes` bytes were given back to the system. */
#define TRACE_GIVE_BACK(bytes) TRACE_PROBE1(give_back, bytes)
/* The owner goes to sleep until `until`, a time of its clock or TW_FOREVER, and wakes. */
#define TRACE_SLEEP(until) TRACE_PROBE1(sleep, until)
#define TRACE_WAKE() TRACE_PROBE(wake)

/* A task begins and ends. `timer` is the timer's address, `took` is in nanoseconds. */
#define TRACE_TASK_BEGIN(timer) TRACE_PROBE1(task_begin, timer)
#define TRACE_TASK_END(timer, took) TRACE_PROBE2(task_end, timer, took)
#define TRACE_SLOW_TASK(timer, took) TRACE_PROBE2(slow_task, timer, took)

#endif
