/* See corpus.h. Threads: any. */
#include "corpus.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/text.h"

/* ---- cells ---- */

struct reader {
    char *at, *end;
};

/* True if the row at r->at ends, and none of its cells has more than CORPUS_CELL_BYTES as written. The limit
 * bounds the search for the end of a quoted text. */
static bool is_row_whole(const struct reader *r)
{
    const char *cell = r->at;
    bool quoted = false;
    for (const char *c = r->at; c < r->end; c++) {
        if (c - cell > CORPUS_CELL_BYTES)
            return false;
        if (quoted && *c == '"' && c + 1 < r->end && c[1] == '"')
            c++;
        else if (*c == '"' && (quoted || c == cell))
            quoted = !quoted;
        else if (!quoted && *c == '\n')
            return true;
        else if (!quoted && *c == ',')
            cell = c + 1;
    }
    return !quoted;
}

static void skip_line(struct reader *r)
{
    char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->at = end ? end + 1 : r->end;
}

/* Reads one cell and unquotes it in place; *last: the cell ends its row. */
static char *read_cell(struct reader *r, bool *last)
{
    char *cell = r->at, *to = r->at;
    bool quoted = r->at < r->end && *r->at == '"';
    r->at += quoted;
    while (r->at < r->end) {
        char c = *r->at;
        if (quoted && c == '"') {
            if (r->at + 1 < r->end && r->at[1] == '"')
                r->at++;
            else {
                quoted = false;
                r->at++;
                continue;
            }
        } else if (!quoted && (c == ',' || c == '\n'))
            break;
        *to++ = *r->at++;
    }
    *last = r->at >= r->end || *r->at == '\n';
    if (r->at < r->end)
        r->at++;
    if (*last && to > cell && to[-1] == '\r')
        to--;
    *to = '\0'; /* overwrites at most the separator, or the byte behind the text */
    return cell;
}

static size_t read_row(struct reader *r, char *cells[CORPUS_COLUMNS_MAX])
{
    size_t n = 0;
    for (bool last = false; !last;) {
        char *cell = read_cell(r, &last);
        if (n < CORPUS_COLUMNS_MAX)
            cells[n] = cell;
        n++;
    }
    return n;
}

struct table {
    char *names[CORPUS_COLUMNS_MAX];
    size_t columns;
    char *cells[CORPUS_COLUMNS_MAX];
};

static const char *cell(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->columns; i++)
        if (strcmp(t->names[i], name) == 0)
            return t->cells[i];
    return "";
}

static const char *cell_of(const struct table *t, const char *prefix, const char *name)
{
    char full[64] = "";
    (void)strncat(full, prefix, 31);
    (void)strncat(full, name, 31);
    return cell(t, full);
}

/* ---- values; NaN or 0: missing or invalid ---- */

static double real_of(const char *text)
{
    double value;
    return occ_parse_double(text, -DBL_MAX, DBL_MAX, &value, NULL) == 0 ? value : (double)NAN;
}

static bool whole_of(const char *text, uint32_t max, uint32_t *ret)
{
    double value = real_of(text);
    if (!(value >= 0 && value <= max) || value != floor(value))
        return false;
    *ret = (uint32_t)value;
    return true;
}

/* Parses "32x4"; returns false for an empty text and without numbers. */
static bool dimensions_of(const char *text, uint32_t ret[3])
{
    uint32_t d[3] = {1, 1, 1};
    for (int i = 0; i < 3; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        unsigned long value = strtoul(text, &end, 10);
        if (value == 0 || value > 2147483647u)
            return false;
        d[i] = (uint32_t)value;
        text = *end == 'x' ? end + 1 : end;
        if (*end == '\0')
            break;
        if (*end != 'x' || i == 2)
            return false;
    }
    memcpy(ret, d, sizeof d);
    return true;
}

static void set_text(char *to, size_t size, const char *from, const char *stops)
{
    size_t n = strcspn(from, stops);
    n = n < size - 1 ? n : size - 1;
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] >= ' ' && from[i] < 127 ? from[i] : '?';
    to[n] = '\0';
}

/* ---- a side ---- */

struct given {
    bool block, grid, registers, smem;
    double theoretical;
    uint32_t blocks_per_sm;
};

