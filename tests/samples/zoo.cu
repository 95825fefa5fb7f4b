// The kernels of the zoo. In each kernel one resource determines the number of blocks per SM; the computed
// values (a little arithmetic on a buffer without readers) do not matter. zoo.c has each kernel's launch and
// answer.
//
// The register counts that matter are forced: __launch_bounds__(threads, blocks) is the maximum,
// and the kernel keeps more values alive, so every compiler version reaches the maximum.

typedef unsigned int u32;

// Computes for a while with few registers.
__device__ __forceinline__ float turn(float x, u32 rounds)
{
#pragma unroll 1
    for (u32 i = 0; i < rounds; i++)
        x = x * 1.0000001f + 0.5f;
    return x;
}

__device__ __forceinline__ void simple(float *out, u32 rounds)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i & 0xffff] = turn((float)i, rounds);
}

// Keeps `Values` values alive: every round mixes each value with its neighbour, so none can be dropped or
// recomputed.
template <int Values> __device__ __forceinline__ void crowded(float *out, u32 rounds)
{
    float v[Values];
#pragma unroll
    for (int i = 0; i < Values; i++)
        v[i] = out[(threadIdx.x + i * 37) & 0xffff];
#pragma unroll 1
    for (u32 r = 0; r < rounds; r++) {
#pragma unroll
        for (int i = 0; i < Values; i++)
            v[i] = v[i] * v[(i + 1) % Values] + 0.5f;
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Values; i++)
        sum += v[i] * (float)(i + 1);
    out[(blockIdx.x * blockDim.x + threadIdx.x) & 0xffff] = sum;
}

template <int Bytes> __device__ __forceinline__ void with_static_smem(float *out, u32 rounds)
{
    __shared__ float tile[Bytes / 4];
    for (u32 i = threadIdx.x; i < Bytes / 4; i += blockDim.x)
        tile[i] = (float)i;
    __syncthreads();
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i & 0xffff] = turn(tile[(i * 97) % (Bytes / 4)], rounds);
}

extern __shared__ float dynamic_tile[];

__device__ __forceinline__ void with_dynamic_smem(float *out, u32 rounds)
{
    dynamic_tile[threadIdx.x] = (float)threadIdx.x;
    __syncthreads();
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i & 0xffff] = turn(dynamic_tile[(threadIdx.x * 7) % blockDim.x], rounds);
}

__device__ __forceinline__ void crowded_with_dynamic_smem(float *out, u32 rounds)
{
    with_dynamic_smem(out, 1);
    crowded<160>(out, rounds);
}

#define ZOO(name, threads, body)                                                                             \
    extern "C" __global__ void __launch_bounds__ threads name(float *out, u32 rounds)                        \
    {                                                                                                        \
        body(out, rounds);                                                                                   \
    }

ZOO(perfect, (256), simple)
ZOO(full_waves, (128), simple)
ZOO(warps_and_blocks, (64), simple)
ZOO(block_768, (768), simple)
ZOO(block_96, (96), simple)
ZOO(block_1024, (1024), simple)
ZOO(block_32, (32), simple)
ZOO(partial_warp, (100), simple)
ZOO(tiny_grid, (256), simple)
ZOO(half_grid, (256), simple)
ZOO(tail, (256), simple)
ZOO(persistent, (256), simple)
ZOO(clusters, (256), simple)
ZOO(uneven_clusters, (1024), simple)

// At most 65536 / (256 x 2) = 128 registers a thread, and the kernel needs all of these: two blocks on an SM.
ZOO(registers, (256, 2), crowded<160>)
// The same kernel; zoo.c adds shared memory for exactly two blocks.
ZOO(registers_and_smem, (256, 2), crowded_with_dynamic_smem)

ZOO(static_smem, (128), with_static_smem<40 * 1024>)
ZOO(dynamic_smem, (128), with_dynamic_smem)
ZOO(optin_smem, (256), with_dynamic_smem)
ZOO(one_block_smem, (256), with_dynamic_smem)
ZOO(carveout, (128), with_static_smem<8 * 1024>)
