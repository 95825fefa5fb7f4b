/* See host.h. */
#include "host.h"

#include <sys/mman.h>

bool occ_cupti_image_new(struct occ_cupti_image *image, size_t size)
{
    void *map =
        size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    *image = (struct occ_cupti_image){0};
    if (map == MAP_FAILED)
        return false;
    *image = (struct occ_cupti_image){map, size};
    return true;
}

void occ_cupti_image_free(struct occ_cupti_image *image)
{
    if (image->bytes)
        (void)munmap(image->bytes, image->size);
    *image = (struct occ_cupti_image){0};
}

const char *occ_cupti_host_bind(const struct occ_cupti *cupti, struct occ_cupti_host_calls *call)
{
    static const char *const names[] = {OCC_CUPTI_HOST(OCC_CUPTI_NAME) NULL};
    size_t n = sizeof names / sizeof names[0] - 1;
    return names[occ_cupti_bind(cupti, names, n, call)];
}

uint32_t occ_cupti_availability(uint32_t (*ask)(struct occ_params_availability *params), uintptr_t subject,
                                struct occ_cupti_image *ret_image)
{
    struct occ_params_availability p = {.bytes = sizeof p, .subject = subject};
    *ret_image = (struct occ_cupti_image){0};
    uint32_t result = ask(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    if (!occ_cupti_image_new(ret_image, p.image_bytes))
        return OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    p.image = ret_image->bytes;
    result = ask(&p);
    if (result != OCC_CUPTI_SUCCESS)
        occ_cupti_image_free(ret_image);
    return result;
}

static uint32_t begin(struct occ_cupti_host *h, uint32_t type, const char *chip, const uint8_t *availability)
{
    struct occ_params_host begin = {
        .bytes = sizeof begin, .type = type, .chip = chip, .availability = availability};
    uint32_t result = h->call->begin(&begin);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    h->object = begin.object;
    struct occ_params_metrics add = {
        .bytes = sizeof add, .object = h->object, .names = h->metrics.names, .count = h->metrics.count};
    return h->call->add_metrics(&add);
}

static uint32_t make_config(struct occ_cupti_host *h)
{
    struct occ_params_config_bytes size = {.bytes = sizeof size, .object = h->object};
    uint32_t result = h->call->config_bytes(&size);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    if (!occ_cupti_image_new(&h->config, size.config_bytes))
        return OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    struct occ_params_config config = {.bytes = sizeof config,
                                       .object = h->object,
                                       .config_bytes = h->config.size,
                                       .config = h->config.bytes};
    return h->call->config(&config);
}

static uint32_t count_passes(struct occ_cupti_host *h)
{
    struct occ_params_passes p = {
        .bytes = sizeof p, .config_bytes = h->config.size, .config = h->config.bytes};
    uint32_t result = h->call->passes(&p);
    h->passes = p.passes;
    return result;
}

uint32_t occ_cupti_host_open(struct occ_cupti_host *host, uint32_t type, const char *chip,
                             const struct occ_cupti_image *availability)
{
    uint32_t result = begin(host, type, chip, availability->bytes);
    if (result == OCC_CUPTI_SUCCESS)
        result = make_config(host);
    if (result == OCC_CUPTI_SUCCESS)
        result = count_passes(host);
    if (result != OCC_CUPTI_SUCCESS)
        occ_cupti_host_close(host);
    return result;
}

uint32_t occ_cupti_host_evaluate(const struct occ_cupti_host *host, const struct occ_cupti_image *data,
                                 size_t range, double *ret_values)
{
    struct occ_params_evaluate p = {.bytes = sizeof p,
                                    .object = host->object,
                                    .image = data->bytes,
                                    .image_bytes = data->size,
                                    .range = range,
                                    .names = host->metrics.names,
                                    .count = host->metrics.count,
                                    .values = ret_values};
    return host->call->evaluate(&p);
}

void occ_cupti_host_close(struct occ_cupti_host *host)
{
    struct occ_params_object end = {.bytes = sizeof end, .object = host->object};
    if (host->object)
        (void)host->call->end(&end);
    host->object = NULL;
    occ_cupti_image_free(&host->config);
}
