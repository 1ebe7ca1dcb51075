/* L5 script. Names that do not exist, in the texts of scripts: functions of ctx, of the library and
 * of Lua, fields of options, results, manifests and kinds, kinds and metrics that are not declared.
 * lua/analysis finds them. It reads the texts and never runs them, in a Lua state of its own, which
 * no script can reach, with a limit of memory and of instructions; and in pieces, between which the
 * caller can do other work. */
#pragma once

#include "kube/kind.h"
#include "script/script.h"

struct ml_analysis;

/* Copies the texts of the files, which belong to one controller: its own file and those that it
 * requires. `memory_max`: 0 is the default of scripts, 16 MiB. */
struct ml_analysis *ml_analysis_new(const struct ml_script_files *files, size_t memory_max);
void ml_analysis_free(struct ml_analysis *analysis); /* NULL is fine */

enum ml_analysis_state {
    ML_ANALYSIS_READS,       /* ml_analysis_step goes on */
    ML_ANALYSIS_WANTS_KINDS, /* the kinds that the texts name are known, and are wanted */
    ML_ANALYSIS_DONE,        /* the problems are known */
    ML_ANALYSIS_GAVE_UP,     /* a text is too large; ml_analysis_why says more */
};

/* Works for some milliseconds. After ML_ANALYSIS_WANTS_KINDS the next step is the check. */
enum ml_analysis_state ml_analysis_step(struct ml_analysis *analysis);
enum ml_analysis_state ml_analysis_state(const struct ml_analysis *analysis);

/* The kinds that the texts name, in the state ML_ANALYSIS_WANTS_KINDS. */
size_t ml_analysis_kind_count(const struct ml_analysis *analysis);
/* Valid as long as the analysis. */
struct ml_gvk ml_analysis_kind(const struct ml_analysis *analysis, size_t index);

/* The schema of a kind, as ml_openapi_schema writes it. If there is none, its fields are not
 * checked.
 */
void ml_analysis_give_schema(struct ml_analysis *analysis, size_t index, struct ml_str schema);
/* Says that a kind exists. Once a kind of a group is given, all other kinds of that group have to
 * be given as well; the kinds of other groups are not checked. */
void ml_analysis_give_kind(struct ml_analysis *analysis, const struct ml_gvk *gvk);

/* The problems, in the order of files and lines. The strings live as long as the analysis. */
struct ml_analysis_problem {
    char *file;
    char *text; /* "cnat.lua:12: ctx has no 'evnt'; did you mean 'event'?" */
};
size_t ml_analysis_problem_count(const struct ml_analysis *analysis);
const struct ml_analysis_problem *ml_analysis_problem(const struct ml_analysis *analysis,
                                                      size_t index);
/* Why it gave up; kind 0: it did not. */
const struct ml_err *ml_analysis_why(const struct ml_analysis *analysis);
