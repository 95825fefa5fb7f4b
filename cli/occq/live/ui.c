/* Functions shared by the parts of the screen; see live.h. */
#include <langinfo.h>
#include <string.h>

#include "live.h"
#include "support/clock.h"

#define HELD_NS INT64_C(3000000000)

/* True if a cell tells something: a measured part of 0 stands beside no measured value. */
static bool has_value(const struct cli_column *column, const struct top_line *line)
{
    const struct cli_value value = column->get(column, line);
    return value.type != CLI_NONE && !(value.type == CLI_REAL && !(value.real > 0));
}

/* Removes the columns in which no row of the sample has a value. */
static void leave_empty_out(const struct live_sample *sample, struct cli_selection *selection)
{
    size_t kept = 0;
    for (size_t i = 0; i < selection->n; i++) {
        const struct cli_column *column = selection->columns[i];
        bool is_kept = sample->kernels.n == 0;
        for (size_t k = 0; k < sample->kernels.n && !is_kept; k++)
            is_kept = has_value(column, &sample->lines[k]);
        if (is_kept)
            selection->columns[kept++] = column;
    }
    selection->n = kept;
}

int live_choose_columns(const struct live_args *args, const struct live_sample *sample,
                        struct cli_selection *ret_selection, struct occ_error *err)
{
    static const char one[] = "id,kernel,time,share,used,why,whose,launches,achieved,measured,expected,cause,"
                              "loss,waste%,marks",
                      several[] = "id,kernel,device_id,time,share,used,why,whose,launches,achieved,measured,"
                                  "expected,cause,loss,waste%,marks";
    bool needs_device = sample && top_needs_device(&sample->kernels, sample->kernels.n, OCC_TOP_BY_KERNEL);
    const char *list = args->history.list.output.columns;
    ret_selection->format = CLI_FORMAT_TEXT;
    ret_selection->n = 0;
    if (list && list[0] != '+')
        return cli_select_list(top_columns, list, ret_selection, err);
    int status = cli_select_list(top_columns, needs_device ? several : one, ret_selection, err);
    if (status == 0 && sample)
        leave_empty_out(sample, ret_selection);
    if (status == 0 && list)
        status = cli_select_list(top_columns, list, ret_selection, err);
    return status;
}

const struct cli_column *live_loss_column(void)
{
    const struct cli_column *column = top_columns;
    while (strcmp(column->name, "waste%") != 0)
        column++;
    return column;
}

bool live_is_ascii(const struct live_args *args)
{
    return args->ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

bool live_is_held(const struct live_ui *ui)
{
    return ui->moved_ns != 0 && occ_monotonic_ns() - ui->moved_ns < HELD_NS;
}

void live_rearrange(struct live_ui *ui)
{
    if (ui->sample && !live_arrange(&ui->model, ui->sample, live_is_held(ui)))
        (void)occ_no_memory(&ui->err);
}
