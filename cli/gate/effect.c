/* Blocks per SM and predicted time of a kernel in two builds; see gate.h. Pure; any thread. */
#include <math.h>
#include <string.h>

#include "cli/kernels/show.h"
#include "cli/sides/report.h"
#include "gate.h"
#include "image/image.h"
#include "support/text.h"

OCC_WORDS(gate_source_word, enum gate_source, GATE_SOURCES)

static uint32_t known_or_0(uint32_t value)
{
    return value == PIN_UNKNOWN ? 0 : value;
}

/* Sets the resources that the compiler chose. */
static void use_pin(struct occ_launch *launch, const struct pin *pin)
{
    launch->registers_per_thread = pin->value[PIN_REGISTERS];
    launch->static_smem_bytes = known_or_0(pin->value[PIN_SHARED]);
    launch->barriers = known_or_0(pin->value[PIN_BARRIERS]);
}

/* ---- one launch ---- */

struct both {
    struct occ_launch before, after;
    struct occ_result result; /* before */
    uint32_t blocks[2];
};

/* Returns false if the launch is impossible in both builds, so that nothing is compared. */
static bool compare_launch(const struct pin_pair *pair, const struct occ_device *device,
                           const struct occ_launch *launch, struct both *ret_both)
{
    struct occ_result then;
    *ret_both = (struct both){.before = *launch, .after = *launch};
    use_pin(&ret_both->before, pair->before);
    use_pin(&ret_both->after, pair->after);
    bool was = occ_analyse(device, &ret_both->before, &ret_both->result) == OCC_OK;
    bool is = occ_analyse(device, &ret_both->after, &then) == OCC_OK;
    ret_both->blocks[0] = was ? ret_both->result.blocks_per_sm : 0;
    ret_both->blocks[1] = is ? then.blocks_per_sm : 0;
    return was || is;
}

/* The loss of blocks: 0 ... 1; below 0 for a gain. */
static double loss(uint32_t before, uint32_t after)
{
    double most = before > after ? before : after;
    return ((double)before - (double)after) / most;
}

/* Counts a launch. `prefers`: keeps it as the example for people. */
static void count(struct gate_effect *effect, const struct both *both, bool prefers)
{
    uint32_t before = both->blocks[0], after = both->blocks[1];
    effect->is_known = true;
    effect->compared++;
    effect->fewer += after < before;
    effect->more += after > before;
    if (!prefers && effect->compared > 1)
        return;
    effect->threads = (uint32_t)diff_product(both->before.block);
    effect->dynamic_bytes = both->before.dynamic_smem_bytes;
    effect->blocks_before = before;
    effect->blocks_after = after;
}

/* ---- launches without a recording ---- */

static void compare_size(const struct pin_pair *pair, struct pin_launch size, struct gate_effect *effect)
{
    struct occ_device device = {.cc = pair->after->sm, .sm_count = 1};
    const struct occ_launch launch = {.grid = {1, 1, 1},
                                      .block = {size.threads, 1, 1},
                                      .dynamic_smem_bytes = size.dynamic_bytes,
                                      .carveout_percent = -1};
    struct both both;
    if (occ_device_complete(&device) != OCC_OK || !compare_launch(pair, &device, &launch, &both))
        return;
    double worst = effect->is_known ? loss(effect->blocks_before, effect->blocks_after) : 0;
    double now = loss(both.blocks[0], both.blocks[1]);
    count(effect, &both, worst > 0 ? now > worst : now > 0 || now < worst);
}

static void compare_sizes(const struct gate_terms *terms, const struct pin_pair *pair,
                          struct gate_effect *effect)
{
    static const struct pin_launch assumed[] = {{128, 0}, {256, 0}, {512, 0}, {1024, 0}};
    const struct pin_launches *stated =
        terms->lock ? pins_launches_of(terms->lock, pair->after->kernel) : NULL;
    uint32_t old = known_or_0(pair->before->value[PIN_BOUNDS]),
             new = known_or_0(pair->after->value[PIN_BOUNDS]);
    const struct pin_launch bounds = {old && (!new || old < new) ? old : new, 0};
    const struct pin_launch *sizes = stated ? stated->list : bounds.threads ? &bounds : assumed;
    size_t n = stated ? stated->n : bounds.threads ? 1 : sizeof assumed / sizeof *assumed;
    effect->source = stated ? GATE_STATED : bounds.threads ? GATE_BOUNDS : GATE_ASSUMED;
    effect->largest_block = stated ? stated->list[stated->n - 1].threads : 0;
    for (size_t i = 0; i < n; i++)
        compare_size(pair, sizes[i], effect);
}

/* ---- recorded launches ---- */

/* True if the pair is of this kernel. Pairs of a kernel follow each other, also those that are gone. */
static bool is_of_kernel(const struct pin_pair *pair, const char *kernel)
{
    return strcmp((pair->after ? pair->after : pair->before)->kernel, kernel) == 0;
}

/* True if no other kernel of this name in the build suits the device better. */
static bool is_for_device(const struct gate_terms *terms, size_t index, uint32_t cc)
{
    const struct pin_pair *list = terms->pairs->list;
    const struct pin *pin = list[index].after;
    size_t first = index;
    if (!occ_image_runs_on(pin->sm, pin->suffix, cc))
        return false;
    while (first > 0 && is_of_kernel(&list[first - 1], pin->kernel))
        first--;
    for (size_t i = first; i < terms->pairs->n && is_of_kernel(&list[i], pin->kernel); i++) {
        const struct pin *other = list[i].after;
        if (other && other->sm > pin->sm && occ_image_runs_on(other->sm, other->suffix, cc))
            return false;
    }
    return true;
}

