/* SPDX-License-Identifier: MIT */
/* This program throws through a frame with a destructor, on a worker of the wheel. */
#include "user.h"

namespace
{

int ended;
int caught;

struct counted {
	~counted()
	{
		ended++;
	}
};

/* A function of its own that has a destructor and no catch: with -flto gcc makes it one of C. */
__attribute__((noinline)) void throw_number(int number)
{
	counted one;

	if (number > 0)
		throw number;
}

void catch_number(void *)
{
	try {
		throw_number(7);
	} catch (int number) {
		caught = number;
	}
}

} // namespace

int main()
{
	PROBE(begin);
	return !run_by_timer(catch_number) || ended != 1 || caught != 7;
}
