/* The operands of a comparison, and the source of a side: a history or the cluster's warehouse; see sides.h.
 * One thread. */
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "cli/history/cluster.h"
#include "cli/history/known.h"
#include "sides.h"
#include "support/clock.h"
#include "support/map.h"
#include "support/text.h"

/* ---- words ---- */

enum word { WORD_RUN, WORD_LAST, WORD_SINCE, WORD_UNTIL, WORD_TEXTS, WORD_LABEL = WORD_TEXTS };
static const char *const words[] = {"run",  "last", "since", "until", "label",
                                    "user", "job",  "rank",  "gpu",   NULL};

static int set_word(struct side *side, size_t word, const char *value, struct occ_error *err)
{
    struct occ_filter *f = &side->filter;
    const char **const texts[] = {&f->label, &f->user, &f->job, &f->rank, &f->gpu};
    bool is_last = word == WORD_RUN && strcmp(value, "last") == 0;
    uint64_t number = is_last ? 1 : 0;
    int status = 0;
    if (word >= WORD_TEXTS) {
        *texts[word - WORD_TEXTS] = value;
        return f->rank == value ? cli_check_rank(value, err) : 0;
    }
    if (word == WORD_SINCE || word == WORD_UNTIL)
        return occ_parse_time_ns(value, occ_now_ns(), word == WORD_SINCE ? &f->since_ns : &f->until_ns, err);
    if (!is_last)
        status = occ_parse_u64(value, 1, word == WORD_RUN ? INT64_MAX : DIFF_RUNS_MAX, &number, err);
    if (word == WORD_RUN && !is_last)
        f->run = (int64_t)number;
    else
        side->last = (uint32_t)number;
    return status;
}

/* Takes a word without a key: a label, if the history has it. */
static int set_alone(struct side *side, const char *text, struct occ_error *err)
{
    const char *nearest = occ_text_nearest(text, words);
    if (!text[0] || nearest || side->given & 1u << WORD_LABEL)
        return cli_fail_unknown("side", "", text, strlen(text), words, err);
    side->given |= 1u << WORD_LABEL;
    side->filter.label = side->alone = text;
    return 0;
}

static int parse_word(struct side *side, char *text, struct occ_error *err)
{
    size_t length = strcspn(text, ":"), word = 0;
    while (words[word] && (strncmp(words[word], text, length) != 0 || words[word][length] != '\0'))
        word++;
    if (text[length] == ':' && words[word]) {
        if (side->given & 1u << word)
            return occ_fail(err, OCC_E_INVALID, "%s: twice in a side, but all that commas join must hold",
                            words[word]);
        side->given |= 1u << word;
        int status = set_word(side, word, text + length + 1, err);
        return status == 0 ? 0 : occ_error_prefix(err, "%s", words[word]);
    }
    bool exists = access(text, F_OK) == 0;
    bool is_run = !exists && text[0] && text[strspn(text, "0123456789")] == '\0';
    if (is_run && !(side->given & 1u << WORD_RUN)) {
        side->given |= 1u << WORD_RUN;
        int status = set_word(side, WORD_RUN, text, err);
        return status == 0 ? 0 : occ_error_prefix(err, "%s", words[WORD_RUN]);
    }
    if (!exists)
        return set_alone(side, text, err);
    side->where.db = text;
    return 0;
}

int side_parse(struct side *side, const char *text, const struct cli_args *where, struct occ_error *err)
{
    int status = 0;
    char *next;
    *side = (struct side){.text = text, .where = *where, .words = text ? strdup(text) : NULL};
    if (text && !side->words)
        return occ_no_memory(err);
    for (char *word = side->words; word && status == 0; word = next) {
        next = access(word, F_OK) == 0 ? NULL : strchr(word, ','); /* a file's name may have commas */
        if (next)
            *next++ = '\0';
        status = parse_word(side, word, err);
    }
    return status;
}

static int check_cluster(const struct sides *sides, const struct side *side, struct occ_error *err)
{
    const struct occ_filter *f = &side->filter;
    if (!sides->cluster)
        return 0;
    if (side->alone)
        return cli_fail_unknown("side", "", side->alone, strlen(side->alone), words, err);
    if (side->where.db != sides->cluster->list.common.db)
        return occ_fail(err, OCC_E_INVALID, "%s: with --cluster both sides are the cluster's", side->text);
    return f->run != 0 || f->label || f->rank || side->last != 0
               ? occ_fail(
                     err, OCC_E_INVALID,
                     "%s: the cluster's minutes are of jobs, not of runs: job, user, since and until choose",
                     side->text)
               : 0;
}

bool sides_take(const struct cli_option *option)
{
    return option->offset == offsetof(struct history_args, filter.kernel_regex) ||
           option->offset == offsetof(struct history_args, filter.exclude_regex);
}

