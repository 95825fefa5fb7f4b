/* occq doctor --coverage: asks a daemon (support/control.h) for the processes on the GPUs, and why each
 * process is recorded or not. One thread. */
#include "doctor.h"

#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/daemon.h"
#include "reply.h"
#include "support/cleanup.h"
#include "support/coverage.h"
#include "support/text.h"

enum { PROCESSES_MAX = 1024, TRIES = 5, WAITS = 100 };
#define WAIT_NS INT64_C(100000000)

struct coverage_args {
    struct cli_list_args list;
    const char *socket;
    bool coverage;
};

/* key: key in the daemon's answer of the GPU time with this reason; remedy "": nothing to repair */
static const struct reason {
    const char *word, *meaning, *remedy, *key;
} reasons[] = {
#define REASON(name, word, meaning, remedy) {word, meaning, remedy, "held_" word},
    OCC_COVERAGE_REASONS(REASON)};

/* A process on one GPU, or the time of other processes with one reason. */
struct line {
    uint32_t pid; /* 0: other processes */
    char program[64], user[64], gpu[96], word[32];
    const char *meaning;   /* NULL: this version does not know the reason */
    const char *remedy;    /* NULL: nothing to repair, or an unknown reason */
    double held_ns, share; /* NAN: NVML does not list the process */
};

struct page {
    size_t n;
    uint64_t scans;                           /* number of the daemon's scan that the lines are from */
    uint64_t dropped;                         /* processes without a line */
    uint64_t refused_gpus;                    /* GPUs for which NVML lists no processes */
    size_t unlisted;                          /* lines of processes that NVML does not list */
    double held_s[OCC_COVERAGE_REASON_COUNT]; /* GPU time by reason, of all processes */
    double total_s;                           /* its sum */
    struct line lines[PROCESSES_MAX + OCC_COVERAGE_REASON_COUNT];
};

/* ---- columns ---- */

static struct cli_value get_pid(const struct cli_column *column, const void *row)
{
    const struct line *line = row;
    (void)column;
    return line->pid ? cli_unsigned(line->pid) : (struct cli_value){.type = CLI_NONE};
}

static const struct cli_column columns[] = {
    {"pid", "pid", CLI_PLAIN, CLI_DEFAULT, "process", get_pid, 0, NULL, NULL},
    CLI_FIELD("program", "program", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, struct line, program,
              "name of the process; (other): processes that have ended or had another reason before, and "
              "processes of other users"),
    CLI_FIELD("user", "user", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, struct line, user, "user of the process"),
    CLI_FIELD("reason", "reason", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, struct line, word,
              "recorded, or why it is not"),
    CLI_FIELD("held", "held_ns", CLI_DURATION, CLI_DEFAULT, struct line, held_ns,
              "GPU time with this reason: the time during which the process holds the GPU, divided by the "
              "number of processes that hold it; none: NVML does not list the process"),
    CLI_FIELD("share", "share_ratio", CLI_RATIO, CLI_DEFAULT, struct line, share,
              "part of the GPU time of all processes"),
    CLI_FIELD("gpu", "gpu", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, struct line, gpu,
              "UUID of the GPU or of its MIG instance"),
    CLI_FIELD("meaning", "meaning", CLI_PLAIN, CLI_LEFT, struct line, meaning, "meaning of the reason"),
    CLI_FIELD("remedy", "remedy", CLI_PLAIN, CLI_LEFT, struct line, remedy, "remedy"),
    CLI_COLUMN_END,
};

/* ---- the daemon ---- */

/* Waits until no scan runs, but for at most WAITS naps, so that the answers are at most as old as the
 * shortest interval of scans. *reply: the answer for the first process, with the totals. */
static int await_scan(int fd, struct reply *reply, struct occ_error *err)
{
    const struct timespec wait = {.tv_nsec = WAIT_NS};
    int status = reply_ask(fd, "coverage 0", reply, err);
    for (int i = 0; status == 0 && i < WAITS && reply_number(reply, "scanning", 1); i++) {
        (void)nanosleep(&wait, NULL);
        status = reply_ask(fd, "coverage 0", reply, err);
    }
    return status;
}

static void take_user(const struct reply *reply, struct line *line)
{
    uint64_t uid = 0;
    if (occ_parse_u64(reply_value(reply, "uid"), 0, UINT32_MAX, &uid, NULL) != 0)
        return;
    const struct passwd *user = getpwuid((uid_t)uid);
    if (user)
        (void)snprintf(line->user, sizeof line->user, "%s", user->pw_name);
    else
        (void)snprintf(line->user, sizeof line->user, "%llu", (unsigned long long)uid);
}

/* Returns the index of the reason with this word; OCC_COVERAGE_REASON_COUNT: unknown, of a newer daemon. */
static size_t find_reason(const char *word)
{
    size_t i = 0;
    while (i < OCC_COVERAGE_REASON_COUNT && strcmp(reasons[i].word, word) != 0)
        i++;
    return i;
}

