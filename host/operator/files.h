/* L6 operator. The files of one source: the contents of a folder or a ConfigMap at one instant; and
 * the watch of a file or folder. */
#pragma once

#include "script/script.h"

#define ML_FILES_MAX     256 /* of one source, refused ones included */
#define ML_FILE_NAME_MAX 253 /* bytes; a ConfigMap's key has no more */

/* Which files of a folder are read, and their name in messages. */
struct ml_files_kind {
    const char *what; /* "scripts" */
    size_t size_max;  /* bytes of one file */
    size_t total_max; /* and of all together */
    bool (*wanted)(struct ml_str name);
    bool with_folder; /* a single file is read with the wanted ones of its folder */
};

extern const struct ml_files_kind ml_files_scripts;   /* "*.lua", no test ("*_test.lua"); one with
                                                         the others, which it may require */
extern const struct ml_files_kind ml_files_tests;     /* "*_test.lua" */
extern const struct ml_files_kind ml_files_manifests; /* "*.yaml", "*.yml", "*.json"; not
                                                         kustomize's own files */

/* An entry that is refused whatever its content: not a regular file, too large, a bad name. */
struct ml_file_refused {
    char *name;        /* printable */
    struct ml_err err; /* begins with the name, or with the path */
};

struct ml_files {
    struct ml_script_file *files; /* sorted by name; names and texts owned */
    size_t count;
    struct ml_file_refused *refused; /* sorted by name; owned */
    size_t refused_count;
    size_t bytes; /* of all texts */
    char *only;   /* the one file that was asked for; the others are there for it to require. NULL:
                     all were. Owned */
};

#define ML_FILES_INIT ((struct ml_files){0})

void ml_files_fini(struct ml_files *files);
void ml_files_copy(struct ml_files *to, const struct ml_files *from); /* overwrites `to` */
/* Likewise, those that the script was made from; `only` is the one with the controller. */
void ml_files_copy_loaded(struct ml_files *to, const struct ml_files *from,
                          const struct ml_script *script);
bool ml_files_same(const struct ml_files *a, const struct ml_files *b);
bool ml_files_have(const struct ml_files *files, const char *name); /* refused or not */

/* Adds copies of name and text, and keeps the order. A file that is too large, or whose name is
 * longer than ML_FILE_NAME_MAX or cannot be printed, goes to `refused`. ML_ELIMIT: too many files
 * or bytes in all. */
ML_NODISCARD int ml_files_add(struct ml_files *files, const struct ml_files_kind *kind,
                              struct ml_str name, struct ml_str text, struct ml_err *err);

/* Reads a file of any name (and what `with_folder` says, as far as it can be read), or the wanted
 * files of a folder (not of its subfolders; no hidden ones). A mounted ConfigMap is such a folder.
 * Only regular files are opened, and only up to the size that a file may have; links are followed.
 * An entry of a folder that cannot be read goes to `refused`; ML_EIO, ML_EINVALID and ML_ELIMIT are
 * about the path as a whole. */
ML_NODISCARD int ml_files_read(struct ml_files *files, const struct ml_files_kind *kind,
                               const char *path, struct ml_err *err);

/* Was an entry refused that may become readable without a change of the folder (a dangling link,
 * missing rights)? Then read it again later. */
bool ml_files_may_recover(const struct ml_files *files);

/* A hash of name and text of every file that `script` was made from, or of all when it is NULL. The
 * same in every process. */
uint64_t ml_files_fingerprint(const struct ml_files *files, const struct ml_script *script);
uint64_t ml_file_fingerprint(const struct ml_script_file *file); /* of this one; never 0 */

/* Was files[index] asked for, by itself or with its folder? Else it is there to be required. */
bool ml_files_asked_for(const struct ml_files *files, size_t index);

/* Notifies when a file, or an entry of a folder, may have changed. The folder is watched, not the
 * file: editors replace a file, and the kubelet replaces the link ..data, by renaming a new one
 * over it. Where the path or an entry of its folder leads over links, each link and the file at the
 * end are watched in the same way, at most 512 in all. */
struct ml_path_watch;

/* `changed` is called once from the loop, then after each change that has settled. It returns
 * whether it could read the path; if not, or if the folder does not exist, it is called again every
 * second. It must not free the watch. */
struct ml_path_watch *ml_path_watch_new(struct ml_loop *loop, const char *path,
                                        bool (*changed)(void *context), void *context);
void ml_path_watch_free(struct ml_path_watch *watch); /* NULL is fine */
