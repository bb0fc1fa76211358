/* show.c - spork ir, spork emit, spork devices. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pass/pass.h"

int cli_ir(int argc, char **argv)
{
    const char *path = NULL, *letters = "";
    bool places = false;
    for (int i = 1; i < argc; i++) {
        if (cli_is_help(argv[i])) {
            (void)printf(
                "usage: spork ir FILE.ir [-p LETTERS] [--places]\n\n"
                "Parses and verifies an .ir file and prints it in the text form of docs/ir.md.\n\n"
                "  -p LETTERS  runs passes first, in this order; all of them in the order of this list are the "
                "pipeline:\n");
            for (unsigned k = 0; k < pass_count; k++)
                (void)printf("                %c  %s\n", pass_info[k].letter, pass_info[k].doc);
            (void)printf("  --places    prints the source places as well\n");
            return EXIT_FINE;
        }
        if (strcmp(argv[i], "-p") == 0) {
            if (++i == argc)
                return cli_usage("ir", "-p wants letters of passes");
            letters = argv[i];
        } else if (strcmp(argv[i], "--places") == 0) {
            places = true;
        } else if (argv[i][0] == '-') {
            return cli_usage("ir", "no option '%s'", argv[i]);
        } else if (path) {
            return cli_usage("ir", "one file at a time, not '%s' and '%s'", path, argv[i]);
        } else {
            path = argv[i];
        }
    }
    if (!path)
        return cli_usage("ir", "which file?");

    sk_error err = {0};
    sk_context *ctx = NULL;
    sk_module *m = NULL;
    const char *text = NULL;
    if (sk_context_create(NULL, &ctx, &err) != SK_OK)
        return cli_error(&err);
    int code = cli_load(ctx, path, &m);
    if (code == EXIT_FINE && *letters && sk_module_passes(m, letters, &err) != SK_OK)
        code = cli_error(&err);
    if (code == EXIT_FINE && sk_module_print(m, places, &text, &err) != SK_OK)
        code = cli_error(&err);
    if (code == EXIT_FINE)
        (void)fputs(text, stdout);
    sk_context_destroy(ctx);
    return code;
}

static bool runs(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Writes the path of the `python` beside `program`, if there is one that runs. A command that was found on PATH is
 * looked for there, by the name it was called by: a link in a virtual environment belongs to that environment. */
static bool python_beside(const char *program, char *out, size_t cap)
{
    const char *slash = strrchr(program, '/');
    if (slash) {
        const int n = snprintf(out, cap, "%.*s/python", (int)(slash - program), program);
        return n > 0 && (size_t)n < cap && runs(out);
    }
    for (const char *p = getenv("PATH"); p && *p;) {
        const size_t n = strcspn(p, ":");
        if (snprintf(out, cap, "%.*s/%s", (int)n, p, program) < (int)cap && runs(out)) {
            (void)snprintf(out, cap, "%.*s/python", (int)n, p);
            return runs(out);
        }
        p += n + (p[n] == ':');
    }
    return false;
}

/* Python kernels are traced by Python: the one beside this command if there is one, else the first on PATH. */
static int emit_python(const char *program, const char *what, const char *as)
{
    char python[4096];
    if (!python_beside(program, python, sizeof python))
        (void)snprintf(python, sizeof python, "python3");
    const char *const program_text = "import sys\n"
                                     "try:\n"
                                     "    from spork import _emit\n"
                                     "except ImportError as error:\n"
                                     "    sys.exit(f'spork: error: {sys.executable} cannot import the package spork "
                                     "({error}); install it there, or '\n"
                                     "             'call the spork command of an environment that has it')\n"
                                     "sys.exit(_emit.main(*sys.argv[1:]))\n";
    char *const args[] = {python, (char *)"-c", (char *)program_text, (char *)what, (char *)as, NULL};
    (void)fflush(stdout);
    (void)execvp(python, args);
    (void)fprintf(stderr, "spork: error: cannot run '%s' to trace '%s': %s\n", python, what, strerror(errno));
    return EXIT_FAILED;
}

