/* The page's data, the same as --json of the commands; see report.h. One thread. */
#include "cli/json.h"
#include "html.h"
#include "report.h"

const char report_top_columns[] =
    "id,kernel,launches,time,theor,expect_low,expect_high,achieved,measured,cause,loss,waste,device_id";

const struct report_list report_lists[] = {
    {&runs_list, "Runs: what was recorded, and what was lost",
     "run,start,duration,program,label,command_line,launches,lost,lost_causes,level,reason,periods,missing,"
     "simulated",
     true},
    {&info_list, "What the history holds", "what,count,size,first,last", false},
    {NULL, NULL, NULL, false},
};

int report_visit(const struct report *report, const struct report_list *list,
                 const struct cli_selection *selection, const struct sql_visitor *visitor,
                 struct occ_error *err)
{
    enum { ROWS = 50 };
    static const struct occ_filter none = {0};
    struct sql_list of = *list->list;
    of.selection = selection;
    of.filter = list->is_filtered ? report->filter : &none;
    of.number = ROWS;
    return sql_visit_list(report->store, &of, visitor, err);
}

struct rows {
    struct occ_json *json;
    struct cli_selection columns;
};

static int put_row(void *context, const void *row, struct occ_error *err)
{
    const struct rows *rows = context;
    (void)err;
    occ_json_object(rows->json, NULL, true);
    for (size_t i = 0; i < rows->columns.n; i++)
        cli_json_value(rows->json, rows->columns.columns[i]->key,
                       rows->columns.columns[i]->get(rows->columns.columns[i], row));
    occ_json_close(rows->json);
    return 0;
}

void report_range_columns(struct cli_column table[TOP_COLUMNS_MAX], struct cli_selection *ret_columns)
{
    top_copy_columns(OCC_TOP_BY_RANGE, table);
    html_choose(table, "range,waste,waste%,cause,loss,launches,time,kernel%", ret_columns);
    top_name_rows(OCC_TOP_BY_RANGE, table);
}

static void put_lines(const char *key, struct rows *rows, const struct top_line *lines, size_t n)
{
    occ_json_array(rows->json, key, false);
    for (size_t i = 0; i < n; i++)
        (void)put_row(rows, &lines[i], NULL);
    occ_json_close(rows->json);
}

static void put_tops(struct occ_json *json, const struct report *r)
{
    struct rows rows = {.json = json};
    struct cli_column table[TOP_COLUMNS_MAX];
    html_choose(top_columns, report_top_columns, &rows.columns);
    put_lines("top", &rows, r->lines, r->n_lines);
    report_range_columns(table, &rows.columns);
    put_lines("ranges", &rows, r->range_lines, r->n_ranges);
}

static int put_list(struct occ_json *json, const struct report *r, const struct report_list *list,
                    struct occ_error *err)
{
    struct rows rows = {.json = json};
    html_choose(list->list->table, list->columns, &rows.columns);
    occ_json_array(json, list->list->name, false);
    int status = report_visit(r, list, &rows.columns, &(struct sql_visitor){put_row, &rows}, err);
    occ_json_close(json);
    return status;
}

int report_data(FILE *out, const struct report *r, struct occ_error *err)
{
    struct occ_json json;
    int status = 0;
    (void)fputs("<script type=\"application/json\" id=\"occtrace-data\">", out);
    cli_json_begin(&json, out);
    json.in_html = true;
    put_tops(&json, r);
    show_json(&json, r->groups, r->n_groups);
    occ_json_object(&json, "history", false);
    trend_json(&json, r->trend);
    occ_json_close(&json);
    for (const struct report_list *list = report_lists; list->list && status == 0; list++)
        status = put_list(&json, r, list, err);
    if (r->diff) {
        occ_json_object(&json, "diff", false);
        diff_json(&json, r->diff, r->diff_lines);
        occ_json_close(&json);
    }
    cli_json_end(&json);
    (void)fputs("</script>\n", out);
    return status;
}
