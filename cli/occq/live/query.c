/* See query.h. A source has one thread. The source's lock protects requests and answers, the reader's lock
 * its store. */
#include "query.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "cli/history/names.h"
#include "cli/history/sql_table.h"
#include "support/clock.h"
#include "use.h"

/* ---- the history ---- */

void live_reader_init(struct live_reader *reader, const struct history_args *args)
{
    *reader = (struct live_reader){.args = args};
    (void)pthread_mutex_init(&reader->lock, NULL);
}

static void set_store(struct live_reader *reader, struct occ_store *store)
{
    (void)pthread_mutex_lock(&reader->lock);
    reader->store = store;
    (void)pthread_mutex_unlock(&reader->lock);
}

static void close_history(struct live_reader *reader)
{
    struct occ_store *store = reader->store;
    (void)sqlite3_finalize(reader->runs);
    reader->runs = NULL;
    set_store(reader, NULL);
    occ_store_close(store);
    kernel_names_free(reader->names);
    reader->names = NULL;
}

void live_reader_release(struct live_reader *reader)
{
    close_history(reader);
    (void)pthread_mutex_destroy(&reader->lock);
}

static int64_t number(struct live_reader *reader, const char *sql)
{
    return sql_number(occ_store_sqlite(reader->store), sql);
}

static const char version_sql[] = "PRAGMA user_version";

/* Opens the history again after an upgrade, since opening checks for versions that need a newer reader. */
static int open_history(struct live_reader *reader, struct occ_error *err)
{
    struct occ_store *store = NULL;
    if (reader->store &&
        (occ_store_reopen_reason(reader->store) || number(reader, version_sql) != reader->version))
        close_history(reader);
    if (reader->store)
        return 0;
    int status = cli_open_history(&reader->args->list.common, OCC_STORE_READ, &store, err);
    if (status != 0)
        return status;
    set_store(reader, store);
    reader->version = number(reader, version_sql);
    return 0;
}

/* Loads the names again if there is a new kernel; kernels are never renamed. */
static int load_names(struct live_reader *reader, struct occ_error *err)
{
    int64_t newest = number(reader, "SELECT max(kernel_id) FROM kernel");
    if (reader->names && newest == reader->newest_kernel)
        return 0;
    kernel_names_free(reader->names);
    reader->names = NULL;
    reader->newest_kernel = newest;
    return kernel_names_load(reader->store, reader->args->name, &reader->names, err);
}

static int name_kernels(struct live_reader *reader, struct live_sample *sample, struct occ_error *err)
{
    int status = load_names(reader, err);
    for (size_t i = 0; status == 0 && i < sample->kernels.n; i++) {
        struct occ_row_kernel *kernel = &sample->kernels.rows[i].kernel;
        kernel_names_apply(reader->names, kernel);
        kernel->short_name = occ_arena_copy(&sample->names, kernel->short_name);
        kernel->words = kernel->words ? occ_arena_copy(&sample->names, kernel->words) : NULL;
    }
    return sample->names.failed ? occ_no_memory(err) : status;
}

/* ---- runs ---- */

#define OF_RUNS(expression) "sum(" expression ") FILTER (WHERE end_ns IS NULL AND source = 'trace')"
#define COLUMN(key, sql)    SQL_COLUMN(key, key, CLI_PLAIN, 0, sql, "")
static const struct cli_column run_columns[] = {
    COLUMN("newest_start_ns", "max(last_start_ns) FILTER (WHERE time_base = 'epoch')"),
    COLUMN("behind_ns", "min(coalesce(last_start_ns, start_ns)) FILTER (WHERE end_ns IS NULL AND "
                        "source = 'trace')"),
    COLUMN("runs", OF_RUNS("1")),
    COLUMN("lost", OF_RUNS("lost")),
    COLUMN("helper_cpu_ns", OF_RUNS("helper_cpu_ns")),
    COLUMN("process_cpu_ns", OF_RUNS("process_cpu_ns")),
    CLI_COLUMN_END,
};

