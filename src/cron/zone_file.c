/* SPDX-License-Identifier: MIT */
/*
 * zone_file.c is the reader of the system's zone files.
 *
 * Invariants:
 *  - A name that zone_name_check() accepts is a path below the zones' folder. Links inside the
 *    folder are followed.
 *  - Only regular files are read. Opening a file never blocks, not even for a pipe.
 *  - Errors keep the errno of the system call that failed.
 */
#include "zone_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <timingwheel/cron.h>

/* The largest size of a zone file, in bytes. The system's files have at most 4 KiB. */
enum { FILE_SIZE_MOST = 1 << 18 };

static const char default_folder[] = "/usr/share/zoneinfo";

/* Does not use ctype.h, which depends on the locale. */
static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-' || c == '+';
}

/* Returns whether a part of a name is "." or "..". `size` must be > 0. */
static bool part_is_dots(const char *part, size_t size)
{
	return (size == 1 || size == 2) && memcmp(part, "..", size) == 0;
}

const char *zone_name_check(const char *name, size_t *position)
{
	const char *part = name;

	*position = 0;
	if (strnlen(name, TW_CRON_ZONE_MAX + 1) > TW_CRON_ZONE_MAX)
		return "the zone's name is too long";
	for (const char *at = name;; at++) {
		*position = (size_t)(at - name);
		if (is_name_character(*at))
			continue;
		if (*at != '/' && *at != '\0')
			return "no zone's name has this character";
		if (at == part)
			return "a part of the zone's name is empty";
		if (part_is_dots(part, (size_t)(at - part))) {
			*position = (size_t)(part - name);
			return "no zone's name has . or .. as a part";
		}
		if (*at == '\0')
			return NULL;
		part = at + 1;
	}
}

/* Reads `size` bytes. Returns TW_SYSTEM with errno, or TW_INVALID if the file ends before. */
static enum tw_status bytes_read(int file, unsigned char *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t count = read(file, bytes + done, size - done);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return TW_SYSTEM;
		if (count == 0)
			return TW_INVALID;
		done += (size_t)count;
	}
	return TW_OK;
}

static enum tw_status file_parse(struct zone *zone, int file, size_t size, const char **wrong)
{
	unsigned char *bytes = malloc(size);
	enum tw_status status;

	if (!bytes)
		return TW_NO_MEMORY;
	*wrong = "the zone's file changes";
	status = bytes_read(file, bytes, size);
	if (status == TW_OK)
		status = zone_parse(zone, bytes, size, wrong);
	free(bytes);
	return status;
}

static enum tw_status opened_file_load(struct zone *zone, int file, const char **wrong)
{
	struct stat stat;

	if (fstat(file, &stat) != 0)
		return TW_SYSTEM;
	if (!S_ISREG(stat.st_mode))
		return TW_NOT_FOUND;
	*wrong = "the zone's file is no TZif file";
	if (stat.st_size == 0 || stat.st_size > FILE_SIZE_MOST)
		return TW_INVALID;
	return file_parse(zone, file, (size_t)stat.st_size, wrong);
}

static enum tw_status file_load(struct zone *zone, const char *path, const char **wrong)
{
	enum tw_status status;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error;

	if (file < 0)
		return errno == ENOENT || errno == ENOTDIR ? TW_NOT_FOUND : TW_SYSTEM;
	status = opened_file_load(zone, file, wrong);
	error = errno;
	close(file);
	errno = error;
	return status;
}

enum tw_status zone_load(struct zone *zone, const char *name, const char **wrong)
{
	/* secure_getenv ignores the environment if the program has more rights than its caller. */
	const char *given = secure_getenv("TZDIR");
	const char *folder = given && *given ? given : default_folder;
	char path[PATH_MAX];
	enum tw_status status = TW_SYSTEM;
	int cancel_state;
	int size;

	zone_init(zone);
	size = snprintf(path, sizeof(path), "%s/%s", folder, name);
	if ((size_t)size >= sizeof(path)) {
		errno = ENAMETOOLONG;
	} else {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
		status = file_load(zone, path, wrong);
		if (status == TW_NOT_FOUND)
			*wrong = access(folder, F_OK) == 0
					 ? "there is no such zone"
					 : "there are no zones here: tzdata is not installed";
		pthread_setcancelstate(cancel_state, &cancel_state);
	}
	if (status == TW_NO_MEMORY)
		*wrong = "out of memory";
	else if (status == TW_SYSTEM)
		*wrong = "the zone's file can't be read";
	return status;
}