/* The recorded launch without choices of the driver that depend on the kernel's resources. */
static struct occ_launch launch_of(const struct occ_config_row *row, const struct pin_pair *pair)
{
    struct occ_launch launch = row->launch;
    launch.dynamic_smem_bytes = gate_dynamic_bytes(row, pair->before);
    if (pair->before->value[PIN_SHARED] != pair->after->value[PIN_SHARED])
        launch.smem_config_bytes = 0;
    if (launch.carveout_percent < -1 || launch.carveout_percent > 100)
        launch.carveout_percent = -1;
    launch.max_active_clusters = 0;
    launch.max_dynamic_smem_known = false;
    return launch;
}

static int64_t spills_of(const struct pin *pin)
{
    return pin->value[PIN_SPILLS] == PIN_UNKNOWN ? -1 : (int64_t)pin->value[PIN_SPILLS];
}

static bool predict(const struct pin_pair *pair, const struct occ_config_row *row, const struct both *both,
                    struct occ_prediction *ret_prediction)
{
    struct occ_measurement means;
    const struct analysis a = show_analysis(row, &means);
    const struct occ_launch_change change = {
        .before = &both->before,
        .after = &both->after,
        .result = &both->result,
        .spill_before = spills_of(pair->before),
        .spill_after = spills_of(pair->after),
        .bound = occ_work_bound_of(&means.utilization, analysis_bound(&a)),
        .owner = analysis_owner(&a).owner,
        .has_grid = true,
    };
    return both->blocks[0] > 0 && both->blocks[1] > 0 && occ_predict(&row->limits, &change, ret_prediction);
}

/* Sums over recorded launches with a changed number of blocks, or of spills. */
struct sums {
    double ns, ratio, low, high;
    uint64_t example_ns;
    bool is_incomplete; /* a launch has no prediction */
};

/* Blocks that the grid does not have are no loss. */
static void limit_to_grid(const struct occ_config_row *row, struct both *both)
{
    uint64_t sms = row->limits.sm_count ? row->limits.sm_count : 1;
    uint64_t most = ((uint64_t)diff_product(row->launch.grid) + sms - 1) / sms;
    for (int i = 0; i < 2; i++)
        if (both->blocks[i] > most)
            both->blocks[i] = (uint32_t)most;
}

static void add_row(const struct pin_pair *pair, const struct occ_config_row *row, struct gate_effect *effect,
                    struct sums *sums)
{
    const struct occ_launch launch = launch_of(row, pair);
    struct both both;
    struct occ_prediction p;
    uint32_t threads = (uint32_t)diff_product(row->launch.block);
    if (!compare_launch(pair, &row->limits, &launch, &both))
        return;
    limit_to_grid(row, &both);
    bool is_changed = both.blocks[0] != both.blocks[1] || spills_of(pair->before) != spills_of(pair->after);
    bool prefers = is_changed && row->total_ns >= sums->example_ns;
    effect->largest_block = threads > effect->largest_block ? threads : effect->largest_block;
    count(effect, &both, prefers);
    if (!is_changed)
        return;
    sums->example_ns = prefers ? row->total_ns : sums->example_ns;
    effect->changed++;
    effect->changed_ns += row->total_ns;
    if (!predict(pair, row, &both, &p)) {
        sums->is_incomplete = true;
        return;
    }
    double ns = (double)row->total_ns;
    sums->ns += ns;
    sums->ratio += ns * p.ratio;
    sums->low += ns * p.low;
    sums->high += ns * p.high;
}

/* The errors of one prediction model are not independent, so the ends of intervals add up. */
static void conclude(const struct gate_recorded *recorded, const struct sums *sums,
                     struct gate_effect *effect)
{
    effect->share = recorded->all_ns ? (double)effect->changed_ns / (double)recorded->all_ns : (double)NAN;
    if (sums->is_incomplete || !(sums->ns > 0))
        return;
    effect->ratio = sums->ratio / sums->ns;
    effect->low = sums->low / sums->ns;
    effect->high = sums->high / sums->ns;
}

static void compare_recorded(const struct gate_terms *terms, size_t index, struct gate_effect *effect)
{
    const struct pin_pair *pair = &terms->pairs->list[index];
    struct sums sums = {.ns = 0};
    size_t n = 0;
    const struct occ_config_row *rows = gate_rows_of(terms->recorded, pair->after->name, &n);
    for (size_t i = 0; i < n; i++)
        if (is_for_device(terms, index, rows[i].limits.cc))
            add_row(pair, &rows[i], effect, &sums);
    if (effect->is_known)
        conclude(terms->recorded, &sums, effect);
}

void gate_effect_of(const struct gate_terms *terms, size_t index, struct gate_effect *ret_effect)
{
    const struct pin_pair *pair = &terms->pairs->list[index];
    *ret_effect = (struct gate_effect){.share = NAN, .ratio = NAN, .low = NAN, .high = NAN};
    if (pair->before->value[PIN_REGISTERS] == PIN_UNKNOWN || pair->after->value[PIN_REGISTERS] == PIN_UNKNOWN)
        return;
    compare_recorded(terms, index, ret_effect);
    if (!ret_effect->is_known)
        compare_sizes(terms, pair, ret_effect);
}
