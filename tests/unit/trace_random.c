/* Random tracing, right and wrong: whatever is called in whatever order, each step gives a status, and what was accepted
 * is a module that verifies and reads back as the same text. */
#include "trace_fixture.h"

#include <stdlib.h>

#define POOL 64u
#define STEPS 300u

static uint64_t seed;
static struct tv pool[POOL];
static uint32_t scopes[64], n_scopes, functions[16], n_functions, open_functions, line;
static uint32_t last_if;
static long accepted, refused_steps, modules;

static uint32_t pick(uint32_t n)
{
    seed = hash_u64(seed, 1);
    return (uint32_t)(seed >> 33) % n;
}

static struct tv some(void)
{
    const uint32_t k = pick(20);
    if (k == 0)
        return tv_int((int64_t)pick(7) - 2);
    if (k == 1)
        return tv_float(pick(5) * 0.5);
    if (k == 2)
        return (struct tv){.kind = TV_INT, .negative = pick(2), .magnitude = seed};
    if (k == 3)
        return tv_bool(pick(2));
    if (k < 8)
        return val[1 + pick(S_COUNT - 1)];
    if (k < 10)
        return tid;
    return pool[pick(POOL)];
}

static struct tv some_pointer(void)
{
    return pick(3) ? buffer[(uint32_t)S_I32 + pick(S_COUNT - S_I32)] : some();
}

static enum op some_op(enum op first, enum op last)
{
    return (enum op)((uint32_t)first + pick((uint32_t)last - (uint32_t)first + 1));
}

static void keep(sk_status status, struct tv v)
{
    if (status == SK_OK) {
        pool[pick(POOL)] = v;
        accepted++;
    } else {
        CHECK_EQ(err.status, status);
        CHECK(err.message[0] != 0);
        refused_steps++;
    }
    sk_error_clear(&err);
}

static void opened(sk_status status, uint32_t scope)
{
    keep(status, some());
    if (status == SK_OK && n_scopes < 64)
        scopes[n_scopes++] = scope;
}

static void begin_function(void)
{
    struct tv v = {0};
    uint32_t f = 0;
    const struct trace_func_desc d = {.name = "f", .result = pick(2) ? TYPE_F32 : TYPE_VOID, .fast = pick(2)};
    if (open_functions == 3 || n_functions == 16 || trace_begin(t, &d, &f, &err) != SK_OK)
        return;
    open_functions++;
    functions[n_functions++] = f;
    for (uint32_t k = pick(4); k > 0; k--) {
        const bool pointer = pick(2);
        const struct trace_param_desc p = {
            .name = "x", .type = pointer ? TYPE_POINTER(pick(4)) : TYPE_F32, .elem = pointer ? TYPE_F32 : TYPE_VOID};
        const sk_status status = trace_param(t, &p, &v, &err);
        keep(status, v);
    }
}

/* The innermost scope goes on or ends, as its kind allows. */
static void end_scope(void)
{
    struct tv v = {0};
    const uint32_t scope = trace_open_scope(t);
    sk_status status = trace_end_scope(t, scope, &err);
    if (status != SK_OK) {
        sk_error_clear(&err);
        status = trace_while_cond(t, scope, tv_bool(true), &err);
    }
    if (status != SK_OK) {
        sk_error_clear(&err);
        status = trace_where_next(t, scope, tv_int(1), &err);
    }
    if (status != SK_OK) {
        sk_error_clear(&err);
        status = trace_where_end(t, scope, tv_float(0.5), &v, &err);
    }
    last_if = scope;
    keep(status, v);
}

static void end_function(void)
{
    while (trace_open_scope(t)) {
        const uint32_t before = trace_open_scope(t);
        end_scope();
        /* A while whose condition is used wrongly cannot end: the kernel is given up. */
        struct tv v = {0};
        if (trace_open_scope(t) == before && trace_end_scope(t, before, &err) != SK_OK &&
            strcmp(err.name, "WHILE_FROZEN") == 0)
            break;
        (void)v;
        sk_error_clear(&err);
    }
    sk_error_clear(&err);
    struct tv zero = tv_int(0);
    if (trace_return(t, &zero, &err) != SK_OK)
        sk_error_clear(&err);
    if (trace_end(t, &err) != SK_OK) {
        sk_error_clear(&err);
        trace_abandon(t);
    }
}

