/* Texts that mean other kernels in another history; see sides.h. One thread. */
#include <sqlite3.h>
#include <string.h>

#include "sides.h"
#include "support/map.h"
#include "support/text.h"

/* The kernels of a history in the order of their names. */
struct kernels {
    sqlite3_stmt *stmt; /* name, number */
    struct occ_map meant;
    int rc; /* of the last step */
};

/* What a text means in both histories. */
struct meaning {
    const char *only[DIFF_SIDES]; /* name of the kernel that it means; NULL: it means none, or several */
    bool is_shared[DIFF_SIDES];   /* the other history has that kernel, too */
    bool differs;                 /* it means a kernel of both histories on one side only */
};

struct option {
    const char *name;
    size_t in_filter, in_aligned; /* offsets of its text and of the aligned name */
};
static const struct option options[] = {
    {"kernel", offsetof(struct occ_filter, kernel_regex), offsetof(struct diff_aligned, kernel)},
    {"exclude", offsetof(struct occ_filter, exclude_regex), offsetof(struct diff_aligned, exclude)}};

static const char **text_of(const struct option *option, struct side *side)
{
    return (const char **)((char *)&side->filter + option->in_filter);
}

/* ---- the meaning of a text ---- */

static int open_kernels(const struct side *side, const char *text, struct kernels *k, struct occ_error *err)
{
    const struct occ_filter filter = {.kernel_regex = text};
    sqlite3 *db = occ_store_sqlite(side->store);
    int status = occ_store_choose_kernels(side->store, &filter, &k->meant, err);
    if (status != 0)
        return status;
    if (sqlite3_prepare_v2(db, "SELECT kernel_mangled, kernel_id FROM kernel ORDER BY kernel_mangled", -1,
                           &k->stmt, NULL) != SQLITE_OK)
        return occ_fail(err, OCC_E_CORRUPT, "%s", sqlite3_errmsg(db));
    k->rc = sqlite3_step(k->stmt);
    return 0;
}

static void close_kernels(struct kernels *k)
{
    (void)sqlite3_finalize(k->stmt);
    occ_map_free(&k->meant);
}

static const char *name_of(const struct kernels *k)
{
    const char *name = k->rc == SQLITE_ROW ? (const char *)sqlite3_column_text(k->stmt, 0) : NULL;
    return name ? name : "";
}

static bool is_meant(const struct kernels *k)
{
    return occ_map_get(&k->meant, (uint64_t)sqlite3_column_int64(k->stmt, 1)) != OCC_MAP_NONE;
}

/* Adds the kernel with the first name; `has`: the sides with this name. */
static void add_kernel(struct side *const side[DIFF_SIDES], const struct kernels k[DIFF_SIDES],
                       const bool has[DIFF_SIDES], struct meaning *m)
{
    bool meant[DIFF_SIDES] = {false, false};
    for (int i = 0; i < DIFF_SIDES; i++) {
        meant[i] = has[i] && is_meant(&k[i]);
        if (!meant[i] || k[i].meant.used > 1)
            continue;
        m->only[i] = occ_arena_copy(&side[i]->texts, name_of(&k[i]));
        m->is_shared[i] = has[DIFF_A] && has[DIFF_B];
    }
    m->differs = m->differs || (has[DIFF_A] && has[DIFF_B] && meant[DIFF_A] != meant[DIFF_B]);
}

