/* `occq live`: its arguments, and its screen in parts. One thread, beside that of query.h. */
#pragma once

#include "model.h"
#include "page.h"
#include "query.h"

struct live_args {
    struct history_args history; /* number: of batches; 0: until interrupted */
    int64_t window_ns, interval_ns;
    bool batch, ascii, wait;
};

enum { LIVE_ROWS_MIN = 12, LIVE_COLUMNS_MIN = 60 };

/* What is on the screen. */
struct live_ui {
    const struct live_args *args;
    struct live_source *source;
    struct live_sample *sample; /* NULL: none yet */
    struct live_model model;
    struct cli_selection columns;
    struct live_page page; /* over the table, if it has a text */
    int64_t window_ns;
    int64_t paused_ns, moved_ns; /* CLOCK_MONOTONIC: since when; last moved; 0: not */
    bool ascii, asking, typing, ends;
    struct occ_error err; /* of the last key; code 0: none */
};

/* The columns of text: by the options, else what fits a live view, with the device where kernels of the
 * sample (NULL: none yet) differ in it alone. */
int live_choose_columns(const struct live_args *args, const struct live_sample *sample,
                        struct cli_selection *ret_selection, struct occ_error *err);

const struct cli_column *live_waste_column(void);

/* The order of rows stays for some seconds after the selection was moved. */
bool live_is_held(const struct live_ui *ui);
void live_rearrange(struct live_ui *ui);

/* Draws everything; ncurses is on. */
void live_draw(struct live_ui *ui);
/* Of the table, and of a page. */
int live_visible_rows(const struct live_ui *ui);

/* A key of ncurses, or a character. */
void live_press(struct live_ui *ui, int key);

/* The view on a terminal; returns the exit status. */
int live_run(const struct cli_command *command, const struct live_args *args);
