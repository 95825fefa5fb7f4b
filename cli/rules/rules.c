/* The rules file: a mapping of lists of mappings of scalars; see rules.h. One thread. */
#include "rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "config/yaml_reader.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/paths.h"
#include "support/text.h"

double rule_number_of(enum rule_number number, const struct occ_config_row *row)
{
    const double values[] = {
#define NUMBER(key, word, value) (double)(value),
        RULE_NUMBERS(NUMBER)};
    return values[number];
}

OCC_WORDS(rule_number_word, enum rule_number, RULE_NUMBERS)

/* An operator comes before its own prefix: ">=" before ">". */
static const char *const comparisons[] = {">=", "<=", "==", ">", "<"};

bool rule_condition_holds(const struct rule_condition *condition, double number, double of_baseline)
{
    double limit = condition->of_baseline ? of_baseline : condition->value;
    const bool holds[] = {number >= limit, number <= limit, !(number < limit || number > limit),
                          number > limit, number < limit};
    return holds[condition->comparison];
}

bool rule_matches(const struct rule *rule, int64_t kernel)
{
    return !rule->kernel || occ_map_get(&rule->kernels, (uint64_t)kernel) != OCC_MAP_NONE;
}

/* ---- values ---- */

/* Parses "25%" or "0.25". */
static int parse_ratio(const char *text, double *ret_ratio, struct occ_error *err)
{
    char number[64];
    size_t n = strlen(text);
    bool is_percent = n > 0 && text[n - 1] == '%';
    (void)snprintf(number, sizeof number, "%.*s", (int)(is_percent ? n - 1 : n), text);
    int status = occ_parse_double(number, 0, 1e15, ret_ratio, err);
    *ret_ratio /= status == 0 && is_percent ? 100 : 1;
    return status;
}

static int parse_condition(const char *text, struct rule_condition *condition, struct occ_error *err)
{
    size_t i = 0, n = sizeof comparisons / sizeof *comparisons;
    while (i < n && strncmp(text, comparisons[i], strlen(comparisons[i])) != 0)
        i++;
    if (i == n)
        return occ_fail(err, OCC_E_INVALID, "a comparison is expected here, as '>= 25%%' or '<= baseline'");
    (void)snprintf(condition->text, sizeof condition->text, "%s", text);
    condition->comparison = i;
    text += strlen(comparisons[i]);
    text += strspn(text, " ");
    condition->of_baseline = strcmp(text, "baseline") == 0;
    return condition->of_baseline ? 0 : parse_ratio(text, &condition->value, err);
}

static int add_condition(struct rule *rule, enum rule_number number, const char *text, struct occ_error *err)
{
    struct rule_condition *condition = &rule->conditions[rule->n_conditions];
    if (rule->n_conditions == RULE_CONDITIONS)
        return occ_fail(err, OCC_E_INVALID, "a rule has at most %d conditions", RULE_CONDITIONS);
    condition->number = number;
    int status = parse_condition(text, condition, err);
    bool is_ratio = number >= RULE_NUMBER_theoretical && number <= RULE_NUMBER_expected_elapsed_high;
    if (status == 0 && is_ratio && !condition->of_baseline && condition->value > 1)
        return occ_fail(err, OCC_E_INVALID, "an occupancy is 0 to 1, or 0%% to 100%%");
    rule->n_conditions += status == 0;
    return status;
}

static int copy_text(const char *text, char copy[RULE_TEXT_BYTES], struct occ_error *err)
{
    if (text[0] == '\0' || strlen(text) >= RULE_TEXT_BYTES)
        return occ_fail(err, OCC_E_INVALID, "1 to %d bytes are expected here", RULE_TEXT_BYTES - 1);
    (void)snprintf(copy, RULE_TEXT_BYTES, "%s", text);
    return 0;
}

/* Sets the kernel; only the file's size limits the length of a kernel's name. */
static int set_kernel(struct rule *rule, const char *text, struct occ_error *err)
{
    if (text[0] == '\0')
        return occ_fail(err, OCC_E_INVALID, "a kernel is expected here");
    rule->kernel = strdup(text);
    return rule->kernel ? 0 : occ_no_memory(err);
}

static int parse_word(const char *text, const char *const *words, size_t *ret_index, struct occ_error *err)
{
    for (*ret_index = 0; words[*ret_index]; ++*ret_index)
        if (strcmp(words[*ret_index], text) == 0)
            return 0;
    return cli_fail_unknown("word", "", text, strlen(text), words, err);
}

/* ---- keys ---- */

enum key {
    KEY_RULE,
    KEY_KERNEL,
    KEY_MIN_TIME,
    KEY_OPTIONAL,
    KEY_METRIC,
    KEY_FLOOR,
    KEY_REASON,
    KEY_UNTIL,
    KEY_NUMBER
};
#define CONFIG   (1u << RULE_CONFIG)
#define MEASURED (1u << RULE_MEASURED)
#define ALLOW    (1u << RULE_ALLOW)

