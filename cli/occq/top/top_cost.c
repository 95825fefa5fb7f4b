/* occq top --cost: what the time costs in which programs held GPUs, by prices of occq.yaml; see
 * answer/bill.h. One thread. */
#include "top_cost_focus.h"
#include "top_cost_runs.h"
#include "top_forms.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/history/settings.h"
#include "cli/history/sql_table.h"
#include "cli/notes.h"
#include "cli/table.h"

struct cost_args {
    struct history_args history;
    const char *by, *biller; /* biller: who bills, selects the FOCUS columns; NULL: our own columns */
    bool cost;
};

/* ---- columns ---- */

/* A row; NaN and NULL: unknown. Amounts are in units of the currency. */
struct line {
    const char *name, *model, *currency;
    char price[40];
    uint64_t held_ns;
    double price_per_hour, cost, part[OCC_BILL_PART_COUNT], lost_low, used_high;
    double joules, part_j[OCC_BILL_PART_COUNT], metered; /* NaN: no energy is known */
    bool is_estimate, simulated;
};

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct line, member, help)
#define PART(NAME, word, text)                                                                               \
    FIELD(word, word "_cost", CLI_FACTOR, CLI_DEFAULT, part[OCC_BILL_##NAME], text),

#define PART_ENERGY(NAME, word, text)                                                                        \
    FIELD(word "_j", word "_energy_j", CLI_FACTOR, 0, part_j[OCC_BILL_##NAME],                               \
          "energy of " word ", in proportion to its time"),

static const struct cli_column columns[] = {
    FIELD("name", "name", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, name,
          "the user, job ... of the row; by kernel, layer and range '(no kernel)' is the time without a "
          "kernel, '(no layer)' that of kernels without a range"),
    FIELD("model", "model", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS | CLI_SPARE(3), model,
          "name of the GPUs"),
    FIELD("price", "price", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY | CLI_SPARE(1), price,
          "price of a GPU-hour in occq.yaml; no price: there is none for the model"),
    FIELD("per_hour", "price_per_hour", CLI_PLAIN, 0, price_per_hour, "the same as a number"),
    FIELD("currency", "currency", CLI_PLAIN, CLI_LEFT, currency, "currency of the row's amounts"),
    FIELD("held", "held_ns", CLI_DURATION, CLI_DEFAULT, held_ns,
          "time in which the programs held GPUs: from the first launch to the end of the last, divided among "
          "the runs that hold one GPU at the same time"),
    FIELD("cost", "cost", CLI_FACTOR, CLI_DEFAULT, cost,
          "held time x price; the sum of the parts that follow"),
    OCC_BILL_PARTS(PART) FIELD("lost_low", "lost_cost_low", CLI_FACTOR, 0, lost_low,
                               "low end of lost: the model's interval, for launches that were not measured"),
    FIELD("used_high", "used_cost_high", CLI_FACTOR, 0, used_high, "high end of used, likewise"),
    FIELD("joules", "energy_j", CLI_FACTOR, CLI_DEFAULT | CLI_RARE | CLI_SPARE(2), joules,
          "energy of the GPUs in the held time, for the part of it that energy_ratio tells; the sum of the "
          "parts that follow"),
    OCC_BILL_PARTS(PART_ENERGY) FIELD("metered", "energy_ratio", CLI_RATIO, 0, metered,
                                      "part of the held time for which the energy is known"),
    FIELD("estimate", "is_estimate", CLI_PLAIN, CLI_LEFT, is_estimate,
          "whether the division into parts is estimated: programs shared a GPU, part of the launches was "
          "read, or kernels overlapped communication"),
    FIELD("simulated", "simulated", CLI_PLAIN, CLI_LEFT, simulated, "whether a device is a simulated one"),
    CLI_COLUMN_END,
};

static void set_amounts(const struct occ_bill_row *row, struct line *line)
{
    bool has_price = row->price;
    int64_t gain = row->part_cents[OCC_BILL_LOST] - row->lost_low_cents;
    line->cost = has_price ? (double)row->cents / 100 : (double)NAN;
    for (size_t i = 0; i < OCC_BILL_PART_COUNT; i++)
        line->part[i] = has_price ? (double)row->part_cents[i] / 100 : (double)NAN;
    line->lost_low = has_price ? (double)row->lost_low_cents / 100 : (double)NAN;
    line->used_high = has_price ? (double)(row->part_cents[OCC_BILL_USED] + gain) / 100 : (double)NAN;
    line->price_per_hour = has_price ? (double)row->price->millionths / 1e6 : (double)NAN;
    line->currency = has_price ? row->price->currency : NULL;
    if (has_price)
        (void)snprintf(line->price, sizeof line->price, "%.15g %s", line->price_per_hour, line->currency);
    else
        (void)snprintf(line->price, sizeof line->price, "no price");
}

static void set_energies(const struct occ_bill_row *row, struct line *line)
{
    bool is_known = row->metered_s > 0;
    line->joules = is_known ? (double)row->mj / 1e3 : (double)NAN;
    for (size_t i = 0; i < OCC_BILL_PART_COUNT; i++)
        line->part_j[i] = is_known ? (double)row->part_mj[i] / 1e3 : (double)NAN;
    line->metered = is_known && row->held_s > 0 ? fmin(row->metered_s / row->held_s, 1) : (double)NAN;
}

static struct line line_of(const struct occ_bill_row *row, enum occ_bill_by by)
{
    struct line line = {.name = row->key || by == OCC_BILL_BY_RUN ? row->key : "(no kernel)",
                        .model = row->model,
                        .held_ns = (uint64_t)llround(row->held_s * 1e9),
                        .is_estimate = row->is_estimate,
                        .simulated = row->simulated};
    set_amounts(row, &line);
    set_energies(row, &line);
    return line;
}

/* ---- the answer ---- */

/* Prints a line for each currency: "12.34 EUR for 4.1 GPU-hours". */
static void print_sums(const struct cli_command *command, const struct cli_selection *selection,
                       const struct occ_prices *prices, const struct occ_bill *bill)
{
    for (size_t i = 0; i < prices->n; i++) {
        const char *currency = prices->list[i].currency;
        int64_t cents = 0;
        double held_s = 0;
        bool is_printed = false;
        for (size_t k = 0; k < i; k++)
            is_printed = is_printed || strcmp(prices->list[k].currency, currency) == 0;
        for (size_t k = 0; k < bill->n && !is_printed; k++) {
            const struct occ_bill_row *row = &bill->rows[k];
            bool counts = row->price && strcmp(row->price->currency, currency) == 0;
            cents += counts ? row->cents : 0;
            held_s += counts ? row->held_s : 0;
        }
        if (held_s > 0)
            cli_footer(command, selection, "%" PRId64 ".%02d %s for %.4g GPU-hours", cents / 100,
                       (int)(cents % 100), currency, held_s / 3600);
    }
}

/* Prints notes on stderr that explain the rows. */
static void note_bill(const struct cli_command *command, const struct cost_args *args,
                      const struct occ_bill *bill)
{
    bool simulated = false;
    for (size_t i = 0; i < bill->n; i++)
        simulated = simulated || bill->rows[i].simulated;
    if (bill->replays > 0)
        cli_note(command, "%zu run%s of Nsight Compute: replayed kernels have no held time", bill->replays,
                 bill->replays == 1 ? "" : "s");
    if (simulated)
        cli_note_simulated(command, &args->history.list.selection);
}

static int print(const struct cli_command *command, const struct cost_args *args,
                 const struct occ_prices *prices, const struct occ_bill *bill)
{
    const struct cli_selection *selection = &args->history.list.selection;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = cli_table_new(cli_out(), "costs", selection, &table, &err);
    for (size_t i = 0; i < bill->n && status == 0; i++) {
        struct line line = line_of(&bill->rows[i], top_cost_unit(args->by));
        status = cli_table_add(table, &line, &err);
    }
    if (status == 0)
        status = cli_table_finish(table, &err);
    if (status != 0)
        return cli_failure(command, &err);
    if (selection->format == CLI_FORMAT_TEXT)
        print_sums(command, selection, prices, bill);
    note_bill(command, args, bill);
    return CLI_EXIT_OK;
}

static int print_focus(const struct cli_command *command, const struct cost_args *args,
                       const struct occ_bill *bill)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct top_focus focus = {.provider = args->biller,
                                    .by = args->by,
                                    .since_ns = args->history.filter.since_ns,
                                    .until_ns = args->history.filter.until_ns};
    int status = top_focus_print(command, &focus, bill, &err);
    note_bill(command, args, bill);
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

static int load_prices(struct occq_settings *settings, struct occ_error *err)
{
    int status = settings_load(settings, err);
    return status != 0 || settings->prices.n > 0
               ? status
               : occ_fail(
                     err, OCC_E_USAGE,
                     "there are no prices: add 'prices: {H100: 2.50 EUR}', a GPU's name and the price of "
                     "an hour, to ~/.config/occtrace/occq.yaml");
}

/* Notes what each history has that the bill cannot say. */
static void note_histories(const struct cli_command *command, const struct cost_args *args,
                           const struct top_cost_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++) {
        cli_notes_of(runs->owners[i]);
        cli_note_filter(command, runs->list[i].store, &args->history.filter);
        sql_note_partial(command, runs->list[i].store, &args->history.filter);
    }
    cli_notes_of(NULL);
    if (runs->n == 1 && !runs->owners[0] && top_cost_has_neighbours(runs->list[0].store))
        cli_note(command, "a bill of one history: a GPU that it shares with other owners counts in full; "
                          "--all-users divides it (for root)");
}

/* Makes the bill of the histories and prints it. */
static int answer(const struct cli_command *command, const struct cost_args *args,
                  const struct occ_prices *prices, const struct top_cost_runs *runs)
{
    static const char nothing[] = "no launches match these filters";
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_bill_free) struct occ_bill bill = {0};
    const struct occ_bill_question question = {.since_ns = args->history.filter.since_ns,
                                               .until_ns = args->history.filter.until_ns,
                                               .histories = runs->list,
                                               .n_histories = runs->n,
                                               .by = top_cost_unit(args->by),
                                               .prices = prices,
                                               .kernel_name = top_cost_kernel_name};
    if (occ_bill_make(&question, &bill, &err) != 0)
        return cli_failure(command, &err);
    note_histories(command, args, runs);
    if (bill.n == 0 && bill.replays == 0)
        return runs->n == 1 ? sql_no_launches(command, runs->list[0].store, &args->history.filter, nothing)
                            : cli_nothing(command, nothing);
    return args->biller ? print_focus(command, args, &bill) : print(command, args, prices, &bill);
}

/* `owners` NULL: a bill of one history. */
static int run_for(const struct cli_command *command, const struct cost_args *args,
                   const struct cli_owners *owners)
{
    static struct occq_settings settings;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(top_cost_runs_free) struct top_cost_runs runs = {0};
    const struct cli_args *common = &args->history.list.common;
    /* a charge of FOCUS needs times since 1970 */
    const struct top_cost_choice choice = {args->by, &args->history.filter, args->biller != NULL};
    int status = load_prices(&settings, &err);
    if (status == 0)
        status = owners ? top_cost_open_all(common, owners, &choice, &runs, &err)
                        : top_cost_open(common, &choice, &runs, &err);
    return status == 0 ? answer(command, args, &settings.prices, &runs) : cli_failure(command, &err);
}

static int run(const struct cli_command *command, const void *arguments)
{
    return run_for(command, arguments, NULL);
}

static int run_all(const struct cli_command *command, const void *arguments, const struct cli_owners *owners)
{
    return run_for(command, arguments, owners);
}

static int check(void *arguments, struct occ_error *err)
{
    const struct cost_args *args = arguments;
    const struct cli_output *output = &args->history.list.output;
    if (args->biller && (!output->csv || output->columns))
        return occ_fail(err, OCC_E_INVALID, "--focus has its own columns: use it with --csv and without -o");
    if (args->biller && !args->biller[0])
        return occ_fail(err, OCC_E_INVALID, "--focus needs the name of who bills");
    return cli_check_history(arguments, err);
}

static const struct cli_option options[] = {
    CLI_OPTION(0, "cost", CLI_FLAG, struct cost_args, cost, NULL, "what the held time of GPUs costs"),
    CLI_OPTION(
        0, "by", CLI_WORD, struct cost_args, by, "WHAT",
        "what a row is, on GPUs of one model: user (default), job (Slurm's, or the pod), account and "
        "partition (Slurm's), namespace (Kubernetes), label, node, run, kernel, layer (the ranges around a "
        "launch, equal names with different numbers in one row), range (the same with numbers)",
        .words = top_cost_words),
    CLI_OPTION(0, "focus", CLI_TEXT, struct cost_args, biller, "NAME",
               "with --csv: the columns of FOCUS 1.2, a row for each part; NAME is who bills (provider, "
               "invoice issuer, billing account)"),
    CLI_OPTION_DB,
    CLI_OPTION_OF_ALL_USERS("one bill, in which a GPU's time and energy are divided among all owners"),
    CLI_OPTIONS_PERIOD,
    CLI_OPTIONS_RUN,
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_top_cost = {
    .name = "top",
    .form = "--cost",
    .is_paged = true,
    .summary = "what the time costs in which programs held GPUs",
    .description =
        "Multiplies the time in which programs held GPUs with the prices of occq.yaml, and divides it into "
        "idle + waiting + communication + lost + used + unknown. A run holds a GPU from its first launch to "
        "the end of its last; runs that hold one GPU at the same time share each moment equally, and two "
        "GPUs "
        "cost twice as much. Rows add up to the cent, and so do the parts of a row: the largest remainders "
        "are rounded up. Time before the first launch, and GPUs that a job holds without a launch, are not "
        "known and not in it.\n\n"
        "Prices are of GPU-hours: 'prices: {H100: 2.50 EUR, A100-SXM4-80GB: 1.20 EUR}' in occq.yaml. A price "
        "is for GPUs whose name contains the text; the longest text wins. A slice of MIG has a price only by "
        "a "
        "text with MIG. A model without a price has no amounts.\n\n"
        "A bill is of one history, and a node's daemon has one for each owner: a GPU that owners share is "
        "held in full in the bill of each. --all-users (for root) makes one bill of all of them, in which a "
        "GPU's time and energy count once; runs are then OWNER/ID, pods NAMESPACE/POD.\n\n"
        "By layer and range, kernels without a range, and launches that are no longer stored individually, "
        "are '(no layer)'.\n\n"
        "Lost is not what a change saves: a kernel with empty warp slots may be as fast as it can be. "
        "'occq top --advice' predicts savings.",
    .options = options,
    .columns = columns,
    .examples = {{"occq top --cost", "what each user's GPU time costs"},
                 {"occq top --cost --by job --since 7d", "the jobs of a week"},
                 {"occq top --cost --by layer --run last", "which layers of a model cost most"},
                 {"occq top --cost --by kernel --run last --json", "kernels of the last run, for a program"},
                 {"occq top --cost --by account --csv --focus gpu-cluster", "for a FinOps tool"}},
    CLI_ARGS(struct cost_args, .by = "user"),
    .check = check,
    .run = run,
    .run_all = run_all,
};
