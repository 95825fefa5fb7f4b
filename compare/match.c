/* Which kernels correspond: items by identity, pairs by keys that get looser level by level. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "names.h"
#include "support/cleanup.h"
#include "support/text.h"

/* ---- keys ---- */

/* Entries with the same key belong together. `index`: index of the part or item. */
struct keyed {
    char *key;
    uint32_t side, index;
};

struct keys {
    struct keyed *all;
    size_t n;
};

static void keys_free(const struct keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        free(keys->all[i].key);
    free(keys->all);
}

static int make_config_key(const struct diff_row *row, char **ret_key, struct occ_error *err)
{
    char numbers[21 * DIFF_LAUNCH_NUMBERS + 1];
    int used = 0;
    for (int i = 0; i < DIFF_LAUNCH_NUMBERS; i++)
        used += snprintf(numbers + used, sizeof numbers - (size_t)used, " %" PRId64, row->launch[i]);
    return occ_format_text(ret_key, err, "%s\n%s", row->mangled, numbers + 1);
}

/* The key of an item: its configuration and range. */
static int make_part_key(const struct diff_part *part, char **ret_key, struct occ_error *err)
{
    _cleanup_(occ_freep) char *config = NULL;
    int status = make_config_key(part->row, &config, err);
    return status == 0 ? occ_format_text(ret_key, err, "%s\n%s", config, part->range ? part->range : "")
                       : status;
}

static int make_name_key(const char *demangled, bool loose, char **ret_key, struct occ_error *err)
{
    char *key = malloc(strlen(demangled) + 1);
    if (!key)
        return occ_no_memory(err);
    diff_normalise_name(demangled, loose, key);
    *ret_key = key;
    return 0;
}

/* *ret_key stays NULL if the level pairs no such items. */
static int make_key(const struct diff_item *item, enum diff_level level, char **ret_key,
                    struct occ_error *err)
{
    const struct diff_row *row = item->row;
    switch (level) {
    case DIFF_RANGE:
        return item->range
                   ? make_part_key(&(struct diff_part){.row = row, .range = item->range}, ret_key, err)
                   : 0;
    case DIFF_CONFIG:
        return make_config_key(row, ret_key, err);
    case DIFF_WORK:
        return occ_format_text(ret_key, err, "%s\n%.0f", row->mangled, row->threads);
    case DIFF_SIMILAR:
    case DIFF_FAMILY:
        return make_name_key(row->demangled, level == DIFF_FAMILY, ret_key, err);
    case DIFF_PLACE:
        return item->votes * 2 < item->voters || item->voters == 0
                   ? 0
                   : occ_format_text(ret_key, err, "%" PRIu32 " %" PRIu32, item->before, item->after);
    default:
        return occ_format_text(ret_key, err, "%s", row->mangled);
    }
}

static int by_key(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    int order = strcmp(a->key, b->key);
    return order                ? order
           : a->side != b->side ? (a->side > b->side) - (a->side < b->side)
                                : (a->index > b->index) - (a->index < b->index);
}

/* Returns the end of the entries that have the key of entry `first`. */
static size_t end_of_key(const struct keys *keys, size_t first)
{
    size_t end = first + 1;
    while (end < keys->n && strcmp(keys->all[end].key, keys->all[first].key) == 0)
        end++;
    return end;
}

/* ---- items ---- */

static void add_sums(struct diff_sums *sums, const struct diff_sums *more)
{
    sums->launches += more->launches;
    sums->total_ns += more->total_ns;
    sums->warp_ns += more->warp_ns;
    for (int i = 0; i < DIFF_VALUE_COUNT; i++) {
        sums->sum[i] += more->sum[i];
        sums->ns[i] += more->ns[i];
    }
    for (unsigned i = 0; i < DIFF_PARTS_MAX; i++) {
        sums->part_ns[i] += more->part_ns[i];
        sums->expected_part_ns[i] += more->expected_part_ns[i];
    }
}

static int key_parts(const struct diff *diff, struct keys *keys, struct occ_error *err)
{
    int status = 0;
    for (; keys->n < diff->n_parts && status == 0; keys->n += status == 0 ? 1 : 0) {
        struct keyed *entry = &keys->all[keys->n];
        entry->side = diff->parts[keys->n].side;
        entry->index = (uint32_t)keys->n;
        status = make_part_key(&diff->parts[keys->n], &entry->key, err);
    }
    qsort(keys->all, keys->n, sizeof *keys->all, by_key);
    return status;
}

