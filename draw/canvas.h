/* A picture of dots for a terminal: two by four dots a character (U+2800 and up), or one mark a character
 * where the locale has no such. Row 0 is the top. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    DRAW_CANVAS_COLUMNS = 240,
    DRAW_CANVAS_ROWS = 16,
    DRAW_CANVAS_ROW_BYTES = 3 * DRAW_CANVAS_COLUMNS + 1
};

struct draw_canvas {
    int columns, rows; /* characters */
    bool ascii;
    int width, height; /* dots */
    unsigned char dots[4 * DRAW_CANVAS_ROWS][2 * DRAW_CANVAS_COLUMNS];
    int mark_x, mark_y; /* a dot whose character is a mark; -1: none */
};

/* Empty; sizes are cut to the largest. */
void draw_canvas_init(struct draw_canvas *canvas, int columns, int rows, bool ascii);

/* The dot of a value, 0 ... 1 (cut), from the bottom to the top, and from the left to the right. */
int draw_canvas_y(const struct draw_canvas *canvas, double value);
int draw_canvas_x(const struct draw_canvas *canvas, double value);

/* The dots of a column from one row to another, in any order. */
void draw_canvas_line(struct draw_canvas *canvas, int x, int from_y, int to_y);

/* A row of characters, UTF-8. */
void draw_canvas_row(const struct draw_canvas *canvas, int row, char text[DRAW_CANVAS_ROW_BYTES]);

/* Columns for a picture beside `indent` characters on a screen of `width` characters; 0, not known: 64. */
int draw_canvas_columns(size_t width, int indent);