static int ask_runs(struct live_reader *reader, struct live_sample *sample, struct occ_error *err)
{
    const struct sql_list list = {.name = "runs",
                                  .table = run_columns,
                                  .from = "run",
                                  .order = "1",
                                  .filter = &reader->args->filter,
                                  .number = 1};
    int status = reader->runs ? 0 : sql_prepare_list(reader->store, &list, &reader->runs, err);
    if (status != 0)
        return status;
    if (sqlite3_step(reader->runs) == SQLITE_ROW) {
        sample->newest_ns = sqlite3_column_int64(reader->runs, 0);
        sample->complete_ns = live_complete_ns(sample, sqlite3_column_int64(reader->runs, 1));
        sample->runs = sqlite3_column_int64(reader->runs, 2);
        sample->lost = sqlite3_column_int64(reader->runs, 3);
        sample->overhead = sqlite3_column_double(reader->runs, 4) / sqlite3_column_double(reader->runs, 5);
    }
    if (sqlite3_reset(reader->runs) != SQLITE_OK)
        status = occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(occ_store_sqlite(reader->store)));
    return status;
}

/* Returns the run of the filter if it does not exist, else 0. */
static int64_t missing_run(struct live_reader *reader)
{
    int64_t run = reader->args->filter.run;
    char sql[80];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM run WHERE run_id = %" PRId64, run);
    return run > 0 && number(reader, sql) == 0 ? run : 0;
}

/* ---- a sample ---- */

/* Sets the filter's time to the window. If the clock was set back while programs run, accepts launches up to
 * one window in the future, but not all later launches. */
static void set_period(const struct live_sample *sample, struct occ_filter *filter)
{
    filter->since_ns = sample->complete_ns - sample->window_ns;
    filter->until_ns =
        sample->newest_ns > sample->at_ns ? sample->at_ns + sample->window_ns : sample->complete_ns + 1;
}

/* Queries a sample. */
static int ask(struct live_reader *reader, struct live_sample *sample, struct occ_error *err)
{
    static const enum occ_top_by by[] = {OCC_TOP_BY_KERNEL, OCC_TOP_BY_GPU, OCC_TOP_BY_CAUSE};
    enum { N = sizeof by / sizeof *by };
    struct occ_top tops[N] = {0};
    struct occ_filter filter = reader->args->filter;
    int status = open_history(reader, err);
    if (status == 0)
        live_ask_daemon(cli_history_path(reader->store), sample->daemon);
    if (status == 0)
        status = ask_runs(reader, sample, err);
    set_period(sample, &filter);
    if (status == 0)
        status = occ_store_tops(reader->store, &filter, by, N, tops, err);
    sample->kernels = tops[0];
    sample->gpus = tops[1];
    sample->causes = tops[2];
    if (status == 0)
        status = live_ask_use(reader->store, &filter, sample, err);
    if (status == 0)
        status = name_kernels(reader, sample, err);
    if (status == 0 && sample->kernels.n == 0)
        sample->missing_run = missing_run(reader);
    return status;
}

static int by_number(const void *left, const void *right)
{
    const struct occ_top_row *a = left, *b = right;
    return (a->kernel.id > b->kernel.id) - (a->kernel.id < b->kernel.id);
}

/* Sorts the sample in this thread, so that the terminal's thread answers keys. */
static int arrange(struct live_sample *sample, struct occ_error *err)
{
    top_sort(&sample->kernels, "waste");
    top_sort(&sample->causes, "waste");
    if (sample->gpus.n)
        qsort(sample->gpus.rows, sample->gpus.n, sizeof *sample->gpus.rows, by_number);
    sample->lines = top_make_lines(&sample->kernels, sample->kernels.n, NULL, &sample->sums);
    if (!sample->lines)
        return occ_no_memory(err);
    live_set_shares(sample);
    return 0;
}

