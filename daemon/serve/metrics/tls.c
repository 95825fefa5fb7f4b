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

/* libmicrohttpd needs the library and has loaded it. */
static void *find(const char *name)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

#define FUNCTIONS(X)                                                                                         \
    X(x509_crt_list_import2)                                                                                 \
    X(x509_crt_get_expiration_time)                                                                          \
    X(x509_crt_deinit)                                                                                       \
    X(certificate_allocate_credentials)                                                                      \
    X(certificate_set_x509_key_mem)                                                                          \
    X(certificate_free_credentials)
static struct {
#define POINTER(name) __typeof__(gnutls_##name) *name;
    FUNCTIONS(POINTER)
    gnutls_free_function *free;
} gnutls;

static int open_library(struct occ_error *err)
{
    bool has_all = true;
#define LOAD(name) has_all = (*(void **)&gnutls.name = find("gnutls_" #name)) != NULL && has_all;
    FUNCTIONS(LOAD)
    LOAD(free)
    return has_all ? 0 : occ_fail(err, OCC_E_NOT_FOUND, "%s is not there, or too old", LIBRARY);
}

/* Earliest expiry of the file's certificates. */
static int read_expiry(const char *path, const char *text, int64_t *ret_s, struct occ_error *err)
{
    gnutls_x509_crt_t *certificates = NULL;
    unsigned int n = 0;
    const gnutls_datum_t pem = {.data = (unsigned char *)(uintptr_t)text, .size = (unsigned int)strlen(text)};
    if (gnutls.x509_crt_list_import2(&certificates, &n, &pem, GNUTLS_X509_FMT_PEM, 0) < 0 || n == 0)
        return occ_fail(err, OCC_E_INVALID, "%s has no certificate that can be read", path);
    *ret_s = INT64_MAX;
    for (unsigned int i = 0; i < n; i++) {
        int64_t expires_s = gnutls.x509_crt_get_expiration_time(certificates[i]);
        *ret_s = expires_s < *ret_s ? expires_s : *ret_s;
        gnutls.x509_crt_deinit(certificates[i]);
    }
    (*gnutls.free)(certificates);
    return 0;
}

/* Checks that key and certificate match: libmicrohttpd would report only that it cannot start. */
static int check_pair(const char *const paths[OCC_TLS_PARTS], char *const text[OCC_TLS_PARTS],
                      struct occ_error *err)
{
    gnutls_datum_t pem[2];
    gnutls_certificate_credentials_t credentials = NULL;
    for (int i = 0; i < 2; i++) {
        const char *part = text[i ? OCC_TLS_KEY : OCC_TLS_CERTIFICATE];
        pem[i] =
            (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)part, .size = (unsigned int)strlen(part)};
    }
    if (gnutls.certificate_allocate_credentials(&credentials) != 0)
        return occ_no_memory(err);
    int failed = gnutls.certificate_set_x509_key_mem(credentials, &pem[0], &pem[1], GNUTLS_X509_FMT_PEM);
    gnutls.certificate_free_credentials(credentials);
    return failed >= 0 ? 0
                       : occ_fail(err, OCC_E_INVALID, "%s has no key that belongs to the certificate in %s",
                                  paths[OCC_TLS_KEY], paths[OCC_TLS_CERTIFICATE]);
}

void occ_tls_look(const char *const paths[OCC_TLS_PARTS], struct occ_file_signature files[OCC_TLS_PARTS])
{
    for (int i = 0; i < OCC_TLS_PARTS; i++)
        files[i] = occ_file_signature_of(paths[i] ? paths[i] : "");
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
    if (n > 0 && !gnutls.free)
        status = open_library(err);
    for (int i = 0; i < n && status == 0; i++) {
        status = read_file(paths[i], &ret_tls->text[i], err);
        if (status == 0 && i != OCC_TLS_KEY)
            status = read_expiry(paths[i], ret_tls->text[i], &ret_tls->expires_s[i], err);
    }
    if (status == 0 && n > 0)
        status = check_pair(paths, ret_tls->text, err);
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
        *(void **)&verify = find("gnutls_certificate_verify_peers");
    return verify && session && verify(session, &purpose, 1, &status) == 0 && status == 0;
}
