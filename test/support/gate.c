/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "gate.h"

void gate_init(struct gate *gate)
{
	assert_int_equal(sem_init(&gate->reached, 0, 0), 0);
	assert_int_equal(sem_init(&gate->opened, 0, 0), 0);
}

void gate_pass(struct gate *gate)
{
	sem_post(&gate->reached);
	while (sem_wait(&gate->opened) != 0)
		;
}

void gate_await(struct gate *gate)
{
	while (sem_wait(&gate->reached) != 0)
		;
}

void gate_open(struct gate *gate)
{
	sem_post(&gate->opened);
}
