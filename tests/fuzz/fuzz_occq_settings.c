/* Fuzzes occq.yaml: any bytes are refused with a message that names a position, or accepted as settings whose
 * texts end and that become options of a command. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/history/history.h"
#include "cli/history/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void apply(struct occq_settings *settings)
{
    static const struct cli_option options[] = {CLI_OPTION_DB, CLI_OPTION_EXCLUDE, CLI_OPTIONS_LIST};
    static const struct cli_command command = {.name = "top", .options = options};
    static char given[] = "-n5";
    char *argv[] = {given, NULL};
    char **all = settings_apply(settings, &command, argv);
    if (!all)
        abort();
    size_t n = 0;
    while (all[n])
        n++;
    if (n == 0 || n > 7 || all[n - 1] != given)
        abort();
    free(all);
}

static void check_price(const struct occ_price *price)
{
    size_t length = strnlen(price->model, sizeof price->model);
    if (length == 0 || length == sizeof price->model || strlen(price->currency) != 3 ||
        price->millionths <= 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct occq_settings settings;
    struct occ_error err = OCC_ERROR_INIT;
    int status = settings_parse("fuzz", (const char *)data, size, &settings, &err);
    if (status != 0 && strncmp(err.message, "fuzz:", 5) != 0)
        abort();
    if (status != 0)
        return 0;
    if (settings.history[0] && settings.history[0] != '/')
        abort();
    for (size_t i = 0; i < settings.n_columns; i++)
        if (!settings.columns[i].list[0] ||
            !memchr(settings.columns[i].list, '\0', sizeof settings.columns[i].list))
            abort();
    for (size_t i = 0; i < settings.prices.n; i++)
        check_price(&settings.prices.list[i]);
    apply(&settings);
    return 0;
}
