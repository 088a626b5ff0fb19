/* SPDX-License-Identifier: MIT */
/*
 * zone.c is the reader of the system's TZif files, and the search for a zone's offset at a time.
 *
 * Invariants:
 *  - The times of changes[] ascend strictly.
 *  - No part of a file is read before its size is checked. Counts have 32 bits and sizes of items
 *    are at most 12 bytes, so their products do not overflow 64 bits.
 *  - A name that zone_name_check() accepts is a path below the zones' folder. Links inside the
 *    folder are followed.
 *  - Only regular files are read. Opening a file never blocks, not even for a pipe.
 *  - Errors keep the errno of the system call that failed.
 *
 * A file is a header and a body with times of 4 bytes, which are not used; another header and body
 * with times of 8 bytes; and a footer: a line with the rule for the time after the last change. All
 * numbers are big endian. A body has these parts:
 *
 *     times         time_count × 4 or 8 bytes
 *     type_indexes  time_count × 1 byte: an index into types
 *     types         type_count × 6 bytes: offset (4), is summer time (1), index into names (1)
 *     names         name_bytes
 *     leaps         leap_count × 8 or 12 bytes
 *     standards     standard_count × 1 byte, unused here
 *     universals    universal_count × 1 byte, unused here
 *
 * A file is also refused for damage in an unused part, such as the names, if the check is cheap.
 */
#include "zone.h"

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

#include "text_reader.h"

enum { HEADER_SIZE = 44, TIME_SIZE = 8, TYPE_SIZE = 6, TYPES_MOST = 256 };
enum { VERSION_AT = 4, COUNTS_AT = 20 };
/* The range of offsets that RFC 9636 recommends, in seconds. */
enum { OFFSET_LEAST = -89999, OFFSET_MOST = 93599 };

/* The largest size of a zone file, in bytes. The system's files have at most 4 KiB. */
enum { FILE_SIZE_MOST = 1 << 18 };

static const char default_folder[] = "/usr/share/zoneinfo";

/* Holds the counts of a file's header. */
struct header {
	char version;
	uint64_t universal_count;
	uint64_t standard_count;
	uint64_t leap_count;
	uint64_t time_count;
	uint64_t type_count;
	uint64_t name_bytes;
};

/* Points to the parts of a body. */
struct body {
	const unsigned char *times;
	const unsigned char *type_indexes;
	const unsigned char *types;
};

static const char damaged[] = "the zone's file is damaged";

