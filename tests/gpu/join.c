/*
 * gpu_report_join ENVIRONMENT RESULTS: prints the report's JSON.
 *
 *   ENVIRONMENT   lines "key TAB value"
 *   RESULTS       lines "id TAB title TAB question TAB outcome TAB seconds TAB file of facts"
 *
 * outcome: ok, skipped, failed or timeout, by scripts/gpu-report. report.h describes facts; other lines are
 * counted and ignored. A verdict needs the outcome ok.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#define FIELDS     6
#define FACTS_MOST 10000

struct experiment {
    char *verdict, *decision, *skipped, *expected;
    unsigned strange; /* lines without a valid fact */
};

static yajl_gen json;

static void put(const char *text)
{
    (void)yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

static void put_pair(const char *key, const char *text)
{
    put(key);
    if (text)
        put(text);
    else
        (void)yajl_gen_null(json);
}

/* Splits the line at tabs; the last field takes the rest. Returns the number of fields. */
static size_t split(char *line, char *fields[FIELDS], size_t most)
{
    size_t n = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at && n < most; n++) {
        fields[n] = at;
        at = n + 1 < most ? strchr(at, '\t') : NULL;
        if (at)
            *at++ = '\0';
    }
    return n;
}

static void put_value(char *fields[FIELDS])
{
    char *end = NULL;
    double number = strtod(fields[2], &end);
    bool good = end != fields[2] && *end == '\0' && number - number == 0;
    put(fields[1]);
    (void)yajl_gen_map_open(json);
    put("value");
    if (good)
        (void)yajl_gen_double(json, number);
    else
        (void)yajl_gen_null(json);
    put_pair("unit", fields[3]);
    (void)yajl_gen_map_close(json);
}

static void keep(char **slot, const char *text)
{
    free(*slot);
    *slot = strdup(text);
}

/* Takes a line of facts; facts for "saw" are written at once. */
static void take_fact(char *line, struct experiment *e)
{
    char *fields[FIELDS];
    size_t n = split(line, fields, 4);
    const struct {
        const char *kind;
        char **slot;
    } texts[] = {{"verdict", &e->verdict},
                 {"decision", &e->decision},
                 {"skipped", &e->skipped},
                 {"expected", &e->expected}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (n == 2 && strcmp(fields[0], texts[i].kind) == 0) {
            keep(texts[i].slot, fields[1]);
            return;
        }
    if (n == 4 && strcmp(fields[0], "value") == 0)
        put_value(fields);
    else if (n == 3 && strcmp(fields[0], "text") == 0)
        put_pair(fields[1], fields[2]);
    else
        e->strange++;
}

static void put_facts(const char *path, struct experiment *e)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    put("saw");
    (void)yajl_gen_map_open(json);
    for (unsigned i = 0; file && i < FACTS_MOST && getline(&line, &room, file) > 0; i++)
        take_fact(line, e);
    (void)yajl_gen_map_close(json);
    free(line);
    if (file)
        (void)fclose(file);
}

static bool is_verdict(const char *word)
{
    return word &&
           (strcmp(word, "confirmed") == 0 || strcmp(word, "refuted") == 0 || strcmp(word, "unclear") == 0);
}

static void put_experiment(char *fields[FIELDS])
{
    struct experiment e = {0};
    const char *outcome = fields[3];
    (void)yajl_gen_map_open(json);
    put_pair("id", fields[0]);
    put_pair("title", fields[1]);
    put_pair("question", fields[2]);
    put("seconds");
    (void)yajl_gen_double(json, strtod(fields[4], NULL));
    put_facts(fields[5], &e);
    put_pair("expected", e.expected);
    bool said = strcmp(outcome, "ok") == 0;
    put_pair("verdict", !said ? outcome : is_verdict(e.verdict) ? e.verdict : "failed");
    put_pair("decision", said ? e.decision : NULL);
    put_pair("reason", e.skipped);
    put("strange_lines");
    (void)yajl_gen_integer(json, e.strange);
    (void)yajl_gen_map_close(json);
    free(e.verdict);
    free(e.decision);
    free(e.skipped);
    free(e.expected);
}

static bool each_line(const char *path, size_t wanted, void (*take)(char *fields[FIELDS]))
{
    char *line = NULL, *fields[FIELDS];
    size_t room = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (getline(&line, &room, file) > 0)
        if (split(line, fields, wanted) == wanted)
            take(fields);
    free(line);
    return fclose(file) == 0;
}

static void put_environment(char *fields[FIELDS])
{
    put_pair(fields[0], fields[1]);
}

int main(int argc, char **argv)
{
    const unsigned char *text;
    size_t n;
    if (argc != 3 || !(json = yajl_gen_alloc(NULL)))
        return 2;
    (void)yajl_gen_config(json, yajl_gen_beautify, 1);
    (void)yajl_gen_map_open(json);
    put("schema");
    (void)yajl_gen_integer(json, 1);
    put("environment");
    (void)yajl_gen_map_open(json);
    bool good = each_line(argv[1], 2, put_environment);
    (void)yajl_gen_map_close(json);
    put("experiments");
    (void)yajl_gen_array_open(json);
    good = each_line(argv[2], FIELDS, put_experiment) && good;
    (void)yajl_gen_array_close(json);
    (void)yajl_gen_map_close(json);
    good = good && yajl_gen_get_buf(json, &text, &n) == yajl_gen_status_ok && fwrite(text, 1, n, stdout) == n;
    yajl_gen_free(json);
    return good && fflush(stdout) == 0 ? 0 : 1;
}
