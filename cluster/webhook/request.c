/* The document, streamed through yajl: a table of places says which values are kept, and in which arrays and
 * objects they lie. Values at other places are skipped. See request.h. */
#include "request.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

/* Kind of value that a place must have; null counts as absent everywhere. */
enum shape { TEXT, MAP, ARRAY };

/* Places of the document that count: NAME, its parent, its key in the parent ("*" in an array), its shape. */
#define PLACES(X)                                                                                            \
    X(REVIEW, NOWHERE, "", MAP)                                                                              \
    X(API_VERSION, REVIEW, "apiVersion", TEXT)                                                               \
    X(REVIEW_KIND, REVIEW, "kind", TEXT)                                                                     \
    X(REQUEST, REVIEW, "request", MAP)                                                                       \
    X(UID, REQUEST, "uid", TEXT)                                                                             \
    X(OPERATION, REQUEST, "operation", TEXT)                                                                 \
    X(SUBRESOURCE, REQUEST, "subResource", TEXT)                                                             \
    X(OBJECT_TYPE, REQUEST, "kind", MAP)                                                                     \
    X(OBJECT_KIND, OBJECT_TYPE, "kind", TEXT)                                                                \
    X(POD, REQUEST, "object", MAP)                                                                           \
    X(METADATA, POD, "metadata", MAP)                                                                        \
    X(ANNOTATIONS, METADATA, "annotations", MAP)                                                             \
    X(OFF_ANNOTATION, ANNOTATIONS, OCC_ADMISSION_OFF_ANNOTATION, TEXT)                                       \
    X(LABELS, METADATA, "labels", MAP)                                                                       \
    X(RECORD_LABEL, LABELS, OCC_ADMISSION_LABEL, TEXT)                                                       \
    X(SPEC, POD, "spec", MAP)                                                                                \
    X(SYSTEM, SPEC, "os", MAP)                                                                               \
    X(SYSTEM_NAME, SYSTEM, "name", TEXT)                                                                     \
    X(NODE_SELECTOR, SPEC, "nodeSelector", MAP)                                                              \
    X(SELECTED_SYSTEM, NODE_SELECTOR, "kubernetes.io/os", TEXT)                                              \
    X(VOLUMES, SPEC, "volumes", ARRAY)                                                                       \
    X(VOLUME, VOLUMES, "*", MAP)                                                                             \
    X(VOLUME_NAME, VOLUME, "name", TEXT)                                                                     \
    X(CONTAINERS, SPEC, "containers", ARRAY)                                                                 \
    X(MAIN_CONTAINER, CONTAINERS, "*", MAP)                                                                  \
    X(INIT_CONTAINERS, SPEC, "initContainers", ARRAY)                                                        \
    X(INIT_CONTAINER, INIT_CONTAINERS, "*", MAP)                                                             \
    X(CONTAINER_NAME, MAIN_CONTAINER, "name", TEXT)                                                          \
    X(ENVIRONMENT, MAIN_CONTAINER, "env", ARRAY)                                                             \
    X(VARIABLE, ENVIRONMENT, "*", MAP)                                                                       \
    X(VARIABLE_NAME, VARIABLE, "name", TEXT)                                                                 \
    X(ENVIRONMENT_FROM, MAIN_CONTAINER, "envFrom", ARRAY)                                                    \
    X(MOUNTS, MAIN_CONTAINER, "volumeMounts", ARRAY)                                                         \
    X(MOUNT, MOUNTS, "*", MAP)                                                                               \
    X(MOUNT_PATH, MOUNT, "mountPath", TEXT)
enum place {
    NOWHERE,
#define PLACE_OF(name, parent, key, shape) name,
    PLACES(PLACE_OF) N_PLACES
};
static const struct {
    enum place parent;
    const char *key;
    enum shape shape;
} places[N_PLACES] = {
#define ROW_OF(name, parent, key, shape) [name] = {parent, key, shape},
    PLACES(ROW_OF)};
_Static_assert(N_PLACES <= 64, "a frame has a bit for each place");

struct frame {
    enum place place; /* place of this object or array */
    enum place next;  /* place of the value behind the last key */
    uint64_t seen;    /* places that the object has had: a second one makes the document ambiguous */
};

struct occ_admission_parser {
    yajl_handle yajl;
    struct occ_admission_request *request;
    size_t depth;
    struct frame frames[OCC_ADMISSION_DEPTH_MAX];
    const char *mistake; /* NULL: none yet */
};

static int wrong(struct occ_admission_parser *parser, const char *mistake)
{
    if (!parser->mistake)
        parser->mistake = mistake;
    return 0;
}

