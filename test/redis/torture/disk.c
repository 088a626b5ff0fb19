/* SPDX-License-Identifier: MIT */
#include "disk.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/sockets.h"

enum { NAME_ROOM = 128, MOST = 256, CHANGES_MOST = 1024 };

/* The inode's number is the file's second name. */
struct file {
	uint64_t inode;
	int64_t synced;
};

/* A change is a line of the notes about names. */
struct change {
	char kind;      /* 'c' create, 'r' rename, 'u' unlink */
	uint64_t inode; /* for create */
	char name[NAME_ROOM];
	char to[NAME_ROOM]; /* for rename */
	long offset;        /* where the line begins in the notes */
};

struct name {
	char name[NAME_ROOM];
	uint64_t inode;
};

struct disk {
	int folder;
	struct file files[MOST];
	size_t file_count;
	struct change changes[CHANGES_MOST];
	size_t change_count;
	long kept; /* changes before this offset of the notes are on the disk */
	struct name names[MOST];
	size_t name_count;
};

static struct file *file_of(struct disk *disk, uint64_t inode)
{
	for (size_t i = 0; i < disk->file_count; i++)
		if (disk->files[i].inode == inode)
			return &disk->files[i];
	if (disk->file_count == MOST)
		support_failed("too many files");
	disk->files[disk->file_count] = (struct file){.inode = inode};
	return &disk->files[disk->file_count++];
}

static void read_line(struct disk *disk, const char *line, long offset)
{
	struct change change = {.kind = *line, .offset = offset};
	uint64_t inode;
	int64_t number;

	if (sscanf(line, "sync %" SCNu64 " %" SCNd64, &inode, &number) == 2) {
		struct file *file = file_of(disk, inode);

		file->synced = number > file->synced ? number : file->synced;
	} else if (sscanf(line, "size %" SCNu64 " %" SCNd64, &inode, &number) == 2) {
		struct file *file = file_of(disk, inode);

		file->synced = number < file->synced ? number : file->synced;
	} else if (sscanf(line, "names %" SCNd64, &number) == 1) {
		disk->kept = number > disk->kept ? number : disk->kept;
	} else if (sscanf(line, "create %" SCNu64 " %127s", &change.inode, change.name) == 2 ||
		   sscanf(line, "rename %127s %127s", change.name, change.to) == 2 ||
		   sscanf(line, "unlink %127s", change.name) == 1) {
		if (disk->change_count == CHANGES_MOST)
			support_failed("too many changes of names");
		disk->changes[disk->change_count++] = change;
	} else {
		fprintf(stderr, "unknown note: %s", line);
		exit(1);
	}
}

static void read_notes(struct disk *disk)
{
	int descriptor = openat(disk->folder, "disk/notes", O_RDONLY | O_CLOEXEC);
	FILE *notes = descriptor < 0 ? NULL : fdopen(descriptor, "r");
	char line[512];
	long offset = 0;

	if (!notes)
		support_failed("disk/notes");
	/* The cut may have come in the middle of the last line. */
	while (fgets(line, sizeof(line), notes) && strchr(line, '\n')) {
		read_line(disk, line, offset);
		offset = ftell(notes);
	}
	fclose(notes);
}

static struct name *name_find(struct disk *disk, const char *name)
{
	for (size_t i = 0; i < disk->name_count; i++)
		if (!strcmp(disk->names[i].name, name))
			return &disk->names[i];
	return NULL;
}

static void name_remove(struct disk *disk, const char *name)
{
	struct name *found = name_find(disk, name);

	if (found)
		*found = disk->names[--disk->name_count];
}

static void name_set(struct disk *disk, const char *name, uint64_t inode)
{
	name_remove(disk, name);
	if (disk->name_count == MOST)
		support_failed("too many names");
	strcpy(disk->names[disk->name_count].name, name);
	disk->names[disk->name_count++].inode = inode;
}

static void apply(struct disk *disk, const struct change *change)
{
	const struct name *from = name_find(disk, change->name);

	if (change->kind == 'c') {
		name_set(disk, change->name, change->inode);
		return;
	}
	if (change->kind == 'r' && from)
		name_set(disk, change->to, from->inode);
	name_remove(disk, change->name);
}

/* Takes the names as they are after the first changes, at least those on the disk. */
static void choose_names(struct disk *disk, struct random *random, struct cut *cut)
{
	size_t kept = 0;

	while (kept < disk->change_count && disk->changes[kept].offset < disk->kept)
		kept++;
	kept += random_below(random, disk->change_count - kept + 1);
	cut->names += disk->change_count - kept;
	for (size_t i = 0; i < kept; i++)
		apply(disk, &disk->changes[i]);
}

static void remove_names(const struct disk *disk)
{
	for (size_t i = 0; i < disk->change_count; i++) {
		unlinkat(disk->folder, disk->changes[i].name, 0);
		if (*disk->changes[i].to)
			unlinkat(disk->folder, disk->changes[i].to, 0);
	}
}

static void restore(struct disk *disk, const struct name *name, struct random *random,
		    struct cut *cut)
{
	int64_t size = file_of(disk, name->inode)->synced;
	char second[64];
	struct stat status;
	int file;

	snprintf(second, sizeof(second), "disk/%" PRIu64, name->inode);
	file = openat(disk->folder, second, O_WRONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &status) || status.st_size < size)
		support_failed(second);
	if (status.st_size > size && random_once_in(random, 2))
		size += (int64_t)random_below(random, (uint64_t)(status.st_size - size) + 1);
	cut->torn += size > file_of(disk, name->inode)->synced && size < status.st_size;
	cut->bytes += (uint64_t)(status.st_size - size);
	if (ftruncate(file, size) || linkat(disk->folder, second, disk->folder, name->name, 0))
		support_failed(name->name);
	close(file);
}

/* Notes that the disk has the names, and all that is in their files. */
static void note_all(const struct disk *disk)
{
	int descriptor = openat(disk->folder, "disk/notes", O_WRONLY | O_TRUNC | O_CLOEXEC);
	FILE *notes = descriptor < 0 ? NULL : fdopen(descriptor, "w");

	if (!notes)
		support_failed("disk/notes");
	for (size_t i = 0; i < disk->name_count; i++) {
		const struct name *name = &disk->names[i];
		struct stat status;

		if (fstatat(disk->folder, name->name, &status, 0))
			support_failed(name->name);
		fprintf(notes, "create %" PRIu64 " %s\nsync %" PRIu64 " %lld\n", name->inode,
			name->name, name->inode, (long long)status.st_size);
	}
	fprintf(notes, "names %ld\n", ftell(notes));
	fclose(notes);
}

void disk_cut(const char *folder, struct random *random, struct cut *cut)
{
	struct disk *disk = calloc(1, sizeof(*disk));

	if (!disk)
		support_failed("memory");
	disk->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (disk->folder < 0)
		support_failed(folder);
	read_notes(disk);
	choose_names(disk, random, cut);
	remove_names(disk);
	for (size_t i = 0; i < disk->name_count; i++)
		restore(disk, &disk->names[i], random, cut);
	note_all(disk);
	close(disk->folder);
	free(disk);
}
