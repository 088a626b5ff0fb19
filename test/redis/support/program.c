/* SPDX-License-Identifier: MIT */
#include "support/program.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <timingwheel/timingwheel.h>

#include "support/sockets.h"
#include "support/wait.h"

enum { VARIABLES_MAX = 128 };

extern char **environ;

static char *variable(const char *name, const char *value)
{
	char *text = NULL;

	if (asprintf(&text, "%s=%s", name, value) < 0)
		support_failed("asprintf");
	return text;
}

/* Copies our environment without TWR_*, and adds these. The caller frees the first `*ours`. */
static void environment_make(const struct program_environment *environment, char **variables,
			     size_t *ours)
{
	size_t count = 0;

	if (environment->url)
		variables[count++] = variable("TWR_URL", environment->url);
	if (environment->name_space)
		variables[count++] = variable("TWR_NAMESPACE", environment->name_space);
	if (environment->password)
		variables[count++] = variable("TWR_PASSWORD", environment->password);
	*ours = count;
	for (char **one = environ; *one && count < VARIABLES_MAX - 1; one++)
		if (strncmp(*one, "TWR_", 4))
			variables[count++] = *one;
	variables[count] = NULL;
}

void program_start(struct program *program, const struct program_environment *environment,
		   const char *const *arguments)
{
	const char *build = getenv("BUILD");
	char path[256];
	char **words;
	size_t count = 0;
	char *variables[VARIABLES_MAX];
	size_t ours;

	memset(program, 0, sizeof(*program));
	snprintf(path, sizeof(path), "%s/%s", build ? build : "build",
		 environment->program ? environment->program : "twr");
	while (arguments[count])
		count++;
	words = calloc(count + 2, sizeof(*words));
	if (!words)
		support_failed("calloc");
	words[0] = path;
	for (size_t i = 0; i < count; i++)
		words[i + 1] = (char *)(uintptr_t)arguments[i];
	environment_make(environment, variables, &ours);
	program->output = memfd_create("output", MFD_CLOEXEC);
	if (program->output < 0)
		support_failed("memfd_create");
	program->pid = fork();
	if (program->pid < 0)
		support_failed("fork");
	if (!program->pid) {
		sigset_t none;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		dup2(program->output, 1);
		dup2(program->output, 2);
		execve(path, words, variables);
		_exit(127);
	}
	while (ours)
		free(variables[--ours]);
	free(words);
}

/* Reaps the process if it has ended, or waits for that. */
static void reap(struct program *program, int options)
{
	int status;

	if (!program->pid || waitpid(program->pid, &status, options) != program->pid)
		return;
	program->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	program->pid = 0;
}

int program_wait(struct program *program)
{
	for (int i = 0; program->pid && i < 150000; i++) {
		reap(program, WNOHANG);
		if (program->pid)
			wait_for(2 * TW_MILLISECOND);
	}
	if (program->pid)
		kill(program->pid, SIGKILL);
	reap(program, 0);
	return program->exit_code;
}

const char *program_text(struct program *program)
{
	struct stat status;
	ssize_t got;
	size_t size;

	/* lseek would move the offset at which the program writes. */
	if (fstat(program->output, &status))
		support_failed("fstat");
	size = (size_t)status.st_size;
	free(program->text);
	program->text = calloc(1, size + 1);
	if (!program->text)
		support_failed("calloc");
	got = pread(program->output, program->text, size, 0);
	program->text[got > 0 ? got : 0] = '\0';
	return program->text;
}

int program_wait_text(struct program *program, const char *text)
{
	for (int i = 0; i < 75000; i++) {
		if (strstr(program_text(program), text))
			return 1;
		reap(program, WNOHANG);
		if (!program->pid)
			return strstr(program_text(program), text) != NULL;
		wait_for(2 * TW_MILLISECOND);
	}
	return 0;
}

void program_end(struct program *program)
{
	if (program->pid) {
		kill(program->pid, SIGKILL);
		reap(program, 0);
	}
	close(program->output);
	free(program->text);
	program->text = NULL;
}
