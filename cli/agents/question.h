/* An agent's question, as the tools' functions see it. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "document.h"
#include "store/store.h"

/* Values of arguments; NULL, 0 and false: not given, unless the argument has a default. */
struct agent_args {
    const char *run, *label, *kernel, *layer, *unfold, *a, *b, *gpu, *rules, *side, *baseline, *statement;
    int64_t device, depth, offset, max_rows, max_bytes;
    bool operators, force;
};

/* A callback that agent_ask() calls often, from its own thread. It returns true to abandon the question. */
struct agent_watch {
    bool (*stop)(void *context);
    void *context;
};

/* Settings that all questions share. */
struct agent_place {
    const struct cli_args *where; /* the history */
    const char *rules_file;       /* rules of the tool "check"; NULL: none */
    struct agent_watch watch;
};

struct agent_question {
    const struct agent_place *place;
    const struct agent_args *args;
    struct occ_store *store;
    struct occ_filter filter; /* from run, label, kernel, layer and device */
    char device[24];          /* the text of filter.gpu */
};

/* Lets the question's watch stop statements on a store. */
void agent_watch_store(const struct agent_question *question, struct occ_store *store);

/* Fails with the reason why the filter has no launches: no such run, or no match in the run. */
int agent_no_launches(const struct agent_question *question, struct occ_error *err);

/* Writes the members of the answer. The tools' functions have this type. */
typedef int agent_answer(const struct agent_question *question, struct agent_document *document,
                         struct occ_error *err);
agent_answer agent_overview, agent_findings, agent_kernel, agent_layer, agent_diff, agent_elsewhere,
    agent_check, agent_sql;
