/* `occq report`: one HTML file that needs nothing else. All numbers and sentences are printed here, by the
 * functions of the other commands; the page's script sorts, filters and shows them. One thread. */
#pragma once

#include <stdio.h>

#include "cli/sides/report.h"
#include "cli/history/lists.h"
#include "cli/kernels/show.h"
#include "cli/kernels/top.h"
#include "cli/trend/trend.h"

struct report {
    struct occ_store *store;
    const struct occ_filter *filter;
    const char *asked;   /* the filters in words; "": none */
    struct occ_top *top; /* all kernels, by waste */
    struct top_line *lines;
    struct top_sums sums;
    size_t n_lines;            /* in the table: the first of them */
    struct show_group *groups; /* sections of the first lines, one each */
    size_t n_groups;
    const struct occ_top *ranges; /* by waste; none: no launch has one, or the launches are too many */
    struct top_line *range_lines;
    size_t n_ranges; /* the first of them */
    const struct trend *trend;
    const struct diff_report *diff; /* NULL: no comparison; else all is about its B */
    const struct diff_line *diff_lines;
};

/* "kernel-12-1": where the section or the row of a kernel on a device is. */
#define REPORT_ANCHOR_BYTES 48
const char *report_anchor(const struct occ_row_kernel *kernel, char anchor[REPORT_ANCHOR_BYTES]);

/* Write errors stay in `out`. */
int report_page(FILE *out, const struct report *report, struct occ_error *err);

/* The page's header, and the verdict of all launches. */
void report_verdict(FILE *out, const struct report *report);

/* The section of a kernel on a device. */
int report_kernel(FILE *out, const struct show_group *group, struct occ_error *err);

/* A list of other commands, for the page and its data. */
struct report_list {
    const struct sql_list *list;
    const char *title, *columns; /* by name */
    bool is_filtered;            /* its rows are those of the report's filter */
};
/* Runs, and what the history holds; `list` NULL ends them. */
extern const struct report_list report_lists[];
/* Its rows, of `selection` (in which html_choose() put the columns). */
int report_visit(const struct report *report, const struct report_list *list,
                 const struct cli_selection *selection, const struct sql_visitor *visitor,
                 struct occ_error *err);

/* The columns of the table of kernels, also in the page's data. */
extern const char report_top_columns[];
/* The same of the table of ranges, from `table`, which is filled. */
void report_range_columns(struct cli_column table[TOP_COLUMNS_MAX], struct cli_selection *ret_columns);
/* The page's data: what --json of the commands prints, as an element. */
int report_data(FILE *out, const struct report *report, struct occ_error *err);
