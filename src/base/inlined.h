/* SPDX-License-Identifier: MIT */
/*
 * INLINED has a function's calls inlined, in the one compile unit of its library. It is for
 * functions of other modules, or too large for the compiler to do so by itself, where a call would
 * be a tenth of what they cost (bench/costs).
 */
#ifndef INLINED_H
#define INLINED_H

/* clang warns of an inline function that calls a static one, gcc of one that is not inline. */
#ifdef __clang__
#define INLINED __attribute__((always_inline))
#else
#define INLINED inline __attribute__((always_inline))
#endif

#endif
