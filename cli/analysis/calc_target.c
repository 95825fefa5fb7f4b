/* Finds the calculator's device, and explains refusals; see calc_target.h. No state; any thread. */
#include "calc_target.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "support/text.h"

enum { MAX_GPUS = 256, MAX_SMS = 65536 };

/* ---- names ---- */

#define NAME_SEPARATORS " -()"

/* Words in the driver's names of any product. */
static const char any_product[] = "nvidia geforce tesla gpu generation nvgpu mig";

/* Words for variants of a product with the same number of SMs. A word outside both lists and the product's
 * name means another product: H100 PCIe has fewer SMs than H100. */
static const struct {
    const char *gpu, *words;
} variants[] = {
    {"m40", "12gb 24gb"},
    {"p100", "pcie sxm2 12gb 16gb"},
    {"p4", "8gb"},
    {"p40", "24gb"},
    {"gtx1060", "6gb"},
    {"v100", "pcie sxm2 sxm3 fhhl dgxs 16gb 32gb"},
    {"v100s", "pcie 32gb"},
    {"jetsonxavier", "agx"},
    {"t4", "16gb"},
    {"t400", "4gb"},
    {"t1000", "8gb"},
    {"rtx2080ti", "11gb"},
    {"a100", "pcie sxm sxm4 40gb 80gb"},
    {"a800", "pcie sxm sxm4 40gb 80gb active lc"},
    {"a30", "pcie 24gb"},
    {"a2", "16gb"},
    {"a10", "24gb"},
    {"a10g", "24gb"},
    {"a40", "48gb"},
    {"rtxa2000", "12gb"},
    {"rtxa6000", "48gb"},
    {"rtx3060", "12gb"},
    {"rtx3080", "10gb"},
    {"rtx3090", "24gb"},
    {"jetsonorin", "agx 64gb"},
    {"jetsonorin32gb", "agx"},
    {"jetsonorinnano", "8gb"},
    {"jetsonorinnx", "8gb 16gb"},
    {"l4", "24gb"},
    {"l20", "48gb"},
    {"l40", "48gb"},
    {"l40s", "48gb"},
    {"rtx4000ada", "sff"},
    {"rtx6000ada", "48gb"},
    {"rtx4060ti", "8gb 16gb"},
    {"rtx4090", "24gb"},
    {"h100", "sxm sxm5 64gb 80gb 94gb 96gb hbm3"},
    {"h100pcie", "80gb hbm2e"},
    {"h100nvl", "94gb hbm3"},
    {"h800", "sxm sxm5 80gb hbm3"},
    {"h800pcie", "80gb hbm2e"},
    {"h20", "96gb hbm3"},
    {"h20-3e", "141gb hbm3e"},
    {"h200", "sxm sxm5 141gb hbm3e"},
    {"h200nvl", "141gb hbm3e"},
    {"gh200", "96gb 120gb 144g 144gb 480gb hbm3 hbm3e"},
    {"b200", "sxm sxm6 hbm3e"},
    {"b300", "sxm sxm6 ac hbm3e"},
    {"jetsonthor", "agx"},
    {"rtx5060ti", "8gb 16gb"},
    {"rtx5090", "32gb"},
    {"rtx5090d", "v2"},
    {"rtxpro2000", "blackwell"},
    {"rtxpro4000", "blackwell sff edition"},
    {"rtxpro4500", "blackwell"},
    {"rtxpro5000", "blackwell 48gb 72gb"},
    {"rtxpro6000", "blackwell server workstation max q edition 96gb"},
};

/* Driver's names without a word of the product's name. */
static const struct {
    const char *name, *gpu;
} aliases[] = {{"dgxspark", "gb10"}, {"thor", "jetsonthor"}};

static const char *variants_of(const struct occ_gpu *gpu)
{
    const char *name = gpu->slice_of ? gpu->slice_of : gpu->name;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (strcmp(variants[i].gpu, name) == 0)
            return variants[i].words;
    return "";
}

static bool has_word(const char *words, const char *word, size_t length)
{
    for (; *words; words += strspn(words, " ")) {
        size_t n = strcspn(words, " ");
        if (n == length && strncasecmp(words, word, n) == 0)
            return true;
        words += n;
    }
    return false;
}

/* Advances to the next word that is not in any_product. Returns its length; 0: no word is left. */
static size_t next_word(const char **name)
{
    for (;; *name += strcspn(*name, NAME_SEPARATORS)) {
        *name += strspn(*name, NAME_SEPARATORS);
        size_t length = strcspn(*name, NAME_SEPARATORS);
        if (length == 0 || !has_word(any_product, *name, length))
            return length;
    }
}

/* True if the words of `name` without the `optional` words form `product`: "NVIDIA H100 80GB HBM3" is "h100",
 * "RTX 4070 Ti" is "rtx4070ti". */
static bool is_name(const char *name, const char *product, const char *optional)
{
    size_t n = 0;
    for (; (n = next_word(&name)) > 0; name += n) {
        if (has_word(optional, name, n))
            continue;
        product += *product == '-';
        if (strncasecmp(product, name, n) != 0)
            return false;
        product += n;
    }
    return *product == '\0';
}