static const char *const prefixes[] = {"before_", "after_"};
static const char *const suffixes[] = {"before", "after"};

static struct given read_side(const struct table *t, int side, struct occ_launch *launch)
{
    const char *p = prefixes[side];
    struct given g = {.theoretical = real_of(cell_of(t, p, "theoretical"))};
    g.block = dimensions_of(cell_of(t, p, "block"), launch->block);
    g.grid = dimensions_of(cell_of(t, p, "grid"), launch->grid);
    g.registers = whole_of(cell_of(t, p, "regs"), 255, &launch->registers_per_thread);
    g.smem = whole_of(cell_of(t, p, "dynamic_smem"), 1u << 20, &launch->dynamic_smem_bytes);
    g.smem |= whole_of(cell_of(t, p, "static_smem"), 1u << 20, &launch->static_smem_bytes);
    if (!whole_of(cell_of(t, p, "blocks_per_sm"), 1024, &g.blocks_per_sm))
        g.blocks_per_sm = 0;
    return g;
}

static bool is_ratio(double value)
{
    return value > 0 && value <= 1;
}

#define ASSUMED_THREADS   128 /* assumption where only an occupancy is given */
#define ASSUMED_REGISTERS 32

/* Makes a launch with the given occupancy, limited by shared memory. */
static bool make_launch(const struct occ_device *device, double theoretical, uint32_t blocks,
                        struct occ_launch *launch)
{
    double threads = theoretical * device->max_threads_per_sm;
    if (blocks == 0)
        blocks = (uint32_t)fmax(1, fmin(round(threads / ASSUMED_THREADS), device->max_blocks_per_sm));
    double block = 32 * round(threads / blocks / 32);
    if (!(block >= 32 && block <= device->max_threads_per_block))
        return false;
    launch->block[0] = (uint32_t)block;
    launch->block[1] = launch->block[2] = 1;
    launch->registers_per_thread = ASSUMED_REGISTERS;
    launch->static_smem_bytes = 0;
    uint32_t each = device->smem_per_sm_bytes / blocks / device->smem_unit_bytes * device->smem_unit_bytes;
    uint32_t most = device->smem_per_block_optin_bytes, reserve = device->smem_reserved_per_block_bytes;
    launch->dynamic_smem_bytes = each > reserve ? each - reserve : 0;
    if (launch->dynamic_smem_bytes > most)
        launch->dynamic_smem_bytes = most;
    return true;
}

/* Sets block and registers from the corpus' own calculation where the source has none. */
static void complete(const struct table *t, int side, const struct occ_device *device, struct given *g,
                     struct occ_launch *launch)
{
    double theoretical = g->theoretical;
    uint32_t blocks = g->blocks_per_sm;
    if (g->block && g->registers)
        return;
    if (!is_ratio(theoretical))
        theoretical = real_of(cell_of(t, "calc_theoretical_", suffixes[side]));
    if (blocks == 0 && !whole_of(cell_of(t, "calc_blocks_per_sm_", suffixes[side]), 1024, &blocks))
        blocks = 0;
    if (is_ratio(theoretical) && !g->block && make_launch(device, theoretical, blocks, launch))
        g->block = g->registers = g->smem = true;
    if (is_ratio(theoretical) && g->block && !g->registers && blocks > 0 &&
        make_launch(device, theoretical, blocks, launch))
        g->registers = g->smem = true;
}

/* Copies properties that the source gives only for the side before to the side after. */
static void inherit(struct corpus_row *row, struct given g[2])
{
    struct occ_launch *b = &row->launch[0], *a = &row->launch[1];
    if (!g[1].block)
        memcpy(a->block, b->block, sizeof a->block);
    if (!g[1].registers)
        a->registers_per_thread = b->registers_per_thread;
    if (!g[1].smem) {
        a->static_smem_bytes = b->static_smem_bytes;
        a->dynamic_smem_bytes = b->dynamic_smem_bytes;
    }
    row->has_grid = g[0].grid && (g[1].grid || row->knob != CORPUS_GRID);
    if (!row->has_grid) {
        for (int i = 0; i < 2; i++)
            row->launch[i].grid[0] = 1u << 20, row->launch[i].grid[1] = row->launch[i].grid[2] = 1;
        return;
    }
    if (!g[1].grid) {
        double threads_b = (double)b->block[0] * b->block[1] * b->block[2];
        double threads_a = (double)a->block[0] * a->block[1] * a->block[2];
        memcpy(a->grid, b->grid, sizeof a->grid);
        a->grid[0] = (uint32_t)fmin(fmax(ceil(b->grid[0] * threads_b / threads_a), 1), 2147483647.0);
    }
}

