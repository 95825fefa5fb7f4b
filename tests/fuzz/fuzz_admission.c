/*
 * Fuzzes the reader of admission requests with any bytes, in two pieces. An accepted request has an answer
 * that is JSON, allows the pod, and whose patch has the length of a base64 text. A refused request has no
 * answer.
 *
 * Input: the first byte chooses the namespace's level and the place of the cut; the request is behind it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "cluster/webhook/admission.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

static void check_answer(const char *text)
{
    const char *allowed[] = {"response", "allowed", NULL}, *patch[] = {"response", "patch", NULL};
    yajl_val tree = yajl_tree_parse(text, NULL, 0);
    must(tree != NULL);
    must(YAJL_IS_TRUE(yajl_tree_get(tree, allowed, yajl_t_any)));
    yajl_val base64 = yajl_tree_get(tree, patch, yajl_t_string);
    must(!base64 || (strlen(base64->u.string) > 0 && strlen(base64->u.string) % 4 == 0));
    yajl_tree_free(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct occ_admission_options options = {.library_directory = "/usr/lib/occtrace",
                                                  .run_directory = "/run/occtrace",
                                                  .forbids_host_paths = data[0] & 1};
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_admission_freep) struct occ_admission *admission = occ_admission_new(&options);
    must(admission != NULL);
    const uint8_t *request = data + 1;
    size_t n = size - 1, cut = n * (data[0] >> 1) / 128;
    bool is_fed = occ_admission_feed(admission, request, cut, &err) == 0 &&
                  occ_admission_feed(admission, request + cut, n - cut, &err) == 0;
    char *text = NULL;
    size_t answer_n = 0;
    FILE *out = open_memstream(&text, &answer_n);
    must(out != NULL);
    bool is_answered = occ_admission_answer(admission, out, &err) == 0;
    must(fclose(out) == 0);
    must(is_fed || !is_answered);
    must(is_answered == (answer_n > 0));
    if (is_answered)
        check_answer(text);
    else
        must(err.code == OCC_E_INVALID && err.message[0] != '\0');
    free(text);
    return 0;
}
