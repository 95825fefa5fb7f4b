/* occq doctor --counters: asks a daemon about its hardware counters, and makes it release them for a while
 * (ncu, nsys and, before Hopper, DCGM need exclusive use). The daemon answers over its socket
 * (support/control.h); answers are checked like any other input. One thread. */
#include "doctor.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/daemon.h"
#include "reply.h"
#include "support/cleanup.h"
#include "support/control.h"
#include "support/text.h"

enum { MAX_GPUS = 64 };

#define SECOND_NS        INT64_C(1000000000)
#define PAUSE_DEFAULT_NS (600 * SECOND_NS)

struct sampler_args {
    struct cli_list_args list;
    int64_t duration_ns; /* --for; 0: not given */
    const char *socket;
    int64_t pause_s; /* length of the pause to request; 0: the action is not pause */
    bool counters;   /* --counters, which selects this form of the command */
    enum action { STATUS, PAUSE, RESUME, ACTIONS } action;
};

/* ---- columns ---- */

static const struct cli_column columns[] = {
    REPLY_COLUMN("gpu", "gpu", CLI_PLAIN, CLI_DEFAULT, "the GPU's number in the daemon's driver",
                 reply_get_unsigned),
    REPLY_COLUMN("source", "source", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT,
                 "source of the counters: pm, gpm or none", reply_get_text),
    REPLY_COLUMN("state", "state", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "ok: it samples", reply_get_text),
    REPLY_COLUMN("samples", "samples", CLI_PLAIN, CLI_DEFAULT, "number of samples read", reply_get_unsigned),
    REPLY_COLUMN("bad", "bad_samples", CLI_PLAIN, 0, "number of samples with impossible values, left out",
                 reply_get_unsigned),
    REPLY_COLUMN("overflows", "overflows", CLI_PLAIN, CLI_DEFAULT, "how often the hardware's buffer was full",
                 reply_get_unsigned),
    REPLY_COLUMN("gaps", "gaps", CLI_PLAIN, CLI_DEFAULT, "number of gaps between samples",
                 reply_get_unsigned),
    REPLY_COLUMN("offset", "offset_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE(1),
                 "fitted offset of the launches' clock from the samples'", reply_get_real),
    REPLY_COLUMN("drift", "drift_ppm", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE(1),
                 "drift of that offset, parts per million", reply_get_real),
    REPLY_COLUMN("residual", "residual_ratio", CLI_RATIO, CLI_DEFAULT,
                 "residual: part of the counted warp time that no traced launch explains", reply_get_real),
    REPLY_COLUMN("launches", "launches", CLI_PLAIN, CLI_DEFAULT, "number of launches to measure",
                 reply_get_unsigned),
    REPLY_COLUMN("dropped", "dropped", CLI_PLAIN, CLI_DEFAULT,
                 "launches without a value because a queue was full", reply_get_unsigned),
    REPLY_COLUMN("mode", "mode", CLI_PLAIN, CLI_LEFT, "sources that the daemon may use", reply_get_text),
    REPLY_COLUMN("paused", "paused_s", CLI_PLAIN, 0, "seconds until a requested pause ends",
                 reply_get_unsigned),
    REPLY_COLUMN("uuid", "uuid", CLI_PLAIN, CLI_LEFT, "the GPU's UUID", reply_get_text),
    REPLY_COLUMN("reason", "reason", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS,
                 "why it does not sample, or not from a better source", reply_get_text),
    CLI_COLUMN_END,
};

/* ---- the daemon ---- */

/* Asks for the state of GPU number `gpu`. *ret_gpus: the daemon's number of GPUs. */
static int ask_gpu(int fd, size_t gpu, struct reply *reply, size_t *ret_gpus, struct occ_error *err)
{
    char request[32];
    uint64_t gpus = 0;
    (void)snprintf(request, sizeof request, "sampler %zu", gpu);
    int status = reply_ask(fd, request, reply, err);
    if (status != 0)
        return status;
    if (occ_parse_u64(reply_value(reply, "gpus"), 0, MAX_GPUS, &gpus, err) != 0)
        return occ_error_prefix(err, "the daemon's number of GPUs");
    *ret_gpus = (size_t)gpus;
    return 0;
}

/* ---- actions ---- */

static void note_pause(const struct cli_command *command, const char *how, uint64_t seconds)
{
    char text[32];
    cli_note(command, "paused for %s%s (\"occq doctor --counters resume\" ends it)", how,
             occ_format_duration((int64_t)seconds * SECOND_NS, text, sizeof text));
}

/* Prints a line for each of the daemon's GPUs. *reply is the answer for the last GPU; without GPUs it has the
 * daemon's reason. */
