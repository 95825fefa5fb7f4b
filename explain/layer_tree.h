/* A tree of names for layers.c, which makes a tree of all layers and a tree of the folded layers. Times are
 * in seconds. One thread. */
#pragma once

#include "layers.h"
#include "support/map.h"

#define OCC_NO_NODE UINT32_MAX

struct occ_layer_node {
    uint32_t parent;  /* index of the parent; OCC_NO_NODE: this node is the root */
    const char *name; /* not terminated */
    uint32_t name_bytes;
    uint32_t folded;                 /* only in the unfolded tree: index of the node in the folded tree */
    uint64_t launches, own_launches; /* own_...: launches outside of child layers */
    double time_s, own_time_s;
    double known_s, used_s, own_known_s, own_used_s; /* time with a known occupancy, and time x occupancy */
    /* the largest loss of one kernel in one range, time x (1 - occupancy), and the kernel */
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

/* Makes a tree with a root. Returns false without memory. Free it with occ_layer_tree_free(), also after a
 * failure; a zeroed tree may be freed, too. */
bool occ_layer_tree_init(struct occ_layer_tree *tree);
void occ_layer_tree_free(struct occ_layer_tree *tree);

/* Returns the child with this name, which is added if it is new; OCC_NO_NODE: no memory. `name` must outlive
 * the tree. Adding a node may move tree->nodes. */
uint32_t occ_layer_tree_child(struct occ_layer_tree *tree, uint32_t parent, const char *name, size_t bytes);

/* Adds totals to the node's own_... members. Their texts must outlive the tree. */
void occ_layer_tree_add(struct occ_layer_tree *tree, uint32_t node, const struct occ_range_totals *totals);

/* Sets each node's totals to its own launches and the launches of all nodes below it. Call it once, after the
 * last occ_layer_tree_add(). */
void occ_layer_tree_sum(struct occ_layer_tree *tree);
