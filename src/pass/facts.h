/* facts.h - between the parts of the analysis: analysis.c (driver, printing), uniform.c, range.c, bounds.c.
 *
 * Order: bounds of active lanes (range.c), bounds of all lanes as far as they need no lanes, lanes and control (uniform.c),
 * which ask bounds whether a conversion wraps, then bounds of all lanes.
 */
#ifndef SK_PASS_FACTS_H
#define SK_PASS_FACTS_H

#include "pass/analysis.h"

/* ---- bounds.c: arithmetic ---- */

#define NO_BOUNDS ((struct bounds){INT64_MIN, INT64_MAX, true})
#define EMPTY_BOUNDS ((struct bounds){1, 0, false}) /* of what is never computed */
static inline bool bounds_empty(struct bounds b)
{
    return b.lo > b.hi && !b.wide;
}
static inline bool bounds_within(struct bounds b, int64_t lo, int64_t hi)
{
    return !b.wide && b.lo >= lo && b.hi <= hi;
}
static inline bool bounds_same(struct bounds a, struct bounds b)
{
    return a.lo == b.lo && a.wide == b.wide && (a.wide || a.hi == b.hi);
}
struct bounds bounds_of_type(ir_type t);
struct bounds bounds_join(struct bounds a, struct bounds b);
struct bounds bounds_meet(struct bounds a, struct bounds b); /* empty if nothing is in both */
bool bounds_fit(struct bounds b, ir_type t);                 /* as a number, without wrapping */
struct bounds bounds_const(const struct ir_module *m, uint32_t id);
/* An attribute's component: in active lanes, or in all of them. */
struct bounds bounds_attribute(const struct shape *shape, const struct param *p, unsigned k, bool all);

/* Where operands have their bounds from. */
struct bounds_source {
    struct bounds (*get)(const struct bounds_source *s, uint32_t node, unsigned k);
    const struct analysis *a;
    unsigned depth;
    uint32_t fact;
};
/* Component k of a pure operation; of the type if nothing is known. */
struct bounds bounds_eval(const struct ir_module *m, uint32_t id, unsigned k, const struct bounds_source *s);
/* Sum, difference… as numbers; false: not within 64 bits. */
bool bounds_add(struct bounds a, struct bounds b, struct bounds *r);
bool bounds_sub(struct bounds a, struct bounds b, struct bounds *r);
bool bounds_mul(struct bounds a, struct bounds b, struct bounds *r);

/* ---- range.c ---- */
void range_active(struct analysis *a, struct mem *mem); /* active, facts, trips */
/* `bound`; lanes: whether a->lane is known. */
void range_all(struct analysis *a, bool lanes);

/* ---- uniform.c: lane, control, diverges ---- */
void uniform_run(struct analysis *a, struct mem *mem, bool loads_uniform);

static inline unsigned components(ir_type t)
{
    return ir_type_width(t) ? ir_type_width(t) : 1;
}

#endif
