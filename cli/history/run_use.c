/* See run_use.h. */
#include "run_use.h"

#include <math.h>
#include <stdio.h>

#include "answer/answer.h"
#include "sql_table.h"
#include "support/cleanup.h"

/* A smaller part of the launches makes busy time an estimate. */
#define READ_ALL 0.995

static struct {
    struct occ_store *store; /* NULL: no questions */
    int64_t run;             /* the run that was asked last; 0: none */
    double numbers[3];       /* indexed by RUN_USE_BUSY ...; NaN: unknown */
    bool is_maximum, is_minimum;
    char busy[24];
    struct occ_error err; /* code 0: none */
} use;

void run_use_begin(struct occ_store *store)
{
    use.store = store;
    use.run = 0;
    use.err.code = 0;
}

int run_use_end(struct occ_error *err)
{
    use.store = NULL;
    if (use.err.code != 0 && err)
        *err = use.err;
    return use.err.code;
}

static int make_overview(int64_t run, struct occ_overview *ret_overview, struct occ_error *err)
{
    const struct occ_filter filter = {.run = run};
    _cleanup_(occ_top_free) struct occ_top top = {0};
    int rc = occ_store_top(use.store, &filter, OCC_TOP_BY_KERNEL, &top, err);
    return rc == 0 ? occ_overview_make_times(use.store, &filter, &top, ret_overview, err) : rc;
}

static void take(const struct occ_overview *o)
{
    char percent[16];
    bool is_known = o->time.window_s > 0;
    use.numbers[RUN_USE_BUSY] = is_known ? o->time.communication + o->time.kernels : (double)NAN;
    use.numbers[RUN_USE_USED] = is_known ? o->time.used : (double)NAN;
    use.numbers[RUN_USE_READ] = is_known ? o->read_ratio : (double)NAN;
    use.is_maximum = is_known && o->is_busy_most;
    use.is_minimum = is_known && o->lost > 0;
    (void)snprintf(use.busy, sizeof use.busy, "%s%s",
                   use.is_maximum && use.is_minimum ? "~"
                   : use.is_maximum                 ? "<="
                   : use.is_minimum                 ? ">="
                   : o->read_ratio < READ_ALL       ? "~"
                                                    : "",
                   cli_percent_text(use.numbers[RUN_USE_BUSY], percent, sizeof percent));
}

/* Asks for the run of the row unless it was the last one. Returns false if nothing is known. */
static bool ask(const struct cli_column *column, const void *row)
{
    struct cli_value run = sql_get_value(column, row);
    _cleanup_(occ_overview_free) struct occ_overview overview = {0};
    if (!use.store || run.type != CLI_INTEGER || use.err.code != 0)
        return false;
    if (use.run != run.integer) {
        use.run = run.integer;
        if (make_overview(run.integer, &overview, &use.err) != 0)
            return false;
        take(&overview);
    }
    return isfinite(use.numbers[RUN_USE_BUSY]);
}

struct cli_value run_use_busy_text(const struct cli_column *column, const void *row)
{
    return cli_string(ask(column, row) ? use.busy : NULL);
}

struct cli_value run_use_number(const struct cli_column *column, const void *row)
{
    return cli_real(ask(column, row) ? use.numbers[column->index] : (double)NAN);
}

struct cli_value run_use_is_maximum(const struct cli_column *column, const void *row)
{
    return ask(column, row) ? cli_bool(use.is_maximum) : cli_string(NULL);
}

struct cli_value run_use_is_minimum(const struct cli_column *column, const void *row)
{
    return ask(column, row) ? cli_bool(use.is_minimum) : cli_string(NULL);
}
