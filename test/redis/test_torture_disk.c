/* SPDX-License-Identifier: MIT */
/* The disk of the torture loses in a power cut what was not synced, and no more. */
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "torture/disk.h"

/* Makes the folder of a server whose file was renamed, without an fsync of the folder, after 3 of
 * its 6 bytes were synced. */
static void make_disk(char *folder)
{
	static const char notes[] =
		"create 7 old-aof\nsync 7 3\nnames 27\nrename old-aof new-aof\n";
	static const char *const files[] = {"disk/notes", "disk/7"};
	static const char *const texts[] = {notes, "abcdef"};
	int directory;

	assert_non_null(mkdtemp(folder));
	directory = open(folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(directory, "disk", 0700), 0);
	for (int i = 0; i < 2; i++) {
		int file = openat(directory, files[i], O_WRONLY | O_CREAT, 0600);

		assert_int_equal(write(file, texts[i], strlen(texts[i])), strlen(texts[i]));
		close(file);
	}
	assert_int_equal(linkat(directory, "disk/7", directory, "new-aof", 0), 0);
	close(directory);
}

static void remove_disk(const char *folder)
{
	static const char *const names[] = {"old-aof",    "new-aof", "disk/7",
					    "disk/notes", "disk",    ""};
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		(void)remove(path);
	}
}

/* Returns the size of the file in the folder, or -1. */
static int64_t size_of(const char *folder, const char *name)
{
	struct stat status;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return stat(path, &status) ? -1 : status.st_size;
}

TEST(once, disk_loses_what_was_not_synced)
{
	enum { TRIES = 200 };
	struct random random = random_from(seed_choose(), 0);
	bool seen[2][7] = {{false}};

	for (int i = 0; i < TRIES; i++) {
		char folder[] = "/tmp/disk-XXXXXX";
		struct cut cut = {0};
		struct cut none = {0};
		int64_t sizes[2];
		bool is_renamed;

		make_disk(folder);
		disk_cut(folder, &random, &cut);
		sizes[0] = size_of(folder, "old-aof");
		sizes[1] = size_of(folder, "new-aof");
		is_renamed = sizes[0] < 0;
		assert_int_equal(sizes[!is_renamed], -1);
		assert_int_equal(cut.names, !is_renamed);
		assert_int_equal(cut.bytes, 6 - sizes[is_renamed]);
		/* The rest is on the disk. */
		disk_cut(folder, &random, &none);
		assert_int_equal(none.bytes + none.names + none.torn, 0);
		assert_int_equal(size_of(folder, is_renamed ? "new-aof" : "old-aof"),
				 sizes[is_renamed]);
		seen[is_renamed][sizes[is_renamed]] = true;
		remove_disk(folder);
	}
	for (int size = 0; size < 7; size++) {
		assert_int_equal(seen[0][size], size >= 3);
		assert_int_equal(seen[1][size], size >= 3);
	}
}

TEST_FILE(NULL, NULL)
