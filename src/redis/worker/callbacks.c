/* SPDX-License-Identifier: MIT */
/*
 * callbacks.c is one thread with a multi handle of libcurl. Easy handles and connections are used
 * again. redis.h says what is sent, and what a response means.
 *
 * A request has one of the options' `callbacks` places until it ends, or until its host has not
 * answered for long (hosts.c): so hosts that hang hold up no others. The requests without a place
 * are limited by the descriptors.
 */
#include "callbacks.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/thread.h"
#include "redis/client/record.h"

/* The thread looks at requests this often, and sleeps at most SLEEP_MS. */
enum { LOOK_MS = 50, SLEEP_MS = 1000, REQUESTS_MAX = 1024 };
enum { CONNECT_MS = 5000 }; /* the time limit of a connection */
/* This much of a body is read, and for this time after the status was seen. */
static const size_t body_max = (size_t)64 * 1024;
static const tw_duration body_time = TW_SECOND;
static const tw_duration retry_after_min = 100 * TW_MILLISECOND;
static const tw_duration retry_after_max = 24 * TW_HOUR;
/* A run that found no descriptor waits this time. */
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
	bool is_aside;                 /* it has given its place away */
	bool is_short_of_memory;       /* a header could not be added */
	size_t body_size;              /* the bytes of the response read so far */
	tw_duration start;
	tw_duration status_seen; /* 0 means no status yet */
	enum host_sign sign;
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
	if (fault)
		run_judge(run, failed == CURLUE_OUT_OF_MEMORY ? TW_REDIS_RETRY : TW_REDIS_KILL,
			  "%s%.200s", fault, host ? host : "");
	curl_free(host);
	return !fault;
}

/* Reads digits, with a fraction or not. */
static tw_duration seconds_read(const char *text, tw_duration most)
{
	tw_duration seconds = 0;
	tw_duration part = 0;

	for (; isdigit((unsigned char)*text) && seconds < most / TW_SECOND; text++)
		seconds = 10 * seconds + *text - '0';
	if (*text == '.')
		for (tw_duration unit = TW_SECOND / 10; isdigit((unsigned char)*++text); unit /= 10)
			part += unit * (*text - '0');
	return seconds < most / TW_SECOND ? seconds * TW_SECOND + part : most;
}

tw_duration answer_retry_after(const char *text, const char *date)
{
	tw_duration wait;

	if (isdigit((unsigned char)*text)) {
		wait = seconds_read(text, retry_after_max);
	} else {
		time_t until = curl_getdate(text, NULL);
		time_t now = curl_getdate(date, NULL);

		if (until == -1)
			return 0;
		wait = until - (now == -1 ? time(NULL) : now);
		wait = wait < retry_after_max / TW_SECOND ? wait : retry_after_max / TW_SECOND;
		wait = wait > 0 ? wait * TW_SECOND : 0;
	}
	return wait > retry_after_min ? wait : retry_after_min;
}

tw_duration answer_snooze(const char *text)
{
	return seconds_read(text, TW_REDIS_DELAY_MAX);
}

static enum tw_redis_outcome outcome_of(long status)
{
	if (status >= 200 && status < 300)
		return TW_REDIS_DONE;
	if (status == 408 || status == 429 || status >= 500)
		return TW_REDIS_RETRY;
	return TW_REDIS_KILL;
}

/* Judges a request without an answer. */
static void failure_judge(struct http_request *request, CURLcode result)
{
	struct run *run = request->run;
	curl_off_t connected = 0;

	if (*request->denied && !request->opened) {
		run_judge(run, TW_REDIS_KILL, "the address is denied: %s", request->denied);
	} else if (request->starved) {
		run_judge(run, TW_REDIS_SNOOZE, "no file descriptor is left");
		run->verdict.retry_in = starved_time;
	} else if (result == CURLE_URL_MALFORMAT) {
		run_judge(run, TW_REDIS_KILL, "%s", curl_easy_strerror(result));
	} else {
		run_judge(run, TW_REDIS_RETRY, "%s", curl_easy_strerror(result));
		curl_easy_getinfo(request->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
		if (!connected || result == CURLE_OPERATION_TIMEDOUT)
			request->sign = HOST_AWAY;
	}
}

/* Judges an ended request. A status counts, whatever became of the body. */
static void answer_judge(struct http_request *request, CURLcode result)
{
	struct run *run = request->run;
	CURL *easy = request->easy;
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK && status < 200) {
		failure_judge(request, result);
		return;
	}
	request->sign = HOST_ANSWERED;
	run->http_status = (int)status;
	run->verdict.retry_in = answer_snooze(header_value(easy, "Tw-Snooze"));
	run->outcome = run->verdict.retry_in ? TW_REDIS_SNOOZE : outcome_of(status);
	run->retry_least =
		answer_retry_after(header_value(easy, "Retry-After"), header_value(easy, "Date"));
	if (outcome_of(status) != TW_REDIS_DONE)
		snprintf(run->verdict.reason, sizeof(run->verdict.reason), "HTTP %ld", status);
}

