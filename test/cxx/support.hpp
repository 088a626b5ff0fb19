/* SPDX-License-Identifier: MIT */
/* The C++ tests share a check and a wheel with a manual clock. */
#ifndef CXX_SUPPORT_HPP
#define CXX_SUPPORT_HPP

#include <timingwheel/timingwheel.hpp>

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                     \
	do {                                                                                 \
		if (!(condition)) {                                                          \
			std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			std::exit(1);                                                        \
		}                                                                            \
	} while (0)

inline tw::wheel inline_wheel()
{
	tw_options options = {};

	options.clock = TW_CLOCK_MANUAL;
	options.drive = TW_DRIVE_CALLER;
	options.workers = TW_WORKERS_INLINE;
	return tw::wheel(std::chrono::milliseconds(1), 64, options);
}

#endif
