/*
 * The questions of agents. A tool's row has its arguments as a table, from which the JSON Schema, the check
 * of a call and the documentation follow. agent_ask() answers with one JSON document of at most max_bytes.
 *
 * Nothing is written: the history is opened read-only for each question. One thread.
 */
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

enum agent_kind { AGENT_TEXT, AGENT_INTEGER, AGENT_BOOLEAN };
#define AGENT_TEXT_MAX 8192

struct agent_argument {
    const char *name; /* NULL ends a table */
    enum agent_kind kind;
    size_t offset; /* of the value in struct agent_args */
    bool is_required;
    int64_t min, max, otherwise; /* AGENT_INTEGER; `otherwise`: the default */
    const char *help;
};

/* Asked often while an answer is computed, from the thread of agent_ask(). True: the question is to be
 * abandoned. */
struct agent_watch {
    bool (*stop)(void *context);
    void *context;
};

/* The surroundings of all questions. */
struct agent_place {
    const struct cli_args *where; /* the history */
    const char *rules_file;       /* rules of the tool "check"; NULL: none */
    struct agent_watch watch;
};

struct agent_question {
    const struct agent_place *place;
    const struct agent_args *args;
    struct occ_store *store;
    struct occ_filter filter; /* of run, label, kernel, layer and device */
    char device[24];          /* text of the filter */
};

struct agent_tool {
    const char *name, *title, *description;
    const struct agent_argument *arguments;
    int (*answer)(const struct agent_question *question, struct agent_document *document,
                  struct occ_error *err);
};

/* Ends with a row without a name. */
extern const struct agent_tool agent_tools[];
/* NULL: no such tool. */
const struct agent_tool *agent_find_tool(const char *name);

/* Sets the defaults of a tool's arguments. */
void agent_defaults(const struct agent_tool *tool, struct agent_args *args);

/* Answers a question; *ret_text is malloc'ed. A failure's message may quote text of recorded programs. */
int agent_ask(const struct agent_tool *tool, const struct agent_place *place, const struct agent_args *args,
              char **ret_text, struct occ_error *err);
/* Makes the document of a failure, with its message as quoted text. NULL: no memory. */
char *agent_failure(const struct occ_error *err);

/* Lets the question's watch stop statements on a store. */
void agent_watch_store(const struct agent_question *question, struct occ_store *store);

/* ---- the tools ---- */

typedef int agent_answer(const struct agent_question *question, struct agent_document *document,
                         struct occ_error *err);
agent_answer agent_overview, agent_findings, agent_kernel, agent_layer, agent_diff, agent_elsewhere,
    agent_check, agent_sql;

/* Fails if the filter has no launches: names an unknown run, or says that nothing matches. */
int agent_no_launches(const struct agent_question *question, struct occ_error *err);