/* Merges the kernels of both histories. */
static int find_meaning(struct side *const side[DIFF_SIDES], struct kernels k[DIFF_SIDES], struct meaning *m,
                        struct occ_error *err)
{
    while (k[DIFF_A].rc == SQLITE_ROW || k[DIFF_B].rc == SQLITE_ROW) {
        bool both = k[DIFF_A].rc == SQLITE_ROW && k[DIFF_B].rc == SQLITE_ROW;
        int order = both                         ? strcmp(name_of(&k[DIFF_A]), name_of(&k[DIFF_B]))
                    : k[DIFF_A].rc == SQLITE_ROW ? -1
                                                 : 1;
        const bool has[DIFF_SIDES] = {order <= 0, order >= 0};
        add_kernel(side, k, has, m);
        for (int i = 0; i < DIFF_SIDES; i++)
            k[i].rc = has[i] ? sqlite3_step(k[i].stmt) : k[i].rc;
    }
    for (int i = 0; i < DIFF_SIDES; i++)
        if (k[i].rc != SQLITE_DONE)
            return occ_fail(err, OCC_E_CORRUPT, "%s", sqlite3_errmsg(occ_store_sqlite(side[i]->store)));
    return side[DIFF_A]->texts.failed || side[DIFF_B]->texts.failed ? occ_no_memory(err) : 0;
}

static int read_meaning(struct side *const side[DIFF_SIDES], const char *text, struct meaning *m,
                        struct occ_error *err)
{
    struct kernels k[DIFF_SIDES] = {{.rc = SQLITE_DONE}, {.rc = SQLITE_DONE}};
    int status = open_kernels(side[DIFF_A], text, &k[DIFF_A], err);
    status = status == 0 ? open_kernels(side[DIFF_B], text, &k[DIFF_B], err) : status;
    status = status == 0 ? find_meaning(side, k, m, err) : status;
    for (int i = 0; i < DIFF_SIDES; i++)
        close_kernels(&k[i]);
    return status;
}

/* ---- one meaning ---- */

/* True for words with the number of a kernel, "GEMM 64x64 #26". */
static bool is_numbered(const char *text)
{
    const char *mark = strrchr(text, '#');
    return mark && mark > text && mark[-1] == ' ' && mark[1] &&
           mark[1 + strspn(mark + 1, "0123456789")] == '\0';
}

static int settle(const struct option *option, struct side *const side[DIFF_SIDES], const struct meaning *m,
                  const char **ret_name, struct occ_error *err)
{
    const char *text = *text_of(option, side[DIFF_B]), *const *only = m->only;
    for (int i = 0; i < DIFF_SIDES && m->differs; i++)
        if (only[i] && m->is_shared[i]) {
            *ret_name = only[i];
            *text_of(option, side[DIFF_A]) = *text_of(option, side[DIFF_B]) = only[i];
            return 0;
        }
    if (m->differs)
        return occ_fail(
            err, OCC_E_USAGE,
            "--%s %.64s: means other kernels in the other history; give a name that both have, or an "
            "expression such as '^NAME'",
            option->name, text);
    bool are_others = only[DIFF_A] && only[DIFF_B] && strcmp(only[DIFF_A], only[DIFF_B]) != 0;
    return are_others && is_numbered(text)
               ? occ_fail(err, OCC_E_USAGE,
                          "--%s %.64s: the number means %.120s in A, and %.120s in B; give a kernel's name",
                          option->name, text, only[DIFF_A], only[DIFF_B])
               : 0;
}

static int align(struct sides *sides, const struct option *option, struct occ_error *err)
{
    struct side *const side[DIFF_SIDES] = {&sides->side[DIFF_A], &sides->side[DIFF_B]};
    const char *text = *text_of(option, side[DIFF_B]);
    struct meaning meaning = {.differs = false};
    if (sides->cluster || !side[DIFF_A]->text || !text || side[DIFF_A]->where.db == side[DIFF_B]->where.db)
        return 0;
    int status = side_open(sides, side[DIFF_B], err);
    status = status == 0 ? side_open(sides, side[DIFF_A], err) : status;
    status = status == 0 ? read_meaning(side, text, &meaning, err) : status;
    return status == 0 ? settle(option, side, &meaning,
                                (const char **)((char *)&sides->aligned + option->in_aligned), err)
                       : status;
}

int sides_align_kernels(struct sides *sides, struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < sizeof options / sizeof *options && status == 0; i++)
        status = align(sides, &options[i], err);
    return status;
}
