/* SPDX-License-Identifier: MIT */
/* What all TLS connections of one struct tw_redis share: trusted authorities, our certificate. */
#ifndef REDIS_WIRE_TLS_H
#define REDIS_WIRE_TLS_H

#include "settings.h"

struct ssl_ctx_st;
struct ssl_st;

/* Makes settings->tls_context if the settings ask for TLS. TW_OK; TW_INVALID: a file that can't be
 * used; TW_NO_MEMORY. */
enum tw_status tls_context_create(struct settings *settings, struct tw_redis_error *error);
void tls_context_free(struct settings *settings);

/* TLS over the socket, whose handshake is to come; NULL without memory. SSL_free() frees it. */
struct ssl_st *tls_begin(const struct settings *settings, int descriptor, const char *host);

/* The server has asked for a certificate, and we have none. */
bool tls_lacks_certificate(const struct ssl_st *tls);

/* The server's certificate is no good, so trying again is no use. */
bool tls_distrusts(const struct ssl_st *tls);

/* Writes why the last call of OpenSSL on this thread failed, errno being 0 before it. tls: NULL if
 * it was not about a connection. */
void tls_explain(const struct ssl_st *tls, char *text, size_t room);

#endif
