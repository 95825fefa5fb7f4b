/* Fuzzes the lock file of pins: any bytes are refused with a message that names a line, or accepted; an
 * accepted file is written in the one order, reads back as the same, and matches itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compare/pins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct pins *pins, size_t *ret_size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_size);
    if (!out)
        abort();
    pins_write(out, pins);
    if (fclose(out) != 0)
        abort();
    return text;
}

static void check_bounds(const struct pin *pin)
{
    if (!*pin->kernel || pin->copy == 0 || pin->copy > pin->copies)
        abort();
    for (int i = 0; i < PIN_RESOURCE_COUNT; i++)
        if (pin->value[i] != PIN_UNKNOWN && pin->value[i] > pin_resource_max((enum pin_resource)i))
            abort();
}

static void check_match(const struct pins *pins)
{
    struct pin_pairs pairs = {0};
    if (pins_match(pins, pins, &pairs, NULL) != 0 || pairs.n != pins->n)
        abort();
    for (size_t i = 0; i < pairs.n; i++)
        if (!pairs.list[i].before || !pairs.list[i].after ||
            !pin_is_same(pairs.list[i].before, pairs.list[i].after))
            abort();
    free(pairs.list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pins pins = {0}, again = {0};
    struct occ_error err = OCC_ERROR_INIT;
    size_t first_bytes, second_bytes;
    if (pins_parse("fuzz", (const char *)data, size, &pins, &err) != 0) {
        if (strncmp(err.message, "fuzz:", 5) != 0)
            abort();
        return 0;
    }
    for (size_t i = 0; i < pins.n; i++)
        check_bounds(&pins.list[i]);
    check_match(&pins);
    char *first = written(&pins, &first_bytes);
    if (pins_parse("again", first, first_bytes, &again, &err) != 0)
        abort();
    char *second = written(&again, &second_bytes);
    if (first_bytes != second_bytes || memcmp(first, second, first_bytes) != 0)
        abort();
    free(first);
    free(second);
    pins_free(&pins);
    pins_free(&again);
    return 0;
}
