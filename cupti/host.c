/* See host.h. */
#include "host.h"

#include <sys/mman.h>

bool occ_cupti_image_new(struct occ_cupti_image *image, size_t size)
{
    void *map =
        size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    *image = map == MAP_FAILED ? (struct occ_cupti_image){0} : (struct occ_cupti_image){size, map};
    return image->bytes;
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
    return names[occ_library_bind(cupti->handle, names, sizeof names / sizeof names[0] - 1, call)];
}

uint32_t occ_cupti_availability(uint32_t (*ask)(struct occ_params_availability *params), uintptr_t subject,
                                struct occ_cupti_image *ret_image)
{
    struct occ_params_availability p = {.size = sizeof p, .subject = subject};
    *ret_image = (struct occ_cupti_image){0};
    uint32_t result = ask(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    if (!occ_cupti_image_new(&p.image, p.image.size))
        return OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    *ret_image = p.image;
    result = ask(&p);
    if (result != OCC_CUPTI_SUCCESS)
        occ_cupti_image_free(ret_image);
    return result;
}

static uint32_t begin(struct occ_cupti_host *h, uint32_t type, const char *chip, const uint8_t *availability)
{
    struct occ_params_host p = {.size = sizeof p, .type = type, .chip = chip, .availability = availability};
    uint32_t result = h->call->begin(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    h->object = p.object;
    struct occ_params_metrics add = {.size = sizeof add, .object = h->object, .metrics = h->metrics};
    return h->call->add_metrics(&add);
}

static uint32_t make_config(struct occ_cupti_host *h)
{
    struct occ_params_config p = {.size = OCC_CONFIG_SIZE_SIZE, .object = h->object};
    uint32_t result = h->call->config_size(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    if (!occ_cupti_image_new(&h->config, p.config.size))
        return OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    p.size = sizeof p;
    p.config = h->config;
    return h->call->config(&p);
}

uint32_t occ_cupti_host_open(struct occ_cupti_host *host, uint32_t type, const char *chip,
                             const struct occ_cupti_image *availability)
{
    uint32_t result = begin(host, type, chip, availability->bytes);
    if (result == OCC_CUPTI_SUCCESS)
        result = make_config(host);
    struct occ_params_passes p = {.size = sizeof p, .config = host->config};
    if (result == OCC_CUPTI_SUCCESS)
        result = host->call->passes(&p);
    host->passes = p.passes;
    if (result != OCC_CUPTI_SUCCESS)
        occ_cupti_host_close(host);
    return result;
}

uint32_t occ_cupti_host_evaluate(const struct occ_cupti_host *host, const struct occ_cupti_image *data,
                                 size_t range, double *ret_values)
{
    struct occ_params_evaluate p = {.size = sizeof p,
                                    .object = host->object,
                                    .data = data->bytes,
                                    .data_size = data->size,
                                    .range = range,
                                    .metrics = host->metrics,
                                    .values = ret_values};
    return host->call->evaluate(&p);
}

void occ_cupti_host_close(struct occ_cupti_host *host)
{
    struct occ_params_object p = {.size = sizeof p, .object = host->object};
    if (host->object)
        (void)host->call->end(&p);
    host->object = NULL;
    occ_cupti_image_free(&host->config);
}
