/* memory.h - what address.c, memory.c, atomic.c and helpers.c share: addresses, and accesses as the helpers see them. */
#ifndef SK_CPU_MEMORY_H
#define SK_CPU_MEMORY_H

#include "cpu/lower.h"

#include <stdio.h>

/* ---- offsets, as in the interpreter's program.h ----------------------------------------------------------------- */

/* Offsets never wrap: one that leaves (-2^61, 2^61) becomes FAR and stays it, whatever is added. */
#define MEMORY_FAR ((int64_t)1 << 61)
#define MEMORY_FAR_SCALE ((uint64_t)1 << 28)  /* 32-bit indices of up to this scale are added without a test, */
#define MEMORY_TERM_SCALE ((uint64_t)1 << 26) /* or up to MEMORY_TERMS of this one */
#define MEMORY_TERMS 3u
#define MEMORY_TERM_DISP (MEMORY_FAR / 2)
#define MEMORY_HANDLE_BITS 48 /* a pointer in memory: the region in the bits above, the offset below, signed */

/* ---- accesses for the helpers: constants of the generated code -------------------------------------------------- */

#define CPU_REGION_DYNAMIC UINT32_MAX
enum {
    CPU_ACCESS_WRITE = 1,
    CPU_ACCESS_TRACKED = 2, /* a store in a loop that waits: writing what is there already is no progress */
    CPU_ACCESS_OWN = 4,     /* changes of thread memory count, too: such a loop reads it */
    CPU_ACCESS_EDGE = 8,
    CPU_ACCESS_FENCED = 16, /* atomics: an order beyond relaxed */
    CPU_ACCESS_OLD = 32     /* atomics: the old value is wanted */
};

struct cpu_cell {
    uint64_t offset; /* from the address */
    uint32_t at;     /* in the room: lane after lane */
    uint32_t bytes;  /* 1, 2, 4, 8 */
};

struct cpu_access {
    uint64_t extent; /* bytes from the address to the end of the last cell */
    uint64_t
        spread; /* thread memory: a byte at offset o of lane l is at base + o * spread + l * lane_stride, where o is */
    uint64_t lane_stride; /* a multiple of the cells' size if spread is not 1. 0: other memory */
    uint32_t region, site, flags, width;
    uint32_t op, scalar; /* atomics: enum op, enum scalar */
    uint32_t n_cells, unused;
    struct cpu_cell cell[]; /* atomics: operands, then the old value */
};

struct cpu_own {                  /* follows the cells where the region is dynamic, for each region */
    uint64_t offset, lane_stride; /* in private memory; stride 0: it does not lie there */
};

/* The room: offsets, i64 a lane; regions, i32 a lane; then the cells' lanes. */
#define CPU_ROOM_REGIONS(width) (8u * (width))
#define CPU_ROOM_CELLS(width) ((12u * (width) + 63u) & ~63u)

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

/* Lane by lane, in lane order. `base`: thread memory of lane 0, or where the region is dynamic the bundle's private memory. */
void helper_load(struct cpu_worker *w, const struct cpu_access *a, char *room, char *base, uint32_t lanes,
                 uint32_t first);
void helper_store(struct cpu_worker *w, const struct cpu_access *a, char *room, char *base, uint32_t lanes,
                  uint32_t first);
void helper_atomic(struct cpu_worker *w, const struct cpu_access *a, char *room, char *base, uint32_t lanes,
                   uint32_t first);
void helper_zero(struct cpu_worker *w, char *base, uint64_t bytes, uint64_t lane_stride, uint32_t lanes);

/* ---- addresses -------------------------------------------------------------------------------------------------- */

struct cell { /* a scalar of a value in memory */
    uint64_t offset;
    uint32_t leaf;
    uint8_t bytes, elem; /* elem: as memory holds it: bool is i8, a pointer i64 */
    uint8_t scalar;      /* S_VOID: a pointer, of two leaves */
};

struct term { /* x * scale */
    struct val x;
    uint32_t node;
    uint64_t scale;
    uint8_t bits; /* of x, where its arithmetic wraps */
    bool is_signed;
    int64_t lo, hi; /* what is known of x in active lanes; bounded: it is */
    bool bounded;
    struct bounds all; /* in all lanes */
};
#define ADDRESS_TERMS 6u

