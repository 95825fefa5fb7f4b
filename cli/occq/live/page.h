/* A text that is scrolled: what another command of occq prints, or a constant. One thread. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "support/error.h"

struct live_page {
    char *text; /* as far as it is there; NULL: no page */
    size_t length, allocated;
    size_t first; /* line on the screen */
    int left;     /* column of it */
    int fd;       /* of a command that still prints; -1: none */
    pid_t child;
};
#define LIVE_NO_PAGE                                                                                         \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

/* A constant text. */
int live_page_set(struct live_page *page, const char *text, struct occ_error *err);
/* Starts this program with these arguments; its output is `columns` wide. */
int live_page_run(struct live_page *page, char *const *argv, int columns, struct occ_error *err);
/* What is there by now, without waiting. */
void live_page_read(struct live_page *page);
/* Ends a command that still prints. */
void live_page_close(struct live_page *page);

size_t live_page_lines(const struct live_page *page);
/* The beginning of a line, which ends with '\n' or the text. */
const char *live_page_line(const struct live_page *page, size_t number);
