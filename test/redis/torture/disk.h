/* SPDX-License-Identifier: MIT */
/*
 * This is a disk that loses unsynced data in a power cut. It has the append-only file of a
 * redis-server that runs with preload/noted_disk.c. A failure ends the program.
 *
 * The model, which is as hard as a disk with ordered metadata may be:
 *  - A file has what its last fsync or fdatasync covered. What was written later is gone, all of it
 *    or all after a random byte.
 *  - Names (created, renamed, removed) change in their order. All changes before the last fsync of
 *    a folder are there. Later ones are there up to a random one, or none is. An fsync of a file
 *    does not bring its name to the disk.
 *  - A file that was never synced may be empty, or have no name.
 *  - The data is what was written, in order: there are no zeros, no old data, no gaps.
 */
#ifndef TORTURE_DISK_H
#define TORTURE_DISK_H

#include <stdint.h>

#include "support/random.h"

/* These count what cuts have taken. */
struct cut {
	uint64_t bytes; /* written and gone */
	uint64_t names; /* changes of names that were undone */
	uint64_t torn;  /* files that end between the last sync and the last write */
};

/* Removes what a power cut loses from the server's folder, and adds that to *cut. The disk then has
 * all the rest. The server must not run. */
void disk_cut(const char *folder, struct random *random, struct cut *cut);

#endif
