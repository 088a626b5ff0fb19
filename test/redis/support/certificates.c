/* SPDX-License-Identifier: MIT */
#include "support/certificates.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "support/sockets.h"

enum { DAY = 24 * 60 * 60 };

static FILE *file_open(const char *folder, const char *name)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	if (!file)
		support_failed(path);
	return file;
}

static void extension_add(X509 *certificate, int kind, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);

	if (!extension || !X509_add_ext(certificate, extension, -1))
		support_failed(value);
	X509_EXTENSION_free(extension);
}

/* Makes a certificate, valid from a week ago until `end`. NULL names make it an authority; a NULL
 * issuer makes it sign itself. */
static X509 *certificate_make(const char *folder, const char *file_name, EVP_PKEY *key,
			      const char *names, const X509 *issuer, EVP_PKEY *issuer_key, long end)
{
	static long serial;
	X509 *made = X509_new();
	FILE *file = file_open(folder, file_name);

	if (!made)
		support_failed("X509_new");
	X509_set_version(made, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(made), -7L * DAY);
	X509_gmtime_adj(X509_getm_notAfter(made), end);
	X509_set_pubkey(made, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
				   (const unsigned char *)file_name, -1, -1, 0);
	X509_set_issuer_name(made, X509_get_subject_name(issuer ? issuer : made));
	extension_add(made, NID_basic_constraints, names ? "CA:FALSE" : "critical,CA:TRUE");
	if (names)
		extension_add(made, NID_subject_alt_name, names);
	if (!X509_sign(made, issuer_key, EVP_sha256()) || !PEM_write_X509(file, made))
		support_failed(file_name);
	fclose(file);
	return made;
}

void certificates_make(const char *folder)
{
	EVP_PKEY *ca_key = EVP_EC_gen("P-256");
	EVP_PKEY *key = EVP_EC_gen("P-256");
	FILE *file = file_open(folder, "key.pem");
	X509 *ca = certificate_make(folder, "ca.pem", ca_key, NULL, NULL, ca_key, DAY);

	if (!PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL))
		support_failed("key.pem");
	fclose(file);
	X509_free(certificate_make(folder, "server.pem", key, "IP:127.0.0.1,DNS:localhost", ca,
				   ca_key, DAY));
	X509_free(certificate_make(folder, "elsewhere.pem", key, "DNS:elsewhere.example", ca,
				   ca_key, DAY));
	X509_free(certificate_make(folder, "expired.pem", key, "IP:127.0.0.1", ca, ca_key, -DAY));
	X509_free(certificate_make(folder, "client.pem", key, "DNS:client", ca, ca_key, DAY));
	X509_free(certificate_make(folder, "other.pem", key, NULL, NULL, key, DAY));
	X509_free(ca);
	EVP_PKEY_free(ca_key);
	EVP_PKEY_free(key);
}
