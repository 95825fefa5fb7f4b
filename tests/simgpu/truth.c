/*
 * OCCSIM_TRUTH: writes one CSV line per launch with the simulation's values; tests compare records with them.
 * The first line of an empty file has the column names. Each line is one write(), so processes may share a
 * file. Threads: called under the driver's lock.
 */
#include "driver.h"

#include "env.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char header[] =
    "name,device,context,stream,correlation,graph,graph_node,grid_x,grid_y,grid_z,block_x,"
    "block_y,block_z,dynamic_smem,start_ns,end_ns,blocks_per_sm,wave_blocks,blocks,"
    "waves,smem_config,block_ns,block_ns_total,achieved,elapsed,issue,dram,l2,l1,tensor\n";

static int truth_fd(void)
{
    static int fd = -2;
    struct stat stat;
    if (fd != -2)
        return fd;
    const char *path = sim_env()->truth;
    fd = *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (*path && fd < 0)
        sim_complain("OCCSIM_TRUTH: %s cannot be written", path);
    if (fd >= 0)
        (void)flock(fd, LOCK_EX); /* one header, before all lines */
    if (fd >= 0 && fstat(fd, &stat) == 0 && stat.st_size == 0 && write(fd, header, sizeof header - 1) < 0)
        fd = -1;
    if (fd >= 0)
        (void)flock(fd, LOCK_UN);
    return fd;
}

void sim_truth_write(const struct sim_truth *truth)
{
    int fd = truth_fd();
    if (fd < 0)
        return;
    const struct sim_activity *a = truth->activity;
    const struct sim_kernel_activity *k = &a->kernel;
    const struct sim_occupation *o = truth->occupation;
    char line[4096];
    int n = snprintf(
        line, sizeof line,
        "\"%.2048s\",%u,%u,%u,%u,%u,%llu,%u,%u,%u,%u,%u,%u,%u,%llu,%llu,%u,%llu,%llu,%.6f,%u,%llu,%.0f,%.9f,%"
        ".9f,%.9f,%.9f,%.9f,%.9f,%.9f\n",
        k->name, a->device, a->context, a->stream, a->correlation, a->graph,
        (unsigned long long)a->graph_node, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1],
        k->block[2], k->dynamic_smem_bytes, (unsigned long long)a->start_ns, (unsigned long long)a->end_ns,
        truth->blocks_per_sm, (unsigned long long)truth->wave_blocks, (unsigned long long)truth->blocks,
        (double)truth->blocks / (double)truth->wave_blocks, k->smem_config_bytes,
        (unsigned long long)truth->block_ns, truth->block_ns_total, o->achieved, o->elapsed,
        o->busy[SIM_UNIT_ISSUE], o->busy[SIM_UNIT_DRAM], o->busy[SIM_UNIT_L2], o->busy[SIM_UNIT_L1],
        o->busy[SIM_UNIT_TENSOR]);
    if (n > 0 && (size_t)n < sizeof line && write(fd, line, (size_t)n) < 0)
        sim_log("OCCSIM_TRUTH: a line could not be written");
}
