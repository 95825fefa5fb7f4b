/* TLS of the HTTP server's TCP sockets: the files that it needs, and who is at the other end. GnuTLS does the
 * work below libmicrohttpd, and is opened at run time as that is. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/error.h"
#include "support/file_signature.h"

/* Of PEM. */
enum occ_tls_part { OCC_TLS_CERTIFICATE, OCC_TLS_KEY, OCC_TLS_CLIENT_CA, OCC_TLS_PARTS };

struct occ_tls {
    char *text[OCC_TLS_PARTS];        /* malloc'ed; NULL: no TLS is wanted */
    int64_t expires_s[OCC_TLS_PARTS]; /* the file's first certificate to expire, since the epoch; 0: none */
};

/* The files' signatures now; of a path that is not given, that of no file. */
void occ_tls_look(const char *const paths[OCC_TLS_PARTS], struct occ_file_signature files[OCC_TLS_PARTS]);

/* Reads the files; no path (NULL or ""), no TLS. OCC_E_INVALID: only some of the paths are given, or
 * a file has no certificate that can be read. Where it fails, *ret_tls is empty. */
int occ_tls_load(const char *const paths[OCC_TLS_PARTS], struct occ_tls *ret_tls, struct occ_error *err);
/* Overwrites the key. */
void occ_tls_free(struct occ_tls *tls);

/* Whether the client of this session (gnutls_session_t) has a certificate for clients that the authority of
 * the server's CLIENT_CA signed, and that is valid now. */
bool occ_tls_client_is_known(void *session);
