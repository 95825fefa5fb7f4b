/* `occq report`: one HTML file without external resources. Functions of the other commands print all numbers
 * and sentences; the page's script sorts, filters and shows them. One thread. */
#pragma once

#include <stdio.h>

#include "cli/sides/report.h"
#include "cli/sides/verdicts.h"
#include "cli/history/lists.h"
#include "cli/kernels/show.h"
#include "cli/kernels/top.h"
#include "cli/trend/trend.h"
#include "explain/layers.h"

struct report {
    struct occ_store *store;
    const struct occ_filter *filter;
    const char *asked;   /* the filters in words; "": none */
    struct occ_top *top; /* all kernels, by waste */
    struct top_line *lines;
    struct top_sums sums;
    size_t n_lines;            /* number of lines in the table */
    struct show_group *groups; /* one section for each of the first lines */
    size_t n_groups;
    const struct occ_overview *overview;
    const struct occ_layers *layers; /* empty: as `ranges` */
    const struct occ_top *ranges;    /* by waste; empty: no launch has a range, or too many launches */
    struct top_line *range_lines;
    size_t n_ranges; /* number of ranges in the table */
    const struct trend *trend;
    const struct diff_report *diff; /* NULL: no comparison; else all other data are of side B */
    const struct diff_line *diff_lines;
    const struct diff_group_line *diff_groups;
    uint32_t shared_runs; /* runs with the same launches on both sides */
};

/* Writes "kernel-12-1", the anchor of the section or row of a kernel on a device. Returns `anchor`. */
#define REPORT_ANCHOR_BYTES 48
const char *report_anchor(const struct occ_row_kernel *kernel, char anchor[REPORT_ANCHOR_BYTES]);

/* Writes the page; write errors stay in `out`. */
int report_page(FILE *out, const struct report *report, struct occ_error *err);

/* Writes the page's header and the verdict on all launches. */
int report_verdict(FILE *out, const struct report *report, struct occ_error *err);

/* Writes the section of a kernel on a device. */
int report_kernel(FILE *out, const struct show_group *group, struct occ_error *err);

/* A list that other commands print, for the page and its data. */
struct report_list {
    const struct sql_list *list;
    const char *title, *columns; /* by name */
    bool is_filtered;            /* the report's filter selects its rows */
};
/* Runs and contents of the history; ends with a NULL `list`. */
extern const struct report_list report_lists[];
/* Visits the list's rows with the columns of `selection`, which html_choose() chose. */
int report_visit(const struct report *report, const struct report_list *list,
                 const struct cli_selection *selection, const struct sql_visitor *visitor,
                 struct occ_error *err);

/* Columns of the table of kernels, also in the page's data. */
extern const char report_top_columns[];
/* Fills `table` and chooses the columns of the table of ranges. */
void report_range_columns(struct cli_column table[TOP_COLUMNS_MAX], struct cli_selection *ret_columns);
/* Writes the page's data, the same as --json of the commands, as an element. */
int report_data(FILE *out, const struct report *report, struct occ_error *err);