static void make_items(struct diff *diff, const struct keys *keys)
{
    for (size_t i = 0; i < keys->n; i++) {
        struct diff_part *part = &diff->parts[keys->all[i].index];
        bool is_new = i == 0 || keys->all[i].side != keys->all[i - 1].side ||
                      strcmp(keys->all[i].key, keys->all[i - 1].key) != 0;
        if (is_new)
            diff->items[diff->n_items++] = (struct diff_item){.row = part->row,
                                                              .range = part->range,
                                                              .layer = part->layer,
                                                              .where = part->where,
                                                              .side = part->side,
                                                              .pair = DIFF_NO_PAIR};
        part->item = diff->n_items - 1;
        diff->launches[part->side] += part->row->launches;
        diff->total_ns[part->side] += part->row->total_ns;
    }
}

int diff_collect(struct diff *diff, struct diff_part *parts, size_t n_parts, const uint32_t runs[DIFF_SIDES],
                 struct occ_error *err)
{
    _cleanup_(keys_free) struct keys keys = {.all = calloc(n_parts + 1, sizeof *keys.all)};
    *diff = (struct diff){.parts = parts, .n_parts = n_parts, .runs = {runs[DIFF_A], runs[DIFF_B]}};
    diff->items = calloc(n_parts + 1, sizeof *diff->items);
    diff->pairs = calloc(n_parts + 1, sizeof *diff->pairs);
    if (n_parts >= DIFF_NO_PAIR || !keys.all || !diff->items || !diff->pairs)
        return occ_no_memory(err);
    int status = key_parts(diff, &keys, err);
    if (status == 0)
        make_items(diff, &keys);
    return status;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void diff_add_sums(struct diff *diff, const struct diff_part *part, const struct diff_sums *sums)
{
    uint64_t *unit_ns = &diff->unit_ns[part->side];
    *unit_ns = common_divisor(*unit_ns, sums->total_ns);
    add_sums(&diff->items[part->item].sums, sums);
}

void diff_free(struct diff *diff)
{
    free(diff->items);
    free(diff->pairs);
    free(diff->replicate[DIFF_A]);
    free(diff->replicate[DIFF_B]);
    free(diff->slice[DIFF_A]);
    free(diff->slice[DIFF_B]);
    *diff = (struct diff){0};
}

/* ---- pairs ---- */

/* Keys of the items without a pair, both sides in one list. */
static int key_rest(const struct diff *diff, enum diff_level level, struct keys *keys, struct occ_error *err)
{
    int status = 0;
    for (uint32_t i = 0; i < diff->n_items && status == 0; i++) {
        struct keyed *entry = &keys->all[keys->n];
        if (diff->items[i].pair != DIFF_NO_PAIR)
            continue;
        *entry = (struct keyed){.side = diff->items[i].side, .index = i};
        status = make_key(&diff->items[i], level, &entry->key, err);
        keys->n += entry->key ? 1 : 0;
    }
    qsort(keys->all, keys->n, sizeof *keys->all, by_key);
    return status;
}

int diff_match(struct diff *diff, enum diff_level level, struct occ_error *err)
{
    _cleanup_(keys_free) struct keys keys = {.all = calloc(diff->n_items + 1, sizeof *keys.all)};
    if (!keys.all)
        return occ_no_memory(err);
    int status = key_rest(diff, level, &keys, err);
    for (size_t first = 0, end; first < keys.n && status == 0; first = end) {
        end = end_of_key(&keys, first);
        if (keys.all[first].side == keys.all[end - 1].side && level != DIFF_ONE_SIDE)
            continue;
        for (size_t i = first; i < end; i++)
            diff->items[keys.all[i].index].pair = diff->n_pairs;
        diff->pairs[diff->n_pairs++].level = level;
    }
    return status;
}

bool diff_has_rest(const struct diff *diff)
{
    bool has_rest[DIFF_SIDES] = {false, false};
    for (uint32_t i = 0; i < diff->n_items; i++)
        has_rest[diff->items[i].side] |= diff->items[i].pair == DIFF_NO_PAIR;
    return has_rest[DIFF_A] && has_rest[DIFF_B];
}

void diff_add_neighbours(struct diff_item *item, uint32_t before, uint32_t after)
{
    item->voters++;
    if (item->votes == 0) {
        item->before = before;
        item->after = after;
    }
    bool agrees = item->before == before && item->after == after;
    item->votes = agrees ? item->votes + 1 : item->votes - 1;
}

/* ---- sums and replicates of pairs ---- */

/* Items are sorted by name, configuration and range, so equal names and configurations follow each other. */
static void fill_pairs(struct diff *diff, uint32_t side)
{
    for (const struct diff_item *item = diff->items; item < diff->items + diff->n_items; item++) {
        struct diff_pair *pair = &diff->pairs[item->pair];
        const struct diff_item *main_item = pair->main_item[side], *last = pair->last_item[side];
        if (item->side != side)
            continue;
        bool is_same_name = last && strcmp(last->row->mangled, item->row->mangled) == 0;
        pair->kernels[side] += is_same_name ? 0 : 1;
        pair->configs[side] += is_same_name && last->row->id == item->row->id ? 0 : 1;
        pair->n[side]++;
        if (!main_item || item->sums.total_ns > main_item->sums.total_ns)
            pair->main_item[side] = item;
        pair->last_item[side] = item;
        add_sums(&pair->sums[side], &item->sums);
    }
}

static void add_runs(struct diff *diff)
{
    for (const struct diff_part *part = diff->parts; part < diff->parts + diff->n_parts; part++) {
        size_t first = (size_t)diff->items[part->item].pair * diff->replicates[part->side];
        struct diff_replicate *r = &diff->replicate[part->side][first + part->run];
        if (diff->by_minutes && part->run + 1 == diff->runs[part->side]) /* warm-up */
            continue;
        r->launches += (double)part->row->launches;
        r->ns += (double)part->row->total_ns;
    }
}

int diff_sample(struct diff *diff, struct occ_error *err)
{
    int status = diff_match(diff, DIFF_ONE_SIDE, err);
    if (status != 0)
        return status;
    diff->by_runs =
        !diff->by_minutes && diff->runs[DIFF_A] >= DIFF_RUNS_MIN && diff->runs[DIFF_B] >= DIFF_RUNS_MIN;
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        fill_pairs(diff, side);
        diff->replicates[side] = diff->by_runs || diff->by_minutes ? diff->runs[side] : DIFF_BLOCKS;
        diff->replicate[side] =
            calloc((size_t)diff->n_pairs * diff->replicates[side] + 1, sizeof *diff->replicate[side]);
        if (!diff->by_runs && !diff->by_minutes)
            diff->slice[side] = calloc((size_t)diff->n_pairs * DIFF_SLICES + 1, sizeof *diff->slice[side]);
    }
    if (!diff->replicate[DIFF_A] || !diff->replicate[DIFF_B])
        return occ_no_memory(err);
    if (diff->by_runs || diff->by_minutes)
        add_runs(diff);
    else if (!diff->slice[DIFF_A] || !diff->slice[DIFF_B])
        return occ_no_memory(err);
    return 0;
}

