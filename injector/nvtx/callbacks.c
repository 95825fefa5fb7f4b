/* The callbacks of NVTX; see nvtx.h and callbacks.h. Threads: any of the program's. */
#include "callbacks.h"

#include <stdbool.h>

#include "nvtx.h"

/* size of a wide name in UTF-8: longer than a name, so that the cut is noticed */
#define WIDE_BYTES (2 * OCC_NVTX_NAME_BYTES)

/* The handles given to NVTX are ids; 0 is the default domain, so a name that does not fit the table is
 * OCC_NVTX_OTHER. */
static uint32_t id_of(const void *handle)
{
    return (uint32_t)(uintptr_t)handle;
}

static void *handle_of(uint32_t id)
{
    return (void *)(uintptr_t)id;
}

/* Converts to UTF-8; invalid characters become '?'. Stops at WIDE_BYTES, one character more than a name
 * holds. */
static const char *narrow(const wchar_t *wide, char text[WIDE_BYTES])
{
    static const struct {
        uint32_t last, lead;
    } forms[] = {{0x7f, 0}, {0x7ff, 0xc0}, {0xffff, 0xe0}, {0x10ffff, 0xf0}};
    size_t n = 0;
    for (; wide && *wide && n + 4 < WIDE_BYTES; wide++) {
        uint32_t code = (uint32_t)*wide, more = 0;
        bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
        code = is_surrogate || code > 0x10ffff ? '?' : code;
        while (code > forms[more].last)
            more++;
        text[n++] = (char)(forms[more].lead | code >> 6 * more);
        while (more > 0)
            text[n++] = (char)(0x80 | (code >> 6 * --more & 0x3f));
    }
    text[n] = '\0';
    return text;
}

static const char *text_of(const struct occ_nvtx_event *event, char text[WIDE_BYTES])
{
    if (!event || event->size < sizeof *event)
        return NULL;
    switch (event->message_type) {
    case OCC_NVTX_TEXT_ASCII:
        return event->message.ascii;
    case OCC_NVTX_TEXT_WIDE:
        return narrow(event->message.wide, text);
    case OCC_NVTX_TEXT_REGISTERED:
        return occ_nvtx_name(id_of(event->message.registered));
    default:
        return NULL;
    }
}

static int push_a(const char *name)
{
    return occ_nvtx_push(0, name);
}

static int push_w(const wchar_t *name)
{
    char text[WIDE_BYTES];
    return occ_nvtx_push(0, narrow(name, text));
}

static int push_in_domain(const void *domain, const struct occ_nvtx_event *event)
{
    char text[WIDE_BYTES];
    return occ_nvtx_push(id_of(domain), text_of(event, text));
}

static int push_ex(const struct occ_nvtx_event *event)
{
    return push_in_domain(NULL, event);
}

static int pop(void)
{
    return occ_nvtx_pop(0);
}

static int pop_in_domain(const void *domain)
{
    return occ_nvtx_pop(id_of(domain));
}

static void *string_a(const void *domain, const char *text)
{
    (void)domain;
    return handle_of(occ_nvtx_intern(OCC_NVTX_STRINGS, NULL, text));
}

static void *string_w(const void *domain, const wchar_t *wide)
{
    char text[WIDE_BYTES];
    return string_a(domain, narrow(wide, text));
}

static void *domain_a(const char *name)
{
    return handle_of(occ_nvtx_intern(OCC_NVTX_DOMAINS, NULL, name));
}

static void *domain_w(const wchar_t *wide)
{
    char text[WIDE_BYTES];
    return domain_a(narrow(wide, text));
}

struct slot {
    int module;
    unsigned int callback;
    void (*function)(void);
};

#define SLOT(module, callback, function)                                                                     \
    {                                                                                                        \
        OCC_NVTX_MODULE_##module, OCC_NVTX_##callback, (void (*)(void))(function)                            \
    }
static const struct slot slots[] = {
    SLOT(CORE, PUSH_EX, push_ex),
    SLOT(CORE, PUSH_A, push_a),
    SLOT(CORE, PUSH_W, push_w),
    SLOT(CORE, POP, pop),
    SLOT(CORE2, DOMAIN_PUSH_EX, push_in_domain),
    SLOT(CORE2, DOMAIN_POP, pop_in_domain),
    SLOT(CORE2, DOMAIN_STRING_A, string_a),
    SLOT(CORE2, DOMAIN_STRING_W, string_w),
    SLOT(CORE2, DOMAIN_CREATE_A, domain_a),
    SLOT(CORE2, DOMAIN_CREATE_W, domain_w),
};

/* NVTX calls it once for each library of the program that contains an NVTX. 1: success. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(occ_nvtx_get_export_table *get)
{
    const struct occ_nvtx_callbacks *callbacks = get ? get(OCC_NVTX_TABLE_CALLBACKS) : NULL;
    void (***table)(void) = NULL;
    unsigned int size = 0;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (callbacks->get_table(slots[i].module, &table, &size) && slots[i].callback < size &&
            table[slots[i].callback])
            *table[slots[i].callback] = slots[i].function;
    return 1;
}
