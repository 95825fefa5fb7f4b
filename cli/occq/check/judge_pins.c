/* See judge_pins.h. One thread. */
#include "judge_pins.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rules have no line of their own: findings have the lines of their pins. */
#define RULE_ROW(enumerator, word) {.class = RULE_CONFIG, .line = 1, .name = word},
static const struct rule rule_rows[] = {PIN_RULES(RULE_ROW)};

struct judge {
    const struct pin_terms *terms;
    struct occ_arena *texts;
    struct judgement *j;
    struct gate_architectures architectures; /* of the build */
    struct occ_error *err;
};

/* ---- findings ---- */

/* An allowance is of the kernel's name in the lock, or in the build. */
static const struct pin_allowance *allowance_of(const struct judge *judge, enum pin_rule rule,
                                                const struct pin_pair *pair)
{
    const struct pin_allowance *a = NULL;
    if (pair->before)
        a = pins_allowance_of(judge->terms->lock, rule, pair->before->kernel);
    return a || !pair->after ? a : pins_allowance_of(judge->terms->lock, rule, pair->after->kernel);
}

/* Adds a finding about a pair, unless an allowance covers it. */
static int find(const struct judge *judge, enum pin_rule rule, const struct pin_pair *pair, double share,
                const char *fault)
{
    struct rule_result *result = &judge->j->results[rule];
    const struct pin *pin = pair->before;
    const struct pin_allowance *allowance = allowance_of(judge, rule, pair);
    char architecture[PIN_ARCHITECTURE_BYTES], text[2 * GATE_TEXT_BYTES], key[64], name[GATE_NAME_BYTES];
    if (allowance && judge->terms->now_s < allowance->until_s) {
        result->allowed++;
        return 0;
    }
    (void)snprintf(text, sizeof text, "%s, %s%s%s", pin_architecture(pin, architecture), fault,
                   allowance ? "; its allowance ended on " : "", allowance ? allowance->until : "");
    /* a kernel has a finding for each architecture and copy */
    (void)snprintf(key, sizeof key, " %s %u", architecture, pin->copies > 1 ? pin->copy : 0);
    char *kernel = occ_arena_bytes(judge->texts, strlen(pin->name) + strlen(key) + 1);
    if (!kernel)
        return occ_no_memory(judge->err);
    (void)strcpy(stpcpy(kernel, pin->name), key);
    return judgement_add_finding(result,
                                 &(struct finding){.share = share, .kernel = kernel, .line = pin->line},
                                 gate_short_name(pin, name), text, judge->err);
}

/* ---- rules ---- */

static int judge_blocks(const struct judge *judge, size_t index, struct gate_effect *ret_effect)
{
    const struct pin_terms *terms = judge->terms;
    const struct pin_pair *pair = &terms->pairs->list[index];
    const struct gate_terms gate = {terms->pairs, terms->lock, terms->recorded};
    struct rule_result *result = &judge->j->results[PIN_RULE_BLOCKS];
    char change[GATE_TEXT_BYTES], effect[GATE_TEXT_BYTES], text[2 * GATE_TEXT_BYTES];
    gate_effect_of(&gate, index, ret_effect);
    result->judged += ret_effect->is_known;
    result->undecided += !ret_effect->is_known;
    if (ret_effect->fewer == 0)
        return 0;
    (void)snprintf(text, sizeof text, "%s: %s", gate_change_text(pair->before, pair->after, change),
                   gate_effect_text(ret_effect, terms->recorded->period, effect));
    return find(judge, PIN_RULE_BLOCKS, pair, isnan(ret_effect->share) ? 0 : ret_effect->share, text);
}

/* Fewer threads in the launch bounds are a loss where a known launch has more, or if no launch is known. */
static bool are_bounds_lost(uint32_t before, uint32_t after, const struct gate_effect *effect)
{
    bool is_lower = after > 0 && (before == 0 || after < before);
    return is_lower && (effect->largest_block == 0 || effect->largest_block > after);
}

/* Judges a resource that may not grow, or launch bounds. */
static int judge_resource(const struct judge *judge, enum pin_rule rule, enum pin_resource resource,
                          const struct pin_pair *pair, const struct gate_effect *effect)
{
    uint32_t before = pair->before->value[resource], after = pair->after->value[resource];
    char text[GATE_TEXT_BYTES];
    if (before == PIN_UNKNOWN || after == PIN_UNKNOWN)
        return 0;
    judge->j->results[rule].judged++;
    if (resource == PIN_BOUNDS ? !are_bounds_lost(before, after, effect) : after <= before)
        return 0;
    (void)snprintf(text, sizeof text, "%s %u -> %u", pin_resource_text(resource), before, after);
    return find(judge, rule, pair, isnan(effect->share) ? 0 : effect->share, text);
}

