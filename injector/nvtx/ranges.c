/* Paths and the stacks of threads; see nvtx.h. */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "nvtx.h"

/* ---- paths ---- */

struct node {
    uint32_t next; /* in the chain, 0: the last; set before the node can be found */
    uint32_t hash;
    uint32_t parent;
    char name[OCC_NVTX_NAME_BYTES];
};

#define CHAINS 2048u

static struct node nodes[OCC_NVTX_PATHS]; /* index 0 is unused; pages are touched as they are used */
static _Atomic uint32_t used;             /* number of ids given, OCC_NVTX_PATHS at most */
static _Atomic uint32_t chains[CHAINS];   /* the newest node of each chain */

#define ELLIPSIS "\xe2\x80\xa6"

struct text {
    char text[OCC_NVTX_NAME_BYTES];
    uint32_t n;
    bool is_cut;
};

/* Appends a name: digits become '#', a path separator '|'; a cut text ends with an ellipsis after a whole
 * character. */
static void append(struct text *to, const char *name)
{
    enum { ROOM = OCC_NVTX_NAME_BYTES - sizeof ELLIPSIS };
    bool in_number = false;
    for (; *name && !to->is_cut; name++) {
        bool is_digit = *name >= '0' && *name <= '9';
        to->is_cut = to->n == OCC_NVTX_NAME_BYTES - 1 && !(is_digit && in_number);
        if (!to->is_cut && (!is_digit || !in_number))
            to->text[to->n++] = (char)(is_digit ? '#' : *name == '/' ? '|' : *name);
        in_number = is_digit;
    }
    if (!to->is_cut)
        return;
    for (to->n = ROOM; to->n > 0 && (to->text[to->n] & 0xc0) == 0x80;)
        to->n--;
    memcpy(to->text + to->n, ELLIPSIS, sizeof ELLIPSIS);
    to->n += sizeof ELLIPSIS - 1;
}

/* FNV-1a */
static uint32_t hash_of(uint32_t parent, const struct text *name)
{
    uint32_t hash = (UINT32_C(2166136261) ^ parent) * UINT32_C(16777619);
    for (uint32_t i = 0; i < name->n; i++)
        hash = (hash ^ (uint8_t)name->text[i]) * UINT32_C(16777619);
    return hash;
}

/* Searches the chain from node `from` to before `until`; 0: not found. */
static uint32_t find(uint32_t from, uint32_t until, uint32_t hash, uint32_t parent, const char *text)
{
    for (uint32_t id = from; id != until; id = nodes[id].next)
        if (nodes[id].hash == hash && nodes[id].parent == parent && strcmp(nodes[id].name, text) == 0)
            return id;
    return 0;
}

