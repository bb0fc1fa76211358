/* reduce.c - a failing program made smaller, for a person to read.
 *
 * Tries, from large to small: many statements gone, a construct or a statement gone (its values zero where they are used), a value zero, a condition
 * constant. What the verifier accepts and still fails is kept. Rounds end when none of it helps any more, or after a minute.
 */
#include "fuzz/diff.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pass/util.h"

struct reducer {
    struct mem *mem;
    const struct gen_program *p;
    uint64_t seed;
    struct ir_module *best;
    struct diff_failure *f;
    uint64_t end; /* when to be content */
};

#define REDUCE_SECONDS 60u
#define TRY_SECONDS 1u /* a changed program may run for ever */

/* Every use of `from` becomes zero. */
static void use_zero(struct ir_module *m, uint32_t from)
{
    const ir_type t = ir_at(m, from)->type;
    if (t == TYPE_VOID || ir_type_is_pointer(t) || ir_at(m, from)->op == OP_VAR)
        return;
    const uint32_t zero = ir_zero(m, t);
    for (uint32_t id = 1; id < m->nodes.n; id++) {
        if (!ir_at(m, id)->region || ir_at(m, id)->op == OP_RESULT)
            continue;
        uint32_t *const in = ir_in_mut(m, id);
        for (unsigned k = 0; k < ir_at(m, id)->n; k++)
            if (in[k] == from)
                in[k] = zero;
    }
}

/* Takes a node out with its results; its values become zero. False: it cannot go. */
static bool drop(struct ir_module *m, uint32_t id)
{
    const uint16_t op = ir_at(m, id)->op;
    if (op == OP_ARG || op == OP_RESULT || op == OP_YIELD || !ir_at(m, id)->region)
        return false;
    if (ir_is_construct(op)) {
        for (uint32_t r = ir_at(m, id)->next, next; r && ir_at(m, r)->op == OP_RESULT && ir_in(m, r)[0] == id;
             r = next) {
            next = ir_at(m, r)->next;
            use_zero(m, r);
            ir_unlink(m, r);
        }
    }
    use_zero(m, id);
    ir_unlink(m, id);
    return true;
}

/* A branch becomes what one of its regions holds, if nothing names the branch. */
static bool flatten(struct ir_module *m, uint32_t id, unsigned k)
{
    const uint16_t op = ir_at(m, id)->op;
    if ((op != OP_IF && op != OP_BLOCK && op != OP_SWITCH) || k >= ir_n_regions(m, id))
        return false;
    const uint32_t region = ir_region(m, id, k);
    if (region_leaves_to(m, region, id) || ir_n_results(m, id))
        return false;
    const uint32_t last = ir_region_at(m, region)->last;
    if (last && ir_at(m, last)->op == OP_YIELD)
        ir_unlink(m, last);
    else if (region_ends_in_exit(m, region))
        return false;
    ir_splice(m, region, id);
    ir_unlink(m, id);
    return true;
}

enum trick { TRICK_DROP, TRICK_FLATTEN, TRICK_FLATTEN_ELSE, TRICK_ZERO, TRICK_TRUE, TRICK_COUNT };

static bool apply(struct ir_module *m, uint32_t id, enum trick trick)
{
    switch (trick) {
    case TRICK_DROP: return drop(m, id);
    case TRICK_FLATTEN: return flatten(m, id, 0);
    case TRICK_FLATTEN_ELSE: return flatten(m, id, 1);
    case TRICK_ZERO:
        if (!ir_at(m, id)->type || ir_type_is_pointer(ir_at(m, id)->type) || ir_at(m, id)->op == OP_VAR)
            return false;
        use_zero(m, id);
        return true;
    case TRICK_TRUE:
        if (ir_at(m, id)->op != OP_IF || ir_is_const(m, ir_in(m, id)[0]))
            return false;
        ir_in_mut(m, id)[0] = ir_const(m, TYPE_BOOL, 1);
        return true;
    case TRICK_COUNT: break;
    }
    return false;
}

bool diff_fork;

static void child(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint64_t seed,
                  unsigned seconds, struct diff_failure *f, int to)
{
    (void)alarm(seconds);
    if (diff_check(mem, p, m, seed, f))
        f->what[0] = 0;
    _exit(write(to, f, sizeof *f) == (ssize_t)sizeof *f ? 0 : 1);
}

bool diff_check_apart(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint64_t seed,
                      unsigned seconds, struct diff_failure *f)
{
    int ends[2], status = 0;
    diff_stop = 0;
    if (!diff_fork || pipe(ends) != 0) {
        (void)alarm(seconds);
        return diff_check(mem, p, m, seed, f);
    }
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0)
        child(mem, p, m, seed, seconds, f, ends[1]);
    (void)close(ends[1]);
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n<sizeof *f; n += got> 0 ? (size_t)got : 0)
        got = read(ends[0], (char *)f + n, sizeof *f - n);
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    if (n == sizeof *f)
        return f->what[0] == 0;
    (void)snprintf(f->what, sizeof f->what, "crashed: signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return false;
}

static bool attached(const struct ir_module *m, uint32_t id)
{
    uint32_t region = ir_at(m, id)->region;
    while (region && ir_region_at(m, region)->owner)
        region = ir_at(m, ir_region_at(m, region)->owner)->region;
    return region != 0;
}

/* The trick on the nodes from `first` to `last`, the last first. */
static bool attempt(struct reducer *r, uint32_t first, uint32_t last, enum trick trick)
{
    struct diff_failure f = {0};
    sk_error err = {0};
    bool changed = false;
    if (os_nanoseconds() > r->end)
        return false;
    struct ir_module *const m = ir_module_clone(r->mem, r->best);
    for (uint32_t id = last; id >= first; id--)
        changed |= attached(m, id) && apply(m, id, trick);
    if (!changed || ir_verify(m, &err) != SK_OK) {
        ir_module_free(m);
        return false;
    }
    /* The same kind of failure: its message begins alike. */
    if (diff_check_apart(r->mem, r->p, m, r->seed, TRY_SECONDS, &f) || strncmp(f.what, r->f->what, 6) != 0) {
        ir_module_free(m);
        return false;
    }
    ir_module_free(r->best);
    r->best = m;
    *r->f = f;
    return true;
}

struct ir_module *diff_reduce(struct mem *mem, const struct gen_program *p, uint64_t seed, struct diff_failure *f)
{
    struct reducer r = {.mem = mem, .p = p, .seed = seed, .best = ir_module_clone(mem, p->m), .f = f};
    r.end = os_nanoseconds() + (diff_fork ? 4 : 1) * REDUCE_SECONDS * (uint64_t)1000000000;
    diff_one_way = f->way;
    for (uint32_t n = r.best->nodes.n / 2; n > 1; n /= 2)
        for (uint32_t last = r.best->nodes.n - 1; last > n; last -= n)
            (void)attempt(&r, last - n + 1, last, TRICK_DROP);
    for (bool progress = true; progress && os_nanoseconds() < r.end;) {
        progress = false;
        for (unsigned trick = 0; trick < TRICK_COUNT; trick++)
            for (uint32_t id = r.best->nodes.n - 1; id > 0; id--)
                if (attached(r.best, id) && attempt(&r, id, id, (enum trick)trick))
                    progress = true;
    }
    diff_one_way = -1;
    return r.best;
}
