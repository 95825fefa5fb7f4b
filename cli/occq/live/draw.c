/* The screen of `occq live`; see live.h. */
#define NCURSES_WIDECHAR 1
#include <ctype.h>
#include <inttypes.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "cli/fit.h"
#include "cli/screen.h"
#include "draw/sparkline.h"
#include "live.h"
#include "support/clock.h"
#include "support/text.h"

enum { NAME_WIDTH_MIN = 20, WHY_WIDTH = 24, GAP = 1, MARK_WIDTH = 1, CELL_BYTES = 128 };
enum { COLOUR_ERROR = 1, COLOUR_HEAD = 2, COLOUR_TREND = 3 };

/* Replaces the end of a text of `used` columns by an ellipsis. Returns the number of columns. */
static int put_ellipsis(wchar_t *wide, int *n, int used)
{
    const char *ellipsis = cli_screen_ellipsis();
    int dots = ellipsis[0] == '.' ? 2 : 1, room = dots;
    while (*n > 0 && room > 0) {
        int last = wcwidth(wide[--*n]);
        room -= last;
        used -= last;
    }
    for (int i = 0; i < dots; i++)
        wide[(*n)++] = dots == 1 ? L'\u2026' : L'.';
    return used + dots;
}

/* Draws text in at most `width` columns, up to a newline; unprintable characters become '?'. A longer text
 * ends with an ellipsis if there is room for some of it. */
static void put(int y, int x, int width, const char *text, bool right)
{
    enum { ELLIPSIS_WIDTH_MIN = 6 };
    wchar_t wide[LIVE_LINE_BYTES];
    mbstate_t state = {0};
    int n = 0, used = 0;
    while (*text && *text != '\n' && n < LIVE_LINE_BYTES) {
        wchar_t c = L'?';
        size_t bytes = mbrtowc(&c, text, MB_CUR_MAX, &state);
        if (bytes == 0 || bytes > MB_CUR_MAX) {
            state = (mbstate_t){0};
            bytes = 1;
            c = L'?';
        }
        c = wcwidth(c) < 1 ? L'?' : c;
        if (used + wcwidth(c) > width) {
            used = width >= ELLIPSIS_WIDTH_MIN ? put_ellipsis(wide, &n, used) : used;
            break;
        }
        used += wcwidth(c);
        wide[n++] = c;
        text += bytes;
    }
    (void)mvaddnwstr(y, right ? x + width - used : x, wide, n);
}

/* ---- columns ---- */

struct layout {
    const struct cli_column *columns[CLI_MAX_COLUMNS];
    int widths[CLI_MAX_COLUMNS];
    size_t n;
};

static bool is_named(const struct cli_column *column, const char *name)
{
    return strcmp(column->name, name) == 0;
}

/* Returns a width for all samples, so that columns do not move from sample to sample. */
static int width_of(const struct live_ui *ui, const struct cli_column *column)
{
    static const int widths[] = {[CLI_PLAIN] = 11, [CLI_RATIO] = 6,  [CLI_DURATION] = 8, [CLI_TIME] = 19,
                                 [CLI_FACTOR] = 8, [CLI_AMOUNT] = 7, [CLI_MEMORY] = 10};
    int heading = (int)strlen(column->name), width = widths[column->unit];
    int64_t largest = ui->model.n_kernels ? ui->model.kernels[ui->model.n_kernels - 1].id : 0;
    if (is_named(column, "why"))
        width = WHY_WIDTH;
    else if (is_named(column, "id"))
        width = snprintf(NULL, 0, "%" PRId64, largest);
    else if (column->flags & CLI_CUTS)
        width = NAME_WIDTH_MIN;
    else if (column->flags & CLI_MARKS)
        width = heading;
    else if (column->flags & CLI_LEFT)
        width = 13;
    return width > heading ? width : heading;
}

static int width_of_all(const struct layout *layout)
{
    int width = MARK_WIDTH + LIVE_VALUES;
    for (size_t i = 0; i < layout->n; i++)
        width += layout->widths[i] + GAP;
    return width;
}

/* Returns the place of a column in the order in which columns go from a narrow screen, the first one last; 0:
 * it stays. */
