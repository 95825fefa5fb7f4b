/* Pins of a build, their order, and pairs of two builds; see pins.h. Pure apart from malloc; any thread. */
#include "pins.h"

#include <stdlib.h>
#include <string.h>

#include "support/array.h"
#include "support/text.h"

#define PIN_WORD(name, word, text, max) word,
const char *pin_resource_word(enum pin_resource resource)
{
    static const char *const words[] = {PIN_RESOURCES(PIN_WORD)};
    return words[resource];
}

#define PIN_TEXT(name, word, text, max) text,
const char *pin_resource_text(enum pin_resource resource)
{
    static const char *const texts[] = {PIN_RESOURCES(PIN_TEXT)};
    return texts[resource];
}

#define PIN_MAXIMUM(name, word, text, max) max,
uint32_t pin_resource_max(enum pin_resource resource)
{
    static const uint32_t maxima[] = {PIN_RESOURCES(PIN_MAXIMUM)};
    return maxima[resource];
}

OCC_WORDS(pin_rule_word, enum pin_rule, PIN_RULES)

const char *pin_architecture(const struct pin *pin, char text[PIN_ARCHITECTURE_BYTES])
{
    const char suffix[2] = {pin->suffix, '\0'};
    (void)snprintf(text, PIN_ARCHITECTURE_BYTES, "sm_%u%s", pin->sm, suffix);
    return text;
}

void pins_free(struct pins *pins)
{
    free(pins->list);
    free(pins->launches);
    free(pins->allowances);
    occ_arena_free(pins->texts.blocks);
    *pins = (struct pins){0};
}

/* ---- a build ---- */

int pins_add(struct pins *pins, const struct pin *pin, struct occ_error *err)
{
    if (pins->n == PINS_MAX)
        return occ_fail(err, OCC_E_FULL, "more than %d kernels", PINS_MAX);
    if (strlen(pin->kernel) > PINS_NAME_MAX)
        return occ_fail(err, OCC_E_FULL, "a kernel's name of %zu bytes, the maximum is %d",
                        strlen(pin->kernel), PINS_NAME_MAX);
    if (!occ_grow((void **)&pins->list, &pins->allocated, pins->n, PINS_MAX, sizeof *pins->list))
        return occ_no_memory(err);
    struct pin *copy = &pins->list[pins->n++];
    *copy = *pin;
    copy->kernel = occ_arena_copy(&pins->texts, pin->kernel);
    if (pin->name)
        copy->name = occ_arena_copy(&pins->texts, pin->name);
    return pins->texts.failed ? occ_no_memory(err) : 0;
}