static uint32_t read_32(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

static int64_t read_time(const unsigned char *bytes)
{
	return (int64_t)((uint64_t)read_32(bytes) << 32 | read_32(bytes + 4));
}

static bool header_read(struct header *header, const unsigned char *bytes, size_t size)
{
	const unsigned char *counts = bytes + COUNTS_AT;

	if (size < HEADER_SIZE || memcmp(bytes, "TZif", 4) != 0)
		return false;
	*header = (struct header){
		.version = (char)bytes[VERSION_AT],
		.universal_count = read_32(counts),
		.standard_count = read_32(counts + 4),
		.leap_count = read_32(counts + 8),
		.time_count = read_32(counts + 12),
		.type_count = read_32(counts + 16),
		.name_bytes = read_32(counts + 20),
	};
	return true;
}

static uint64_t body_size(const struct header *header, size_t time_size)
{
	return header->time_count * (time_size + 1) + header->type_count * TYPE_SIZE +
	       header->name_bytes + header->leap_count * (time_size + 4) + header->standard_count +
	       header->universal_count;
}

/* Returns whether the header's counts fit together. */
static bool counts_are_valid(const struct header *header)
{
	uint64_t types = header->type_count;

	return types > 0 && types <= TYPES_MOST && header->name_bytes > 0 &&
	       (header->standard_count == 0 || header->standard_count == types) &&
	       (header->universal_count == 0 || header->universal_count == types);
}

static bool types_are_valid(const struct header *header, const struct body *body)
{
	for (uint64_t i = 0; i < header->type_count; i++) {
		const unsigned char *type = body->types + i * TYPE_SIZE;
		int32_t offset = (int32_t)read_32(type);

		if (offset < OFFSET_LEAST || offset > OFFSET_MOST || type[4] > 1 ||
		    type[5] >= header->name_bytes)
			return false;
	}
	return true;
}

static int32_t type_offset(const struct body *body, size_t type)
{
	return (int32_t)read_32(body->types + type * TYPE_SIZE);
}

/* Reads the changes into zone->changes, which has room for them. Returns false if damaged. */
static bool changes_read(struct zone *zone, const struct header *header, const struct body *body)
{
	for (size_t i = 0; i < header->time_count; i++) {
		struct zone_change *change = &zone->changes[i];
		unsigned char type = body->type_indexes[i];

		if (type >= header->type_count)
			return false;
		change->at = read_time(body->times + i * TIME_SIZE);
		change->offset = type_offset(body, type);
		if (i > 0 && change->at <= change[-1].at)
			return false;
	}
	zone->change_count = header->time_count;
	return true;
}

static enum tw_status body_read(struct zone *zone, const struct header *header,
				const unsigned char *bytes, const char **wrong)
{
	struct body body = {.times = bytes};

	body.type_indexes = body.times + header->time_count * TIME_SIZE;
	body.types = body.type_indexes + header->time_count;
	*wrong = damaged;
	if (!counts_are_valid(header) || !types_are_valid(header, &body))
		return TW_INVALID;
	if (header->leap_count > 0) {
		*wrong = "the zone counts leap seconds, and the system's clock does not";
		return TW_INVALID;
	}
	zone->first_offset = type_offset(&body, 0);
	if (header->time_count == 0)
		return TW_OK;
	zone->changes = malloc(header->time_count * sizeof(*zone->changes));
	if (!zone->changes)
		return TW_NO_MEMORY;
	return changes_read(zone, header, &body) ? TW_OK : TW_INVALID;
}

/* Reads the footer: a newline, a rule or nothing, and a newline. Returns false if damaged. */
static bool footer_read(struct zone *zone, const unsigned char *bytes, size_t size)
{
	const unsigned char *end;

	if (size < 2 || bytes[0] != '\n')
		return false;
	end = memchr(bytes + 1, '\n', size - 1);
	if (!end)
		return false;
	zone->has_rule = end > bytes + 1;
	return !zone->has_rule ||
	       zone_rule_parse(&zone->rule, (const char *)bytes + 1, (size_t)(end - bytes - 1));
}

/* Reads the second header, its body and the footer. */
static enum tw_status second_part_read(struct zone *zone, const unsigned char *bytes, size_t size,
				       const char **wrong)
{
	struct header header;
	enum tw_status status;
	uint64_t body;

	if (!header_read(&header, bytes, size) || header.version < '2')
		return TW_INVALID;
	body = body_size(&header, TIME_SIZE);
	if (body > size - HEADER_SIZE)
		return TW_INVALID;
	status = body_read(zone, &header, bytes + HEADER_SIZE, wrong);
	if (status != TW_OK)
		return status;
	bytes += HEADER_SIZE + body;
	size -= HEADER_SIZE + body;
	return footer_read(zone, bytes, size) ? TW_OK : TW_INVALID;
}

static enum tw_status file_read(struct zone *zone, const unsigned char *bytes, size_t size,
				const char **wrong)
{
	struct header header;
	uint64_t body;

	*wrong = "the zone's file is no TZif file of version 2 to 4";
	if (!header_read(&header, bytes, size) || header.version < '2' || header.version > '4')
		return TW_INVALID;
	*wrong = damaged;
	body = body_size(&header, 4);
	if (body > size - HEADER_SIZE)
		return TW_INVALID;
	return second_part_read(zone, bytes + HEADER_SIZE + body, size - HEADER_SIZE - body, wrong);
}

void zone_init(struct zone *zone)
{
	*zone = (struct zone){0};
}

enum tw_status zone_parse(struct zone *zone, const void *bytes, size_t size, const char **wrong)
{
	enum tw_status status;

	zone_init(zone);
	status = file_read(zone, bytes, size, wrong);
	if (status != TW_OK)
		zone_destroy(zone);
	return status;
}

void zone_destroy(struct zone *zone)
{
	free(zone->changes);
	zone_init(zone);
}

/* Returns the number of changes that are not later than `time`. */
static size_t changes_until(const struct zone *zone, int64_t time)
{
	size_t low = 0;
	size_t high = zone->change_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (zone->changes[middle].at <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int32_t zone_offset(const struct zone *zone, int64_t time, int64_t *until)
{
	size_t passed = changes_until(zone, time);

	if (passed == zone->change_count && zone->has_rule)
		return zone_rule_offset(&zone->rule, time, until);
	*until = passed < zone->change_count ? zone->changes[passed].at : INT64_MAX;
	return passed > 0 ? zone->changes[passed - 1].offset : zone->first_offset;
}

static bool is_name_character(char c)
{
	return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-' || c == '+';
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

/* Loads the zone of a file, and says what is *wrong otherwise. */
static enum tw_status path_load(struct zone *zone, const char *path, const char **wrong)
{
	enum tw_status status;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	status = file_load(zone, path, wrong);
	pthread_setcancelstate(cancel_state, &cancel_state);
	if (status == TW_NO_MEMORY)
		*wrong = "out of memory";
	else if (status == TW_SYSTEM)
		*wrong = "the zone's file can't be read";
	return status;
}

enum tw_status zone_load(struct zone *zone, const char *name, const char **wrong)
{
	/* secure_getenv ignores the environment if the program has more rights than its caller. */
	const char *given = secure_getenv("TZDIR");
	const char *folder = given && *given ? given : default_folder;
	char path[PATH_MAX];
	enum tw_status status;

	zone_init(zone);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		*wrong = "the zone's file can't be read";
		return TW_SYSTEM;
	}
	status = path_load(zone, path, wrong);
	if (status == TW_NOT_FOUND)
		*wrong = access(folder, F_OK) == 0
				 ? "there is no such zone"
				 : "there are no zones here: tzdata is not installed";
	return status;
}

enum tw_status zone_load_local(struct zone *zone, const char **wrong)
{
	const char *given = secure_getenv("TZ");
	enum tw_status status;
	size_t position;

	zone_init(zone);
	if (!given) {
		status = path_load(zone, "/etc/localtime", wrong);
		return status == TW_NOT_FOUND ? TW_OK : status;
	}
	given += *given == ':';
	zone->has_rule = zone_rule_parse(&zone->rule, given, strlen(given));
	if (zone->has_rule || *given == '\0')
		return TW_OK;
	if (*given == '/')
		return path_load(zone, given, wrong);
	*wrong = zone_name_check(given, &position);
	return *wrong ? TW_INVALID : zone_load(zone, given, wrong);
}
