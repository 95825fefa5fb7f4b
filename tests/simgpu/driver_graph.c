/*
 * Graphs: built by hand or captured from streams, instantiated, updated, launched.
 *
 * A node has an operation (driver.h, sim_op) and dependencies. Instantiation sorts the nodes, so
 * that each comes after its dependencies. An executable graph is a copy with its own ids, and each of its
 * nodes refers to the original node. A launch runs every node at the end of its last dependency;
 * all its kernels share one correlation id. Threads: any; everything is under sim_lock(). Changing one graph
 * in two threads at a time is an error of the program.
 */
#include "driver.h"

#include "clock.h"
#include "env.h"

#include <stdlib.h>
#include <string.h>

#define NODE_GAP_NS 600 /* from the end of a node to a dependent one */

struct sim_node {
    enum sim_type type;
    struct sim_graph *graph;
    uint64_t id; /* CUPTI's graphNodeId: the graph's id in the upper half, a number in the lower */
    struct sim_op op;
    struct sim_nodes waits_for;
    struct sim_node *origin; /* the node that it was copied from; only compared */
    uint32_t index;          /* in its graph, while sorting and executing */
    uint64_t end_ns;
};

struct sim_graph {
    enum sim_type type; /* SIM_GRAPH or SIM_EXEC */
    uint32_t id;
    uint32_t next_node;
    struct sim_nodes nodes;
    bool sorted;
};

/* ---- node lists ---- */

/* Appends a node without searching for it: for a graph's own list, where each node is new. */
static bool nodes_append(struct sim_nodes *nodes, struct sim_node *node)
{
    if (nodes->count == nodes->room) {
        size_t room = nodes->room ? nodes->room * 2 : 4;
        struct sim_node **items = realloc(nodes->items, room * sizeof(struct sim_node *));
        if (!items)
            return false;
        nodes->items = items;
        nodes->room = room;
    }
    nodes->items[nodes->count++] = node;
    return true;
}

bool sim_nodes_add(struct sim_nodes *nodes, struct sim_node *node)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->items[i] == node)
            return true;
    }
    return nodes_append(nodes, node);
}

void sim_nodes_clear(struct sim_nodes *nodes)
{
    free(nodes->items);
    *nodes = (struct sim_nodes){0};
}

static bool nodes_copy(struct sim_nodes *to, const struct sim_nodes *from)
{
    for (size_t i = 0; i < from->count; i++) {
        if (!sim_nodes_add(to, from->items[i]))
            return false;
    }
    return true;
}

/* ---- graphs ---- */

static struct sim_graph *graph_new_locked(enum sim_type type)
{
    static uint32_t last_id;
    struct sim_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->type = type;
    graph->id = ++last_id;
    return graph;
}

static void graph_free_locked(struct sim_graph *graph);
static struct sim_graph *clone_locked(struct sim_graph *from, enum sim_type type);

static void node_free_locked(struct sim_node *node)
{
    if (node->op.kind == SIM_OP_CHILD && node->op.child)
        graph_free_locked(node->op.child);
    sim_nodes_clear(&node->waits_for);
    node->type = 0;
    free(node);
}

static void graph_free_locked(struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        node_free_locked(graph->nodes.items[i]);
    sim_nodes_clear(&graph->nodes);
    graph->type = 0;
    free(graph);
}

/* Makes a node with its own copy of a child graph; later changes of the original have no effect. */
static struct sim_node *node_new_locked(struct sim_graph *graph, const struct sim_op *op)
{
    struct sim_node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    *node = (struct sim_node){.type = SIM_NODE, .graph = graph, .op = *op};
    node->id = (uint64_t)graph->id << 32 | ++graph->next_node;
    if (op->kind == SIM_OP_CHILD)
        node->op.child = clone_locked(op->child, SIM_GRAPH);
    if ((op->kind == SIM_OP_CHILD && !node->op.child) || !nodes_append(&graph->nodes, node)) {
        node_free_locked(node);
        return NULL;
    }
    graph->sorted = false;
    return node;
}

bool sim_graph_id(const void *graph_or_exec, uint32_t *ret_id)
{
    const struct sim_graph *graph = sim_handle(graph_or_exec, SIM_GRAPH);
    if (!graph)
        graph = sim_handle(graph_or_exec, SIM_EXEC);
    if (graph)
        *ret_id = graph->id;
    return graph != NULL;
}