static const struct {
    const char *name;
    unsigned classes; /* classes with this key */
} keys[] = {{"rule", CONFIG | MEASURED | ALLOW},
            {"kernel", CONFIG | MEASURED | ALLOW},
            {"min_time", CONFIG | MEASURED},
            {"optional", CONFIG | MEASURED},
            {"metric", MEASURED},
            {"floor", MEASURED},
            {"reason", ALLOW},
            {"until", ALLOW},
#define NUMBER_KEY(key, word, value) {#key, CONFIG},
            RULE_NUMBERS(NUMBER_KEY)};
enum { KEY_COUNT = sizeof keys / sizeof *keys };

static int find_key(enum rule_class class, const char *name, size_t *ret_key, struct occ_error *err)
{
    const char *names[KEY_COUNT + 1] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (!(keys[i].classes >> class & 1))
            continue;
        names[n++] = keys[i].name;
        *ret_key = i;
        if (strcmp(keys[i].name, name) == 0)
            return 0;
    }
    return cli_fail_unknown("key", "", name, strlen(name), names, err);
}

static int set_key(struct rule *rule, size_t key, const char *text, struct occ_error *err)
{
    static const char *const booleans[] = {"false", "true", NULL};
    static const char *const metrics[] = {RULE_METRICS(OCC_WORD) NULL};
    size_t index = 0;
    int status = 0;
    switch (key) {
    case KEY_RULE:
        return copy_text(text, rule->name, err);
    case KEY_KERNEL:
        return set_kernel(rule, text, err);
    case KEY_MIN_TIME:
        return parse_ratio(text, &rule->min_time, err);
    case KEY_OPTIONAL:
        status = parse_word(text, booleans, &index, err);
        rule->optional = index == 1;
        return status;
    case KEY_METRIC:
        status = parse_word(text, metrics, &index, err);
        rule->metric = (enum rule_metric)index;
        return status;
    case KEY_FLOOR:
        return parse_ratio(text, &rule->floor, err);
    case KEY_REASON:
        return copy_text(text, rule->reason, err);
    case KEY_UNTIL:
        return occ_parse_time_ns(text, 0, &rule->until_ns, err);
    default:
        return add_condition(rule, (enum rule_number)(key - KEY_NUMBER), text, err);
    }
}

/* ---- the file ---- */

/* Reads a key, which is the current event, and its value. `given`: bits of the keys read before. */
static int read_key(struct occ_yaml *yaml, struct rule *rule, uint64_t *given, struct occ_error *err)
{
    struct occ_error why = OCC_ERROR_INIT;
    const char *name = occ_yaml_scalar(yaml), *value;
    size_t key = 0;
    if (!name)
        return occ_yaml_fail(yaml, err, "a key is expected here");
    if (find_key(rule->class, name, &key, &why) != 0)
        return occ_yaml_fail(yaml, err, "%s", why.message);
    if (*given >> key & 1)
        return occ_yaml_fail(yaml, err, "'%s' is given twice", name);
    *given |= UINT64_C(1) << key;
    int status = occ_yaml_next(yaml, err);
    if (status != 0)
        return status;
    if (!(value = occ_yaml_scalar(yaml)))
        return occ_yaml_fail(yaml, err, "%s: one value is expected here", keys[key].name);
    return set_key(rule, key, value, &why) == 0
               ? 0
               : occ_yaml_fail(yaml, err, "%s: %s", keys[key].name, why.message);
}

/* Checks that a rule has its required keys, and no key that its metric excludes. `given`: as in read_key().
 */
static int check_rule(const struct occ_yaml *yaml, const struct rule *rule, uint64_t given,
                      struct occ_error *err)
{
    bool chooses = (given & (UINT64_C(1) << KEY_KERNEL | UINT64_C(1) << KEY_MIN_TIME)) != 0;
    if (rule->metric == RULE_METRIC_GPU_TIME && chooses)
        return occ_yaml_fail(yaml, err, "metric: gpu_time is about all kernels: no kernel:, no min_time:");
    const char *missing = !rule->name[0]                                          ? "rule"
                          : rule->class == RULE_CONFIG && rule->n_conditions == 0 ? "a condition"
                          : rule->class == RULE_ALLOW && !rule->reason[0]         ? "reason"
                          : rule->class == RULE_ALLOW && rule->until_ns == 0      ? "until"
                                                                                  : NULL;
    return missing ? occ_yaml_fail(yaml, err, "the rule that ends here lacks %s", missing) : 0;
}