int sides_parse(struct sides *sides, const struct history_args *args, struct occ_error *err)
{
    char *const *operand = args->list.common.operands;
    int status = 0;
    for (struct side *side = sides->side; side < sides->side + DIFF_SIDES && status == 0; side++) {
        status = side_parse(side, *operand++, &args->list.common, err);
        side->filter.kernel_regex = args->filter.kernel_regex;
        side->filter.exclude_regex = args->filter.exclude_regex;
        if (status == 0)
            status = check_cluster(sides, side, err);
    }
    return status;
}

/* Opens the warehouse's answer. The warehouse applies the filters of time, job and user. */
static int ask_cluster(const struct sides *sides, struct side *side, struct occ_error *err)
{
    struct history_args args = *sides->cluster;
    args.asked = side->filter;
    side->filter.since_ns = side->filter.until_ns = 0;
    side->filter.job = side->filter.user = NULL;
    return cluster_open(sides->command, &args, CLUSTER_SUMS, OCC_TOP_BY_MINUTE, &side->store, err);
}

int side_open(const struct sides *sides, struct side *side, struct occ_error *err)
{
    char known[HISTORY_KNOWN_BYTES];
    if (side->store)
        return 0;
    int status = sides->cluster ? ask_cluster(sides, side, err)
                                : cli_open_history(&side->where, OCC_STORE_READ, &side->store, err);
    if (status == 0 && side->alone && !history_has_label(side->store, side->alone))
        return occ_fail(err, OCC_E_USAGE, "%.48s: no run, label or file%s", side->alone,
                        history_known_text(side->store, side->alone, known));
    return status == 0 ? kernel_names_load(side->store, NULL, &side->names, err) : status;
}

/* ---- one kernel of two histories ---- */

/* Returns the kernel with this name in the driver; 0: there is none, or the history cannot be read. */
static int64_t kernel_of(const struct side *side, const char *name)
{
    sqlite3_stmt *stmt = NULL;
    int64_t id = 0;
    if (sqlite3_prepare_v2(occ_store_sqlite(side->store),
                           "SELECT kernel_id FROM kernel WHERE kernel_mangled = ?", -1, &stmt,
                           NULL) == SQLITE_OK &&
        sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        id = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return id;
}

/* Returns the kernel's name in the driver, which the side owns; NULL: no memory, or it cannot be read. */
static const char *name_of(struct side *side, int64_t id)
{
    sqlite3_stmt *stmt = NULL;
    const char *name = NULL;
    if (sqlite3_prepare_v2(occ_store_sqlite(side->store),
                           "SELECT kernel_mangled FROM kernel WHERE kernel_id = ?", -1, &stmt,
                           NULL) == SQLITE_OK &&
        sqlite3_bind_int64(stmt, 1, id) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW &&
        sqlite3_column_text(stmt, 0))
        name = occ_arena_copy(&side->texts, (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    return name;
}

/* Sets the number of the kernel that the side's text chooses, if it chooses one, and whether `name`, if there
 * is one, is a chosen kernel's. */
static int choose(const struct side *side, const char *name, int64_t *ret_id, bool *ret_has_name,
                  struct occ_error *err)
{
    const struct occ_filter filter = {.kernel_regex = side->filter.kernel_regex};
    struct occ_map kernels = {0};
    int64_t named = name ? kernel_of(side, name) : 0;
    int status = occ_store_choose_kernels(side->store, &filter, &kernels, err);
    *ret_has_name = named > 0 && occ_map_get(&kernels, (uint64_t)named) != OCC_MAP_NONE;
    *ret_id = 0;
    for (uint32_t i = 0; i < kernels.capacity && kernels.used == 1; i++)
        if (kernels.values[i] != OCC_MAP_NONE)
            *ret_id = (int64_t)kernels.keys[i];
    occ_map_free(&kernels);
    return status;
}

/* Applies the kernel that the text of `from` chooses to `to`, if `to` has it and its text chooses others. */
static int align(struct side *from, struct side *to, const char **ret_name, struct occ_error *err)
{
    int64_t id = 0, other = 0;
    bool is_same = false;
    int status = choose(from, NULL, &id, &is_same, err);
    const char *name = status == 0 && id > 0 ? name_of(from, id) : NULL;
    if (!name || kernel_of(to, name) == 0)
        return from->texts.failed ? occ_no_memory(err) : status;
    status = choose(to, name, &other, &is_same, err);
    if (status == 0 && !is_same)
        *ret_name = from->filter.kernel_regex = to->filter.kernel_regex = name;
    return status;
}

int sides_align_kernel(struct sides *sides, struct occ_error *err)
{
    struct side *a = &sides->side[DIFF_A], *b = &sides->side[DIFF_B];
    if (sides->cluster || !a->text || !b->filter.kernel_regex || a->where.db == b->where.db)
        return 0;
    int status = side_open(sides, b, err);
    status = status == 0 ? side_open(sides, a, err) : status;
    status = status == 0 ? align(a, b, &sides->aligned, err) : status;
    return status == 0 && !sides->aligned ? align(b, a, &sides->aligned, err) : status;
}