static int compare_numbers(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

int pin_compare(const struct pin *a, const struct pin *b)
{
    int order = strcmp(a->kernel, b->kernel);
    if (order == 0)
        order = compare_numbers(a->sm, b->sm);
    return order ? order : (a->suffix > b->suffix) - (a->suffix < b->suffix);
}

/* The order of copies: by their resources, which do not depend on the order of files in a build. */
static int compare_values(const struct pin *a, const struct pin *b)
{
    int order = 0;
    for (int i = 0; i < PIN_RESOURCE_COUNT && order == 0; i++)
        order = compare_numbers(a->value[i], b->value[i]);
    return order;
}

static int by_values(const void *left, const void *right)
{
    int order = pin_compare(left, right);
    return order ? order : compare_values(left, right);
}

/* Returns the end of the pins with the kernel and the architecture of pin `first`. */
static size_t end_of_copies(const struct pin *list, size_t n, size_t first)
{
    size_t end = first;
    while (end < n && pin_compare(&list[first], &list[end]) == 0)
        end++;
    return end;
}

void pins_sort(struct pins *pins)
{
    size_t kept = 0;
    if (pins->n > 1)
        qsort(pins->list, pins->n, sizeof *pins->list, by_values);
    for (size_t i = 0; i < pins->n; i++)
        if (kept == 0 || by_values(&pins->list[kept - 1], &pins->list[i]) != 0)
            pins->list[kept++] = pins->list[i];
    pins->n = kept;
    for (size_t first = 0, end; first < kept; first = end) {
        end = end_of_copies(pins->list, kept, first);
        for (size_t i = first; i < end; i++) {
            pins->list[i].copy = (uint32_t)(i - first) + 1;
            pins->list[i].copies = (uint32_t)(end - first);
        }
    }
}

/* ---- statements about kernels ---- */

static int by_launch_kernel(const void *left, const void *right)
{
    const struct pin_launches *a = left, *b = right;
    return strcmp(a->kernel, b->kernel);
}

const struct pin_launches *pins_launches_of(const struct pins *pins, const char *kernel)
{
    const struct pin_launches key = {.kernel = kernel};
    return pins->n_launches ? bsearch(&key, pins->launches, pins->n_launches, sizeof key, by_launch_kernel)
                            : NULL;
}

static bool is_below(struct pin_launch a, struct pin_launch b)
{
    return a.threads != b.threads ? a.threads < b.threads : a.dynamic_bytes < b.dynamic_bytes;
}

/* Inserts a size in ascending order, unless it is there or the statement is full. */
static void insert_size(struct pin_launches *launches, struct pin_launch launch)
{
    uint32_t at = 0;
    while (at < launches->n && is_below(launches->list[at], launch))
        at++;
    if (launches->n == PIN_LAUNCHES || (at < launches->n && !is_below(launch, launches->list[at])))
        return;
    memmove(&launches->list[at + 1], &launches->list[at], (launches->n - at) * sizeof launch);
    launches->list[at] = launch;
    launches->n++;
}

int pins_add_launch(struct pins *pins, const char *kernel, struct pin_launch launch, struct occ_error *err)
{
    size_t n = pins->n_launches;
    if (n == 0 || strcmp(pins->launches[n - 1].kernel, kernel) != 0) {
        if (!occ_grow((void **)&pins->launches, &pins->launches_allocated, n, PINS_MAX_STATEMENTS,
                      sizeof *pins->launches))
            return occ_fail(err, OCC_E_FULL, "more than %d launch statements, or no memory",
                            PINS_MAX_STATEMENTS);
        pins->launches[pins->n_launches++] =
            (struct pin_launches){.kernel = occ_arena_copy(&pins->texts, kernel)};
    }
    insert_size(&pins->launches[pins->n_launches - 1], launch);
    return pins->texts.failed ? occ_no_memory(err) : 0;
}

/* Sorts the launch statements, and joins the statements of a kernel. */
static void sort_launches(struct pins *pins)
{
    size_t kept = 0;
    if (pins->n_launches > 1)
        qsort(pins->launches, pins->n_launches, sizeof *pins->launches, by_launch_kernel);
    for (size_t i = 0; i < pins->n_launches; i++) {
        const struct pin_launches from = pins->launches[i];
        if (kept == 0 || by_launch_kernel(&pins->launches[kept - 1], &from) != 0) {
            pins->launches[kept++] = from;
            continue;
        }
        for (uint32_t k = 0; k < from.n; k++)
            insert_size(&pins->launches[kept - 1], from.list[k]);
    }
    pins->n_launches = kept;
}

static int by_allowance_kernel(const void *left, const void *right)
{
    const struct pin_allowance *a = left, *b = right;
    int order = strcmp(a->kernel, b->kernel);
    return order ? order : compare_numbers(a->rule, b->rule);
}

const struct pin_allowance *pins_allowance_of(const struct pins *pins, enum pin_rule rule, const char *kernel)
{
    const struct pin_allowance key = {.rule = rule, .kernel = kernel};
    return pins->n_allowances
               ? bsearch(&key, pins->allowances, pins->n_allowances, sizeof key, by_allowance_kernel)
               : NULL;
}

void pins_sort_statements(struct pins *pins)
{
    sort_launches(pins);
    if (pins->n_allowances > 1)
        qsort(pins->allowances, pins->n_allowances, sizeof *pins->allowances, by_allowance_kernel);
}
