/* See questions.h. */
#include "questions.h"

#include <string.h>

#include "verdict.h"

extern const struct cli_command cli_top, cli_show, cli_show_hit_rate, cli_diff, cli_history, cli_launches,
    cli_runs, cli_sql, cli_check;

/* The launch configurations, each with its kernel and device in front of its members. */
#define CONFIG_ROWS                                                                                          \
    "(SELECT rtrim(json_object('kernel_id', json_extract(k.value, '$.kernel_id'), 'kernel', "                \
    "json_extract(k.value, '$.kernel'), "                                                                    \
    "'device_id', json_extract(k.value, '$.device_id')), '}') || ',' || substr(c.value, 2) AS value "        \
    "FROM json_each(?1, '$.kernels') k, json_each(k.value, '$.launch_configs') c)"

#define PAIR_ROWS "json_each(?1, '$.kernels')"

static const struct query_question questions[] = {
    {"top", &cli_top, {NULL}, 0, NULL},
    {"show", &cli_show, {"kernel"}, 1, CONFIG_ROWS},
    {"diff", &cli_diff, {"a", "b"}, 2, PAIR_ROWS},
    {"history", &cli_history, {"kernel"}, 0, NULL},
    {"launches", &cli_launches, {NULL}, 0, NULL},
    {"runs", &cli_runs, {NULL}, 0, NULL},
    {"sql", &cli_sql, {"statement"}, 1, NULL},
    {"hit_rate", &cli_show_hit_rate, {NULL}, 0, NULL},
    {"check", &cli_check, {"side"}, 0, NULL},
    {"verdict", &query_verdict, {NULL}, 0, NULL},
};

/* Commands that are no questions to a history. */
static const struct {
    const char *name, *reason;
} commands[] = {
    {"calc", "needs no history"},         {"doctor", "examines this machine and its daemon"},
    {"live", "watches running programs"}, {"report", "writes a page"},
    {"export", "writes a recording"},     {"import", "changes a history"},
    {"prune", "changes a history"},       {"mcp", "is a server"},
};

const struct query_question *query_find_question(const char *name, struct occ_error *err)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (strcmp(questions[i].name, name) == 0)
            return &questions[i];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0) {
            (void)occ_fail(err, OCC_E_INVALID, "'%s' is no question: it %s; run 'occq %s'", name,
                           commands[i].reason, name);
            return NULL;
        }
    (void)occ_fail(err, OCC_E_INVALID, "unknown question '%.64s'", name);
    return NULL;
}
