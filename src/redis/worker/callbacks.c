/* SPDX-License-Identifier: MIT */
/*
 * callbacks.c is one thread with a multi handle of libcurl. Easy handles and connections are used
 * again. redis.h says what is sent, and what a response means.
 */
#include "callbacks.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/thread.h"
#include "redis/client/record.h"

/* The thread sleeps at most this time. */
enum { SLEEP_MS = 1000 };
static const size_t body_max = (size_t)64 * 1024;
static const tw_duration retry_after_max = 24 * TW_HOUR;
/* A run that found no descriptor waits this time, and so does the limit of running ones to grow by
 * one. */
static const tw_duration starved_time = TW_SECOND;
/* New connections share a look-up of a name for this time, in seconds. */
enum { LOOKUP_AGE_S = 1 };

/*
 * Since 8.20 libcurl looks names up in at most 20 threads, and waits for these when a multi handle
 * is freed. Before that it has a thread for each lookup, waits for none, and refuses these options,
 * which its headers may not have either: CURLMOPT_RESOLVE_THREADS_MAX and CURLMOPT_QUICK_EXIT.
 */
enum { LOOKUP_THREADS_MAX = CURLOPTTYPE_LONG + 20, LOOKUPS_ARE_LEFT = CURLOPTTYPE_LONG + 21 };
/* A callback looks up IPv4 and IPv6 addresses, while lookups of earlier callbacks may still go on
 * after their time was up. */
enum { LOOKUPS_OF_A_CALLBACK = 8 };

