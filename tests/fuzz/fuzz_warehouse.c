/*
 * Fuzzes ClickHouse's answers to the questions of occq --cluster and to a user's statement: any answers give
 * a usable history, or an error. The HTTP functions below replace the network: answers come from the input.
 *
 * Input: the kind of question, then bytes of answers. An answer with rows has the names of the question's
 * columns, and values by column name or from a table; other answers are raw text.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_bytes.h"
#include "cluster/ask/body.h"
#include "cluster/ask/remote.h"
#include "store/top.h"

#define ANSWER_BYTES 8192
#define MANGLED      "_Z4axpyPf"

static void choose_cluster(struct occ_warehouse *w, const char *wanted)
{
    struct occ_error err = OCC_ERROR_INIT;
    char *name = NULL;
    int rc = occ_remote_choose_cluster(w, wanted, &name, &err);
    if ((rc != 0 && name) || (wanted && rc == 0 && (!name || strcmp(name, wanted) != 0)))
        abort();
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fuzz_bytes input;
static const char *wanted_names; /* names of the requested columns; NULL: the question has no rows */

/* ---- answers ---- */

struct text {
    char *at, *end;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(t->at, (size_t)(t->end - t->at), format, list);
    va_end(list);
    t->at += n < t->end - t->at ? n : t->end - t->at - 1;
}

static const char *const values[] = {"0",
                                     "1",
                                     "\\N",
                                     "2",
                                     "32",
                                     "128",
                                     "1024",
                                     "2147483647",
                                     "4294967295",
                                     "9223372036854775807",
                                     "18446744073709551615",
                                     "-1",
                                     "-9223372036854775808",
                                     "0.5",
                                     "1.5",
                                     "nan",
                                     "inf",
                                     "1e308",
                                     "",
                                     "text",
                                     "a\\tb\\nc\\\\",
                                     "\\",
                                     "\x1b[31m",
                                     "\xff\xfe",
                                     "[]",
                                     "[1,2,3]",
                                     "[1,[2]]",
                                     "[18446744073709551615]",
                                     "1700000040",
                                     "1700000000000000000",
                                     "20231114_0_0_0",
                                     "00112233445566778899aabbccddeeff",
                                     "NVIDIA H100",
                                     "Alpha"};

static bool is_name(const char *name, size_t n, const char *word)
{
    return n == strlen(word) && strncmp(name, word, n) == 0;
}

/* Writes a valid value for columns that ids are computed from, or any value. */
static void put_value(struct text *t, const char *name, size_t n)
{
    uint8_t choice = fuzz_byte(&input);
    if (choice < 128 && is_name(name, n, "mangled"))
        put(t, "%s", MANGLED);
    else if (choice < 128 && is_name(name, n, "kernel_id"))
        put(t, "%lld", (long long)occ_body_id(MANGLED, strlen(MANGLED)));
    else if (choice < 128 && is_name(name, n, "node"))
        put(t, "node%d", choice % 2);
    else if (choice < 128 && is_name(name, n, "at"))
        put(t, "%d", 1700000040 + choice * 60);
    else
        put(t, "%s", values[choice % (sizeof values / sizeof *values)]);
}

static void put_row(struct text *t, const char *names)
{
    for (const char *name = names; *name;) {
        size_t n = strcspn(name, ",");
        put_value(t, name, n);
        name += n;
        name += *name ? strspn(name, ", ") : 0;
        put(t, "%s", *name ? "\t" : "\n");
    }
}

static void put_rows(struct text *t, const char *names)
{
    for (const char *c = names; *c; c++)
        if (*c != ' ')
            put(t, "%c", *c == ',' ? '\t' : *c);
    put(t, "\n");
    for (size_t rows = fuzz_choice(&input, 6); rows > 0; rows--)
        put_row(t, names);
}

static void put_raw(struct text *t)
{
    for (size_t n = fuzz_byte(&input); n > 0 && t->end - t->at > 1; n--)
        *t->at++ = (char)fuzz_byte(&input);
}

/* ---- HTTP ---- */

struct occ_http {
    struct occ_http_answer *answer;
};

int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err)
{
    static struct occ_http http;
    (void)options;
    (void)err;
    *ret_http = &http;
    return 0;
}

void occ_http_close(struct occ_http *http)
{
    (void)http;
}

int occ_http_set_password(struct occ_http *http, const char *password, struct occ_error *err)
{
    (void)http;
    (void)password;
    (void)err;
    return 0;
}

int occ_http_add(struct occ_http *http, const char *name, const char *value, struct occ_error *err)
{
    (void)http;
    (void)name;
    (void)value;
    (void)err;
    return 0;
}

uint64_t occ_http_sent_bytes(const struct occ_http *http)
{
    (void)http;
    return 0;
}

static void put_answer(struct text *t, uint8_t control)
{
    if (control < 200 && wanted_names)
        put_rows(t, wanted_names);
    else if (control < 210)
        put(t, "1700000040\t24.8.1.1\n");
    else if (control < 220)
        put(t, "Code: %d. DB::Exception: text (NAME)\n", fuzz_byte(&input));
    else if (control < 230)
        put(t, "a\tb c\"\nInt64\tNullable(Float64)\n%d\tnan\n", fuzz_byte(&input));
    else
        put_raw(t);
}

