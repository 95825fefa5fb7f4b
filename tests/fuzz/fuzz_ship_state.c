/*
 * Fuzzes ship.db, the shipper's state: for any content, opening, reading, printing and storing give values or
 * an error. The input patches a valid file; a second program may write to it at any time.
 *
 * Input: first byte bit 0: read-only; bit 1: SQL instead of patches. Then patches {u16 page and offset, u8
 * value}, or statements that run on the file.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/state.h"
#include "fuzz_bytes.h"

#define FILE_BYTES_MAX 65536

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[64] = "/tmp/occtrace-fuzz-XXXXXX", path[80], journal[96];
static uint8_t sound[FILE_BYTES_MAX];
static size_t sound_bytes;
static FILE *nowhere;

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

static void put_seen(struct occ_state *state)
{
    struct occ_seen seen;
    const struct occ_seen_history sent = {.file = {.inode = 3, .bytes = 4096}, .open_minute = 28333333};
    occ_seen_open(&seen);
    must(occ_seen_load(&seen, "/a/u1/history.db", &sent, NULL) == 0);
    must(occ_seen_load(&seen, "/a/u2/history.db", &sent, NULL) == 0);
    for (size_t i = 0; i < seen.n; i++) {
        seen.entries[i].is_found = true;
        occ_seen_put(&seen, i, &sent);
    }
    must(occ_state_store_seen(state, &seen, NULL) == 0);
    occ_seen_close(&seen);
}

static void make_sound(void)
{
    struct occ_state *state = NULL;
    const struct occ_ship_position position = {.identity = 7, .done = 1, .newest = 1};
    const struct occ_ship_counters counters = {.batches = 3, .last_success_s = 1700000000};
    must(occ_state_open(path, false, &state, NULL) == 0);
    must(occ_state_store(state, &position, &counters, "it failed", NULL) == 0);
    put_seen(state);
    occ_state_close(state);
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
    (void)snprintf(path, sizeof path, "%s/ship.db", directory);
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    nowhere = fopen("/dev/null", "we");
    must(nowhere != NULL);
    make_sound();
    return 0;
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

static int stop(void *steps)
{
    return --*(int *)steps < 0;
}

/* Runs statements of another program, without access to other files. */
static void run_sql(struct fuzz_bytes text)
{
    static const char attach[] = "attach", vacuum[] = "vacuum";
    char sql[1024];
    int steps = 1000;
    sqlite3 *db = NULL;
    (void)snprintf(sql, sizeof sql, "%.*s", (int)text.n, (const char *)text.data);
    if (strcasestr(sql, attach) || strcasestr(sql, vacuum))
        return;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 100000);
        sqlite3_progress_handler(db, 1000, stop, &steps);
        (void)sqlite3_exec(db, sql, NULL, NULL, NULL);
    }
    (void)sqlite3_close(db);
}

static void use(bool read_only)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_state *state = NULL;
    struct occ_ship_position position;
    struct occ_ship_counters counters;
    if (occ_state_open(path, read_only, &state, &err) != 0)
        return;
    int failed = occ_state_load_position(state, 7, &position, &err);
    must(position.identity == 7 || failed == 0);
    struct occ_seen seen;
    occ_seen_open(&seen);
    if (occ_state_load_seen(state, &seen, &err) == 0)
        for (size_t i = 1; i < seen.n; i++)
            must(strcmp(seen.entries[i - 1].path, seen.entries[i].path) < 0);
    if (!read_only)
        (void)occ_state_store_seen(state, &seen, &err);
    occ_seen_close(&seen);
    if (occ_state_load_counters(state, &counters, &err) == 0 && failed == 0 && !read_only)
        (void)occ_state_store(state, &position, &counters, "", &err);
    (void)occ_state_print(state, nowhere, &err);
    occ_state_close(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes input = {data, size}, none = {data, 0};
    uint8_t control = fuzz_byte(&input);
    put_file(control & 2 ? none : input);
    if (control & 2)
        run_sql(input);
    use(control & 1);
    return 0;
}