static const struct occ_gpu *find_gpu(const char *name)
{
    const struct occ_gpu *gpu;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (is_name(name, aliases[i].name, ""))
            return occ_gpu_find(aliases[i].gpu);
    for (size_t i = 0; (gpu = occ_gpu_at(i)); i++)
        if (is_name(name, gpu->name, variants_of(gpu)))
            return gpu;
    return NULL;
}

/* Joins the product's words in lower case, like the keys of the table; cuts at `size`. */
static void join_words(const char *name, char *buffer, size_t size)
{
    size_t length = 0, n;
    for (; (n = next_word(&name)) > 0; name += n)
        for (size_t i = 0; i < n && length + 1 < size; i++)
            buffer[length++] = (char)tolower((unsigned char)name[i]);
    buffer[length] = '\0';
}

/* Returns a GPU of the same family: b200 for b400, not p100. NULL: none. */
static const char *nearest_gpu(const char *key)
{
    const char *names[MAX_GPUS + 1] = {NULL};
    const struct occ_gpu *gpu;
    size_t n = 0, letters = strspn(key, "abcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; n < MAX_GPUS && (gpu = occ_gpu_at(i)); i++)
        if (strncmp(gpu->name, key, letters) == 0 &&
            (letters == 0 || !isalpha((unsigned char)gpu->name[letters])))
            names[n++] = gpu->name;
    return occ_text_nearest(key, names);
}

/* Lists GPUs with `key` in their names, as "a, b": the driver has one name, Orin, for modules with different
 * numbers of SMs. */
static void list_containing(const char *key, char *buffer, size_t size)
{
    const struct occ_gpu *gpu;
    size_t length = 0;
    buffer[0] = '\0';
    for (size_t i = 0; *key && length < size && (gpu = occ_gpu_at(i)); i++)
        if (!gpu->slice_of && strstr(gpu->name, key))
            length += (size_t)snprintf(buffer + length, size - length, "%s%s", length ? ", " : "", gpu->name);
}

static int fail_unknown(const char *name, struct occ_error *err)
{
    char typed[CALC_NAME_BYTES], key[CALC_NAME_BYTES], several[128];
    (void)snprintf(typed, sizeof typed, "%s", name);
    occ_text_sanitise(typed);
    join_words(name, key, sizeof key);
    list_containing(key, several, sizeof several);
    const char *nearest = nearest_gpu(key);
    return occ_fail(
        err, OCC_E_INVALID,
        "unknown GPU '%s'%s%s%s ('occq calc --list' names all; 'occq calc' takes --cc and --sms of any "
        "other)",
        typed,
        nearest      ? "; did you mean '"
        : several[0] ? "; it is one of "
                     : "",
        nearest ? nearest : several, nearest ? "'?" : "");
}

int calc_target_named(const char *name, struct calc_target *ret_target, struct occ_error *err)
{
    struct occ_device device;
    const struct occ_gpu *gpu = find_gpu(name);
    if (!gpu || occ_device_from_cc(gpu->cc, &device) != OCC_OK)
        return fail_unknown(name, err);
    device.sm_count = gpu->sm_count;
    ret_target->device = device;
    (void)snprintf(ret_target->name, sizeof ret_target->name, "%s", gpu->name);
    (void)snprintf(ret_target->title, sizeof ret_target->title, "%s", gpu->title);
    return 0;
}

/* ---- compute capabilities ---- */

/* Parses "7.5" or "75": one digit after the point, else the last digit is the minor version. 0: invalid. */
static uint32_t capability_number(const char *text)
{
    uint32_t number = 0;
    size_t digits = 0, length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && i > 0 && i == length - 2)
            continue;
        if (text[i] < '0' || text[i] > '9' || ++digits > 3)
            return 0;
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    return number;
}

int calc_target_capability(const char *capability, uint64_t sm_count, struct calc_target *ret_target,
                           struct occ_error *err)
{
    struct occ_device device;
    char key[32];
    (void)snprintf(key, sizeof key, "%.31s", capability);
    occ_text_sanitise(key);
    if (occ_device_from_cc(capability_number(capability), &device) != OCC_OK)
        return occ_fail(err, OCC_E_INVALID, "there is no compute capability '%s'", key);
    if (sm_count < 1 || sm_count > MAX_SMS)
        return occ_fail(err, OCC_E_INVALID, "%" PRIu64 " SMs are out of range (1 to %d)", sm_count, MAX_SMS);
    device.sm_count = (uint32_t)sm_count;
    ret_target->device = device;
    (void)snprintf(ret_target->name, sizeof ret_target->name, "cc %u.%u", device.cc / 10, device.cc % 10);
    (void)snprintf(ret_target->title, sizeof ret_target->title, "compute capability %u.%u", device.cc / 10,
                   device.cc % 10);
    return 0;
}

/* ---- refusals ---- */

uint64_t calc_cluster_blocks(const struct occ_launch *launch)
{
    uint64_t blocks = 1;
    for (int axis = 0; axis < 3; axis++)
        blocks *= launch->cluster[axis] ? launch->cluster[axis] : 1;
    return blocks;
}

