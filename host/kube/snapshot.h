/* L3 kube. A snapshot: the answers of an API server to the reads of one command, kept in a file,
 * and a transport that gives them again where there is no server. So a plan can be made of it on
 * another machine.
 *
 * Lists are kept whole, whatever their pages were. The values of Secrets are replaced, before they
 * are kept, by texts that are equal where the values are, and say nothing of them; metadata loses
 * managedFields, and that of Secrets the annotation with the last applied configuration.
 *
 * The file has one JSON document on each line: {"kind":"Snapshot",…}, then
 * {"get":PATH,"status":200, "answer":…} or {"list":PATH,"answer":…} with its objects as {"item":…}
 * behind it, and at last
 * {"end":LINES}. */
#pragma once

#include "base/random.h"
#include "kube/transport.h"
#include "net/loop.h"

#define ML_SNAPSHOT_ANSWER_MAX ((size_t)64 * 1024 * 1024)   /* bytes of one answer, or line */
#define ML_SNAPSHOT_BYTES_MAX  ((size_t)1024 * 1024 * 1024) /* of all */

struct ml_snapshot;

/* An empty one, of the objects of a namespace (copied; NULL: of all). `random` is borrowed until
 * the call returns. ML_EIO: no secret can be drawn. */
ML_NODISCARD int ml_snapshot_new(struct ml_random *random, const char *ns, struct ml_snapshot **out,
                                 struct ml_err *err);
const char *ml_snapshot_namespace(const struct ml_snapshot *snapshot); /* NULL: all */
void ml_snapshot_free(struct ml_snapshot *snapshot);                   /* NULL is fine */

/* Passes all requests on to `server`, and keeps the answers to reads with status 200 or 404; those
 * of watches are not kept. Both are borrowed; end it by its own free(). */
struct ml_transport *ml_snapshot_recorder_new(struct ml_snapshot *snapshot,
                                              struct ml_transport *server);

/* Writes the whole file or none of it; only its owner can read it. ML_ELIMIT: an answer was too
 * large to be kept. */
ML_NODISCARD int ml_snapshot_write(const struct ml_snapshot *snapshot, const char *path,
                                   struct ml_err *err);

/* ML_EIO: it cannot be read. ML_EINVALID: it is no snapshot, or not whole; `err` names the line.
 * ML_ELIMIT: it is too large. */
ML_NODISCARD int ml_snapshot_read(const char *path, struct ml_snapshot **out, struct ml_err *err);

/* Answers from the snapshot, which is borrowed. A watch brings nothing, ever. A request whose
 * answer is not kept ends with ML_EINVALID. */
struct ml_transport *ml_snapshot_transport_new(struct ml_snapshot *snapshot, struct ml_loop *loop);