struct address {
    uint32_t pointer; /* node */
    uint32_t region;  /* CPU_REGION_DYNAMIC: leaves 0 and 1 of `root` */
    uint32_t root;
    int64_t disp;
    uint32_t n;
    struct term term[ADDRESS_TERMS];
    bool tame; /* disp and terms say all, and their sums stay below FAR in any order */
};

enum way {
    WAY_ONE, /* all lanes at ptr */
    WAY_ROW, /* lane l at ptr + l * stride */
    WAY_EACH /* lane l at ptr + index[l] * unit */
};
struct spot {
    enum way way;
    struct val ptr; /* of the active lanes only where `fits`; uniform */
    int64_t stride;
    struct val index; /* varying i32, of no sign bit */
    uint32_t unit;    /* 1, 2, 4, 8 */
    struct val last;  /* cells of 1 or 2 bytes by WAY_EACH: the greatest index whose four bytes are the region's */
    struct val fits;  /* uniform i1: all active lanes are in bounds, and the above holds for them */
    uint64_t spread;  /* of the cells' offsets; 1 but in thread memory */
    bool apart;       /* no two lanes overlap in part */
};

struct limit {
    uint32_t region, align;
    uint64_t disp, scale, extent, span, most;
    bool small, vector;
    struct val v;
};

struct thread_memory { /* by region */
    uint64_t spread, lane_stride, bytes;
    uint32_t room; /* on the stack, 0: in private memory */
};

struct memory {
    uint32_t n;              /* regions */
    uint32_t at;             /* node: the access being written */
    struct val *base, *size; /* by region: arguments */
    struct thread_memory *thread;
    uint8_t *used; /* by node: its value is */
    VEC(struct limit) limits;
    VEC(struct cell) cells;
    uint64_t extent; /* of `cells` */
    VEC(uint32_t) chain;
    struct strtab accesses; /* texts of constants */
    uint32_t room;
    uint64_t room_bytes;
};

/* address.c */
struct address address_of(struct lower *l, uint32_t pointer);
struct val address_offset(struct lower *l, const struct address *a); /* i64, any shape: the interpreter's */
struct val address_region(struct lower *l, const struct address *a); /* i32 */
/* Where the memory's cells lie. `wide`: bytes of the element that the cells are read with, in a row of such (0: none). */
struct spot address_place(struct lower *l, const struct address *a, uint64_t wide, uint32_t align);
uint64_t address_row(const struct lower *l, const struct address *a); /* bytes from lane to lane, 0: no simple row */
struct val address_thread_base(struct lower *l, uint32_t region);     /* lane 0's thread memory */
void memory_cells(struct lower *l, ir_type t);                        /* fills m->cells and m->extent */
unsigned memory_regions(struct lower *l);
void memory_layout(struct lower *l); /* thread.c: how thread memory is laid out */

/* memory.c, for atomic.c */
/* The text of a load or store of one cell; x: V_NONE loads. */
struct val memory_cell(struct lower *l, const struct spot *p, const struct cell *c, struct val x, struct val mask);
struct val memory_scalar(struct lower *l, struct val ptr, enum elem t); /* load of a scalar at a uniform ptr */
void memory_scalar_put(struct lower *l, struct val ptr, struct val x);
void memory_raw_put(struct lower *l, uint32_t room, uint64_t at, struct val x); /* x as a vector, to a room */
struct val memory_raw_get(struct lower *l, uint32_t room, uint64_t at, enum elem t, bool varying);
struct val memory_high(struct lower *l, struct val x); /* of the highest active lane */
/* The room's bytes and the cold call. flags: CPU_ACCESS_*. Cells are m->cells; `in` (n of them) are stored before. */
uint32_t memory_room(struct lower *l, uint64_t bytes);
void memory_help(struct lower *l, const struct address *a, uint32_t node, enum helper h, unsigned flags, enum op op,
                 enum scalar scalar, unsigned n, const struct val *in);
uint64_t memory_cell_at(const struct lower *l, uint32_t k); /* in the room */
/* Runs `body` for each active lane, in order: unrolled if all are on. */
void memory_lanes(struct lower *l, void (*body)(struct lower *l, struct val lane, void *data), void *data);
bool atomic_lower(struct lower *l, uint32_t node);

#endif
