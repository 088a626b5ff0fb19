/* SPDX-License-Identifier: MIT */
#include "children.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/sockets.h"

void child_start(struct children *children, struct child *child)
{
	const char *url = children->url ? children->url : child->proxy.url;
	char seed[32];

	/* Seeds that are close would draw the same numbers one step apart. */
	snprintf(seed, sizeof(seed), "%" PRIu64,
		 children->seed + ((uint64_t)(child - children->all + 1) << 40));
	child->pid = fork();
	if (child->pid < 0)
		support_failed("fork");
	if (child->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl("/proc/self/exe", "torture", child->kind, child->name, url, children->folder, seed,
	      (char *)NULL);
	_exit(127);
}

void children_start(struct children *children, const char *folder, uint64_t seed, int port,
		    const char *url)
{
	memset(children, 0, sizeof(*children));
	children->folder = folder;
	children->seed = seed;
	children->url = url;
	for (int i = 0; i < CHILDREN; i++) {
		struct child *child = &children->all[i];
		int number = i < CLIENTS ? i : i - CLIENTS;

		child->kind = i < CLIENTS ? "client" : i < CHILDREN - 1 ? "worker" : "hand";
		snprintf(child->name, sizeof(child->name), "%c%d", *child->kind, number);
		proxy_start(&child->proxy, port);
		child_start(children, child);
	}
}

/* Returns the exit status, or 128 plus the signal that ended the process. */
static int child_await(struct child *child)
{
	int status = 0;

	waitpid(child->pid, &status, 0);
	child->pid = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void child_kill(struct child *child)
{
	kill(child->pid, SIGKILL);
	child_await(child);
}

bool child_stop(struct child *child)
{
	int status;

	if (!child->pid)
		return true;
	kill(child->pid, SIGTERM);
	status = child_await(child);
	if (status)
		fprintf(stderr, "%s ended with %d\n", child->name, status);
	return !status;
}

bool children_run(const struct children *children)
{
	for (int i = 0; i < CHILDREN; i++) {
		const struct child *child = &children->all[i];
		siginfo_t info = {0};

		if (!child->pid ||
		    waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
		    !info.si_pid)
			continue;
		fprintf(stderr, "%s has ended by itself\n", child->name);
		return false;
	}
	return true;
}

void children_end(struct children *children)
{
	for (int i = 0; i < CHILDREN; i++)
		proxy_stop(&children->all[i].proxy);
}
