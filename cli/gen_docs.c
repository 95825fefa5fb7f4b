/* occ_gen_docs: writes the man pages or the completion files into a directory. A tool of the build; one thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/docs.h"
#include "cli/occq/commands.h"
#include "cli/occtrace/trace_options.h"

typedef void writer(FILE *out, const struct cli_command *command, const struct cli_command *const *commands);

static void write_man(FILE *out, const struct cli_command *command, const struct cli_command *const *commands)
{
    document_man(out, command, commands, OCCTRACE_VERSION);
}

static void write_bash_occtrace(FILE *out, const struct cli_command *command,
                                const struct cli_command *const *none)
{
    (void)none;
    document_bash_occtrace(out, command);
}

static int write_file(const char *directory, const char *name, writer *write,
                      const struct cli_command *command, const struct cli_command *const *commands)
{
    char path[1024];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return 1;
    FILE *out = fopen(path, "w");
    if (!out) {
        (void)fprintf(stderr, "occ_gen_docs: %s: %s\n", path, strerror(errno));
        return 1;
    }
    write(out, command, commands);
    int failed = ferror(out);
    return (fclose(out) != 0) | (failed != 0);
}

static int write_manual(const char *directory)
{
    int failed = write_file(directory, "occtrace.1", write_man, &cli_occtrace, NULL) |
                 write_file(directory, "occq.1", write_man, &cli_occq, cli_commands);
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        char name[64];
        (void)snprintf(name, sizeof name, "occq-%s.1", (*c)->name);
        failed |= write_file(directory, name, write_man, *c, NULL);
    }
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "man") == 0)
        return write_manual(argv[2]);
    if (argc == 3 && strcmp(argv[1], "completion") == 0)
        return write_file(argv[2], "occq", document_bash_occq, &cli_occq, cli_commands) |
               write_file(argv[2], "occtrace", write_bash_occtrace, &cli_occtrace, NULL);
    (void)fputs("Usage: occ_gen_docs man|completion DIRECTORY\n", stderr);
    return 2;
}