/* Sets meaning and remedy; an unknown reason has neither. */
static void set_reason(struct line *line, size_t reason)
{
    if (reason == OCC_COVERAGE_REASON_COUNT)
        return;
    line->meaning = reasons[reason].meaning;
    line->remedy = reasons[reason].remedy[0] ? reasons[reason].remedy : NULL;
}

/* Returns `value`; 0 if it is negative or NAN. */
static double positive(double value)
{
    return value > 0 ? value : 0;
}

/* Adds a line for the answer's process, and subtracts its time from others_s. */
static void add_process(struct page *page, const struct reply *reply, double others_s[])
{
    struct line *line = &page->lines[page->n++];
    bool is_listed = reply_value(reply, "gpu")[0] != '\0';
    double held_s = is_listed ? positive(reply_real(reply, "held_s")) : (double)NAN;
    *line = (struct line){.pid = (uint32_t)reply_number(reply, "pid", INT32_MAX), .held_ns = held_s * 1e9};
    page->unlisted += !is_listed;
    (void)snprintf(line->program, sizeof line->program, "%s", reply_value(reply, "program"));
    (void)snprintf(line->gpu, sizeof line->gpu, "%s", reply_value(reply, "gpu"));
    (void)snprintf(line->word, sizeof line->word, "%s", reply_value(reply, "reason"));
    take_user(reply, line);
    size_t reason = find_reason(line->word);
    set_reason(line, reason);
    if (reason < OCC_COVERAGE_REASON_COUNT && is_listed)
        others_s[reason] -= held_s;
}

/* Adds a line for each reason with time that no process of the page has, and sets the shares of all lines. */
static void add_others(struct page *page, const double others_s[])
{
    for (size_t i = 0; i < OCC_COVERAGE_REASON_COUNT; i++) {
        if (others_s[i] <= 1e-6) /* rounding: the answers have 15 digits */
            continue;
        struct line *line = &page->lines[page->n++];
        *line = (struct line){.program = "(other)", .held_ns = others_s[i] * 1e9};
        (void)snprintf(line->word, sizeof line->word, "%s", reasons[i].word);
        set_reason(line, i);
    }
    for (size_t i = 0; i < page->n; i++)
        page->lines[i].share = page->total_s > 0 ? page->lines[i].held_ns / 1e9 / page->total_s : NAN;
}

/* Starts the page with the totals that each answer has. */
static void take_totals(struct page *page, const struct reply *reply)
{
    *page = (struct page){.scans = reply_number(reply, "scans", UINT64_MAX),
                          .dropped = reply_number(reply, "dropped", UINT64_MAX),
                          .refused_gpus = reply_number(reply, "refused_gpus", UINT64_MAX)};
    for (size_t i = 0; i < OCC_COVERAGE_REASON_COUNT; i++) {
        page->held_s[i] = positive(reply_real(reply, reasons[i].key));
        page->total_s += page->held_s[i];
    }
}

/* Reads all processes; *reply has the answer for the first one. OCC_E_BUSY: another scan has ended meanwhile,
 * so that the answers do not belong together. */
static int read_page(int fd, struct reply *reply, struct page *page, struct occ_error *err)
{
    double others_s[OCC_COVERAGE_REASON_COUNT];
    char request[32];
    uint64_t n = reply_number(reply, "processes", PROCESSES_MAX);
    take_totals(page, reply);
    memcpy(others_s, page->held_s, sizeof others_s);
    for (uint64_t i = 0; i < n; i++) {
        (void)snprintf(request, sizeof request, "coverage %llu", (unsigned long long)i);
        int status = i == 0 ? 0 : reply_ask(fd, request, reply, err);
        if (status != 0)
            return status;
        if (reply_number(reply, "scans", UINT64_MAX) != page->scans)
            return occ_fail(err, OCC_E_BUSY, "the processes change too often");
        add_process(page, reply, others_s);
    }
    add_others(page, others_s);
    return 0;
}

/* ---- output ---- */

/* Prints the meanings and remedies of the page's reasons, except "recorded", below the table. */
static void print_reasons(const struct cli_selection *selection, const struct page *page)
{
    bool is_used[OCC_COVERAGE_REASON_COUNT] = {false};
    char text[512];
    for (size_t i = 0; i < page->n; i++) {
        size_t reason = find_reason(page->lines[i].word);
        if (reason < OCC_COVERAGE_REASON_COUNT)
            is_used[reason] = true;
    }
    for (size_t i = OCC_COVERAGE_RECORDED + 1; i < OCC_COVERAGE_REASON_COUNT; i++) {
        (void)snprintf(text, sizeof text, "%s: %s%s%s", reasons[i].word, reasons[i].meaning,
                       reasons[i].remedy[0] ? " -> " : "", reasons[i].remedy);
        if (is_used[i])
            cli_put_below(selection, text);
    }
}