static int judge_both(const struct judge *judge, size_t index)
{
    static const struct {
        enum pin_rule rule;
        enum pin_resource resource;
    } resources[] = {
        {PIN_RULE_STACK, PIN_STACK}, {PIN_RULE_SPILLS, PIN_SPILLS}, {PIN_RULE_BOUNDS, PIN_BOUNDS}};
    struct gate_effect effect;
    judge->j->results[PIN_RULE_GONE].judged++;
    int status = judge_blocks(judge, index, &effect);
    for (size_t i = 0; i < sizeof resources / sizeof *resources && status == 0; i++)
        status = judge_resource(judge, resources[i].rule, resources[i].resource,
                                &judge->terms->pairs->list[index], &effect);
    return status;
}

/* A build for fewer architectures lacks their kernels: not judged. */
static int judge_gone(const struct judge *judge, const struct pin_pair *pair)
{
    struct rule_result *result = &judge->j->results[PIN_RULE_GONE];
    char architecture[PIN_ARCHITECTURE_BYTES];
    if (gate_has_architecture(&judge->architectures, pair->before)) {
        result->judged++;
        return find(judge, PIN_RULE_GONE, pair, 0, "is pinned, and not in the build");
    }
    result->undecided++;
    (void)snprintf(result->reason, sizeof result->reason, "%s is pinned, and not in the build",
                   pin_architecture(pair->before, architecture));
    return 0;
}

static int judge_pair(const struct judge *judge, size_t index)
{
    const struct pin_pair *pair = &judge->terms->pairs->list[index];
    if (pair->before && pair->after)
        return judge_both(judge, index);
    if (pair->before)
        return judge_gone(judge, pair);
    judge->j->results[PIN_RULE_BLOCKS].without_baseline++;
    judge->j->has_new = true;
    return 0;
}

/* ---- all ---- */

static void conclude(struct rule_result *result, bool is_needed)
{
    if (result->n_findings > 1)
        qsort(result->findings, result->n_findings, sizeof *result->findings, finding_by_share);
    result->state = result->n_findings > 0  ? RULE_FAILS
                    : result->undecided > 0 ? RULE_UNDECIDED
                    : result->judged > 0    ? RULE_HOLDS
                    : is_needed             ? RULE_NOT_JUDGED
                                            : RULE_SKIPPED;
    if (result->without_baseline > 0 && !result->reason[0])
        (void)snprintf(result->reason, sizeof result->reason, "new kernels have no pin");
}

/* A lock for other architectures, or of other kernels, judges nothing. */
static void explain_nothing(const struct judge *judge)
{
    struct rule_result *result = &judge->j->results[PIN_RULE_BLOCKS];
    struct gate_architectures pinned;
    char pins[64], build[64];
    if (result->judged > 0 || result->undecided > 0)
        return;
    if (judge->terms->lock->n == 0) {
        (void)snprintf(result->reason, sizeof result->reason, "the lock has no pins");
        return;
    }
    for (size_t i = 0; i < judge->terms->lock->n; i++)
        if (gate_has_architecture(&judge->architectures, &judge->terms->lock->list[i])) {
            (void)snprintf(result->reason, sizeof result->reason, "no kernel of the build has a pin");
            return;
        }
    gate_list_architectures(judge->terms->lock, &pinned);
    (void)snprintf(result->reason, sizeof result->reason, "the pins are for %s, the build is for %s",
                   gate_architectures_text(&pinned, pins, sizeof pins),
                   gate_architectures_text(&judge->architectures, build, sizeof build));
}

static size_t count_changed(const struct pin_terms *terms)
{
    size_t n = 0;
    for (size_t i = 0; i < terms->pairs->n; i++) {
        const struct pin_pair *pair = &terms->pairs->list[i];
        n += pair->before && pair->after && !pin_is_same(pair->before, pair->after);
    }
    return n;
}

int judge_pins(const struct pin_terms *terms, struct occ_arena *texts, struct judgement *j,
               size_t *ret_changed, struct occ_error *err)
{
    struct judge judge = {.terms = terms, .texts = texts, .j = j, .err = err};
    int status = 0;
    j->results = calloc(PIN_RULE_COUNT, sizeof *j->results);
    if (!j->results)
        return occ_no_memory(err);
    gate_list_architectures(&terms->build->pins, &judge.architectures);
    for (j->n = 0; j->n < PIN_RULE_COUNT; j->n++)
        j->results[j->n].rule = &rule_rows[j->n];
    for (size_t i = 0; i < terms->pairs->n && status == 0; i++)
        status = judge_pair(&judge, i);
    explain_nothing(&judge);
    for (size_t i = 0; i < j->n; i++) {
        conclude(&j->results[i], i == PIN_RULE_BLOCKS);
        j->count[j->results[i].state]++;
    }
    *ret_changed = count_changed(terms);
    return texts->failed ? occ_no_memory(err) : status;
}