static bool is_known(const struct corpus_row *row, const struct given g[2])
{
    if (!g[0].block)
        return false;
    switch (row->knob) {
    case CORPUS_GRID:
        return g[0].grid && g[1].grid;
    case CORPUS_BLOCK:
        return g[1].block;
    case CORPUS_REGISTERS:
        return g[0].registers && g[1].registers;
    case CORPUS_SMEM:
        return g[0].smem && g[1].smem;
    default:
        return false;
    }
}

/* Applies a stated occupancy, which has precedence over inherited values. */
static void state_occupancy(struct corpus_row *row, int side, const struct given *g)
{
    struct occ_side *s = &row->side[side];
    if (g->blocks_per_sm > 0 && g->blocks_per_sm != s->blocks_per_sm) {
        s->warps *= (double)g->blocks_per_sm / s->blocks_per_sm;
        s->blocks_per_sm = g->blocks_per_sm;
    }
    if (is_ratio(g->theoretical) && !row->has_grid)
        s->warps = g->theoretical * row->result[side].max_warps_per_sm;
}

/* ---- a row ---- */

/* Numbers; cells may be empty. */
static const struct number_rule {
    const char *name;
    bool has_sides; /* the column's name begins with before_ or after_ */
    double min, max;
    bool is_whole;
    const char *reason;
} number_rules[] = {
    {"time_before", false, DBL_TRUE_MIN, DBL_MAX, false, "a time that is not above 0"},
    {"time_after", false, DBL_TRUE_MIN, DBL_MAX, false, "a time that is not above 0"},
    {"regs", true, 1, 255, true, "registers outside 1 to 255"},
    {"static_smem", true, 0, 1u << 20, true, "an impossible number of bytes"},
    {"dynamic_smem", true, 0, 1u << 20, true, "an impossible number of bytes"},
    {"spill_bytes", true, 0, 1u << 20, true, "an impossible number of bytes"},
    {"blocks_per_sm", true, 0, 1024, true, "an impossible number of blocks"},
    {"calc_blocks_per_sm_before", false, 0, 1024, true, "an impossible number of blocks"},
    {"calc_blocks_per_sm_after", false, 0, 1024, true, "an impossible number of blocks"},
    {"theoretical", true, DBL_TRUE_MIN, 1, false, "an occupancy outside 0 to 1"},
    {"calc_theoretical_before", false, DBL_TRUE_MIN, 1, false, "an occupancy outside 0 to 1"},
    {"calc_theoretical_after", false, DBL_TRUE_MIN, 1, false, "an occupancy outside 0 to 1"},
};

static bool is_bad_number(const struct number_rule *rule, const char *text)
{
    double value = real_of(text);
    return text[0] &&
           !(value >= rule->min && value <= rule->max && (!rule->is_whole || value == floor(value)));
}

static bool is_bad_size(const char *text)
{
    uint32_t size[3];
    return text[0] && !dimensions_of(text, size);
}

/* Returns the first reason why a cell cannot be true; NULL: none. */
static const char *check_cells(const struct table *t)
{
    for (size_t i = 0; i < 2; i++)
        if (is_bad_size(cell_of(t, prefixes[i], "block")) || is_bad_size(cell_of(t, prefixes[i], "grid")))
            return "a block or grid that is no size";
    for (size_t i = 0; i < sizeof number_rules / sizeof *number_rules; i++) {
        const struct number_rule *rule = &number_rules[i];
        for (size_t side = 0; side < (rule->has_sides ? 2 : 1); side++)
            if (is_bad_number(rule, cell_of(t, rule->has_sides ? prefixes[side] : "", rule->name)))
                return rule->reason;
    }
    return NULL;
}

