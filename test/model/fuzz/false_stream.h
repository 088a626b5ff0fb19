/* SPDX-License-Identifier: MIT */
/*
 * In place of stream.c: a server whose words are an input. Each request is answered by the bytes up
 * to the next FALSE_STREAM_END. When there are no more, the connection is closed.
 */
#ifndef FUZZ_FALSE_STREAM_H
#define FUZZ_FALSE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FALSE_STREAM_END = 0xff };

/* The bytes must stay. `greets`: what is asked while connecting is answered as by a Redis, with a
 * namespace of 4 shards, and not by them. */
void false_stream_fill(const uint8_t *data, size_t size, bool greets);

#endif
