/* Writes the lock file of pins; see pins.h. Pure; any thread. */
#include <string.h>

#include "pins.h"

static void put_name(FILE *out, const char *name)
{
    for (; *name; name++)
        (void)fprintf(out, pin_is_plain(*name) ? "%c" : "%%%02X", (unsigned char)*name);
}

static void put_pin(FILE *out, const struct pin *pin)
{
    char architecture[PIN_ARCHITECTURE_BYTES];
    (void)fprintf(out, "pin %s", pin_architecture(pin, architecture));
    if (pin->copies > 1)
        (void)fprintf(out, " copy=%u/%u", pin->copy, pin->copies);
    for (int i = 0; i < PIN_RESOURCE_COUNT; i++) {
        (void)fprintf(out, " %s=", pin_resource_word((enum pin_resource)i));
        (void)(pin->value[i] == PIN_UNKNOWN ? fputs("-", out) : fprintf(out, "%u", pin->value[i]));
    }
    (void)fputc(' ', out);
    put_name(out, pin->kernel);
    (void)fputc('\n', out);
}

/* A comment with the demangled name, above the pins of the kernel. */
static void put_comment(FILE *out, const struct pin *pin)
{
    if (pin->name && strcmp(pin->name, pin->kernel) != 0)
        (void)fprintf(out, "# %s\n", pin->name);
}

void pins_write(FILE *out, const struct pins *pins)
{
    (void)fprintf(out,
                  "%s %d\n"
                  "# Resources of kernels, to which 'occq check --image FILE --pin LOCK' compares a build.\n"
                  "# --update-pins writes the pins again, and keeps the allow and launch statements.\n",
                  PINS_HEADER, PINS_VERSION);
    for (size_t i = 0; i < pins->n_allowances; i++) {
        const struct pin_allowance *allowance = &pins->allowances[i];
        (void)fprintf(out, "allow %s ", pin_rule_word(allowance->rule));
        put_name(out, allowance->kernel);
        (void)fprintf(out, " until %s %s\n", allowance->until, allowance->reason);
    }
    for (size_t i = 0; i < pins->n_launches; i++) {
        const struct pin_launches *launches = &pins->launches[i];
        (void)fputs("launch ", out);
        put_name(out, launches->kernel);
        for (uint32_t k = 0; k < launches->n; k++) {
            (void)fprintf(out, " %u", launches->list[k].threads);
            if (launches->list[k].dynamic_bytes)
                (void)fprintf(out, "+%u", launches->list[k].dynamic_bytes);
        }
        (void)fputc('\n', out);
    }
    for (size_t i = 0; i < pins->n; i++) {
        if (i == 0 || strcmp(pins->list[i - 1].kernel, pins->list[i].kernel) != 0)
            put_comment(out, &pins->list[i]);
        put_pin(out, &pins->list[i]);
    }
}
