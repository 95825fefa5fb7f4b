/*
 * The questions of agents. A tool's row has its arguments as a table, from which the JSON Schema, the check
 * of a call and the documentation follow. agent_ask() answers with one JSON document of at most max_bytes.
 *
 * Nothing is written: the history is opened read-only for each question. One thread.
 */
#pragma once

#include "question.h"

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

struct agent_tool {
    const char *name, *title, *description;
    const struct agent_argument *arguments;
    agent_answer *answer;
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
