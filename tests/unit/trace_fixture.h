/* trace_fixture.h - a tracer with a kernel begun, for the tests of the tracer. */
#ifndef TRACE_FIXTURE_H
#define TRACE_FIXTURE_H

#include "check.h"
#include "trace/trace.h"

#include <setjmp.h>

/* A kernel with a value of each scalar type, a buffer of each, and some attributes. */
static struct mem mem;
static struct trace *t;
static sk_error err;
static struct tv val[S_COUNT], buffer[S_COUNT], vec3, ivec2, tid, lane, pos2;
static uint32_t file, func;
static jmp_buf no_memory;

static inline struct tv param(const char *name, unsigned kind, ir_type type, ir_type elem, unsigned attribute)
{
    struct tv out = {0};
    const struct trace_param_desc d = {
        .name = name, .type = type, .elem = elem, .kind = (uint8_t)kind, .attribute = (uint8_t)attribute};
    CHECK_EQ(trace_param(t, &d, &out, &err), SK_OK);
    return out;
}

static inline void begin(void)
{
    mem_init(&mem, NULL);
    mem.recover = &no_memory;
    sk_error_clear(&err);
    t = trace_new(&mem);
    file = trace_file(t, "kernel.py");
    trace_place(t, file, 1, 0);
    CHECK_EQ(trace_begin(t, &(struct trace_func_desc){.name = "k", .kernel = true}, &func, &err), SK_OK);
    for (unsigned s = 1; s < S_COUNT; s++) {
        char name[8] = "p";
        (void)strcat(name, scalar_info[s].name);
        val[s] = param(scalar_info[s].name, PARAM_VALUE, (ir_type)s, 0, 0);
        buffer[s] = param(name, PARAM_BUFFER, TYPE_POINTER(SPACE_DEVICE), (ir_type)s, 0);
    }
    vec3 = param("v3", PARAM_VALUE, TYPE_VECTOR(S_F32, 3), 0, 0);
    ivec2 = param("v2", PARAM_VALUE, TYPE_VECTOR(S_I32, 2), 0, 0);
    tid = param("tid", PARAM_ATTRIBUTE, TYPE_U32, 0, ATTR_THREAD_INDEX_IN_THREADGROUP);
    lane = param("lane", PARAM_ATTRIBUTE, TYPE_U32, 0, ATTR_THREAD_INDEX_IN_SIMDGROUP);
    pos2 = param("pos", PARAM_ATTRIBUTE, TYPE_VECTOR(S_U32, 2), 0, ATTR_THREAD_POSITION_IN_THREADGROUP);
    trace_place(t, file, 10, 0);
}

/* Ends with something traced, verifies, and gives the text of the body. */
static inline void finish(char *text, size_t cap)
{
    struct ir_module *m = NULL;
    CHECK_EQ(trace_store(t, buffer[S_F32], 1, &(struct tv){.kind = TV_INT, .magnitude = 7}, tv_float(7), &err), SK_OK);
    CHECK_EQ(trace_end(t, &err), SK_OK);
    CHECK_EQ(trace_finish(t, &m, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    if (text && m) {
        struct buf b;
        buf_init(&b, &mem);
        ir_print(m, &b, 0);
        const char *const at = strstr(buf_text(&b), "{\n");
        (void)snprintf(text, cap, "%s", at ? at + 2 : "");
        buf_free(&b);
    }
    ir_module_free(m);
    trace_free(t);
    CHECK_EQ(mem.live, 0);
}

static inline void drop(void)
{
    trace_free(t);
    CHECK_EQ(mem.live, 0);
}

/* The error of the last step, then forgotten. */
static inline const char *error_name(void)
{
    static char name[32];
    (void)snprintf(name, sizeof name, "%s", err.name);
    sk_error_clear(&err);
    return name;
}

static inline const char *type_name(struct tv v)
{
    static char name[32];
    struct buf b;
    buf_init(&b, &mem);
    ir_type_print(trace_module(t), &b, trace_type(t, v));
    (void)snprintf(name, sizeof name, "%s", buf_text(&b));
    buf_free(&b);
    return name;
}

/* Memory that runs out where a test does not expect it ends the program: a main begins with this. */
#define TRACE_TESTS_BEGIN                                                                                              \
    if (setjmp(no_memory) != 0) {                                                                                      \
        printf("out of memory\n");                                                                                     \
        return 1;                                                                                                      \
    }

#endif