/* True if a change of the block, registers or shared memory left all that the row states as it was. A grid
 * may stay: larger tiles change the work of its blocks. */
static bool is_unchanged(const struct corpus_row *row)
{
    const struct occ_launch *b = &row->launch[0], *a = &row->launch[1];
    const struct occ_side *before = &row->side[0], *after = &row->side[1];
    return row->knob != CORPUS_GRID && memcmp(b->block, a->block, sizeof b->block) == 0 &&
           memcmp(b->grid, a->grid, sizeof b->grid) == 0 &&
           b->registers_per_thread == a->registers_per_thread &&
           b->static_smem_bytes == a->static_smem_bytes && b->dynamic_smem_bytes == a->dynamic_smem_bytes &&
           before->warps == after->warps && before->blocks_per_sm == after->blocks_per_sm &&
           before->spill_bytes == after->spill_bytes;
}

static enum corpus_knob knob_of(const char *change)
{
    static const struct {
        const char *word;
        enum corpus_knob knob;
    } words[] = {
        {"registers", CORPUS_REGISTERS}, {"launch_bounds", CORPUS_REGISTERS},
        {"block_size", CORPUS_BLOCK},    {"grid", CORPUS_GRID},
        {"tail", CORPUS_GRID},           {"persistent", CORPUS_GRID},
        {"smem", CORPUS_SMEM},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(change, words[i].word) == 0)
            return words[i].knob;
    return CORPUS_OTHER;
}

static enum occ_work_bound bound_of(const char *word)
{
    return strcmp(word, "latency") == 0   ? OCC_WORK_LATENCY
           : strcmp(word, "memory") == 0  ? OCC_WORK_MEMORY
           : strcmp(word, "compute") == 0 ? OCC_WORK_COMPUTE
                                          : OCC_WORK_UNKNOWN;
}

static enum occ_owner owner_of(const char *word)
{
    return strcmp(word, "library") == 0  ? OCC_OWNER_LIBRARY
           : strcmp(word, "triton") == 0 ? OCC_OWNER_TRITON
           : strcmp(word, "user") == 0   ? OCC_OWNER_USER
                                         : OCC_OWNER_UNKNOWN;
}

static double value_of(const struct occ_launch *l, enum corpus_knob knob)
{
    switch (knob) {
    case CORPUS_REGISTERS:
        return l->registers_per_thread;
    case CORPUS_BLOCK:
        return (double)l->block[0] * l->block[1] * l->block[2];
    case CORPUS_GRID:
        return (double)l->grid[0] * l->grid[1] * l->grid[2];
    default:
        return (double)l->static_smem_bytes + l->dynamic_smem_bytes;
    }
}

/* True if a row's times contradict its ratio. A row may state rates, with the inverse ratio. */
static bool contradicts(const struct table *t, double ratio)
{
    double before = real_of(cell(t, "time_before")), after = real_of(cell(t, "time_after"));
    if (!(before > 0 && after > 0))
        return false;
    double error = fmin(fabs(log(after / before / ratio)), fabs(log(before / after / ratio)));
    return error > 0.1;
}

static const char *analyse(struct corpus_row *row, const struct given g[2])
{
    for (int i = 0; i < 2; i++) {
        if (occ_analyse(&row->device, &row->launch[i], &row->result[i]) != OCC_OK)
            return i ? "the launch after is impossible" : "the launch before is impossible";
        row->side[i] = occ_side_of(&row->device, &row->launch[i], &row->result[i], row->has_grid);
        state_occupancy(row, i, &g[i]);
    }
    double difference = value_of(&row->launch[1], row->knob) - value_of(&row->launch[0], row->knob);
    row->direction = (difference > 0) - (difference < 0);
    return NULL;
}

