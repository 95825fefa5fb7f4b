/*
 * Fuzzes the image reader: the input is a cubin, a fat binary or a host file. The properties of kernels must
 * be within the header's maxima.
 */
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct occ_image *image)
{
    for (uint32_t i = 0; i < image->kernel_count; i++) {
        const struct occ_image_kernel *kernel = &image->kernels[i];
        if (!*kernel->name || kernel->registers > 255 || kernel->barriers > 16 || kernel->max_threads > 1024)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_image_list *list = NULL;
    struct occ_image *image = NULL;
    struct occ_image_error err = {0};
    char text[64];
    if (occ_image_list_new(data, size, &list, &err)) {
        if (!err.code || !*err.message)
            abort();
        return 0;
    }
    (void)occ_image_list_text(list, text, sizeof text);
    for (size_t i = 0; i < occ_image_list_count(list) && i < 16; i++) {
        if (occ_image_load(list, i, &image, &err))
            continue;
        check(image);
        occ_image_free(image);
    }
    occ_image_list_free(list);
    return 0;
}