static void print_notes(const struct cli_command *command, const struct cli_selection *selection,
                        const struct page *page)
{
    char held[32], total[32], share[32];
    double recorded_s = page->held_s[OCC_COVERAGE_RECORDED];
    if (page->total_s > 0)
        cli_footer(command, selection, "%s%s of the GPU time is recorded: %s of %s",
                   page->unlisted > 0 ? "at least " : "",
                   cli_percent_text(recorded_s / page->total_s, share, sizeof share),
                   occ_format_duration((int64_t)(recorded_s * 1e9), held, sizeof held),
                   occ_format_duration((int64_t)(page->total_s * 1e9), total, sizeof total));
    else if (page->unlisted < page->n)
        cli_footer(command, selection, "no GPU time yet: it adds up between scans; ask again after 10 s");
    if (page->unlisted)
        cli_note(command,
                 "the GPU time is unknown: NVML does not list %zu program%s that launch%s kernels, as on a "
                 "simulated GPU or in a container without the host's pids",
                 page->unlisted, page->unlisted == 1 ? "" : "s", page->unlisted == 1 ? "es" : "");
    if (page->dropped)
        cli_note(command, "%llu more processes have no line", (unsigned long long)page->dropped);
    if (page->refused_gpus)
        cli_note(command, "NVML refuses the processes of %llu GPUs or instances",
                 (unsigned long long)page->refused_gpus);
}

static int print_page(const struct cli_command *command, const struct cli_selection *selection,
                      const struct page *page)
{
    struct occ_error err = OCC_ERROR_INIT;
    const char *nothing = page->refused_gpus > 0
                              ? "coverage is unknown: NVML refuses to list the processes of GPUs"
                              : "no process computes on a GPU, among the processes that you may see";
    if (page->n == 0 && selection->format == CLI_FORMAT_TEXT)
        return cli_nothing(command, nothing);
    if (cli_table_print("coverage", selection, page->lines, page->n, sizeof *page->lines, &err) != 0)
        return cli_failure(command, &err);
    if (selection->format == CLI_FORMAT_TEXT)
        print_reasons(selection, page);
    print_notes(command, selection, page);
    return page->n > 0 ? CLI_EXIT_OK : CLI_EXIT_NOTHING;
}

/* Returns 0 if the daemon has a table of the processes; else fails. */
static int check_state(const struct reply *reply, struct occ_error *err)
{
    const char *state = reply_value(reply, "state");
    if (strcmp(state, "ok") == 0)
        return 0;
    if (strcmp(state, "failed") == 0)
        return occ_fail(err, OCC_E_IO, "the daemon cannot list the processes of the GPUs: %s",
                        reply_value(reply, "problem"));
    if (strcmp(state, "off") == 0)
        return occ_fail(err, OCC_E_NOT_FOUND,
                        "coverage is switched off (coverage.mode), or the daemon is private");
    return occ_fail(err, OCC_E_BUSY, "the daemon still waits for the list of processes");
}

static int run(const struct cli_command *command, const void *arguments)
{
    static struct page page;
    const struct coverage_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    struct reply reply;
    _cleanup_(occ_closep) int fd = -1;
    int status = connect_daemon(args->socket, &fd, &err);
    for (int i = 0; status == 0 && i < TRIES; i++) {
        status = await_scan(fd, &reply, &err);
        if (status == 0)
            status = check_state(&reply, &err);
        if (status == 0)
            status = read_page(fd, &reply, &page, &err);
        if (status != OCC_E_BUSY)
            break;
        status = i + 1 < TRIES ? 0 : status;
    }
    return status == 0 ? print_page(command, &args->list.selection, &page) : cli_failure(command, &err);
}

static const struct cli_option options[] = {
    CLI_OPTION(0, "coverage", CLI_FLAG, struct coverage_args, coverage, NULL,
               "ask a daemon which share of GPU time is recorded"),
    OPTION_SOCKET(struct coverage_args),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_doctor_coverage = {
    .name = "doctor",
    .form = "--coverage",
    .summary = "which share of GPU time is recorded, and why the rest is not",
    .description =
        "The daemon compares the processes that compute on GPUs, by NVML, with the programs that report to "
        "it, and reads from /proc why a process does not report. A process on two GPUs has two lines.\n\n"
        "GPU time is the time during which processes hold a GPU, divided equally between them; a process "
        "that holds a GPU and launches nothing counts like a busy one. It adds up while Prometheus or this "
        "command asks at least every five minutes.\n\n"
        "Root and the daemon's user see all processes, other users the processes of their own uid. The "
        "reasons for other users' processes need a daemon with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH; "
        "otherwise the reasons are unknown.",
    .options = options,
    .columns = columns,
    .examples = {{"occq doctor --coverage", "the processes on the GPUs"},
                 {"occq doctor --coverage --json | jq '.coverage[] | select(.reason != \"recorded\")'",
                  "for scripts"}},
    CLI_ARGS(struct coverage_args, ),
    .run = run,
};
