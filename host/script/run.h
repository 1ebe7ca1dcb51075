/* L5 script, private. The operations that a run waits for (run.c, finalizer.c), and what may be
 * said of Secrets that it writes (secret.c). Each function of run.c starts the one operation that
 * the run then waits for; none raises. */
#pragma once

#include "script/internal.h"

void run_read(struct ml_run *run, const struct ml_client_request *request);
/* `wait_for_cache`: the run continues when the informer of `write`, if any, shows the write. */
void run_write(struct ml_run *run, const struct ml_write *write, bool wait_for_cache);
/* Ends the run with run->err, which the script has not raised. */
void run_fail(struct ml_run *run, enum ml_limit_hit limit);
/* The operation that it waited for has ended well, without an answer. */
void run_continue(struct ml_run *run);
/* `budget` and `may_send` are the run's. */
void run_http(struct ml_run *run, const struct ml_outbound_request *request, bool writes);
/* Waits until `informer` shows all that the run wrote of its kind. It must not show it yet. */
void run_wait_for_cache(struct ml_run *run, const struct ml_informer *informer);
/* Waits until no object is pending in the script's indexes. */
void run_wait_for_index(struct ml_run *run);

/* ---- finalizer.c ----
 *
 * An object has to carry the finalizer before anything is written for it. */

/* Must it be added first? */
bool run_lacks_finalizer(struct ml_run *run);
/* Bytes that the write takes meanwhile: the caller charges the script for them. */
size_t run_held_bytes(const struct ml_write *write);
/* Adds it; the run then continues. For what is written elsewhere than to the API server. */
void run_add_finalizer(struct ml_run *run);
/* As run_write, after the finalizer was added. */
void run_write_later(struct ml_run *run, const struct ml_write *write, bool wait_for_cache);

/* ---- secret.c ---- */

bool ctx_is_secret(const struct ml_gvk *gvk);
/* Appends the Secret with its stringData encoded into its data, as the API server keeps it: what an
 * apply sets there it can remove again. False, with nothing appended: there is nothing to encode,
 * or the server has to refuse it. */
bool secret_encode_strings(struct ml_str secret, struct ml_buf *out);
/* Replaces the message of `err`, which a write of this Secret (JSON) came to, if it has a part of
 * a value: six bytes of it, or all of a shorter one, in base64 or as it is. */
void secret_redact(struct ml_str secret, struct ml_err *err);
