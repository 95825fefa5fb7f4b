/*
 * Compares predictions and advice with published changes.
 *
 *   bench_advice CORPUS.csv [--leave-one-repository-out] [--json]
 *
 * The corpus' format: corpus.h. Each row gets a prediction, its interval, the rank of the change in the list
 * of advice for the launch before, and the list's first item. With --leave-one-repository-out each row is
 * predicted from a table that is calibrated on the other repositories.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice_fit.h"

#define FASTER 0.98
#define SLOWER 1.02
#define GAINED 0.95

struct judged {
    const struct corpus_row *row;
    struct occ_prediction prediction;
    struct occ_suggestion list[OCC_ADVICE_MAX];
    size_t n_list, rank; /* rank 0: the list lacks the change */
    bool is_offered;     /* the first item promises a gain and has the change's knob and direction */
};

struct counts {
    size_t all, faster, slower;
};

static void count(struct counts *c, double ratio)
{
    c->all++;
    c->faster += ratio < FASTER;
    c->slower += ratio > SLOWER;
}

/* ---- one row ---- */

static bool is_knob(const struct occ_advice *a, enum corpus_knob knob, int direction)
{
    int change = a->needed > a->now ? 1 : -1;
    switch (a->kind) {
    case OCC_ADVICE_REGISTERS_SMEM:
        return (knob == CORPUS_REGISTERS || knob == CORPUS_SMEM) && direction < 0;
    case OCC_ADVICE_REGISTERS:
    case OCC_ADVICE_FREE_REGISTERS:
        return knob == CORPUS_REGISTERS && direction == change;
    case OCC_ADVICE_SMEM:
    case OCC_ADVICE_FREE_SMEM:
        return knob == CORPUS_SMEM && direction == change;
    case OCC_ADVICE_BLOCK_SIZE:
    case OCC_ADVICE_HALF_BLOCK:
    case OCC_ADVICE_LARGER_BLOCK:
    case OCC_ADVICE_SPLIT_BLOCK:
    case OCC_ADVICE_WHOLE_WARPS:
        return knob == CORPUS_BLOCK && direction == change;
    case OCC_ADVICE_FILL_WAVE:
    case OCC_ADVICE_EVEN_GRID:
    case OCC_ADVICE_GRID_DOWN:
    case OCC_ADVICE_GRID_UP:
    case OCC_ADVICE_GRID_STRIDE:
    case OCC_ADVICE_FILL_SMS:
        return knob == CORPUS_GRID && direction == change;
    default:
        return false;
    }
}

static void judge(const struct occ_prediction_table *table, const struct corpus_row *row, struct judged *ret)
{
    const struct occ_suggest_input input = {
        .device = &row->device,
        .launch = &row->launch[0],
        .result = &row->result[0],
        .bound = row->bound,
        .owner = row->owner,
        .spill_bytes = row->side[0].spill_bytes,
        .has_grid = row->has_grid,
    };
    *ret = (struct judged){.row = row, .prediction = fit_predict(table, row)};
    if (!row->has_launch)
        return;
    ret->n_list = occ_suggest(&input, ret->list);
    for (size_t i = 0; i < ret->n_list && !ret->rank; i++)
        if (is_knob(&ret->list[i].advice, row->knob, row->direction))
            ret->rank = i + 1;
    ret->is_offered = ret->rank == 1 && ret->list[0].prediction.is_promised;
}

/* ---- all rows ---- */

