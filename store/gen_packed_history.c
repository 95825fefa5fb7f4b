/* occ_gen_packed_history: prints the C source of occ_packed_history, an empty history that SQLite has made in
 * a temporary directory. A build tool. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <unistd.h>

#include "packed_history.h"
#include "store.h"
#include "support/cleanup.h"

/* Zeros between two runs: 256 zeros cost less than another write. */
enum { MAX_BYTES = 4 << 20, ZEROS_MIN = 256, RUNS_MAX = MAX_BYTES / ZEROS_MIN, COLUMNS = 16 };

/* An identity that occurs once in the file: its bytes, and as SQL. */
static const uint8_t identity[OCC_IDENTITY_BYTES] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
#define SET_IDENTITY "UPDATE stored_identity SET identity = 0x1122334455667788"

/* Returns the number of bytes; 0: failed. */
static size_t make(const char *path, uint8_t *bytes)
{
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    if (occ_store_open(path, &options, &store, &err) != 0) {
        (void)fprintf(stderr, "occ_gen_packed_history: %s\n", err.message);
        return 0;
    }
    bool is_set = sqlite3_exec(occ_store_sqlite(store), SET_IDENTITY, NULL, NULL, NULL) == SQLITE_OK;
    occ_store_close(store); /* moves the write-ahead log into the file */
    FILE *file = fopen(path, "rbe");
    size_t n = file ? fread(bytes, 1, MAX_BYTES, file) : 0;
    if (file)
        (void)fclose(file);
    return is_set && n < MAX_BYTES ? n : 0;
}

/* Returns where the file has its identity; 0: not exactly once. */
static size_t find_identity(const uint8_t *bytes, size_t n)
{
    const uint8_t *first = memmem(bytes, n, identity, sizeof identity);
    size_t at = first ? (size_t)(first - bytes) : 0;
    return first && !memmem(first + 1, n - at - 1, identity, sizeof identity) ? at : 0;
}

/* Returns where a run of zeros of at least ZEROS_MIN bytes begins at or after `at`; `n`: none. */
static size_t find_zeros(const uint8_t *bytes, size_t n, size_t at)
{
    static const uint8_t zeros[ZEROS_MIN];
    const uint8_t *found = memmem(bytes + at, n - at, zeros, sizeof zeros);
    return found ? (size_t)(found - bytes) : n;
}

/* Returns the number of runs in `runs`, of RUNS_MAX + 1 at most. */
static size_t find_runs(const uint8_t *bytes, size_t n, struct occ_packed_run *runs)
{
    size_t n_runs = 0, at = 0;
    while (at < n) {
        size_t end = find_zeros(bytes, n, at);
        if (end > at)
            runs[n_runs++] = (struct occ_packed_run){(uint32_t)at, (uint32_t)(end - at)};
        for (at = end; at < n && bytes[at] == 0;)
            at++;
    }
    return n_runs;
}

static void print(const uint8_t *bytes, size_t n, const struct occ_packed_run *runs, size_t n_runs,
                  size_t identity_at)
{
    (void)printf("/* Made by gen_packed_history.c. */\n#include \"store/packed_history.h\"\n\n"
                 "static const unsigned char packed[] = {");
    for (size_t i = 0; i < n_runs; i++)
        for (uint32_t j = 0; j < runs[i].bytes; j++)
            (void)printf("%s%u,", j % COLUMNS == 0 ? "\n" : "", bytes[runs[i].at + j]);
    (void)printf("\n};\n\nstatic const struct occ_packed_run runs[] = {\n");
    for (size_t i = 0; i < n_runs; i++)
        (void)printf("    {%u, %u},\n", runs[i].at, runs[i].bytes);
    (void)printf("};\n\nconst struct occ_packed_history occ_packed_history = {\n"
                 "    packed, runs, sizeof runs / sizeof *runs, %zu, %zu};\n",
                 n, identity_at);
}

int main(void)
{
    static uint8_t bytes[MAX_BYTES];
    static struct occ_packed_run runs[RUNS_MAX + 1];
    const char *parent = getenv("TMPDIR");
    char directory[4096], path[4200];
    (void)snprintf(directory, sizeof directory, "%s/occ_gen-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(directory))
        return 1;
    (void)snprintf(path, sizeof path, "%s/history.db", directory);
    size_t n = make(path, bytes);
    (void)unlink(path);
    (void)rmdir(directory);
    size_t identity_at = find_identity(bytes, n);
    if (identity_at == 0)
        return 1;
    print(bytes, n, runs, find_runs(bytes, n, runs), identity_at);
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
