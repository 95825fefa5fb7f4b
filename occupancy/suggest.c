/* See suggest.h. Threads: any. */
#include "suggest.h"

#include <math.h>
#include <string.h>

#include "model.h"

/* A change with a predicted time ratio above this is a loss, and left out. */
#define LOSS_RATIO 1.02
/* Below this share of busy SMs, more blocks or warps per SM do not matter. */
#define SERIAL_SMS 0.5
/* Free room below 1 / LEAST_ROOM of the used amount is not worth advice. */
#define LEAST_ROOM 8
#define LEAST_HALF 64 /* minimum threads of a halved block */
/* Free registers or shared memory are of no use to a kernel that uses less than this: it is not short of
 * registers, or has no tile to enlarge. */
#define USEFUL_REGISTERS  32
#define USEFUL_SMEM_BYTES 1024
/* With less than this share of a kernel's registers the compiler is likely to spill. */
#define LEAST_REGISTERS_KEPT 0.75

/* ---- changes that need no more occupancy ---- */

/* Adds a change whose gain is not the model's occupancy. */
static void add(struct adviser *a, struct occ_advice change)
{
    struct occ_result then;
    if (a->count < a->max && occ_analyse(a->device, &change.launch, &then) == OCC_OK)
        occ_adviser_add(a, &change, &then);
}

static void add_fill_sms(struct adviser *a)
{
    struct occ_launch launch = *a->launch;
    uint64_t blocks = a->result->grid_blocks, sms = a->device->sm_count;
    if (blocks >= sms || occ_cluster_size(&launch) > 1 || a->result->wave_blocks <= sms)
        return;
    launch.grid[0] = (uint32_t)sms;
    launch.grid[1] = launch.grid[2] = 1;
    add(a, (struct occ_advice){.kind = OCC_ADVICE_FILL_SMS,
                               .now = blocks,
                               .needed = sms,
                               .cost_amount = sms - blocks,
                               .launch = launch});
}

static void add_block(struct adviser *a, enum occ_advice_kind kind, uint32_t threads)
{
    struct occ_launch launch = *a->launch;
    uint32_t now = occ_model_threads(a->launch);
    if (!occ_model_set(&launch, OCC_AXIS_BLOCK_SIZE, threads))
        return;
    uint64_t before = occ_model_threads_along_x(a->launch), after = occ_model_threads_along_x(&launch);
    uint64_t cost = threads < now ? launch.grid[0] - a->launch->grid[0] : after > before ? after - before : 0;
    add(a, (struct occ_advice){.kind = kind,
                               .now = now,
                               .needed = threads,
                               .cost_amount = cost * launch.grid[1] * launch.grid[2],
                               .launch = launch});
}

static uint32_t half_of(const struct adviser *a, uint32_t threads)
{
    return occ_round_up(threads / 2, a->device->warp_size);
}

static void add_split_block(struct adviser *a)
{
    uint64_t blocks = a->result->grid_blocks, sms = a->device->sm_count;
    uint32_t now = occ_model_threads(a->launch), threads = now;
    for (uint64_t n = blocks; n < sms && threads >= 2 * LEAST_HALF; n = blocks * now / threads)
        threads = half_of(a, threads);
    if (threads < now && occ_cluster_size(a->launch) == 1)
        add_block(a, OCC_ADVICE_SPLIT_BLOCK, threads);
}

static bool keeps_blocks(const struct adviser *a, enum occ_axis axis, uint32_t value,
                         struct occ_launch *ret_launch)
{
    struct occ_result then;
    *ret_launch = *a->launch;
    if (!occ_model_set(ret_launch, axis, value))
        return false;
    if (axis == OCC_AXIS_SMEM)
        ret_launch->smem_config_bytes = 0; /* the driver chooses a carve-out for the larger block */
    return occ_analyse(a->device, ret_launch, &then) == OCC_OK &&
           then.blocks_per_sm >= a->result->blocks_per_sm;
}

/* Advises the largest value of a resource that costs no block per SM, by bisection: blocks per SM never grow
 * with the value. */
