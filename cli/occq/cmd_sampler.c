/*
 * occq sampler: asks a daemon about its hardware counters, and has it give them back for a while (ncu, nsys and before
 * Hopper DCGM need them for themselves). Talks over the daemon's socket (support/control.h); what comes from there is
 * checked like any other input. One thread.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/query.h"
#include "support/cleanup.h"
#include "support/control.h"
#include "support/paths.h"
#include "support/text.h"
#include "cli/usage.h"

enum { PATIENCE_MS = 5000, MOST_GPUS = 64, VALUE_BYTES = 256 };

#define PAUSE_DEFAULT_S INT64_C(600)
#define SECOND_NS       INT64_C(1000000000)

struct sampler_args {
    struct cli_args common;
    struct cli_output output;
    const char *duration, *socket;
};

/* Keys of the daemon's answer. */
#define FIELDS(X)                                                                                            \
    X(mode)                                                                                                  \
    X(paused_s)                                                                                              \
    X(gpus)                                                                                                  \
    X(gpu)                                                                                                   \
    X(uuid)                                                                                                  \
    X(source)                                                                                                \
    X(state)                                                                                                 \
    X(reason)                                                                                                \
    X(samples)                                                                                               \
    X(bad_samples)                                                                                           \
    X(overflows)                                                                                             \
    X(gaps)                                                                                                  \
    X(offset_ns)                                                                                             \
    X(drift_ppm)                                                                                             \
    X(residual_ratio)                                                                                        \
    X(launches)                                                                                              \
    X(dropped)

enum field {
#define X(name) FIELD_##name,
    FIELDS(X)
#undef X
        FIELD_COUNT
};

static const char *const keys[] = {
#define X(name) #name,
    FIELDS(X)
#undef X
};

/* An answer's values, "" where it has none. */
struct reply {
    char value[FIELD_COUNT][VALUE_BYTES];
};

/* ---- columns ---- */

static void get_text(const struct cli_column *column, const void *row, struct cli_value *value)
{
    const char *text = ((const struct reply *)row)->value[column->index];
    cli_set_string(value, text[0] ? text : NULL);
}

static void get_unsigned(const struct cli_column *column, const void *row, struct cli_value *value)
{
    uint64_t number = 0;
    if (occ_parse_u64(((const struct reply *)row)->value[column->index], 0, UINT64_MAX, &number, NULL) == 0)
        cli_set_unsigned(value, number);
}

static void get_real(const struct cli_column *column, const void *row, struct cli_value *value)
{
    double number = 0;
    if (occ_parse_double(((const struct reply *)row)->value[column->index], -1e18, 1e18, &number, NULL) == 0)
        cli_set_real(value, number);
}

static const struct cli_column columns[] = {
    {"gpu", "gpu", CLI_PLAIN, CLI_DEFAULT, "the GPU, as the daemon's driver counts", get_unsigned, FIELD_gpu},
    {"source", "source", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "where counters come from: pm, gpm or none",
     get_text, FIELD_source},
    {"state", "state", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "ok: it samples", get_text, FIELD_state},
    {"samples", "samples", CLI_PLAIN, CLI_DEFAULT, "samples that were read", get_unsigned, FIELD_samples},
    {"bad", "bad_samples", CLI_PLAIN, 0, "samples that made no sense and were left out", get_unsigned,
     FIELD_bad_samples},
    {"overflows", "overflows", CLI_PLAIN, CLI_DEFAULT, "times that the hardware's buffer was full",
     get_unsigned, FIELD_overflows},
    {"gaps", "gaps", CLI_PLAIN, CLI_DEFAULT, "times that no sample covers", get_unsigned, FIELD_gaps},
    {"offset", "offset_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE,
     "fitted distance of the kernels' clock to the samples'", get_real, FIELD_offset_ns},
    {"drift", "drift_ppm", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE, "how that changes, parts per million",
     get_real, FIELD_drift_ppm},
    {"residual", "residual_ratio", CLI_RATIO, CLI_DEFAULT,
     "part of what counters saw that no traced launch explains", get_real, FIELD_residual_ratio},
    {"launches", "launches", CLI_PLAIN, CLI_DEFAULT, "launches that were to be measured", get_unsigned,
     FIELD_launches},
    {"dropped", "dropped", CLI_PLAIN, CLI_DEFAULT, "launches that did not fit and have no measured value",
     get_unsigned, FIELD_dropped},
    {"mode", "mode", CLI_PLAIN, CLI_LEFT, "which sources the daemon may use", get_text, FIELD_mode},
    {"paused", "paused_s", CLI_PLAIN, 0, "seconds for which it is paused by request", get_unsigned,
     FIELD_paused_s},
    {"uuid", "uuid", CLI_PLAIN, CLI_LEFT, "the GPU's UUID", get_text, FIELD_uuid},
    {"reason", "reason", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS,
     "why it does not sample, or with no better source", get_text, FIELD_reason},
    {NULL, NULL, CLI_PLAIN, 0, NULL, NULL, 0},
};

