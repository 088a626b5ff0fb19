/* SPDX-License-Identifier: MIT */
/* This is what a plugin gives to its host: they share a wheel. */
#ifndef CXX_PLUGIN_HPP
#define CXX_PLUGIN_HPP

#include "../support.hpp"

struct plugin {
	/* Sets timers and begins a sleep on the host's wheel; each counts *alive down as it ends. */
	void (*use)(tw::wheel &wheel, int *alive);
	/* Drives the wheel. Returns the number that one of its functions throws. */
	int (*drive)(tw::wheel &wheel);
	const std::error_category &(*category)();
};

#endif
