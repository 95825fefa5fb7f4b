/* The tracepoint for comparison with occ_ring_push(): a launch's fields. lttng/tracepoint.h includes this
 * file several times, hence the unusual guard. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER occtrace_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./bench_ring_tp.h"

#if !defined(OCC_BENCH_RING_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OCC_BENCH_RING_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    occtrace_bench, launch,
    LTTNG_UST_TP_ARGS(uint64_t, start_ns, uint64_t, duration_ns, uint64_t, graph_node, uint32_t, shape,
                      uint32_t, stream, uint32_t, correlation),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, start_ns, start_ns)
                            lttng_ust_field_integer(uint64_t, duration_ns, duration_ns)
                                lttng_ust_field_integer(uint64_t, graph_node, graph_node)
                                    lttng_ust_field_integer(uint32_t, shape, shape)
                                        lttng_ust_field_integer(uint32_t, stream, stream)
                                            lttng_ust_field_integer(uint32_t, correlation, correlation)))

#endif

#include <lttng/tracepoint-event.h>