static unsigned int rank_of(const struct cli_column *column)
{
    static const char *const order[] = {"why",      "achieved", "whose",    "time",  "marks", "waste%",
                                        "launches", "measured", "expected", "cause", "loss"};
    for (unsigned int i = 0; i < sizeof order / sizeof *order; i++)
        if (is_named(column, order[i]))
            return i + 1;
    return CLI_RANK_OF(column->flags);
}

/* Drops the column of the highest rank. Returns false if no column may be dropped. */
static bool drop_column(struct layout *layout)
{
    size_t worst = 0;
    for (size_t i = 1; i < layout->n; i++)
        if (rank_of(layout->columns[i]) > rank_of(layout->columns[worst]))
            worst = i;
    if (layout->n < 2 || rank_of(layout->columns[worst]) == 0)
        return false;
    layout->n--;
    for (size_t i = worst; i < layout->n; i++) {
        layout->columns[i] = layout->columns[i + 1];
        layout->widths[i] = layout->widths[i + 1];
    }
    return true;
}

/* Sets the widths; the kernel's name gets the remaining columns of the screen. */
static void lay_out(const struct live_ui *ui, struct layout *layout)
{
    layout->n = ui->columns.n;
    for (size_t i = 0; i < layout->n; i++) {
        layout->columns[i] = ui->columns.columns[i];
        layout->widths[i] = width_of(ui, layout->columns[i]);
    }
    while (width_of_all(layout) > COLS && drop_column(layout))
        ;
    for (size_t i = 0; i < layout->n; i++)
        if (is_named(layout->columns[i], "kernel") && width_of_all(layout) < COLS)
            layout->widths[i] += COLS - width_of_all(layout);
}

/* ---- the table ---- */

static void draw_heading(const struct live_ui *ui, const struct layout *layout, int y)
{
    int x = MARK_WIDTH;
    for (size_t i = 0; i < layout->n; i++) {
        const struct cli_column *column = layout->columns[i];
        char name[CELL_BYTES];
        size_t n = 0;
        for (; column->name[n] && n + 1 < sizeof name; n++)
            name[n] = (char)toupper((unsigned char)column->name[n]);
        name[n] = '\0';
        (void)attrset(column == ui->model.order ? A_REVERSE : A_BOLD);
        put(y, x, layout->widths[i], name, !(column->flags & CLI_LEFT));
        x += layout->widths[i] + GAP;
    }
    (void)attrset(A_BOLD);
    put(y, x, LIVE_VALUES, "TREND", false);
    (void)attrset(A_NORMAL);
}

/* Shortens the names of the rows on the screen so that they still differ. */
static void fit_names(const struct live_ui *ui, const struct layout *layout, char **names, size_t n)
{
    size_t width = NAME_WIDTH_MIN;
    bool done = true;
    for (size_t i = 0; i < layout->n; i++)
        if (is_named(layout->columns[i], "kernel"))
            width = (size_t)layout->widths[i];
    for (size_t i = 0; i < n; i++) {
        const struct occ_row_kernel *kernel = &ui->model.items[ui->model.first + i].line->row.kernel;
        const char *name = kernel->short_name ? kernel->short_name : "-";
        names[i] = cli_screen_text(kernel->words && cli_text_width(name) > width ? kernel->words : name);
        done = done && names[i];
    }
    (void)(done && cli_fit_texts(names, n, width, cli_screen_ellipsis()));
}

static void draw_row(const struct live_ui *ui, const struct layout *layout, int y, size_t row,
                     const char *name)
{
    const struct live_kernel *kernel = ui->model.items[row].kernel;
    bool selected = row == ui->model.at &&
                    (ui->model.selected == 0 ||
                     (kernel->id == ui->model.selected && kernel->device == ui->model.selected_device));
    const struct top_line *line = ui->model.items[row].line;
    char text[CELL_BYTES], trend[DRAW_SPARKLINE_BYTES(LIVE_VALUES)];
    int x = MARK_WIDTH;
    (void)attrset(selected ? A_REVERSE : A_NORMAL);
    (void)mvhline(y, 0, ' ', COLS);
    put(y, 0, MARK_WIDTH, selected ? ">" : " ", false);
    for (size_t i = 0; i < layout->n; i++) {
        const struct cli_column *column = layout->columns[i];
        const struct cli_value value = column->get(column, line);
        const char *shown =
            is_named(column, "kernel") ? name : cli_value_text(&value, column->unit, text, sizeof text);
        put(y, x, layout->widths[i], shown, !(column->flags & CLI_LEFT));
        x += layout->widths[i] + GAP;
    }
    draw_sparkline(kernel->values, LIVE_VALUES, ui->ascii, trend);
    if (!selected)
        (void)attrset((int)COLOR_PAIR(COLOUR_TREND));
    put(y, x, LIVE_VALUES, trend, false);
    (void)attrset(A_NORMAL);
}

