/* See cluster.h. */
#include "cluster.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/json.h"
#include "names.h"
#include "support/arena.h"
#include "support/array.h"
#include "support/text.h"

#define ANSWER_BYTES_MAX (UINT64_C(256) << 20)

const char *cluster_url(const struct history_args *args)
{
    const struct cli_args *common = &args->list.common;
    const char *url =
        args->cluster || common->db || common->all_users ? args->cluster : secure_getenv("OCCTRACE_CLUSTER");
    return url && url[0] ? url : NULL;
}

int cluster_check(struct history_args *args, enum cluster_need need, struct occ_error *err)
{
    struct occ_filter *f = &args->filter;
    bool is_of_run = f->run != 0 || f->label || f->rank || f->session;
    if (!cluster_url(args))
        return args->node           ? occ_fail(err, OCC_E_INVALID, "--node goes with --cluster")
               : args->cluster_name ? occ_fail(err, OCC_E_INVALID, "--cluster-name goes with --cluster")
                                    : 0;
    if (args->cluster && (args->list.common.db || args->list.common.all_users))
        return occ_fail(err, OCC_E_INVALID, "--cluster goes with neither --db nor --all-users");
    if (f->stream != 0 || f->range_regex || f->graphs)
        return occ_fail(
            err, OCC_E_INVALID,
            "only the nodes know streams, ranges and graphs, which the cluster's minutes do not have");
    if (need != CLUSTER_RUNS && f->gpu && f->gpu[strspn(f->gpu, "0123456789")] == '\0')
        return occ_fail(
            err, OCC_E_INVALID,
            "--gpu %s: the cluster's minutes know GPU models, not devices: a part of the name chooses",
            f->gpu);
    if (f->run == OCC_RUN_LAST || (need != CLUSTER_RUNS && is_of_run))
        return occ_fail(err, OCC_E_INVALID,
                        "the cluster's minutes are of jobs, not of runs: --job, --user or --node chooses");
    args->asked = *f;
    if (need != CLUSTER_RUNS) { /* the warehouse applies these filters */
        f->since_ns = f->until_ns = 0;
        f->job = f->user = f->account = f->partition = NULL;
    }
    return 0;
}

/* ---- the connection ---- */

int cluster_settings(struct occ_config *config, struct occ_error *err)
{
    const char *base = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
    _cleanup_(occ_freep) char *path = NULL;
    occ_config_defaults(config);
    int rc = occ_config_load_system(config, err);
    if (rc == 0 && (base || home))
        rc = occ_format_text(&path, err, "%s%s/occtrace/occtrace.yaml", base ? base : home,
                             base ? "" : "/.config");
    return rc == 0 && path && access(path, F_OK) == 0 ? occ_config_load(path, config, err) : rc;
}

/* "https://host" and "https://host/" are the same server. */
static bool is_same_server(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    n -= n > 0 && a[n - 1] == '/';
    m -= m > 0 && b[m - 1] == '/';
    return n == m && strncmp(a, b, n) == 0;
}

/* Reads the password only for the server of the settings: a URL from the command line or the environment may
 * be any server's. */
static int read_password(const struct occ_config *config, const char *url, char *password, size_t size,
                         struct occ_error *err)
{
    password[0] = '\0';
    return config->cluster_password_file[0] && is_same_server(url, config->cluster_url)
               ? occ_warehouse_read_secret(config->cluster_password_file, password, size, err)
               : 0;
}

static int explain_denial(const struct occ_config *config, const char *password, int rc,
                          struct occ_error *err)
{
    if (rc == OCC_E_DENIED && config->cluster_password_file[0] && !password[0])
        (void)occ_error_prefix(err, "no password was sent, since cluster.url is '%s'", config->cluster_url);
    return rc;
}

