/*
 * Processes that share a device without MPS: they alternate (CUDA's guide on MPS: "only one process's work is
 * executed at a time"), here at launches: a process keeps its turn until its queued work ends. A small file
 * per device beside the counters has the turn, under the counters' lock (segments.h); without OCCSIM_COUNTERS
 * processes are independent. Threads: called under the driver's lock.
 */
#include "driver.h"

#include "env.h"

#include <unistd.h>

struct turn {
    int64_t pid;
    uint64_t until_ns;
};

static int turn_fd(struct sim_device *device)
{
    uint8_t uuid[SIM_UUID_BYTES];
    if (device->turn_asked)
        return device->turn_fd;
    device->turn_asked = true;
    device->turn_fd = -1;
    if (sim_env()->mps)
        return -1;
    sim_gpu_uuid(device->gpu, (uint32_t)device->ordinal, uuid);
    device->turn_fd = sim_segments_open(sim_env()->counters, uuid, SIM_TURN_SUFFIX, SIM_UPDATE);
    return device->turn_fd;
}

uint64_t sim_turn_ready_locked(struct sim_device *device)
{
    struct turn turn;
    int fd = turn_fd(device);
    if (fd < 0 || pread(fd, &turn, sizeof turn, 0) != (ssize_t)sizeof turn || turn.pid == (int64_t)getpid())
        return 0;
    return turn.until_ns;
}

void sim_turn_take_locked(struct sim_device *device, uint64_t until_ns)
{
    struct turn turn = {0}, now = {getpid(), until_ns};
    int fd = turn_fd(device);
    if (fd < 0)
        return;
    if (pread(fd, &turn, sizeof turn, 0) == (ssize_t)sizeof turn && turn.until_ns > now.until_ns)
        now.until_ns = turn.until_ns;
    if (pwrite(fd, &now, sizeof now, 0) != (ssize_t)sizeof now)
        sim_complain("OCCSIM_COUNTERS: a turn could not be written");
}
