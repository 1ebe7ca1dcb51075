/* Private to the generator: what its files share. */
#pragma once

#include "lua_program.h"

#define DEPTH_MAX     7
#define PICK(c, list) (list)[choose((c), ML_COUNT(list))]

struct program {
    struct choices *choices;
    struct ml_buf *out;
    int nodes;  /* left */
    int depth;  /* of the expression */
    int inner;  /* statements around this one */
    int labels; /* so far */
};

static inline bool is_deep(const struct program *p)
{
    return p->nodes <= 0 || p->depth >= DEPTH_MAX;
}

static inline void put(struct program *p, const char *text)
{
    ml_buf_puts(p->out, text);
}

/* lua_values.c */
void write_number(struct program *p);
void write_string(struct program *p);
void write_pattern(struct program *p);
void write_format(struct program *p);
void write_metatable(struct program *p);
void write_key(struct program *p);
void write_table(struct program *p);
void write_manifest(struct program *p);
void write_options(struct program *p); /* of ctx.list */
void write_date(struct program *p);

/* lua_calls.c */
void write_expression(struct program *p);
void write_function(struct program *p);
void write_call(struct program *p); /* of a function of the script API */
/* Arguments as a signature asks for them, now and then anything else: s string, i and n number,
 * t table, f function, c comparison, p pattern, r replacement, F format, k kind, o object, q
 * options of ctx.list, d date, T controller, w when, e selection, m metatable, others any value.
 * Behind '?' they may be left out. */
void write_arguments(struct program *p, const char *types);

/* lua_program.c */
void write_block(struct program *p);
