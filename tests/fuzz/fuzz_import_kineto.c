/*
 * Fuzzes the Kineto reader with a real sink without a history. Last byte: bit 0: with a named GPU; bit 1:
 * with repair of the text; other bits: number of bytes per read.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "import/readers.h"
#include "import/sink_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
    struct occ_kineto_input input;
    const uint8_t *data;
    size_t size, at, step;
};

static int read_memory(struct occ_kineto_input *input, unsigned char *data, size_t size, size_t *ret_n,
                       struct occ_error *err)
{
    struct memory *m = (struct memory *)input;
    size_t n = m->size - m->at;
    (void)err;
    n = n < m->step ? n : m->step;
    n = n < size ? n : size;
    memcpy(data, m->data + m->at, n);
    m->at += n;
    *ret_n = n;
    return 0;
}

static int rewind_memory(struct occ_kineto_input *input, struct occ_error *err)
{
    (void)err;
    ((struct memory *)input)->at = 0;
    return 0;
}

/* Reads the launches' ranges, as the import does before it stores launches. */
static void place_launches(struct occ_import_sink *sink)
{
    char path[OCC_STORE_RANGE_BYTES + 1];
    const char *phase = NULL;
    uint32_t place = 0;
    for (int i = 0; i < 64 && occ_ranges_next(sink->ranges, &place, NULL) == 0; i++)
        if (place != 0)
            (void)occ_ranges_path(sink->ranges, place, path, &phase);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_import_sink *sink = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    if (size < 1)
        return 0;
    uint8_t control = data[size - 1];
    const struct occ_import_options options = {.gpu = control & 1 ? "a100" : NULL};
    if (occ_import_sink_new(&options, &sink, NULL) != 0)
        return 0;
    struct memory m = {.input = {.read = read_memory, .rewind = rewind_memory},
                       .data = data,
                       .size = size - 1,
                       .step = 1u + (control >> 2)};
    struct occ_repair repair = occ_repair(&m.input);
    (void)occ_kineto_read(control & 2 ? &repair.input : &m.input, sink, &err);
    place_launches(sink);
    occ_import_sink_free(sink);
    return 0;
}
