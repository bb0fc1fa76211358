/* internal.h - what the files of the printer share and no dialect needs. */
#ifndef SK_CLIKE_INTERNAL_H
#define SK_CLIKE_INTERNAL_H

#include "clike/clike.h"

/* plan.c */
void clike_plan(struct clike *p);
uint32_t clike_yield(const struct clike *p, uint32_t region); /* its exit if that is a YIELD, else 0 */
unsigned clike_events(const struct clike *p, uint32_t id);
bool clike_prints(const struct clike *p, uint32_t id);       /* a statement at its own place */
uint32_t clike_variable(const struct clike *p, uint32_t id); /* the node that names its variable */
bool clike_mentions(const struct clike *p, uint32_t id,
                    uint32_t variable); /* in the expression printed for a use of id */
bool clike_same(const struct clike *p, uint32_t a, uint32_t b, unsigned depth); /* equal expressions, at one moment */
/* A loop of the form { pure nodes; if c { …; br loop } }: its `if`, else 0. */
uint32_t clike_loop_test(const struct clike *p, uint32_t loop);

/* names.c */
void names_init(struct clike *p);
uint32_t names_unique(struct clike *p, const char *want, unsigned level);
void names_release(struct clike *p, uint32_t held); /* the local names taken since there were so many */
void clike_name_module(struct clike *p);
void clike_name_function(struct clike *p);

/* stmt.c */
void clike_statement(struct clike *p, uint32_t id);
void clike_declare_value(struct clike *p, uint32_t id); /* "float name", for node id's variable */
void clike_copies(struct clike *p, uint32_t place, unsigned n, const uint32_t *to, const uint32_t *from);
/* The targets of an exit's values: variables in `to`; returns how many assignments are needed. */
unsigned clike_exit_copies(const struct clike *p, uint32_t exit, uint32_t *to, uint32_t *from);

/* flow.c */
void clike_body(struct clike *p);

#endif
