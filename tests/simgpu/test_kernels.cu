// Kernels for the tests of the simulated device: each differs from the others in one resource that the
// image reader must find. Their results do not matter.
extern "C" __global__ void plain(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

extern "C" __global__ void __launch_bounds__(256, 4) bounded(float *out)
{
    __shared__ float tile[2048];
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[(threadIdx.x * 7) & 2047];
}

extern "C" __global__ void dynamic(float *out)
{
    extern __shared__ float tile[];
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

template <int N> __global__ void local(float *out, int k)
{
    float keep[N];
    for (int i = 0; i < N; i++)
        keep[(i * k) % N] = out[i];
    out[threadIdx.x] = keep[k % N];
}
template __global__ void local<16>(float *, int);
template __global__ void local<200>(float *, int);

extern "C" __global__ void __launch_bounds__(128, 1) heavy(double *out)
{
    double sum[48];
#pragma unroll
    for (int i = 0; i < 48; i++)
        sum[i] = out[i * 128 + threadIdx.x];
#pragma unroll 1
    for (int r = 0; r < 100; r++)
#pragma unroll
        for (int i = 0; i < 48; i++)
            sum[i] = sum[i] * sum[(i + 7) % 48] + r;
#pragma unroll
    for (int i = 0; i < 48; i++)
        out[i * 128 + threadIdx.x] = sum[i];
}

extern "C" __global__ void barriers(float *out)
{
    asm volatile("bar.sync 3, 64;" ::: "memory");
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = 1;
}

__device__ int counter[8];
__device__ int preset[4] = {1, 2, 3, 4};
__constant__ float weights[16];
extern "C" __global__ void globals(float *out)
{
    out[threadIdx.x] = weights[threadIdx.x & 15] * (float)(counter[threadIdx.x & 7] + preset[threadIdx.x & 3]);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(float *out)
{
    out[threadIdx.x] = 1;
}
#endif
