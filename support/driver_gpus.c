/* See driver_gpus.h. */
#include "driver_gpus.h"

#include <glob.h>
#include <stdio.h>

#include "support/cleanup.h"
#include "support/text.h"

static bool decode_uuid(const char *text, uint8_t uuid[16])
{
    char hex[33];
    size_t n = 0;
    for (; *text && n < sizeof hex - 1; text++)
        if (*text != '-')
            hex[n++] = *text;
    hex[n] = '\0';
    return occ_hex_decode(hex, uuid, 16);
}

/* "GPU UUID:   GPU-8-4-4-4-12" and "Device Minor:  NUMBER", in lines of the driver's file. */
static bool read_information(const char *path, uint8_t uuid[16], int *ret_minor)
{
    char line[256], digits[37];
    bool has_uuid = false;
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "re");
    *ret_minor = -1;
    while (file && fgets(line, sizeof line, file)) {
        (void)sscanf(line, "Device Minor: %d", ret_minor);
        if (sscanf(line, "GPU UUID: GPU-%36s", digits) == 1)
            has_uuid = decode_uuid(digits, uuid);
    }
    return has_uuid;
}

/* NVIDIA's MIG User Guide, "Device Nodes and Capabilities":
 * /proc/driver/nvidia/capabilities/gpu0/mig/gi1/access. */
static bool has_instances(const char *root, int minor)
{
    char pattern[4096];
    glob_t found = {0};
    (void)snprintf(pattern, sizeof pattern, "%s/proc/driver/nvidia/capabilities/gpu%d/mig/gi*", root, minor);
    bool has = minor >= 0 && glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return has;
}

size_t occ_driver_gpus_read(const char *root, struct occ_driver_gpu *gpus, size_t max)
{
    char pattern[4096];
    glob_t found = {0};
    size_t n = 0;
    int minor = -1;
    (void)snprintf(pattern, sizeof pattern, "%s/proc/driver/nvidia/gpus/*/information", root);
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc && n < max; i++) { /* sorted */
        gpus[n] = (struct occ_driver_gpu){.number = (unsigned int)i};
        if (!read_information(found.gl_pathv[i], gpus[n].uuid, &minor))
            continue;
        gpus[n].has_instances = has_instances(root, minor);
        n++;
    }
    globfree(&found);
    return n;
}
