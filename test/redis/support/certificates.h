/* SPDX-License-Identifier: MIT */
/* Certificates for tests of TLS, made anew. What should not fail ends the program. */
#ifndef REDIS_SUPPORT_CERTIFICATES_H
#define REDIS_SUPPORT_CERTIFICATES_H

/*
 * Writes into the folder, in PEM:
 *   ca.pem         an authority, which has signed what follows
 *   key.pem        the key of all of them
 *   server.pem     for 127.0.0.1 and localhost
 *   elsewhere.pem  for elsewhere.example
 *   expired.pem    for 127.0.0.1, a day ago
 *   client.pem
 *   other.pem      an authority that has signed nothing
 */
void certificates_make(const char *folder);

#endif
