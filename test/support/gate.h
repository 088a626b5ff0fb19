/* SPDX-License-Identifier: MIT */
/* Holds a thread up, most often a task's: it says that it has come, and waits to be let through. */
#ifndef SUPPORT_GATE_H
#define SUPPORT_GATE_H

#include <semaphore.h>

struct gate {
	sem_t reached;
	sem_t opened;
};

/* Shut, and nobody there. */
void gate_init(struct gate *gate);
/* The thread that is held up. */
void gate_pass(struct gate *gate);
/* Waits until a thread has come. */
void gate_await(struct gate *gate);
/* Lets one thread through. */
void gate_open(struct gate *gate);

#endif