struct summary {
    size_t rows, covered, gained, gained_offered, withheld;
    double mean, median, none_mean, none_median, interval;
    struct counts offered;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double sum_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

static struct summary summarise(const struct judged *judged, size_t n)
{
    struct summary s = {.rows = n};
    double *error = calloc(3 * n + 1, sizeof *error), *none = error + n, *interval = none + n;
    if (!error)
        abort();
    for (size_t i = 0; i < n; i++) {
        const struct judged *j = &judged[i];
        double ratio = j->row->ratio;
        error[i] = fabs(log(ratio / j->prediction.ratio));
        none[i] = fabs(log(ratio));
        interval[i] = j->prediction.high / j->prediction.low;
        s.covered += ratio >= j->prediction.low && ratio <= j->prediction.high;
        s.gained += ratio < GAINED && j->row->has_launch;
        s.gained_offered += ratio < GAINED && j->is_offered;
        s.withheld += !(j->n_list && j->list[0].prediction.is_promised);
        if (j->is_offered)
            count(&s.offered, ratio);
    }
    s.mean = n ? sum_of(error, n) / (double)n : 0;
    s.none_mean = n ? sum_of(none, n) / (double)n : 0;
    s.median = median_of(error, n);
    s.none_median = median_of(none, n);
    s.interval = median_of(interval, n);
    free(error);
    return s;
}

/* ---- text ---- */

/* Prints a share and its 95 % interval (Wilson). */
static void print_share(const char *what, size_t part, size_t all)
{
    double z = 1.96, n = (double)all, p = n > 0 ? (double)part / n : 0;
    double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
    if (all)
        (void)printf("  %-44s %3zu of %3zu  %5.1f %% (%.0f to %.0f)\n", what, part, all, 100 * p,
                     100 * fmax(middle - half, 0), 100 * fmin(middle + half, 1));
    else
        (void)printf("  %-44s   0 of   0\n", what);
}

static void print_rows(const struct judged *judged, size_t n)
{
    (void)printf("%-8s %-28s %7s %7s %15s %-12s %5s  %s\n", "row", "repository", "ratio", "median", "80 %",
                 "term", "rank", "first advice");
    for (size_t i = 0; i < n; i++) {
        const struct judged *j = &judged[i];
        const struct occ_prediction *p = &j->prediction;
        (void)printf("%-8s %-28.28s %7.3f %7.3f %6.2f to %5.2f %-12s %2zu/%-2zu  ", j->row->id,
                     j->row->source, j->row->ratio, p->ratio, p->low, p->high, occ_term_word(p->term),
                     j->rank, j->n_list);
        if (j->n_list)
            (void)printf("%s %llu -> %llu%s%s\n", occ_advice_word(j->list[0].advice.kind),
                         (unsigned long long)j->list[0].advice.now,
                         (unsigned long long)j->list[0].advice.needed,
                         j->list[0].prediction.is_promised ? ", promised" : ", measure it",
                         !j->is_offered            ? ""
                         : j->row->ratio < FASTER  ? ": faster"
                         : j->row->ratio <= SLOWER ? ": same"
                                                   : ": slower");
        else
            (void)printf("-\n");
    }
}

static void print_group(const char *what, const struct judged *judged, size_t n,
                        bool (*is_in)(const struct judged *, int), int group)
{
    struct counts c = {0};
    double *ratios = calloc(n + 1, sizeof *ratios), width = 0, error = 0;
    size_t covered = 0;
    if (!ratios)
        abort();
    for (size_t i = 0; i < n; i++)
        if (is_in(&judged[i], group)) {
            const struct occ_prediction *p = &judged[i].prediction;
            double ratio = judged[i].row->ratio;
            ratios[c.all] = ratio;
            count(&c, ratio);
            width += log(p->high / p->low);
            error += fabs(log(ratio / p->ratio));
            covered += ratio >= p->low && ratio <= p->high;
        }
    if (c.all)
        (void)printf("  %-14s %4zu rows: %3zu faster, %3zu same, %3zu slower; median %.3f; error %.3f; "
                     "interval x%.2f holds %zu\n",
                     what, c.all, c.faster, c.all - c.faster - c.slower, c.slower, median_of(ratios, c.all),
                     error / (double)c.all, exp(width / (double)c.all), covered);
    free(ratios);
}

static bool is_of_bound(const struct judged *j, int bound)
{
    return (int)j->row->bound == bound;
}

static bool is_of_term(const struct judged *j, int term)
{
    return (int)j->prediction.term == term && (term == OCC_TERM_NONE || j->prediction.part[term] < 0);
}

#define SKIP_REASONS_MAX 32 /* corpus.c has fewer */

struct skipped_rows {
    const char *reason; /* NULL: behind the last */
    size_t n;
};

/* Counts a row of that reason. */
static void count_reason(struct skipped_rows reasons[SKIP_REASONS_MAX], const char *reason)
{
    struct skipped_rows *r = reasons;
    while (r < reasons + SKIP_REASONS_MAX - 1 && r->reason && strcmp(r->reason, reason) != 0)
        r++;
    r->reason = reason;
    r->n++;
}

static void print_skipped(const struct corpus *corpus)
{
    struct skipped_rows reasons[SKIP_REASONS_MAX] = {{NULL, 0}};
    (void)printf("\nskipped rows\n");
    for (size_t i = 0; i < corpus->n; i++)
        if (corpus->rows[i].skipped) {
            (void)printf("  %-8s %s\n", corpus->rows[i].id, corpus->rows[i].skipped);
            count_reason(reasons, corpus->rows[i].skipped);
        }
    (void)printf("\nskipped rows by reason\n");
    for (const struct skipped_rows *r = reasons; r < reasons + SKIP_REASONS_MAX && r->reason; r++)
        (void)printf("  %5zu  %s\n", r->n, r->reason);
}

static void print_tables(const struct corpus *corpus, const struct judged *judged, size_t n,
                         const struct summary *s)
{
    static const char *const bounds[OCC_WORK_BOUNDS] = {"unknown", "latency", "memory", "compute"};
    print_rows(judged, n);
    print_skipped(corpus);
    (void)printf("\nabsolute log error          mean   median\n  no change                %7.3f  %7.3f\n"
                 "  prediction               %7.3f  %7.3f\n",
                 s->none_mean, s->none_median, s->mean, s->median);
    (void)printf("  ends of the interval     x%.2f apart (median)\n\nby bound\n", s->interval);
    for (int i = 0; i < OCC_WORK_BOUNDS; i++)
        print_group(bounds[i], judged, n, is_of_bound, i);
    (void)printf("\npredicted gains by the largest term, and changes without one\n");
    for (int i = 0; i < OCC_TERM_COUNT; i++)
        print_group(occ_term_word((enum occ_term)i), judged, n, is_of_term, i);
    (void)printf("\nshares (95 %% interval)\n");
    print_share("in the 80 % interval", s->covered, s->rows);
    print_share("the first advice withholds a promise", s->withheld, s->rows);
    print_share("first advice promised and followed", s->offered.all, s->rows);
    print_share("  faster", s->offered.faster, s->offered.all);
    print_share("  same", s->offered.all - s->offered.faster - s->offered.slower, s->offered.all);
    print_share("  slower", s->offered.slower, s->offered.all);
    print_share("gained more than 5 %, of them offered first", s->gained_offered, s->gained);
}

static void print_json(const struct summary *s)
{
    (void)printf("{\"rows\": %zu, \"mean_abs_log_error\": %.4f, \"median_abs_log_error\": %.4f, "
                 "\"coverage_80\": %.4f, \"interval_ratio_median\": %.4f, \"first_advice\": %zu, "
                 "\"first_advice_faster\": %zu, \"first_advice_slower\": %zu, \"gained\": %zu, "
                 "\"gained_offered\": %zu}\n",
                 s->rows, s->mean, s->median, s->rows ? (double)s->covered / (double)s->rows : 0, s->interval,
                 s->offered.all, s->offered.faster, s->offered.slower, s->gained, s->gained_offered);
}

/* ---- the command ---- */

static char *read_file(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(CORPUS_BYTES_MAX + 1);
    *ret_size = file && text ? fread(text, 1, CORPUS_BYTES_MAX + 1, file) : 0;
    bool is_good = file && text && !ferror(file) && *ret_size <= CORPUS_BYTES_MAX;
    if (file)
        (void)fclose(file);
    if (is_good)
        return text;
    free(text);
    return NULL;
}

static void judge_all(const struct corpus *corpus, bool leave_out, struct judged *judged, size_t *ret_n)
{
    struct occ_prediction_table table = occ_published_cases;
    const char *fitted_without = NULL;
    for (size_t i = 0; i < corpus->n; i++) {
        const struct corpus_row *row = &corpus->rows[i];
        if (row->skipped)
            continue;
        if (leave_out && (!fitted_without || strcmp(fitted_without, row->source) != 0)) {
            table = fit_table(corpus, row->source);
            fitted_without = row->source;
        }
        judge(&table, row, &judged[(*ret_n)++]);
    }
}

int main(int argc, char **argv)
{
    const char *path = NULL, *why = "cannot be read, or is too large";
    bool leave_out = false, json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--leave-one-repository-out") == 0)
            leave_out = true;
        else if (argv[i][0] != '-' && !path)
            path = argv[i];
        else
            return (void)fprintf(stderr, "bench_advice: unknown argument %s\n", argv[i]), 2;
    }
    if (!path)
        return (void)fprintf(stderr,
                             "usage: bench_advice CORPUS.csv [--leave-one-repository-out] [--json]\n"),
               2;
    size_t size, n = 0;
    char *text = read_file(path, &size);
    struct corpus *corpus = text ? corpus_parse(text, size, &why) : NULL;
    free(text);
    if (!corpus)
        return (void)fprintf(stderr, "bench_advice: %s: %s\n", path, why), 1;
    struct judged *judged = calloc(corpus->n + 1, sizeof *judged);
    if (!judged)
        return 1;
    judge_all(corpus, leave_out, judged, &n);
    struct summary summary = summarise(judged, n);
    if (json)
        print_json(&summary);
    else
        print_tables(corpus, judged, n, &summary);
    if (!json && !leave_out) {
        struct occ_prediction_table table = fit_table(corpus, NULL);
        (void)printf("\ncalibrated on all rows: interval %.3f to %.3f\n", table.low, table.high);
    }
    if (corpus->is_cut)
        (void)fprintf(stderr, "bench_advice: rows after the first %d are left out\n", CORPUS_ROWS_MAX);
    free(judged);
    corpus_free(corpus);
    return 0;
}
