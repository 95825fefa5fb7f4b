// Kernels with known duration and occupancy: they hold their warps for a given time without other work.
// load.c determines the number of resident warps.
//
// Time is %globaltimer: it is independent of the SM clock. Its step is 32 ns on an H100 and up to 1 us on
// others.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u64 now_ns()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ __forceinline__ void hold(u64 ns)
{
    u64 start = now_ns();
    while (now_ns() - start < ns)
        ;
}

extern "C" __global__ void load_spin(u64 ns)
{
    hold(ns);
}

// Every second block that an SM gets ends after short_ns. tickets: one zeroed counter for each SM.
extern "C" __global__ void load_uneven_blocks(u64 ns, u64 short_ns, u32 *tickets)
{
    __shared__ u32 ticket;
    if (threadIdx.x == 0) {
        u32 sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        ticket = atomicAdd(&tickets[sm], 1);
    }
    __syncthreads();
    hold(ticket & 1 ? short_ns : ns);
}

// Every second warp of a block ends after short_ns; the block keeps its resources until its last warp ends.
extern "C" __global__ void load_uneven_warps(u64 ns, u64 short_ns)
{
    hold((threadIdx.x / 32) & 1 ? short_ns : ns);
}

// A fixed amount of arithmetic: its duration follows the SM clock.
extern "C" __global__ void load_fma(float *out, u32 rounds)
{
    float a = (float)threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 1
    for (u32 i = 0; i < rounds; i++) {
#pragma unroll
        for (int k = 0; k < 16; k++) {
            a = a * 1.0000001f + 0.5f;
            b = b * 1.0000001f + 0.5f;
            c = c * 1.0000001f + 0.5f;
            d = d * 1.0000001f + 0.5f;
        }
    }
    if (a + b + c + d == 0.125f)
        *out = a;
}