static int print_gpus(int fd, const struct cli_selection *selection, struct reply *reply, size_t *ret_gpus,
                      struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = ask_gpu(fd, 0, reply, ret_gpus, err);
    if (status == 0)
        status = cli_table_new(stdout, "sampler", selection, &table, err);
    for (size_t i = 0; i < *ret_gpus && status == 0; i++) {
        if (i > 0)
            status = ask_gpu(fd, i, reply, ret_gpus, err);
        if (status == 0)
            status = cli_table_add(table, reply, err);
    }
    return status == 0 ? cli_table_finish(table, err) : status;
}

static int show_status(const struct cli_command *command, int fd, const struct cli_selection *selection)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct reply reply;
    size_t gpus = 0;
    uint64_t paused_s = 0;
    if (print_gpus(fd, selection, &reply, &gpus, &err) != 0)
        return cli_failure(command, &err);
    if (occ_parse_u64(reply_value(&reply, "paused_s"), 1, OCC_CONTROL_PAUSE_MAX_S, &paused_s, NULL) == 0)
        note_pause(command, "another ", paused_s);
    if (gpus > 0)
        return CLI_EXIT_OK;
    const char *reason = reply_value(&reply, "reason");
    return cli_nothing(command, reason[0] ? reason : "the daemon sees no GPU");
}

/* Sends a request to pause or to resume. Returns the exit code. */
static int request(const struct cli_command *command, int fd, const struct sampler_args *args)
{
    struct occ_error err = OCC_ERROR_INIT;
    char text[32] = "resume", answer[OCC_CONTROL_BYTES + 1];
    if (args->pause_s > 0)
        (void)snprintf(text, sizeof text, "pause %lld", (long long)args->pause_s);
    if (occ_control_request(fd, text, REPLY_PATIENCE_MS, answer, sizeof answer, &err) != 0)
        return cli_failure(command, &err);
    if (args->pause_s > 0)
        note_pause(command, "", (uint64_t)args->pause_s);
    else
        cli_note(command, "resumed");
    return CLI_EXIT_OK;
}

static const char *const actions[] = {"status", "pause", "resume", NULL};

static int check(void *arguments, struct occ_error *err)
{
    struct sampler_args *args = arguments;
    const struct cli_output *output = &args->list.output;
    const char *name = args->list.common.operand_count ? args->list.common.operands[0] : actions[STATUS];
    enum action action = STATUS;
    while (action < ACTIONS && strcmp(actions[action], name) != 0)
        action++;
    if (action == ACTIONS)
        return cli_fail_unknown("action", "", name, strlen(name), actions, err);
    if (args->duration_ns && action != PAUSE)
        return occ_fail(err, OCC_E_INVALID, "--for is for pause");
    if ((output->json || output->csv || output->columns) && action != STATUS)
        return occ_fail(err, OCC_E_INVALID, "--json, --csv and -o are for status");
    if (action == PAUSE)
        args->pause_s =
            (args->duration_ns ? args->duration_ns + SECOND_NS - 1 : PAUSE_DEFAULT_NS) / SECOND_NS;
    args->action = action;
    return 0;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct sampler_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_closep) int fd = -1;
    if (connect_daemon(args->socket, &fd, &err) != 0)
        return cli_failure(command, &err);
    return args->action == STATUS ? show_status(command, fd, &args->list.selection)
                                  : request(command, fd, args);
}

static const struct cli_option options[] = {
    CLI_OPTION(0, "counters", CLI_FLAG, struct sampler_args, counters, NULL,
               "ask a daemon about its hardware counters"),
    CLI_OPTION(0, "for", CLI_SPAN, struct sampler_args, duration_ns, "DURATION",
               "how long to pause: 90s, 15m, 2h, at most 24h (default 10m)", .min = 1,
               .max = OCC_CONTROL_PAUSE_MAX_S * SECOND_NS),
    OPTION_SOCKET(struct sampler_args),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_doctor_counters = {
    .name = "doctor",
    .form = "--counters",
    .operands = "[status|pause|resume]",
    .max_operands = 1,
    .summary = "state of a daemon's hardware counters; pause and resume",
    .description =
        "Only one tool at a time can use hardware counters. status, the default, prints the source and state "
        "of each GPU's counters; pause makes the daemon release them for a while, after which it "
        "takes them again by itself; resume ends a pause. During a pause launches are recorded, "
        "but not measured.\n\n"
        "Only root and the user whom the daemon runs as may pause and resume.",
    .options = options,
    .columns = columns,
    .examples = {{"occq doctor --counters", "the state of each GPU's counters"},
                 {"occq doctor --counters pause --for 30m", "leave them to ncu"},
                 {"occq doctor --counters resume", "end the pause early"}},
    CLI_ARGS(struct sampler_args, ),
    .check = check,
    .run = run,
};