int cluster_connect(const char *url, struct occ_warehouse **ret_warehouse, struct occ_error *err)
{
    static struct occ_config config;
    static char password[1024];
    _cleanup_(occ_warehouse_freep) struct occ_warehouse *w = NULL;
    int rc = cluster_settings(&config, err);
    if (rc == 0)
        rc = read_password(&config, url, password, sizeof password, err);
    const struct occ_warehouse_options options = {.http = {.url = url,
                                                           .user = config.cluster_user,
                                                           .password = password,
                                                           .ca_file = config.cluster_ca_file,
                                                           .cert_file = config.cluster_cert_file,
                                                           .key_file = config.cluster_key_file,
                                                           .max_answer_bytes = ANSWER_BYTES_MAX},
                                                  .section = "cluster",
                                                  .url_of = "--cluster or OCCTRACE_CLUSTER",
                                                  .database = config.cluster_database,
                                                  .cluster = config.cluster_name,
                                                  .node = ""};
    if (rc == 0)
        rc = occ_warehouse_open(&options, &w, err);
    if (rc == 0)
        rc = occ_warehouse_meet(w, err);
    if (rc == 0)
        rc = occ_warehouse_check(w, OCC_FOR_QUESTIONS, err);
    rc = explain_denial(&config, password, rc, err);
    if (rc == 0)
        *ret_warehouse = occ_take(w);
    return rc;
}

/* ---- completeness ---- */

static struct occ_remote_state state; /* of the printed answer */
static bool is_reported;              /* printed once, before the rows of both sides of a comparison */
static bool has_name;                 /* the answer is about one cluster, */
static char state_of[OCC_REMOTE_TEXT_MAX + 2]; /* with this name */

void cluster_begin(void)
{
    is_reported = false;
}

static void put_state(struct occ_json *json)
{
    occ_json_object(json, "cluster", true);
    if (has_name)
        occ_json_string(json, "name", state_of);
    else
        occ_json_null(json, "name");
    occ_json_unsigned(json, "nodes", state.nodes);
    if (state.complete_until_ns > 0)
        occ_json_integer(json, "complete_until_ns", state.complete_until_ns);
    else
        occ_json_null(json, "complete_until_ns");
    occ_json_unsigned(json, "silent_nodes", state.silent);
    occ_json_string(json, "silent", state.silent_names);
    occ_json_unsigned(json, "lost_minutes", state.lost_minutes);
    occ_json_unsigned(json, "left_out_rows", state.left_out_rows);
    occ_json_string(json, "left_out", state.left_out);
    occ_json_close(json);
}

int cluster_report(const struct cli_command *command, struct occ_warehouse *w, const char *name, bool in_json,
                   struct occ_error *err)
{
    char until[32], silent[320] = "", lost[64] = "";
    if (is_reported)
        return 0;
    is_reported = true;
    has_name = name != NULL;
    (void)snprintf(state_of, sizeof state_of, "%s", name ? name : "");
    int rc = occ_remote_get_state(w, name, &state, err);
    if (rc != 0)
        return rc;
    if (in_json) {
        cli_json_set_last(put_state);
        return 0;
    }
    if (state.nodes == 0) {
        cli_note(command, "no node has sent anything yet: on a node, occtrace-ship --status shows why");
        return 0;
    }
    if (state.silent > 0)
        (void)snprintf(silent, sizeof silent, "; %" PRIu64 " silent: %s", state.silent, state.silent_names);
    if (state.lost_minutes > 0)
        (void)snprintf(lost, sizeof lost, "; %" PRIu64 " minutes lost", state.lost_minutes);
    cli_note(command, "%" PRIu64 " node%s, complete until %s%s%s", state.nodes, state.nodes == 1 ? "" : "s",
             state.complete_until_ns > 0 ? cli_time_text(state.complete_until_ns, until, sizeof until) : "-",
             silent, lost);
    return 0;
}

/* Chooses the cluster of the option, else of the settings, else the only one. */
static int choose(struct occ_warehouse *w, const struct history_args *args, char **ret_name,
                  struct occ_error *err)
{
    const char *of_settings = w->options.cluster;
    return occ_remote_choose_cluster(w,
                                     args->cluster_name ? args->cluster_name
                                     : of_settings[0]   ? of_settings
                                                        : NULL,
                                     ret_name, err);
}

