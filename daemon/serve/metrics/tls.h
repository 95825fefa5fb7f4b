/* TLS of the HTTP server's TCP sockets: its files, and the check of the client's certificate. libmicrohttpd
 * uses GnuTLS, which is loaded at run time too. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/error.h"
#include "support/file_signature.h"

/* PEM files. */
enum occ_tls_part { OCC_TLS_CERTIFICATE, OCC_TLS_KEY, OCC_TLS_CLIENT_CA, OCC_TLS_PARTS };

struct occ_tls {
    char *text[OCC_TLS_PARTS]; /* malloc'ed; NULL: no TLS */
    /* earliest expiry of the file's certificates, since the epoch; 0: none */
    int64_t expires_s[OCC_TLS_PARTS];
};

/* Current signatures of the files; a missing path has the signature of a missing file. */
void occ_tls_look(const char *const paths[OCC_TLS_PARTS], struct occ_file_signature files[OCC_TLS_PARTS]);

/* Reads the files; without paths (NULL or "") no TLS. OCC_E_INVALID: only some of the paths are given, or a
 * file has no readable certificate. After a failure *ret_tls is empty. */
int occ_tls_load(const char *const paths[OCC_TLS_PARTS], struct occ_tls *ret_tls, struct occ_error *err);
/* Overwrites the key before freeing it. */
void occ_tls_free(struct occ_tls *tls);

/* true if the client of this session (gnutls_session_t) has a client certificate that is valid now and signed
 * by the authority in the server's CLIENT_CA. */
bool occ_tls_client_is_known(void *session);
