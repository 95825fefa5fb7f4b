/* Compares the GPUs of both sides, since devices of one model differ. See report.h. Pure; any thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "support/text.h"

/* Smaller differences between the sides in a device's share of launches are ignored. */
#define SHARE_FLOOR 0.05

void diff_add_device(struct diff_facts *facts, int64_t id, uint64_t launches)
{
    uint32_t at = 0;
    if (id < 1)
        return;
    while (at < facts->n_devices && facts->devices[at].id < id)
        at++;
    if (at < facts->n_devices && facts->devices[at].id == id) {
        facts->devices[at].launches += launches;
        return;
    }
    if (facts->n_devices == DIFF_DEVICES_MAX)
        return;
    memmove(&facts->devices[at + 1], &facts->devices[at], (facts->n_devices - at) * sizeof *facts->devices);
    facts->devices[at] = (struct diff_device){id, launches};
    facts->n_devices++;
}

void diff_list_devices(struct diff_facts *facts)
{
    facts->device_ids[0] = '\0';
    for (uint32_t i = 0; i < facts->n_devices; i++)
        occ_text_append(facts->device_ids, sizeof facts->device_ids, ", ", "%" PRId64, facts->devices[i].id);
}

static bool are_same(const struct diff_facts *a, const struct diff_facts *b)
{
    bool same = a->n_devices == b->n_devices;
    for (uint32_t i = 0; i < a->n_devices && same; i++)
        same = a->devices[i].id == b->devices[i].id;
    return same;
}

static double share_of(const struct diff_facts *facts, uint32_t device)
{
    return (double)facts->devices[device].launches / (double)facts->launches;
}

static bool are_spread_alike(const struct diff_facts *a, const struct diff_facts *b)
{
    bool alike = true;
    for (uint32_t i = 0; i < a->n_devices && alike; i++)
        alike = fabs(share_of(a, i) - share_of(b, i)) < SHARE_FLOOR;
    return alike;
}

const char *diff_devices_note(const struct diff_facts *a, const struct diff_facts *b,
                              char text[DIFF_NOTE_BYTES])
{
    text[0] = '\0';
    if (a->n_devices == 0 || b->n_devices == 0 || a->is_of_other_history || b->is_of_other_history ||
        strcmp(a->device, b->device) != 0)
        return text;
    if (!are_same(a, b))
        (void)snprintf(
            text, DIFF_NOTE_BYTES,
            "The sides ran on different GPUs of one model (%s and %s): a difference may come from the "
            "GPUs.",
            a->device_ids, b->device_ids);
    else if (!are_spread_alike(a, b))
        (void)snprintf(text, DIFF_NOTE_BYTES,
                       "The sides spread their launches differently over the GPUs %s: gpu:ID on both sides "
                       "compares one GPU.",
                       a->device_ids);
    return text;
}