static void step(void)
{
    struct tv out = {0};
    uint32_t scope = 0;
    const struct tv a = some(), b = some(), c = some(), p = some_pointer();
    if (pick(2)) {
        line += pick(2);
        trace_place(t, file, 10 + line, 0);
    }
    switch (pick(34)) {
    case 0:
    case 1: keep(trace_binary(t, some_op(OP_ADD, OP_SHR), a, b, &out, &err), out); break;
    case 2:
    case 3: keep(trace_binary(t, some_op(OP_EQ, OP_GE), a, b, &out, &err), out); break;
    case 4: keep(trace_unary(t, pick(2) ? OP_NEG : OP_NOT, a, &out, &err), out); break;
    case 5: keep(trace_math(t, some_op(OP_EXP, OP_SIGN), pick(2), 1, &a, &out, &err), out); break;
    case 6: keep(trace_math(t, some_op(OP_POW, OP_MAX), pick(2), 2, (struct tv[]){a, b}, &out, &err), out); break;
    case 7: keep(trace_math(t, OP_CLAMP, false, 3, (struct tv[]){a, b, c}, &out, &err), out); break;
    case 8: keep(trace_select(t, a, b, c, &out, &err), out); break;
    case 9: keep(trace_cast(t, a, (ir_type)(1 + pick(S_COUNT + 35)), &out, &err), out); break;
    case 10: keep(trace_bitcast(t, a, (ir_type)(1 + pick(S_COUNT + 35)), &out, &err), out); break;
    case 11:
        keep(trace_make(t, TYPE_VECTOR(S_F32, 2 + pick(3)), 1 + pick(3), (struct tv[]){a, b, c}, &out, &err), out);
        break;
    case 12: keep(trace_extract(t, pick(2) ? vec3 : a, pick(4), &out, &err), out); break;
    case 13:
    case 14: keep(trace_local(t, (ir_type)(1 + pick(S_COUNT + 10)), a, &out, &err), out); break;
    case 15:
    case 16: keep(trace_assign(t, a, b, &err), a); break;
    case 17: keep(trace_assign_op(t, a, some_op(OP_ADD, OP_SHR), b, &err), a); break;
    case 18: keep(trace_load(t, p, 1, &a, &out, &err), out); break;
    case 19: keep(trace_store(t, p, 1, &a, b, &err), c); break;
    case 20: keep(trace_load_where(t, p, 1, &a, b, c, &out, &err), out); break;
    case 21:
        keep(trace_atomic(t, some_op(OP_ATOMIC_LOAD, OP_ATOMIC_MAX), p, 1, &a, pick(3), (struct tv[]){b, c},
                          ORDER_RELAXED, &out, &err),
             out);
        break;
    case 22:
        keep(trace_simd(t, some_op(OP_SIMD_SUM, OP_QUAD_ACTIVE), pick(4), (struct tv[]){a, b, c}, &out, &err), out);
        break;
    case 23: keep(trace_barrier(t, pick(2) ? OP_BARRIER : OP_SIMDGROUP_BARRIER, pick(17), &err), c); break;
    case 24: opened(trace_if(t, a, &scope, &err), scope); break;
    case 25:
        opened(pick(2) ? trace_else(t, pick(3) ? last_if : pick(40), &scope, &err)
                       : trace_elif(t, last_if, a, &scope, &err),
               scope);
        break;
    case 26: {
        const sk_status status = trace_range(t, a, b, pick(2) ? c : tv_int(1), &out, &scope, &err);
        if (status == SK_OK)
            pool[pick(POOL)] = out;
        opened(status, scope);
        break;
    }
    case 27:
        trace_extent(t, line + 10 + pick(3));
        opened(trace_while(t, a, &scope, &err), scope);
        break;
    case 28: opened(pick(2) ? trace_while_begin(t, &scope, &err) : trace_where(t, a, &scope, &err), scope); break;
    case 29: keep(pick(2) ? trace_break(t, &err) : trace_continue(t, &err), c); break;
    case 30:
        if (pick(4) == 0)
            keep(trace_return(t, pick(2) ? &a : NULL, &err), c);
        else if (pick(3) == 0)
            begin_function();
        else if (open_functions && pick(2)) {
            end_function();
            open_functions--;
        } else {
            keep(trace_call(t, n_functions ? functions[pick(n_functions)] : 0, pick(4), (struct tv[]){a, p, c}, &out,
                            &err),
                 out);
        }
        break;
    case 31: {
        const uint64_t shape[] = {pick(40), 1 + pick(8)};
        keep(trace_array(t, (enum space)pick(4), (ir_type)(1 + pick(S_COUNT + 10)), 1 + pick(2), shape, &out, &err),
             out);
        break;
    }
    case 32:
        if (n_scopes && pick(4) == 0)
            keep(trace_end_scope(t, scopes[pick(n_scopes)], &err), c);
        trace_name(t, a, "a name");
        break;
    default: end_scope(); break;
    }
}

static void one_module(uint64_t number)
{
    struct ir_module *m = NULL, *again = NULL;
    seed = number;
    line = n_scopes = n_functions = open_functions = last_if = 0;
    begin();
    for (unsigned k = 0; k < POOL; k++)
        pool[k] = val[1 + k % (S_COUNT - 1)];
    for (unsigned k = 0; k < STEPS; k++)
        step();
    for (; open_functions; open_functions--)
        end_function();
    end_function();
    const sk_status status = trace_finish(t, &m, &err);
    if (status != SK_OK && strcmp(err.name, "NO_KERNEL") != 0) {
        CHECK_EQ_STR(err.message, "");
        printf("seed %llu\n", (unsigned long long)number);
    }
    if (m) {
        modules++;
        struct buf first, second;
        buf_init(&first, &mem);
        buf_init(&second, &mem);
        sk_error_clear(&err);
        ir_print(m, &first, IR_PRINT_PLACES);
        CHECK_EQ(ir_parse(&mem, buf_text(&first), first.n, "again", &again, &err), SK_OK);
        if (again) {
            ir_print(again, &second, IR_PRINT_PLACES);
            CHECK(strcmp(buf_text(&first), buf_text(&second)) == 0);
        } else {
            printf("seed %llu: %s:%u %s\n", (unsigned long long)number, err.file, err.line, err.message);
        }
        buf_free(&first);
        buf_free(&second);
    }
    ir_module_free(m);
    ir_module_free(again);
    trace_free(t);
    CHECK_EQ(mem.live, 0);
}

int main(int argc, char **argv)
{
    TRACE_TESTS_BEGIN
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
                   count = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
    for (uint64_t k = first; k < first + count; k++)
        one_module(k);
    printf("%ld steps accepted, %ld refused, %ld modules\n", accepted, refused_steps, modules);
    return check_done();
}
