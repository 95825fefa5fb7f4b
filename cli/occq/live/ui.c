/* Functions shared by the parts of the screen; see live.h. */
#include <string.h>

#include "live.h"
#include "support/clock.h"

#define HELD_NS INT64_C(3000000000)

int live_choose_columns(const struct live_args *args, const struct live_sample *sample,
                        struct cli_selection *ret_selection, struct occ_error *err)
{
    static const char one[] =
        "id,kernel,launches,time,achieved,measured,expected,cause,loss,waste,waste%,marks",
                      several[] =
                          "id,kernel,device_id,launches,time,achieved,measured,expected,cause,loss,waste,"
                          "waste%,marks";
    bool needs_device = sample && top_needs_device(&sample->kernels, sample->kernels.n, OCC_TOP_BY_KERNEL);
    const char *ours = needs_device ? several : one;
    const char *list = args->history.list.output.columns;
    ret_selection->format = CLI_FORMAT_TEXT;
    ret_selection->n = 0;
    int status = cli_select_list(top_columns, list && list[0] != '+' ? list : ours, ret_selection, err);
    if (status == 0 && list && list[0] == '+')
        status = cli_select_list(top_columns, list, ret_selection, err);
    return status;
}

const struct cli_column *live_waste_column(void)
{
    const struct cli_column *column = top_columns;
    while (strcmp(column->name, "waste") != 0)
        column++;
    return column;
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
