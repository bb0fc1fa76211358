/* object.h - loads relocatable ELF objects (x86-64, AArch64) that LLVM emitted for us, or that the cache kept.
 *
 * Only what such objects hold is understood: sections of code and constants, the relocations listed in object.c, and the
 * external functions listed there (memcpy, memset, memmove and helpers of the compiler). Anything else, and anything
 * out of bounds in a damaged file, is refused with an error. Code is never writable and executable at once.
 */
#ifndef SK_CPU_OBJECT_H
#define SK_CPU_OBJECT_H

#include "base/base.h"

struct object_code {
    void *memory; /* mapped pages */
    size_t size;
};

/* Loads `n` bytes at `bytes` and finds the functions `names` (n_names of them) into `address`; one that is missing gives null.
 * SK_ERR_INVALID: not such an object. SK_ERR_MEMORY: no pages. SK_ERR_DEVICE: the system lets no program make code. */
sk_status object_load(const void *bytes, size_t n, const char *const *names, size_t n_names, void **address,
                      struct object_code *out, sk_error *err);
void object_unload(struct object_code *code); /* zeros and what is unloaded already are allowed */

/* By ELF's numbers. For tests: an object of any machine, of which the memory can be looked at but not run elsewhere. */
enum object_machine { OBJECT_NONE = 0, OBJECT_X86_64 = 62, OBJECT_AARCH64 = 183 };
sk_status object_load_for(enum object_machine machine, const void *bytes, size_t n, const char *const *names,
                          size_t n_names, void **address, struct object_code *out, sk_error *err);

#endif
