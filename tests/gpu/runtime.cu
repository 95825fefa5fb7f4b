// A program with the CUDA runtime, linked statically as by default: the most common kind. Makes as many
// launches as its argument says, and prints their number. Only for real GPUs: the static runtime needs
// NVIDIA's own driver.

#include <cstdio>
#include <cstdlib>

// libgcc's unwinder calls it, glibc has it since 2.35, and the portable bundle runs with 2.34. No code here
// throws.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void *, void *)
{
    return -1;
}

__global__ void add_one(int *value)
{
    atomicAdd(value, 1);
}

int main(int argc, char **argv)
{
    int launches = argc > 1 ? std::atoi(argv[1]) : 100, sum = 0, *value = nullptr;
    if (cudaMalloc(&value, sizeof *value) != cudaSuccess || cudaMemset(value, 0, sizeof *value) != cudaSuccess) {
        std::fprintf(stderr, "runtime: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    for (int i = 0; i < launches; i++)
        add_one<<<1, 32>>>(value);
    cudaError_t error = cudaMemcpy(&sum, value, sizeof sum, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess || sum != 32 * launches) {
        std::fprintf(stderr, "runtime: %s, sum %d\n", cudaGetErrorString(error), sum);
        return 1;
    }
    std::printf("launches: %d\n", launches);
    return 0;
}