static void headers_add(struct http_request *request, const char *line)
{
	struct curl_slist *longer = curl_slist_append(request->headers, line);

	request->is_short_of_memory |= !longer;
	if (longer)
		request->headers = longer;
}

/* Adds a header of the task. For curl "Name:" removes a header, and "Name;" has no value. */
static void header_add(struct http_request *request, const char *header)
{
	const char *colon = strchr(header, ':');
	char empty[TW_REDIS_HEADERS_MAX + 1];
	bool has_value = colon[1 + strspn(colon + 1, " \t")];

	snprintf(empty, sizeof(empty), "%.*s;", (int)(colon - header), header);
	headers_add(request, has_value ? header : empty);
}

/* Adds a header, whose text has no more than a key. */
__attribute__((format(printf, 2, 3))) static void header_print(struct http_request *request,
							       const char *format, ...)
{
	char line[64 + 3 * TW_REDIS_KEY_MAX];
	va_list values;

	va_start(values, format);
	vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	headers_add(request, line);
}

static void headers_write(struct http_request *request, const struct tw_redis_job *job)
{
	char name[3 * TW_REDIS_KEY_MAX + 1];
	bool typed = false;
	bool named = false;

	tw_redis_write_key(job->key, job->key_size, name);
	header_print(request, "Tw-Key: %s", name);
	header_print(request, "Tw-Attempt: %u", job->attempt);
	header_print(request, "Tw-Token: %" PRIu64, job->token);
	header_print(request, "Tw-Due: %" PRId64, job->due_ms);
	for (size_t i = 0; i < job->header_count; i++) {
		typed = typed || !strncasecmp(job->headers[i], "Content-Type:", 13);
		named = named || !strncasecmp(job->headers[i], "Idempotency-Key:", 16);
		header_add(request, job->headers[i]);
	}
	if (!named)
		header_print(request, "Idempotency-Key: %s %" PRIu64, name, job->token);
	if (!typed && (job->method == TW_REDIS_POST || job->body_size))
		headers_add(request, "Content-Type: application/json");
	if (job->group) {
		tw_redis_write_key(job->group, strlen(job->group), name);
		header_print(request, "Tw-Group: %s", name);
	}
	headers_add(request, "Expect:");
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
	long timeout_ms = (long)delay_to_ms(callbacks->options->http_timeout);
	long age_s = (long)((callbacks->options->connection_age + TW_SECOND - 1) / TW_SECOND);
	bool fine;

	headers_write(request, job);
	curl_easy_reset(easy);
	fine = !request->is_short_of_memory &&
	       !curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") &&
	       !curl_easy_setopt(easy, CURLOPT_URL, job->url) &&
	       !curl_easy_setopt(easy, CURLOPT_PROXY, "") &&
	       !curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) &&
	       /* A timeout does not wait for the look-up of a name. */
	       !curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) &&
	       !curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) &&
	       !curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms) &&
	       !curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, age_s) &&
	       !curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, (long)LOOKUP_AGE_S) &&
	       !curl_easy_setopt(easy, CURLOPT_USERAGENT, "timingwheel") &&
	       !curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_take) &&
	       !curl_easy_setopt(easy, CURLOPT_WRITEDATA, request) &&
	       !curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket_open) &&
	       !curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request) &&
	       !curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers) &&
	       !curl_easy_setopt(easy, CURLOPT_PRIVATE, request) &&
	       (!callbacks->ca_file ||
		!curl_easy_setopt(easy, CURLOPT_CAINFO, callbacks->ca_file)) &&
	       (!callbacks->ca_path || !curl_easy_setopt(easy, CURLOPT_CAPATH, callbacks->ca_path));
	return fine && method_set(easy, job);
}

/* Returns how long the host asks not to be called, or 0. */
static tw_duration pause_of(const struct run *run)
{
	bool asks = run->http_status == 429 || run->http_status == 503;

	return asks && run->outcome == TW_REDIS_RETRY ? run->retry_least : 0;
}

