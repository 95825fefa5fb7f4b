/* occq doctor: gathers the facts that are in no file, and prints the page. One thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timex.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/screen.h"
#include "cli/usage.h"
#include "doctor.h"
#include "support/cleanup.h"
#include "support/paths.h"
#include "support/text.h"

struct doctor_args {
    struct cli_list_args list;
    const char *root;
};

static const struct cli_column columns[] = {
#define COLUMN(name, flags, help) CLI_FIELD(#name, #name, CLI_PLAIN, flags, struct doctor_line, name, help)
    COLUMN(check, CLI_DEFAULT | CLI_LEFT, "the examined part of the machine"),
    COLUMN(state, CLI_DEFAULT | CLI_LEFT, "ok, note (works, with a limit) or problem"),
    COLUMN(found, CLI_DEFAULT | CLI_LEFT, "the result"),
    COLUMN(meaning, CLI_LEFT, "its meaning"),
    COLUMN(remedy, CLI_LEFT, "the remedy"),
    CLI_COLUMN_END,
};

/* ---- facts ---- */

/* Runs the probe of the machine at `root`. Returns its output in `text`, or "" if it failed. Both paths are
 * passed in the environment, so that the shell does not expand them. */
static const char *run_probe(const char *root, char *text, size_t size)
{
    _cleanup_(occ_freep) char *self = NULL;
    bool set = occ_path_of_self(&self, NULL) == 0 && setenv("OCC_SELF", self, 1) == 0 &&
               setenv("OCC_ROOT", root, 1) == 0;
    FILE *pipe = set ? popen("exec \"$OCC_SELF/occtraced\" --probe \"$OCC_ROOT/\" 2>/dev/null", "re") : NULL;
    text[pipe ? fread(text, 1, size - 1, pipe) : 0] = '\0';
    return pipe && pclose(pipe) == 0 ? text : "";
}