static const char *read_values(const struct table *t, struct corpus_row *row)
{
    struct given g[2];
    bool is_stated = true;
    row->ratio = real_of(cell(t, "ratio"));
    row->knob = knob_of(cell(t, "change"));
    row->bound = bound_of(cell(t, "bound"));
    row->owner = owner_of(cell(t, "owner"));
    if (!(row->ratio > 0 && row->ratio < 1e6))
        return "no ratio";
    const char *why = check_cells(t);
    if (why)
        return why;
    if (contradicts(t, row->ratio))
        return "times contradict the ratio";
    if (occ_device_from_name(cell(t, "gpu"), &row->device) != OCC_OK)
        return "no known GPU";
    for (int i = 0; i < 2; i++) {
        row->launch[i] = (struct occ_launch){.grid = {1, 1, 1}, .block = {1, 1, 1}, .carveout_percent = -1};
        g[i] = read_side(t, i, &row->launch[i]);
        is_stated &= i > 0 || g[0].block || g[0].grid || g[0].blocks_per_sm > 0;
        complete(t, i, &row->device, &g[i], &row->launch[i]);
    }
    if (!is_known(row, g))
        return "not both sides are known";
    if (!g[0].registers)
        row->launch[0].registers_per_thread = ASSUMED_REGISTERS;
    row->has_launch = is_stated;
    inherit(row, g);
    why = analyse(row, g);
    for (int i = 0; i < 2 && !why; i++) {
        uint32_t spills;
        if (whole_of(cell_of(t, prefixes[i], "spill_bytes"), 1u << 20, &spills))
            row->side[i].spill_bytes = spills;
    }
    return why ? why : is_unchanged(row) ? "before and after are equal" : NULL;
}

static void read_one(const struct table *t, size_t cells, struct corpus_row *row)
{
    set_text(row->id, sizeof row->id, cell(t, "id"), "");
    set_text(row->source, sizeof row->source, cell(t, "source"), "#:");
    row->skipped = cells == t->columns ? read_values(t, row) : "another number of cells than columns";
}

static bool has_columns(const struct table *t)
{
    static const char *const needed[] = {"id", "source", "gpu", "change", "ratio"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        bool found = false;
        for (size_t k = 0; k < t->columns; k++)
            found |= strcmp(t->names[k], needed[i]) == 0;
        if (!found)
            return false;
    }
    return true;
}

static bool read_rows(struct reader *r, struct table *t, struct corpus *corpus)
{
    char nothing = '\0';
    size_t room = 0;

    while (r->at < r->end) {
        if (corpus->n == CORPUS_ROWS_MAX) {
            corpus->is_cut = true;
            return true;
        }
        if (corpus->n == room) {
            room = room ? 2 * room : 64;
            struct corpus_row *more = realloc(corpus->rows, room * sizeof *more);
            if (!more)
                return false;
            corpus->rows = more;
        }
        for (size_t i = 0; i < CORPUS_COLUMNS_MAX; i++)
            t->cells[i] = &nothing;
        struct corpus_row *row = &corpus->rows[corpus->n];
        *row = (struct corpus_row){.direction = 0};
        if (!is_row_whole(r)) {
            set_text(row->id, sizeof row->id, r->at, ",\n");
            skip_line(r);
            row->skipped = "a cell without an end, or too long";
            corpus->n++;
            continue;
        }
        size_t n = read_row(r, t->cells);
        if (n == 1 && t->cells[0][0] == '\0')
            continue; /* an empty line */
        read_one(t, n, &corpus->rows[corpus->n++]);
    }
    return true;
}

struct corpus *corpus_parse(const char *text, size_t size, const char **ret_why)
{
    struct table t = {.columns = 0};
    struct corpus *corpus = calloc(1, sizeof *corpus);
    char *copy = malloc(size + 1); /* the last cell ends behind the text */
    *ret_why = NULL;
    if (corpus && copy) {
        memcpy(copy, text, size);
        copy[size] = '\0';
        struct reader r = {copy, copy + size};
        t.columns = read_row(&r, t.names);
        if (t.columns > CORPUS_COLUMNS_MAX || !has_columns(&t))
            *ret_why = "no columns id, source, gpu, change, ratio";
        else if (!read_rows(&r, &t, corpus))
            *ret_why = "no memory";
    } else
        *ret_why = "no memory";
    free(copy);
    if (!*ret_why)
        return corpus;
    corpus_free(corpus);
    return NULL;
}

void corpus_free(struct corpus *corpus)
{
    if (corpus)
        free(corpus->rows);
    free(corpus);
}
