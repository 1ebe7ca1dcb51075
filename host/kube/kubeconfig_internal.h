/* L3 kube. The parts of a kubeconfig, and how its files and entries are read. Private to
 * kubeconfig*.c, to credentials.c, which updates it, and to their tests and fuzz target. */
#pragma once

#include "base/buf.h"
#include "kube/kubeconfig.h"

#define ML_KUBEFILE_SIZE_MAX ((size_t)1024 * 1024)
#define ML_KUBEFILES_MAX     32 /* in $KUBECONFIG */
#define ML_TOKEN_SIZE_MAX    ((size_t)64 * 1024)

/* The variables that ml_kubeconfig_load reads from the process; NULL: not set. */
struct ml_kubeconfig_env {
    const char *kubeconfig;   /* KUBECONFIG */
    const char *home;         /* HOME */
    const char *service_host; /* KUBERNETES_SERVICE_HOST */
    const char *service_port; /* KUBERNETES_SERVICE_PORT */
    const char *account_dir;  /* /var/run/secrets/kubernetes.io/serviceaccount */
};

ML_NODISCARD int ml_kubeconfig_load_env(const struct ml_kubeconfig_opts *opts,
                                        const struct ml_kubeconfig_env *env,
                                        struct ml_kubeconfig **out, struct ml_err *err);

/* Reads the kubeconfig files of `config` once more, with the context that it has. `out` lacks the
 * token of a tokenFile. ML_EINVALID as for ml_kubeconfig_load. */
ML_NODISCARD int ml_kubeconfig_read_again(const struct ml_kubeconfig *config,
                                          struct ml_kubeconfig **out, struct ml_err *err);
/* Changes with the kubeconfig files (inode, size and times); 0: one of them is not there. */
uint64_t ml_kubeconfig_stamp(const struct ml_kubeconfig *config);

/* Reads the token file; on failure what was there stays. */
ML_NODISCARD int ml_kubeconfig_read_token(struct ml_kubeconfig *config, struct ml_err *err);

/* Sets the token of a file or an entry: trimmed, after "Bearer ". ML_EINVALID when it is empty or
 * not valid in a header. */
ML_NODISCARD int ml_kubeconfig_set_bearer(struct ml_kubeconfig *config, struct ml_str token,
                                          struct ml_err *err);

/* Appends the contents to `out`. ML_ENOT_FOUND: no such file. ML_EIO: cannot be read, or is
 * neither a regular file nor a pipe. ML_ELIMIT: larger than out->len_max. The message starts
 * with the path. */
ML_NODISCARD int ml_file_read(const char *path, struct ml_buf *out, struct ml_err *err);

/* The same for a file that was read before and may have changed: never waits for a writer, so a
 * pipe, whose contents are gone, is ML_EIO. */
ML_NODISCARD int ml_file_read_again(const char *path, struct ml_buf *out, struct ml_err *err);

/* One kubeconfig file as JSON. */
struct ml_kubefile {
    char *path;
    struct ml_buf json; /* an object; empty for an empty file */
    bool again;         /* it was read before: what it names is not waited for */
};

ML_NODISCARD int ml_kubefile_parse(const char *path, struct ml_str yaml, struct ml_kubefile *out,
                                   struct ml_err *err);
void ml_kubefile_fini(struct ml_kubefile *file);

/* An entry of "clusters", "users" or "contexts", and the file that defines it. */
struct ml_kubeentry {
    const struct ml_kubefile *file;
    const char *section; /* "cluster", "user", "context"; a literal */
    const char *name;    /* borrowed */
    struct ml_str raw;   /* its value under `section`, an object */
};

/* The first file that has an entry of that name defines it. ML_ENOT_FOUND: none has one;
 * ML_EINVALID: it has two, or one without contents. */
ML_NODISCARD int ml_kubeentry_find(const struct ml_kubefile *files, size_t file_count,
                                   const char *section, const char *name, struct ml_kubeentry *out,
                                   struct ml_err *err);

/* The value of `key`, as JSON; false when there is none or it is null. */
bool ml_kubeentry_value(const struct ml_kubeentry *entry, const char *key, struct ml_str *out_raw);
/* Each leaves `out` as it is when the entry lacks the key. ML_EINVALID: of another type. A string
 * has at least one character, and no line ends or other control characters, a path is made relative
 * to the file that names it, a PEM is `key`-data decoded or the contents of the file `key`, whose
 * path goes to `out_file`. */
ML_NODISCARD int ml_kubeentry_string(const struct ml_kubeentry *entry, const char *key, char **out,
                                     struct ml_err *err);
ML_NODISCARD int ml_kubeentry_bool(const struct ml_kubeentry *entry, const char *key, bool *out,
                                   struct ml_err *err);
ML_NODISCARD int ml_kubeentry_path(const struct ml_kubeentry *entry, const char *key, char **out,
                                   struct ml_err *err);
ML_NODISCARD int ml_kubeentry_pem(const struct ml_kubeentry *entry, const char *key,
                                  struct ml_str *out, char **out_file, struct ml_err *err);

void ml_kubelist_add(struct ml_kubelist *list, char *text); /* takes ownership */
void ml_kubelist_fini(struct ml_kubelist *list);

/* Appends the list of strings in `key`, none when it is missing; any text without NUL. */
ML_NODISCARD int ml_kubeentry_strings(const struct ml_kubeentry *entry, const char *key,
                                      struct ml_kubelist *out, struct ml_err *err);
/* The value of `key` as an entry of its own, which messages call `section` ("exec of user"); false
 * when there is nothing. */
bool ml_kubeentry_sub(const struct ml_kubeentry *entry, const char *key, const char *section,
                      struct ml_kubeentry *out);

/* ML_EINVALID "PATH: cluster "NAME": message". */
int ml_kubeentry_fail(const struct ml_kubeentry *entry, struct ml_err *err, const char *format, ...)
    ML_PRINTF(3, 4);

/* Fills server, namespace, tls and credentials from the files. `context` NULL: the first
 * current-context that is set. */
ML_NODISCARD int ml_kubeconfig_resolve(struct ml_kubeconfig *config,
                                       const struct ml_kubefile *files, size_t file_count,
                                       const char *context, struct ml_err *err);