/* ---- the daemon ---- */

/* The user's own daemon, else the system's service. */
static int connect_daemon(const struct sampler_args *args, int *ret_fd, struct occ_error *err)
{
    _cleanup_(occ_freep) char *own = NULL;
    if (args->socket)
        return occ_control_connect(args->socket, ret_fd, err);
    int status = occ_path_default_socket(&own, err);
    if (status == 0)
        status = occ_control_connect(own, ret_fd, err);
    if (status == OCC_E_NOT_FOUND && occ_control_connect(OCC_PATH_SYSTEM_SOCKET, ret_fd, NULL) == 0)
        return 0;
    return status;
}

/* "key value" lines; keys of a newer daemon are passed over. */
static void read_reply(const char *answer, struct reply *reply)
{
    *reply = (struct reply){0};
    for (const char *line = answer; *line;) {
        size_t end = strcspn(line, "\n"), key = strcspn(line, " \n");
        for (int i = 0; i < FIELD_COUNT; i++)
            if (key < end && strlen(keys[i]) == key && strncmp(line, keys[i], key) == 0)
                (void)snprintf(reply->value[i], VALUE_BYTES, "%.*s", (int)(end - key - 1), line + key + 1);
        line += end + (line[end] == '\n');
    }
}

static int ask_gpu(int fd, size_t gpu, struct reply *reply, size_t *ret_gpus, struct occ_error *err)
{
    char request[32], answer[OCC_CONTROL_BYTES + 1];
    uint64_t gpus = 0;
    (void)snprintf(request, sizeof request, "sampler %zu", gpu);
    int status = occ_control_request(fd, request, PATIENCE_MS, answer, sizeof answer, err);
    if (status != 0)
        return status;
    read_reply(answer, reply);
    status = occ_parse_u64(reply->value[FIELD_gpus], 0, MOST_GPUS, &gpus, err);
    if (status != 0)
        return occ_error_prefix(err, "the daemon's number of GPUs");
    *ret_gpus = (size_t)gpus;
    return 0;
}

/* ---- actions ---- */

/* Where no daemon was named, a daemon that samples is what is missing. */
static int fail_unconnected(const struct cli_command *command, const struct sampler_args *args,
                            const struct occ_error *err)
{
    struct occ_error longer = *err;
    if (err->code == OCC_E_NOT_FOUND && !args->socket)
        (void)occ_fail(&longer, err->code, "%s (\"occtraced --counters auto\" starts one)", err->message);
    return cli_failure(command, &longer);
}

static void say_paused(const struct cli_command *command, const struct reply *reply)
{
    uint64_t seconds = 0;
    char text[32];
    if (occ_parse_u64(reply->value[FIELD_paused_s], 1, OCC_CONTROL_PAUSE_MOST_S, &seconds, NULL) != 0)
        return;
    cli_flush_stdout();
    (void)fprintf(stderr, "%s %s: paused for another %s (\"occq sampler resume\" ends it)\n",
                  command->program, command->name,
                  occ_format_duration((int64_t)seconds * SECOND_NS, text, sizeof text));
}

static int print_gpus(int fd, const struct sampler_args *args, struct reply *reply, size_t *ret_gpus,
                      struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    struct cli_selection selection;
    enum cli_format format;
    int status = cli_output_choose(&args->output, columns, &format, &selection, err);
    if (status == 0)
        status = ask_gpu(fd, 0, reply, ret_gpus, err);
    if (status == 0)
        status = cli_table_new(format, stdout, "sampler", &selection, &table, err);
    for (size_t i = 0; i < *ret_gpus && status == 0; i++) {
        if (i > 0)
            status = ask_gpu(fd, i, reply, ret_gpus, err);
        if (status == 0)
            status = cli_table_add(table, reply, err);
    }
    return status == 0 ? cli_table_finish(table, err) : status;
}

static int show_status(const struct cli_command *command, int fd, const struct sampler_args *args)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct reply reply;
    size_t gpus = 0;
    char why[VALUE_BYTES];
    if (print_gpus(fd, args, &reply, &gpus, &err) != 0)
        return cli_failure(command, &err);
    say_paused(command, &reply);
    if (gpus > 0)
        return CLI_EXIT_OK;
    (void)snprintf(why, sizeof why, "%s", reply.value[FIELD_reason]);
    occ_text_sanitise(why);
    return cli_nothing(command, why[0] ? why : "the daemon sees no GPU");
}

static int tell(const struct cli_command *command, int fd, const char *request)
{
    struct occ_error err = OCC_ERROR_INIT;
    char answer[OCC_CONTROL_BYTES + 1];
    if (occ_control_request(fd, request, PATIENCE_MS, answer, sizeof answer, &err) != 0)
        return cli_failure(command, &err);
    return CLI_EXIT_OK;
}