/* 0: no id is left. */
static uint32_t take_id(void)
{
    uint32_t last = atomic_load_explicit(&used, memory_order_relaxed);
    while (last + 1 < OCC_NVTX_PATHS)
        if (atomic_compare_exchange_weak_explicit(&used, &last, last + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return last + 1;
    return 0;
}

uint32_t occ_nvtx_intern(uint32_t parent, const char *domain, const char *name)
{
    struct text text = {.n = 0};
    if (parent == OCC_NVTX_OTHER)
        return OCC_NVTX_OTHER;
    if (domain) { /* format of Nsight Systems */
        append(&text, domain);
        append(&text, ":");
    }
    append(&text, name ? name : domain ? "" : "?");
    uint32_t hash = hash_of(parent, &text);
    _Atomic uint32_t *chain = &chains[hash % CHAINS];
    /* pairs with the release below: all nodes of the chain are complete */
    uint32_t newest = atomic_load_explicit(chain, memory_order_acquire), seen = 0;
    uint32_t id = find(newest, seen, hash, parent, text.text), mine = id ? 0 : take_id();
    if (id || !mine)
        return id ? id : OCC_NVTX_OTHER;
    struct node *node = &nodes[mine];
    node->hash = hash;
    node->parent = parent;
    memcpy(node->name, text.text, sizeof text.text);
    do { /* if another thread was quicker with the same name, `mine` stays unused */
        if ((id = find(newest, seen, hash, parent, text.text)))
            return id;
        node->next = seen = newest;
    } while (!atomic_compare_exchange_weak_explicit(chain, &newest, mine, memory_order_acq_rel,
                                                    memory_order_acquire));
    return mine;
}

const char *occ_nvtx_name(uint64_t id)
{
    return id > 0 && id < OCC_NVTX_PATHS ? nodes[id].name : NULL;
}

/* The id comes from a launch in a thread that had the range open, ordered by locks and atomics of CUPTI and
 * the guest: its node is complete. */
static size_t path(uint64_t id, char *text, size_t size)
{
    static const char other[] = "(other ranges)";
    size_t at = size - 1;
    if (id == OCC_NVTX_OTHER && size >= sizeof other) {
        memcpy(text, other, sizeof other);
        return sizeof other - 1;
    }
    text[at] = '\0';
    for (uint32_t levels = 0; id > 0 && id < OCC_NVTX_PATHS && levels < OCC_NVTX_DEPTH; levels++) {
        size_t n = strlen(nodes[id].name), gap = at < size - 1;
        size_t left = nodes[id].parent ? sizeof ELLIPSIS : 0; /* for an ellipsis and a slash */
        if (n + gap + left > at) {
            at -= gap ? sizeof ELLIPSIS : 0;
            memcpy(text + at, ELLIPSIS "/", gap ? sizeof ELLIPSIS : 0);
            break;
        }
        at -= gap;
        if (gap)
            text[at] = '/';
        memcpy(text + (at -= n), nodes[id].name, n);
        id = nodes[id].parent;
    }
    memmove(text, text + at, size - at);
    return size - 1 - at;
}

/* ---- threads ---- */

static _Atomic(const struct occ_cupti_external *) cupti;

static _Thread_local struct thread {
    uint32_t depth;     /* number of open ranges; ranges beyond OCC_NVTX_DEPTH are only counted */
    bool has_pushed_id; /* CUPTI's stack of this thread has an id of this library */
    uint16_t id[OCC_NVTX_DEPTH], domain[OCC_NVTX_DEPTH];
} thread;

static void attach(const struct occ_cupti_external *calls)
{
    atomic_store_explicit(&cupti, calls, memory_order_release);
}

static uint32_t innermost(void)
{
    uint32_t kept = thread.depth < OCC_NVTX_DEPTH ? thread.depth : OCC_NVTX_DEPTH;
    return kept ? thread.id[kept - 1] : 0;
}

/* CUPTI's stack has at most one id per thread, so that ranges opened before attach() count too. */
static void update_external_id(void)
{
    uint64_t last;
    /* pairs with the release in attach() */
    const struct occ_cupti_external *calls = atomic_load_explicit(&cupti, memory_order_acquire);
    uint32_t id = innermost();
    if (calls && thread.has_pushed_id)
        (void)calls->pop(OCC_CUPTI_EXTERNAL_KIND, &last);
    if (calls && id)
        (void)calls->push(OCC_CUPTI_EXTERNAL_KIND, id);
    thread.has_pushed_id = calls && id;
}

int occ_nvtx_push(uint32_t domain, const char *name)
{
    uint32_t level = thread.depth++;
    if (level >= OCC_NVTX_DEPTH)
        return (int)level;
    thread.depth = level;
    uint32_t id =
        domain == OCC_NVTX_OTHER ? OCC_NVTX_OTHER : occ_nvtx_intern(innermost(), occ_nvtx_name(domain), name);
    thread.depth = level + 1;
    thread.id[level] = (uint16_t)id;
    thread.domain[level] = (uint16_t)domain;
    update_external_id();
    return (int)level;
}

/* Ranges of one domain nest; ranges of different domains need not. */
int occ_nvtx_pop(uint32_t domain)
{
    uint32_t level = thread.depth;
    if (level > OCC_NVTX_DEPTH)
        return (int)--thread.depth;
    while (level > 0 && thread.domain[level - 1] != domain)
        level--;
    if (level == 0)
        return -1;
    for (uint32_t i = level; i < thread.depth; i++) {
        thread.id[i - 1] = thread.id[i];
        thread.domain[i - 1] = thread.domain[i];
    }
    thread.depth--;
    update_external_id();
    return (int)level - 1;
}

__attribute__((visibility("default")))
const struct occ_nvtx_library occ_nvtx_library = {.abi = OCC_NVTX_ABI, .attach = attach, .path = path};