static void add_free(struct adviser *a, enum occ_advice_kind kind, enum occ_axis axis, uint32_t max)
{
    uint32_t now = occ_sweep_present(a->launch, axis), enough = now, too_much = max + 1;
    struct occ_launch launch;
    while (too_much > enough && too_much - enough > 1) {
        uint32_t middle = enough + (too_much - enough) / 2;
        if (keeps_blocks(a, axis, middle, &launch))
            enough = middle;
        else
            too_much = middle;
    }
    if (enough >= now + now / LEAST_ROOM + 1 && keeps_blocks(a, axis, enough, &launch))
        add(a,
            (struct occ_advice){
                .kind = kind, .now = now, .needed = enough, .cost_amount = enough - now, .launch = launch});
}

static void add_blocks(struct adviser *a)
{
    uint32_t threads = occ_model_threads(a->launch), warp = a->device->warp_size;
    uint32_t half = half_of(a, threads), whole = occ_round_up(threads, warp);
    const uint32_t few = 1u << OCC_LIMIT_WARPS | 1u << OCC_LIMIT_BLOCKS;
    bool has_smem = a->launch->static_smem_bytes + a->launch->dynamic_smem_bytes > 0;
    if (has_smem && threads >= OCC_CROWDED_THREADS && half >= LEAST_HALF &&
        a->result->blocks_per_sm <= OCC_CROWDED_BLOCKS)
        add_block(a, OCC_ADVICE_HALF_BLOCK, half);
    if (threads < (uint32_t)OCC_SMALL_BLOCK && a->result->limiters & few)
        add_block(a, OCC_ADVICE_LARGER_BLOCK, (uint32_t)OCC_SMALL_BLOCK);
    if (threads != whole)
        add_block(a, OCC_ADVICE_WHOLE_WARPS, whole);
}

static bool may_spill(const struct occ_suggest_input *in)
{
    return in->spill_bytes > 0 || (in->spill_bytes < 0 && in->local_bytes > 0);
}

static void add_room(struct adviser *a, const struct occ_suggest_input *in)
{
    uint32_t smem_bytes = a->launch->static_smem_bytes + a->launch->dynamic_smem_bytes;
    if (may_spill(in) || a->launch->registers_per_thread >= USEFUL_REGISTERS)
        add_free(a, OCC_ADVICE_FREE_REGISTERS, OCC_AXIS_REGISTERS, a->device->max_registers_per_thread);
    if (smem_bytes >= USEFUL_SMEM_BYTES)
        add_free(a, OCC_ADVICE_FREE_SMEM, OCC_AXIS_SMEM, a->device->smem_per_block_optin_bytes);
}

static void add_more(struct adviser *a, const struct occ_suggest_input *in)
{
    if (in->has_grid) {
        add_fill_sms(a);
        add_split_block(a);
    }
    add_room(a, in);
    add_blocks(a);
}

/* ---- what is left out ---- */

static bool is_of_grid(enum occ_advice_kind kind)
{
    return (kind >= OCC_ADVICE_FILL_WAVE && kind <= OCC_ADVICE_GRID_STRIDE) || kind == OCC_ADVICE_FILL_SMS;
}

/* True for a persistent kernel: by its name, or by a grid of whole multiples of the SMs in one wave with a
 * sign of choice: exactly one block for each SM (a power of two may be chance), one block per SM with most of
 * the shared memory, or clusters. */
static bool is_persistent(const struct occ_suggest_input *in)
{
    const struct occ_result *result = in->result;
    if (in->traits & OCC_TRAIT_PERSISTENT)
        return true;
    if (!in->has_grid)
        return false;
    bool is_chosen =
        result->grid_blocks == in->device->sm_count && (result->grid_blocks & (result->grid_blocks - 1)) != 0;
    return result->by_design & OCC_BY_DESIGN_PERSISTENT &&
           (is_chosen || result->by_design & (OCC_BY_DESIGN_ONE_BLOCK_SMEM | OCC_BY_DESIGN_CLUSTER));
}