/* This holds one request at a time. */
struct http_request {
	struct http_request *next; /* in the list of idle ones */
	CURL *easy;
	struct run *run; /* NULL while it is idle */
	struct curl_slist *headers;
	const struct targets *targets;
	enum target_verdict host;
	char denied[INET6_ADDRSTRLEN]; /* the last denied address, or "" */
	bool opened;                   /* an address was allowed */
	bool starved;                  /* no descriptor was left for a connection */
	size_t body_size;              /* the bytes of the response read so far */
	tw_duration start;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_begin(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Discards the response's body. A body that is too long ends the transfer. */
static size_t body_take(char *data, size_t size, size_t count, void *argument)
{
	struct http_request *request = argument;

	(void)data;
	request->body_size += size * count;
	return request->body_size > body_max ? CURL_WRITEFUNC_ERROR : size * count;
}

/* Returns the value of the response's header, or "" if it has none. */
static const char *header_value(CURL *easy, const char *name)
{
	struct curl_header *header;

	return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK
		       ? header->value
		       : "";
}

/* curl asks for a socket to each address that it tries. A connection is used again only for the
 * host that was judged. */
static curl_socket_t socket_open(void *argument, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct http_request *request = argument;
	char text[INET6_ADDRSTRLEN];
	int made;

	(void)purpose;
	if (!targets_allow_address(request->targets, request->host, &to->addr, text)) {
		memcpy(request->denied, text, sizeof(text));
		return CURL_SOCKET_BAD;
	}
	request->opened = true;
	made = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
	request->starved |= made < 0 && (errno == EMFILE || errno == ENFILE);
	return made;
}

/*
 * Reads the host of a URL as curl will, in ASCII. If it has no name in ASCII, *host is its name as
 * it is; before 8.3 curl returns CURLUE_OUT_OF_MEMORY for this. *host is NULL after other failures.
 * curl_free() frees it.
 */
static CURLUcode host_read(const char *url, char **host)
{
	CURLU *parts = curl_url();
	CURLUcode failed = CURLUE_OUT_OF_MEMORY;
	char *name = NULL;
	char *ascii = NULL;

	if (parts)
		failed = curl_url_set(parts, CURLUPART_URL, url, 0);
	if (!failed)
		failed = curl_url_get(parts, CURLUPART_HOST, &name, 0);
	if (!failed)
		failed = curl_url_get(parts, CURLUPART_HOST, &ascii, CURLU_PUNYCODE);
	curl_url_cleanup(parts);
	*host = failed ? name : ascii;
	curl_free(failed ? ascii : name);
	return failed;
}

/* Judges the URL's host. Returns false if it must not be called; the run then has its outcome. */
static bool host_judge(struct http_request *request)
{
	struct run *run = request->run;
	char *host;
	CURLUcode failed = host_read(run->job->url, &host);
	const char *fault = NULL;

	if (failed)
		fault = host ? "the host has no name in ASCII: " : curl_url_strerror(failed);
	else if ((request->host = targets_judge_host(request->targets, host)) == TARGET_DENIED)
		fault = "the host is denied: ";
	if (fault) {
		run->outcome = failed == CURLUE_OUT_OF_MEMORY ? TW_REDIS_RETRY : TW_REDIS_KILL;
		snprintf(run->verdict.reason, sizeof(run->verdict.reason), "%s%.200s", fault,
			 host ? host : "");
	}
	curl_free(host);
	return !fault;
}

tw_duration answer_retry_after(const char *text, const char *date)
{
	long long seconds = 0;

	if (isdigit((unsigned char)*text)) {
		seconds = strtoll(text, NULL, 10);
	} else {
		/* This does not depend on the clock of this machine. */
		time_t until = curl_getdate(text, NULL);
		time_t now = curl_getdate(date, NULL);

		if (until != -1 && now != -1)
			seconds = (long long)(until - now);
	}
	if (seconds > retry_after_max / TW_SECOND)
		return retry_after_max;
	return seconds > 0 ? seconds * TW_SECOND : 0;
}

tw_duration answer_snooze(const char *text)
{
	long long seconds = isdigit((unsigned char)*text) ? strtoll(text, NULL, 10) : 0;

	return seconds < TW_REDIS_DELAY_MAX / TW_SECOND ? seconds * TW_SECOND : TW_REDIS_DELAY_MAX;
}

static enum tw_redis_outcome outcome_of(long status)
{
	if (status >= 200 && status < 300)
		return TW_REDIS_DONE;
	if (status == 408 || status == 429 || status >= 500)
		return TW_REDIS_RETRY;
	return TW_REDIS_KILL;
}

static void answer_judge(struct http_request *request, CURLcode result)
{
	struct run *run = request->run;
	CURL *easy = request->easy;
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (result == CURLE_OK || request->body_size > body_max) {
		run->http_status = (int)status;
		run->verdict.retry_in = answer_snooze(header_value(easy, "Tw-Snooze"));
		run->outcome = run->verdict.retry_in ? TW_REDIS_SNOOZE : outcome_of(status);
		run->retry_least = answer_retry_after(header_value(easy, "Retry-After"),
						      header_value(easy, "Date"));
		if (outcome_of(status) != TW_REDIS_DONE)
			snprintf(run->verdict.reason, sizeof(run->verdict.reason), "HTTP %ld",
				 status);
		return;
	}
	if (*request->denied && !request->opened) {
		run->outcome = TW_REDIS_KILL;
		snprintf(run->verdict.reason, sizeof(run->verdict.reason),
			 "the address is denied: %s", request->denied);
		return;
	}
	if (request->starved) {
		run->outcome = TW_REDIS_SNOOZE;
		run->verdict.retry_in = starved_time;
		snprintf(run->verdict.reason, sizeof(run->verdict.reason),
			 "no file descriptor is left");
		return;
	}
	run->outcome = result == CURLE_URL_MALFORMAT ? TW_REDIS_KILL : TW_REDIS_RETRY;
	snprintf(run->verdict.reason, sizeof(run->verdict.reason), "%s",
		 curl_easy_strerror(result));
}

static bool headers_add(struct http_request *request, const char *line)
{
	struct curl_slist *longer = curl_slist_append(request->headers, line);

	if (longer)
		request->headers = longer;
	return longer;
}

/* Adds a header. For curl "Name:" removes a header, and "Name;" has no value. */
static bool header_add(struct http_request *request, const char *header)
{
	const char *colon = strchr(header, ':');
	char empty[TW_REDIS_HEADERS_MAX + 1];

	if (colon[1 + strspn(colon + 1, " \t")])
		return headers_add(request, header);
	snprintf(empty, sizeof(empty), "%.*s;", (int)(colon - header), header);
	return headers_add(request, empty);
}

static bool headers_write(struct http_request *request, const struct tw_redis_job *job)
{
	char line[48 + 3 * TW_REDIS_KEY_MAX] = "Tw-Key: ";
	bool typed = false;
	bool named = false;
	bool fine;

	tw_redis_write_key(job->key, job->key_size, line + strlen(line));
	fine = headers_add(request, line);
	snprintf(line, sizeof(line), "Tw-Attempt: %u", job->attempt);
	fine = fine && headers_add(request, line);
	snprintf(line, sizeof(line), "Tw-Token: %" PRIu64, job->token);
	fine = fine && headers_add(request, line) && headers_add(request, "Expect:");
	if (job->group) {
		strcpy(line, "Tw-Group: ");
		tw_redis_write_key(job->group, strlen(job->group), line + strlen(line));
		fine = fine && headers_add(request, line);
	}
	for (size_t i = 0; i < job->header_count && fine; i++) {
		typed = typed || !strncasecmp(job->headers[i], "Content-Type:", 13);
		named = named || !strncasecmp(job->headers[i], "Idempotency-Key:", 16);
		fine = header_add(request, job->headers[i]);
	}
	strcpy(line, "Idempotency-Key: ");
	tw_redis_write_key(job->key, job->key_size, line + strlen(line));
	snprintf(line + strlen(line), 24, " %" PRIu64, job->token);
	if (!named)
		fine = fine && headers_add(request, line);
	if (!typed && (job->method == TW_REDIS_POST || job->body_size))
		fine = fine && headers_add(request, "Content-Type: application/json");
	return fine;
}

/* Sets method and body. For curl a POST sends a body, whatever its name. */
static bool method_set(CURL *easy, const struct tw_redis_job *job)
{
	const char *name = method_name(job->method);

	if (job->method == TW_REDIS_HEAD)
		return !curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	if (!job->body_size && (job->method == TW_REDIS_GET || job->method == TW_REDIS_DELETE))
		return !curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L) &&
		       !curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, name);
	/* curl does not copy the body, which lies in the batch. */
	return !curl_easy_setopt(easy, CURLOPT_POST, 1L) &&
	       !curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, name) &&
	       !curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)job->body_size) &&
	       !curl_easy_setopt(easy, CURLOPT_POSTFIELDS, job->body_size ? job->body : "");
}

