/* Pairs of the pins of two builds; see pins.h. Pure apart from malloc; any thread. */
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "pins.h"
#include "support/array.h"

bool pin_is_same(const struct pin *a, const struct pin *b)
{
    for (int i = 0; i < PIN_RESOURCE_COUNT; i++)
        if (a->value[i] != b->value[i] && a->value[i] != PIN_UNKNOWN && b->value[i] != PIN_UNKNOWN)
            return false;
    return true;
}

static int add_pair(struct pin_pairs *pairs, const struct pin *before, const struct pin *after,
                    struct occ_error *err)
{
    if (!occ_grow((void **)&pairs->list, &pairs->allocated, pairs->n, 2 * (size_t)PINS_MAX,
                  sizeof *pairs->list))
        return occ_no_memory(err);
    pairs->list[pairs->n++] = (struct pin_pair){before, after};
    return 0;
}

/* The copies of a kernel for one architecture. */
struct copies {
    const struct pin *list;
    size_t n;
};

static struct copies copies_at(const struct pins *pins, size_t at)
{
    struct copies copies = {&pins->list[at], 0};
    while (at + copies.n < pins->n && pin_compare(copies.list, &copies.list[copies.n]) == 0)
        copies.n++;
    return copies;
}

/* ---- copies of one kernel ---- */

/* Bits of the resources that a pin knows, 1 << enum pin_resource. */
enum { KNOWN_SETS = 1 << PIN_RESOURCE_COUNT };

static uint32_t known_by(const struct pin *pin)
{
    uint32_t known = 0;
    for (int i = 0; i < PIN_RESOURCE_COUNT; i++)
        known |= pin->value[i] != PIN_UNKNOWN ? 1u << i : 0;
    return known;
}

static int compare_known(const struct pin *a, const struct pin *b, uint32_t known)
{
    int order = 0;
    for (int i = 0; i < PIN_RESOURCE_COUNT && order == 0; i++)
        if (known & 1u << i)
            order = (a->value[i] > b->value[i]) - (a->value[i] < b->value[i]);
    return order;
}

static int by_known(const void *left, const void *right, void *known)
{
    const struct pin *a = *(const struct pin *const *)left, *b = *(const struct pin *const *)right;
    int order = compare_known(a, b, *(const uint32_t *)known);
    return order ? order : (a > b) - (a < b);
}

/* Lists the copies that know exactly the resources `known`. */
static size_t list_known(struct copies copies, uint32_t known, const struct pin **list)
{
    size_t n = 0;
    for (size_t i = 0; i < copies.n; i++)
        if (known_by(&copies.list[i]) == known)
            list[n++] = &copies.list[i];
    return n;
}

/* Returns the first pin of the sorted list that has the `known` resources of `pin`; NULL: none. */
static const struct pin *find_same(const struct pin *pin, uint32_t known, const struct pin *const *list,
                                   size_t n)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_known(list[middle], pin, known) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && compare_known(list[low], pin, known) == 0 ? list[low] : NULL;
}

/* For the copies of `after` with the known resources `set`: finds an equal copy in `list`, whose known
 * resources are `other`, and keeps it as partner if it comes before the partner found so far. */
static void find_partners(struct copies after, uint32_t set, const struct pin **list, size_t n,
                          uint32_t other, const struct pin **partners)
{
    uint32_t both = set & other;
    qsort_r(list, n, sizeof(struct pin *), by_known, &both);
    for (size_t i = 0; i < after.n; i++) {
        if (known_by(&after.list[i]) != set)
            continue;
        const struct pin *same = find_same(&after.list[i], both, list, n);
        if (same && (!partners[i] || same < partners[i]))
            partners[i] = same;
    }
}

/* Finds the partner of each copy of `after`: the first copy of `before` with equal resources; NULL: none. An
 * unknown resource equals any, so equality is not transitive and copies cannot be sorted once: they are
 * compared for each pair of sets of known resources, of which a build has one or two. `list`: scratch for
 * before.n pins. */
static void find_equal(struct copies before, struct copies after, const struct pin **list,
                       const struct pin **partners)
{
    bool is_set[KNOWN_SETS] = {false};
    for (size_t i = 0; i < after.n; i++)
        is_set[known_by(&after.list[i])] = true;
    for (uint32_t other = 0; other < KNOWN_SETS; other++) {
        size_t n = list_known(before, other, list);
        for (uint32_t set = 0; set < KNOWN_SETS && n > 0; set++)
            if (is_set[set])
                find_partners(after, set, list, n, other, partners);
    }
}

/* Pairs each copy of `after` with a copy of equal resources, else with the copy of the same number, else with
 * the last copy. */
static int pair_all(struct pin_pairs *pairs, struct copies before, struct copies after, struct occ_error *err)
{
    const struct pin **list = calloc(before.n + after.n, sizeof *list), **partners = list + before.n;
    int status = list ? 0 : occ_no_memory(err);
    if (list)
        find_equal(before, after, list, partners);
    for (size_t i = 0; i < after.n && status == 0; i++) {
        const struct pin *other = &before.list[i < before.n ? i : before.n - 1];
        status = add_pair(pairs, partners[i] ? partners[i] : other, &after.list[i], err);
    }
    free(list);
    return status;
}

