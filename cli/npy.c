/* npy.c - NumPy's .npy files (NEP 1 describes the format). */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>

/* descr of the header for each scalar. bf16 has no code of NumPy's own: ml_dtypes writes '<V2', read here as bf16. */
static const struct {
    const char *descr;
    sk_type type;
} descrs[] = {
    {"|b1", SK_BOOL}, {"|i1", SK_I8},  {"|u1", SK_U8},  {"<i2", SK_I16}, {"<u2", SK_U16},  {"<i4", SK_I32},
    {"<u4", SK_U32},  {"<i8", SK_I64}, {"<u8", SK_U64}, {"<f2", SK_F16}, {"<V2", SK_BF16}, {"<f4", SK_F32},
};
#define N_DESCRS (sizeof descrs / sizeof *descrs)

static const char *after_key(const char *header, const char *key)
{
    const char *p = strstr(header, key);
    if (!p)
        return NULL;
    p += strlen(key);
    while (*p == ' ' || *p == ':')
        p++;
    return p;
}

static bool parse_header(const char *header, struct npy *a, char *descr, size_t cap, bool *fortran)
{
    const char *p = after_key(header, "'descr'");
    if (!p || *p != '\'')
        return false;
    size_t n = 0;
    for (p++; *p && *p != '\'' && n + 1 < cap; p++)
        descr[n++] = *p;
    descr[n] = 0;

    p = after_key(header, "'fortran_order'");
    if (!p)
        return false;
    *fortran = *p == 'T';

    p = after_key(header, "'shape'");
    if (!p || *p != '(')
        return false;
    a->count = 1;
    for (p++; *p && *p != ')';) {
        char *end = NULL;
        errno = 0;
        const unsigned long long d = strtoull(p, &end, 10);
        if (end == p || errno || a->n_dims == 8 || (d && a->count > SIZE_MAX / 16 / d))
            return false;
        a->shape[a->n_dims++] = (size_t)d;
        a->count *= (size_t)d;
        for (p = end; *p == ',' || *p == ' ';)
            p++;
    }
    return *p == ')';
}

sk_status npy_read(const char *path, struct npy *out, sk_error *err)
{
    const struct err_place at = {path, 0, 0};
    char *file = NULL;
    size_t size = 0;
    TRY(cli_read_file(path, &file, &size, err));

    struct npy a = {0};
    char descr[64] = "";
    bool fortran = false;
    sk_status st = SK_OK;
    const unsigned char *u = (const unsigned char *)file;
    size_t head = 0, start = 0;
    if (size >= 12 && memcmp(file, "\x93NUMPY", 6) == 0) {
        start = u[6] == 1 ? 10 : 12;
        head = u[6] == 1 ? (size_t)(u[8] | u[9] << 8)
                         : (size_t)u[8] | (size_t)u[9] << 8 | (size_t)u[10] << 16 | (size_t)u[11] << 24;
    }
    if (!start || head > size - start) {
        st = ERR_AT(err, at, NOT_NPY);
        goto out;
    }
    const char first_of_data = file[start + head];
    file[start + head] = 0;
    if (!parse_header(file + start, &a, descr, sizeof descr, &fortran))
        st = ERR_AT(err, at, NOT_NPY);
    else if (fortran && a.n_dims > 1)
        st = ERR_AT(err, at, NPY_FORTRAN);
    file[start + head] = first_of_data;
    if (st != SK_OK)
        goto out;

    size_t k = 0;
    while (k < N_DESCRS && strcmp(descrs[k].descr, descr) != 0)
        k++;
    if (k == N_DESCRS) {
        st = ERR_AT(err, at, NPY_DTYPE, descr);
        goto out;
    }
    a.type = descrs[k].type;
    a.size = value_size(a.type);
    if (size - start - head != a.count * a.size) {
        st = ERR_AT(err, at, NPY_SIZE, size - start - head, a.count * a.size);
        goto out;
    }
    a.data = malloc(a.count * a.size + 1);
    if (!a.data) {
        st = ERR(err, OUT_OF_MEMORY);
        goto out;
    }
    memcpy(a.data, file + start + head, a.count * a.size);
    *out = a;
out:
    free(file);
    return st;
}

sk_status npy_write(const char *path, const struct npy *a, sk_error *err)
{
    const struct err_place at = {path, 0, 0};
    char shape[256] = "", header[512];
    int used = 0;
    for (unsigned d = 0; d < a->n_dims; d++)
        used += snprintf(shape + used, sizeof shape - (size_t)used, "%zu,", a->shape[d]);
    const char *descr = "";
    for (size_t k = 0; k < N_DESCRS; k++)
        if (descrs[k].type == a->type)
            descr = descrs[k].descr;
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    while ((10 + n + 1) % 64)
        header[n++] = ' ';
    header[n++] = '\n';

    FILE *f = fopen(path, "wb");
    if (!f)
        return ERR_AT(err, at, CANNOT_WRITE, strerror(errno));
    const unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, (unsigned char)(n >> 8)};
    const size_t bytes = a->count * a->size;
    bool fine = fwrite(magic, 1, sizeof magic, f) == sizeof magic && fwrite(header, 1, (size_t)n, f) == (size_t)n &&
                fwrite(a->data, 1, bytes, f) == bytes;
    fine = fclose(f) == 0 && fine;
    return fine ? SK_OK : ERR_AT(err, at, CANNOT_WRITE, strerror(errno));
}
