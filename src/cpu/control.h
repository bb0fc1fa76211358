/* control.h - what control.c and phase.c share: constructs being written. Private to both. */
#ifndef SK_CPU_CONTROL_H
#define SK_CPU_CONTROL_H

#include "cpu/lower.h"

/* Where a loop parameter or a result is kept: by what the analysis says of it, as a uniform, as the base of a linear, or as a
 * varying. */
struct carrier {
    struct slot slot;
    int64_t stride;
    bool linear;
};

/* A construct being written, or (node 0) the run of nodes around all. Lanes arrive at its end at different times; `out` holds
 * those that have. `next` is where all lanes that are done with the part being written go on: the end, another region,
 * the latch of a loop. */
struct frame {
    uint32_t node;
    uint32_t next, head; /* blocks; head: where a loop repeats, its latch if lanes repeat apart */
    struct val entry;    /* mask on entry */
    struct slot out, again;
    uint32_t first_result, n_results, first_arg, n_args; /* of control.carriers: leaves, not values */
    bool arrived, repeated;                              /* an exit that carries values has been written */
};

struct control {
    uint8_t *apart;   /* by node, constructs: lanes may be lost in it, the mask at its end is not that on entry */
    uint8_t *mixed;   /* by node, constructs: lanes wait at its end, or at a loop's latch, for others that are in it */
    uint8_t *partial; /* by node, exits: other lanes stay inside of the construct that these leave */
    uint8_t *waits;   /* by node, loops: its exit waits for memory that another thread must write */
    uint8_t *marks;   /* room for loop_waits */
    uint32_t *frame_of; /* by node */
    VEC(struct frame) frames;
    VEC(struct carrier) carriers;
    uint64_t budget; /* nodes that may be written once more for the sake of full masks */
    struct val stop; /* ptr: the stop word */
    bool root_apart, track_root;
    bool maybe_full; /* in a loop whose lanes part, entered with all on: they may still be */
    /* set by phase.c */
    void (*defined)(struct lower *l,
                    uint32_t node);  /* a value at the top of the run is complete; null: nothing to do */
    void (*finish)(struct lower *l); /* the run's end is reached; null: nothing to do */
    const uint8_t *skip;             /* by node, null: none: written elsewhere */
};

struct carrier carrier_new(struct lower *l, uint32_t node, uint32_t k); /* for leaf k of an ARG or RESULT */
struct val carrier_get(struct lower *l, const struct carrier *c);
/* A value as one scalar: of the first active lane, where it is written as a varying. */
struct val control_uniform(struct lower *l, struct val x);
void control_plan(struct lower *l, uint32_t region);   /* fills the tables; once a kernel */
void control_fence(struct lower *l, uint32_t barrier); /* between threadgroups: one OS thread orders the rest */
void control_poll(struct lower *l);                    /* leaves the function when the stop word is set */
bool control_is_long(struct lower *l, uint32_t loop);  /* must it poll? */

#endif
