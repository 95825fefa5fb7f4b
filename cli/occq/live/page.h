/* A scrolled text: the output of another command of occq, or a constant. One thread. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "support/error.h"

struct live_page {
    char *text; /* text read until now; NULL: no page */
    size_t length, allocated;
    size_t first; /* first line on the screen */
    int left;     /* first column on the screen */
    int fd;       /* pipe of a running command; -1: none */
    pid_t child;
};
#define LIVE_NO_PAGE                                                                                         \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

/* Shows a constant text. */
int live_page_set(struct live_page *page, const char *text, struct occ_error *err);
/* Runs this program with the given arguments; its output is `columns` wide. */
int live_page_run(struct live_page *page, char *const *argv, int columns, struct occ_error *err);
/* Reads the available output without waiting. */
void live_page_read(struct live_page *page);
/* Ends a running command and frees the text. */
void live_page_close(struct live_page *page);

size_t live_page_lines(const struct live_page *page);
/* Returns the beginning of a line, which ends with '\n' or the text. */
const char *live_page_line(const struct live_page *page, size_t number);