/* Whole seconds, rounded up. */
static int parse_pause(const struct sampler_args *args, int64_t *ret_seconds, struct occ_error *err)
{
    int64_t ns = PAUSE_DEFAULT_S * SECOND_NS;
    if (args->duration && occ_parse_duration_ns(args->duration, &ns, err) != 0)
        return occ_error_prefix(err, "--for");
    if (ns > OCC_CONTROL_PAUSE_MOST_S * SECOND_NS)
        return occ_fail(err, OCC_E_INVALID, "--for: '%.64s' is out of range (at most 24h)", args->duration);
    *ret_seconds = (ns + SECOND_NS - 1) / SECOND_NS;
    return 0;
}

static int pause_for(const struct cli_command *command, int fd, const struct sampler_args *args)
{
    char request[32];
    int64_t seconds = PAUSE_DEFAULT_S;
    struct occ_error err = OCC_ERROR_INIT;
    if (parse_pause(args, &seconds, &err) != 0) /* which check_args() would have said */
        return cli_failure(command, &err);
    (void)snprintf(request, sizeof request, "pause %lld", (long long)seconds);
    return tell(command, fd, request);
}

static int resume(const struct cli_command *command, int fd, const struct sampler_args *args)
{
    (void)args;
    return tell(command, fd, "resume");
}

static const struct action {
    const char *word;
    bool prints, lasts; /* takes options about output; about time */
    int (*act)(const struct cli_command *command, int fd, const struct sampler_args *args);
} actions[] = {
    {"status", true, false, show_status},
    {"pause", false, true, pause_for},
    {"resume", false, false, resume},
};
#define ACTIONS (sizeof actions / sizeof *actions)

static int find_action(const char *word, const struct action **ret_action, struct occ_error *err)
{
    const char *words[ACTIONS + 1] = {0};
    for (size_t i = 0; i < ACTIONS; i++) {
        words[i] = actions[i].word;
        if (strcmp(actions[i].word, word) == 0) {
            *ret_action = &actions[i];
            return 0;
        }
    }
    const char *nearest = occ_text_nearest(word, words);
    (void)occ_fail(err, OCC_E_INVALID, "'%.64s' is none of status, pause, resume%s%s%s", word,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    occ_text_sanitise(err->message);
    return OCC_E_INVALID;
}

static int check_args(const struct sampler_args *args, const struct action *action, struct occ_error *err)
{
    struct cli_selection selection;
    enum cli_format format;
    int64_t seconds;
    bool has_output = args->output.json || args->output.csv || args->output.columns;
    if (args->duration && !action->lasts)
        return occ_fail(err, OCC_E_INVALID, "--for is for pause");
    if (has_output && !action->prints)
        return occ_fail(err, OCC_E_INVALID, "--json, --csv and -o are for status");
    int status = cli_output_choose(&args->output, columns, &format, &selection, err);
    if (status == 0)
        status = parse_pause(args, &seconds, err);
    if (status != 0)
        occ_text_sanitise(err->message);
    return status;
}

static int run(const struct cli_command *command, char **argv)
{
    struct sampler_args args = {0};
    struct occ_error err = OCC_ERROR_INIT;
    const struct action *action = NULL;
    _cleanup_(occ_closep) int fd = -1;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (find_action(args.common.operands[0], &action, &err) != 0 || check_args(&args, action, &err) != 0)
        return cli_usage_error(command, &err);
    if (connect_daemon(&args, &fd, &err) != 0)
        return fail_unconnected(command, &args, &err);
    return action->act(command, fd, &args);
}

static const struct cli_option options[] = {
    {0, "for", CLI_TEXT, offsetof(struct sampler_args, duration), "DURATION",
     "how long to pause: 90s, 15m, 2h, at most 24h (default 10m)", NULL, NULL, 0, 0},
    {0, "socket", CLI_TEXT, offsetof(struct sampler_args, socket), "PATH",
     "the daemon that listens there (default: the user's own, else the system's service)", NULL, NULL, 0, 0},
    CLI_OPTION_COLUMNS(struct sampler_args),
    CLI_OPTION_JSON(struct sampler_args),
    CLI_OPTION_CSV(struct sampler_args),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq sampler status", "what each GPU's counters do"},
    {"occq sampler pause --for 30m", "let ncu have them"},
    {"occq sampler resume", "go on before the half hour is over"},
    {NULL, NULL},
};

const struct cli_command cli_sampler = {
    .program = "occq",
    .name = "sampler",
    .operands = "status|pause|resume",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "a daemon's hardware counters: how they do, pause, resume",
    .description =
        "Hardware counters can be used by one tool at a time. status shows for each GPU where the daemon has "
        "counters from and how that goes; pause has it give them back for a while, after which it takes them "
        "again by itself; resume ends a pause. Launches are recorded meanwhile, but not measured.\n\n"
        "pause and resume are for root and the user whom the daemon runs as.",
    .options = options,
    .columns = columns,
    .examples = examples,
    .run = run,
};
