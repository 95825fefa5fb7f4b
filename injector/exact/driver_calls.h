/* Driver calls that --exact watches, by CUPTI's numbers, which never change. X(name, number, what): LAUNCH:
 * one kernel; GRAPH: any number of kernels in the call's context; STRAY: any number of kernels, also in other
 * contexts; BEGIN and END: a stream's capture; DESTROY: of a stream, which ends its capture. BEGIN, END and
 * DESTROY have the stream as the first parameter. */
#pragma once

#define OCC_DRIVER_CALLS(X)                                                                                  \
    X(cuLaunch, 115, LAUNCH)                                                                                 \
    X(cuLaunchGrid, 116, LAUNCH)                                                                             \
    X(cuLaunchGridAsync, 117, LAUNCH)                                                                        \
    X(cuLaunchKernel, 307, LAUNCH)                                                                           \
    X(cuLaunchKernel_ptsz, 442, LAUNCH)                                                                      \
    X(cuLaunchCooperativeKernel, 477, LAUNCH)                                                                \
    X(cuLaunchCooperativeKernel_ptsz, 478, LAUNCH)                                                           \
    X(cuLaunchKernelEx, 652, LAUNCH)                                                                         \
    X(cuLaunchKernelEx_ptsz, 653, LAUNCH)                                                                    \
    X(cuGraphLaunch, 514, GRAPH)                                                                             \
    X(cuGraphLaunch_ptsz, 515, GRAPH)                                                                        \
    X(cuMemBatchDecompressAsync, 761, GRAPH)                                                                 \
    X(cuMemBatchDecompressAsync_ptsz, 762, GRAPH)                                                            \
    X(cuLaunchCooperativeKernelMultiDevice, 480, STRAY)                                                      \
    X(cuStreamBeginCapture, 495, BEGIN)                                                                      \
    X(cuStreamBeginCapture_ptsz, 496, BEGIN)                                                                 \
    X(cuStreamBeginCapture_v2, 539, BEGIN)                                                                   \
    X(cuStreamBeginCapture_v2_ptsz, 540, BEGIN)                                                              \
    X(cuStreamBeginCaptureToGraph, 720, BEGIN)                                                               \
    X(cuStreamBeginCaptureToGraph_ptsz, 721, BEGIN)                                                          \
    X(cuStreamEndCapture, 497, END)                                                                          \
    X(cuStreamEndCapture_ptsz, 498, END)                                                                     \
    X(cuStreamDestroy, 127, DESTROY)                                                                         \
    X(cuStreamDestroy_v2, 326, DESTROY)

enum occ_driver_call {
    OCC_CALL_LAUNCH,
    OCC_CALL_GRAPH,
    OCC_CALL_STRAY,
    OCC_CALL_BEGIN,
    OCC_CALL_END,
    OCC_CALL_DESTROY
};
