/* The answer to an admission request: see admission.h. */
#include "admission.h"

#include <stdlib.h>
#include <string.h>

#include "request.h"
#include "support/json.h"
#include "support/text.h"

#define OUTCOME_BYTES 1024

struct occ_admission {
    struct occ_admission_options options;
    struct occ_admission_request request;
    struct occ_admission_parser *parser;
    char outcome[OUTCOME_BYTES];
};

struct occ_admission *occ_admission_new(const struct occ_admission_options *options)
{
    struct occ_admission *admission = calloc(1, sizeof *admission);
    if (!admission)
        return NULL;
    admission->options = *options;
    admission->parser = occ_admission_parser_new(&admission->request);
    return admission->parser ? admission : (free(admission), NULL);
}

void occ_admission_free(struct occ_admission *admission)
{
    if (admission)
        occ_admission_parser_free(admission->parser);
    free(admission);
}

int occ_admission_feed(struct occ_admission *admission, const void *bytes, size_t n, struct occ_error *err)
{
    return occ_admission_parse(admission->parser, bytes, n, err);
}

const char *occ_admission_outcome(const struct occ_admission *admission)
{
    return admission->outcome;
}

/* ---- the outcome in words ---- */

static OCC_WORDS(obstacle_word, enum occ_obstacle, OCC_ADMISSION_OBSTACLES)

    /* Appends the names of containers, each with its obstacle; `heading` stands before the first name. */
    static void list_containers(struct occ_admission *admission, const char *heading,
                                bool (*is_listed)(const struct occ_admission_container *container))
{
    const struct occ_admission_request *request = &admission->request;
    bool has_heading = false;
    for (size_t i = 0; i < request->n_containers; i++) {
        const struct occ_admission_container *container = &request->containers[i];
        const char *why = obstacle_word(container->obstacle);
        if (!is_listed(container))
            continue;
        occ_text_append(admission->outcome, OUTCOME_BYTES, has_heading ? ", " : "; ", "%s%s%s%s%s",
                        has_heading ? "" : heading, container->name, why[0] ? " (" : "", why,
                        why[0] ? ")" : "");
        has_heading = true;
    }
}

static bool is_changed(const struct occ_admission_container *container)
{
    return container->obstacle == OCC_OBSTACLE_NONE;
}

static bool is_unchanged(const struct occ_admission_container *container)
{
    return !is_changed(container);
}

/* Returns true if envFrom may set a variable of the patch: the request lacks the content of ConfigMaps and
 * Secrets. The patch's variable overrides it. */
static bool is_uncertain(const struct occ_admission_container *container)
{
    return is_changed(container) && container->has_environment_from;
}

/* Returns the reason to leave the whole pod unchanged; NULL: containers may be changed. */
static const char *pod_obstacle(const struct occ_admission *admission)
{
    const struct occ_admission_request *request = &admission->request;
    if (admission->options.forbids_host_paths)
        return "unchanged: the pod security level of the namespace forbids hostPath volumes";
    if (request->is_windows)
        return "unchanged: the pod runs on Windows";
    if (request->has_own_volumes)
        return "unchanged: the pod has a volume " OCC_ADMISSION_LIBRARY_VOLUME
               " or " OCC_ADMISSION_RUN_VOLUME;
    return NULL;
}

/* Writes the outcome in words. Returns true if the patch changes containers. */
static bool decide(struct occ_admission *admission)
{
    const char *why = pod_obstacle(admission);
    bool changes = false;
    for (size_t i = 0; i < admission->request.n_containers && !why; i++)
        changes |= is_changed(&admission->request.containers[i]);
    admission->outcome[0] = '\0';
    if (why)
        occ_text_append(admission->outcome, OUTCOME_BYTES, "", "%s", why);
    if (changes)
        list_containers(admission, "recorded: ", is_changed);
    if (!why)
        list_containers(admission, "unchanged: ", is_unchanged);
    if (changes)
        list_containers(admission, "envFrom not checked: ", is_uncertain);
    occ_text_sanitise(admission->outcome);
    return changes;
}

/* ---- the patch ---- */

static void begin_add(struct occ_json *json, const char *path)
{
    occ_json_object(json, NULL, true);
    occ_json_string(json, "op", "add");
    occ_json_string(json, "path", path);
}

/* Opens an operation that adds an element to an array, or the array with it. The value's object is open then.
 */
static void begin_element(struct occ_json *json, const char *array, bool exists)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s", array, exists ? "/-" : "");
    begin_add(json, path);
    if (!exists)
        occ_json_array(json, "value", true);
    occ_json_object(json, exists ? "value" : NULL, true);
}

static void end_element(struct occ_json *json, bool existed)
{
    occ_json_close(json);
    if (!existed)
        occ_json_close(json);
    occ_json_close(json);
}

static void put_volume(struct occ_json *json, const char *name, const char *directory, bool has_array)
{
    begin_element(json, "/spec/volumes", has_array);
    occ_json_string(json, "name", name);
    occ_json_object(json, "hostPath", true);
    occ_json_string(json, "path", directory);
    occ_json_string(json, "type", "DirectoryOrCreate");
    occ_json_close(json);
    end_element(json, has_array);
}

