/* Fuzzes occtrace.yaml: any bytes are refused with a message, or accepted with every value in its range. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct occ_config *config)
{
    if (config->commit_interval_ns < 100000000 || config->commit_interval_ns > INT64_C(60000000000))
        abort();
    if (config->max_producers < 1 || config->max_producers > 16384 || config->chunk_rows < 1024)
        abort();
    if (!memchr(config->database_path, '\0', sizeof config->database_path))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_config config;
    struct occ_error err = OCC_ERROR_INIT;
    occ_config_defaults(&config);
    int status = occ_config_parse("fuzz", (const char *)data, size, &config, &err);
    if (status != 0 && err.message[0] == '\0')
        abort();
    check(&config);
    return 0;
}