static void add_to_slice(struct diff *diff, uint32_t side, uint32_t pair, uint64_t duration_ns)
{
    uint64_t i = diff->sliced[side]++;
    if (!diff->slice[side] || i >= diff->launches[side] || duration_ns == 0)
        return;
    struct diff_slice *slice =
        &diff->slice[side][(size_t)pair * DIFF_SLICES + i * DIFF_SLICES / diff->launches[side]];
    slice->launches++;
    slice->log_ns += log((double)duration_ns);
    slice->ns += (double)duration_ns;
}

void diff_add_launch(struct diff *diff, uint32_t side, uint32_t pair, uint64_t i, uint64_t duration_ns)
{
    add_to_slice(diff, side, pair, duration_ns);
    uint64_t n = diff->pairs[pair].sums[side].launches, blocks = n / DIFF_BLOCK_LAUNCHES;
    blocks = blocks < DIFF_BLOCKS ? blocks : DIFF_BLOCKS;
    uint64_t block = i < n ? i * blocks / n : 0;
    /* block 0 is the warm-up, and the only block of a pair with few launches; runs are replicates themselves
     */
    if (diff->by_runs || block == 0)
        return;
    struct diff_replicate *r = &diff->replicate[side][(size_t)pair * DIFF_BLOCKS + block];
    r->launches++;
    r->ns += (double)duration_ns;
}
