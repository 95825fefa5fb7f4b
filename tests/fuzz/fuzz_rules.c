/* Any bytes as a rules file: refused with a message that names a place, or accepted with rules that can be
 * applied. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/occq/check/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct rule *rule)
{
    const struct occ_config_row row = {.analysed = true};
    if (!memchr(rule->name, '\0', sizeof rule->name) || !rule->name[0] ||
        rule->n_conditions > RULE_CONDITIONS)
        abort();
    if (rule->class == RULE_ALLOW && (!rule->reason[0] || rule->until_ns == 0))
        abort();
    for (size_t i = 0; i < rule->n_conditions; i++)
        (void)rule_condition_holds(&rule->conditions[i], rule_number_of(rule->conditions[i].number, &row), 1);
    (void)rule_matches(rule, "void gemm<64, 64>(float*)");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules rules = {0};
    struct occ_error err = OCC_ERROR_INIT;
    int status = rules_parse("fuzz", (const char *)data, size, &rules, &err);
    if (status != 0 && strncmp(err.message, "fuzz:", 5) != 0)
        abort();
    for (size_t i = 0; i < rules.n; i++)
        check(&rules.all[i]);
    rules_free(&rules);
    return 0;
}