enum occ_work_bound occ_work_bound_of(const struct occ_hw_utilization *utilization, enum occ_bound bound)
{
    enum occ_hw_unit busiest = utilization ? occ_busiest_unit(utilization) : OCC_HW_COUNT;
    if (bound == OCC_BOUND_LATENCY)
        return OCC_WORK_LATENCY;
    if (bound != OCC_BOUND_BETWEEN && bound != OCC_BOUND_THROUGHPUT)
        return OCC_WORK_UNKNOWN;
    return busiest == OCC_HW_ISSUE || busiest == OCC_HW_TENSOR || busiest == OCC_HW_COMPUTE ? OCC_WORK_COMPUTE
                                                                                            : OCC_WORK_MEMORY;
}

#define TENSOR_ACTIVE_MIN 0.01 /* smaller values are noise */

uint32_t occ_likely_traits(uint32_t traits, const struct occ_hw_utilization *utilization)
{
    double active = utilization ? utilization->ratio[OCC_HW_TENSOR] : (double)NAN;
    return traits & ~(active < TENSOR_ACTIVE_MIN ? (uint32_t)OCC_TRAIT_TENSOR_CORES : 0);
}

bool occ_few_warps_by_design(const struct occ_suggest_input *in)
{
    const uint32_t few = OCC_BY_DESIGN_ONE_BLOCK_SMEM | OCC_BY_DESIGN_CLUSTER;
    return in->bound != OCC_WORK_LATENCY &&
           (in->traits & OCC_TRAIT_TENSOR_CORES || in->result->by_design & few || is_persistent(in));
}

bool occ_advice_is_per_sm(enum occ_advice_kind kind)
{
    return kind <= OCC_ADVICE_BLOCK_SIZE || kind == OCC_ADVICE_HALF_BLOCK || kind == OCC_ADVICE_LARGER_BLOCK;
}

static bool is_left_out(const struct occ_suggest_input *in, const struct occ_suggestion *s)
{
    enum occ_advice_kind kind = s->advice.kind;
    const struct occ_result *result = in->result;
    double busy = (double)result->grid_blocks / in->device->sm_count;
    if (s->prediction.ratio > LOSS_RATIO)
        return true;
    if ((is_of_grid(kind) || kind == OCC_ADVICE_SPLIT_BLOCK) &&
        (!in->has_grid || is_persistent(in) || in->owner == OCC_OWNER_COMMUNICATION ||
         result->waves > OCC_TAIL_WAVES))
        return true;
    return in->has_grid && busy < SERIAL_SMS && occ_advice_is_per_sm(kind);
}

/* ---- order ---- */

/* True for a change that the user of a framework or library cannot make: the kernel's code is the
 * framework's; a library's caller chooses only shapes, which set the grid. */
static bool is_of_others(enum occ_owner owner, enum occ_advice_kind kind)
{
    return owner == OCC_OWNER_FRAMEWORK ||
           (!is_of_grid(kind) && (owner == OCC_OWNER_LIBRARY || owner == OCC_OWNER_COMMUNICATION));
}

/* Rank of the work, not hours: 1 a launch parameter, 2 a few lines, 3 the compiler decides, 4 new code; 4
 * more for a change that the caller of a library cannot make. */
static int effort(enum occ_advice_kind kind, enum occ_owner owner)
{
    static const int of_kind[OCC_ADVICE_COUNT] = {
        [OCC_ADVICE_REGISTERS] = 3,      [OCC_ADVICE_SMEM] = 4,         [OCC_ADVICE_CARVEOUT] = 1,
        [OCC_ADVICE_BARRIERS] = 4,       [OCC_ADVICE_CLUSTER] = 2,      [OCC_ADVICE_REGISTERS_SMEM] = 4,
        [OCC_ADVICE_BLOCK_SIZE] = 1,     [OCC_ADVICE_FILL_WAVE] = 2,    [OCC_ADVICE_EVEN_GRID] = 2,
        [OCC_ADVICE_GRID_DOWN] = 2,      [OCC_ADVICE_GRID_UP] = 2,      [OCC_ADVICE_GRID_STRIDE] = 2,
        [OCC_ADVICE_FILL_SMS] = 2,       [OCC_ADVICE_FREE_SMEM] = 4,    [OCC_ADVICE_HALF_BLOCK] = 2,
        [OCC_ADVICE_FREE_REGISTERS] = 3, [OCC_ADVICE_LARGER_BLOCK] = 1, [OCC_ADVICE_WHOLE_WARPS] = 1,
        [OCC_ADVICE_SPLIT_BLOCK] = 1,
    };
    return of_kind[kind] + (is_of_others(owner, kind) ? 4 : 0);
}

