/*
 * Answers the questions of agents. Each tool has a table of arguments, the source of its JSON Schema, of the
 * check of a call and of the documentation. agent_ask() answers with one JSON document of at most max_bytes.
 *
 * The history is opened read-only for each question. One thread.
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

/* All tools; the last row has no name. */
extern const struct agent_tool agent_tools[];
/* Returns the tool with this name; NULL: there is none. */
const struct agent_tool *agent_find_tool(const char *name);

/* Sets the defaults of a tool's arguments. */
void agent_defaults(const struct agent_tool *tool, struct agent_args *args);

/* Answers a question; *ret_text is malloc'ed. A failure's message may quote text of recorded programs. */
int agent_ask(const struct agent_tool *tool, const struct agent_place *place, const struct agent_args *args,
              char **ret_text, struct occ_error *err);
/* Makes a document about a failure, with the message as quoted text. The caller frees it. NULL: no memory. */
char *agent_failure(const struct occ_error *err);