/* Fills in the request. Returns false without memory, the one reason why an option fails. */
static bool request_fill(struct callbacks *callbacks, struct http_request *request)
{
	const struct tw_redis_job *job = request->run->job;
	CURL *easy = request->easy;
	long connect_ms = (long)delay_to_ms(callbacks->options->http_connect_timeout);
	long timeout_ms = (long)delay_to_ms(callbacks->options->http_timeout);
	long age_s = (long)((callbacks->options->connection_age + TW_SECOND - 1) / TW_SECOND);
	bool fine = headers_write(request, job);

	curl_easy_reset(easy);
	fine = fine && !curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") &&
	       !curl_easy_setopt(easy, CURLOPT_URL, job->url) &&
	       !curl_easy_setopt(easy, CURLOPT_PROXY, "") &&
	       !curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) &&
	       !curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) &&
	       /* A timeout does not wait for the look-up of a name. */
	       !curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) &&
	       !curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms) &&
	       !curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms) &&
	       !curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, age_s) &&
	       !curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, (long)LOOKUP_AGE_S) &&
	       !curl_easy_setopt(easy, CURLOPT_USERAGENT, "timingwheel") &&
	       !curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_take) &&
	       !curl_easy_setopt(easy, CURLOPT_WRITEDATA, request) &&
	       !curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket_open) &&
	       !curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request) &&
	       !curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers) &&
	       !curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
	return fine && method_set(easy, job);
}

/* Returns how long the host asks not to be called, or 0. */
static tw_duration pause_of(const struct run *run)
{
	bool asks = run->http_status == 429 || run->http_status == 503;

	return asks && run->outcome == TW_REDIS_RETRY ? run->retry_least : 0;
}

/* Limits the running requests by the descriptors: to those that run now, or to one more. */
static void callbacks_limit(struct callbacks *callbacks, bool starved, tw_duration now)
{
	unsigned most = starved ? callbacks->busy : callbacks->most + 1;

	callbacks->starved = now;
	if (most > callbacks->options->callbacks)
		most = callbacks->options->callbacks;
	if (most == callbacks->most)
		return;
	callbacks->most = most ? most : 1;
	/* Idle connections take descriptors, too. */
	curl_multi_setopt(callbacks->multi, CURLMOPT_MAXCONNECTS, (long)callbacks->most);
}