static void draw_table(struct live_ui *ui, int y, int rows)
{
    struct layout layout;
    size_t n = ui->model.n < (size_t)rows ? ui->model.n : (size_t)rows;
    _cleanup_(occ_freep) char **names = calloc(n + 1, sizeof *names);
    if (!names)
        return;
    live_scroll(&ui->model, (size_t)rows);
    lay_out(ui, &layout);
    draw_heading(ui, &layout, y++);
    fit_names(ui, &layout, names, n);
    for (size_t i = 0; i < n; i++) {
        draw_row(ui, &layout, y + (int)i, ui->model.first + i, names[i] ? names[i] : "-");
        free(names[i]);
    }
}

/* ---- above and below it ---- */

static int shown_gpus(const struct live_ui *ui)
{
    int n = ui->sample ? (int)(ui->sample->gpus.n < 1000 ? ui->sample->gpus.n : 1000) : 0;
    return n > LINES / 3 ? LINES / 3 : n;
}

/* Writes line `number` between the GPUs and the table; "": not shown. Returns false beyond the last line. */
static bool between(const struct live_ui *ui, int number, char line[LIVE_LINE_BYTES])
{
    enum { CAUSES, OWNERS, LAYERS, DAEMON, N, SMALL_SCREEN = 18 };
    line[0] = '\0';
    if (number == CAUSES)
        live_causes_text(ui->sample, line);
    else if (number == OWNERS && LINES >= SMALL_SCREEN)
        live_owners_text(ui->sample, line);
    else if (number == LAYERS && LINES >= SMALL_SCREEN)
        live_layers_text(ui->sample, ui->ascii, line);
    else if (number == DAEMON)
        (void)snprintf(line, LIVE_LINE_BYTES, "%s", ui->sample->daemon);
    return number < N;
}

/* Returns the number of lines above the rows: head, GPUs (and the number of further GPUs), lines between,
 * heading. */
static int lines_above(const struct live_ui *ui)
{
    char line[LIVE_LINE_BYTES];
    bool more = ui->sample && ui->sample->gpus.n > (size_t)shown_gpus(ui);
    int lines = ui->sample ? 2 : 3;
    for (int i = 0; ui->sample && between(ui, i, line); i++)
        lines += line[0] != '\0';
    return lines + shown_gpus(ui) + (more ? 1 : 0);
}

int live_visible_rows(const struct live_ui *ui)
{
    return LINES - 1 - (ui->page.text ? 0 : lines_above(ui));
}

static void draw_head(const struct live_ui *ui)
{
    char line[LIVE_LINE_BYTES] = "reading the history", clock[16], state[64] = "", since[32];
    time_t now = time(NULL);
    struct tm local = {0};
    int64_t paused_s = ui->paused_ns ? (occ_monotonic_ns() - ui->paused_ns) / 1000000000 : 0;
    if (ui->sample && ui->sample->err.code == 0)
        live_head_text(ui->sample, line);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &local));
    if (ui->paused_ns)
        (void)snprintf(state, sizeof state, " PAUSED %s",
                       paused_s ? occ_format_duration(paused_s * 1000000000, since, sizeof since) : "");
    else if (live_is_held(ui))
        (void)snprintf(state, sizeof state, " order held");
    (void)attrset((int)COLOR_PAIR(COLOUR_HEAD) | A_BOLD);
    put(0, 0, COLS, clock, false);
    put(0, 10, COLS - 10, line, false);
    (void)attrset(A_REVERSE);
    put(0, COLS - (int)strlen(state), COLS, state, false);
    (void)attrset(A_NORMAL);
}

/* Draws a list; shares that do not fit are left out. */
static void put_list(int y, char *line)
{
    for (char *comma; cli_text_width(line) > (size_t)COLS && (comma = strrchr(line, ',')); *comma = '\0')
        ;
    put(y, 0, COLS, line, false);
}

