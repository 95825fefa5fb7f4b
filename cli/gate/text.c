/* Differences of two builds, and their effects, in words; see gate.h. Pure; any thread. */
#include <math.h>
#include <string.h>

#include "gate.h"
#include "names/demangle.h"
#include "support/text.h"

const char *gate_short_name(const struct pin *pin, char text[GATE_NAME_BYTES])
{
    const char *begin, *end;
    occ_demangled_base(pin->name, &begin, &end);
    if (*end == '<')
        end = occ_demangled_skip_brackets(end);
    int n = end > begin && end - begin < GATE_NAME_BYTES ? (int)(end - begin) : GATE_NAME_BYTES;
    (void)snprintf(text, GATE_NAME_BYTES, "%.*s", n, begin);
    return text;
}

const char *gate_change_text(const struct pin *before, const struct pin *after, char text[GATE_TEXT_BYTES])
{
    text[0] = '\0';
    for (int i = 0; i < PIN_RESOURCE_COUNT; i++) {
        uint32_t old = before->value[i], new = after->value[i];
        if (old != new &&old != PIN_UNKNOWN &&new != PIN_UNKNOWN)
            occ_text_append(text, GATE_TEXT_BYTES, ", ", "%s %u -> %u",
                            pin_resource_text((enum pin_resource)i), old, new);
    }
    return text;
}

/* A smaller predicted change is not printed: its direction is uncertain. */
#define NO_CHANGE 0.005

const char *gate_prediction_text(const struct gate_effect *effect, char *text, size_t size)
{
    if (isnan(effect->ratio) || fabs(effect->ratio - 1) < NO_CHANGE)
        (void)snprintf(text, size, "measure it");
    else
        (void)snprintf(text, size, "%+.0f%% (%+.0f to %+.0f%%)", 100 * (effect->ratio - 1),
                       100 * (effect->low - 1), 100 * (effect->high - 1));
    return text;
}

const char *gate_effect_text(const struct gate_effect *effect, const char *period, char text[GATE_TEXT_BYTES])
{
    char prediction[64];
    text[0] = '\0';
    if (effect->fewer + effect->more > 0) {
        occ_text_append(text, GATE_TEXT_BYTES, "", "%u -> %u blocks per SM at %u threads",
                        effect->blocks_before, effect->blocks_after, effect->threads);
        if (effect->dynamic_bytes)
            occ_text_append(text, GATE_TEXT_BYTES, "", " and %u bytes of dynamic shared memory",
                            effect->dynamic_bytes);
    }
    if (effect->changed > 0) {
        occ_text_append(text, GATE_TEXT_BYTES, "; ",
                        "in %u of %u recorded configurations, %.1f%% of the GPU time %s", effect->changed,
                        effect->compared, 100 * effect->share, period);
        occ_text_append(text, GATE_TEXT_BYTES, ", ", "predicted time: %s",
                        gate_prediction_text(effect, prediction, sizeof prediction));
    }
    return text;
}
