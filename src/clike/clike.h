/* clike.h - source text in a C-like language from IR. One printer; a language is a `struct clike_dialect`.
 *
 * A function is printed in four steps, each a file:
 *   plan.c   numbers the nodes and decides where each value is printed: at its use, or as a variable of its own;
 *   range.c  bounds integers, and uniform.c finds what differs between lanes, so that guards stand only where needed;
 *   names.c  gives the variables names that clash with nothing;
 *   flow.c, stmt.c, expr.c, pointer.c print. helper.c holds the functions that printed code calls.
 * Rules:
 *  1. The printed text means what the IR means: a value is evaluated later than it stands only if nothing between can
 *     change it, and never on more or fewer paths if it has an effect or is convergent.
 *  2. The C type of a printed expression is its IR type, small integers included (they are cast back), with one
 *     exception: a literal may be an int where the other operand or the target fixes the type.
 *  3. Nothing here names a language; what differs is in the dialect.
 */
#ifndef SK_CLIKE_H
#define SK_CLIKE_H

#include "ir/ir.h"

struct clike;

enum prec {
    PREC_LOWEST,
    PREC_ASSIGN,
    PREC_CHOICE,
    PREC_LOGICAL_OR,
    PREC_LOGICAL_AND,
    PREC_OR,
    PREC_XOR,
    PREC_AND,
    PREC_EQUAL,
    PREC_LESS,
    PREC_SHIFT,
    PREC_ADD,
    PREC_MUL,
    PREC_UNARY,
    PREC_POSTFIX
};

struct clike_dialect {
    const char *name;     /* in messages: "Metal" */
    const char *prologue; /* the first lines */
    const char *function; /* before a function's type: "static " */
    const char *helper;   /* the same for helper functions */
    const char *scalar[S_COUNT];
    const char *space[SPACE_COUNT];                            /* "device" …; "" where the language has no word */
    const char *f16_open, *f16_close, *bf16_open, *bf16_close; /* around the digits of a literal */
    const char *const *words;                                  /* that no name may be, null-terminated */
    const char *const *library; /* functions of the language's library: no name of a function or struct */
    const char *precise;        /* before a function of the library that fast maths must not change */
    const char *bits_of_f32;    /* a function from float to its bits: "as_type<uint>" */

    /* More lines of the prologue, for what the printed functions hold. */
    void (*prologue_more)(struct clike *p);
    /* The head of a kernel, from its first word to the brace. */
    void (*kernel_head)(struct clike *p);
    /* A kernel parameter filled by the launch; `part` -1: all of it. */
    void (*attribute)(struct clike *p, uint32_t param, int part, enum prec prec);
    /* A row of math.def that is not an operator; the operands are the node's. */
    void (*math)(struct clike *p, uint32_t id, enum prec prec);
    void (*bitcast)(struct clike *p, uint32_t id, enum prec prec);
    void (*collective)(struct clike *p, uint32_t id, enum prec prec);
    /* An atomic as an expression; the fences of a stronger order are statements around it, see `fence`. */
    void (*atomic)(struct clike *p, uint32_t id, enum prec prec);
    /* BARRIER, SIMDGROUP_BARRIER, FENCE, PRINT: whole statements. */
    void (*statement)(struct clike *p, uint32_t id);
    void (*fence)(struct clike *p, uint32_t id, bool before); /* around an atomic that is not relaxed */
    const char *(*atomic_type)(struct clike *p, ir_type t);   /* the language's atomic type, null: none */
};

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

struct range { /* of an integer, or of every component of a vector */
    int64_t lo, hi;
    bool wide; /* u64 past INT64_MAX */
};

enum clike_mode {
    MODE_DEAD,     /* not printed */
    MODE_INLINE,   /* printed where it is used */
    MODE_NAMED,    /* a variable */
    MODE_STATEMENT /* a statement without a variable */
};

enum clike_form {
    FORM_PLAIN,
    FORM_CHOICE, /* an if that is printed as ?: at its RESULT */
    FORM_WHILE,  /* a loop; FORM_PLAIN: while (true) */
    FORM_FOR,    /* a loop; a parameter that its head steps */
    FORM_PART    /* a set that assigns one part of its local */
};

struct pointee { /* what C takes a pointer to point at */
    ir_type type;
    bool atomic;
};

