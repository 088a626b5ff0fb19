/* SPDX-License-Identifier: MIT */
/*
 * This header comes before the compiler's of that name, where the library is compiled for tests
 * that interleave threads everywhere: each atomic operation of the library first calls
 * yield_at_atomic(), which sometimes yields the processor, or lingers. The sources are unchanged.
 */
#ifndef YIELDS_STDATOMIC_H
#define YIELDS_STDATOMIC_H

#include_next <stdatomic.h>

void yield_at_atomic(void);

#ifdef __clang__
#define YIELDS_LOAD(object, order) __c11_atomic_load(object, order)
#define YIELDS_STORE(object, value, order) __c11_atomic_store(object, value, order)
#define YIELDS_EXCHANGE(object, value, order) __c11_atomic_exchange(object, value, order)
#define YIELDS_EXCHANGE_IF(kind, object, expected, value, success, failure) \
	__c11_atomic_compare_exchange_##kind(object, expected, value, success, failure)
#define YIELDS_FETCH(change, object, value, order) __c11_atomic_fetch_##change(object, value, order)
#define YIELDS_FENCE(order) __c11_atomic_thread_fence(order)
#else
#define YIELDS_LOAD(object, order) __atomic_load_n(object, order)
#define YIELDS_STORE(object, value, order) __atomic_store_n(object, value, order)
#define YIELDS_EXCHANGE(object, value, order) __atomic_exchange_n(object, value, order)
#define YIELDS_IS_WEAK_strong 0
#define YIELDS_IS_WEAK_weak 1
#define YIELDS_EXCHANGE_IF(kind, object, expected, value, success, failure)                  \
	__atomic_compare_exchange_n(object, expected, value, YIELDS_IS_WEAK_##kind, success, \
				    failure)
#define YIELDS_FETCH(change, object, value, order) __atomic_fetch_##change(object, value, order)
#define YIELDS_FENCE(order) __atomic_thread_fence(order)
#endif

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_fetch_xor_explicit
#undef atomic_thread_fence

#define atomic_load_explicit(object, order) (yield_at_atomic(), YIELDS_LOAD(object, order))
#define atomic_store_explicit(object, value, order) \
	(yield_at_atomic(), YIELDS_STORE(object, value, order))
#define atomic_exchange_explicit(object, value, order) \
	(yield_at_atomic(), YIELDS_EXCHANGE(object, value, order))
#define atomic_compare_exchange_strong_explicit(object, expected, value, success, failure) \
	(yield_at_atomic(), YIELDS_EXCHANGE_IF(strong, object, expected, value, success, failure))
#define atomic_compare_exchange_weak_explicit(object, expected, value, success, failure) \
	(yield_at_atomic(), YIELDS_EXCHANGE_IF(weak, object, expected, value, success, failure))
#define atomic_fetch_add_explicit(object, value, order) \
	(yield_at_atomic(), YIELDS_FETCH(add, object, value, order))
#define atomic_fetch_sub_explicit(object, value, order) \
	(yield_at_atomic(), YIELDS_FETCH(sub, object, value, order))
#define atomic_fetch_or_explicit(object, value, order) \
	(yield_at_atomic(), YIELDS_FETCH(or, object, value, order))
#define atomic_fetch_and_explicit(object, value, order) \
	(yield_at_atomic(), YIELDS_FETCH(and, object, value, order))
#define atomic_fetch_xor_explicit(object, value, order) \
	(yield_at_atomic(), YIELDS_FETCH(xor, object, value, order))
#define atomic_thread_fence(order) (yield_at_atomic(), YIELDS_FENCE(order))

#endif
