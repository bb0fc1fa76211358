/* cli.h - the `spork` command: what its parts share. */
#ifndef SK_CLI_H
#define SK_CLI_H

#include <stdio.h>

#include "base/base.h"

/* Exit codes; `spork --help` lists them. */
enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Subcommands get their own arguments (argv[0] is the subcommand's name, argv[-1] the program's) and return an exit code. */
int cli_ir(int argc, char **argv);
int cli_emit(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_devices(int argc, char **argv);
int cli_cache(int argc, char **argv);

/* "file:line:column: error: message" on stderr, the parts that are known; returns EXIT_FAILED. */
int cli_error(const sk_error *err);
/* "spork SUBCOMMAND: message; see spork SUBCOMMAND --help"; returns EXIT_USAGE. */
int cli_usage(const char *command, const char *fmt, ...) SK_PRINTF(2, 3);
bool cli_is_help(const char *arg);

/* A whole file; fails with ERR_IO. The text is zero-terminated; free it with free(). */
sk_status cli_read_file(const char *path, char **text, size_t *size, sk_error *err);
/* Parses FILE into a module. Returns an exit code; prints the error. */
int cli_load(sk_context *ctx, const char *path, sk_module **out);

/* npy.c: NumPy's .npy format, versions 1 to 3, C order, little-endian. */
struct npy {
    sk_type type; /* element */
    size_t size;  /* bytes of one element */
    size_t count;
    unsigned n_dims;
    size_t shape[8];
    void *data; /* malloc'ed */
};
sk_status npy_read(const char *path, struct npy *out, sk_error *err);
sk_status npy_write(const char *path, const struct npy *a, sk_error *err);

/* value.c: numbers of the scalar types as text. */
size_t value_size(sk_type scalar);
const char *value_name(sk_type scalar); /* "f32" */
bool value_type(const char *name, size_t n, sk_type *out);
/* Reads one number of the type from text[0..n); false if it is none or does not fit. */
bool value_read(const char *text, size_t n, sk_type scalar, void *out);
void value_print(FILE *f, sk_type scalar, const void *value);

#endif
