/* spork.h in strict C11: it compiles, and every kind of macro expands to what compiles. Never run. */
#include "spork/spork.h"

void use_the_header(sk_tracer *t);

void use_the_header(sk_tracer *t)
{
    sk_kernel_begin(t, "k");
    const sk_value p = sk_param_buffer(t, "p", SK_F32), q = sk_param_atomic(t, "q", SK_U32);
    const sk_value i = sk_param_attribute(t, "i", SK_VEC(SK_U32, 2), SK_THREAD_POSITION_IN_GRID);
    const sk_value args[] = {p, sk_x(i)};
    sk_value v = sk_name(sk_local(t, SK_F32, sk_float(0.5)), "v");
    sk_if(t, sk_lt(v, sk_int(3)));
    sk_elif(t, sk_simd_is_first(t));
    sk_else(t);
    sk_end(t);
    sk_while(t, sk_ne(sk_atomic_load(q, sk_y(i)), sk_uint(0)));
    sk_break(t);
    sk_end(t);
    v = sk_where(t, sk_bool(true), sk_exp(v), sk_fast1("exp", v));
    sk_atomic_store(q, sk_int(0), sk_atomic_cas(q, sk_int(0), sk_int(1), sk_int(2)));
    v = sk_clamp(sk_vec3(t, SK_F32, v, v, v), sk_int(0), sk_select(sk_bool(false), v, v));
    v = sk_call(t, 1, 2, args);
    sk_threadgroup_barrier(t, SK_MEMORY_DEVICE | SK_MEMORY_THREADGROUP);
    sk_store2(p, sk_int(0), sk_range(t, sk_int(0), v, sk_int(1)), sk_load3(p, v, v, v));
    sk_return_value(t, sk_cast(v, SK_BF16));
    sk_kernel_end(t);
}
