/* parse_fuzz.c - bytes as IR text: the parser refuses them with an error, or what it made prints and reads back as the same
 * text, and no memory is left behind. Anything else stops the program.
 *
 * With libFuzzer:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -DFUZZ_ENGINE ... fuzz/parse_fuzz.c
 *     ./parse_fuzz -max_len=4096 CORPUS tests/ir tests/err
 * Without, as a plain program that mutates files by itself, mostly by moving lines and words between them:
 *     parse_fuzz [--seconds N] [--seed S] FILE...
 * Without --seconds each file is run once: that replays a finding. A failing input is left in parse_fuzz.failed.
 */
#include "ir/ir.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MUST(cond)                                                                                                     \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            (void)fprintf(stderr, "parse_fuzz: %s (line %d)\n", #cond, __LINE__);                                      \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

struct run {
    struct mem mem;
    struct ir_module *m, *back;
    struct buf first, second;
};

static sk_status use(struct run *r, const char *text, size_t n, sk_error *err)
{
    TRY(ir_parse(&r->mem, text, n, "fuzz.ir", &r->m, err));
    for (unsigned flags = 0; flags <= IR_PRINT_PLACES; flags += IR_PRINT_PLACES) {
        sk_error again = {0};
        r->first.n = r->second.n = 0;
        ir_print(r->m, &r->first, flags);
        MUST(ir_parse(&r->mem, buf_text(&r->first), r->first.n, "back.ir", &r->back, &again) == SK_OK);
        ir_print(r->back, &r->second, flags);
        MUST(r->first.n == r->second.n && memcmp(buf_text(&r->first), buf_text(&r->second), r->first.n) == 0);
        ir_module_free(r->back);
        r->back = NULL;
    }
    for (uint32_t f = 1; f < r->m->funcs.n && f < 4; f++) {
        r->first.n = 0;
        ir_print_func(r->m, f, &r->first, IR_PRINT_PLACES);
        MUST(ir_parse(&r->mem, buf_text(&r->first), r->first.n, "part.ir", &r->back, NULL) == SK_OK);
        ir_module_free(r->back);
        r->back = NULL;
    }
    return SK_OK;
}

static sk_status guarded(struct run *r, const char *text, size_t n, sk_error *err)
{
    volatile sk_status status = SK_OK;
    MEM_GUARD(&r->mem, err, status, use(r, text, n, err));
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    /* A copy of the exact size, whose end a sanitizer watches. */
    char *const text = malloc(n ? n : 1);
    if (!text)
        return 0;
    if (n)
        memcpy(text, data, n);
    struct run r = {0};
    mem_init(&r.mem, NULL);
    buf_init(&r.first, &r.mem);
    buf_init(&r.second, &r.mem);
    sk_error err = {0};
    const sk_status status = guarded(&r, text, n, &err);
    MUST(status == SK_OK || status == SK_ERR_SYNTAX || status == SK_ERR_INVALID);
    MUST(status == err.status && (status == SK_OK) == (err.message[0] == 0));
    MUST(strchr(err.message, '\n') == NULL);
    ir_module_free(r.m);
    buf_free(&r.first);
    buf_free(&r.second);
    MUST(r.mem.live == 0);
    free(text);
    return 0;
}

#ifndef FUZZ_ENGINE

#define INPUT_MAX 65536u

struct input {
    char *text;
    size_t n;
};

static uint64_t random_next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return hash_u64(3, *state);
}

static struct input read_input(const char *path)
{
    struct input in = {malloc(INPUT_MAX), 0};
    FILE *const f = fopen(path, "rb");
    if (!f || !in.text) {
        (void)fprintf(stderr, "parse_fuzz: cannot read %s\n", path);
        exit(2);
    }
    in.n = fread(in.text, 1, INPUT_MAX, f);
    (void)fclose(f);
    return in;
}

