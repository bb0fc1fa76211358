/* dlpack.h - the layout of DLPack's structs, which array libraries share. */
#ifndef SK_PY_DLPACK_H
#define SK_PY_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA_HOST = 3, DL_ROCM_HOST = 11, DL_CUDA_MANAGED = 13 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };
enum { DL_READ_ONLY = 1 };

struct dl_device {
    int32_t type, id;
};
struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
};
struct dl_tensor {
    void *data;
    struct dl_device device;
    int32_t ndim;
    struct dl_type type;
    int64_t *shape, *strides; /* strides in elements; null: C order */
    uint64_t byte_offset;
};
struct dl_managed { /* capsule "dltensor" */
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
};
struct dl_managed_versioned { /* capsule "dltensor_versioned" */
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_managed_versioned *);
    uint64_t flags;
    struct dl_tensor tensor;
};

#endif
