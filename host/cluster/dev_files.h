/* L6 operator. The files of `moonloop dev`: a folder of its own for logs and pods, and the kubeconfig.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define ML_DEV_TOKEN_LEN 40

struct ml_dev_files {
    char *folder;     /* mode 0700, in $TMPDIR or /tmp */
    int lock;         /* of the folder: who can take it knows that the maker has ended */
    char *kubeconfig; /* the file that was written, NULL: none yet */
};

/* Makes the folder, and removes those of processes that were killed before they could. ML_EIO. */
ML_NODISCARD int ml_dev_files_make(struct ml_dev_files *files, struct ml_err *err);

struct ml_dev_access {
    int port;
    const char *ca_pem;
    const char *token;
};

/* Writes a kubeconfig for the server on 127.0.0.1, mode 0600, to `path` or, when that is NULL, into
 * the folder. A file that is there is replaced. ML_EIO. */
ML_NODISCARD int ml_dev_files_write_kubeconfig(struct ml_dev_files *files, const char *path,
                                               const struct ml_dev_access *access,
                                               struct ml_err *err);

/* Removes what was made. */
void ml_dev_files_fini(struct ml_dev_files *files);

/* ML_DEV_TOKEN_LEN letters that cannot be guessed, and '\0'. ML_EIO: the kernel gives none. */
ML_NODISCARD int ml_dev_token(char out[ML_DEV_TOKEN_LEN + 1], struct ml_err *err);