double occ_confidence(const struct occ_term_row *published)
{
    return (published->faster + 1.0) / (published->cases + 2.0);
}

/* Predicted saving x confidence, rounded to percent, so that effort decides between nearly equal items. */
static double worth(const struct occ_suggestion *s)
{
    return round(100 * (1 - s->prediction.ratio) * occ_confidence(&s->prediction.published));
}

/* The order of items without a promise: the gain of theoretical occupancy. */
static double gain_of(const struct occ_suggestion *s)
{
    return s->advice.theoretical_then - s->advice.theoretical_now;
}

static int compare_reals(double a, double b)
{
    return (a < b) - (a > b);
}

static int by_rank(const struct occ_suggestion *a, const struct occ_suggestion *b, enum occ_owner owner)
{
    bool promised = a->prediction.is_promised;
    if (promised != b->prediction.is_promised)
        return promised ? -1 : 1;
    if (promised && a->is_forced != b->is_forced)
        return a->is_forced ? 1 : -1;
    int order = promised ? compare_reals(worth(a), worth(b)) : compare_reals(gain_of(a), gain_of(b));
    if (order == 0)
        order = effort(a->advice.kind, owner) - effort(b->advice.kind, owner);
    return order ? order : (int)a->advice.kind - (int)b->advice.kind;
}

/* Insertion sort: stable, without allocation, fast enough for a few items. */
static void sort(struct occ_suggestion *list, size_t n, enum occ_owner owner)
{
    for (size_t i = 1; i < n; i++) {
        struct occ_suggestion moved = list[i];
        size_t at = i;
        for (; at > 0 && by_rank(&moved, &list[at - 1], owner) < 0; at--)
            list[at] = list[at - 1];
        list[at] = moved;
    }
}

/* ---- the prediction of an item ---- */

static bool is_of_block(enum occ_advice_kind kind)
{
    return kind == OCC_ADVICE_BLOCK_SIZE || kind == OCC_ADVICE_SPLIT_BLOCK || kind == OCC_ADVICE_HALF_BLOCK ||
           kind == OCC_ADVICE_LARGER_BLOCK || kind == OCC_ADVICE_WHOLE_WARPS;
}

/* Returns true if a forced lower number of registers is likely to cause spills: the kernel may spill already,
 * has the device's maximum, would lose a large part of its registers, or keeps tiles of tensor cores there.
 */
static bool spills_by_force(const struct occ_suggest_input *in, const struct occ_suggestion *s)
{
    return s->is_forced && (may_spill(in) || in->traits & OCC_TRAIT_TENSOR_CORES ||
                            s->advice.now >= in->device->max_registers_per_thread ||
                            (double)s->advice.needed < LEAST_REGISTERS_KEPT * (double)s->advice.now);
}

/* True if the gain is not promised. Among other reasons: more warps by another block size helped in one of
 * six published cases. */
static bool is_withheld(const struct occ_suggest_input *in, const struct occ_suggestion *s)
{
    bool gains_warps = s->prediction.term == OCC_TERM_WARPS;
    return spills_by_force(in, s) || is_of_others(in->owner, s->advice.kind) ||
           (gains_warps && (is_of_block(s->advice.kind) || occ_few_warps_by_design(in))) ||
           (in->duration_ns > 0 && in->duration_ns < OCC_PROMISED_NS);
}

/* Limits the prediction: the time of an empty launch remains. If it limits the whole interval, no case tells
 * how far it is off. */
static void keep_launch_time(struct occ_prediction *p, double duration_ns)
{
    double least = duration_ns > 0 ? fmin(OCC_LAUNCH_NS / duration_ns, 1) : 0;
    p->ratio = fmax(p->ratio, least);
    p->low = p->high <= least ? NAN : fmax(p->low, least);
    p->high = p->high <= least ? NAN : p->high;
    p->is_promised &= p->ratio <= OCC_PROMISED_RATIO;
}

