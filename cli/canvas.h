/* A picture of dots for a terminal: two by four dots a character (U+2800 and up), or one mark a character
 * where the locale has no such. Row 0 is the top. Pure; any thread. */
#pragma once

#include <stdbool.h>

enum { CLI_CANVAS_COLUMNS = 240, CLI_CANVAS_ROWS = 16, CLI_CANVAS_ROW_BYTES = 3 * CLI_CANVAS_COLUMNS + 1 };

struct cli_canvas {
    int columns, rows; /* characters */
    bool ascii;
    int width, height; /* dots */
    unsigned char dots[4 * CLI_CANVAS_ROWS][2 * CLI_CANVAS_COLUMNS];
    int mark_x, mark_y; /* a dot whose character is a mark; -1: none */
};

/* Empty; sizes are cut to the largest. */
void cli_canvas_init(struct cli_canvas *canvas, int columns, int rows, bool ascii);

/* The dot of a value, 0 ... 1 (cut), from the bottom to the top, and from the left to the right. */
int cli_canvas_y(const struct cli_canvas *canvas, double value);
int cli_canvas_x(const struct cli_canvas *canvas, double value);

/* The dots of a column from one row to another, in any order. */
void cli_canvas_line(struct cli_canvas *canvas, int x, int from_y, int to_y);

/* A row of characters, UTF-8. */
void cli_canvas_row(const struct cli_canvas *canvas, int row, char text[CLI_CANVAS_ROW_BYTES]);

/* Columns for a picture beside `indent` characters: as wide as the terminal; standard output is none: 64. */
int cli_canvas_columns(int indent);