/* Reads a rule: a mapping that starts at the current event. */
static int read_rule(struct occ_yaml *yaml, enum rule_class class, struct rules *rules, struct occ_error *err)
{
    uint64_t given = 0;
    int status = 0;
    if (yaml->event.type != YAML_MAPPING_START_EVENT)
        return occ_yaml_fail(yaml, err, "a rule is expected here");
    if (rules->n == RULES_MAX)
        return occ_yaml_fail(yaml, err, "more than %d rules", RULES_MAX);
    if (!occ_grow((void **)&rules->all, &rules->allocated, rules->n, RULES_MAX, sizeof *rules->all))
        return occ_no_memory(err);
    struct rule *rule = &rules->all[rules->n++];
    *rule = (struct rule){.class = class,
                          .line = yaml->event.start_mark.line + 1,
                          .column = yaml->event.start_mark.column + 1,
                          .min_time = class == RULE_MEASURED ? 0.01 : 0,
                          .floor = NAN};
    while (status == 0 && (status = occ_yaml_next(yaml, err)) == 0 &&
           yaml->event.type != YAML_MAPPING_END_EVENT)
        status = read_key(yaml, rule, &given, err);
    return status == 0 ? check_rule(yaml, rule, given, err) : status;
}

/* Reads a class's key, such as "config:", and its list. */
static int read_class(struct occ_yaml *yaml, struct rules *rules, struct occ_error *err)
{
    static const char *const words[] = {RULE_CLASSES(OCC_WORD) NULL};
    struct occ_error why = OCC_ERROR_INIT;
    const char *name = occ_yaml_scalar(yaml);
    size_t class = 0;
    if (!name || parse_word(name, words, &class, &why) != 0)
        return occ_yaml_fail(yaml, err, "%s",
                             name ? why.message : "config, measured or allow is expected here");
    int status = occ_yaml_next(yaml, err);
    if (status == 0 && yaml->event.type != YAML_SEQUENCE_START_EVENT)
        return occ_yaml_fail(yaml, err, "a list of rules is expected here");
    while (status == 0 && (status = occ_yaml_next(yaml, err)) == 0 &&
           yaml->event.type != YAML_SEQUENCE_END_EVENT)
        status = read_rule(yaml, (enum rule_class) class, rules, err);
    return status;
}

static int read_rules(struct occ_yaml *yaml, struct rules *rules, struct occ_error *err)
{
    int status = 0;
    if (yaml->event.type != YAML_MAPPING_START_EVENT)
        return occ_yaml_fail(yaml, err, "rules are expected here");
    while (status == 0 && (status = occ_yaml_next(yaml, err)) == 0 &&
           yaml->event.type != YAML_MAPPING_END_EVENT)
        status = read_class(yaml, rules, err);
    return status == 0 ? occ_yaml_end(yaml, err) : status;
}

/* Checks that each exception names an existing rule. */
static int check_exceptions(const char *file, const struct rules *rules, struct occ_error *err)
{
    const char *names[RULES_MAX + 1] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < rules->n; i++)
        if (rules->all[i].class != RULE_ALLOW)
            names[n++] = rules->all[i].name;
    for (size_t i = 0, at; i < rules->n; i++)
        if (rules->all[i].class == RULE_ALLOW && parse_word(rules->all[i].name, names, &at, NULL) != 0) {
            (void)cli_fail_unknown("rule", "", rules->all[i].name, strlen(rules->all[i].name), names, err);
            return occ_error_prefix(err, "%s:%zu:%zu: allow", file, rules->all[i].line, rules->all[i].column);
        }
    return 0;
}

int rules_parse(const char *name, const char *text, size_t length, struct rules *ret_rules,
                struct occ_error *err)
{
    struct occ_yaml yaml;
    struct rules rules = {0};
    int status = occ_yaml_open(&yaml, name, text, length, err);
    if (status == 0)
        status = read_rules(&yaml, &rules, err);
    if (status == 0)
        status = check_exceptions(name, &rules, err);
    occ_yaml_close(&yaml);
    if (status == 0)
        *ret_rules = rules;
    else
        rules_free(&rules);
    return status;
}

int rules_load(const char *path, struct rules *ret_rules, struct occ_error *err)
{
    _cleanup_(occ_freep) char *text = NULL;
    size_t length = 0;
    int status = occ_path_read(path, OCC_CONFIG_MAX_BYTES + 1, &text, &length, err);
    return status == 0 ? rules_parse(path, text, length, ret_rules, err) : status;
}

/* ---- kernels ---- */

int rules_choose_kernels(struct rules *rules, const char *file, struct occ_store *store,
                         struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < rules->n && status == 0; i++) {
        struct rule *rule = &rules->all[i];
        const struct occ_filter filter = {.kernel_regex = rule->kernel};
        if (rule->kernel && (status = occ_store_choose_kernels(store, &filter, &rule->kernels, err)) != 0)
            (void)occ_error_prefix(err, "%s:%zu:%zu: kernel", file, rule->line, rule->column);
    }
    return status;
}

static void free_kernel(struct rule *rule)
{
    free(rule->kernel);
    occ_map_free(&rule->kernels);
}

void rules_free(struct rules *rules)
{
    for (size_t i = 0; i < rules->n; i++)
        free_kernel(&rules->all[i]);
    free(rules->all);
    *rules = (struct rules){0};
}