static void put_mount(struct occ_json *json, const char *array, const char *name, const char *path,
                      bool has_array)
{
    begin_element(json, array, has_array);
    occ_json_string(json, "name", name);
    occ_json_string(json, "mountPath", path);
    occ_json_bool(json, "readOnly", true);
    end_element(json, has_array);
}

static void put_variable(struct occ_json *json, const char *array, const char *name, const char *value,
                         bool has_array)
{
    begin_element(json, array, has_array);
    occ_json_string(json, "name", name);
    occ_json_string(json, "value", value);
    end_element(json, has_array);
}

/* In a user namespace (hostUsers: false) the host's root has no number, so the guest library trusts the
 * daemon only at a socket that a variable names. */
static void put_container(struct occ_json *json, const struct occ_admission_container *container)
{
    const char *kind = container->is_init ? "initContainers" : "containers";
    char array[96];
    (void)snprintf(array, sizeof array, "/spec/%s/%zu/env", kind, container->index);
    put_variable(json, array, "CUDA_INJECTION64_PATH", OCC_ADMISSION_LIBRARY, container->has_environment);
    if (!container->has_socket)
        put_variable(json, array, "OCCTRACE_SOCKET", OCC_ADMISSION_SOCKET, true);
    (void)snprintf(array, sizeof array, "/spec/%s/%zu/volumeMounts", kind, container->index);
    put_mount(json, array, OCC_ADMISSION_LIBRARY_VOLUME, OCC_ADMISSION_LIBRARY_DIRECTORY,
              container->has_mounts);
    put_mount(json, array, OCC_ADMISSION_RUN_VOLUME, OCC_ADMISSION_RUN_DIRECTORY, true);
}

/* Adds the annotation. The slash of its key is ~1 in a JSON pointer (RFC 6901). */
static void put_annotation(struct occ_json *json, const struct occ_admission *admission)
{
    bool exists = admission->request.has_annotations;
    begin_add(json, exists ? "/metadata/annotations/occtrace.io~1status" : "/metadata/annotations");
    if (exists)
        occ_json_string(json, "value", admission->outcome);
    else {
        occ_json_object(json, "value", true);
        occ_json_string(json, OCC_ADMISSION_STATUS_ANNOTATION, admission->outcome);
        occ_json_close(json);
    }
    occ_json_close(json);
}

static int make_patch(const struct occ_admission *admission, bool changes, char **ret_text, size_t *ret_n,
                      struct occ_error *err)
{
    const struct occ_admission_request *request = &admission->request;
    FILE *out = open_memstream(ret_text, ret_n);
    if (!out)
        return occ_no_memory(err);
    struct occ_json json = {.out = out};
    occ_json_array(&json, NULL, true);
    if (changes) {
        put_volume(&json, OCC_ADMISSION_LIBRARY_VOLUME, admission->options.library_directory,
                   request->has_volumes);
        put_volume(&json, OCC_ADMISSION_RUN_VOLUME, admission->options.run_directory, true);
    }
    for (size_t i = 0; i < request->n_containers && changes; i++)
        if (is_changed(&request->containers[i]))
            put_container(&json, &request->containers[i]);
    put_annotation(&json, admission);
    occ_json_close(&json);
    int failed = ferror(out);
    return fclose(out) != 0 || failed ? occ_no_memory(err) : 0;
}

/* ---- the answer ---- */

static void put_base64(FILE *out, const char *text, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned bits = 0;
        for (size_t k = i; k < i + 3; k++)
            bits = bits << 8 | (k < n ? (unsigned char)text[k] : 0);
        for (size_t k = 0; k < 4; k++)
            (void)fputc(k <= n - i ? digits[bits >> (18 - 6 * k) & 63] : '=', out);
    }
}

static void put_patch(struct occ_json *json, const char *patch, size_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    (void)fputc('"', out);
    put_base64(out, patch, n);
    (void)fputc('"', out);
    if (fclose(out) == 0) {
        occ_json_string(json, "patchType", "JSONPatch");
        occ_json_raw(json, "patch", text);
    }
    free(text);
}

/* Returns true if the request creates a pod that has not opted out. All other requests are allowed without a
 * patch. */
static bool concerns(const struct occ_admission_request *request)
{
    return request->is_create && request->is_pod && !request->is_subresource && request->has_metadata &&
           request->has_spec && request->n_containers > 0 && !request->is_opted_out;
}

int occ_admission_answer(struct occ_admission *admission, FILE *out, struct occ_error *err)
{
    _cleanup_(occ_freep) char *patch = NULL;
    size_t n = 0;
    int status = occ_admission_parse_end(admission->parser, err);
    if (status == 0 && concerns(&admission->request))
        status = make_patch(admission, decide(admission), &patch, &n, err);
    if (status != 0)
        return status;
    struct occ_json json;
    occ_json_begin(&json, out);
    occ_json_string(&json, "apiVersion", "admission.k8s.io/v1");
    occ_json_string(&json, "kind", "AdmissionReview");
    occ_json_object(&json, "response", false);
    occ_json_string(&json, "uid", admission->request.uid);
    occ_json_bool(&json, "allowed", true);
    if (n > 0)
        put_patch(&json, patch, n);
    occ_json_close(&json);
    occ_json_end(&json);
    return 0;
}