struct live_sample *live_read(struct live_reader *reader, int64_t window_ns)
{
    struct live_sample *sample = calloc(1, sizeof *sample);
    int64_t cpu_ns = occ_clock_of(CLOCK_THREAD_CPUTIME_ID);
    if (!sample)
        return NULL;
    sample->at_ns = occ_now_ns();
    sample->window_ns = window_ns;
    sample->overhead = NAN;
    if (ask(reader, sample, &sample->err) != 0 || arrange(sample, &sample->err) != 0) {
        close_history(reader);
        sample->kernels.n = sample->gpus.n = sample->causes.n = 0;
    }
    sample->cpu_ns = occ_clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    return sample;
}

/* ---- the thread ---- */

struct live_source {
    struct live_reader reader;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool asked, stops, stopped;
    int64_t window_ns;
    struct live_sample *answer;
    int ready_fd;
};

static void *work(void *argument)
{
    struct live_source *source = argument;
    (void)pthread_mutex_lock(&source->lock);
    while (!source->stops) {
        if (!source->asked) {
            (void)pthread_cond_wait(&source->wake, &source->lock);
            continue;
        }
        int64_t window_ns = source->window_ns;
        (void)pthread_mutex_unlock(&source->lock);
        struct live_sample *sample = live_read(&source->reader, window_ns);
        (void)pthread_mutex_lock(&source->lock);
        live_sample_free(source->answer);
        source->answer = sample;
        source->asked = false;
        (void)eventfd_write(source->ready_fd, 1);
    }
    source->stopped = true;
    (void)pthread_mutex_unlock(&source->lock);
    return NULL;
}

/* Starts the thread with all signals blocked: the terminal's thread handles signals. */
static int start_thread(struct live_source *source)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&source->thread, NULL, work, source);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int live_source_new(const struct history_args *args, struct live_source **ret_source, struct occ_error *err)
{
    struct live_source *source = calloc(1, sizeof *source);
    if (!source)
        return occ_no_memory(err);
    live_reader_init(&source->reader, args);
    (void)pthread_mutex_init(&source->lock, NULL);
    (void)pthread_cond_init(&source->wake, NULL);
    source->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failed = source->ready_fd < 0 ? errno : start_thread(source);
    if (failed == 0) {
        *ret_source = source;
        return 0;
    }
    occ_close_fd(&source->ready_fd);
    free(source);
    return occ_fail_errno(err, failed, "cannot start a thread");
}

static bool has_stopped(struct live_source *source)
{
    (void)pthread_mutex_lock(&source->lock);
    source->stops = true;
    bool stopped = source->stopped;
    (void)pthread_cond_signal(&source->wake);
    (void)pthread_mutex_unlock(&source->lock);
    (void)pthread_mutex_lock(&source->reader.lock);
    if (source->reader.store && !stopped)
        sqlite3_interrupt(occ_store_sqlite(source->reader.store));
    (void)pthread_mutex_unlock(&source->reader.lock);
    return stopped;
}

void live_source_free(struct live_source *source)
{
    const struct timespec step = {.tv_nsec = 1000000};
    if (!source)
        return;
    while (!has_stopped(source)) /* an interrupt ends only running statements */
        (void)nanosleep(&step, NULL);
    (void)pthread_join(source->thread, NULL);
    live_reader_release(&source->reader);
    live_sample_free(source->answer);
    (void)close(source->ready_fd);
    (void)pthread_cond_destroy(&source->wake);
    (void)pthread_mutex_destroy(&source->lock);
    free(source);
}

void live_source_ask(struct live_source *source, int64_t window_ns)
{
    (void)pthread_mutex_lock(&source->lock);
    source->asked = true;
    source->window_ns = window_ns;
    (void)pthread_cond_signal(&source->wake);
    (void)pthread_mutex_unlock(&source->lock);
}

struct live_sample *live_source_take(struct live_source *source)
{
    eventfd_t unused = 0;
    (void)eventfd_read(source->ready_fd, &unused);
    (void)pthread_mutex_lock(&source->lock);
    struct live_sample *answer = source->answer;
    source->answer = NULL;
    (void)pthread_mutex_unlock(&source->lock);
    return answer;
}

int live_source_fd(const struct live_source *source)
{
    return source->ready_fd;
}
