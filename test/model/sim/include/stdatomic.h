/* SPDX-License-Identifier: MIT */
/*
 * This replaces the system's <stdatomic.h>: each of our operations is a point at which the
 * simulation may switch to another thread. There is one thread of the system, so the operation
 * itself is plain and the memory order is ignored: every simulated run is sequentially consistent.
 *
 * Only the _explicit forms are here, and src/ uses no others: with one, this does not link.
 */
#ifndef SIM_STDATOMIC_H
#define SIM_STDATOMIC_H

#include_next <stdatomic.h>

#include "scheduler.h"

#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_fetch_and
#undef atomic_fetch_or
#undef atomic_fetch_xor

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_and_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_xor_explicit
#undef atomic_thread_fence

/* These are the object's type without _Atomic, and the object as one of that type. */
#define SIM_TYPE(object) __typeof__((void)0, *(object))
#define SIM_PLAIN(object) (*(volatile SIM_TYPE(object) *)(object))

#define atomic_load_explicit(object, order)                   \
	__extension__({                                       \
		__auto_type sim_object = (object);            \
		sim_point();                                  \
		(SIM_TYPE(sim_object)) SIM_PLAIN(sim_object); \
	})

#define atomic_store_explicit(object, value, order)       \
	__extension__({                                   \
		__auto_type sim_object = (object);        \
		SIM_TYPE(sim_object) sim_value = (value); \
		sim_point();                              \
		SIM_PLAIN(sim_object) = sim_value;        \
	})

/* Returns the old value; `result` becomes the new one. */
#define SIM_CHANGE(object, value, result)                               \
	__extension__({                                                 \
		__auto_type sim_object = (object);                      \
		SIM_TYPE(sim_object) sim_value = (value);               \
		SIM_TYPE(sim_object) sim_before;                        \
		sim_point();                                            \
		sim_before = SIM_PLAIN(sim_object);                     \
		SIM_PLAIN(sim_object) = (SIM_TYPE(sim_object))(result); \
		sim_before;                                             \
	})

#define atomic_exchange_explicit(object, value, order) SIM_CHANGE(object, value, sim_value)
#define atomic_fetch_add_explicit(object, value, order) \
	SIM_CHANGE(object, value, sim_before + sim_value)
#define atomic_fetch_sub_explicit(object, value, order) \
	SIM_CHANGE(object, value, sim_before - sim_value)
#define atomic_fetch_and_explicit(object, value, order) \
	SIM_CHANGE(object, value, sim_before &sim_value)
#define atomic_fetch_or_explicit(object, value, order) \
	SIM_CHANGE(object, value, sim_before | sim_value)
#define atomic_fetch_xor_explicit(object, value, order) \
	SIM_CHANGE(object, value, sim_before ^ sim_value)

#define SIM_COMPARE_EXCHANGE(object, expected, value, may_fail)        \
	__extension__({                                                \
		__auto_type sim_object = (object);                     \
		__auto_type sim_expected = (expected);                 \
		SIM_TYPE(sim_object) sim_value = (value);              \
		SIM_TYPE(sim_object) sim_before;                       \
		bool sim_same;                                         \
		sim_point();                                           \
		sim_before = SIM_PLAIN(sim_object);                    \
		sim_same = sim_before == *sim_expected && !(may_fail); \
		if (sim_same)                                          \
			SIM_PLAIN(sim_object) = sim_value;             \
		else                                                   \
			*sim_expected = sim_before;                    \
		sim_same;                                              \
	})

#define atomic_compare_exchange_strong_explicit(object, expected, value, success, failure) \
	SIM_COMPARE_EXCHANGE(object, expected, value, false)
/* It may fail spuriously, as on some processors. */
#define atomic_compare_exchange_weak_explicit(object, expected, value, success, failure) \
	SIM_COMPARE_EXCHANGE(object, expected, value, sim_weak_fails())

#define atomic_thread_fence(order) sim_point()

#endif
