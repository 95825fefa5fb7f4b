/* `occtraced --status`: see status.h. Answers are checked like any other input. One thread. */
#include "status.h"

#include <stdlib.h>
#include <time.h>

#include "status_owners.h"
#include "support/control.h"
#include "support/text.h"

#define PATIENCE_MS   5000
#define LABEL_WIDTH   20
#define HISTORIES_MAX 4096 /* more than a daemon opens */

enum kind { TEXT, COUNT, LOSS, BYTES, SECONDS, TIME, RATIO };

#define OCC_STATUS_ROW(id, key, kind, label) {key, kind, label},
static const struct row {
    const char *key;
    enum kind kind;
    const char *label;
} rows[OCC_STATUS_COUNT] = {OCC_STATUS(OCC_STATUS_ROW)};

/* ---- as text ---- */

static void format_time(double seconds, char *text, size_t size)
{
    time_t time = (time_t)seconds;
    struct tm tm = {0};
    (void)localtime_r(&time, &tm);
    if (strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        text[0] = '\0';
}

static void print_text(const struct row *row, const char *value, double number, FILE *out)
{
    char text[64];
    if (row->kind == LOSS && number == 0)
        return;
    if (row->kind == BYTES)
        value = occ_format_bytes((uint64_t)number, text, sizeof text);
    else if (row->kind == SECONDS)
        value = number > 0 ? occ_format_duration((int64_t)(number * 1e9), text, sizeof text) : "0 s";
    else if (row->kind == RATIO)
        (void)snprintf(text, sizeof text, "%.1f %%", 100 * number);
    else if (row->kind == TIME)
        format_time(number, text, sizeof text);
    (void)fprintf(out, "  %-*s %s\n", LABEL_WIDTH, row->label,
                  row->kind == RATIO || row->kind == TIME ? text : value);
}

/* ---- as JSON ---- */

static void print_string(const char *text, FILE *out)
{
    (void)fputc('"', out);
    for (; *text; text++)
        if ((unsigned char)*text < 0x20)
            (void)fprintf(out, "\\u%04x", (unsigned)*text);
        else
            (void)fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    (void)fputc('"', out);
}

/* After another member. */
static void print_member(const struct row *row, const char *value, double number, FILE *out)
{
    (void)fputs(", ", out);
    print_string(row->key, out);
    (void)fputs(": ", out);
    if (row->kind == TEXT)
        print_string(value, out);
    else
        (void)fprintf(out, "%.15g", number);
}

/* ---- both ---- */

/* A number that is none is left out, as what the daemon does not know is. */
static void print_values(const char *answer, bool is_json, FILE *out)
{
    for (const struct row *row = rows; row < rows + OCC_STATUS_COUNT; row++) {
        char *value = occ_control_value(answer, row->key);
        double number = 0;
        bool is_valid = value && (row->kind == TEXT || occ_parse_double(value, 0, 1e19, &number, NULL) == 0);
        if (is_valid) {
            occ_text_sanitise(value);
            (is_json ? print_member : print_text)(row, value, number, out);
        }
        free(value);
    }
}

/* The history that has this number in the daemon's order. */
static void print_history(unsigned int number, const char *answer, enum occ_status_form form, FILE *out)
{
    bool is_json = form == OCC_STATUS_JSON;
    (void)fprintf(out, is_json ? "%s{\"number\": %u" : "%s\nhistory %u\n", is_json && number ? ", " : "",
                  number);
    print_values(answer, is_json, out);
    (void)fputs(is_json ? "}" : "", out);
}

static int print_histories(int fd, enum occ_status_form form, FILE *out, struct occ_error *err)
{
    char answer[OCC_CONTROL_BYTES + 1], request[32];
    struct occ_owner_lines lines = {.n = 0};
    int status = 0;
    for (unsigned int i = 0; i < HISTORIES_MAX && status == 0; i++) {
        (void)snprintf(request, sizeof request, "history %u", i);
        status = occ_control_request(fd, request, PATIENCE_MS, answer, sizeof answer, err);
        if (status != 0 || answer[0] == '\0')
            break;
        if (form == OCC_STATUS_LINES)
            status = occ_owner_lines_add(&lines, answer, err);
        else
            print_history(i, answer, form, out);
    }
    (void)fputs(lines.n > 0 ? "\n" : "", out);
    occ_owner_lines_print(&lines, out);
    occ_owner_lines_free(&lines);
    return status;
}

int occ_status_print(int fd, enum occ_status_form form, FILE *out, struct occ_error *err)
{
    char answer[OCC_CONTROL_BYTES + 1];
    bool is_json = form == OCC_STATUS_JSON;
    int status = occ_control_request(fd, "status", PATIENCE_MS, answer, sizeof answer, err);
    if (status != 0)
        return status;
    (void)fputs(is_json ? "{\"program\": \"occtraced\"" : "occtraced\n", out);
    print_values(answer, is_json, out);
    (void)fputs(is_json ? ", \"open\": [" : "", out);
    status = print_histories(fd, form, out, err);
    (void)fputs(is_json ? "]}\n" : "", out);
    return status;
}
