/* Kernels of a build, from compiled code or from the compiler's report; see gate.h. One thread. */
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "gate.h"
#include "image/image.h"
#include "image/ptxas.h"
#include "names/demangle.h"
#include "support/text.h"

OCC_CLEANUP(occ_image, occ_image_free)
OCC_CLEANUP(occ_image_list, occ_image_list_free)
OCC_CLEANUP(occ_ptxas, occ_ptxas_free)

void gate_build_free(struct gate_build *build)
{
    pins_free(&build->pins);
}

static int fail_image(const struct occ_image_error *why, struct occ_error *err)
{
    int code = why->code == OCC_IMAGE_E_NO_MEMORY   ? OCC_E_NO_MEMORY
               : why->code == OCC_IMAGE_E_NO_BINARY ? OCC_E_NOT_FOUND
                                                    : OCC_E_INVALID;
    return occ_fail(err, code, "%s", why->message);
}

/* ---- compiled code ---- */

static struct pin pin_of_image(const struct occ_image_kernel *k)
{
    return (struct pin){.kernel = k->name,
                        .value = {[PIN_REGISTERS] = k->registers ? k->registers : PIN_UNKNOWN,
                                  [PIN_STACK] = k->local_bytes,
                                  [PIN_SPILLS] = PIN_UNKNOWN,
                                  [PIN_SHARED] = k->static_smem_bytes,
                                  [PIN_BARRIERS] = k->barriers,
                                  [PIN_BOUNDS] = k->max_threads}};
}

static int add_image(struct gate_build *build, const struct occ_image *image, char suffix,
                     struct occ_error *err)
{
    int status = 0;
    build->has_unlinked |= image->relocatable;
    for (uint32_t i = 0; i < image->kernel_count && status == 0; i++) {
        struct pin pin = pin_of_image(&image->kernels[i]);
        pin.sm = image->sm;
        pin.suffix = suffix;
        status = pins_add(&build->pins, &pin, err);
    }
    return status;
}

/* A cubin of an unknown version is counted; a damaged one is an error. */
static int read_entry(struct gate_build *build, const struct occ_image_list *list, size_t index,
                      struct occ_error *err)
{
    _cleanup_(occ_image_freep) struct occ_image *image = NULL;
    struct occ_image_error why = {0};
    int code = occ_image_load(list, index, &image, &why);
    if (code == OCC_IMAGE_E_VERSION) {
        build->unread++;
        (void)snprintf(build->unread_why, sizeof build->unread_why, "%s", why.message);
        return 0;
    }
    return code ? fail_image(&why, err)
                : add_image(build, image, occ_image_list_entry(list, index)->suffix, err);
}

static int fail_without_kernels(const struct occ_image_list *list, const struct gate_build *build,
                                struct occ_error *err)
{
    char held[128];
    (void)occ_image_list_text(list, held, sizeof held);
    return build->unread ? occ_fail(err, OCC_E_NOT_FOUND, "no kernel that is read (%s)", build->unread_why)
                         : occ_fail(err, OCC_E_NOT_FOUND, "no compiled kernel in it, only %s", held);
}

static int read_image(struct gate_build *build, const void *data, size_t n, struct occ_error *err)
{
    _cleanup_(occ_image_list_freep) struct occ_image_list *list = NULL;
    struct occ_image_error why = {0};
    int status = 0;
    if (occ_image_list_new(data, n, &list, &why) != 0)
        return fail_image(&why, err);
    for (size_t i = 0; i < occ_image_list_count(list) && status == 0; i++)
        if (occ_image_list_entry(list, i)->kind == OCC_IMAGE_KIND_CUBIN)
            status = read_entry(build, list, i, err);
    return status == 0 && build->pins.n == 0 ? fail_without_kernels(list, build, err) : status;
}

/* ---- ptxas -v ---- */

static struct pin pin_of_report(const struct occ_ptxas_kernel *k)
{
    return (struct pin){.kernel = k->name,
                        .sm = k->sm,
                        .suffix = k->suffix,
                        .value = {[PIN_REGISTERS] = k->registers,
                                  [PIN_STACK] = k->has_stack ? k->stack_bytes : PIN_UNKNOWN,
                                  [PIN_SPILLS] = k->has_stack ? k->spill_store_bytes : PIN_UNKNOWN,
                                  [PIN_SHARED] = k->static_smem_bytes,
                                  [PIN_BARRIERS] = k->has_barriers ? k->barriers : PIN_UNKNOWN,
                                  [PIN_BOUNDS] = PIN_UNKNOWN}};
}

