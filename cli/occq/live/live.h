/* `occq live`: its arguments, and the parts of its screen. One thread, beside the thread of query.h. */
#pragma once

#include "model.h"
#include "page.h"
#include "query.h"

struct live_args {
    struct history_args history; /* number: batches to print; 0: no limit */
    int64_t window_ns, interval_ns;
    bool batch, ascii, wait;
};

enum { LIVE_ROWS_MIN = 12, LIVE_COLUMNS_MIN = 60 };

/* State of the screen. */
struct live_ui {
    const struct live_args *args;
    struct live_source *source;
    struct live_sample *sample; /* NULL: none yet */
    struct live_model model;
    struct cli_selection columns;
    struct live_page page; /* covers the table while it has a text */
    int64_t window_ns;
    int64_t paused_ns, moved_ns; /* CLOCK_MONOTONIC: begin of the pause, last move; 0: none */
    bool ascii, asking, typing, ends;
    struct occ_error err; /* error of the last key; code 0: none */
};

/* Chooses the text columns: from the options, else the default columns of the live view that have a value in
 * the sample (NULL: none yet), with the device if kernels differ only in their device. */
int live_choose_columns(const struct live_args *args, const struct live_sample *sample,
                        struct cli_selection *ret_selection, struct occ_error *err);

const struct cli_column *live_loss_column(void);

/* True if bars and trends have no block characters: on request, or since the locale lacks them. */
bool live_is_ascii(const struct live_args *args);

/* True if rows keep their order: for some seconds after the user moved the selection. */
bool live_is_held(const struct live_ui *ui);
void live_rearrange(struct live_ui *ui);

/* Draws the whole screen; ncurses is active. */
void live_draw(struct live_ui *ui);
/* Returns the number of visible rows of the table, or of the open page. */
int live_visible_rows(const struct live_ui *ui);

/* Handles a key: an ncurses code or a character. */
void live_press(struct live_ui *ui, int key);

/* Runs the view on a terminal. Returns the exit status. */
int live_run(const struct cli_command *command, const struct live_args *args);
