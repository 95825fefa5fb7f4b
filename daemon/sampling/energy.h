/*
 * The energy of a GPU by second, from a counter of all its energy. NVML's counter has millijoules since the
 * driver was loaded (Volta and newer; instances of MIG have none). It covers the whole board, so all programs
 * on the GPU.
 *
 * The counter is read when a second of the clock has passed, and only while the caller asks. The energy
 * between two readings is spread evenly over their time and cut at the end of a second. After a time without
 * readings one item covers all of it. A counter that falls, a clock that was set, a day without readings and
 * a power above OCC_ENERGY_POWER_MAX_W begin anew: energy is never negative, and unknown energy is no item.
 *
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OCC_ENERGY_POWER_MAX_W 100000.0
#define OCC_ENERGY_GAP_NS      INT64_C(86400000000000)

/* The energy of a time that ends with a second. */
struct occ_energy_second {
    int64_t second;    /* since the epoch; the time ends at its end */
    int64_t length_ns; /* of the time: a second, or more after a time without readings, or less at first */
    int64_t mj;        /* millijoules */
};

/* A counter of one GPU. */
struct occ_energy_counter;
struct occ_energy_kind {
    /* NULL: the GPU has no counter, or it cannot be read. May take seconds. */
    struct occ_energy_counter *(*open)(const uint8_t uuid[16]);
    /* False: the counter is lost. */
    bool (*read)(struct occ_energy_counter *counter, uint64_t *ret_mj);
    void (*close)(struct occ_energy_counter *counter);
};
extern const struct occ_energy_kind occ_energy_nvml;

/* The readings of one GPU. Zeroed but for `kind` (NULL: none) and `uuid`: nothing was read. */
struct occ_energy {
    const struct occ_energy_kind *kind;
    uint8_t uuid[16];
    struct occ_energy_counter *counter;
    int64_t retry_ns; /* monotonic: next try to open the counter */
    bool has_last;
    int64_t last_ns, last_monotonic_ns; /* last reading */
    uint64_t last_mj;
    int64_t from_ns; /* start of the time that the next item covers */
    double mj;       /* energy since then */
    bool has_total;  /* the counter was read twice */
    double total_mj; /* between readings at most 10 s apart; grows only */
};

/* Reads the counter if a second has passed since the last reading. True: *ret_second is a new item. */
bool occ_energy_poll(struct occ_energy *energy, int64_t now_ns, int64_t monotonic_ns,
                     struct occ_energy_second *ret_second);
void occ_energy_close(struct occ_energy *energy);
