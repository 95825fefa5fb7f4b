/* Fuzzes the files of /proc about a process on a GPU: bytes up to the first byte 1 are its environment, the
 * others its mappings, and all of them its auxiliary vector. Texts stay bounded, and each finding occurs in
 * the input. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/coverage/evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has(const char *bytes, size_t size, const char *word)
{
    return memmem(bytes, size, word, strlen(word)) != NULL;
}

static void check(const struct occ_evidence *e, const char *bytes, size_t size)
{
    const struct {
        bool found;
        const char *word;
    } rows[] = {{e->environment.is_disabled, "OCCTRACE_DISABLE="},
                {e->environment.is_injected, "CUDA_INJECTION64_PATH="},
                {e->environment.names_guest, "libocctrace"},
                {e->environment.socket[0] != '\0', "OCCTRACE_SOCKET="},
                {e->has_musl, "musl"},
                {e->has_old_glibc, "libc-2."},
                {e->maps_driver, "libcuda.so"},
                {e->maps_guest, "libocctrace.so"},
                {e->maps_cupti, "libcupti.so"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].found && !has(bytes, size, rows[i].word))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_evidence e = {.exists = true, .is_readable = true};
    char *bytes = calloc(1, size + 1), *work = calloc(1, size + 1);
    if (!bytes || !work)
        abort();
    if (size > 0)
        memcpy(bytes, data, size);
    const char *end = memchr(bytes, 1, size);
    size_t n = end ? (size_t)(end - bytes) : size;
    memcpy(work, bytes, n);
    occ_evidence_parse_environment(work, n, &e);
    memcpy(work, bytes, size);
    for (char *line = work + n; line < work + size;) {
        char *next = line + strcspn(line, "\n") + 1;
        occ_evidence_parse_mapping(line, &e);
        line = next;
    }
    occ_evidence_parse_vector(bytes, size, &e);
    check(&e, bytes, size);
    const struct occ_evidence_view view = {.socket = "/run/occtrace/occtraced.sock"};
    if (occ_evidence_judge(&e, &view) == OCC_COVERAGE_RECORDED)
        abort(); /* only a program that reports is recorded */
    free(bytes);
    free(work);
    return 0;
}
