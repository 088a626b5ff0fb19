/* SPDX-License-Identifier: MIT */
/* tls is what all TLS connections of a struct tw_redis share: trusted authorities, our
 * certificate. */
#ifndef REDIS_WIRE_TLS_H
#define REDIS_WIRE_TLS_H

#include "settings.h"

struct ssl_ctx_st;
struct ssl_st;

/* Makes settings->tls_context if the settings ask for TLS. Returns TW_INVALID if a file cannot be
 * used, or TW_NO_MEMORY. tls_context_free() follows also after a failure. */
enum tw_status tls_context_create(struct settings *settings, struct tw_redis_error *error);
void tls_context_free(struct settings *settings);

/* Returns TLS over the socket, before its handshake, or NULL without memory. SSL_free() frees
 * it. */
struct ssl_st *tls_begin(const struct settings *settings, int descriptor, const char *host);

/* Returns whether the server has asked for a certificate and we have none. */
bool tls_lacks_certificate(const struct ssl_st *tls);

/* Returns whether we distrust the server's certificate. Then a retry is useless. */
bool tls_distrusts(const struct ssl_st *tls);

/* Writes why the last call of OpenSSL on this thread failed. errno was 0 before that call. `tls` is
 * NULL if the call was not about a connection. */
void tls_explain(const struct ssl_st *tls, char *text, size_t room);

#endif
