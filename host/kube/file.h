/* L3 kube. Reads a small configuration file whole: kubeconfig, certificates, tokens. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends the contents to `out`. ML_ENOT_FOUND: no such file. ML_EIO: cannot be read, or is
 * neither a regular file nor a pipe. ML_ELIMIT: larger than out->len_max. The message starts
 * with the path. */
ML_NODISCARD int ml_file_read(const char *path, struct ml_buf *out, struct ml_err *err);

/* The same for a file that was read before and may be another now: never waits for a writer, so
 * that a pipe, whose contents are gone, is ML_EIO. */
ML_NODISCARD int ml_file_read_again(const char *path, struct ml_buf *out, struct ml_err *err);
