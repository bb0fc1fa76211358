/* avx512.c - see avx512.h. */
#include "cpu/avx512.h"

#include <stdio.h>

const struct avx512_instruction avx512_rsqrt14 = {"rsqrt14.ps", "azm", 0, 0};
const struct avx512_instruction avx512_scalef = {"mask.scalef.ps", "abzmr", 0, 0};
const struct avx512_instruction avx512_getexp = {"mask.getexp.ps", "azmr", 0, 0};
const struct avx512_instruction avx512_getmant = {"mask.getmant.ps", "aizmr", 0, 0};
/* What stands for NaNs, 0, 1, -inf, inf, other negative and positive b, from the lowest four bits up: 0 a, 1 b, 2 b's NaN, 3 a
 * new NaN, 4 -inf, 5 inf, 6 inf with b's sign, 8 0. */
const struct avx512_instruction avx512_fixup_log = {"mask.fixupimm.ps", "abtimr", 0, 0x03530422};
const struct avx512_instruction avx512_fixup_sqrt = {"mask.fixupimm.ps", "abtimr", 0, 0x03530122};
const struct avx512_instruction avx512_fixup_rsqrt = {"mask.fixupimm.ps", "abtimr", 0, 0x03830622};

/* n lanes of x from lane `at` on, with zeros past its end. */
static uint32_t some_lanes(struct emit *e, struct val x, unsigned at, unsigned n)
{
    if (x.shape != V_VARYING) {
        const uint32_t r = e_id(e);
        struct buf one;
        buf_init(&one, e->mem);
        e_operand(e, &one, x);
        e_line(e, "%%v%u = insertelement <%u x float> zeroinitializer, float %s, i64 0", r, n, buf_text(&one));
        buf_free(&one);
        return r;
    }
    if (n == e->width)
        return x.id;
    const uint32_t r = e_id(e);
    struct buf lanes;
    buf_init(&lanes, e->mem);
    for (unsigned k = at; k < at + n; k++)
        buf_fmt(&lanes, "%si32 %u", k > at ? ", " : "", k < e->width ? k : e->width);
    e_line(e, "%%v%u = shufflevector <%u x float> %%v%u, <%u x float> zeroinitializer, <%u x i32> <%s>", r, e->width,
           x.id, e->width, n, buf_text(&lanes));
    buf_free(&lanes);
    return r;
}

/* Of 4, 8 or 16 lanes. */
static uint32_t instruct_part(struct emit *e, const struct avx512_instruction *i, unsigned lanes, uint32_t a,
                              uint32_t b)
{
    const unsigned mask = lanes < 8 ? 8 : lanes;
    struct buf types, args;
    buf_init(&types, e->mem);
    buf_init(&args, e->mem);
    for (const char *o = i->operands; *o; o++) {
        if (*o == 'r' && lanes < 16)
            continue;
        if (o != i->operands) {
            buf_str(&types, ", ");
            buf_str(&args, ", ");
        }
        char type[24];
        (void)snprintf(type, sizeof type, "<%u x float>", lanes);
        if (*o == 't')
            (void)snprintf(type, sizeof type, "<%u x i32>", lanes);
        else if (*o == 'i' || *o == 'r')
            (void)snprintf(type, sizeof type, "i32");
        else if (*o == 'm')
            (void)snprintf(type, sizeof type, "i%u", mask);
        buf_str(&types, type);
        buf_fmt(&args, "%s ", type);
        if (*o == 'a' || *o == 'b')
            buf_fmt(&args, "%%v%u", *o == 'a' ? a : b);
        else if (*o == 'z')
            buf_str(&args, "zeroinitializer");
        else if (*o == 'm')
            buf_str(&args, "-1");
        else if (*o == 'i' || *o == 'r')
            buf_fmt(&args, "%u", *o == 'i' ? i->immediate : 4u); /* 4: the mode that is set */
        for (unsigned k = 0; k < lanes && *o == 't'; k++)
            buf_fmt(&args, "%si32 %u%s", k ? ", " : "<", i->table, k + 1 < lanes ? "" : ">");
    }
    char line[256];
    (void)snprintf(line, sizeof line, "<%u x float> @llvm.x86.avx512.%s.%u(%s)", lanes, i->name, lanes * 32,
                   buf_text(&types));
    e_declare(e, line);
    const uint32_t r = e_id(e);
    e_line(e, "%%v%u = call <%u x float> @llvm.x86.avx512.%s.%u(%s)", r, lanes, i->name, lanes * 32, buf_text(&args));
    buf_free(&types);
    buf_free(&args);
    return r;
}

struct val avx512(struct emit *e, const struct avx512_instruction *i, struct val a, struct val b)
{
    const bool varying = a.shape == V_VARYING || b.shape == V_VARYING;
    const bool two = strchr(i->operands, 'b') != NULL;
    const unsigned width = varying ? e->width : 1, lanes = width > 16 ? 16 : width < 4 ? 4 : width;
    if (varying) {
        a = e_vary(e, a);
        b = two ? e_vary(e, b) : b;
    }
    uint32_t part[2] = {0};
    for (unsigned at = 0; at < width; at += lanes) {
        const uint32_t from = some_lanes(e, a, at, lanes);
        part[at / lanes] = instruct_part(e, i, lanes, from, two ? some_lanes(e, b, at, lanes) : 0);
    }
    if (lanes == width)
        return e_named(E_F32, true, part[0]);
    const uint32_t r = e_id(e);
    if (!varying) {
        e_line(e, "%%v%u = extractelement <%u x float> %%v%u, i64 0", r, lanes, part[0]);
        return e_named(E_F32, false, r);
    }
    struct buf order;
    buf_init(&order, e->mem);
    for (unsigned k = 0; k < width; k++)
        buf_fmt(&order, "%si32 %u", k ? ", " : "", k);
    if (width > lanes)
        e_line(e, "%%v%u = shufflevector <%u x float> %%v%u, <%u x float> %%v%u, <%u x i32> <%s>", r, lanes, part[0],
               lanes, part[1], width, buf_text(&order));
    else
        e_line(e, "%%v%u = shufflevector <%u x float> %%v%u, <%u x float> zeroinitializer, <%u x i32> <%s>", r, lanes,
               part[0], lanes, width, buf_text(&order));
    buf_free(&order);
    return e_named(E_F32, true, r);
}
