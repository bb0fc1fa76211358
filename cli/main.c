/* main.c - the `spork` command: help, errors, files. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *doc;
} commands[] = {
    {"run", cli_run, "run a kernel of an .ir file on arrays"},
    {"emit", cli_emit, "print a kernel as Metal source, IR, LLVM IR or instructions"},
    {"ir", cli_ir, "check an .ir file, run passes on it, print it"},
    {"devices", cli_devices, "list what kernels can run on here"},
    {"cache", cli_cache, "list or remove the compiled kernels kept on disk"},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static void help(void)
{
    (void)printf("spork - Metal compute kernels, written once, run on any machine\n\n"
                 "usage: spork COMMAND ...\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        (void)printf("  %-9s %s\n", commands[i].name, commands[i].doc);
    (void)printf(
        "\n"
        "spork COMMAND --help tells more about each. A first session:\n\n"
        "  spork emit examples/matrix_add.py:matrix_add --as msl     the kernel as a Metal programmer reads it\n"
        "  spork emit examples/matrix_add.py:matrix_add --as ir > add.ir\n"
        "  spork run add.ir matrix_add --threads 1024 \\\n"
        "      out=zeros:1024:f32 A=full:1.0:1024:f32 B=full:2.0:1024:f32 --print out[0],out[-1]\n\n"
        "exit codes: 0 done, 1 failed (the error is on stderr as FILE:LINE:COLUMN: error: ...), 2 wrong usage\n");
}

bool cli_is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

int cli_error(const sk_error *err)
{
    if (err->file[0]) {
        (void)fprintf(stderr, "%s:", err->file);
        if (err->line)
            (void)fprintf(stderr, "%u:", err->line);
        if (err->line && err->column)
            (void)fprintf(stderr, "%u:", err->column);
        (void)fputc(' ', stderr);
    } else {
        (void)fputs("spork: ", stderr);
    }
    (void)fprintf(stderr, "error: %s\n", err->message);
    return EXIT_FAILED;
}

int cli_usage(const char *command, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fprintf(stderr, "spork %s: ", command);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "; see spork %s --help\n", command);
    return EXIT_USAGE;
}

sk_status cli_read_file(const char *path, char **text, size_t *size, sk_error *err)
{
    const struct err_place at = {path, 0, 0};
    FILE *f = fopen(path, "rb");
    if (!f)
        return ERR_AT(err, at, CANNOT_READ, strerror(errno));
    size_t n = 0, cap = 1 << 16;
    char *p = malloc(cap + 1);
    while (p) {
        n += fread(p + n, 1, cap - n, f);
        if (n < cap)
            break;
        char *bigger = realloc(p, 2 * cap + 1);
        if (!bigger)
            free(p);
        p = bigger;
        cap *= 2;
    }
    const bool failed = ferror(f) != 0;
    (void)fclose(f);
    if (!p)
        return ERR(err, OUT_OF_MEMORY);
    if (failed) {
        free(p);
        return ERR_AT(err, at, CANNOT_READ, strerror(errno));
    }
    p[n] = 0;
    *text = p;
    *size = n;
    return SK_OK;
}

int cli_load(sk_context *ctx, const char *path, sk_module **out)
{
    sk_error err = {0};
    char *text = NULL;
    size_t size = 0;
    sk_status st = cli_read_file(path, &text, &size, &err);
    if (st == SK_OK)
        st = sk_module_parse(ctx, text, size, path, out, &err);
    free(text);
    return st == SK_OK ? EXIT_FINE : cli_error(&err);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2 || cli_is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        help();
        return argc < 2 ? EXIT_USAGE : EXIT_FINE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("spork %d.%d.%d\n", SK_VERSION_MAJOR, SK_VERSION_MINOR, SK_VERSION_PATCH);
        return EXIT_FINE;
    }
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    (void)fprintf(stderr, "spork: no command '%s'; see spork --help\n", argv[1]);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const int code = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fprintf(stderr, "spork: error: cannot write the output: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    return code;
}
