/*
 * Fuzzes the image reader: the input is a cubin or a fat binary, for a device of capability 9.0.
 */
#include "image.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_image *image = NULL;
    if (sim_image_read(data, size, 90, &image) == SIM_IMAGE_OK) {
        (void)sim_image_kernel(image, "no such kernel");
        sim_image_free(image);
    }
    return 0;
}
