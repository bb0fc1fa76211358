/* compile.c - text to object code, assembly or optimised text.
 *
 * A compile has a thread, a context and a target machine of its own. LLVM answers what it cannot do with a "fatal error": our
 * handler then leaves LLVM by longjmp, back to the start of the thread, which ends. What LLVM had in memory at that moment is
 * lost, and so is nothing else: LLVM reports such errors with none of its locks held, its tables of the process are never
 * half-changed then, and what it keeps for a thread ends with it.
 *
 * LLVM recurses: over types and constants while it reads (bounded by DEEPEST), and over long chains of values and blocks
 * (bounded by LARGEST and given a stack that suffices). Out of its reach: LLVM ends the process when malloc gives it nothing.
 */
#include "llvm/library.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#define LARGEST (16u << 20) /* bytes of text */
#define DEEPEST 64u         /* brackets within brackets; code that we make has less than 10 */

/* Reserved, not used: the system gives pages as they are touched. The smaller ones are for processes with little address
 * space, and for texts that cannot go deep. */
static const size_t stacks[] = {(size_t)512 << 20, (size_t)64 << 20};
#define SMALL_TEXT (128u << 10) /* for which the second suffices */

struct job {
    struct llvm *l;
    const char *text;
    size_t n;
    enum llvm_effort effort;
    enum llvm_output output;
    sk_status status;
    sk_error *err;
    llvm_bytes *object; /* results; both belong to the library, */
    char *ir;           /* in a form for reading */
    bool wrong;         /* LLVM reported an error while it went on */
    char said[512];     /* its words; of fatal errors too */
    jmp_buf fatal;
};

static _Thread_local struct job *current; /* the handler of fatal errors gets no argument of ours */

/* One line of at most `cap` bytes: line ends and what is not printable become spaces, several spaces one. */
static void one_line(char *out, size_t cap, const char *in)
{
    size_t n = 0;
    for (; *in && n + 1 < cap; in++) {
        const char c = (unsigned char)*in > ' ' && *in != 0x7f ? *in : ' ';
        if (c != ' ' || (n && out[n - 1] != ' '))
            out[n++] = c;
    }
    n -= n && out[n - 1] == ' ';
    out[n] = 0;
}

void llvm_on_fatal_error(const char *reason)
{
    /* Of another user of the same library: for his errors LLVM goes its usual way when this returns. */
    if (!current)
        return;
    one_line(current->said, sizeof current->said, reason);
    longjmp(current->fatal, 1);
}

static void on_diagnostic(llvm_diagnostic *d, void *user)
{
    struct job *const j = user;
    const struct llvm_api *const api = &j->l->api;
    if (api->GetDiagInfoSeverity(d) != LLVM_SEVERITY_ERROR || j->wrong)
        return;
    j->wrong = true;
    char *const text = api->GetDiagInfoDescription(d);
    one_line(j->said, sizeof j->said, text);
    api->DisposeMessage(text);
}

/* ---- what is run ---- */

/* Lists of ours instead of "default<O2>": they take a half of its time and make code as fast or faster. Measured: `indvars` and
 * `sink` cost tiled matrix products a fifth of their speed; a higher level of code generation (2 for 1) costs time and gives
 * nothing. Vectorisers are left out: our values are vectors already. Loops are unrolled in full where that is cheap or where
 * their metadata say llvm.loop.unroll.full; arrays that loops index become values by the second SROA. */
#define COMBINE "instcombine<no-verify-fixpoint>" /* else it ends the process over a change left to make */
#define INLINE "always-inline,globaldce,"
static const struct recipe {
    const char *passes;
    int level; /* of code generation */
} recipes[] = {
    [LLVM_QUICK] = {INLINE "function(sroa,early-cse,simplifycfg," COMBINE ",loop-mssa(licm))", 1},
    [LLVM_FULL] = {INLINE "function(sroa,early-cse<memssa>,simplifycfg," COMBINE ",loop-mssa(loop-rotate,licm),"
                          "loop(loop-unroll-full),sroa,gvn," COMBINE ",simplifycfg,loop-mssa(licm))",
                   1},
    [LLVM_LEAST] = {INLINE "function(sroa,early-cse,simplifycfg)", 0},
};
/* For a version that does not know a name in ours. */
static const char fallback[] = "default<O2>";

/* ---- steps; each needs the one before ---- */

