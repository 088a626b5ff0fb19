/* SPDX-License-Identifier: MIT */
#include "support/pages.h"

#include "support/test.h"

#include <sys/socket.h>
#include <unistd.h>

#include <timingwheel/timingwheel.h>

#include "support/sockets.h"
#include "support/wait.h"
#include "support/words.h"

enum { WORDS = 32, REQUEST_ROOM = 1024, TRIES = 3000 };

int pages_start(struct program *worker, const struct program_environment *environment,
		const char *const *options)
{
	static const char said[] = "listens on http://127.0.0.1:";
	const char *words[WORDS] = {"worker", "--listen=127.0.0.1:0"};
	size_t count = 2;

	for (; *options && count < WORDS - 1; options++)
		words[count++] = *options;
	program_start(worker, environment, words);
	if (!program_wait_text(worker, "the worker runs"))
		fail_msg("%s", program_text(worker));
	assert_non_null(strstr(program_text(worker), said));
	return atoi(strstr(program_text(worker), said) + strlen(said));
}

void pages_stop(struct program *worker)
{
	if (worker->pid) {
		kill(worker->pid, SIGTERM);
		assert_int_equal(program_wait(worker), 0);
	}
	if (worker->output >= 0)
		assert_null(strstr(program_text(worker), "Sanitizer"));
	program_end(worker);
}

struct page_reply pages_ask(int port, const char *request, size_t size)
{
	static char *kept;
	int descriptor = socket_connect(port);
	struct page_reply reply = {.text = kept};
	size_t got = 0;
	ssize_t more;

	if (descriptor < 0)
		support_failed("connecting to the pages");
	/* The worker refuses some requests before all of it is sent. */
	(void)socket_send(descriptor, request, size);
	do {
		reply.text = kept = realloc(kept, got + 65536);
		if (!reply.text)
			support_failed("realloc");
		more = recv(descriptor, reply.text + got, 65535, 0);
		got += more > 0 ? (size_t)more : 0;
	} while (more > 0);
	close(descriptor);
	reply.text[got] = '\0';
	reply.body = strstr(reply.text, "\r\n\r\n");
	reply.body = reply.body ? reply.body + 4 : "";
	(void)sscanf(reply.text, "HTTP/1.%*1[01] %d", &reply.status);
	return reply;
}

struct page_reply pages_get(int port, const char *path)
{
	char request[REQUEST_ROOM];
	int size = snprintf(request, sizeof(request),
			    "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
			    "Connection: close\r\n\r\n",
			    path, port);

	return pages_ask(port, request, (size_t)size);
}

bool page_has_header(const struct page_reply *reply, const char *line)
{
	char text[REQUEST_ROOM];
	const char *found;

	snprintf(text, sizeof(text), "\r\n%s\r\n", line);
	found = strstr(reply->text, text);
	return found && found < reply->body;
}

double page_metric(const struct page_reply *reply, const char *name)
{
	size_t size = strlen(name);
	const char *line = reply->body;
	double value = -1;

	while (*line) {
		if (!strncmp(line, name, size) && line[size] == ' ') {
			/* Prometheus refuses a metric that appears twice. */
			assert_true(value == -1);
			value = strtod(line + size, NULL);
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return value;
}

struct page_reply pages_await_metric(int port, const char *name, double value)
{
	struct page_reply reply = pages_get(port, "/metrics");

	for (int i = 0; i < TRIES && page_metric(&reply, name) != value; i++) {
		wait_for(10 * TW_MILLISECOND);
		reply = pages_get(port, "/metrics");
	}
	if (page_metric(&reply, name) != value)
		fail_msg("%s is %g, not %g", name, page_metric(&reply, name), value);
	return reply;
}

void assert_metrics(const struct page_reply *reply, const char *all)
{
	char text[1000];
	char *words[WORDS];
	int count;

	snprintf(text, sizeof(text), "%s", all);
	count = words_split(text, words, WORDS);
	for (int i = 0; i + 1 < count; i += 2) {
		double value = page_metric(reply, words[i]);

		if (value < 0 || value != strtod(words[i + 1], NULL))
			fail_msg("%s is %g, not %s", words[i], value, words[i + 1]);
	}
}
