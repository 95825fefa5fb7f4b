/* occq show --hit-rate: how often advice was right in this history. One thread. */
#include "cli/history/history.h"
#include "cli/kernels/hit_rate.h"
#include "cli/usage.h"
#include "show_text.h"
#include "support/cleanup.h"

struct hit_args {
    struct history_args history;
    bool hit_rate;
};

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct hit_rate, member, help)

static const struct cli_column columns[] = {
    FIELD("change", "change", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, change,
          "the change that advice had named; all: the sum"),
    FIELD("n", "outcomes", CLI_PLAIN, CLI_DEFAULT, n, "changes that followed it, with a certain result"),
    FIELD("promised", "promised", CLI_PLAIN, CLI_DEFAULT, promised, "of them with a promised gain"),
    FIELD("faster", "faster", CLI_PLAIN, CLI_DEFAULT, faster, "less than 0.98 of the time before"),
    FIELD("neutral", "neutral", CLI_PLAIN, CLI_DEFAULT, neutral, "0.98 to 1.02 of the time before"),
    FIELD("slower", "slower", CLI_PLAIN, CLI_DEFAULT, slower, "more than 1.02 of the time before"),
    FIELD("predicted", "predicted_median_ratio", CLI_RATIO, CLI_DEFAULT, predicted,
          "median of predicted times after / before"),
    FIELD("measured", "measured_median_ratio", CLI_RATIO, CLI_DEFAULT, measured,
          "median of measured times after / before"),
    FIELD("inside", "inside_ratio", CLI_RATIO, CLI_DEFAULT, inside_ratio,
          "share with a measured time within the predicted 80 % interval"),
    FIELD("faster_share", "faster_ratio", CLI_RATIO, 0, faster_ratio, "share of faster changes"),
    FIELD("low", "faster_low_ci95_ratio", CLI_RATIO, CLI_DEFAULT, faster_low,
          "lower end of the 95 % interval of the share of faster changes (Wilson)"),
    FIELD("high", "faster_high_ci95_ratio", CLI_RATIO, CLI_DEFAULT, faster_high, "upper end of it"),
    CLI_COLUMN_END,
};

static int run(const struct cli_command *command, const void *arguments)
{
    const struct history_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    _cleanup_(occ_freep) struct occ_advice_outcome *outcomes = NULL;
    _cleanup_(occ_freep) struct hit_rate *rows = NULL;
    size_t n = 0, n_rows = 0;
    if (cli_open_history(&args->list.common, OCC_STORE_READ, &store, &err) != 0 ||
        occ_store_outcomes(store, &outcomes, &n, &err) != 0 ||
        hit_rates_make(outcomes, n, &rows, &n_rows, &err) != 0)
        return cli_failure(command, &err);
    if (n == 0)
        return cli_nothing(command, "no outcome of advice is kept here: 'occq diff' keeps one where a kernel "
                                    "changed as advised and the result is certain");
    return cli_table_print("changes", &args->list.selection, rows, n_rows, sizeof *rows, &err) == 0
               ? CLI_EXIT_OK
               : cli_failure(command, &err);
}

static const struct cli_option options[] = {
    CLI_OPTION(0, "hit-rate", CLI_FLAG, struct hit_args, hit_rate, NULL,
               "how often advice was right, by kind of change"),
    CLI_OPTION_DB,
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_show_hit_rate = {
    .name = "show",
    .form = "--hit-rate",
    .is_paged = true,
    .summary = "how often advice was right in this history",
    .description =
        "Lists the changes that advice had named and that were made: 'occq diff' compares the prediction "
        "with "
        "the measured time and keeps both. A change counts if it changed only what the advice named, in its "
        "direction, and if the verdict of 'occq diff' was not undecided. The prediction is of the change as "
        "it was made. Repeated comparisons of the same launch configurations count once, with the newest "
        "result.\n\n"
        "These are changes that somebody chose to make and compare, not a random sample.",
    .options = options,
    .columns = columns,
    .examples = {{"occq show --hit-rate", "by kind of change"},
                 {"occq sql 'SELECT * FROM advice_outcome'", "each of them"}},
    CLI_ARGS(struct hit_args, ),
    .run = run,
};
