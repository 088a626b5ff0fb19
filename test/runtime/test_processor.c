/* SPDX-License-Identifier: MIT */
/* The number of processors is that of the affinity mask, and of the quotas of control groups. */
#include "support/test.h"

#include <sched.h>
#include <sys/stat.h>

#include "runtime/processor.h"

/* This folder stands for /sys/fs/cgroup. */
static char root[] = "/tmp/tw-groups-XXXXXX";
static char path[128];

static const char *in_root(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(in_root(name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Returns the number of processors for a program in these groups. */
static size_t processors_in(const char *groups)
{
	write_file("list", groups);
	return processors_by_quota(in_root("list"), root);
}

static int make_groups(void **state)
{
	static const char *const folders[] = {"a", "a/b", "cpu,cpuacct", "cpu,cpuacct/c", "cpuset"};

	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (mkdir(in_root(folders[i]), 0700) != 0)
			return -1;
	return 0;
}

static int remove_groups(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

TEST_FILE(make_groups, remove_groups)

TEST(once, quota_of_version_2_counts_in_whole_processors_and_in_groups_above)
{
	write_file("a/cpu.max", "max 100000\n");
	write_file("a/b/cpu.max", "150000 100000\n");
	assert_int_equal(processors_in("0::/a/b\n"), 2);
	assert_true(processors_in("0::/a\n") == SIZE_MAX);
	write_file("a/cpu.max", "50000 100000\n");
	assert_int_equal(processors_in("0::/a/b\n"), 1);
	/* The root of a container has the container's quota. */
	write_file("cpu.max", "400000 100000\n");
	assert_int_equal(processors_in("0::/\n"), 4);
	assert_int_equal(processors_in("0::/not/here\n"), 4);
}

TEST(once, quota_of_version_1_is_that_of_the_controller_for_processors)
{
	static const char *const groups = "5:cpuset:/c\n4:memory:/a\n3:cpu,cpuacct:/c\n";

	write_file("cpu,cpuacct/c/cpu.cfs_quota_us", "-1\n");
	write_file("cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
	assert_true(processors_in(groups) == SIZE_MAX);
	write_file("cpu,cpuacct/c/cpu.cfs_quota_us", "300000\n");
	assert_int_equal(processors_in(groups), 3);
	write_file("cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
	write_file("cpu,cpuacct/cpu.cfs_period_us", "200000\n");
	assert_int_equal(processors_in(groups), 1);
}

TEST(once, without_groups_there_is_no_quota)
{
	assert_true(processors_in("") == SIZE_MAX);
	assert_true(processors_in("no group\n0:\n") == SIZE_MAX);
	assert_true(processors_by_quota("/no/such/list", root) == SIZE_MAX);
}

TEST(once, processors_are_those_of_the_affinity_mask)
{
	cpu_set_t before;
	cpu_set_t one;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_in_range(processors_available(), 1, (size_t)CPU_COUNT(&before));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		TEST_SKIP("the processors of a thread cannot be set here");
	assert_int_equal(processors_available(), 1);
	sched_setaffinity(0, sizeof(before), &before);
}
