/* `occtraced --status`: see status.h. Answers are checked as untrusted input. One thread. */
#include "status.h"

#include <stdlib.h>

#include "status_owners.h"
#include "support/control.h"
#include "support/text.h"

#define PATIENCE_MS   5000
#define LABEL_WIDTH   20
#define HISTORIES_MAX 4096 /* more than a daemon opens */

/* ---- as text ---- */

static void print_text(const struct occ_status_row *row, const char *value, double number, FILE *out)
{
    char text[OCC_STATUS_TEXT_BYTES];
    bool is_as_said = row->kind == OCC_STATUS_AS_TEXT || row->kind == OCC_STATUS_AS_COUNT ||
                      row->kind == OCC_STATUS_AS_LOSS;
    if (row->kind == OCC_STATUS_AS_LOSS && number == 0)
        return;
    (void)fprintf(out, "  %-*s %s\n", LABEL_WIDTH, row->label,
                  is_as_said ? value : occ_status_format(row->kind, number, text));
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

/* Prints a comma first: another member precedes. */
static void print_member(const struct occ_status_row *row, const char *value, double number, FILE *out)
{
    (void)fputs(", ", out);
    print_string(row->key, out);
    (void)fputs(": ", out);
    if (row->kind == OCC_STATUS_AS_TEXT)
        print_string(value, out);
    else
        (void)fprintf(out, "%.15g", number);
}

/* ---- both ---- */

/* Omits invalid numbers, as values that the daemon does not know. */
static void print_values(const char *answer, bool is_json, FILE *out)
{
    for (const struct occ_status_row *row = occ_status_rows; row < occ_status_rows + OCC_STATUS_COUNT;
         row++) {
        char *value = occ_control_value(answer, row->key);
        double number = 0;
        bool is_valid = value && (row->kind == OCC_STATUS_AS_TEXT ||
                                  occ_parse_double(value, 0, 1e19, &number, NULL) == 0);
        if (is_valid) {
            occ_text_sanitise(value);
            (is_json ? print_member : print_text)(row, value, number, out);
        }
        free(value);
    }
}

/* Prints the history with this number in the daemon's order. */
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