/* Returns the errno of memfd_create(2); 0: success. */
static int try_memfd(void)
{
    _cleanup_(occ_closep) int fd = memfd_create("occq-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd >= 0 ? 0 : errno;
}

static bool is_synchronised(void)
{
    struct timex timex = {.modes = 0};
    return adjtimex(&timex) != TIME_ERROR && !(timex.status & STA_UNSYNC);
}

/* ---- the page ---- */

enum { STATE_WIDTH = 9, INDENT = 23 };

/* Wraps the text below the column FOUND, after `lead`; prints nothing for NULL. */
static void print_below(const char *lead, const char *text)
{
    if (text)
        (void)cli_print_wrapped(stdout, text, printf("%*s%s", INDENT, "", lead), INDENT + (int)strlen(lead));
}

/* Prints "measure occupancy limited, see counters": the worst state of the faults that affect the ability,
 * and the names of the faults with that state. */
static void print_ability(const struct doctor_page *page, enum doctor_ability ability, const char *name)
{
    static const struct {
        const char *word;
        enum cli_tone tone;
    } words[] = {{"yes", CLI_TONE_GOOD}, {"limited", CLI_TONE_NONE}, {"no", CLI_TONE_BAD}};
    enum doctor_state worst = DOCTOR_OK;
    const char *last = NULL;
    for (const struct doctor_line *line = page->lines; line < page->lines + page->n; line++)
        if (line->fault && line->fault->affects & ability && line->fault->state > worst)
            worst = line->fault->state;
    (void)printf("%-*s", INDENT, name);
    cli_put_word(stdout, words[worst].tone, words[worst].word, 0);
    for (const struct doctor_line *line = page->lines; line < page->lines + page->n; line++)
        if (line->fault && line->fault->affects & ability && line->fault->state == worst &&
            !(last && strcmp(line->check, last) == 0)) {
            (void)printf("%s%s", last ? ", " : ", see ", line->check);
            last = line->check;
        }
    (void)putchar('\n');
}

static enum cli_tone tone_of(const char *state)
{
    static const struct {
        const char *state;
        enum cli_tone tone;
    } tones[] = {{"problem", CLI_TONE_BAD}, {"ok", CLI_TONE_GOOD}};
    size_t i = 0;
    while (i < sizeof tones / sizeof *tones && strcmp(tones[i].state, state) != 0)
        i++;
    return i < sizeof tones / sizeof *tones ? tones[i].tone : CLI_TONE_NONE;
}

static void print_page(const struct doctor_page *page)
{
    const char *last = "";
    print_ability(page, DOCTOR_RECORD, "record launches");
    print_ability(page, DOCTOR_MEASURE, "measure occupancy");
    print_ability(page, DOCTOR_KEEP, "keep a history");
    (void)putchar('\n');
    for (const struct doctor_line *line = page->lines; line < page->lines + page->n; line++) {
        cli_put_word(stdout, tone_of(line->state), line->state, STATE_WIDTH);
        (void)printf("%-*s", INDENT - STATE_WIDTH, strcmp(line->check, last) == 0 ? "" : line->check);
        (void)cli_print_wrapped(stdout, line->found, INDENT, INDENT);
        print_below("", line->meaning);
        print_below("-> ", line->remedy);
        last = line->check;
    }
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct doctor_args *args = arguments;
    const struct cli_selection *selection = &args->list.selection;
    static char probe[65536];
    static struct doctor_page page;
    _cleanup_(occ_freep) char *history = NULL;
    _cleanup_(occ_freep) char *socket = NULL;
    _cleanup_(occ_freep) char *directory = NULL;
    _cleanup_(occ_freep) char *settings = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    const char *root = args->root ? args->root : "", *db = args->list.common.db;
    _cleanup_(occ_closep) int at = open(args->root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        (void)occ_fail(&err, OCC_E_INVALID, "--root: %s: %s", root, strerror(errno));
        return cli_usage_error(command, &err);
    }
    if ((!db && occ_path_default_history(&history, &err) != 0) ||
        occ_path_default_socket(&socket, &err) != 0 || occ_path_settings(&directory, &err) != 0 ||
        occ_format_text(&settings, &err, "%s/occtrace.yaml", directory) != 0)
        return cli_failure(command, &err);
    const struct doctor_machine machine = {.root = root,
                                           .probe = run_probe(root, probe, sizeof probe),
                                           .history = db ? db : history,
                                           .settings = settings,
                                           .socket = socket,
                                           .service_socket = OCC_PATH_SYSTEM_SOCKET,
                                           .memfd_errno = try_memfd(),
                                           .clock_synchronised = is_synchronised()};
    doctor_examine(&machine, &page);
    if (selection->format == CLI_FORMAT_TEXT && !args->list.output.columns)
        print_page(&page);
    else if (cli_table_print("doctor", selection, page.lines, page.n, sizeof *page.lines, &err) != 0)
        return cli_failure(command, &err);
    for (size_t i = 0; i < page.n; i++)
        if (page.lines[i].fault && page.lines[i].fault->state == DOCTOR_PROBLEM)
            return CLI_EXIT_FAILURE;
    return CLI_EXIT_OK;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION(0, "root", CLI_TEXT, struct doctor_args, root, "DIR",
               "check the machine with its root directory mounted at DIR (in a pod: the host); history, "
               "environment and daemon are still taken from this process"),
    CLI_OPTIONS_LIST,
};

static const struct cli_form forms[] = {{"counters", NULL, NULL, &cli_doctor_counters},
                                        {"coverage", NULL, NULL, &cli_doctor_coverage},
                                        {.option = NULL}};

const struct cli_command cli_doctor = {
    .name = "doctor",
    .group = "Maintain",
    .forms = forms,
    .summary = "abilities of this machine, problems and remedies",
    .description =
        "Checks the requirements of recording launches, measuring their occupancy and keeping a history: "
        "driver, GPUs "
        "(MIG, MPS, virtual ones), containers, libcupti, privileges for hardware counters, other profilers, "
        "limits, the disk, the daemon with its service and settings, the job that runs belong to, the "
        "clock.\n\n"
        "The first lines name the abilities. Each line below has a state (ok; note: works, with a limit; "
        "problem), the result, its meaning and, after \"->\", the remedy. Lines without anything to "
        "tell are left out. It changes nothing and needs neither privileges nor a GPU.",
    .options = options,
    .columns = columns,
    .examples = {{"occq doctor", "the page"},
                 {"occq doctor --json | jq '.doctor[] | select(.state == \"problem\")'", "for scripts"}},
    CLI_ARGS(struct doctor_args, ),
    .run = run,
};
