/* SPDX-License-Identifier: MIT */
/* certificates.h makes certificates for tests of TLS. A failure ends the program. */
#ifndef REDIS_SUPPORT_CERTIFICATES_H
#define REDIS_SUPPORT_CERTIFICATES_H

/*
 * Writes into the folder, in PEM:
 *   ca.pem         an authority, which has signed the certificates below except the last
 *   key.pem        the key of all of them
 *   server.pem     for 127.0.0.1 and localhost
 *   elsewhere.pem  for elsewhere.example
 *   expired.pem    for 127.0.0.1, expired a day ago
 *   client.pem
 *   other.pem      an authority that has signed nothing
 */
void certificates_make(const char *folder);

#endif