bool sim_node_id(CUgraphNode handle, uint64_t *ret_id)
{
    const struct sim_node *node = sim_handle(handle, SIM_NODE);
    if (node)
        *ret_id = node->id;
    return node != NULL;
}

/* Sorts the nodes by dependencies (Kahn's algorithm over the indices); false: a cycle, or no memory. */
static bool sort_locked(struct sim_graph *graph)
{
    size_t count = graph->nodes.count, done = 0;
    struct sim_node **order = calloc(count + 1, sizeof(struct sim_node *));
    bool *placed = calloc(count + 1, sizeof *placed);
    for (size_t i = 0; i < count; i++)
        graph->nodes.items[i]->index = (uint32_t)i; /* previous position, for `placed` */
    bool moved = order && placed;
    while (moved && done < count) {
        moved = false;
        for (size_t i = 0; i < count; i++) {
            struct sim_node *node = graph->nodes.items[i];
            bool free_to_go = !placed[i];
            for (size_t d = 0; free_to_go && d < node->waits_for.count; d++)
                free_to_go = placed[node->waits_for.items[d]->index];
            if (free_to_go) {
                order[done++] = node;
                placed[i] = moved = true;
            }
        }
    }
    if (moved && count)
        memcpy(graph->nodes.items, order, count * sizeof(struct sim_node *));
    graph->sorted = moved;
    free(order);
    free(placed);
    return graph->sorted;
}

/* ---- public: building ---- */

static CUresult graph_of(const void *handle, enum sim_type type, struct sim_graph **ret)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    *ret = sim_handle(handle, type);
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    *phGraph = (CUgraph)graph_new_locked(SIM_GRAPH);
    sim_unlock();
    return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph hGraph)
{
    struct sim_graph *graph;
    CUresult result = graph_of(hGraph, SIM_GRAPH, &graph);
    if (result)
        return result;
    sim_lock();
    graph_free_locked(graph);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct sim_graph *exec;
    CUresult result = graph_of(hGraphExec, SIM_EXEC, &exec);
    if (result)
        return result;
    sim_lock();
    graph_free_locked(exec);
    sim_unlock();
    return CUDA_SUCCESS;
}

static CUresult add_dependencies_locked(struct sim_node *node, const CUgraphNode *dependencies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sim_node *before = sim_handle(dependencies[i], SIM_NODE);
        if (!before || before->graph != node->graph)
            return CUDA_ERROR_INVALID_VALUE;
        if (!sim_nodes_add(&node->waits_for, before))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->graph->sorted = false;
    return CUDA_SUCCESS;
}

static CUresult add_node(CUgraphNode *ret, CUgraph handle, const CUgraphNode *dependencies, size_t count,
                         const struct sim_op *op)
{
    struct sim_graph *graph;
    CUresult result = graph_of(handle, SIM_GRAPH, &graph);
    if (result)
        return result;
    if (!ret || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_node *node = node_new_locked(graph, op);
    result = node ? add_dependencies_locked(node, dependencies, count) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result && node) {
        graph->nodes.count--;
        node_free_locked(node);
    } else if (node) {
        *ret = (CUgraphNode)node;
    }
    sim_unlock();
    return result;
}

static CUresult kernel_op(const CUDA_KERNEL_NODE_PARAMS *params, struct sim_op *ret)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    *ret = (struct sim_op){.kind = SIM_OP_KERNEL,
                           .asynchronous = true,
                           .launch = {.grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
                                      .block = {params->blockDimX, params->blockDimY, params->blockDimZ},
                                      .dynamic_smem_bytes = params->sharedMemBytes,
                                      .carveout_percent = -1}};
    return sim_function_of(params->func ? (const void *)params->func : (const void *)params->kern,
                           &ret->launch.function);
}

CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct sim_op op;
    CUresult result = kernel_op(nodeParams, &op);
    return result ? result : add_node(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

static CUmemorytype settled_type(CUmemorytype type, CUdeviceptr address)
{
    return type == CU_MEMORYTYPE_UNIFIED ? sim_memory_type(address) : type;
}

/* Makes a copy operation without data: no kernel reads the data. */
static struct sim_op copy_op(const CUDA_MEMCPY3D *params)
{
    size_t height = params->Height ? params->Height : 1, depth = params->Depth ? params->Depth : 1;
    return (struct sim_op){.kind = SIM_OP_COPY,
                           .asynchronous = true,
                           .copy = {.bytes = params->WidthInBytes * height * depth,
                                    .from = settled_type(params->srcMemoryType, params->srcDevice),
                                    .to = settled_type(params->dstMemoryType, params->dstDevice)}};
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    (void)ctx;
    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_op op = copy_op(copyParams);
    return add_node(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

static struct sim_op set_op(const CUDA_MEMSET_NODE_PARAMS *params)
{
    size_t height = params->height ? params->height : 1;
    return (struct sim_op){.kind = SIM_OP_SET,
                           .asynchronous = true,
                           .set = {.bytes = params->width * params->elementSize * height,
                                   .value = params->value,
                                   .asynchronous = true}};
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                              CUcontext ctx)
{
    (void)ctx;
    if (!memsetParams)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_op op = set_op(memsetParams);
    return add_node(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                             size_t numDependencies)
{
    struct sim_op op = {.kind = SIM_OP_EMPTY};
    return add_node(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                            size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    if (!nodeParams || !nodeParams->fn)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_op op = {.kind = SIM_OP_HOST,
                        .host = {.function = nodeParams->fn, .data = nodeParams->userData}};
    return add_node(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  size_t numDependencies, CUgraph childGraph)
{
    struct sim_graph *child = NULL;
    CUresult result = graph_of(childGraph, SIM_GRAPH, &child);
    struct sim_op op = {.kind = SIM_OP_CHILD, .child = child};
    return result ? result : add_node(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                        const CUgraphEdgeData *dependencyData, size_t numDependencies,
                        CUgraphNodeParams *nodeParams)
{
    (void)dependencyData; /* programmatic edges wait for the whole node */
    struct sim_op op = {.kind = SIM_OP_EMPTY};
    CUresult result = CUDA_SUCCESS;
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)nodeParams->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS_v3 *k = &nodeParams->kernel;
        CUDA_KERNEL_NODE_PARAMS params = {.func = k->func,
                                          .gridDimX = k->gridDimX,
                                          .gridDimY = k->gridDimY,
                                          .gridDimZ = k->gridDimZ,
                                          .blockDimX = k->blockDimX,
                                          .blockDimY = k->blockDimY,
                                          .blockDimZ = k->blockDimZ,
                                          .sharedMemBytes = k->sharedMemBytes,
                                          .kern = k->kern};
        result = kernel_op(&params, &op);
        break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        op = copy_op(&nodeParams->memcpy.copyParams);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        op = (struct sim_op){.kind = SIM_OP_SET,
                             .set = {.bytes = nodeParams->memset.width * nodeParams->memset.elementSize *
                                              (nodeParams->memset.height ? nodeParams->memset.height : 1),
                                     .value = nodeParams->memset.value,
                                     .asynchronous = true}};
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        op = (struct sim_op){.kind = SIM_OP_HOST,
                             .host = {.function = nodeParams->host.fn, .data = nodeParams->host.userData}};
        result = op.host.function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        break;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return result ? result : add_node(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *edgeData, size_t numDependencies)
{
    (void)edgeData;
    struct sim_graph *graph;
    CUresult result = graph_of(hGraph, SIM_GRAPH, &graph);
    if (!result && numDependencies && (!from || !to))
        result = CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    for (size_t i = 0; !result && i < numDependencies; i++) {
        struct sim_node *node = sim_handle(to[i], SIM_NODE);
        result = node && node->graph == graph ? add_dependencies_locked(node, &from[i], 1)
                                              : CUDA_ERROR_INVALID_VALUE;
    }
    sim_unlock();
    return result;
}

/* ---- public: queries ---- */

static CUresult list_nodes(const struct sim_nodes *nodes, bool roots_only, CUgraphNode *items, size_t *count)
{
    size_t found = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        if (roots_only && nodes->items[i]->waits_for.count)
            continue;
        if (items && found < *count)
            items[found] = (CUgraphNode)nodes->items[i];
        found++;
    }
    *count = found;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    struct sim_graph *graph;
    CUresult result = graph_of(hGraph, SIM_GRAPH, &graph);
    if (result || !numNodes)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    return list_nodes(&graph->nodes, false, nodes, numNodes);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    struct sim_graph *graph;
    CUresult result = graph_of(hGraph, SIM_GRAPH, &graph);
    if (result || !numRootNodes)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    return list_nodes(&graph->nodes, true, rootNodes, numRootNodes);
}

static CUresult node_of(CUgraphNode handle, struct sim_node **ret)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    *ret = sim_handle(handle, SIM_NODE);
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    static const CUgraphNodeType types[] = {
        [SIM_OP_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,   [SIM_OP_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
        [SIM_OP_SET] = CU_GRAPH_NODE_TYPE_MEMSET,      [SIM_OP_HOST] = CU_GRAPH_NODE_TYPE_HOST,
        [SIM_OP_EMPTY] = CU_GRAPH_NODE_TYPE_EMPTY,     [SIM_OP_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        [SIM_OP_WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT, [SIM_OP_CHILD] = CU_GRAPH_NODE_TYPE_GRAPH,
    };
    struct sim_node *node;
    CUresult result = node_of(hNode, &node);
    if (!result && type)
        *type = types[node->op.kind];
    return result || type ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                    size_t *numDependencies)
{
    struct sim_node *node;
    CUresult result = node_of(hNode, &node);
    if (result || !numDependencies)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    if (edgeData)
        memset(edgeData, 0, *numDependencies * sizeof *edgeData);
    return list_nodes(&node->waits_for, false, dependencies, numDependencies);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct sim_node *node;
    CUresult result = node_of(hNode, &node);
    if (result || !nodeParams || node->op.kind != SIM_OP_KERNEL)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    const struct sim_launch *launch = &node->op.launch;
    *nodeParams = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)launch->function,
                                            .gridDimX = launch->grid[0],
                                            .gridDimY = launch->grid[1],
                                            .gridDimZ = launch->grid[2],
                                            .blockDimX = launch->block[0],
                                            .blockDimY = launch->block[1],
                                            .blockDimZ = launch->block[2],
                                            .sharedMemBytes = launch->dynamic_smem_bytes};
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct sim_node *node;
    struct sim_op op;
    CUresult result = node_of(hNode, &node);
    if (!result && node->op.kind != SIM_OP_KERNEL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = kernel_op(nodeParams, &op);
    if (!result)
        node->op = op;
    return result;
}

/* ---- executable graphs ---- */

/* Copies the nodes. `from` is sorted, so that each dependency's copy exists before it is needed. */
static bool clone_nodes_locked(const struct sim_graph *from, struct sim_graph *to)
{
    for (size_t i = 0; i < from->nodes.count; i++)
        from->nodes.items[i]->index = (uint32_t)i;
    for (size_t i = 0; i < from->nodes.count; i++) {
        struct sim_node *node = from->nodes.items[i], *copy = node_new_locked(to, &node->op);
        if (!copy)
            return false;
        copy->origin = node;
        for (size_t d = 0; d < node->waits_for.count; d++) {
            if (!sim_nodes_add(&copy->waits_for, to->nodes.items[node->waits_for.items[d]->index]))
                return false;
        }
    }
    to->sorted = true;
    return true;
}

/* Returns NULL for a cycle and without memory. */
static struct sim_graph *clone_locked(struct sim_graph *from, enum sim_type type)
{
    struct sim_graph *graph = from->sorted || sort_locked(from) ? graph_new_locked(type) : NULL;
    if (graph && !clone_nodes_locked(from, graph)) {
        graph_free_locked(graph);
        graph = NULL;
    }
    return graph;
}

static CUresult clone(const void *handle, enum sim_type type, void **ret)
{
    struct sim_graph *graph;
    CUresult result = graph_of(handle, SIM_GRAPH, &graph);
    if (result || !ret)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_graph *copy = clone_locked(graph, type);
    sim_unlock();
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    *ret = copy;
    return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    return clone(originalGraph, SIM_GRAPH, (void **)phGraphClone);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
    (void)flags;
    return clone(hGraph, SIM_EXEC, (void **)phGraphExec);
}

/* True if both have the same kinds of nodes in the same order, so that only parameters differ. */
static bool same_shape(const struct sim_graph *a, const struct sim_graph *b)
{
    if (a->nodes.count != b->nodes.count)
        return false;
    for (size_t i = 0; i < a->nodes.count; i++) {
        const struct sim_node *x = a->nodes.items[i], *y = b->nodes.items[i];
        if (x->op.kind != y->op.kind || x->waits_for.count != y->waits_for.count)
            return false;
    }
    return true;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
    struct sim_graph *exec, *graph;
    CUresult result = graph_of(hGraphExec, SIM_EXEC, &exec);
    if (!result)
        result = graph_of(hGraph, SIM_GRAPH, &graph);
    if (result || !resultInfo)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool same = (graph->sorted || sort_locked(graph)) && same_shape(exec, graph);
    for (size_t i = 0; same && i < exec->nodes.count; i++) {
        if (graph->nodes.items[i]->op.kind != SIM_OP_CHILD)
            exec->nodes.items[i]->op = graph->nodes.items[i]->op;
        exec->nodes.items[i]->origin = graph->nodes.items[i];
    }
    sim_unlock();
    *resultInfo = (CUgraphExecUpdateResultInfo){.result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                               : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
    return same ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct sim_graph *exec;
    struct sim_op op;
    CUresult result = graph_of(hGraphExec, SIM_EXEC, &exec);
    if (!result)
        result = kernel_op(nodeParams, &op);
    if (result)
        return result;
    result = CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    for (size_t i = 0; i < exec->nodes.count; i++) {
        struct sim_node *node = exec->nodes.items[i];
        if (node->origin == (struct sim_node *)hNode && node->op.kind == SIM_OP_KERNEL) {
            node->op = op;
            result = CUDA_SUCCESS;
        }
    }
    sim_unlock();
    return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    struct sim_graph *exec;
    CUresult result = graph_of(hGraphExec, SIM_EXEC, &exec);
    if (!result && flags)
        *flags = 0;
    return result || flags ? result : CUDA_ERROR_INVALID_VALUE;
}

/* ---- launching ---- */

static uint64_t node_ready(const struct sim_node *node, uint64_t graph_ready_ns)
{
    uint64_t ready = graph_ready_ns;
    for (size_t i = 0; i < node->waits_for.count; i++) {
        uint64_t after = node->waits_for.items[i]->end_ns + NODE_GAP_NS;
        ready = after > ready ? after : ready;
    }
    return ready;
}

CUresult sim_graph_execute_locked(const struct sim_origin *origin, struct sim_graph *graph, uint64_t ready_ns,
                                  uint64_t *ret_end_ns)
{
    struct sim_origin own = *origin;
    *ret_end_ns = ready_ns;
    if (!graph->sorted && !sort_locked(graph))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        struct sim_node *node = graph->nodes.items[i];
        own.node = node->id;
        CUresult result = sim_execute_locked(&own, &node->op, node_ready(node, ready_ns), &node->end_ns);
        if (result)
            return result;
        *ret_end_ns = node->end_ns > *ret_end_ns ? node->end_ns : *ret_end_ns;
    }
    return CUDA_SUCCESS;
}

static void report_graph_locked(const struct sim_origin *origin, uint64_t start_ns, uint64_t end_ns)
{
    const struct sim_stream *stream = origin->stream;
    struct sim_activity activity = {.kind = SIM_ACTIVITY_GRAPH,
                                    .start_ns = start_ns,
                                    .end_ns = end_ns,
                                    .device = (uint32_t)stream->context->device->ordinal,
                                    .context = stream->context->id,
                                    .stream = stream->id,
                                    .correlation = origin->correlation,
                                    .graph = origin->graph};
    sim_report_locked(origin->batch, &activity);
}

CUresult sim_graph_launch(CUgraphExec handle, struct sim_stream *stream)
{
    struct sim_graph *exec;
    struct sim_batch batch = {0};
    CUresult result = graph_of(handle, SIM_EXEC, &exec);
    if (result)
        return result;
    sim_throttle(stream->context->device);
    sim_lock();
    if (stream->capture) {
        struct sim_op op = {.kind = SIM_OP_CHILD, .child = exec};
        result = sim_capture_locked(stream, &op);
        sim_unlock();
        return result;
    }
    struct sim_origin origin = {
        .stream = stream, .correlation = sim_next_correlation_locked(), .graph = exec->id, .batch = &batch};
    uint64_t ready = sim_ready_locked(stream), end = ready;
    result = sim_graph_execute_locked(&origin, exec, ready, &end);
    if (!result) {
        stream->ready_ns = end;
        report_graph_locked(&origin, ready, end);
    }
    sim_unlock();
    sim_batch_deliver(&batch);
    return result;
}

/* ---- capture ---- */

CUresult sim_capture_begin(struct sim_stream *stream)
{
    static uint64_t last_id;
    CUresult result = CUDA_ERROR_ILLEGAL_STATE;
    sim_lock();
    if (stream == stream->context->legacy) {
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (!stream->capture) {
        stream->capture = graph_new_locked(SIM_GRAPH);
        stream->capture_origin = true;
        stream->capture_id = ++last_id;
        result = stream->capture ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_unlock();
    return result;
}

/* Returns and sets the mode, without further effect: calls that a capture forbids are not detected. */
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static _Thread_local CUstreamCaptureMode now = CU_STREAM_CAPTURE_MODE_GLOBAL;
    CUresult result = sim_initialized();
    if (result || !mode)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = now;
    now = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static void leave_capture_locked(struct sim_stream *stream)
{
    stream->capture = NULL;
    stream->capture_origin = false;
    stream->capture_id = 0;
    sim_nodes_clear(&stream->tail);
}

/* True if all streams that joined the capture have been joined back: another node depends on each one's last
 * node. */
static bool all_joined_locked(const struct sim_stream *origin)
{
    for (const struct sim_stream *s = origin->context->streams; s; s = s->next) {
        if (s == origin || s->capture != origin->capture)
            continue;
        for (size_t i = 0; i < s->tail.count; i++) {
            bool waited_for = false;
            for (size_t n = 0; !waited_for && n < origin->capture->nodes.count; n++) {
                const struct sim_nodes *waits = &origin->capture->nodes.items[n]->waits_for;
                for (size_t w = 0; w < waits->count; w++)
                    waited_for = waited_for || waits->items[w] == s->tail.items[i];
            }
            for (size_t t = 0; t < origin->tail.count; t++)
                waited_for = waited_for || origin->tail.items[t] == s->tail.items[i];
            if (!waited_for)
                return false;
        }
    }
    return true;
}

CUresult sim_capture_end(struct sim_stream *stream, CUgraph *ret)
{
    sim_lock();
    struct sim_graph *graph = stream->capture;
    if (!graph || !stream->capture_origin || !ret) {
        sim_unlock();
        return graph && ret ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED : CUDA_ERROR_ILLEGAL_STATE;
    }
    bool joined = all_joined_locked(stream);
    for (struct sim_stream *s = stream->context->streams; s; s = s->next) {
        if (s->capture == graph)
            leave_capture_locked(s);
    }
    if (!joined)
        graph_free_locked(graph);
    *ret = joined ? (CUgraph)graph : NULL;
    sim_unlock();
    return joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

/* Records an event in a capture: the event stores the stream's last nodes. */
static CUresult capture_record(struct sim_stream *stream, struct sim_event *event)
{
    sim_nodes_clear(&event->tail);
    event->capture = stream->capture;
    event->capture_id = stream->capture_id;
    return nodes_copy(&event->tail, &stream->tail) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Waits for a captured event: adds the stream to the capture, or dependencies to its next node. */
static CUresult capture_wait(struct sim_stream *stream, const struct sim_event *event)
{
    if (!event->capture || (stream->capture && stream->capture_id != event->capture_id))
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (!stream->capture) {
        stream->capture = event->capture;
        stream->capture_id = event->capture_id;
    }
    return nodes_copy(&stream->tail, &event->tail) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_capture_locked(struct sim_stream *stream, const struct sim_op *op)
{
    if (op->kind == SIM_OP_RECORD)
        return capture_record(stream, op->event);
    if (op->kind == SIM_OP_WAIT)
        return capture_wait(stream, op->event);
    if (!op->asynchronous && op->kind != SIM_OP_CHILD)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (op->kind == SIM_OP_KERNEL) {
        struct sim_launch launch = op->launch;
        CUresult result = sim_launch_check(stream->context->device, &launch);
        if (result)
            return result;
    }
    struct sim_node *node = node_new_locked(stream->capture, op);
    if (!node || !nodes_copy(&node->waits_for, &stream->tail))
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_nodes_clear(&stream->tail);
    return sim_nodes_add(&stream->tail, node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
