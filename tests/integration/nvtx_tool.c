/* A tool of NVTX, for python_package.py: keeps the push/pop ranges of the program as text. One thread. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "injector/nvtx/callbacks.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjectionNvtx2(occ_nvtx_get_export_table *get);
EXPORT const char *nvtx_tool_log(void);

static char text[4096];

static void add(const char *word, const char *name)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, sizeof text - used, "%s%s\n", word, name);
}

static int push(const char *name)
{
    add("push ", name);
    return 0;
}

static int pop(void)
{
    add("pop", "");
    return 0;
}

const char *nvtx_tool_log(void)
{
    return text;
}

int InitializeInjectionNvtx2(occ_nvtx_get_export_table *get)
{
    const struct occ_nvtx_callbacks *callbacks = get(OCC_NVTX_TABLE_CALLBACKS);
    void (***table)(void) = NULL;
    unsigned int size = 0;
    if (!callbacks || !callbacks->get_table(OCC_NVTX_MODULE_CORE, &table, &size) || size <= OCC_NVTX_POP)
        return 0;
    *table[OCC_NVTX_PUSH_A] = (void (*)(void))push;
    *table[OCC_NVTX_POP] = (void (*)(void))pop;
    return 1;
}