/* The reader of types and constants recurses. Text in quotes and comments is left out. */
static bool too_deep(const char *text, size_t n)
{
    unsigned depth = 0;
    bool quoted = false;
    for (size_t k = 0; k < n; k++) {
        const char c = text[k];
        if (quoted) {
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == ';') {
            while (k + 1 < n && text[k + 1] != '\n')
                k++;
        } else if (c == '(' || c == '[' || c == '{' || c == '<') {
            if (++depth > DEEPEST)
                return true;
        } else if ((c == ')' || c == ']' || c == '}' || c == '>') && depth) {
            depth--;
        }
    }
    return false;
}

/* From "text:3:5: error: why", the line in question and a line with a mark: "line 3: why: the line". The first line of the text
 * is not shown, because target lines lie before it. Consumes message. */
static sk_status refused(const struct job *j, char *message)
{
    const char *from = message ? message : "";
    unsigned line = 0;
    if (sscanf(from, "text:%u:", &line) == 1) {
        const char *const why = strstr(from, "error: ");
        from = why ? why + strlen("error: ") : from;
    }
    const size_t n = strcspn(from, "\n");
    const char *const source = from + n + (from[n] != 0);
    char said[512], shown[256], quoted[256];
    (void)snprintf(shown, sizeof shown, "%.*s", (int)(n < sizeof shown ? n : sizeof shown - 1), from);
    one_line(said, sizeof said, shown);
    (void)snprintf(shown, sizeof shown, "%.*s", (int)strcspn(source, "\n"), source);
    one_line(quoted, sizeof quoted, shown);
    j->l->api.DisposeMessage(message);
    if (line > 1)
        return ERR(j->err, LLVM_REFUSED_LINE, j->l->version, line, said, quoted);
    return ERR(j->err, LLVM_REFUSED, j->l->version, said, line ? "" : quoted);
}

static sk_status read_text(const struct job *j, llvm_context *context, llvm_module **out)
{
    const struct llvm_api *const api = &j->l->api;
    llvm_bytes *const bytes = api->CreateMemoryBufferWithMemoryRange(j->text, j->n, "text", 1);
    char *message = NULL;
    if (api->ParseIRInContext(context, bytes, out, &message))
        return refused(j, message);
    if (api->VerifyModule(*out, LLVM_VERIFY_RETURN, &message))
        return refused(j, message);
    api->DisposeMessage(message);
    return SK_OK;
}

/* Of every function with a body. */
static const struct attribute {
    const char *name, *value; /* null: one of LLVM's own kinds */
} attributes[] = {
    {"nounwind", NULL},             /* no tables for unwinding */
    {"prefer-vector-width", "512"}, /* whole registers, also where LLVM would fear for the clock */
    {"frame-pointer", "none"},
    {"no-builtins", ""}, /* a loop is not taken for a function of the C library */
};

static void add_attributes(const struct job *j, llvm_context *context, llvm_module *module)
{
    const struct llvm_api *const api = &j->l->api;
    for (size_t k = 0; k < sizeof attributes / sizeof attributes[0]; k++) {
        const char *const name = attributes[k].name, *const value = attributes[k].value;
        llvm_attribute *const a =
            value ? api->CreateStringAttribute(context, name, (unsigned)strlen(name), value, (unsigned)strlen(value))
                  : api->CreateEnumAttribute(context, api->GetEnumAttributeKindForName(name, strlen(name)), 0);
        for (llvm_value *f = api->GetFirstFunction(module); f; f = api->GetNextFunction(f))
            if (!api->IsDeclaration(f))
                api->AddAttributeAtIndex(f, LLVM_OF_FUNCTION, a);
    }
}

static sk_status optimise(struct job *j, llvm_module *module, llvm_machine *machine)
{
    const struct llvm_api *const api = &j->l->api;
    llvm_pass_options *const options = api->CreatePassBuilderOptions();
    api->PassBuilderOptionsSetLoopVectorization(options, 0);
    api->PassBuilderOptionsSetSLPVectorization(options, 0);
    /* It fails before it begins, at a list that it cannot read. */
    llvm_error *failed = api->RunPasses(module, recipes[j->effort].passes, machine, options);
    if (failed) {
        api->DisposeErrorMessage(api->GetErrorMessage(failed));
        failed = api->RunPasses(module, fallback, machine, options);
    }
    api->DisposePassBuilderOptions(options);
    if (!failed)
        return SK_OK;
    char *const message = api->GetErrorMessage(failed);
    one_line(j->said, sizeof j->said, message);
    api->DisposeErrorMessage(message);
    return ERR(j->err, LLVM_FATAL, j->l->version, j->said);
}

