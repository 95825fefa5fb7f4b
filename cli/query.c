/* What the commands of occq share; see query.h. One thread. */
#include "query.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "occupancy/occupancy.h"
#include "support/cleanup.h"
#include "support/paths.h"
#include "usage.h"

bool cli_start(const struct cli_command *command, char **argv, struct cli_args *args, int *ret_status)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (cli_parse(command, argv, args, &err) != 0) {
        *ret_status = cli_usage_error(command, &err);
        return false;
    }
    if (args->help) {
        cli_print_help(stdout, command, NULL);
        *ret_status = CLI_EXIT_OK;
        return false;
    }
    return true;
}

int cli_output_format(const struct cli_output *output, enum cli_format *ret_format, struct occ_error *err)
{
    if (output->json && output->csv)
        return occ_fail(err, OCC_E_INVALID, "--json and --csv exclude each other");
    *ret_format = output->json ? CLI_FORMAT_JSON : output->csv ? CLI_FORMAT_CSV : CLI_FORMAT_TEXT;
    return 0;
}

int cli_output_choose(const struct cli_output *output, const struct cli_column *table,
                      enum cli_format *ret_format, struct cli_selection *ret_selection, struct occ_error *err)
{
    int status = cli_output_format(output, ret_format, err);
    if (status != 0)
        return status;
    if (*ret_format == CLI_FORMAT_TEXT)
        cli_select(table, CLI_DEFAULT, 0, ret_selection);
    else
        cli_select(table, 0, CLI_TEXT_ONLY, ret_selection);
    return output->columns ? cli_select_list(table, output->columns, ret_selection, err) : 0;
}

int cli_filter_check(const struct cli_filter *filter, struct occ_error *err)
{
    if (filter->since_ns && filter->until_ns && filter->until_ns <= filter->since_ns)
        return occ_fail(err, OCC_E_INVALID, "--until is not after --since");
    return 0;
}

struct occ_filter cli_filter_store(const struct cli_filter *filter)
{
    return (struct occ_filter){
        .since_ns = filter->since_ns,
        .until_ns = filter->until_ns,
        .run = filter->run,
        .device = filter->device,
        .kernel_regex = filter->kernel,
        .below_achieved = filter->below_ratio,
    };
}

int cli_open_history(const struct cli_args *args, struct occ_store **ret_store, struct occ_error *err)
{
    _cleanup_(occ_freep) char *own = NULL;
    struct occ_store_options options = {.mode = OCC_STORE_READ};
    int status = args->db ? 0 : occ_path_default_history(&own, err);
    const char *path = args->db ? args->db : own;
    if (status == 0 && access(path, F_OK) != 0 && errno == ENOENT)
        return occ_fail(err, OCC_E_NOT_FOUND, "there is no history at %s (\"occtrace PROGRAM\" makes one)",
                        path);
    return status == 0 ? occ_store_open(path, &options, ret_store, err) : status;
}

void cli_store_closep(struct occ_store **store)
{
    occ_store_close(*store);
}

void cli_say_timeless(const struct cli_command *command, struct occ_store *store,
                      const struct cli_filter *filter)
{
    uint64_t n = 0;
    if ((filter->since_ns <= 0 && filter->until_ns <= 0) || occ_store_count_timeless(store, &n, NULL) != 0 ||
        n == 0)
        return;
    cli_flush_stdout();
    (void)fprintf(stderr,
                  "%s %s: --since and --until pass over %llu imported run%s: the recordings do not say the "
                  "time of day\n",
                  command->program, command->name, (unsigned long long)n, n == 1 ? "" : "s");
}

int cli_nothing(const struct cli_command *command, const char *what)
{
    cli_flush_stdout();
    (void)fprintf(stderr, "%s %s: %s\n", command->program, command->name, what);
    return CLI_EXIT_NOTHING;
}

void cli_say_simulated(const struct cli_command *command)
{
    cli_flush_stdout();
    (void)fprintf(stderr, "%s %s: some of this comes from a simulated device\n", command->program,
                  command->name);
}

/* A pipe whose reader has gone shows an error condition. */
static bool reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
}

int cli_close_stdout(const char *program, int status)
{
    cli_flush_stdout();
    bool failed = ferror(stdout) != 0 || cli_stdout_errno() != 0;
    int why = cli_stdout_errno();
    bool gone = failed && (why == EPIPE || reader_is_gone());
    errno = 0;
    if (fclose(stdout) != 0 && !failed && errno != EBADF) { /* never open, and nothing was to be printed */
        failed = true;
        why = errno;
    }
    if (!failed)
        return status;
    if (!gone)
        (void)fprintf(stderr, "%s: cannot write the output: %s\n", program,
                      why ? strerror(why) : "write error");
    return CLI_EXIT_FAILURE;
}

/* Words for the bits of enum occ_by_design: for programs, for people. */
static const struct {
    uint32_t bit;
    const char *word, *text;
} designs[] = {
    {OCC_BY_DESIGN_PERSISTENT, "persistent", "persistent grid"},
    {OCC_BY_DESIGN_ONE_BLOCK_SMEM, "one_block_smem", "one block per SM"},
    {OCC_BY_DESIGN_CLUSTER, "cluster", "clusters"},
};

static void append(struct cli_value *value, const char *text, const char *separator)
{
    size_t used = strlen(value->scratch);
    (void)snprintf(value->scratch + used, sizeof value->scratch - used, "%s%s", used ? separator : "", text);
}

void cli_set_notes(struct cli_value *value, bool simulated, uint32_t design)
{
    value->scratch[0] = '\0';
    if (simulated)
        append(value, "simulated", ", ");
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++)
        if (design & designs[i].bit)
            append(value, designs[i].text, ", ");
    cli_set_string(value, value->scratch);
}

void cli_set_design(struct cli_value *value, uint32_t design)
{
    value->scratch[0] = '\0';
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++)
        if (design & designs[i].bit)
            append(value, designs[i].word, "+");
    cli_set_string(value, value->scratch);
}
