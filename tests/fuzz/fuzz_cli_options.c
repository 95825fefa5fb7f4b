/*
 * Fuzzes command lines and names of programs: the parser with every real table, column lists, and JSON and
 * CSV of hostile texts. Input: u8 number of the command, then texts separated by NULs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/occq/commands.h"
#include "cli/occtrace/trace_options.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/values.h"

enum { MAX_ARGUMENTS = 32, MAX_COMMANDS = 64 };

static const struct cli_command *choose(uint8_t number)
{
    const struct cli_command *all[MAX_COMMANDS] = {&cli_occq, &cli_occtrace};
    size_t n = 2;
    for (const struct cli_command *const *c = cli_commands; *c && n < MAX_COMMANDS; c++)
        all[n++] = *c;
    return all[number % n];
}

static void check_parse(const struct cli_command *command, char **argv, int argc)
{
    /* 0: the program parses into a structure of its own */
    size_t bytes = command->args_bytes ? command->args_bytes : sizeof(struct trace_options);
    struct cli_args *args = calloc(1, bytes);
    struct occ_error err = OCC_ERROR_INIT;
    bool failed = cli_parse(command, argv, args, &err) != 0;
    if (failed && (err.code != OCC_E_INVALID || !err.message[0]))
        abort();
    if (!failed && (args->operand_count > argc || args->operands[args->operand_count]))
        abort();
    free(args);
}

static void check_columns(const struct cli_column *columns, const char *list)
{
    struct cli_selection selection = {0};
    struct occ_error err = OCC_ERROR_INIT;
    if (!columns)
        return;
    cli_select(columns, CLI_DEFAULT, 0, &selection);
    if (cli_select_list(columns, list, &selection, &err) == 0 &&
        (selection.n == 0 || selection.n > CLI_MAX_COLUMNS))
        abort();
}

static void check_json(const char *text)
{
    char *out = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&out, &size);
    struct occ_json json;
    cli_json_begin(&json, file);
    occ_json_string(&json, text, text);
    cli_json_end(&json);
    (void)fclose(file);
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)out[i] < 0x20 && out[i] != '\n') || out[i] == 0x7f)
            abort();
    free(out);
}

static void check_texts(const char *text)
{
    char buffer[64];
    struct cli_value value = cli_string(text);
    const char *shown = cli_value_text(&value, CLI_PLAIN, buffer, sizeof buffer);
    for (; *shown; shown++)
        if ((unsigned char)*shown < 0x20 || *shown == 0x7f)
            abort();
    check_json(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[MAX_ARGUMENTS + 1] = {NULL};
    int argc = 0;
    if (size < 2 || size > 4096)
        return 0;
    char *texts = malloc(size);
    memcpy(texts, data + 1, size - 1);
    texts[size - 1] = '\0';
    for (char *at = texts; at < texts + size && argc < MAX_ARGUMENTS; at += strlen(at) + 1)
        argv[argc++] = at;
    const struct cli_command *command = choose(data[0]);
    check_columns(command->columns, argv[0]);
    check_texts(argv[0]);
    check_parse(command, argv, argc);
    free(texts);
    return 0;
}