static void request_end(struct callbacks *callbacks, struct http_request *request)
{
	struct run *run = request->run;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);

	curl_multi_remove_handle(callbacks->multi, request->easy);
	run->took = now - request->start;
	hosts_end(&callbacks->hosts, run, now, run->http_status, pause_of(run));
	/* The host asked for a pause, so the task has not failed. */
	if (run->put_off)
		run->outcome = TW_REDIS_SNOOZE;
	curl_slist_free_all(request->headers);
	request->headers = NULL;
	request->run = NULL;
	request->next = callbacks->idle;
	callbacks->idle = request;
	callbacks->busy--;
	if (request->starved || now - callbacks->starved >= starved_time)
		callbacks_limit(callbacks, request->starved, now);
	pthread_mutex_lock(&callbacks->runner.lock);
	runner_end(&callbacks->runner, run);
	pthread_mutex_unlock(&callbacks->runner.lock);
}

static void request_start(struct callbacks *callbacks, struct run *run)
{
	struct http_request *request = callbacks->idle;

	callbacks->idle = request->next;
	callbacks->busy++;
	request->run = run;
	request->targets = callbacks->targets;
	*request->denied = '\0';
	request->opened = false;
	request->starved = false;
	request->body_size = 0;
	request->start = clock_read_real(CLOCK_MONOTONIC);
	run_begin(run, request->start);
	if (!host_judge(request)) {
		request_end(callbacks, request);
		return;
	}
	if (request_fill(callbacks, request) &&
	    curl_multi_add_handle(callbacks->multi, request->easy) == CURLM_OK)
		return;
	run->outcome = TW_REDIS_RETRY;
	snprintf(run->verdict.reason, sizeof(run->verdict.reason), "out of memory");
	request_end(callbacks, request);
}

/* Takes the runs handed over. Returns whether the thread goes on. */
static bool callbacks_take(struct callbacks *callbacks, tw_duration now)
{
	struct runner *runner = &callbacks->runner;
	struct run_list fresh;
	struct run *run;
	bool give_back;
	bool stop;

	run_list_init(&fresh);
	pthread_mutex_lock(&runner->lock);
	run_list_move(&fresh, &runner->waiting);
	give_back = callbacks->give_back;
	stop = runner->stop;
	pthread_mutex_unlock(&runner->lock);
	while ((run = run_list_take(&fresh)))
		hosts_add(&callbacks->hosts, run, now);
	hosts_check(&callbacks->hosts, now);
	if (give_back)
		hosts_give_back(&callbacks->hosts, now);
	return !stop;
}

/* Starts waiting runs while there is room, and gives back the runs put off. */
static void callbacks_begin(struct callbacks *callbacks, tw_duration now)
{
	struct runner *runner = &callbacks->runner;
	struct run *run;

	while (callbacks->busy < callbacks->most && (run = hosts_take(&callbacks->hosts, now))) {
		run_count(run);
		request_start(callbacks, run);
	}
	if (!callbacks->hosts.put_off.count)
		return;
	pthread_mutex_lock(&runner->lock);
	while ((run = run_list_take(&callbacks->hosts.put_off)))
		runner_return(runner, run);
	pthread_mutex_unlock(&runner->lock);
}

static void callbacks_collect(struct callbacks *callbacks)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(callbacks->multi, &left))) {
		struct http_request *request;
		char *private_data;

		assert(message->msg == CURLMSG_DONE);
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private_data);
		request = (struct http_request *)(void *)private_data;
		answer_judge(request, message->data.result);
		request_end(callbacks, request);
	}
}

static void callbacks_break_off(struct callbacks *callbacks)
{
	bool abort;

	pthread_mutex_lock(&callbacks->runner.lock);
	abort = callbacks->abort;
	callbacks->abort = false;
	pthread_mutex_unlock(&callbacks->runner.lock);
	for (unsigned i = 0; i < callbacks->options->callbacks && abort; i++) {
		struct http_request *request = &callbacks->requests[i];

		if (!request->run)
			continue;
		request->run->given_back = true;
		request_end(callbacks, request);
	}
}

/* Returns the time to the next check of hosts, which is less than a second. */
static int sleep_ms(const struct callbacks *callbacks, tw_duration now)
{
	tw_duration check_at = callbacks->hosts.check_at;

	if (!check_at)
		return SLEEP_MS;
	return check_at > now ? (int)delay_to_ms(check_at - now) : 0;
}

