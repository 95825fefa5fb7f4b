/* See canvas.h. */
#include "canvas.h"

#include <math.h>
#include <string.h>

enum { DOTS_X = 2, DOTS_Y = 4, COLUMNS = 64, COLUMNS_MIN = 32 };

void draw_canvas_init(struct draw_canvas *canvas, int columns, int rows, bool ascii)
{
    memset(canvas, 0, sizeof *canvas);
    canvas->columns = columns < DRAW_CANVAS_COLUMNS ? columns : DRAW_CANVAS_COLUMNS;
    canvas->rows = rows < DRAW_CANVAS_ROWS ? rows : DRAW_CANVAS_ROWS;
    canvas->ascii = ascii;
    canvas->width = canvas->columns * (ascii ? 1 : DOTS_X);
    canvas->height = canvas->rows * (ascii ? 1 : DOTS_Y);
    canvas->mark_x = canvas->mark_y = -1;
}

int draw_canvas_y(const struct draw_canvas *canvas, double value)
{
    return (int)lround((1 - fmin(fmax(value, 0), 1)) * (canvas->height - 1));
}

int draw_canvas_x(const struct draw_canvas *canvas, double value)
{
    return (int)lround(fmin(fmax(value, 0), 1) * (canvas->width - 1));
}

void draw_canvas_line(struct draw_canvas *canvas, int x, int from_y, int to_y)
{
    int low = from_y < to_y ? from_y : to_y, high = from_y + to_y - low;
    for (int y = low; y <= high; y++)
        canvas->dots[y][x] = 1;
}

/* Bits of a Braille character (U+2800 and up): the dots are numbered by column, except the lowest row, which
 * was added to the code later. */
static unsigned int braille_bits(const struct draw_canvas *canvas, int row, int column)
{
    static const unsigned char bits[DOTS_Y][DOTS_X] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned int all = 0;
    for (int y = 0; y < DOTS_Y; y++)
        for (int x = 0; x < DOTS_X; x++)
            if (canvas->dots[row * DOTS_Y + y][column * DOTS_X + x])
                all |= bits[y][x];
    return all;
}

static size_t put_utf8(char *out, unsigned int character)
{
    out[0] = (char)(0xe0 | character >> 12);
    out[1] = (char)(0x80 | (character >> 6 & 0x3f));
    out[2] = (char)(0x80 | (character & 0x3f));
    return 3;
}

void draw_canvas_row(const struct draw_canvas *canvas, int row, char text[DRAW_CANVAS_ROW_BYTES])
{
    int dots_x = canvas->ascii ? 1 : DOTS_X, dots_y = canvas->ascii ? 1 : DOTS_Y;
    size_t used = 0;
    for (int column = 0; column < canvas->columns; column++) {
        bool marked =
            canvas->mark_x >= 0 && canvas->mark_x / dots_x == column && canvas->mark_y / dots_y == row;
        if (canvas->ascii)
            text[used++] = marked ? 'O' : canvas->dots[row][column] ? '*' : ' ';
        else
            used += put_utf8(text + used, marked ? 0x25cf : 0x2800 + braille_bits(canvas, row, column));
    }
    text[used] = '\0';
}

int draw_canvas_columns(size_t width, int indent)
{
    int room = width < DRAW_CANVAS_COLUMNS ? (int)width - indent : DRAW_CANVAS_COLUMNS;
    return width == 0 ? COLUMNS : room < COLUMNS_MIN ? COLUMNS_MIN : room;
}