static bool predict(const struct occ_suggest_input *in, struct occ_suggestion *s)
{
    bool relieves = in->spill_bytes > 0 && s->advice.kind == OCC_ADVICE_FREE_REGISTERS;
    const struct occ_launch_change change = {
        .before = in->launch,
        .after = &s->advice.launch,
        .result = in->result,
        .spill_before = in->spill_bytes,
        .spill_after = relieves ? 0 : in->spill_bytes,
        .bound = in->bound,
        .owner = in->owner,
        .has_grid = in->has_grid,
    };
    if (!occ_predict(in->device, &change, &s->prediction))
        return false;
    s->is_forced = s->advice.kind == OCC_ADVICE_REGISTERS || s->advice.kind == OCC_ADVICE_REGISTERS_SMEM;
    keep_launch_time(&s->prediction, in->duration_ns);
    if (is_withheld(in, s))
        s->prediction.is_promised = false;
    return true;
}

static size_t index_of(const struct occ_suggestion *list, size_t n, enum occ_advice_kind kind)
{
    size_t i = 0;
    while (i < n && list[i].advice.kind != kind)
        i++;
    return i;
}

/* Drops one of a smaller and a larger grid of whole waves: the one farther from the present grid. */
static size_t drop_farther_grid(struct occ_suggestion *list, size_t n)
{
    size_t down = index_of(list, n, OCC_ADVICE_GRID_DOWN), up = index_of(list, n, OCC_ADVICE_GRID_UP);
    if (down == n || up == n)
        return n;
    size_t farther = list[down].advice.cost_amount > list[up].advice.cost_amount ? down : up;
    memmove(&list[farther], &list[farther + 1], (n - farther - 1) * sizeof *list);
    return n - 1;
}

/* Returns true if another item advises the same block size and takes precedence: an earlier item, or for
 * BLOCK_SIZE an item of any other kind. */
static bool is_repeated(const struct occ_suggestion *list, size_t n, size_t i)
{
    const struct occ_advice *this = &list[i].advice;
    bool is_repeated = false;
    for (size_t k = 0; k < n && is_of_block(this->kind); k++) {
        const struct occ_advice *other = &list[k].advice;
        is_repeated |= is_of_block(other->kind) && other->kind != OCC_ADVICE_BLOCK_SIZE &&
                       other->needed == this->needed && (k < i || this->kind == OCC_ADVICE_BLOCK_SIZE);
    }
    return is_repeated;
}

static size_t drop_equal_blocks(struct occ_suggestion *list, size_t n)
{
    bool drops[OCC_ADVICE_MAX];
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        drops[i] = is_repeated(list, n, i);
    for (size_t i = 0; i < n; i++)
        if (!drops[i])
            list[kept++] = list[i];
    return kept;
}

size_t occ_suggest(const struct occ_suggest_input *in, struct occ_suggestion ret_list[OCC_ADVICE_MAX])
{
    struct occ_advice advice[OCC_ADVICE_MAX];
    size_t found = occ_advise(in->device, in->launch, in->result, advice, OCC_ADVICE_MAX), n = 0;
    struct adviser a = {in->device, in->launch,     in->result,
                        advice,     OCC_ADVICE_MAX, found < OCC_ADVICE_MAX ? found : OCC_ADVICE_MAX};
    struct occ_result same;
    if (occ_analyse(in->device, in->launch, &same) != OCC_OK)
        return 0;
    struct occ_side now = occ_side_of(in->device, in->launch, in->result, in->has_grid);
    add_more(&a, in);
    for (size_t i = 0; i < a.count; i++) {
        struct occ_suggestion s = {.advice = advice[i]};
        if (!predict(in, &s) || is_left_out(in, &s))
            continue;
        s.is_unlikely = !s.prediction.is_promised && occ_advice_is_per_sm(advice[i].kind) &&
                        in->bound != OCC_WORK_LATENCY && now.warps >= occ_published_cases.warps_enough;
        ret_list[n++] = s;
    }
    n = drop_farther_grid(ret_list, n);
    sort(ret_list, n, in->owner);
    return drop_equal_blocks(ret_list, n);
}
