/* util.h - what the passes share: replacing values, use counts, what a region may do to memory. */
#ifndef SK_PASS_UTIL_H
#define SK_PASS_UTIL_H

#include "ir/ir.h"

#define PASS(letter, name, pipeline, doc) void pass_##name(struct ir_module *m, uint32_t func);
#include "pass/pass.def"
#undef PASS

/* Old value to new value, for the nodes there were when it was made; ended by map_free. Chains are followed. */
struct pass_map {
    struct ir_module *m;
    struct mem *mem; /* its own */
    uint32_t *to, n;
};
void map_init(struct pass_map *p, struct ir_module *m);
void map_free(struct pass_map *p);
void map_set(struct pass_map *p, uint32_t from, uint32_t to);
uint32_t map_get(const struct pass_map *p, uint32_t id);
void map_inputs(const struct pass_map *p, uint32_t node);   /* rewrites the operands of one node */
void map_region(const struct pass_map *p, uint32_t region); /* … of every node in a region and below */

/* Number of operands that name each node, over a region and below; by node id, allocated from `mem`. */
uint32_t *use_counts(struct ir_module *m, uint32_t region, struct mem *mem);

/* Memory that a node, or anything in a construct, may write or order: bits of WRITES_*. */
enum { WRITES_SHARED = 1, /* device, constant, threadgroup */ WRITES_THREAD = 2, WRITES_LOCALS = 4 };
unsigned node_writes(const struct ir_module *m, uint32_t node);
unsigned region_writes(const struct ir_module *m, uint32_t region);

/* The exits to each construct as they stand now: from first[construct] on, linked through next[]; by node. */
struct exits {
    uint32_t *first, *next;
};
struct exits exits_of(const struct ir_module *m, uint32_t region, struct mem *mem);
/* Does this exit to `construct` give values to its parameters, or else to its results? */
bool exit_repeats(const struct ir_module *m, uint32_t exit, uint32_t construct);

/* Does any BR below `region` name `construct`? */
bool region_leaves_to(const struct ir_module *m, uint32_t region, uint32_t construct);
bool region_ends_in_exit(const struct ir_module *m, uint32_t region);

#endif
