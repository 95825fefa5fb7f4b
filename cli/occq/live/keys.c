/* Actions of keys; see live.h. The same keys as in htop, less and nvtop. */
#include <inttypes.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "support/clock.h"

#define SECOND_NS INT64_C(1000000000)
enum { ESCAPE = 27, ENTER = '\r', BACKSPACE = 127, CONTROL_L = 12 };

static const char help[] = "occq live: how busy the GPUs are, and the kernels that lose most\n\n"
                           "  Up Down j k PgUp PgDn g G  move; the selection follows its kernel, and rows\n"
                           "                             keep their order for 3 s\n"
                           "  Enter                      everything about the kernel (occq show)\n"
                           "  Esc q F10                  back; q and F10 in the table quit\n"
                           "  < >  F6                    order by the column to the left, to the right\n"
                           "  I                          invert the order\n"
                           "  /  \\  F3 F4                only names with this text, in any case; Esc: all\n"
                           "  Space                      pause; moving, filters and Enter go on\n"
                           "  + -                        longer and shorter window (last 1 s to 1 h)\n"
                           "  Ctrl-L                     draw the screen anew\n"
                           "  h ?  F1                    this page\n\n"
                           "The head has the window, the age of the newest launch, runs in progress with\n"
                           "the launches that they lost, and occtrace's share of their CPU time; the line\n"
                           "above the table has the state of the daemon that writes the history.\n"
                           "busy: time of kernels / window; used: the same without empty warp slots.\n"
                           "achieved is measured, by whole minutes, in that part of the time (m: below\n"
                           "90 %); elsewhere expected is the model's. sim, s: a simulated device. TREND:\n"
                           "loss in the last 10 answers, relative to the largest. Columns without a value\n"
                           "are left out; the help of occq top explains the others.\n"
                           "Long windows are asked less often: the queries take at most 1 % of a "
                           "processor.\n";

/* ---- actions ---- */

/* Moves by rows; PAGE is one screen. */
enum { PAGE = 1000000, ALL = 1000 * PAGE };

static void move_by(struct live_ui *ui, int rows)
{
    if (rows == PAGE || rows == -PAGE)
        rows = rows / PAGE * live_visible_rows(ui);
    if (ui->page.text) { /* draw_page() limits `first` to the last screen */
        ui->page.first = rows < 0 && ui->page.first < (size_t)-rows ? 0 : ui->page.first + (size_t)rows;
        return;
    }
    live_move(&ui->model, rows);
    ui->moved_ns = occ_monotonic_ns();
}

static void move_aside(struct live_ui *ui, int columns)
{
    if (ui->page.text && ui->page.left + columns >= 0)
        ui->page.left += columns;
}

/* Orders by the column `step` beside the current column; 0: reverses the order. */
static void change_order(struct live_ui *ui, int step)
{
    size_t n = ui->columns.n, at = 0;
    while (at < n && ui->columns.columns[at] != ui->model.order)
        at++;
    if (step == 0)
        ui->model.inverted = !ui->model.inverted;
    else
        ui->model.order = ui->columns.columns[at < n ? (at + n + (size_t)step) % n : 0];
    ui->moved_ns = 0;
    live_rearrange(ui);
}

static void pause_or_go_on(struct live_ui *ui, int unused)
{
    (void)unused;
    ui->paused_ns = ui->paused_ns ? 0 : occ_monotonic_ns();
}

/* Changes to the next longer or shorter window of the list. */
static void change_window(struct live_ui *ui, int step)
{
    static const int seconds[] = {1, 2, 5, 10, 30, 60, 300, 900, 3600};
    enum { N = sizeof seconds / sizeof *seconds };
    int at = step > 0 ? 0 : N - 1;
    while (at + step >= 0 && at + step < N && (seconds[at] * SECOND_NS - ui->window_ns) * step <= 0)
        at += step;
    ui->window_ns = seconds[at] * SECOND_NS;
}

static void begin_filter(struct live_ui *ui, int unused)
{
    (void)unused;
    ui->typing = ui->page.text == NULL;
}

static void show_help(struct live_ui *ui, int unused)
{
    (void)unused;
    (void)live_page_set(&ui->page, help, &ui->err);
}

/* Opens `occq show` for the selected kernel on its device, by their numbers, with the filters of this view.
 */