static bool is_text(const unsigned char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* Returns the place of the next value in the innermost object or array. */
static enum place place_here(const struct occ_admission_parser *parser)
{
    return parser->depth ? parser->frames[parser->depth - 1].next : REVIEW;
}

static enum place find_place(enum place parent, const unsigned char *key, size_t n)
{
    if (parent == INIT_CONTAINER)
        parent = MAIN_CONTAINER; /* they have the same members */
    for (int at = REVIEW; parent != NOWHERE && at < N_PLACES; at++)
        if (places[at].parent == parent && is_text(key, n, places[at].key))
            return (enum place)at;
    return NOWHERE;
}

/* ---- values ---- */

static void keep_text(char *kept, size_t size, const unsigned char *text, size_t n)
{
    size_t end = n < size ? n : size - 1;
    memcpy(kept, text, end);
    kept[end] = '\0';
}

static bool is_uid(const unsigned char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return n > 0 && n < OCC_ADMISSION_UID_BYTES;
}

static void see_obstacle(struct occ_admission_request *request, enum occ_obstacle obstacle)
{
    struct occ_admission_container *container = &request->containers[request->n_containers - 1];
    if (container->obstacle == OCC_OBSTACLE_NONE)
        container->obstacle = obstacle;
}

static void see_variable(struct occ_admission_request *request, const unsigned char *name, size_t n)
{
    if (is_text(name, n, "OCCTRACE_SOCKET"))
        request->containers[request->n_containers - 1].has_socket = true;
    if (is_text(name, n, "OCCTRACE_DISABLE"))
        see_obstacle(request, OCC_OBSTACLE_DISABLED);
    if (is_text(name, n, "CUDA_INJECTION64_PATH"))
        see_obstacle(request, OCC_OBSTACLE_INJECTION);
}

/* Kubernetes refuses two mounts at one path; a trailing slash names the same directory. */
static void see_mount(struct occ_admission_request *request, const unsigned char *path, size_t n)
{
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (is_text(path, n, OCC_ADMISSION_LIBRARY_DIRECTORY) || is_text(path, n, OCC_ADMISSION_RUN_DIRECTORY))
        see_obstacle(request, OCC_OBSTACLE_MOUNT);
}

static int on_string(void *context, const unsigned char *text, size_t n)
{
    struct occ_admission_parser *parser = context;
    struct occ_admission_request *request = parser->request;
    enum place place = place_here(parser);
    if (place != NOWHERE && places[place].shape != TEXT)
        return wrong(parser, "a text stands where an object or an array belongs");
    switch (place) {
    case API_VERSION:
        request->is_v1 = is_text(text, n, "admission.k8s.io/v1");
        break;
    case REVIEW_KIND:
        request->is_review = is_text(text, n, "AdmissionReview");
        break;
    case UID:
        if (!is_uid(text, n))
            return wrong(parser, "the request's uid is empty, too long or not printable ASCII");
        keep_text(request->uid, sizeof request->uid, text, n);
        break;
    case OPERATION:
        request->is_create = is_text(text, n, "CREATE");
        break;
    case SUBRESOURCE:
        request->is_subresource = n > 0;
        break;
    case OBJECT_KIND:
        request->is_pod = is_text(text, n, "Pod");
        break;
    case OFF_ANNOTATION:
        request->is_opted_out |= n > 0;
        break;
    case RECORD_LABEL:
        request->is_opted_out |= is_text(text, n, OCC_ADMISSION_LABEL_OFF);
        break;
    case SYSTEM_NAME:
    case SELECTED_SYSTEM:
        request->is_windows |= is_text(text, n, "windows");
        break;
    case VOLUME_NAME:
        request->has_own_volumes |=
            is_text(text, n, OCC_ADMISSION_LIBRARY_VOLUME) || is_text(text, n, OCC_ADMISSION_RUN_VOLUME);
        break;
    case CONTAINER_NAME:
        keep_text(request->containers[request->n_containers - 1].name, OCC_ADMISSION_NAME_BYTES, text, n);
        break;
    case VARIABLE_NAME:
        see_variable(request, text, n);
        break;
    case MOUNT_PATH:
        see_mount(request, text, n);
        break;
    default:
        break;
    }
    return 1;
}

/* Handles a number or a boolean, which no place of the table accepts. */
static int on_other(struct occ_admission_parser *parser)
{
    return place_here(parser) == NOWHERE ||
           wrong(parser, "a number or a boolean stands where a text belongs");
}

static int on_number(void *context, const char *digits, size_t n)
{
    (void)digits;
    (void)n;
    return on_other(context);
}

static int on_boolean(void *context, int boolean)
{
    (void)boolean;
    return on_other(context);
}

static int on_null(void *context)
{
    (void)context;
    return 1;
}

/* ---- objects and arrays ---- */

static int add_container(struct occ_admission_parser *parser, bool is_init)
{
    struct occ_admission_request *request = parser->request;
    size_t n = request->n_containers, index = 0;
    if (n == OCC_ADMISSION_CONTAINERS_MAX)
        return wrong(parser, "the pod has too many containers");
    for (size_t i = 0; i < n; i++)
        index += request->containers[i].is_init == is_init;
    request->containers[request->n_containers++] =
        (struct occ_admission_container){.is_init = is_init, .index = index};
    return 1;
}

/* Records that an object or an array exists. */
static int note(struct occ_admission_parser *parser, enum place place)
{
    struct occ_admission_request *request = parser->request;
    struct occ_admission_container *container =
        request->n_containers ? &request->containers[request->n_containers - 1] : NULL;
    switch (place) {
    case METADATA:
        request->has_metadata = true;
        break;
    case ANNOTATIONS:
        request->has_annotations = true;
        break;
    case SPEC:
        request->has_spec = true;
        break;
    case VOLUMES:
        request->has_volumes = true;
        break;
    case MAIN_CONTAINER:
        return add_container(parser, false);
    case INIT_CONTAINER:
        return add_container(parser, true);
    case ENVIRONMENT:
        container->has_environment = true;
        break;
    case ENVIRONMENT_FROM:
        container->has_environment_from = true;
        break;
    case MOUNTS:
        container->has_mounts = true;
        break;
    default:
        break;
    }
    return 1;
}

static int open_value(struct occ_admission_parser *parser, enum shape shape)
{
    enum place place = place_here(parser);
    if (place != NOWHERE && places[place].shape != shape)
        return wrong(parser, "an object or an array stands where another kind of value belongs");
    if (parser->depth == OCC_ADMISSION_DEPTH_MAX)
        return wrong(parser, "objects and arrays are nested too deeply");
    parser->frames[parser->depth++] = (struct frame){
        .place = place, .next = shape == ARRAY ? find_place(place, (const unsigned char *)"*", 1) : NOWHERE};
    return note(parser, place);
}

static int on_map(void *context)
{
    return open_value(context, MAP);
}

static int on_array(void *context)
{
    return open_value(context, ARRAY);
}

static int on_key(void *context, const unsigned char *key, size_t n)
{
    struct occ_admission_parser *parser = context;
    struct frame *frame = &parser->frames[parser->depth - 1];
    frame->next = find_place(frame->place, key, n);
    uint64_t bit = frame->next != NOWHERE ? UINT64_C(1) << frame->next : 0;
    if (frame->seen & bit)
        return wrong(parser, "an object has a key twice");
    frame->seen |= bit;
    return 1;
}

static int on_end(void *context)
{
    struct occ_admission_parser *parser = context;
    parser->depth--;
    return 1;
}

static const yajl_callbacks callbacks = {.yajl_null = on_null,
                                         .yajl_boolean = on_boolean,
                                         .yajl_number = on_number,
                                         .yajl_string = on_string,
                                         .yajl_start_map = on_map,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = on_end,
                                         .yajl_start_array = on_array,
                                         .yajl_end_array = on_end};

/* ---- the parser ---- */

struct occ_admission_parser *occ_admission_parser_new(struct occ_admission_request *request)
{
    struct occ_admission_parser *parser = calloc(1, sizeof *parser);
    if (!parser)
        return NULL;
    parser->request = request;
    parser->yajl = yajl_alloc(&callbacks, NULL, parser);
    if (!parser->yajl) {
        free(parser);
        return NULL;
    }
    return parser;
}

void occ_admission_parser_free(struct occ_admission_parser *parser)
{
    if (parser)
        yajl_free(parser->yajl);
    free(parser);
}

static int judge(struct occ_admission_parser *parser, yajl_status status, struct occ_error *err)
{
    if (status != yajl_status_ok && !parser->mistake)
        parser->mistake = "the request is not JSON, or ends too early";
    return parser->mistake ? occ_fail(err, OCC_E_INVALID, "%s", parser->mistake) : 0;
}

int occ_admission_parse(struct occ_admission_parser *parser, const void *bytes, size_t n,
                        struct occ_error *err)
{
    return judge(parser, parser->mistake ? yajl_status_error : yajl_parse(parser->yajl, bytes, n), err);
}

int occ_admission_parse_end(struct occ_admission_parser *parser, struct occ_error *err)
{
    const struct occ_admission_request *request = parser->request;
    int status = judge(parser, parser->mistake ? yajl_status_error : yajl_complete_parse(parser->yajl), err);
    if (status == 0 && (!request->is_v1 || !request->is_review))
        return occ_fail(err, OCC_E_INVALID, "the request is not an AdmissionReview of admission.k8s.io/v1");
    if (status == 0 && request->uid[0] == '\0')
        return occ_fail(err, OCC_E_INVALID, "the request has no uid");
    return status;
}