static sk_status emit(struct job *j, llvm_module *module, llvm_machine *machine)
{
    const struct llvm_api *const api = &j->l->api;
    if (j->output == LLVM_IR) {
        j->ir = api->PrintModuleToString(module);
        return SK_OK;
    }
    char *message = NULL;
    const int file = j->output == LLVM_ASM ? LLVM_FILE_ASM : LLVM_FILE_OBJECT;
    if (!api->TargetMachineEmitToMemoryBuffer(machine, module, file, &message, &j->object))
        return SK_OK;
    j->object = NULL;
    one_line(j->said, sizeof j->said, message ? message : "");
    api->DisposeMessage(message);
    return ERR(j->err, LLVM_FATAL, j->l->version, j->said);
}

static sk_status in_context(struct job *j, llvm_context *context)
{
    const struct llvm *const l = j->l;
    const struct llvm_api *const api = &l->api;
    api->ContextSetDiagnosticHandler(context, on_diagnostic, j);
    llvm_module *module = NULL;
    TRY(read_text(j, context, &module));
    add_attributes(j, context, module);
    llvm_machine *const machine = api->CreateTargetMachine(l->target, l->triple, l->cpu, l->features,
                                                           recipes[j->effort].level, LLVM_RELOC_PIC, LLVM_MODEL_SMALL);
    sk_status status = optimise(j, module, machine);
    if (status == SK_OK)
        status = emit(j, module, machine);
    if (status == SK_OK && j->wrong)
        status = ERR(j->err, LLVM_FATAL, l->version, j->said);
    api->DisposeTargetMachine(machine);
    return status; /* the module goes with its context */
}

static void *work(void *argument)
{
    struct job *const j = argument;
    current = j;
    if (_setjmp(j->fatal) == 0) {
        llvm_context *const context = j->l->api.ContextCreate();
        j->status = in_context(j, context);
        j->l->api.ContextDispose(context);
    } else {
        j->status = ERR(j->err, LLVM_FATAL, j->l->version, j->said);
    }
    current = NULL;
    return NULL;
}

/* ---- the whole ---- */

static sk_status run(struct job *j)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    pthread_t thread;
    bool began = false;
    if (!llvm_enter(j->l))
        return ERR(j->err, LLVM_ENDING);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the user's threads */
    for (size_t k = 0; k < sizeof stacks / sizeof stacks[0] && !began; k++) {
        if (k && j->n > SMALL_TEXT)
            break;
        pthread_attr_t attr;
        (void)pthread_attr_init(&attr);
        began = pthread_attr_setstacksize(&attr, stacks[k]) == 0 && pthread_create(&thread, &attr, work, j) == 0;
        (void)pthread_attr_destroy(&attr);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (began)
        (void)pthread_join(thread, NULL);
    llvm_leave(j->l);
    return began ? j->status : ERR(j->err, LLVM_THREAD, (unsigned)(stacks[0] >> 20));
}

static sk_status copy_out(const char *from, size_t n, bool text, struct mem *mem, char **out)
{
    *out = mem_alloc(mem, n + text);
    memcpy(*out, from, n + text); /* buffers of the library end with a zero */
    return SK_OK;
}

sk_status llvm_compile(struct llvm *l, const char *text, size_t n, enum llvm_effort effort, enum llvm_output output,
                       struct mem *mem, char **out, size_t *size, sk_error *err)
{
    if (n > LARGEST)
        return ERR(err, LLVM_LARGE, n, LARGEST);
    if (too_deep(text, n))
        return ERR(err, LLVM_DEEP, DEEPEST);
    struct mem *const temp = mem_temp(mem);
    /* The target lines lie on the first line of the text: lines keep their numbers. */
    struct buf all;
    buf_init(&all, temp);
    buf_fmt(&all, "target datalayout=\"%s\" target triple=\"%s\" ", l->layout, l->triple);
    buf_bytes(&all, text, n);
    struct job j = {.l = l, .text = buf_text(&all), .n = all.n, .effort = effort, .output = output, .err = err};
    const sk_status ran = run(&j);
    mem_temp_end(temp);
    TRY(ran);
    sk_status status;
    if (output == LLVM_IR) {
        *size = strlen(j.ir);
        MEM_GUARD(mem, err, status, copy_out(j.ir, *size, true, mem, out));
        l->api.DisposeMessage(j.ir);
    } else {
        *size = l->api.GetBufferSize(j.object);
        MEM_GUARD(mem, err, status, copy_out(l->api.GetBufferStart(j.object), *size, output == LLVM_ASM, mem, out));
        l->api.DisposeMemoryBuffer(j.object);
    }
    return status;
}
