/* Kernels in traces of XLA; see kineto_state.h. One thread. */
#include <inttypes.h>
#include <stdio.h>

#include "kineto_state.h"

static void set(struct occ_kineto *k, enum integer what, int64_t value)
{
    k->values[what] = value;
    k->known |= BIT(what);
}

static void set_size(struct vector *vector, const int64_t size[3])
{
    *vector = (struct vector){.value = {size[0], size[1], size[2]}, .n = 3};
}

void occ_kineto_xla_details(struct occ_kineto *k, const unsigned char *text, size_t n)
{
    char details[256];
    int64_t registers = 0, fixed = 0, dynamic = 0, grid[3], block[3];
    (void)snprintf(details, sizeof details, "%.*s", (int)(n < sizeof details ? n : sizeof details - 1),
                   (const char *)text);
    k->event.kernel = k->event.xla = true;
    if (sscanf(details,
               "regs:%9" SCNd64 " static_shared:%9" SCNd64 " dynamic_shared:%9" SCNd64 " grid:%10" SCNd64
               ",%10" SCNd64 ",%10" SCNd64 " block:%10" SCNd64 ",%10" SCNd64 ",%10" SCNd64,
               &registers, &fixed, &dynamic, &grid[0], &grid[1], &grid[2], &block[0], &block[1],
               &block[2]) != 9)
        return; /* the launch has no configuration */
    set(k, ARG_REGISTERS, registers);
    set(k, ARG_SMEM, fixed + dynamic);
    set_size(&k->event.size[GRID], grid);
    set_size(&k->event.size[BLOCK], block);
}

void occ_kineto_xla_process_name(struct occ_kineto *k, const unsigned char *text, size_t n)
{
    char name[64];
    int gpu = 0;
    (void)snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1),
                   (const char *)text);
    k->event.gpu = sscanf(name, "/device:GPU:%4d", &gpu) == 1 && gpu >= 0 ? gpu : -1;
}

void occ_kineto_xla_end(struct occ_kineto *k)
{
    int64_t pid = occ_kineto_get(k, PID);
    if (k->event.gpu >= 0 && k->n_xla_processes < XLA_PROCESSES_MAX) {
        k->xla_processes[k->n_xla_processes].pid = pid;
        k->xla_processes[k->n_xla_processes++].gpu = k->event.gpu;
    }
    if (!k->event.xla)
        return;
    for (size_t i = 0; i < k->n_xla_processes; i++)
        if (k->xla_processes[i].pid == pid)
            set(k, ARG_DEVICE, k->xla_processes[i].gpu);
    if (!occ_kineto_has(k, ARG_STREAM))
        set(k, ARG_STREAM, occ_kineto_get(k, TID));
}