int cluster_ask(const struct cli_command *command, const struct history_args *args,
                struct occ_remote_question *question, struct occ_store **ret_store, struct occ_error *err)
{
    _cleanup_(occ_warehouse_freep) struct occ_warehouse *w = NULL;
    _cleanup_(occ_freep) char *name = NULL;
    int rc = cluster_connect(cluster_url(args), &w, err);
    if (rc == 0)
        rc = choose(w, args, &name, err);
    if (rc == 0) /* before the query of the rows: nodes may send more data in between */
        rc = cluster_report(command, w, name, args->list.output.json, err);
    question->cluster = name;
    question->since_ns = args->asked.since_ns;
    question->until_ns = args->asked.until_ns;
    question->job = args->asked.job;
    question->user = args->asked.user;
    question->account = args->asked.account;
    question->partition = args->asked.partition;
    question->node = args->node;
    if (rc == 0)
        rc = occ_remote_ask(w, question, &state, ret_store, err);
    question->cluster = NULL;
    if (rc == 0 && state.left_out_rows > 0 && !args->list.output.json)
        cli_note(command, "%" PRIu64 " row%s left out that cannot be: %s", state.left_out_rows,
                 state.left_out_rows == 1 ? "" : "s", state.left_out);
    return rc;
}

static struct occ_top_row read_gpu(sqlite3_stmt *stmt, struct occ_arena *arena)
{
    struct occ_top_row row = {.waste_warp_seconds = sqlite3_column_double(stmt, 3),
                              .launches = (uint64_t)sqlite3_column_int64(stmt, 1),
                              .total_ns = (uint64_t)sqlite3_column_int64(stmt, 2)};
    double *const unknown[] = {&row.theoretical,
                               &row.expected_achieved_low,
                               &row.expected_achieved_high,
                               &row.expected_elapsed_low,
                               &row.expected_elapsed_high,
                               &row.achieved,
                               &row.achieved_error,
                               &row.elapsed,
                               &row.elapsed_error,
                               &row.tail_spread,
                               &row.small_grid_spread,
                               &row.main_cause_ratio,
                               &row.dominant.waves};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        *unknown[i] = (double)NAN;
    for (size_t i = 0; i < OCC_PART_COUNT; i++)
        row.part[i] = (double)NAN;
    row.used = 1 - row.waste_warp_seconds / sqlite3_column_double(stmt, 4);
    row.kernel.short_name = occ_arena_copy(arena, (const char *)sqlite3_column_text(stmt, 0));
    return row;
}

int cluster_top_gpus(struct occ_store *store, struct occ_top *ret_top, struct occ_error *err)
{
    sqlite3 *db = occ_store_sqlite(store);
    sqlite3_stmt *stmt = NULL;
    struct occ_arena arena = {0};
    size_t allocated = 0;
    bool done =
        sqlite3_prepare_v2(db,
                           "SELECT node || ' ' || gpu, sum(launches), sum(busy_ns), total(wasted_warp_s), "
                           "total(capacity_warp_s) FROM rank GROUP BY node, gpu",
                           -1, &stmt, NULL) == SQLITE_OK;
    while (done && sqlite3_step(stmt) == SQLITE_ROW) {
        done = occ_grow((void **)&ret_top->rows, &allocated, ret_top->n, UINT32_MAX, sizeof *ret_top->rows);
        if (done)
            ret_top->rows[ret_top->n++] = read_gpu(stmt, &arena);
    }
    done = sqlite3_finalize(stmt) == SQLITE_OK && done && !arena.failed;
    ret_top->memory = arena.blocks;
    return done ? 0 : occ_no_memory(err);
}

/* Chooses kernels for the filter by their names in the warehouse's answer. */
static int choose_kernels(struct occ_store *store, const void *chooser, struct occ_map *ret_kernels,
                          struct occ_error *err)
{
    const struct history_args *args = chooser;
    return occ_store_choose_kernels(store, &args->filter, ret_kernels, err);
}

int cluster_open(const struct cli_command *command, const struct history_args *args, enum cluster_need need,
                 enum occ_top_by by, struct occ_store **ret_store, struct occ_error *err)
{
    const struct occ_filter *f = &args->asked;
    struct occ_remote_question question = {
        .kind = need == CLUSTER_RUNS   ? OCC_REMOTE_RUNS
                : by == OCC_TOP_BY_GPU ? OCC_REMOTE_RANKS
                                       : OCC_REMOTE_LAUNCHES,
        .by = by,
        .histograms = need == CLUSTER_HISTOGRAMS,
        .choose = f->kernel || f->kernel_regex || f->exclude_regex ? choose_kernels : NULL,
        .chooser = args,
        .run = f->run,
        .max_runs = f->label || f->rank || f->session ? INT64_MAX : args->number + 1};
    return cluster_url(args) ? cluster_ask(command, args, &question, ret_store, err)
                             : cli_open_history(&args->list.common, OCC_STORE_READ, ret_store, err);
}
