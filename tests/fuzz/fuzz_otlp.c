/*
 * Fuzzes the inputs of metrics and profiles for OpenTelemetry: a server's answer, a file of headers, and the
 * file of sums, which patches of a valid file damage. For any content the results are values in their limits
 * or an error.
 *
 * Input: first byte % 3: 0 an answer, 1 headers, 2 patches {u16 offset, u8 value}.
 */
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/otlp/answer.h"
#include "cluster/otlp/document.h"
#include "cluster/otlp/headers.h"
#include "cluster/otlp/profile.h"
#include "cluster/otlp/sums.h"
#include "fuzz_bytes.h"

#define FILE_BYTES_MAX (1u << 17)
#define MINUTE         INT64_C(28333333)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[64] = "/tmp/occtrace-fuzz-XXXXXX", path[80], journal[96];
static uint8_t sound[FILE_BYTES_MAX];
static size_t sound_bytes;

static void must(bool good)
{
    if (!good)
        abort();
}

static void clean_up(void)
{
    (void)unlink(path);
    (void)unlink(journal);
    (void)rmdir(directory);
}

static int add_stacks(struct occ_sums *sums, struct occ_error *err)
{
    static const double causes[OCC_CAUSE_COUNT] = {0.25, 0.5};
    struct occ_stack stack = {.job = "slurm:42",
                              .gpu = "00000001-0000-0000-0000-000000000000",
                              .path = "backward/Net/layer",
                              .kernel = "k",
                              .is_simulated = true,
                              .minute = MINUTE,
                              .ns = 1000,
                              .causes = causes};
    const struct occ_stacks_key key = {7, MINUTE, 1, 1, 1};
    struct occ_stacks *stacks = NULL;
    int rc = occ_stacks_open(sums, &stacks, err);
    if (rc == 0)
        rc = occ_stacks_count(stacks, &key, 1000, 2000, &stack.ns, err);
    if (rc == 0)
        rc = occ_stacks_add(stacks, &stack, err);
    if (rc == 0)
        rc = occ_stacks_forget(stacks, 7, MINUTE - 5, err);
    occ_stacks_close(stacks);
    return rc;
}

/* A pass with a launch of a job, and one without a job. */
static int count_minute(struct occ_sums *sums, struct occ_error *err)
{
    const struct occ_sums_position position = {.identity = 7, .done = 3, .newest_minute = MINUTE};
    const struct occ_sums_job job = {"slurm:42", "42", "", "", "", "", "kernel"};
    struct occ_sums_minute minute = {.identity = 7,
                                     .minute = MINUTE,
                                     .run = 1,
                                     .config = 1,
                                     .job = "slurm:42",
                                     .gpu = "00000001-0000-0000-0000-000000000000",
                                     .kernel = "k",
                                     .launches = 5,
                                     .total_ns = 1000,
                                     .warps = 8448,
                                     .theoretical = 0.5,
                                     .low = 0.3,
                                     .high = 0.4,
                                     .expected_elapsed_low = 0.25,
                                     .achieved_sum = NAN,
                                     .achieved_ns = NAN,
                                     .error_sum = NAN,
                                     .error_ns = NAN,
                                     .grid_blocks = 100,
                                     .block_threads = 256};
    int64_t ns = 0;
    int rc = occ_sums_begin(sums, err);
    if (rc == 0)
        rc = occ_sums_put_job(sums, &job, err);
    if (rc == 0)
        rc = occ_sums_put_gpu(sums, minute.gpu, "NVIDIA H100", INT64_C(80) << 30, err);
    if (rc == 0)
        rc = occ_sums_add(sums, &minute, &ns, err);
    minute.job = OCC_SUMS_NO_JOB;
    minute.run = 2;
    if (rc == 0)
        rc = occ_sums_add(sums, &minute, &ns, err);
    if (rc == 0)
        rc = add_stacks(sums, err);
    if (rc == 0)
        rc = occ_sums_store_position(sums, &position, err);
    if (rc == 0)
        rc = occ_sums_end(sums, MINUTE + 1, err);
    if (rc != 0)
        (void)occ_sums_run(sums, "ROLLBACK", NULL);
    return rc;
}

