/* SPDX-License-Identifier: MIT */
/*
 * tls.c is TLS by OpenSSL. OpenSSL's own BIO for sockets writes with write(), which raises SIGPIPE
 * when the server is gone. The BIO here sends with MSG_NOSIGNAL.
 */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

static int bio_socket(BIO *bio)
{
	return (int)(intptr_t)BIO_get_data(bio);
}

static int bio_write(BIO *bio, const char *data, int size)
{
	ssize_t sent = send(bio_socket(bio), data, (size_t)size, MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (sent < 0 && errno == EAGAIN)
		BIO_set_retry_write(bio);
	return (int)sent;
}

static int bio_read(BIO *bio, char *data, int size)
{
	ssize_t got = recv(bio_socket(bio), data, (size_t)size, 0);

	BIO_clear_retry_flags(bio);
	if (got < 0 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	return (int)got;
}

static long bio_control(BIO *bio, int eval, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return eval == BIO_CTRL_FLUSH;
}

/* Makes the method. Returns NULL without memory. */
static BIO_METHOD *method_create(void)
{
	BIO_METHOD *made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");

	if (!made)
		return NULL;
	(void)BIO_meth_set_write(made, bio_write);
	(void)BIO_meth_set_read(made, bio_read);
	(void)BIO_meth_set_ctrl(made, bio_control);
	return made;
}

static enum tw_status file_refused(const char *what, const char *path, struct tw_redis_error *error)
{
	char reason[100];

	tls_explain(NULL, reason, sizeof(reason));
	return error_set(error, TW_INVALID, "%s %.100s: %s", what, path, reason);
}

static enum tw_status files_read(const struct settings *settings, SSL_CTX *context,
				 struct tw_redis_error *error)
{
	const char *certificate = settings->certificate_file;

	if (!settings->ca_file && SSL_CTX_set_default_verify_paths(context) != 1)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	if (settings->ca_file &&
	    SSL_CTX_load_verify_locations(context, settings->ca_file, NULL) != 1)
		return file_refused("CA file", settings->ca_file, error);
	if (!certificate)
		return TW_OK;
	if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
		return file_refused("certificate file", certificate, error);
	/* This compares the key with the certificate too. */
	if (SSL_CTX_use_PrivateKey_file(context, settings->key_file, SSL_FILETYPE_PEM) != 1)
		return file_refused("key file", settings->key_file, error);
	return TW_OK;
}

/* OpenSSL calls this when the server asks for our certificate. */
static int certificate_asked(SSL *tls, void *argument)
{
	(void)argument;
	SSL_set_app_data(tls, tls); /* anything but NULL */
	return 1;
}

bool tls_lacks_certificate(const SSL *tls)
{
	return SSL_get_app_data(tls) && !SSL_get_certificate(tls);
}

enum tw_status tls_context_create(struct settings *settings, struct tw_redis_error *error)
{
	SSL_CTX *context;

	if (!settings->tls)
		return TW_OK;
	context = settings->tls_context = SSL_CTX_new(TLS_client_method());
	settings->tls_method = method_create();
	if (!context || !settings->tls_method)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_cert_cb(context, certificate_asked, NULL);
	ERR_clear_error();
	return files_read(settings, context, error);
}

void tls_context_free(struct settings *settings)
{
	SSL_CTX_free(settings->tls_context);
	BIO_meth_free(settings->tls_method);
}

/* Says which name or address the server's certificate must have. */
static bool name_expect(SSL *tls, const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), name) == 1;
	return SSL_set1_host(tls, name) == 1 && SSL_set_tlsext_host_name(tls, name) == 1;
}

SSL *tls_begin(const struct settings *settings, int descriptor, const char *host)
{
	SSL *tls = SSL_new(settings->tls_context);
	BIO *bio = BIO_new(settings->tls_method);

	if (!tls || !bio ||
	    !name_expect(tls, settings->server_name ? settings->server_name : host)) {
		BIO_free(bio);
		SSL_free(tls);
		return NULL;
	}
	BIO_set_init(bio, 1);
	BIO_set_data(bio, (void *)(intptr_t)descriptor);
	SSL_set_bio(tls, bio, bio);
	SSL_set_connect_state(tls);
	return tls;
}

bool tls_distrusts(const SSL *tls)
{
	return SSL_get_verify_result(tls) != X509_V_OK;
}

/* Returns the error's text, or NULL if it has none. */
static const char *error_text(unsigned long code)
{
	if (!code)
		return errno ? strerror(errno) : "the server closed the connection";
	/* The low bits are the system's error number. */
	return ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code))
				      : ERR_reason_error_string(code);
}

void tls_explain(const SSL *tls, char *text, size_t room)
{
	const char *reason = error_text(ERR_get_error());

	if (tls && tls_distrusts(tls))
		snprintf(text, room, "the server's certificate: %s",
			 X509_verify_cert_error_string(SSL_get_verify_result(tls)));
	else
		snprintf(text, room, "%s", reason ? reason : "an error without a message");
	ERR_clear_error();
}
