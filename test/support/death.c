/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "death.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void die(void (*run)(void *argument), void *argument)
{
	static const struct rlimit no_core = {0, 0};

	setrlimit(RLIMIT_CORE, &no_core);
	alarm(60);
	run(argument);
	_exit(0);
}

void assert_dies(void (*run)(void *argument), void *argument, const char *message)
{
	char written[4096];
	size_t used = 0;
	ssize_t got;
	int pipe_ends[2];
	int status;
	pid_t child;

	assert_int_equal(pipe(pipe_ends), 0);
	child = fork();
	if (child == 0) {
		dup2(pipe_ends[1], STDERR_FILENO);
		close(pipe_ends[1]);
		die(run, argument);
	}
	close(pipe_ends[1]);
	while ((got = read(pipe_ends[0], written + used, sizeof(written) - 1 - used)) > 0)
		used += (size_t)got;
	written[used] = '\0';
	close(pipe_ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_non_null(strstr(written, message));
}

bool child_ends_well(int (*run)(void *argument), void *argument)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		alarm(60);
		_exit(run(argument));
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
