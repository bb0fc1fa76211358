/* fault.c - see fault.h. */
#include "cpu/fault.h"

#include "cpu/launch.h"
#include "ir/fault.h"

#include <sched.h>

_Static_assert((int)FAULT_READ == CPU_FAULT_READ && (int)FAULT_WRITE == CPU_FAULT_WRITE &&
                   (int)FAULT_BARRIER == CPU_FAULT_BARRIER && (int)FAULT_NO_PROGRESS == CPU_FAULT_NO_PROGRESS &&
                   (int)FAULT_ASSERT == CPU_FAULT_ASSERT,
               "kinds of faults are those of ir/fault.h");

static bool is_edge(const struct cpu_worker *w)
{
    return w->variant && w->variant->opt.edge;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

void cpu_fault_barriers(struct cpu_worker *w, uint32_t thread, uint32_t site, uint32_t other, uint32_t other_site)
{
    struct cpu_fault *const f = cpu_fault_record(w, thread, CPU_FAULT_BARRIER, is_edge(w));
    if (!f)
        return;
    f->site = site;
    f->other_site = other_site;
    const uint32_t *const d = is_edge(w) ? w->asked : w->dims;
    const uint32_t at[3] = {other % d[0], other / d[0] % d[1], other / d[0] / d[1]};
    for (unsigned k = 0; k < 3; k++)
        f->other_at[k] = w->group[k] * w->asked[k] + at[k];
}

void helper_assert(struct cpu_worker *w, uint32_t site, uint32_t message, uint32_t first_thread, uint32_t lanes)
{
    if (!lanes)
        return;
    struct cpu_fault *const f =
        cpu_fault_record(w, first_thread + (uint32_t)__builtin_ctz(lanes), CPU_FAULT_ASSERT, is_edge(w));
    if (!f)
        return;
    f->site = site;
    f->region = message; /* an assertion has no region */
}

/* While threadgroups before this one are being run, what is waited for may come. When there are none, it does not: as
 * in the interpreter, nobody else needs to run. */
int32_t helper_wait(struct cpu_worker *w, struct cpu_wait *state, uint32_t site, uint32_t first_thread, uint32_t lanes)
{
    if (cpu_others_before(w)) {
        state->iterations = 0;
        (void)sched_yield();
        return 0;
    }
    if (state->changes != w->changes) {
        state->changes = w->changes;
        state->iterations = 0;
    }
    if (++state->iterations <= LOOP_LIMIT || !lanes)
        return 0;
    struct cpu_fault *const f =
        cpu_fault_record(w, first_thread + (uint32_t)__builtin_ctz(lanes), CPU_FAULT_NO_PROGRESS, is_edge(w));
    if (f)
        f->site = site;
    return 1;
}

/* ---- reporting --------------------------------------------------------------------------------------------------- */

void cpu_fault_merge(struct cpu_fault *into, const struct cpu_fault *from)
{
    if (from->kind == CPU_FAULT_NONE)
        return;
    if (into->kind == CPU_FAULT_NONE || from->group < into->group ||
        (from->group == into->group && from->thread < into->thread))
        *into = *from;
}

static struct err_place place_of(const struct cpu_lowered *x, uint32_t site)
{
    if (site >= x->site.n)
        return (struct err_place){0};
    const struct cpu_site *const s = &x->site.at[site];
    return (struct err_place){s->file, s->line, s->column};
}

sk_status cpu_fault_report(const struct cpu_fault *f, const char *kernel, sk_error *err)
{
    if (f->kind == CPU_FAULT_NONE)
        return SK_OK;
    const struct cpu_lowered *const x = &f->variant->lowered;
    struct fault_text t = {
        .kind = (enum fault_kind)f->kind,
        .kernel = kernel,
        .place = place_of(x, f->site),
        .other_place = place_of(x, f->other_site),
        .offset = f->offset,
        .size = f->size,
        .message = f->kind == CPU_FAULT_ASSERT && f->region < x->message.n ? x->message.at[f->region] : "",
    };
    const bool access = f->kind == CPU_FAULT_READ || f->kind == CPU_FAULT_WRITE;
    if (access && f->region < x->region.n && x->region.at[f->region].kind != CPU_REGION_NULL) {
        t.region = x->region.at[f->region].name;
        t.elem = x->region.at[f->region].elem;
    }
    memcpy(t.at, f->at, sizeof t.at);
    memcpy(t.other_at, f->other_at, sizeof t.other_at);
    return fault_text(&t, err);
}
