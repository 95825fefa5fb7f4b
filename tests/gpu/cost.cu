// The kernel of launch_cost: nothing, so that what is measured is the launch.

extern "C" __global__ void null_kernel()
{
}