static void *callbacks_thread(void *argument)
{
	struct callbacks *callbacks = argument;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	int running;

	if (callbacks->utf8)
		uselocale(callbacks->utf8);
	while (callbacks_take(callbacks, now)) {
		callbacks_begin(callbacks, now);
		/* This returns at once if requests have begun. */
		curl_multi_poll(callbacks->multi, NULL, 0, sleep_ms(callbacks, now), NULL);
		curl_multi_perform(callbacks->multi, &running);
		callbacks_collect(callbacks);
		callbacks_break_off(callbacks);
		now = clock_read_real(CLOCK_MONOTONIC);
	}
	return NULL;
}

static void callbacks_free(struct callbacks *callbacks)
{
	for (unsigned i = 0; callbacks->requests && i < callbacks->options->callbacks; i++)
		if (callbacks->requests[i].easy)
			curl_easy_cleanup(callbacks->requests[i].easy);
	free(callbacks->requests);
	if (callbacks->multi)
		curl_multi_cleanup(callbacks->multi);
	hosts_free(&callbacks->hosts);
	if (callbacks->utf8)
		freelocale(callbacks->utf8);
	runner_destroy(&callbacks->runner);
}

static bool requests_create(struct callbacks *callbacks)
{
	unsigned limit = callbacks->options->callbacks;

	callbacks->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!callbacks->utf8 && errno == ENOMEM)
		return false;
	callbacks->multi = curl_multi_init();
	callbacks->requests = calloc(limit, sizeof(*callbacks->requests));
	if (!callbacks->multi || !callbacks->requests)
		return false;
	curl_multi_setopt(callbacks->multi, CURLMOPT_MAXCONNECTS, (long)limit);
	/* curl checks the age of idle connections only, and requests that share a connection of
	 * HTTP/2 can keep it busy for ever. So each request has a connection to itself. */
	curl_multi_setopt(callbacks->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	curl_multi_setopt(callbacks->multi, (CURLMoption)LOOKUP_THREADS_MAX,
			  (long)limit * LOOKUPS_OF_A_CALLBACK);
	curl_multi_setopt(callbacks->multi, (CURLMoption)LOOKUPS_ARE_LEFT, 1L);
	for (unsigned i = 0; i < limit; i++) {
		struct http_request *request = &callbacks->requests[i];

		request->easy = curl_easy_init();
		if (!request->easy)
			return false;
		request->next = callbacks->idle;
		callbacks->idle = request;
	}
	return true;
}

enum tw_status callbacks_start(struct callbacks *callbacks,
			       const struct tw_redis_worker_options *options, unsigned shards,
			       const struct targets *targets, struct mailbox *mailbox)
{
	pthread_once(&curl_once, curl_begin);
	memset(callbacks, 0, sizeof(*callbacks));
	callbacks->options = options;
	callbacks->most = options->callbacks;
	callbacks->targets = targets;
	runner_init(&callbacks->runner, mailbox);
	hosts_init(&callbacks->hosts, options->callbacks_per_host, shards, options->batch);
	if (!requests_create(callbacks)) {
		callbacks_free(callbacks);
		return TW_NO_MEMORY;
	}
	if (thread_start(&callbacks->thread, callbacks_thread, callbacks, "redis", "http", NULL) ==
	    0)
		return TW_OK;
	callbacks_free(callbacks);
	return TW_SYSTEM;
}

/* Raises a flag, and wakes the thread. */
static void callbacks_tell(struct callbacks *callbacks, bool *flag)
{
	pthread_mutex_lock(&callbacks->runner.lock);
	*flag = true;
	pthread_mutex_unlock(&callbacks->runner.lock);
	curl_multi_wakeup(callbacks->multi);
}

void callbacks_stop(struct callbacks *callbacks)
{
	callbacks_tell(callbacks, &callbacks->runner.stop);
	pthread_join(callbacks->thread.id, NULL);
	callbacks_free(callbacks);
}

void callbacks_submit(struct callbacks *callbacks, struct run_list *runs)
{
	if (!runs->count)
		return;
	pthread_mutex_lock(&callbacks->runner.lock);
	run_list_move(&callbacks->runner.waiting, runs);
	pthread_mutex_unlock(&callbacks->runner.lock);
	curl_multi_wakeup(callbacks->multi);
}

void callbacks_abort(struct callbacks *callbacks)
{
	callbacks_tell(callbacks, &callbacks->abort);
}

void callbacks_give_back(struct callbacks *callbacks)
{
	callbacks_tell(callbacks, &callbacks->give_back);
}
