/* compile.h - the compiler's state: compile.c (operations), control.c (constructs), address.c (pointers and accesses),
 * registers.c (registers). Instructions hold virtual registers until registers.c has placed them; 0 is none.
 */
#ifndef SK_INTERP_COMPILE_H
#define SK_INTERP_COMPILE_H

#include "interp/program.h"

/* A register. It is in use from instruction `start` to `end`; pinned ones always. */
struct vreg {
    uint32_t start, end;
    uint32_t offset; /* in the register file, when placed */
    uint32_t loop;   /* serial number of the loop that last noted it, see vreg_touch */
    uint32_t order;  /* scratch of parallel moves */
    uint8_t bytes;   /* a lane */
    bool pinned;
};

struct open_loop {
    uint32_t serial, start;
    VEC(uint32_t) vregs; /* from before the loop, used in it: live to its end */
};

/* A construct being compiled. */
struct frame {
    uint32_t node, slot;
    uint32_t to; /* leaf index of what br to it writes: a loop's parameters, others' results */
    uint32_t n_to;
    uint32_t results, n_results; /* of yield */
};

/* An address as it is known at compile time. */
struct pointer {
    uint64_t scale[TERMS], disp;
    uint32_t base, index[TERMS], region_reg; /* virtual registers, 0: none */
    uint32_t region;                         /* REGION_DYNAMIC: region_reg */
    uint8_t index_kind[TERMS], n_terms;
};

struct patch {
    uint32_t inst, label;
    bool skip;
};

struct compile {
    struct mem *mem; /* working memory: all here goes with it */
    const struct ir_module *m;
    const struct lane_loops *loops;
    const struct func *func;
    const char *name;
    struct interp_program p; /* the numbers, not the tables */
    struct arena scratch;
    VEC(struct inst) code;
    VEC(struct access) access;
    VEC(struct leaf) leaf;
    VEC(uint32_t) list;
    VEC(int64_t) cases;
    VEC(struct site) site;
    VEC(const char *) text;
    VEC(struct region_info) region;
    VEC(struct constant) constant;
    VEC(struct value_leaf) value;
    VEC(struct attribute_leaf) attribute;
    VEC(struct vreg) vreg;
    VEC(uint32_t) leaves;        /* virtual registers of the values' leaves; [0] unused */
    VEC(struct pointer) pointer; /* [0] unused */
    VEC(struct frame) frame;
    VEC(struct open_loop) loop;
    VEC(struct patch) patch;
    VEC(uint32_t) label;   /* instruction */
    uint32_t *first;       /* by node: its first leaf, 0: none yet */
    uint32_t *address;     /* by node: its pointer, 0: none */
    uint32_t *site_of;     /* by place: its site + 1 */
    uint8_t *needs;        /* by node: an address that is needed as a value */
    uint8_t *marks;        /* by node: room for loop_waits */
    VEC(uint32_t) free[4]; /* places of registers by size, while placing them */
    uint32_t zero[4];      /* constants of all-zero lanes by size */
    uint32_t landing;      /* label where lanes wait next: end of the region being compiled */
    uint32_t slot_top, loop_serial, waiting;
    uint64_t thread_bytes, threadgroup_bytes;
};

/* registers.c */
uint32_t vreg_new(struct compile *c, unsigned bytes);
uint32_t vreg_pinned(struct compile *c, unsigned bytes);
uint32_t vreg_constant(struct compile *c, unsigned bytes, uint64_t bits);
void vreg_touch(struct compile *c, uint32_t v); /* used by the next instruction */
void vreg_open_loop(struct compile *c);         /* the next instruction is the head */
void vreg_close_loop(struct compile *c);        /* the last instruction is its end */
void vreg_place(struct compile *c); /* gives all a place; class_end of the program; replaces them in all tables */

/* compile.c */
struct inst *emit(struct compile *c, struct inst i); /* touches its registers */
unsigned kind_bytes(unsigned kind);                  /* of a leaf's kind */
uint64_t leaf_count(const struct ir_module *m, ir_type t);
uint32_t value(struct compile *c, uint32_t node, uint32_t k); /* virtual register of leaf k */
void define(struct compile *c, uint32_t node);                /* fresh registers for the node */
uint32_t site(struct compile *c, uint32_t place);
uint32_t value_as(struct compile *c, uint32_t node, uint32_t k, enum scalar to); /* a leaf converted */
void convert(struct compile *c, uint32_t d, uint32_t a, enum scalar from, enum scalar to);

/* control.c */
void compile_region(struct compile *c, uint32_t region);
bool compile_control(struct compile *c, uint32_t node); /* false: no control operation */
uint32_t label_new(struct compile *c);
void label_here(struct compile *c, uint32_t label);

/* compile.c, for control.c */
void compile_node(struct compile *c, uint32_t node);

/* address.c */
void address_params(struct compile *c);
void address_prepare(struct compile *c, uint32_t region);             /* fills `needs` */
bool compile_memory(struct compile *c, uint32_t node);                /* false: no operation on pointers or memory */
uint32_t address_value(struct compile *c, uint32_t node, uint32_t k); /* parameters, arrays: offset and region */

#endif
