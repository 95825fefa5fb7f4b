/*
 * The parts of NVTX's interface for tools (nvtx3/nvtxDetail/nvtxTypes.h, nvToolsExt.h) used here, declared so
 * that the build needs no CUDA toolkit. tests/unit/test_nvtx_abi.c compares them with the toolkit's headers
 * if these are installed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { OCC_NVTX_TABLE_CALLBACKS = 1 };
enum { OCC_NVTX_MODULE_CORE = 1, OCC_NVTX_MODULE_CORE2 = 5 };
enum { OCC_NVTX_PUSH_EX = 8, OCC_NVTX_PUSH_A, OCC_NVTX_PUSH_W, OCC_NVTX_POP };
enum {
    OCC_NVTX_DOMAIN_PUSH_EX = 4,
    OCC_NVTX_DOMAIN_POP = 5,
    OCC_NVTX_DOMAIN_STRING_A = 10,
    OCC_NVTX_DOMAIN_STRING_W,
    OCC_NVTX_DOMAIN_CREATE_A,
    OCC_NVTX_DOMAIN_CREATE_W
};
enum { OCC_NVTX_TEXT_ASCII = 1, OCC_NVTX_TEXT_WIDE = 2, OCC_NVTX_TEXT_REGISTERED = 3 };

/* nvtxEventAttributes_t, version 2. */
struct occ_nvtx_event {
    uint16_t version, size; /* in bytes */
    uint32_t unused1[5];
    uint64_t unused2;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *wide;
        const void *registered;
    } message;
};

struct occ_nvtx_callbacks {
    size_t struct_size;
    /* *ret_table: an array of addresses of function pointers; 1: the module exists */
    int (*get_table)(int module, void (****ret_table)(void), unsigned int *ret_size);
};

typedef const void *occ_nvtx_get_export_table(uint32_t id);

int InitializeInjectionNvtx2(occ_nvtx_get_export_table *get);
