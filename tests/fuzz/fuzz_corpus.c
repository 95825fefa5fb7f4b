/*
 * Fuzzes the reader of published changes with any bytes; if the first byte has the top bit set, a valid
 * heading is put in front. A row is skipped, or has finite predictions.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/corpus.h"

static void check(const struct corpus_row *row)
{
    struct occ_suggestion list[OCC_ADVICE_MAX];
    if (row->skipped)
        return;
    struct occ_prediction p =
        occ_predict_sides(&occ_published_cases, &row->side[0], &row->side[1], row->bound, row->owner);
    if (!isfinite(p.ratio) || !(p.low <= p.ratio && p.ratio <= p.high))
        abort();
    if (occ_suggest(&(struct occ_suggest_input){.device = &row->device,
                                                .launch = &row->launch[0],
                                                .result = &row->result[0],
                                                .bound = row->bound,
                                                .owner = row->owner,
                                                .spill_bytes = row->side[0].spill_bytes,
                                                .has_grid = row->has_grid},
                    list) > OCC_ADVICE_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char heading[] =
        "id,source,gpu,change,ratio,bound,before_block,after_block,before_grid,after_grid,before_regs,"
        "after_regs,before_dynamic_smem,after_dynamic_smem,before_theoretical,after_theoretical,"
        "before_blocks_per_sm,after_blocks_per_sm,before_spill_bytes,after_spill_bytes\n";
    const char *why;
    if (size < 1 || size > 8192)
        return 0;
    size_t head = data[0] & 0x80 ? sizeof heading - 1 : 0;
    char *text = malloc(head + size);
    if (!text)
        return 0;
    memcpy(text, heading, head);
    memcpy(text + head, data + 1, size - 1);
    struct corpus *corpus = corpus_parse(text, head + size - 1, &why);
    for (size_t i = 0; corpus && i < corpus->n; i++)
        check(&corpus->rows[i]);
    corpus_free(corpus);
    free(text);
    return 0;
}