/* Without `after`, copies are gone; a kernel that only loses some copies is not. */
static int pair_copies(struct pin_pairs *pairs, struct copies before, struct copies after,
                       struct occ_error *err)
{
    int status = 0;
    if (before.n == 1 && after.n == 1)
        return add_pair(pairs, before.list, after.list, err);
    if (before.n > 0 && after.n > 0)
        return pair_all(pairs, before, after, err);
    for (size_t i = 0; i < after.n && status == 0; i++)
        status = add_pair(pairs, NULL, &after.list[i], err);
    for (size_t i = 0; i < before.n && status == 0; i++)
        status = add_pair(pairs, &before.list[i], NULL, err);
    return status;
}

static int pair_by_name(const struct pins *before, const struct pins *after, struct pin_pairs *pairs,
                        struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0, k = 0; (i < before->n || k < after->n) && status == 0;) {
        int order = i == before->n ? 1 : k == after->n ? -1 : pin_compare(&before->list[i], &after->list[k]);
        struct copies old = {0}, new = {0};
        if (order <= 0)
            old = copies_at(before, i);
        if (order >= 0)
            new = copies_at(after, k);
        status = pair_copies(pairs, old, new, err);
        i += old.n;
        k += new.n;
    }
    return status;
}

/* ---- names that change with every build ---- */

/* Cuts the parameters at the end of a demangled name: "void gemm<4>(float*)". */
static void cut_parameters(char *name)
{
    size_t n = strlen(name), depth = 0;
    if (n == 0 || name[n - 1] != ')')
        return;
    do {
        n--;
        depth += name[n] == ')' ? 1 : 0;
        depth -= name[n] == '(' ? 1 : 0;
    } while (depth > 0 && n > 0);
    name[n > 0 ? n : strlen(name)] = '\0';
}

/* A kernel that only one build has, with its name in another form. */
struct single {
    const char *name;
    size_t pair;
};

static const struct pin *pin_of(const struct pin_pair *pair)
{
    return pair->after ? pair->after : pair->before;
}

static int compare_singles(const struct pin_pairs *pairs, const struct single *a, const struct single *b)
{
    const struct pin *p = pin_of(&pairs->list[a->pair]), *q = pin_of(&pairs->list[b->pair]);
    int order = strcmp(a->name, b->name);
    if (order == 0)
        order = (p->sm > q->sm) - (p->sm < q->sm);
    return order ? order : (p->suffix > q->suffix) - (p->suffix < q->suffix);
}

static int by_single(const void *left, const void *right, void *pairs)
{
    const struct single *a = left, *b = right;
    int order = compare_singles(pairs, a, b);
    return order ? order : (a->pair > b->pair) - (a->pair < b->pair);
}

/* Lists the kernels that only one build has, by their normalised names. `brief`: names without parameters. */
static bool list_singles(const struct pin_pairs *pairs, bool brief, struct occ_arena *texts,
                         struct single *singles, size_t *ret_n)
{
    *ret_n = 0;
    for (size_t i = 0; i < pairs->n && !texts->failed; i++) {
        const struct pin_pair *pair = &pairs->list[i];
        const struct pin *pin = pin_of(pair);
        if (pair->before && pair->after)
            continue;
        const char *name = pin->name ? pin->name : pin->kernel;
        char *normalised = occ_arena_bytes(texts, strlen(name) + 1);
        if (normalised)
            diff_normalise_name(name, false, normalised);
        if (normalised && brief)
            cut_parameters(normalised);
        singles[(*ret_n)++] = (struct single){normalised, i};
    }
    return !texts->failed;
}

/* Joins a kernel that is gone with the new kernel of the same name if no other kernel has this name. */
static void join_singles(struct pin_pairs *pairs, const struct single *singles, size_t n)
{
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && compare_singles(pairs, &singles[first], &singles[end]) == 0; end++)
            ;
        if (end - first != 2)
            continue;
        struct pin_pair *a = &pairs->list[singles[first].pair], *b = &pairs->list[singles[first + 1].pair];
        struct pin_pair *gone = a->before ? a : b, *new = a->before ? b : a;
        if (!gone->before || !new->after)
            continue;
        new->before = gone->before;
        gone->before = NULL;
    }
}

static void drop_empty(struct pin_pairs *pairs)
{
    size_t kept = 0;
    for (size_t i = 0; i < pairs->n; i++)
        if (pairs->list[i].before || pairs->list[i].after)
            pairs->list[kept++] = pairs->list[i];
    pairs->n = kept;
}

static int pair_by_other_name(struct pin_pairs *pairs, bool brief, struct occ_error *err)
{
    struct occ_arena texts = {0};
    size_t n = 0;
    struct single *singles = calloc(pairs->n + 1, sizeof *singles);
    bool is_complete = singles && list_singles(pairs, brief, &texts, singles, &n);
    if (is_complete && n > 1) {
        qsort_r(singles, n, sizeof *singles, by_single, pairs);
        join_singles(pairs, singles, n);
        drop_empty(pairs);
    }
    free(singles);
    occ_arena_free(texts.blocks);
    return is_complete ? 0 : occ_no_memory(err);
}

int pins_match(const struct pins *before, const struct pins *after, struct pin_pairs *ret_pairs,
               struct occ_error *err)
{
    struct pin_pairs pairs = {0};
    int status = pair_by_name(before, after, &pairs, err);
    if (status == 0)
        status = pair_by_other_name(&pairs, false, err);
    if (status == 0)
        status = pair_by_other_name(&pairs, true, err);
    if (status == 0)
        *ret_pairs = pairs;
    else
        free(pairs.list);
    return status;
}
