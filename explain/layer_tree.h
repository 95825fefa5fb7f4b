/* Trees of names for layers.c: one of all layers, one of the folded layers. One thread. */
#pragma once

#include "layers.h"
#include "support/map.h"

#define OCC_NO_NODE UINT32_MAX

struct occ_layer_node {
    uint32_t parent;  /* OCC_NO_NODE: the root */
    const char *name; /* not terminated */
    uint32_t name_bytes;
    uint32_t folded;                 /* only in the unfolded tree: index of the node in the folded tree */
    uint64_t launches, own_launches; /* own_...: launches outside of child layers */
    double time_s, own_time_s;
    double known_s, used_s, own_known_s, own_used_s; /* time with a known occupancy, and time x occupancy */
    double worst_loss_s, own_worst_loss_s;
    const char *worst_kernel, *own_worst_kernel;
    int64_t worst_kernel_id, own_worst_kernel_id;
};

/* Node 0 is the root. A parent has a smaller index than its children. */
struct occ_layer_tree {
    struct occ_layer_node *nodes;
    uint32_t n;
    size_t allocated;
    struct occ_map index;
};

/* Makes a tree with a root. Returns false without memory. */
bool occ_layer_tree_init(struct occ_layer_tree *tree);
void occ_layer_tree_free(struct occ_layer_tree *tree);

/* Returns the child with this name, which is added if it is new; OCC_NO_NODE: no memory. */
uint32_t occ_layer_tree_child(struct occ_layer_tree *tree, uint32_t parent, const char *name, size_t bytes);

/* Adds totals to a node itself. */
void occ_layer_tree_add(struct occ_layer_tree *tree, uint32_t node, const struct occ_range_totals *totals);

/* Adds each node's totals to its parents. */
void occ_layer_tree_sum(struct occ_layer_tree *tree);
