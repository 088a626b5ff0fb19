/* SPDX-License-Identifier: MIT */
/*
 * This is preloaded into a redis-server (LD_PRELOAD) and notes what its append-only file asks of
 * the disk, so that disk.h can undo what a power cut loses.
 *
 * Files are those with "aof" in their names, which are relative to the server's folder. Each file
 * gets a second name when it is created, disk/INODE, under which it stays when the server unlinks
 * it. disk/notes has a line for each event, after the event:
 *
 *     create INODE NAME       the name is there
 *     rename FROM TO          the one name became the other
 *     unlink NAME             the name is gone
 *     size INODE BYTES        the file was made shorter
 *     sync INODE BYTES        the disk has at least these bytes of the file
 *     names OFFSET            the disk has all changes of names that the notes have before OFFSET
 *
 * A sync covers what was there when the call began. The server's children, which rewrite the file,
 * write notes too, and end with the server.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define ALSO(name) __attribute__((visibility("default"), alias(#name)))

static int notes = -1;

static void open_notes(void)
{
	mkdir("disk", 0700);
	notes = openat(AT_FDCWD, "disk/notes", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (notes < 0)
		abort();
}

/* Opens the notes at the first event: the server is in its folder by then. */
static void await_notes(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_notes);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	char line[512];
	va_list arguments;
	int size;

	await_notes();
	va_start(arguments, format);
	size = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (size >= (int)sizeof(line) || write(notes, line, (size_t)size) != size)
		abort();
}

static int is_noted(const char *name)
{
	return strstr(name, "aof") != NULL;
}

static void note_file(const char *name, int is_emptied)
{
	struct stat status;
	char second[64];

	await_notes();
	if (fstatat(AT_FDCWD, name, &status, 0))
		return;
	snprintf(second, sizeof(second), "disk/%llu", (unsigned long long)status.st_ino);
	if (!linkat(AT_FDCWD, name, AT_FDCWD, second, 0))
		note("create %llu %s\n", (unsigned long long)status.st_ino, name);
	else if (is_emptied)
		note("size %llu 0\n", (unsigned long long)status.st_ino);
}

PUBLIC int open64(const char *name, int flags, ...)
{
	va_list arguments;
	mode_t mode = 0;
	int file;

	va_start(arguments, flags);
	if (flags & O_CREAT)
		mode = va_arg(arguments, mode_t);
	va_end(arguments);
	file = openat(AT_FDCWD, name, flags, mode);
	if (file >= 0 && flags & O_CREAT && is_noted(name))
		note_file(name, flags & O_TRUNC);
	return file;
}

PUBLIC FILE *fopen64(const char *restrict name, const char *restrict mode)
{
	FILE *(*real)(const char *, const char *);
	FILE *file;

	*(void **)&real = dlsym(RTLD_NEXT, "fopen64");
	file = real(name, mode);
	if (file && *mode != 'r' && is_noted(name))
		note_file(name, *mode == 'w');
	return file;
}

PUBLIC int rename(const char *from, const char *to)
{
	int status = renameat(AT_FDCWD, from, AT_FDCWD, to);

	if (!status && is_noted(to))
		note("rename %s %s\n", from, to);
	return status;
}

PUBLIC int unlink(const char *name)
{
	int status = unlinkat(AT_FDCWD, name, 0);

	if (!status && is_noted(name))
		note("unlink %s\n", name);
	return status;
}

PUBLIC int ftruncate64(int file, off_t size)
{
	int result = (int)syscall(SYS_ftruncate, file, size);
	struct stat status;

	if (!result && !fstat(file, &status))
		note("size %llu %lld\n", (unsigned long long)status.st_ino, (long long)size);
	return result;
}

PUBLIC int truncate64(const char *name, off_t size)
{
	int file = openat(AT_FDCWD, name, O_WRONLY | O_CLOEXEC);
	int status;

	if (file < 0)
		return -1;
	status = ftruncate64(file, size);
	close(file);
	return status;
}

static int sync_by(long call, int file)
{
	struct stat before;
	struct stat noted;
	int status;

	await_notes();
	if (fstat(file, &before) || fstat(notes, &noted))
		return -1;
	status = (int)syscall(call, file);
	if (status)
		return status;
	if (S_ISDIR(before.st_mode))
		note("names %lld\n", (long long)noted.st_size);
	else
		note("sync %llu %lld\n", (unsigned long long)before.st_ino,
		     (long long)before.st_size);
	return 0;
}

PUBLIC int fsync(int file)
{
	return sync_by(SYS_fsync, file);
}

PUBLIC int fdatasync(int file)
{
	return sync_by(SYS_fdatasync, file);
}

/* Servers that were built in other ways call these. */
ALSO(open64) int open(const char *name, int flags, ...);
ALSO(fopen64) FILE *fopen(const char *restrict name, const char *restrict mode);
ALSO(ftruncate64) int ftruncate(int file, off_t size);
ALSO(truncate64) int truncate(const char *name, off_t size);

static void end_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, end_with_parent);
}