int cli_emit(int argc, char **argv)
{
    const char *what = NULL, *as = "msl";
    for (int i = 1; i < argc; i++) {
        if (cli_is_help(argv[i])) {
            (void)printf(
                "usage: spork emit FILE.py[:KERNEL] | FILE.ir[:KERNEL] [--as msl|ir]\n\n"
                "Prints a kernel as Metal source (msl, the default) or IR. From a Python file, which is run as a\n"
                "module (not as __main__), a kernel is the name of a function under @sk.jit, and need not be named\n"
                "if there is only one. What the file itself prints goes to stderr.\n");
            return EXIT_FINE;
        }
        if (strcmp(argv[i], "--as") == 0) {
            if (++i == argc)
                return cli_usage("emit", "--as wants msl or ir");
            as = argv[i];
        } else if (argv[i][0] == '-') {
            return cli_usage("emit", "no option '%s'", argv[i]);
        } else if (what) {
            return cli_usage("emit", "one kernel at a time, not '%s' and '%s'", what, argv[i]);
        } else {
            what = argv[i];
        }
    }
    if (!what)
        return cli_usage("emit", "which kernel?");
    const bool msl = strcmp(as, "msl") == 0;
    if (!msl && strcmp(as, "ir") != 0)
        return cli_usage("emit", "cannot print as '%s', only as msl or ir", as);

    const char *colon = strrchr(what, ':');
    const size_t n = colon ? (size_t)(colon - what) : strlen(what);
    if (n > 3 && memcmp(what + n - 3, ".py", 3) == 0)
        return emit_python(argv[-1], what, as);
    char *path = strdup(what);
    if (!path)
        return EXIT_FAILED;
    const char *kernel = NULL;
    if (colon) {
        path[n] = 0;
        kernel = colon + 1;
    }
    sk_error err = {0};
    sk_context *ctx = NULL;
    sk_module *m = NULL;
    const char *text = NULL;
    int code = EXIT_FINE;
    if (sk_context_create(NULL, &ctx, &err) != SK_OK)
        code = cli_error(&err);
    else
        code = cli_load(ctx, path, &m);
    if (code == EXIT_FINE) {
        const sk_status st =
            msl ? sk_module_metal(m, kernel, &text, NULL, NULL, &err) : sk_module_print(m, false, &text, &err);
        code = st == SK_OK ? EXIT_FINE : cli_error(&err);
    }
    if (code == EXIT_FINE)
        (void)fputs(text, stdout);
    sk_context_destroy(ctx);
    free(path);
    return code;
}

int cli_devices(int argc, char **argv)
{
    if (argc > 1 && cli_is_help(argv[1])) {
        (void)printf("usage: spork devices\n\n"
                     "Lists the devices that kernels can run on here, the default first, and why others are missing.\n"
                     "SPORK_DEVICE=NAME chooses another default.\n");
        return EXIT_FINE;
    }
    if (argc > 1)
        return cli_usage("devices", "no argument '%s'", argv[1]);
    sk_error err = {0};
    sk_context *ctx = NULL;
    sk_device *best = NULL;
    if (sk_context_create(NULL, &ctx, &err) != SK_OK)
        return cli_error(&err);
    int code = EXIT_FINE;
    if (sk_device_get(ctx, NULL, &best, &err) != SK_OK)
        code = cli_error(&err);
    for (size_t k = 0; k < sk_device_count(ctx); k++) {
        sk_device *d = sk_device_at(ctx, k);
        (void)printf("%c %-8s %s\n", d == best ? '*' : ' ', sk_device_name(d), sk_device_description(d));
    }
    for (size_t k = 0; sk_device_missing(ctx, k); k++)
        (void)printf("- %s\n", sk_device_missing(ctx, k));
    sk_context_destroy(ctx);
    return code;
}
