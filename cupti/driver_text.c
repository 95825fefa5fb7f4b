/* See driver_text.h. */
#include "driver_text.h"

#include <stdio.h>

void occ_driver_text(int result, char text[OCC_DRIVER_TEXT_BYTES])
{
    static const struct {
        int result;
        const char *text;
    } texts[] = {
        {OCC_DRIVER_NO_DEVICE, "found no GPU"},
        {101, "was asked for a GPU that is not there"},
        {46, "found every GPU in use or unavailable"},
        {802, "waits for the GPUs' fabric (nvidia-fabricmanager)"},
        {803, "and the kernel's driver have different versions"},
        {804, "is newer than the kernel's, which this GPU does not allow"},
    };
    const char *found = "did not start";
    text[0] = '\0';
    if (result == 0)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        found = texts[i].result == result ? texts[i].text : found;
    (void)snprintf(text, OCC_DRIVER_TEXT_BYTES, "the CUDA driver %s (error %d)", found, result);
}