struct cvalue {
    uint32_t uses;     /* how often it is printed */
    uint32_t raw;      /* operands that name it; of a loop, the br to it */
    uint32_t pos;      /* in program order */
    uint32_t root;     /* the node at whose place it is evaluated */
    uint32_t weight;   /* nodes printed in its expression */
    uint32_t name;     /* of a variable: index into clike.names */
    uint32_t alias;    /* RESULT: the ARG whose variable it is */
    uint32_t next_set; /* VAR, while planning: position of the nearest SET ahead */
    uint32_t induct;   /* loop, FORM_FOR: the parameter that its test counts */
    struct range range;
    struct pointee pointee; /* of a variable that is a pointer */
    bool points_const;
    uint8_t mode, form;
    uint8_t events; /* EVENT_BIT(EVENT_*) */
    bool varies;    /* see uniform.c */
    bool in_head;   /* a parameter that the head of its for statement declares */
    bool lazy;      /* evaluated on some paths of its statement only */
    bool arm;       /* printed inside a ?: that stands for an if */
    bool boxed;     /* a construct in do { } while (false), so that break leaves it */
};

/* ---- names ---------------------------------------------------------------------------------------------------------- */

struct held_name {
    uint32_t id;
    uint8_t before;
};
struct name_table {
    struct strtab text;
    VEC(uint8_t) taken;          /* by id of `text` */
    VEC(uint32_t) suffix;        /* by id: the last number tried */
    VEC(struct held_name) local; /* taken by the current function */
    bool closed;                 /* all variables are named: names that follow must be new to the whole function */
};
enum { NAME_FREE, NAME_RESERVED, NAME_LIBRARY, NAME_GLOBAL, NAME_KERNEL, NAME_LOCAL, NAME_SPENT };

/* ---- helper functions ------------------------------------------------------------------------------------------------ */

struct helper;
typedef void helper_writer(struct clike *p, const struct helper *h);
struct helper {
    helper_writer *write;
    const char *name;
    ir_type type;
    uint64_t extra;
};

/* ---- the printer ------------------------------------------------------------------------------------------------------- */

typedef uint64_t cont; /* where control goes on: CONT_* | node */
#define CONT_NONE ((cont)0)
#define CONT_RETURN ((cont)1 << 32)
#define CONT_AT ((cont)2 << 32)    /* just after the construct */
#define CONT_VALUE ((cont)4 << 32) /* return with a value */
#define CONT_HEAD ((cont)3 << 32)  /* the loop's next turn */

enum clike_entry_kind { ENTRY_LOOP, ENTRY_SWITCH, ENTRY_DO };
struct clike_entry {            /* a statement that `break` leaves */
    cont on_break, on_continue; /* CONT_NONE: continue does not apply, or means something else (do) */
    size_t text_at;             /* where its text begins */
    uint32_t line_at;
    uint8_t kind;
    bool left; /* by a break */
};
struct clike_flag {       /* says, after a break, that control goes further */
    uint32_t name, entry; /* entry: index of the one it is pending on */
    cont to;
};

struct clike {
    const struct ir_module *m;
    const struct clike_dialect *d;
    struct mem *mem; /* working memory */
    sk_error *err;
    sk_status status; /* the first refusal; printing goes on, its text is dropped */

    /* the module */
    uint8_t *access;       /* by index into module.params */
    uint32_t *func_name;   /* by function */
    uint32_t *type_names;  /* by type: structs */
    uint32_t *field_names; /* by index into module.fields */
    uint8_t *func_effects; /* by function: EVENT_* */
    VEC(uint32_t) funcs;   /* in printing order */
    uint8_t *type_used;
    bool array_values; /* arrays are values somewhere: print array<T, n> throughout */
    bool uses_logging, no_contract;
    struct name_table names;
    VEC(struct helper) helpers;

    /* the function */
    uint32_t func;
    struct cvalue *v; /* by node */
    VEC(uint32_t) order;
    uint32_t next_event[8];
    bool uniform_known;
    uint32_t counter; /* of generated names */

    /* text */
    struct buf *b, text;
    VEC(uint32_t) places; /* of each line of `text` */
    unsigned indent;
    bool declared; /* a declaration was printed since it was last cleared */
    VEC(struct clike_entry) entries;
    VEC(struct clike_flag) flags;
    bool again; /* a construct had to be boxed */
};

/* What may happen at a node, for the question "has anything between changed it". */
enum {
    EVENT_DEVICE, /* device memory may change */
    EVENT_THREADGROUP,
    EVENT_THREAD,
    EVENT_ORDER, /* any effect that keeps its place */
    EVENT_READ,
    EVENT_CONSTRUCT,
    EVENT_CONVERGENT,
    EVENT_COUNT
};
#define EVENT_BIT(e) (1u << (e))

#define CLIKE_FAIL(p, id, ROW, ...)                                                                                    \
    clike_fail((p), ERR_AT((p)->status ? NULL : (p)->err, clike_place((p), (id)), ROW, __VA_ARGS__))
