/* See control.h. */
#include "control.h"

#include <math.h>
#include <string.h>

#include "support/control.h"
#include "support/text.h"

enum argument { NOTHING, SESSION, NUMBER };

static const struct row {
    const char *word;
    enum occ_request_kind kind;
    enum argument argument;
    uint64_t min, max; /* range of an argument of kind NUMBER */
} requests[] = {
    {"ping", OCC_REQUEST_PING, NOTHING, 0, 0},
    {"flush", OCC_REQUEST_FLUSH, SESSION, 0, 0},
    {"status", OCC_REQUEST_STATUS, NOTHING, 0, 0},
    {"history", OCC_REQUEST_HISTORY, NUMBER, 0, UINT32_MAX},
    {"refusals", OCC_REQUEST_REFUSALS, NUMBER, 0, UINT32_MAX},
    {"coverage", OCC_REQUEST_COVERAGE, NUMBER, 0, UINT32_MAX},
    {"sampler", OCC_REQUEST_SAMPLER, NUMBER, 0, OCC_GPUS_MAX - 1},
    {"pause", OCC_REQUEST_PAUSE, NUMBER, 1, OCC_CONTROL_PAUSE_MAX_S},
    {"resume", OCC_REQUEST_RESUME, NOTHING, 0, 0},
    {"pause_run", OCC_REQUEST_PAUSE_RUN, NUMBER, 1, INT32_MAX},
    {"resume_run", OCC_REQUEST_RESUME_RUN, NUMBER, 1, INT32_MAX},
};

static int parse_session(const char *text, char session[33], struct occ_error *err)
{
    uint8_t bytes[16];
    if (!occ_hex_decode(text, bytes, sizeof bytes))
        return occ_fail(err, OCC_E_INVALID, "a session is 32 hexadecimal digits");
    occ_hex_encode(bytes, sizeof bytes, session); /* one spelling: lower case */
    return 0;
}

static int parse_argument(const struct row *row, const char *text, struct occ_request *request,
                          struct occ_error *err)
{
    switch (row->argument) {
    case NOTHING:
        return text ? occ_fail(err, OCC_E_INVALID, "%s takes no argument", row->word) : 0;
    case SESSION:
        return parse_session(text ? text : "", request->session, err);
    case NUMBER:
        break;
    }
    return occ_parse_u64(text ? text : "", row->min, row->max, &request->number, err);
}

int occ_request_parse(const char *text, struct occ_request *ret_request, struct occ_error *err)
{
    struct occ_request request = {0};
    size_t n = strcspn(text, " ");
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (strlen(requests[i].word) != n || strncmp(text, requests[i].word, n) != 0)
            continue;
        request.kind = requests[i].kind;
        int status = parse_argument(&requests[i], text[n] ? text + n + 1 : NULL, &request, err);
        if (status == 0)
            *ret_request = request;
        return status;
    }
    return occ_fail(
        err, OCC_E_INVALID,
        "unknown request (there are: ping, flush SESSION, status, history NUMBER, refusals NUMBER, "
        "coverage NUMBER, sampler GPU, pause SECONDS, resume, pause_run PID, resume_run PID)");
}

bool occ_control_may_command(uint32_t uid, uint32_t own)
{
    return uid == 0 || uid == own;
}

/* ---- the sampler ---- */

/* Makes a library's text one line without control characters. */
static void put_reason(struct occ_answer *answer, char *reason)
{
    occ_text_sanitise(reason);
    OCC_ANSWER(answer, "reason %s\n", reason);
}

/* Omits a value that was not measured. */
static void put_real(struct occ_answer *answer, const char *key, double value)
{
    if (isfinite(value))
        OCC_ANSWER(answer, "%s %.9g\n", key, value);
}

static void put_gpu(struct occ_answer *answer, struct occ_gpu_status *status)
{
    char uuid[33];
    occ_hex_encode(status->uuid, sizeof status->uuid, uuid);
    OCC_ANSWER(answer, "gpu %u\nuuid %s\nsource %s\nstate %s\n", status->ordinal, uuid, status->source,
               occ_source_state_word(status->state));
    put_reason(answer, status->reason);
    const struct {
        const char *key;
        uint64_t number;
    } counts[] = {
        {"samples", status->stats.samples},     {"bad_samples", status->stats.bad_samples},
        {"overflows", status->stats.overflows}, {"gaps", status->stats.gaps},
        {"launches", status->launches},         {"dropped", status->dropped},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        OCC_ANSWER(answer, "%s %llu\n", counts[i].key, (unsigned long long)counts[i].number);
    OCC_ANSWER(answer, "offset_ns %lld\n", (long long)status->offset_ns);
    put_real(answer, "drift_ppm", status->drift_ppm);
    put_real(answer, "residual_ratio", status->residual_ratio);
}

void occ_control_sampler(struct occ_sampler *sampler, uint64_t gpu, char *answer, size_t size)
{
    static const uint8_t nobody[16];
    struct occ_gpu_status status[OCC_GPUS_MAX], none;
    struct occ_answer a = {answer, size};
    size_t n = occ_sampler_get_status(sampler, status, OCC_GPUS_MAX);
    answer[0] = '\0';
    int64_t paused_ns = occ_sampler_paused_ns(sampler);
    OCC_ANSWER(&a, "ok\nmode %s\npaused_s %lld\ngpus %zu\n", occ_sampler_mode_word(occ_sampler_mode(sampler)),
               (long long)((paused_ns + 999999999) / 1000000000), n);
    if (n == 0) {
        (void)occ_sampler_find_status(sampler, nobody, &none);
        put_reason(&a, none.reason);
    } else if (gpu < n) {
        put_gpu(&a, &status[gpu]);
    }
}
