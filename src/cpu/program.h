/* program.h - a kernel for the CPU, compiled for the shapes that it is launched with, when it is.
 *
 * Threads: every function but cpu_program_free may be called by several at once. A launch of a shape that is there
 * takes no lock.
 */
#ifndef SK_CPU_PROGRAM_H
#define SK_CPU_PROGRAM_H

#include "cpu/launch.h"

struct cpu_program;

/* Keeps a copy of the module (calls inlined, passes run). Compiles nothing. */
sk_status cpu_program_new(struct mem *mem, const struct ir_module *m, uint32_t func, struct cpu_program **out);
void cpu_program_free(struct cpu_program *p); /* null allowed */

const struct ir_module *cpu_program_module(const struct cpu_program *p, uint32_t *func);
uint32_t cpu_program_threadgroup_bytes(const struct cpu_program *p);

/* Compiles, if that is to be done, and runs. Where the interpreter must do it, *interpret says why, nothing has been
 * run and the status is SK_OK; else it is null. `mem`: working storage of the call. */
sk_status cpu_program_launch(struct cpu_program *p, const sk_launch *l, struct mem *mem, const char **interpret,
                             sk_error *err);
/* Compiles for full threadgroups of that size. */
sk_status cpu_program_prepare(struct cpu_program *p, sk_size group, const char **interpret, sk_error *err);
/* Would this launch be over in some microseconds? False where nothing is known: not compiled yet, loops of any
 * length. */
bool cpu_program_is_short(const struct cpu_program *p, const sk_launch *l);
/* Null, or why the interpreter ran it, of the shape that was compiled last. Lives as long as the program. */
const char *cpu_program_note(const struct cpu_program *p);

enum cpu_text { CPU_TEXT_LLVM, CPU_TEXT_OPTIMISED, CPU_TEXT_ASM, CPU_TEXT_TIMES };
/* For readers: the code of full threadgroups of that size. Opens LLVM but for CPU_TEXT_LLVM. */
sk_status cpu_program_text(struct cpu_program *p, sk_size group, bool unchecked, enum cpu_text kind, struct buf *out,
                           sk_error *err);

/* What LLVM, machine and pool are, in one line. Opens LLVM. */
sk_status cpu_describe(struct mem *mem, struct buf *out, sk_error *err);
/* A kernel whose source these bytes stand for will be compiled. If it was not seen on this machine before, LLVM is
 * opened in the background. */
void cpu_expect(struct mem *mem, const void *bytes, size_t n);

#endif
