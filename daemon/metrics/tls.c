/* See tls.h. */
#include "tls.h"

#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/paths.h"

#define LIBRARY    "libgnutls.so.30"
#define FILE_BYTES ((size_t)1 << 20)

static int read_file(const char *path, char **ret_text, struct occ_error *err)
{
    size_t n = 0;
    int status = occ_path_read(path, FILE_BYTES + 1, ret_text, &n, err);
    return status != 0 || (n > 0 && n <= FILE_BYTES)
               ? status
               : occ_fail(err, OCC_E_INVALID, "%s is empty or too large", path);
}

int occ_tls_load(const char *const paths[OCC_TLS_PARTS], struct occ_tls *ret_tls, struct occ_error *err)
{
    int status = 0, n = 0;
    *ret_tls = (struct occ_tls){.text = {NULL}};
    for (int i = 0; i < OCC_TLS_PARTS; i++)
        n += paths[i] && paths[i][0];
    if (n != 0 && n != OCC_TLS_PARTS)
        return occ_fail(err, OCC_E_INVALID,
                        "http.tls_cert, http.tls_key and http.client_ca are set together or not at all");
    for (int i = 0; i < n && status == 0; i++)
        status = read_file(paths[i], &ret_tls->text[i], err);
    if (status != 0)
        occ_tls_free(ret_tls);
    return status;
}

void occ_tls_free(struct occ_tls *tls)
{
    for (int i = 0; i < OCC_TLS_PARTS; i++) {
        if (tls->text[i])
            explicit_bzero(tls->text[i], strlen(tls->text[i]));
        free(tls->text[i]);
        tls->text[i] = NULL;
    }
}

bool occ_tls_client_is_known(void *session)
{
    static __typeof__(gnutls_certificate_verify_peers) *verify;
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned int status = 1;
    if (!verify)
        *(void **)&verify = dlsym(dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), "gnutls_certificate_verify_peers");
    return verify && session && verify(session, &purpose, 1, &status) == 0 && status == 0;
}