void clike_fail(struct clike *p, sk_status status);
struct err_place clike_place(const struct clike *p, uint32_t id);

/* print.c: kernel `func` (0: all) and what it calls. `lines` (null allowed) receives the place of each line. */
struct clike_lines {
    VEC(uint32_t) place;
};
sk_status clike_print(const struct ir_module *m, const struct clike_dialect *d, uint32_t func, struct buf *out,
                      struct clike_lines *lines, sk_error *err);
/* The name that kernel `func` has in the printed text of a whole module or of itself alone. */
void clike_kernel_name(const struct ir_module *m, const struct clike_dialect *d, uint32_t func, struct buf *out);

/* uniform.c: the same in all lanes that are active there; false if that is not known. */
bool clike_uniform(struct clike *p, uint32_t id);

/* range.c */
void clike_ranges(struct clike *p);
struct range clike_range(const struct clike *p, uint32_t id);
struct range clike_type_range(ir_type t);
bool clike_within(struct range r, int64_t lo, int64_t hi);
bool clike_wraps(const struct clike *p, uint32_t id); /* a signed 32 or 64-bit operation that may overflow */

const char *clike_name(const struct clike *p, uint32_t id); /* names.c: of a variable or parameter */
const char *names_text(const struct clike *p, uint32_t name);

/* print.c, text */
void clike_begin(struct clike *p);               /* indentation */
void clike_end(struct clike *p, uint32_t place); /* end of the line */
void clike_line(struct clike *p, uint32_t place, const char *text);

/* literal.c */
enum { LITERAL_TYPED = 0, LITERAL_PLAIN = 1 /* the surroundings fix the type */ };
void clike_literal(struct clike *p, enum scalar s, uint64_t bits, unsigned how, enum prec prec);
void clike_zero(struct clike *p, ir_type t);                      /* the value of no bits, not of a pointer */
void clike_number(struct clike *p, uint64_t x);                   /* its digits */
void clike_part(struct clike *p, ir_type whole, uint64_t part);   /* ".x", ".field" or "[1]" */
void clike_type(struct clike *p, ir_type t);                      /* a value's type */
void clike_declare(struct clike *p, ir_type t, const char *name); /* "float name", "float name[4]" */
const char *clike_scalar(const struct clike *p, enum scalar s);

/* expr.c */
void clike_expr(struct clike *p, uint32_t id, enum prec prec);
void clike_operand(struct clike *p, uint32_t id, enum prec prec, unsigned how);
void clike_definition(struct clike *p, uint32_t id, enum prec prec); /* even if it is a variable */
void clike_call(struct clike *p, const char *function, uint32_t id); /* function(operands) */
/* A value that is `left op right` and nothing around it, for left op= right; the second prints " op= right". */
bool clike_compound(const struct clike *p, uint32_t value, const char **op, uint32_t *left, uint32_t *right);
void clike_compound_right(struct clike *p, uint32_t value, const char *op);
void clike_condition(struct clike *p, uint32_t id, bool negate);
bool clike_open(struct clike *p, enum prec mine, enum prec outer);

/* pointer.c */
struct pointee clike_pointee(const struct clike *p, uint32_t id); /* what the printed pointer points at */
bool clike_const(const struct clike *p, uint32_t id);
void clike_settle_pointer(struct clike *p, uint32_t id);          /* in program order, after the plan */
void clike_address(struct clike *p, uint32_t id, enum prec prec); /* of INDEX, FIELD, ALLOC */
void clike_lvalue(struct clike *p, uint32_t pointer, ir_type t, enum prec prec);
bool clike_arrow(struct clike *p, uint32_t pointer, ir_type t); /* prints "p->" if it can */
void clike_pointer(struct clike *p, uint32_t id, struct pointee want, bool want_const, enum prec prec);
void clike_pointer_declare(struct clike *p, enum space space, struct pointee t, bool is_const, const char *name);
void clike_pointer_cast(struct clike *p, enum space space, struct pointee t, bool is_const);
void clike_param_declare(struct clike *p, uint32_t param, const char *name);

/* helper.c: each returns the name to call. */
const char *clike_helper(struct clike *p, helper_writer *write, const char *name, ir_type type, uint64_t extra);
const char *helper_arith(struct clike *p, enum op op, ir_type t);
const char *helper_to_int(struct clike *p, enum scalar to, ir_type from);
const char *helper_part(struct clike *p, enum op op, ir_type whole);
void helper_elementwise(struct clike *p, const struct helper *h, ir_type result, unsigned n);

#endif