/* A piece of `in` that begins at a random place: a few bytes, a word, a line, some lines. */
static struct input piece(const struct input *in, uint64_t *state)
{
    const uint64_t r = random_next(state);
    size_t from = in->n ? (r >> 8) % in->n : 0, to = from;
    if (r % 4 == 0) {
        to = from + (r >> 48) % 8;
    } else if (r % 4 == 1) {
        while (from > 0 && !strchr(" ,()[]{}\n", in->text[from - 1]))
            from--;
        while (to < in->n && !strchr(" ,()[]{}\n", in->text[to]))
            to++;
    } else {
        while (from > 0 && in->text[from - 1] != '\n')
            from--;
        for (uint64_t lines = r % 4 == 2 ? 1 : (r >> 48) % 12; lines > 0; lines--) {
            while (to < in->n && in->text[to] != '\n')
                to++;
            to += to < in->n;
        }
    }
    to = to > in->n ? in->n : to;
    return (struct input){in->text + from, to > from ? to - from : 0};
}

static void replace(struct input *in, size_t from, size_t n, const char *with, size_t with_n)
{
    if (in->n - n + with_n > INPUT_MAX)
        return;
    char copy[INPUT_MAX];
    memcpy(copy, with, with_n);
    memmove(in->text + from + with_n, in->text + from + n, in->n - from - n);
    memcpy(in->text + from, copy, with_n);
    in->n = in->n - n + with_n;
}

static void mutate(struct input *in, const struct input *all, size_t n_all, uint64_t *state)
{
    static const char *const words[] = {"0",           "-1",
                                        "4294967295",  "18446744073709551616",
                                        "1e999",       "zero:",
                                        "%0",          "%4294967295",
                                        "\xff",        "(",
                                        "{",           "}",
                                        "\n",          "\"",
                                        "[",           "@f",
                                        "struct S {}", "!1",
                                        "br",          "nan",
                                        "0x",          "1099511627776",
                                        "\\x00",       "\r\n",
                                        "#",           "u64",
                                        "f32x4"};
    for (uint64_t k = random_next(state) % 4; k > 0 && in->n; k--) {
        const uint64_t r = random_next(state);
        const struct input old = piece(in, state), fresh = piece(&all[(r >> 16) % n_all], state);
        const size_t at = (size_t)(old.text - in->text);
        const char *const word = words[(r >> 24) % (sizeof words / sizeof *words)];
        if (r % 8 < 4)
            replace(in, at, old.n, fresh.text, fresh.n);
        else if (r % 8 == 4)
            replace(in, at, old.n, "", 0);
        else if (r % 8 == 5)
            replace(in, at, 0, fresh.text, fresh.n);
        else if (r % 8 == 6)
            replace(in, at, old.n, word, strlen(word));
        else
            in->text[at] = (char)(r >> 32);
    }
}

/* The input now running, written out when the process dies of it. */
static struct input running;

static void keep(void)
{
    FILE *const f = fopen("parse_fuzz.failed", "wb");
    if (f) {
        (void)fwrite(running.text, 1, running.n, f);
        (void)fclose(f);
    }
}

static void die(int signal_number)
{
    keep();
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

/* There when a sanitizer is. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void run_input(const struct input *in)
{
    running = *in;
    (void)LLVMFuzzerTestOneInput((const uint8_t *)in->text, in->n);
}

int main(int argc, char **argv)
{
    uint64_t seconds = 0, state = 1;
    static struct input all[4096];
    size_t n = 0;
    (void)signal(SIGABRT, die);
    (void)signal(SIGSEGV, die);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(keep);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            state = strtoull(argv[++i], NULL, 10);
        else if (n < sizeof all / sizeof *all)
            all[n++] = read_input(argv[i]);
    }
    for (size_t k = 0; k < n; k++) {
        run_input(&all[k]);
    }
    const uint64_t end = os_nanoseconds() + seconds * 1000000000u;
    struct input in = {malloc(INPUT_MAX), 0};
    uint64_t count = n;
    for (; n && in.text && os_nanoseconds() < end; count++) {
        const struct input *const base = &all[random_next(&state) % n];
        in.n = base->n;
        memcpy(in.text, base->text, base->n);
        mutate(&in, all, n, &state);
        run_input(&in);
    }
    (void)printf("%llu inputs\n", (unsigned long long)count);
    free(in.text);
    for (size_t k = 0; k < n; k++)
        free(all[k].text);
    return 0;
}

#endif
