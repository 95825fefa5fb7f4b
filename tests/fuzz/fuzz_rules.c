/* Fuzzes a rules file: any bytes are refused with a message that names a position, or accepted with rules
 * that apply to the kernels of a history, unless their texts are neither names nor expressions. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rules/rules.h"

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
    if (!rule->kernel && !rule_matches(rule, 1))
        abort();
}

/* Opens a history with kernels whose names are an expression, an invalid expression, and two names that
 * differ in their arguments only. */
static struct occ_store *open_history(void)
{
    struct occ_store *store = NULL;
    static const char kernels[] =
        "INSERT INTO stored_kernel VALUES (1, 1, '_Z4gemmPf', 'void gemm<64, 64>(float*)', 'gemm'), "
        "(2, 2, 'a+b[c(*', 'a+b[c(*', 'a+b[c(*'), (3, 3, '_Z4axpyIiEvPf', 'void axpy<int>(float*)', 'axpy'), "
        "(4, 4, '_Z4axpyIdEvPf', 'void axpy<double>(float*)', 'axpy')";
    if (occ_store_open_memory(&store, NULL) != 0 ||
        sqlite3_exec(occ_store_sqlite(store), kernels, NULL, NULL, NULL) != SQLITE_OK)
        abort();
    return store;
}

static void apply(struct rules *rules)
{
    static struct occ_store *history;
    struct occ_error err = OCC_ERROR_INIT;
    history = history ? history : open_history();
    int status = rules_choose_kernels(rules, "fuzz", history, &err);
    if (status != 0 && (status != OCC_E_USAGE || strncmp(err.message, "fuzz:", 5) != 0))
        abort();
    for (size_t i = 0; i < rules->n; i++)
        check(&rules->all[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules rules = {0};
    struct occ_error err = OCC_ERROR_INIT;
    int status = rules_parse("fuzz", (const char *)data, size, &rules, &err);
    if (status != 0 && strncmp(err.message, "fuzz:", 5) != 0)
        abort();
    apply(&rules);
    rules_free(&rules);
    return 0;
}
