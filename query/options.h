/*
 * Options of a question: a JSON object → arguments of a command. Only options that choose and shape the
 * answer are accepted: no files to write, no other histories, no terminal. One thread.
 */
#pragma once

#include "questions.h"
#include "support/arena.h"

enum { QUERY_OPTIONS_BYTES_MAX = 65536, QUERY_ARGUMENTS_MAX = 64 };

struct query_options {
    const struct cli_command *command;
    char *argv[QUERY_ARGUMENTS_MAX + QUERY_OPERANDS_MAX + 2]; /* NULL-terminated */
    const char *operands[QUERY_OPERANDS_MAX];
    size_t n, width;
    const char *format;
    struct occ_arena texts;
};

/* Reads the options (NULL: none) of a question to `where`, a file, or a warehouse's URL if `is_url`. Free
 * them in any case. */
int query_options_read(const struct query_question *question, const char *json, const char *where,
                       bool is_url, struct query_options *ret_options, struct occ_error *err);
/* Makes the options of the question "sql" to a warehouse. */
int query_options_of_statement(const char *statement, const char *url, struct query_options *ret_options,
                               struct occ_error *err);
void query_options_free(struct query_options *options);
