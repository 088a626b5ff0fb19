/* SPDX-License-Identifier: MIT */
/*
 * hiredis has TLS from its version 1.0 on, as a library of its own; Debian 12 has 0.14. The
 * server's certificate must come from one of the system's authorities; hiredis compares no name.
 */
#include "connection_tls.h"

#ifdef TW_REDIS_TLS

#include <pthread.h>

#include <hiredis/hiredis_ssl.h>

static void tls_begin(void)
{
	redisInitOpenSSL();
}

enum tw_status connection_secure(redisContext *context, const char *host,
				 struct tw_redis_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	redisSSLContextError reason = REDIS_SSL_CTX_NONE;
	redisSSLContext *tls;
	int result;

	pthread_once(&once, tls_begin);
	tls = redisCreateSSLContext(NULL, "/etc/ssl/certs", NULL, NULL, host, &reason);
	if (!tls)
		return error_set(error, TW_REDIS_UNFIT, "TLS: %s", redisSSLContextGetError(reason));
	result = redisInitiateSSLWithContext(context, tls);
	redisFreeSSLContext(tls);
	if (result != REDIS_OK)
		return error_set(error, TW_REDIS_UNREACHABLE, "TLS: %s", context->errstr);
	return TW_OK;
}

#else

enum tw_status connection_secure(redisContext *context, const char *host,
				 struct tw_redis_error *error)
{
	(void)context;
	(void)host;
	return error_set(error, TW_REDIS_UNFIT,
			 "rediss:// needs TLS, and hiredis_ssl was not there when this was built");
}

#endif
