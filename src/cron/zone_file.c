/* SPDX-License-Identifier: MIT */
/*
 * zone_load() reads one file. The name is a path below one folder, and the check keeps it there;
 * links in the folder are the
 * system's business. Only ordinary files are read, and nothing that is opened can hold the caller
 * up, as a pipe would.
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

/* The largest that systems have is of 4 KiB. */
enum { FILE_SIZE_MOST = 1 << 18 };

static const char default_folder[] = "/usr/share/zoneinfo";

/* The functions of ctype.h depend on the locale, so this is our own. */
static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-' || c == '+';
}

static bool part_leads_astray(const char *part, size_t size)
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
		if (is_of_name(*at))
			continue;
		if (*at != '/' && *at != '\0')
			return "no zone's name has this character";
		if (at == part)
			return "a part of the zone's name is empty";
		if (part_leads_astray(part, (size_t)(at - part))) {
			*position = (size_t)(part - name);
			return "no zone's name has . or .. as a part";
		}
		if (*at == '\0')
			return NULL;
		part = at + 1;
	}
}

/* Reads the whole file. Returns TW_SYSTEM with an error in errno. */
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
	/* A program with more rights than its caller has does not follow the environment. */
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
		pthread_setcancelstate(cancel_state, &cancel_state);
	}
	if (status == TW_NOT_FOUND)
		*wrong = "there is no such zone";
	else if (status == TW_NO_MEMORY)
		*wrong = "out of memory";
	else if (status == TW_SYSTEM)
		*wrong = "the zone's file can't be read";
	return status;
}
