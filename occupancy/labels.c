/* Identifiers and texts of the model's enumerations, from the X-macros of the headers. Threads: any. */
#include "advice.h"
#include "bound.h"
#include "predict.h"
#include "sweep.h"
#include "waterfall.h"

/* A function that returns one column of an X-macro's row; "unknown" for a value out of range. */
#define ROW(name, ...) {__VA_ARGS__},
#define LABEL(function, type, LIST, column)                                                                  \
    const char *function(type value)                                                                         \
    {                                                                                                        \
        static const char *const rows[][4] = {LIST(ROW)};                                                    \
        return (unsigned)value < sizeof rows / sizeof *rows ? rows[value][column] : "unknown";               \
    }

LABEL(occ_status_text, enum occ_status, OCC_STATUSES, 0)
LABEL(occ_limit_word, enum occ_limit, OCC_LIMITS, 0)
LABEL(occ_limit_text, enum occ_limit, OCC_LIMITS, 1)
LABEL(occ_cause_word, enum occ_cause, OCC_CAUSES, 0)
LABEL(occ_cause_text, enum occ_cause, OCC_CAUSES, 1)
LABEL(occ_axis_word, enum occ_axis, OCC_AXES, 0)
LABEL(occ_axis_text, enum occ_axis, OCC_AXES, 1)
LABEL(occ_advice_word, enum occ_advice_kind, OCC_ADVICES, 0)
LABEL(occ_advice_text, enum occ_advice_kind, OCC_ADVICES, 1)
LABEL(occ_advice_cost, enum occ_advice_kind, OCC_ADVICES, 2)
LABEL(occ_withheld_word, enum occ_withheld, OCC_WITHHELD_REASONS, 0)
LABEL(occ_withheld_text, enum occ_withheld, OCC_WITHHELD_REASONS, 1)
LABEL(occ_value_source_word, enum occ_value_source, OCC_VALUE_SOURCES, 0)
LABEL(occ_value_source_text, enum occ_value_source, OCC_VALUE_SOURCES, 1)
LABEL(occ_term_word, enum occ_term, OCC_TERMS, 0)
LABEL(occ_term_text, enum occ_term, OCC_TERMS, 1)
LABEL(occ_hw_unit_word, enum occ_hw_unit, OCC_HW_UNITS, 0)
LABEL(occ_hw_unit_text, enum occ_hw_unit, OCC_HW_UNITS, 1)
LABEL(occ_bound_word, enum occ_bound, OCC_BOUNDS, 0)
LABEL(occ_bound_text, enum occ_bound, OCC_BOUNDS, 1)

/* Parts of the waterfall: static causes first, then the measured ones. */
#define LOCAL_LABEL(function, LIST, column) static LABEL(function, unsigned, LIST, column)
LOCAL_LABEL(measured_word, OCC_MEASURED_CAUSES, 0)
LOCAL_LABEL(measured_text, OCC_MEASURED_CAUSES, 1)
LOCAL_LABEL(measured_gain, OCC_MEASURED_CAUSES, 2)

const char *occ_part_word(unsigned part)
{
    return part < OCC_CAUSE_COUNT ? occ_cause_word((enum occ_cause)part)
                                  : measured_word(part - OCC_CAUSE_COUNT);
}

const char *occ_part_text(unsigned part, double ratio)
{
    if (part < OCC_CAUSE_COUNT)
        return occ_cause_text((enum occ_cause)part);
    return ratio < 0 ? measured_gain(part - OCC_CAUSE_COUNT) : measured_text(part - OCC_CAUSE_COUNT);
}

const char *occ_limiters_text(uint32_t limiters, char *buffer, size_t size)
{
    size_t used = 0;
    if (size == 0)
        return "";
    for (uint32_t i = 0; i < OCC_LIMIT_COUNT; i++) {
        if (!(limiters & 1u << i))
            continue;
        if (used > 0 && used + 1 < size)
            buffer[used++] = '+';
        for (const char *c = occ_limit_word((enum occ_limit)i); *c && used + 1 < size; c++)
            buffer[used++] = *c;
    }
    buffer[used] = '\0';
    return buffer;
}