static void request_end(struct callbacks *callbacks, struct http_request *request)
{
	struct run *run = request->run;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);

	curl_multi_remove_handle(callbacks->multi, request->easy);
	run->took = now - request->start;
	hosts_end(run, now, request->sign, pause_of(run));
	/* The host asked for a pause, so the task has not failed. */
	if (run->put_off)
		run->outcome = TW_REDIS_SNOOZE;
	curl_slist_free_all(request->headers);
	callbacks->sent--;
	callbacks->aside -= request->is_aside;
	*request = (struct http_request){.easy = request->easy, .next = callbacks->idle};
	callbacks->idle = request;
	runner_end(&callbacks->runner, run);
}

static void request_start(struct callbacks *callbacks, struct run *run)
{
	struct http_request *request = callbacks->idle;

	callbacks->idle = request->next;
	callbacks->sent++;
	request->run = run;
	request->targets = callbacks->targets;
	request->start = clock_read_real(CLOCK_MONOTONIC);
	run_begin(run, request->start);
	if (!request->easy)
		request->easy = curl_easy_init();
	if (!host_judge(request)) {
		request_end(callbacks, request);
	} else if (!request->easy || !request_fill(callbacks, request) ||
		   curl_multi_add_handle(callbacks->multi, request->easy) != CURLM_OK) {
		run_judge(run, TW_REDIS_RETRY, "out of memory");
		request_end(callbacks, request);
	}
}

/* Takes the runs handed over. Returns the order. */
static enum callbacks_order callbacks_take(struct callbacks *callbacks, tw_duration now)
{
	struct runner *runner = &callbacks->runner;
	enum callbacks_order order;
	struct run_list fresh;
	struct run *run;

	run_list_init(&fresh);
	pthread_mutex_lock(&runner->lock);
	run_list_move(&fresh, &runner->waiting);
	order = callbacks->order;
	pthread_mutex_unlock(&runner->lock);
	while ((run = run_list_take(&fresh)))
		hosts_add(&callbacks->hosts, run, now);
	hosts_check(&callbacks->hosts, now);
	if (order != CALLBACKS_RUN)
		hosts_give_back(&callbacks->hosts);
	return order;
}

/* Shows how many runs hold up no other. If there are more, others may be claimed. */
static void aside_show(struct callbacks *callbacks)
{
	size_t aside = callbacks->aside + callbacks->hosts.aside;

	if (atomic_exchange_explicit(&callbacks->aside_shown, aside, memory_order_relaxed) < aside)
		mailbox_ring(callbacks->runner.mailbox);
}

/* Starts waiting runs while there is room, and gives back the runs put off. */
static void callbacks_begin(struct callbacks *callbacks, tw_duration now)
{
	unsigned places = callbacks->options->callbacks;
	struct run *run;

	while (callbacks->idle && callbacks->sent - callbacks->aside < places &&
	       (run = hosts_take(&callbacks->hosts, now,
				 places > callbacks->sent ? places - callbacks->sent : 0))) {
		run_count(run);
		request_start(callbacks, run);
	}
	aside_show(callbacks);
	while ((run = run_list_take(&callbacks->hosts.put_off)))
		runner_return(&callbacks->runner, run);
}

/* Takes the places of requests without an answer, and ends those whose status came long ago. With
 * `abort` it breaks off all. */
