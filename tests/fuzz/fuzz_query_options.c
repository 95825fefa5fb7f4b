/* Fuzzes the options of a question to libocctrace-query: any text is refused with a message, or gives
 * arguments that begin with the history and have only options that the library accepts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "query/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const questions[] = {"top", "show", "diff", "sql", "verdict", "hit_rate"};

static void check(const struct query_options *options)
{
    static const char *const refused[] = {"--help",    "--all-users", "--svg",
                                          "--cluster", "--socket",    "--color"};
    bool has_history = false, is_operand = false;
    for (char *const *argument = options->argv; *argument; argument++) {
        is_operand |= strcmp(*argument, "--") == 0;
        has_history |= strcmp(*argument, "--db=h.db") == 0;
        for (size_t i = 0; !is_operand && i < sizeof refused / sizeof *refused; i++)
            if (strncmp(*argument, refused[i], strlen(refused[i])) == 0)
                abort();
    }
    if (!has_history || !is_operand)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct query_options options;
    struct occ_error err = OCC_ERROR_INIT;
    const struct query_question *question =
        size > 0 ? query_find_question(questions[data[0] % (sizeof questions / sizeof *questions)], NULL)
                 : NULL;
    char *text = question ? strndup((const char *)data + 1, size - 1) : NULL;
    if (!text)
        return 0;
    int status = query_options_read(question, text, "h.db", false, &options, &err);
    if (status == 0)
        check(&options);
    else if (!err.message[0])
        abort();
    query_options_free(&options);
    free(text);
    return 0;
}