static uint64_t threads_of(const struct occ_launch *launch)
{
    return (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
}

static int refuse_block(const struct occ_device *device, const struct occ_launch *launch,
                        struct occ_error *err)
{
    uint64_t threads = threads_of(launch);
    if (launch->block[1] == 1 && launch->block[2] == 1)
        return occ_fail(err, OCC_E_INVALID, "--threads: %u is out of range (1 to %u)", launch->block[0],
                        device->max_threads_per_block);
    return occ_fail(err, OCC_E_INVALID,
                    "--threads: %ux%ux%u (%" PRIu64
                    " threads) is out of range (x and y 1 to 1024, z 1 to 64, together %u)",
                    launch->block[0], launch->block[1], launch->block[2], threads,
                    device->max_threads_per_block);
}

static int refuse_registers(const struct occ_device *device, const struct occ_launch *launch,
                            struct occ_error *err)
{
    if (launch->registers_per_thread < 1 || launch->registers_per_thread > device->max_registers_per_thread)
        return occ_fail(err, OCC_E_INVALID, "--regs: %u is out of range (1 to %u)",
                        launch->registers_per_thread, device->max_registers_per_thread);
    return occ_fail(err, OCC_E_INVALID,
                    "--regs: %u for each of %" PRIu64 " threads are more than the %u registers of a block",
                    launch->registers_per_thread, threads_of(launch), device->registers_per_block);
}

static int refuse_smem(const struct occ_device *device, const struct occ_launch *launch,
                       struct occ_error *err)
{
    uint64_t bytes = (uint64_t)launch->static_smem_bytes + launch->dynamic_smem_bytes;
    if (launch->max_dynamic_smem_known && launch->dynamic_smem_bytes > launch->max_dynamic_smem_bytes)
        return occ_fail(err, OCC_E_INVALID,
                        "--dynamic-smem: %u bytes are more than the %u of --max-dynamic-smem",
                        launch->dynamic_smem_bytes, launch->max_dynamic_smem_bytes);
    bool optin = bytes > device->smem_per_block_optin_bytes;
    return occ_fail(err, OCC_E_INVALID,
                    "--smem + --dynamic-smem: %" PRIu64 " bytes are more than the %u that a block may have%s",
                    bytes, optin ? device->smem_per_block_optin_bytes : device->smem_per_block_bytes,
                    optin ? "" : " without opting in");
}

static int refuse_cluster(const struct occ_device *device, const struct occ_launch *launch,
                          struct occ_error *err)
{
    uint64_t blocks = calc_cluster_blocks(launch);
    if (device->max_cluster_size == 1)
        return occ_fail(err, OCC_E_INVALID, "--cluster: compute capability %u.%u has no clusters",
                        device->cc / 10, device->cc % 10);
    if (blocks > device->max_cluster_size)
        return occ_fail(err, OCC_E_INVALID, "--cluster: %" PRIu64 " blocks are out of range (1 to %u)",
                        blocks, device->max_cluster_size);
    for (int axis = 0; axis < 3; axis++)
        if (launch->cluster[axis] > 1 && launch->grid[axis] % launch->cluster[axis] != 0)
            return occ_fail(err, OCC_E_INVALID, "--cluster: %u does not divide the %u blocks of --grid (%c)",
                            launch->cluster[axis], launch->grid[axis], "xyz"[axis]);
    return occ_fail(err, OCC_E_INVALID, "--cluster: not one cluster of %" PRIu64 " blocks fits", blocks);
}

static int refuse_grid(const struct occ_device *device, const struct occ_launch *launch,
                       struct occ_error *err)
{
    const char *max = device->cc < 30 ? "65535" : "2147483647";
    if (launch->grid[1] == 1 && launch->grid[2] == 1)
        return occ_fail(err, OCC_E_INVALID, "--grid: %u is out of range (1 to %s)", launch->grid[0], max);
    return occ_fail(err, OCC_E_INVALID, "--grid: %ux%ux%u is out of range (x 1 to %s, y and z 1 to 65535)",
                    launch->grid[0], launch->grid[1], launch->grid[2], max);
}

int calc_refuse(enum occ_status status, const struct occ_device *device, const struct occ_launch *launch,
                struct occ_error *err)
{
    switch (status) {
    case OCC_BAD_BLOCK:
        return refuse_block(device, launch, err);
    case OCC_BAD_REGISTERS:
        return refuse_registers(device, launch, err);
    case OCC_BAD_SMEM:
        return refuse_smem(device, launch, err);
    case OCC_BAD_CLUSTER:
        return refuse_cluster(device, launch, err);
    case OCC_BAD_GRID:
        return refuse_grid(device, launch, err);
    case OCC_BAD_BARRIERS:
        return occ_fail(err, OCC_E_INVALID, "--barriers: %u is out of range (0 to 16)", launch->barriers);
    default:
        return occ_fail(err, OCC_E_INVALID, "%s", occ_status_text(status));
    }
}
