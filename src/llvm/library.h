/* library.h - the open library, for the files of this folder. */
#ifndef SK_LLVM_LIBRARY_H
#define SK_LLVM_LIBRARY_H

#include "llvm/llvm.h"

#define LLVM_OLDEST 16u
#define LLVM_PATH_CAP 1024u

typedef struct LLVMOpaqueContext llvm_context;
typedef struct LLVMOpaqueDiagnosticInfo llvm_diagnostic;
typedef struct LLVMOpaqueError llvm_error;
typedef struct LLVMOpaqueMemoryBuffer llvm_bytes;
typedef struct LLVMOpaqueModule llvm_module;
typedef struct LLVMOpaqueValue llvm_value;
typedef struct LLVMOpaqueAttributeRef llvm_attribute;
typedef struct LLVMTarget llvm_target;
typedef struct LLVMOpaqueTargetMachine llvm_machine;
typedef struct LLVMOpaqueTargetData llvm_layout;
typedef struct LLVMOpaquePassBuilderOptions llvm_pass_options;

struct llvm_api {
#define SYMBOL(result, name, ...) result (*name)(__VA_ARGS__);
#define TARGET_SYMBOL(name) void (*Initialize##name)(void);
#include "llvm/symbols.def"
#undef SYMBOL
#undef TARGET_SYMBOL
};

/* LLVM's numbers for what we ask of it. */
enum { LLVM_RELOC_PIC = 2, LLVM_MODEL_SMALL = 3 };
enum { LLVM_FILE_ASM = 0, LLVM_FILE_OBJECT = 1 };
enum { LLVM_VERIFY_RETURN = 2 };
enum { LLVM_SEVERITY_ERROR = 0 };
#define LLVM_OF_FUNCTION 0xffffffffu /* an attribute's index */

struct llvm {
    struct llvm_api api;
    llvm_target *target;
    unsigned major;
    char version[24];
    char path[LLVM_PATH_CAP];
    const char *triple, *cpu, *features, *layout; /* of the library: it stays, so do they */
};

/* find.c: the path, or an error. */
sk_status llvm_search(char *path, size_t cap, sk_error *err);
/* find.c: the version that the file's name tells, 0: none. */
unsigned llvm_named_version(const char *path);

/* open.c: brackets all that runs inside LLVM but its opening. A fork waits until nobody is inside, because the child would
 * find LLVM's locks held for ever; so does an exit, and then nobody gets in: false. Within, LLVM's fatal errors come to
 * compile.c's handler. */
bool llvm_enter(struct llvm *l);
void llvm_leave(struct llvm *l);
/* compile.c */
void llvm_on_fatal_error(const char *reason);

#endif
