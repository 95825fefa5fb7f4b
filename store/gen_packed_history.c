/* occ_gen_packed_history: prints the C source of occ_packed_history, an empty history that SQLite has made in
 * a temporary directory. A build tool. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zstd.h>

#include "packed_history.h"
#include "store.h"
#include "support/cleanup.h"

enum { MAX_BYTES = 4 << 20, PACKED_MAX = 1 << 20, LEVEL = 19, COLUMNS = 16 };

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

static void print(const uint8_t *packed, size_t packed_bytes, size_t bytes, size_t identity_at)
{
    (void)printf("/* Made by gen_packed_history.c. */\n#include \"store/packed_history.h\"\n\n"
                 "static const unsigned char packed[] = {");
    for (size_t i = 0; i < packed_bytes; i++)
        (void)printf("%s%u,", i % COLUMNS == 0 ? "\n" : "", packed[i]);
    (void)printf("\n};\n\nconst struct occ_packed_history occ_packed_history = {\n"
                 "    packed, sizeof packed, %zu, %zu};\n",
                 bytes, identity_at);
}

int main(void)
{
    static uint8_t bytes[MAX_BYTES], packed[PACKED_MAX];
    const char *place = getenv("TMPDIR");
    char directory[4096], path[4200];
    (void)snprintf(directory, sizeof directory, "%s/occ_gen-XXXXXX", place ? place : "/tmp");
    if (!mkdtemp(directory))
        return 1;
    (void)snprintf(path, sizeof path, "%s/history.db", directory);
    size_t n = make(path, bytes);
    (void)unlink(path);
    (void)rmdir(directory);
    size_t identity_at = find_identity(bytes, n);
    size_t packed_bytes = identity_at > 0 ? ZSTD_compress(packed, sizeof packed, bytes, n, LEVEL) : 0;
    if (identity_at == 0 || ZSTD_isError(packed_bytes))
        return 1;
    print(packed, packed_bytes, n, identity_at);
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