static void callbacks_look(struct callbacks *callbacks, tw_duration now, bool abort)
{
	if (now < callbacks->look_at && !abort)
		return;
	callbacks->look_at = now + LOOK_MS * TW_MILLISECOND;
	for (unsigned i = 0; i < callbacks->most; i++) {
		struct http_request *request = &callbacks->requests[i];
		bool is_late =
			request->run && now - request->start >= host_patience(request->run->host);
		long status = 0;

		if (!request->run)
			continue;
		callbacks->aside += is_late && !request->is_aside;
		request->is_aside |= is_late;
		curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
		if (status >= 200 && !request->status_seen)
			request->status_seen = now;
		if (request->status_seen && now - request->status_seen >= body_time) {
			answer_judge(request, CURLE_OK);
			request_end(callbacks, request);
		} else if (abort) {
			request->run->given_back = true;
			request_end(callbacks, request);
		}
	}
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

static void *callbacks_thread(void *argument)
{
	struct callbacks *callbacks = argument;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	enum callbacks_order order;
	int running;

	if (callbacks->utf8)
		uselocale(callbacks->utf8);
	while ((order = callbacks_take(callbacks, now)) != CALLBACKS_STOP) {
		bool is_idle = list_is_empty(&callbacks->hosts.waiting);

		callbacks_begin(callbacks, now);
		is_idle = is_idle && !callbacks->sent;
		/* This returns at once if requests have begun. */
		curl_multi_poll(callbacks->multi, NULL, 0, is_idle ? SLEEP_MS : LOOK_MS, NULL);
		curl_multi_perform(callbacks->multi, &running);
		callbacks_collect(callbacks);
		now = clock_read_real(CLOCK_MONOTONIC);
		callbacks_look(callbacks, now, order == CALLBACKS_ABORT);
	}
	return NULL;
}

static void callbacks_free(struct callbacks *callbacks)
{
	for (unsigned i = 0; callbacks->requests && i < callbacks->most; i++)
		curl_easy_cleanup(callbacks->requests[i].easy);
	free(callbacks->requests);
	curl_multi_cleanup(callbacks->multi);
	hosts_free(&callbacks->hosts);
	free(callbacks->ca_file);
	free(callbacks->ca_path);
	if (callbacks->utf8)
		freelocale(callbacks->utf8);
	runner_destroy(&callbacks->runner);
}

/* Returns how many requests there may be: each may need two descriptors, for its connection and for
 * the look-up of a name. Some are left for all else. */
static unsigned requests_most(void)
{
	enum { OTHERS = 16 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < OTHERS + 4)
		return 1;
	limit.rlim_cur = (limit.rlim_cur - OTHERS) / 2;
	return limit.rlim_cur < REQUESTS_MAX ? (unsigned)limit.rlim_cur : REQUESTS_MAX;
}

static bool text_copy(char **to, const char *from)
{
	*to = from && *from ? strdup(from) : NULL;
	return *to || !from || !*from;
}

/* Chooses the certificates by which servers are believed. Returns false without memory. */
static bool certificates_choose(struct callbacks *callbacks)
{
	const char *own = callbacks->options->ca_file;

	return text_copy(&callbacks->ca_file, own ? own : secure_getenv("SSL_CERT_FILE")) &&
	       text_copy(&callbacks->ca_path, own ? NULL : secure_getenv("SSL_CERT_DIR"));
}

static bool requests_create(struct callbacks *callbacks)
{
	unsigned limit = callbacks->options->callbacks;

	callbacks->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!callbacks->utf8 && errno == ENOMEM)
		return false;
	callbacks->multi = curl_multi_init();
	callbacks->most = requests_most();
	callbacks->requests = calloc(callbacks->most, sizeof(*callbacks->requests));
	if (!callbacks->multi || !callbacks->requests || !certificates_choose(callbacks))
		return false;
	curl_multi_setopt(callbacks->multi, CURLMOPT_MAXCONNECTS, (long)limit);
	/* curl checks the age of idle connections only, and requests that share a connection of
	 * HTTP/2 can keep it busy for ever. So each request has a connection to itself. */
	curl_multi_setopt(callbacks->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	curl_multi_setopt(callbacks->multi, (CURLMoption)LOOKUP_THREADS_MAX,
			  (long)callbacks->most * LOOKUPS_OF_A_CALLBACK);
	curl_multi_setopt(callbacks->multi, (CURLMoption)LOOKUPS_ARE_LEFT, 1L);
	for (unsigned i = callbacks->most; i--;) {
		callbacks->requests[i].next = callbacks->idle;
		callbacks->idle = &callbacks->requests[i];
	}
	return true;
}

enum tw_status callbacks_start(struct callbacks *callbacks,
			       const struct tw_redis_worker_options *options,
			       const struct targets *targets, uint64_t random,
			       struct mailbox *mailbox)
{
	pthread_once(&curl_once, curl_begin);
	memset(callbacks, 0, sizeof(*callbacks));
	callbacks->options = options;
	callbacks->targets = targets;
	atomic_init(&callbacks->aside_shown, 0);
	runner_init(&callbacks->runner, mailbox);
	hosts_init(&callbacks->hosts, options->callbacks_per_host, random);
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

void callbacks_order(struct callbacks *callbacks, enum callbacks_order order)
{
	pthread_mutex_lock(&callbacks->runner.lock);
	callbacks->order = order;
	pthread_mutex_unlock(&callbacks->runner.lock);
	curl_multi_wakeup(callbacks->multi);
}

void callbacks_stop(struct callbacks *callbacks)
{
	callbacks_order(callbacks, CALLBACKS_STOP);
	pthread_join(callbacks->thread.id, NULL);
	callbacks_free(callbacks);
}

void callbacks_submit(struct callbacks *callbacks, struct run_list *runs)
{
	if (runner_give(&callbacks->runner, runs))
		curl_multi_wakeup(callbacks->multi);
}
