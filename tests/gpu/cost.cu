// The kernel of launch_cost: empty, so that only the launch is measured.

extern "C" __global__ void null_kernel()
{
}
