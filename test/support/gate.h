/* SPDX-License-Identifier: MIT */
/* A gate stops a thread, usually a task's, until it is let through. */
#ifndef SUPPORT_GATE_H
#define SUPPORT_GATE_H

#include <semaphore.h>

struct gate {
	sem_t reached;
	sem_t opened;
};

/* Sets the gate to shut, with no thread at it. */
void gate_init(struct gate *gate);
/* Stops the calling thread. */
void gate_pass(struct gate *gate);
/* Waits until a thread has arrived. */
void gate_await(struct gate *gate);
/* Lets one thread through. */
void gate_open(struct gate *gate);

#endif
