/* L6 operator. All scripts of a host: takes the sets of files that its sources tell, loads what is
 * new aside, offers what is good to its controller, refuses what is not. Nothing that runs is
 * ever stopped by something that is missing or broken. */
#pragma once

#include "operator/crash_marker.h"
#include "operator/source.h"

struct ml_scripts;

/* `limits` is copied. */
struct ml_scripts *ml_scripts_new(struct ml_cluster *cluster,
                                  const struct ml_script_limits *limits);
void ml_scripts_free(struct ml_scripts *scripts); /* cancels what is under way; NULL is fine */

/* Before the first source: versions that the marker (borrowed) has in quarantine are refused, and
 * those that are loaded are told to it. */
void ml_scripts_mark(struct ml_scripts *scripts, struct ml_crash_marker *marker);

/* Takes the source over. */
void ml_scripts_add_source(struct ml_scripts *scripts, struct ml_source *source);
void ml_scripts_start(struct ml_scripts *scripts);

/* The cluster stands by no longer: what is loaded begins to work. */
void ml_scripts_resync(struct ml_scripts *scripts);

/* As ml_controller_reshard and ml_controller_hand_over, for all of them. */
void ml_scripts_reshard(struct ml_scripts *scripts);
bool ml_scripts_hand_over(struct ml_scripts *scripts, bool cut);

/* Lets what is under way end; `done` comes later, once. */
void ml_scripts_stop(struct ml_scripts *scripts, void (*done)(void *context), void *context);

/* True when every source has been read and each of its scripts works. Otherwise appends a line
 * of what is missing to `why`. */
bool ml_scripts_ready(const struct ml_scripts *scripts, struct ml_buf *why);

/* When one of them works next by itself, as ml_workqueue_next; 0 also before the sources have been
 * read. */
int64_t ml_scripts_next(const struct ml_scripts *scripts);