static void make_sound(void)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_sums *sums = NULL;
    const struct occ_sums_counters counters = {.since_minute = MINUTE, .requests = 3};
    must(occ_sums_open(path, false, &sums, &err) == 0 && count_minute(sums, &err) == 0);
    must(occ_sums_store_counters(sums, &counters, "it failed", &err) == 0);
    occ_sums_close(sums);
    FILE *file = fopen(path, "rbe");
    must(file != NULL);
    sound_bytes = fread(sound, 1, sizeof sound, file);
    must(sound_bytes > 0 && sound_bytes < sizeof sound);
    (void)fclose(file);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    must(mkdtemp(directory) != NULL && atexit(clean_up) == 0);
    (void)snprintf(path, sizeof path, "%s/sums.db", directory);
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    make_sound();
    return 0;
}

static void parse_answer(struct fuzz_bytes input)
{
    struct occ_otlp_answer answer;
    occ_otlp_answer_parse((const char *)input.data, input.n, &answer);
    must(strlen(answer.message) < sizeof answer.message);
}

static void split_headers(struct fuzz_bytes input)
{
    static struct occ_otlp_headers headers;
    struct occ_error err = OCC_ERROR_INIT;
    size_t n = 0;
    (void)snprintf(headers.text, sizeof headers.text, "%.*s", (int)input.n, (const char *)input.data);
    if (occ_otlp_headers_split(&headers, &err) != 0)
        return;
    while (headers.lines[n]) {
        must(strchr(headers.lines[n], ':') && !strpbrk(headers.lines[n], "\r\n"));
        n++;
    }
    must(n <= OCC_OTLP_HEADERS_MAX);
}

static void put_file(struct fuzz_bytes patches)
{
    static uint8_t content[FILE_BYTES_MAX];
    memcpy(content, sound, sound_bytes);
    for (; patches.n >= 3; patches.data += 3, patches.n -= 3)
        content[(patches.data[0] | (size_t)patches.data[1] << 8) % sound_bytes] = patches.data[2];
    (void)unlink(journal);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, content, sound_bytes) == (ssize_t)sound_bytes);
    (void)close(fd);
}

static void use_stacks(struct occ_sums *sums)
{
    const struct occ_otlp_origin origin = {.node = "n", .cluster = "", .version = "1"};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_stacks *stacks = NULL;
    struct occ_stacks_request request;
    if (occ_stacks_open(sums, &stacks, &err) != 0)
        return;
    (void)occ_stacks_make_request(stacks, occ_otlp_profile, &origin, &err);
    if (occ_stacks_load_request(stacks, &request, &err) == 0 && request.body) {
        must(request.body[request.n] == '\0');
        (void)occ_stacks_drop_request(stacks, &err);
    }
    free(request.body);
    (void)occ_stacks_clear(sums, &err);
    occ_stacks_close(stacks);
}

static void use_sums(void)
{
    const struct occ_otlp_node node = {.origin = {.node = "n", .cluster = "", .version = "1"}};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_sums *sums = NULL;
    struct occ_sums_counters counters;
    char *text = NULL;
    size_t n = 0;
    if (occ_sums_open(path, false, &sums, &err) != 0)
        return;
    (void)occ_sums_load_counters(sums, &counters, &err);
    (void)count_minute(sums, &err);
    if (occ_otlp_document(sums, &node, (MINUTE + 1) * 60 * 1000000000, &text, &n, &err) == 0)
        must(n == strlen(text) && n <= OCC_OTLP_BODY_MAX);
    free(text);
    use_stacks(sums);
    occ_sums_close(sums);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes input = {data, size};
    switch (fuzz_byte(&input) % 3) {
    case 0:
        parse_answer(input);
        break;
    case 1:
        split_headers(input);
        break;
    default:
        put_file(input);
        use_sums();
    }
    return 0;
}
