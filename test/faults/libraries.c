/* SPDX-License-Identifier: MIT */
/*
 * Objects of other libraries count as allocations, too: tests of src/redis link this beside
 * faults.c. So does each timer of a worker, whose wheel has memory for many at a time.
 */
#include "faults.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <curl/curl.h>
#include <hiredis/hiredis.h>
#include <openssl/ssl.h>
#include <timingwheel/timingwheel.h>

CURLM *__real_curl_multi_init(void);
CURLM *__wrap_curl_multi_init(void);
CURL *__real_curl_easy_init(void);
CURL *__wrap_curl_easy_init(void);
CURLU *__real_curl_url(void);
CURLU *__wrap_curl_url(void);
CURLcode __real_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLMcode __real_curl_multi_add_handle(CURLM *multi, CURL *easy);
CURLMcode __wrap_curl_multi_add_handle(CURLM *multi, CURL *easy);
CURLUcode __real_curl_url_get(const CURLU *url, CURLUPart part, char **text, unsigned flags);
CURLUcode __wrap_curl_url_get(const CURLU *url, CURLUPart part, char **text, unsigned flags);
struct curl_slist *__real_curl_slist_append(struct curl_slist *list, const char *text);
struct curl_slist *__wrap_curl_slist_append(struct curl_slist *list, const char *text);
SSL_CTX *__real_SSL_CTX_new(const SSL_METHOD *method);
SSL_CTX *__wrap_SSL_CTX_new(const SSL_METHOD *method);
int __real_SSL_CTX_set_default_verify_paths(SSL_CTX *context);
int __wrap_SSL_CTX_set_default_verify_paths(SSL_CTX *context);
SSL *__real_SSL_new(SSL_CTX *context);
SSL *__wrap_SSL_new(SSL_CTX *context);
long __real_SSL_ctrl(SSL *tls, int control, long number, void *pointer);
long __wrap_SSL_ctrl(SSL *tls, int control, long number, void *pointer);
int __real_SSL_set1_host(SSL *tls, const char *host);
int __wrap_SSL_set1_host(SSL *tls, const char *host);
BIO *__real_BIO_new(const BIO_METHOD *method);
BIO *__wrap_BIO_new(const BIO_METHOD *method);
BIO_METHOD *__real_BIO_meth_new(int type, const char *name);
BIO_METHOD *__wrap_BIO_meth_new(int type, const char *name);
redisReader *__real_redisReaderCreate(void);
redisReader *__wrap_redisReaderCreate(void);
int __real_redisReaderFeed(redisReader *reader, const char *bytes, size_t size);
int __wrap_redisReaderFeed(redisReader *reader, const char *bytes, size_t size);
enum tw_status __real_tw_after_func(struct tw_wheel *wheel, tw_duration delay, void (*run)(void *),
				    void *argument, struct tw_timer *timer);
enum tw_status __wrap_tw_after_func(struct tw_wheel *wheel, tw_duration delay, void (*run)(void *),
				    void *argument, struct tw_timer *timer);

CURLM *__wrap_curl_multi_init(void)
{
	return allocation_fails() ? NULL : __real_curl_multi_init();
}

CURL *__wrap_curl_easy_init(void)
{
	return allocation_fails() ? NULL : __real_curl_easy_init();
}

CURLU *__wrap_curl_url(void)
{
	return allocation_fails() ? NULL : __real_curl_url();
}

struct curl_slist *__wrap_curl_slist_append(struct curl_slist *list, const char *text)
{
	return allocation_fails() ? NULL : __real_curl_slist_append(list, text);
}

/* The value is as large as a pointer, or is passed like one. */
#undef curl_easy_setopt
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	va_list arguments;
	void *value;

	va_start(arguments, option);
	value = va_arg(arguments, void *);
	va_end(arguments);
	return allocation_fails() ? CURLE_OUT_OF_MEMORY
				  : __real_curl_easy_setopt(easy, option, value);
}

CURLMcode __wrap_curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	return allocation_fails() ? CURLM_OUT_OF_MEMORY : __real_curl_multi_add_handle(multi, easy);
}

CURLUcode __wrap_curl_url_get(const CURLU *url, CURLUPart part, char **text, unsigned flags)
{
	return allocation_fails() ? CURLUE_OUT_OF_MEMORY
				  : __real_curl_url_get(url, part, text, flags);
}

SSL_CTX *__wrap_SSL_CTX_new(const SSL_METHOD *method)
{
	return allocation_fails() ? NULL : __real_SSL_CTX_new(method);
}

int __wrap_SSL_CTX_set_default_verify_paths(SSL_CTX *context)
{
	return allocation_fails() ? 0 : __real_SSL_CTX_set_default_verify_paths(context);
}

SSL *__wrap_SSL_new(SSL_CTX *context)
{
	return allocation_fails() ? NULL : __real_SSL_new(context);
}

long __wrap_SSL_ctrl(SSL *tls, int control, long number, void *pointer)
{
	return allocation_fails() ? 0 : __real_SSL_ctrl(tls, control, number, pointer);
}

int __wrap_SSL_set1_host(SSL *tls, const char *host)
{
	return allocation_fails() ? 0 : __real_SSL_set1_host(tls, host);
}

BIO *__wrap_BIO_new(const BIO_METHOD *method)
{
	return allocation_fails() ? NULL : __real_BIO_new(method);
}

BIO_METHOD *__wrap_BIO_meth_new(int type, const char *name)
{
	return allocation_fails() ? NULL : __real_BIO_meth_new(type, name);
}

redisReader *__wrap_redisReaderCreate(void)
{
	return allocation_fails() ? NULL : __real_redisReaderCreate();
}

int __wrap_redisReaderFeed(redisReader *reader, const char *bytes, size_t size)
{
	if (!allocation_fails())
		return __real_redisReaderFeed(reader, bytes, size);
	reader->err = REDIS_ERR_OOM;
	strcpy(reader->errstr, "Out of memory");
	return REDIS_ERR;
}

enum tw_status __wrap_tw_after_func(struct tw_wheel *wheel, tw_duration delay, void (*run)(void *),
				    void *argument, struct tw_timer *timer)
{
	return allocation_fails() ? TW_NO_MEMORY
				  : __real_tw_after_func(wheel, delay, run, argument, timer);
}