static void show_kernel(struct live_ui *ui)
{
    const struct history_args *args = &ui->args->history;
    const struct occ_filter *f = &args->filter;
    char number[32], run[32], gpu[32];
    char *argv[24] = {(char[]){"occq"}, (char[]){"show"}, number};
    size_t n = 3;
    const struct {
        const char *option, *value;
    } options[] = {{"--db", args->list.common.db},
                   {"--run", run},
                   {"--label", f->label},
                   {"--user", f->user},
                   {"--job", f->job},
                   {"--account", f->account},
                   {"--partition", f->partition},
                   {"--rank", f->rank},
                   {"--gpu", gpu},
                   {"--name", args->name}};
    if (ui->model.n == 0)
        return;
    const struct live_kernel *first = ui->model.items[ui->model.at].kernel;
    int64_t id = ui->model.selected ? ui->model.selected : first->id,
            device = ui->model.selected ? ui->model.selected_device : first->device;
    (void)snprintf(number, sizeof number, "%" PRId64, id);
    (void)snprintf(gpu, sizeof gpu, "%" PRId64, device);
    (void)snprintf(run, sizeof run, f->run == OCC_RUN_LAST ? "last" : "%" PRId64, f->run);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].value && !(options[i].value == run && f->run == 0)) {
            argv[n++] = (char *)(uintptr_t)options[i].option;
            argv[n++] = (char *)(uintptr_t)options[i].value;
        }
    (void)live_page_run(&ui->page, argv, COLS, &ui->err);
}

static void enter(struct live_ui *ui, int unused)
{
    (void)unused;
    if (!ui->page.text)
        show_kernel(ui);
}

static void go_back(struct live_ui *ui, int quits)
{
    if (!ui->page.text && quits)
        ui->ends = true;
    else if (!ui->page.text)
        ui->model.filter[0] = '\0';
    live_page_close(&ui->page);
    live_rearrange(ui);
}

static void draw_anew(struct live_ui *ui, int unused)
{
    (void)ui;
    (void)unused;
    (void)clearok(curscr, TRUE);
}

static const struct {
    int key;
    void (*press)(struct live_ui *ui, int argument);
    int argument;
} keys[] = {
    {KEY_DOWN, move_by, 1},      {'j', move_by, 1},
    {KEY_UP, move_by, -1},       {'k', move_by, -1},
    {KEY_NPAGE, move_by, PAGE},  {KEY_PPAGE, move_by, -PAGE},
    {KEY_HOME, move_by, -ALL},   {'g', move_by, -ALL},
    {KEY_END, move_by, ALL},     {'G', move_by, ALL},
    {KEY_RIGHT, move_aside, 8},  {KEY_LEFT, move_aside, -8},
    {'>', change_order, 1},      {KEY_F(6), change_order, 1},
    {'<', change_order, -1},     {'I', change_order, 0},
    {' ', pause_or_go_on, 0},    {'+', change_window, 1},
    {'=', change_window, 1},     {'-', change_window, -1},
    {'/', begin_filter, 0},      {'\\', begin_filter, 0},
    {KEY_F(4), begin_filter, 0}, {'h', show_help, 0},
    {'?', show_help, 0},         {KEY_F(1), show_help, 0},
    {ENTER, enter, 0},           {'\n', enter, 0},
    {KEY_ENTER, enter, 0},       {ESCAPE, go_back, false},
    {'q', go_back, true},        {CONTROL_L, draw_anew, 0},
    {KEY_F(10), go_back, true},  {KEY_F(3), begin_filter, 0},
};

/* ---- filter ---- */

/* Edits the filter by one key; the bytes of a UTF-8 character arrive one by one. */
static void type(struct live_ui *ui, int key)
{
    char *filter = ui->model.filter;
    size_t n = strlen(filter);
    if (key == ESCAPE)
        filter[0] = '\0';
    else if (key == BACKSPACE || key == KEY_BACKSPACE || key == '\b') {
        while (n && ((unsigned char)filter[--n] & 0xc0) == 0x80)
            ;
        filter[n] = '\0';
    } else if (key >= ' ' && key <= 0xff && n + 1 < LIVE_FILTER_BYTES) {
        filter[n] = (char)key;
        filter[n + 1] = '\0';
    }
    ui->typing = key != ESCAPE && key != ENTER && key != '\n' && key != KEY_ENTER;
    ui->moved_ns = 0;
    live_rearrange(ui);
}

void live_press(struct live_ui *ui, int key)
{
    ui->err.code = 0;
    if (ui->typing) {
        type(ui, key);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].key == key)
            keys[i].press(ui, keys[i].argument);
}
