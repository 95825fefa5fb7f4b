/* See name_service.h. */
#include "name_service.h"

#include <pthread.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/clock.h"

#define ENTRIES  1024
#define KNOWN_NS INT64_C(600000000000)
#define NONE_NS  INT64_C(60000000000)

struct entry {
    bool by_name; /* true: look up the number by name; false: look up the name by number */
    uint32_t uid;
    char name[OCC_USER_NAME_BYTES];
    enum occ_name_state state;
    bool is_wanted;   /* waits for a lookup by the thread */
    int64_t until_ns; /* monotonic; the answer is valid until then */
};

struct occ_name_service {
    pthread_mutex_t mutex; /* guards all members below */
    bool has_thread;
    bool is_abandoned; /* occ_name_service_free() was called: the thread frees the service */
    size_t n;
    struct entry entries[ENTRIES];
};

int occ_name_service_new(struct occ_name_service **ret_service, struct occ_error *err)
{
    struct occ_name_service *s = calloc(1, sizeof *s);
    if (!s)
        return occ_no_memory(err);
    (void)pthread_mutex_init(&s->mutex, NULL);
    *ret_service = s;
    return 0;
}

static void destroy(struct occ_name_service *s)
{
    (void)pthread_mutex_destroy(&s->mutex);
    free(s);
}

void occ_name_service_free(struct occ_name_service *service)
{
    if (!service)
        return;
    (void)pthread_mutex_lock(&service->mutex);
    bool has_thread = service->has_thread;
    service->is_abandoned = true;
    (void)pthread_mutex_unlock(&service->mutex);
    if (!has_thread)
        destroy(service);
}

/* ---- the thread ---- */

static void look_up(struct entry *e)
{
    char buffer[16384];
    struct passwd account, *found = NULL;
    int failed = e->by_name ? getpwnam_r(e->name, &account, buffer, sizeof buffer, &found)
                            : getpwuid_r(e->uid, &account, buffer, sizeof buffer, &found);
    bool is_known = failed == 0 && found && strlen(found->pw_name) < sizeof e->name;
    e->state = is_known ? OCC_NAME_KNOWN : OCC_NAME_NONE;
    e->until_ns = occ_monotonic_ns() + (is_known ? KNOWN_NS : NONE_NS);
    if (is_known && e->by_name)
        e->uid = found->pw_uid;
    else if (is_known)
        (void)snprintf(e->name, sizeof e->name, "%s", found->pw_name);
}

static struct entry *find_wanted(struct occ_name_service *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].is_wanted)
            return &s->entries[i];
    return NULL;
}

/* Entries with is_wanted are not replaced, so `e` stays valid while the mutex is released. */
static void *look_up_all(void *service)
{
    struct occ_name_service *s = service;
    (void)pthread_mutex_lock(&s->mutex);
    for (struct entry *e; !s->is_abandoned && (e = find_wanted(s));) {
        struct entry copy = *e;
        (void)pthread_mutex_unlock(&s->mutex);
        look_up(&copy);
        (void)pthread_mutex_lock(&s->mutex);
        copy.is_wanted = false;
        *e = copy;
    }
    bool is_abandoned = s->is_abandoned;
    s->has_thread = false;
    (void)pthread_mutex_unlock(&s->mutex);
    if (is_abandoned)
        destroy(s);
    return NULL;
}

/* If the thread cannot start (no memory, a limit of processes), the next call tries again. */
static void start_thread(struct occ_name_service *s)
{
    pthread_t thread;
    if (s->has_thread || pthread_create(&thread, NULL, look_up_all, s) != 0)
        return;
    s->has_thread = true;
    (void)pthread_detach(thread);
}

/* ---- callers ---- */

static bool is_key(const struct entry *e, bool by_name, uint32_t uid, const char *name)
{
    return e->by_name == by_name && (by_name ? strcmp(e->name, name) == 0 : e->uid == uid);
}

/* Returns a free entry, or the entry whose answer expires first. NULL: all entries wait for a lookup. */
static struct entry *find_free_entry(struct occ_name_service *s)
{
    struct entry *oldest = NULL;
    if (s->n < ENTRIES)
        return &s->entries[s->n++];
    for (size_t i = 0; i < s->n; i++) {
        struct entry *e = &s->entries[i];
        if (!e->is_wanted && (!oldest || e->until_ns < oldest->until_ns))
            oldest = e;
    }
    return oldest;
}

/* Needs the mutex. An expired answer is still returned and looked up again. NULL: no free entry. */
static const struct entry *ask(struct occ_name_service *s, bool by_name, uint32_t uid, const char *name)
{
    struct entry *e = NULL;
    for (size_t i = 0; i < s->n && !e; i++)
        if (is_key(&s->entries[i], by_name, uid, name))
            e = &s->entries[i];
    if (!e && (e = find_free_entry(s))) {
        *e = (struct entry){.by_name = by_name, .uid = uid, .state = OCC_NAME_WAITS};
        (void)snprintf(e->name, sizeof e->name, "%s", name);
    }
    if (e && e->until_ns <= occ_monotonic_ns())
        e->is_wanted = true;
    if (e && e->is_wanted)
        start_thread(s);
    return e;
}

enum occ_name_state occ_name_service_name(struct occ_name_service *service, uint32_t uid,
                                          char name[OCC_USER_NAME_BYTES])
{
    (void)pthread_mutex_lock(&service->mutex);
    const struct entry *e = ask(service, false, uid, "");
    enum occ_name_state state = e ? e->state : OCC_NAME_WAITS;
    if (state == OCC_NAME_KNOWN)
        (void)snprintf(name, OCC_USER_NAME_BYTES, "%s", e->name);
    (void)pthread_mutex_unlock(&service->mutex);
    return state;
}

enum occ_name_state occ_name_service_uid(struct occ_name_service *service, const char *name,
                                         uint32_t *ret_uid)
{
    if (strlen(name) >= OCC_USER_NAME_BYTES)
        return OCC_NAME_NONE;
    (void)pthread_mutex_lock(&service->mutex);
    const struct entry *e = ask(service, true, 0, name);
    enum occ_name_state state = e ? e->state : OCC_NAME_WAITS;
    if (state == OCC_NAME_KNOWN)
        *ret_uid = e->uid;
    (void)pthread_mutex_unlock(&service->mutex);
    return state;
}