int occ_http_post(struct occ_http *http, const char *data, size_t n, struct occ_http_answer *ret_answer,
                  struct occ_error *err)
{
    (void)http;
    (void)data;
    (void)n;
    uint8_t control = fuzz_byte(&input);
    if (control == 255)
        return occ_fail(err, OCC_E_IO, "no answer");
    free(ret_answer->text); /* a new allocation for each answer, so that the sanitizer sees its end */
    char *text = calloc(1, ANSWER_BYTES);
    if (!text)
        abort();
    struct text t = {text, text + ANSWER_BYTES};
    put_answer(&t, control);
    wanted_names = NULL;
    ret_answer->status = control == 254 ? 500 : 200;
    ret_answer->n = (size_t)(t.at - text);
    ret_answer->allocated = ret_answer->n + 1;
    ret_answer->text = realloc(text, ret_answer->allocated);
    return 0;
}

/* The linker redirects calls of occ_remote_fetch() to this wrapper. */
int __real_occ_remote_fetch(struct occ_warehouse *w, sqlite3 *db, const char *table, const char *names,
                            const char *sql, struct occ_error *err);
int __wrap_occ_remote_fetch(struct occ_warehouse *w, sqlite3 *db, const char *table, const char *names,
                            const char *sql, struct occ_error *err);
int __wrap_occ_remote_fetch(struct occ_warehouse *w, sqlite3 *db, const char *table, const char *names,
                            const char *sql, struct occ_error *err)
{
    wanted_names = names;
    int rc = __real_occ_remote_fetch(w, db, table, names, sql, err);
    wanted_names = NULL;
    return rc;
}

/* ---- questions ---- */

static void ask_store(struct occ_store *store)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_top top;
    struct occ_filter all = {0};
    if (occ_store_top(store, &all, OCC_TOP_BY_KERNEL, &top, &err) == 0)
        occ_top_free(&top);
}

static void ask(struct occ_warehouse *w, uint8_t control)
{
    static const enum occ_top_by by[] = {OCC_TOP_BY_KERNEL,  OCC_TOP_BY_USER, OCC_TOP_BY_JOB,
                                         OCC_TOP_BY_ACCOUNT, OCC_TOP_BY_NODE, OCC_TOP_BY_MINUTE};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_remote_state state = {0};
    struct occ_store *store = NULL;
    const struct occ_remote_question question = {
        .kind = (enum occ_remote_kind)(control % 4),
        .by = by[(control >> 3) % (sizeof by / sizeof *by)],
        .since_ns = INT64_C(1700000000000000000),
        .until_ns = INT64_C(1700007200000000000),
        .histograms = control & 4,
        .job = control & 64 ? "42" : NULL,
        .max_runs = 20,
        .idle_ns = INT64_C(60000000000),
    };
    if (occ_remote_ask(w, &question, &state, &store, &err) != 0)
        return;
    ask_store(store);
    occ_store_close(store);
}

static void run_statement(struct occ_warehouse *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char *select = NULL;
    if (sqlite3_open(":memory:", &db) == SQLITE_OK &&
        occ_remote_select(w, db, "SELECT 1", &select, &err) == 0 &&
        sqlite3_prepare_v2(db, select, -1, &stmt, NULL) == SQLITE_OK)
        while (sqlite3_step(stmt) == SQLITE_ROW)
            for (int i = 0; i < sqlite3_column_count(stmt); i++)
                (void)sqlite3_column_text(stmt, i);
    (void)sqlite3_finalize(stmt);
    sqlite3_free(select);
    (void)sqlite3_close(db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct occ_warehouse_options options = {.http = {.url = "https://host/",
                                                                  .user = "",
                                                                  .password = "",
                                                                  .ca_file = "",
                                                                  .cert_file = "",
                                                                  .key_file = ""},
                                                         .section = "cluster",
                                                         .url_of = "--cluster",
                                                         .database = "occtrace",
                                                         .cluster = "",
                                                         .node = ""};
    struct occ_warehouse *w = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_remote_state state;
    input = (struct fuzz_bytes){data, size};
    uint8_t control = fuzz_byte(&input);
    if (occ_warehouse_open(&options, &w, NULL) != 0)
        abort();
    w->dialect = control & 128 ? OCC_DIALECT_NEW : OCC_DIALECT_OLD;
    w->has_evidence = control & 32;
    w->added =
        control & 16 ? (struct occ_warehouse_added){5, 3, 3, 3} : (struct occ_warehouse_added){1, 0, 2, 3};
    switch (control % 8) {
    case 5:
        run_statement(w);
        break;
    case 6:
        if (occ_warehouse_meet(w, &err) == 0)
            (void)occ_warehouse_check(w, OCC_FOR_QUESTIONS, &err);
        break;
    case 7:
        if (control & 8)
            choose_cluster(w, control & 64 ? "main" : NULL);
        else
            (void)occ_remote_get_state(w, control & 64 ? "main" : NULL, &state, &err);
        break;
    default:
        ask(w, control);
    }
    occ_warehouse_close(w);
    return 0;
}
