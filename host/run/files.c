#include "run/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MAX ((size_t)4 * 1024 * 1024)

void ml_files_fini(struct ml_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free((char *)files->files[i].name.ptr);
        free((char *)files->files[i].text.ptr);
    }
    free(files->files);
    *files = ML_FILES_INIT;
}

static bool is_script(struct ml_str name)
{
    return ml_str_ends(name, ".lua") && !ml_str_ends(name, "_test.lua");
}

static bool is_manifest(struct ml_str name)
{
    return (ml_str_ends(name, ".yaml") || ml_str_ends(name, ".yml") ||
            ml_str_ends(name, ".json")) &&
           !ml_str_starts(name, "kustomization.");
}

const struct ml_files_kind ml_files_scripts = {"scripts", ML_SCRIPT_SOURCE_MAX, is_script};
const struct ml_files_kind ml_files_manifests = {"manifests", MANIFEST_MAX, is_manifest};

int ml_files_add(struct ml_files *files, const struct ml_files_kind *kind, struct ml_str name,
                 struct ml_str text, struct ml_err *err)
{
    if (text.len > kind->size_max)
        return ml_err_set(err, ML_ELIMIT, ML_STR_FMT ": larger than %zu bytes", ML_STR_ARG(name),
                          kind->size_max);
    if (files->count == ML_FILES_MAX)
        return ml_err_set(err, ML_ELIMIT, "more than %d %s", ML_FILES_MAX, kind->what);
    files->files = ml_realloc(files->files, (files->count + 1) * sizeof *files->files);
    size_t at = files->count;
    while (at > 0 && ml_str_cmp(files->files[at - 1].name, name) > 0)
        at--;
    memmove(&files->files[at + 1], &files->files[at], (files->count - at) * sizeof *files->files);
    files->files[at] = (struct ml_script_file){
        .name = {ml_str_dup(name), name.len},
        .text = {ml_str_dup(text), text.len},
    };
    files->count++;
    return 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* `shown` is how messages call the file. */
static int read_file(struct ml_files *files, const struct ml_files_kind *kind, int dir,
                     const char *path, const char *shown, struct ml_err *err)
{
    ML_AUTO(close_fd) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ml_err_set(err, ML_EIO, "%s: cannot be opened: %s", shown, strerror(errno));
    ML_AUTO(ml_buf_fini) struct ml_buf text;
    ml_buf_init(&text, kind->size_max + 1);
    for (;;) {
        size_t room = ML_MIN((size_t)16 * 1024, kind->size_max + 1 - text.len);
        if (room == 0)
            break;
        char *into = ml_buf_reserve(&text, room);
        ssize_t got = read(fd, into, room);
        if (got < 0)
            return ml_err_set(err, ML_EIO, "%s: cannot be read: %s", shown, strerror(errno));
        if (got == 0)
            break;
        text.len += (size_t)got;
    }
    const char *slash = strrchr(path, '/');
    struct ml_str name = ml_str_of(slash ? slash + 1 : path);
    return ml_files_add(files, kind, name, ml_buf_str(&text), err);
}

static void close_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static int read_folder(struct ml_files *files, const struct ml_files_kind *kind, const char *path,
                       struct ml_err *err)
{
    ML_AUTO(close_dir) DIR *dir = opendir(path);
    if (!dir)
        return ml_err_set(err, ML_EIO, "%s: cannot be opened: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || !kind->wanted(ml_str_of(entry->d_name)))
            continue;
        ML_AUTO_FREE char *shown = ml_asprintf("%s/%s", path, entry->d_name);
        int r = read_file(files, kind, dirfd(dir), entry->d_name, shown, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int ml_files_read(struct ml_files *files, const struct ml_files_kind *kind, const char *path,
                  struct ml_err *err)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return ml_err_set(err, ML_EIO, "%s: %s", path, strerror(errno));
    struct ml_files fresh = ML_FILES_INIT;
    int r = S_ISDIR(info.st_mode) ? read_folder(&fresh, kind, path, err)
                                  : read_file(&fresh, kind, AT_FDCWD, path, path, err);
    if (r < 0) {
        ml_files_fini(&fresh);
        return r;
    }
    *files = fresh;
    return 0;
}
