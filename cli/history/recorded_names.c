/* See recorded_names.h. */
#include "recorded_names.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/forms.h"
#include "history.h"
#include "settings.h"

/* Names begin with ?1, at most ?2. Columns: the name, and a text about it. */
static const char *const statements[] = {
    [CLI_RECORDED_KERNELS] = "SELECT kernel, NULL FROM kernel WHERE substr(kernel, 1, length(?1)) = ?1 "
                             "GROUP BY kernel ORDER BY max(kernel_id) DESC LIMIT ?2",
    [CLI_RECORDED_LABELS] = "SELECT label, count(*) || iif(count(*) = 1, ' run', ' runs') FROM run WHERE "
                            "substr(label, 1, length(?1)) = ?1 "
                            "GROUP BY label ORDER BY max(run_id) DESC LIMIT ?2",
    [CLI_RECORDED_RUNS] =
        "SELECT CAST(run_id AS TEXT), coalesce(label, program) FROM run "
        "WHERE substr(CAST(run_id AS TEXT), 1, length(?1)) = ?1 ORDER BY run_id DESC LIMIT ?2"};

/* Returns the value of the last --db of `words`; NULL: none. */
static const char *find_db(const struct cli_command *command, char *const *words)
{
    const char *db = NULL;
    for (; *words; words++) {
        size_t length = strncmp(*words, "--", 2) == 0 ? strcspn(*words, "=") : strlen(*words);
        const struct cli_option *option = cli_option_of(command->options, *words, length);
        if (!option || strcmp(option->name, "db") != 0)
            continue;
        db = (*words)[length] == '=' ? *words + length + 1 : words[1] ? words[1] : db;
    }
    return db;
}

/* True if the answer is not of one history on this machine. */
static bool is_elsewhere(const struct cli_command *command, char *const *words)
{
    static const char *const options[] = {"cluster", "node", "all-users"};
    const char *cluster = secure_getenv("OCCTRACE_CLUSTER");
    bool is_given = cluster && cluster[0] && !find_db(command, words);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        is_given = is_given || cli_argv_has(command->options, words, options[i]);
    return is_given;
}

static void list_names(struct occ_store *store, const struct cli_recorded_question *question)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(occ_store_sqlite(store), statements[question->what], -1, &stmt, NULL) ==
            SQLITE_OK &&
        sqlite3_bind_text(stmt, 1, question->begun, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_bind_int(stmt, 2, RECORDED_NAMES_MAX) == SQLITE_OK)
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *name = (const char *)sqlite3_column_text(stmt, 0);
            if (name)
                question->take(question->context, name, (const char *)sqlite3_column_text(stmt, 1));
        }
    (void)sqlite3_finalize(stmt);
}

static void on_alarm(int number)
{
    (void)number;
    _exit(0);
}

void recorded_list(const struct cli_recorded_question *question)
{
    enum { BUSY_MS = 200 };
    static struct occq_settings settings;
    const struct itimerval limit = {.it_value = {RECORDED_TIME_MS / 1000, RECORDED_TIME_MS % 1000 * 1000}};
    struct occ_error err = OCC_ERROR_INIT;
    struct cli_args args = {.busy_timeout_ms = BUSY_MS};
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    if (is_elsewhere(question->command, question->words) || signal(SIGALRM, on_alarm) == SIG_ERR ||
        setitimer(ITIMER_REAL, &limit, NULL) != 0)
        return;
    if (settings_load(&settings, &err) == 0 && settings.history[0] && !secure_getenv("OCCTRACE_DB"))
        args.db = settings.history;
    const char *db = find_db(question->command, question->words);
    args.db = db ? db : args.db;
    if (cli_open_history(&args, OCC_STORE_READ, &store, &err) == 0)
        list_names(store, question);
    (void)setitimer(ITIMER_REAL, &(struct itimerval){.it_interval = {0, 0}}, NULL);
}