static int read_report(struct gate_build *build, const void *data, size_t n, struct occ_error *err)
{
    _cleanup_(occ_ptxas_freep) struct occ_ptxas *report = NULL;
    struct occ_image_error why = {0};
    int status = 0;
    if (occ_ptxas_read(data, n, &report, &why) != 0)
        return fail_image(&why, err);
    for (size_t i = 0; i < report->count && status == 0; i++) {
        struct pin pin = pin_of_report(&report->kernels[i]);
        status = pins_add(&build->pins, &pin, err);
    }
    return status == 0 && build->pins.n == 0
               ? occ_fail(err, OCC_E_NOT_FOUND, "neither compiled code nor the output of ptxas -v")
               : status;
}

/* True for a text with lines of ptxas. Programs may contain such a text, but their beginnings have zeros. */
static bool is_report(const char *data, size_t n)
{
    enum { BEGINNING = 4096 };
    return n > 0 && !memchr(data, '\0', n < BEGINNING ? n : BEGINNING) &&
           memmem(data, n, "ptxas info", 10) != NULL;
}

/* ---- all ---- */

int gate_name_pins(struct pins *pins, struct occ_error *err)
{
    for (size_t i = 0; i < pins->n; i++) {
        struct pin *pin = &pins->list[i];
        _cleanup_(occ_freep) char *name = NULL;
        _cleanup_(occ_freep) char *brief = NULL;
        if (i > 0 && strcmp(pin->kernel, pin[-1].kernel) == 0) {
            pin->name = pin[-1].name;
            continue;
        }
        if (occ_demangle(pin->kernel, &name, &brief) != 0)
            return occ_no_memory(err);
        pin->name = occ_arena_copy(&pins->texts, name);
    }
    return pins->texts.failed ? occ_no_memory(err) : 0;
}

static size_t count_repeated(const struct pins *pins)
{
    size_t n = 0;
    for (size_t i = 0; i < pins->n; i++)
        n += pins->list[i].copies > 1 && pins->list[i].copy == 1;
    return n;
}

int gate_read(const char *path, struct gate_build *ret_build, struct occ_error *err)
{
    struct gate_build build = {.unread = 0};
    _cleanup_(occ_freep) void *data = NULL;
    size_t n = 0;
    int status = cli_read_input(path, &data, &n, err);
    if (status != 0)
        return status;
    status = is_report(data, n) ? read_report(&build, data, n, err) : read_image(&build, data, n, err);
    if (status == 0) {
        pins_sort(&build.pins);
        build.repeated = count_repeated(&build.pins);
        status = gate_name_pins(&build.pins, err);
    }
    if (status != 0) {
        gate_build_free(&build);
        return occ_error_prefix(err, "%s", path);
    }
    *ret_build = build;
    return 0;
}

void gate_note_build(const struct cli_command *command, const char *path, const struct gate_build *build)
{
    if (build->unread)
        cli_note(command, "%s: %zu cubins were not read (%s)", path, build->unread, build->unread_why);
    if (build->has_unlinked)
        cli_note(command, "%s: some kernels are not linked yet; the linker may raise registers and stack",
                 path);
    if (build->repeated)
        cli_note(command, "%s: different kernels have the same name and architecture, %zu times", path,
                 build->repeated);
}

/* ---- architectures ---- */

static const char suffixes[] = {'\0', 'a', 'f'};

static size_t architecture_index(const struct pin *pin)
{
    size_t suffix = pin->suffix == 'a' ? 1 : pin->suffix == 'f' ? 2 : 0;
    return pin->sm * sizeof suffixes + suffix;
}

void gate_list_architectures(const struct pins *pins, struct gate_architectures *ret_architectures)
{
    *ret_architectures = (struct gate_architectures){{false}};
    for (size_t i = 0; i < pins->n; i++)
        if (pins->list[i].sm < GATE_MAX_SM)
            ret_architectures->has[architecture_index(&pins->list[i])] = true;
}

bool gate_has_architecture(const struct gate_architectures *architectures, const struct pin *pin)
{
    return pin->sm < GATE_MAX_SM && architectures->has[architecture_index(pin)];
}

const char *gate_architectures_text(const struct gate_architectures *architectures, char *text, size_t size)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < GATE_MAX_SM * sizeof suffixes; i++) {
        const struct pin pin = {.sm = i / sizeof suffixes, .suffix = suffixes[i % sizeof suffixes]};
        char word[PIN_ARCHITECTURE_BYTES];
        if (architectures->has[i])
            occ_text_append(text, size, ", ", "%s", pin_architecture(&pin, word));
    }
    return text;
}
