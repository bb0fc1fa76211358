/* ops.h - what ops.c, convert.c, divide.c and simd.c share. Private to them. */
#ifndef SK_CPU_OPS_H
#define SK_CPU_OPS_H

#include "cpu/lower.h"

struct val ops_widen(struct lower *l, struct val x, enum scalar s);  /* bits of f16, bf16 to f32; f32 as it is */
struct val ops_narrow(struct lower *l, struct val x, enum scalar s); /* f32, rounded, as bits */
struct val ops_divide(struct lower *l, enum op op, enum scalar s, struct val a, struct val b); /* integers */
/* Elements of a room (e_room), of 32 or 64 bits, by number: i32, in every lane within the room. */
struct val ops_gather(struct emit *e, uint32_t room, enum elem t, struct val index);

#endif