static void draw_summary(const struct live_ui *ui)
{
    char line[LIVE_LINE_BYTES];
    int y = 1, gpus = shown_gpus(ui);
    for (int i = 0; i < gpus; i++) {
        live_gpu_text(ui->sample, (size_t)i, ui->ascii, line);
        put(y++, 0, COLS, line, false);
    }
    if (ui->sample->gpus.n > (size_t)gpus) {
        (void)snprintf(line, sizeof line, "+%zu GPUs", ui->sample->gpus.n - (size_t)gpus);
        put(y++, 0, COLS, line, false);
    }
    for (int i = 0; between(ui, i, line); i++)
        if (line[0])
            put_list(y++, line);
}

static void draw_foot(const struct live_ui *ui)
{
    static const char keys[] = "h help  q quit  Enter show  / filter  <> sort  Space pause  +- window";
    char line[LIVE_LINE_BYTES];
    size_t n = ui->page.text ? live_page_lines(&ui->page) : 0;
    if (ui->typing)
        (void)snprintf(line, sizeof line, "filter: %s_  (Enter keeps it, Esc drops it)", ui->model.filter);
    else if (ui->err.code != 0)
        (void)snprintf(line, sizeof line, "%s", ui->err.message);
    else if (ui->page.text)
        (void)snprintf(line, sizeof line, "Esc back  arrows scroll  line %zu of %zu%s", ui->page.first + 1, n,
                       ui->page.fd >= 0 ? " (reads on)" : "");
    else
        (void)snprintf(line, sizeof line, "by %s%s%s%s  %s", ui->model.order->name,
                       ui->model.inverted ? " inverted" : "", ui->model.filter[0] ? " /" : "",
                       ui->model.filter, keys);
    (void)attrset(A_REVERSE);
    (void)mvhline(LINES - 1, 0, ' ', COLS);
    put(LINES - 1, 0, COLS, line, false);
    (void)attrset(A_NORMAL);
}

static void draw_page(struct live_ui *ui)
{
    size_t n = live_page_lines(&ui->page), rows = (size_t)live_visible_rows(ui);
    if (ui->page.first + rows > n)
        ui->page.first = n > rows ? n - rows : 0;
    const char *line = live_page_line(&ui->page, ui->page.first);
    for (size_t i = 0; i < rows && ui->page.first + i < n; i++) {
        const char *from = line;
        for (int left = ui->page.left; left && *from && *from != '\n'; left--)
            from += mblen(from, MB_CUR_MAX) > 1 ? mblen(from, MB_CUR_MAX) : 1;
        put((int)i, 0, COLS, from, false);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
}

/* Draws a message, wrapped at the width of the screen. */
static void draw_message(int y, const char *text)
{
    char line[LIVE_LINE_BYTES];
    (void)attrset((int)COLOR_PAIR(COLOUR_ERROR) | A_BOLD);
    for (; *text && y < LINES - 1; y++) {
        size_t n = strlen(text), wide = (size_t)COLS - 2;
        while (n > wide && wide > (size_t)COLS / 2 && text[wide] != ' ')
            wide--;
        n = n > wide ? wide : n;
        (void)snprintf(line, sizeof line, "%.*s", (int)n, text); /* put() marks a longer text as cut */
        put(y, 1, (int)n, line, false);
        text += n;
        text += strspn(text, " ");
    }
    (void)attrset(A_NORMAL);
}

void live_draw(struct live_ui *ui)
{
    char line[LIVE_LINE_BYTES];
    (void)erase();
    if (LINES < LIVE_ROWS_MIN || COLS < LIVE_COLUMNS_MIN) {
        (void)snprintf(line, sizeof line, "occq live needs %d x %d characters; here are %d x %d (q quits)",
                       LIVE_COLUMNS_MIN, LIVE_ROWS_MIN, COLS, LINES);
        draw_message(0, line);
    } else if (ui->page.text)
        draw_page(ui);
    else {
        draw_head(ui);
        if (ui->sample && ui->sample->err.code == 0)
            draw_summary(ui);
        if (ui->sample && ui->model.n)
            draw_table(ui, lines_above(ui) - 1, live_visible_rows(ui));
        if (ui->sample)
            live_nothing_text(ui->sample, &ui->model, line);
        if (ui->sample && line[0])
            draw_message(lines_above(ui), line);
    }
    if (LINES >= LIVE_ROWS_MIN && COLS >= LIVE_COLUMNS_MIN)
        draw_foot(ui);
    (void)refresh();
}
