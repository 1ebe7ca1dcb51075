/* Reads the files of a folder, with a limit on everything that a folder can make grow, and watches
 * a file or folder with inotify. */
#include "operator/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB           ((size_t)1024 * 1024)
#define MANIFEST_MAX  (4 * MIB)
#define SCRIPTS_MAX   (8 * MIB) /* of one source */
#define MANIFESTS_MAX (64 * MIB)

void ml_files_fini(struct ml_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free((char *)files->files[i].name.ptr);
        free((char *)files->files[i].text.ptr);
    }
    for (size_t i = 0; i < files->refused_count; i++)
        free(files->refused[i].name);
    free(files->files);
    free(files->refused);
    free(files->only);
    *files = ML_FILES_INIT;
}

bool ml_files_same(const struct ml_files *a, const struct ml_files *b)
{
    if (a->count != b->count || a->refused_count != b->refused_count ||
        !ml_str_eq(ml_str_of(a->only), ml_str_of(b->only)))
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!ml_str_eq(a->files[i].name, b->files[i].name) ||
            !ml_str_eq(a->files[i].text, b->files[i].text))
            return false;
    for (size_t i = 0; i < a->refused_count; i++)
        if (strcmp(a->refused[i].err.message, b->refused[i].err.message) != 0)
            return false;
    return true;
}

bool ml_files_have(const struct ml_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (ml_str_is(files->files[i].name, name))
            return true;
    for (size_t i = 0; i < files->refused_count; i++)
        if (strcmp(files->refused[i].name, name) == 0)
            return true;
    return false;
}

static bool is_test(struct ml_str name)
{
    return ml_str_ends(name, "_test.lua");
}

static bool is_script(struct ml_str name)
{
    return ml_str_ends(name, ".lua") && !is_test(name);
}

static bool is_manifest(struct ml_str name)
{
    return (ml_str_ends(name, ".yaml") || ml_str_ends(name, ".yml") ||
            ml_str_ends(name, ".json")) &&
           !ml_str_starts(name, "kustomization.");
}

const struct ml_files_kind ml_files_scripts = {"scripts", ML_SCRIPT_SOURCE_MAX, SCRIPTS_MAX,
                                               is_script, true};
const struct ml_files_kind ml_files_tests = {"tests", ML_SCRIPT_SOURCE_MAX, SCRIPTS_MAX, is_test,
                                             false};
const struct ml_files_kind ml_files_manifests = {"manifests", MANIFEST_MAX, MANIFESTS_MAX,
                                                 is_manifest, false};

/* Of UTF-8, in which C1 control characters have two bytes. */
static bool is_printable(struct ml_str name)
{
    unsigned char before = 0;
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c < 0x20 || c == 0x7f || (before == 0xc2 && c <= 0x9f))
            return false;
        before = c;
    }
    return true;
}

static bool file_name_is_good(struct ml_str name)
{
    return name.len > 0 && name.len <= ML_FILE_NAME_MAX && ml_str_is_utf8(name) &&
           is_printable(name) && !memchr(name.ptr, '/', name.len);
}

/* Makes a bad name safe for logs and terminals: ASCII, and not too long. */
static char *file_name_to_show(struct ml_str name)
{
    char *shown = ml_str_dup((struct ml_str){name.ptr, ML_MIN(name.len, ML_FILE_NAME_MAX)});
    if (file_name_is_good(name))
        return shown;
    for (char *at = shown; *at; at++)
        if (*at < 0x20 || *at > 0x7e || *at == '/')
            *at = '?';
    return shown;
}

static int files_check_room(const struct ml_files *files, const struct ml_files_kind *kind,
                            struct ml_err *err)
{
    if (files->count + files->refused_count < ML_FILES_MAX)
        return 0;
    return ml_err_set(err, ML_ELIMIT, "more than %d %s", ML_FILES_MAX, kind->what);
}

static void files_refuse(struct ml_files *files, struct ml_str name, const struct ml_err *why)
{
    size_t size = (files->refused_count + 1) * sizeof *files->refused;
    files->refused = ml_realloc(files->refused, size);
    size_t at = files->refused_count++;
    char *shown = file_name_to_show(name);
    for (; at > 0 && strcmp(files->refused[at - 1].name, shown) > 0; at--)
        files->refused[at] = files->refused[at - 1];
    files->refused[at] = (struct ml_file_refused){shown, *why};
}

static void files_insert(struct ml_files *files, struct ml_str name, struct ml_str text)
{
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
    files->bytes += text.len;
}

void ml_files_copy(struct ml_files *to, const struct ml_files *from)
{
    *to = ML_FILES_INIT;
    for (size_t i = 0; i < from->count; i++)
        files_insert(to, from->files[i].name, from->files[i].text);
    for (size_t i = 0; i < from->refused_count; i++)
        files_refuse(to, ml_str_of(from->refused[i].name), &from->refused[i].err);
    to->only = ml_strdup(from->only);
}

void ml_files_copy_loaded(struct ml_files *to, const struct ml_files *from,
                          const struct ml_script *script)
{
    *to = ML_FILES_INIT;
    for (size_t i = 0; i < from->count; i++)
        if (ml_script_loaded_file(script, from->files[i].name))
            files_insert(to, from->files[i].name, from->files[i].text);
    const struct ml_declaration *declaration = ml_script_declaration(script);
    to->only = ml_strdup(declaration ? declaration->file : NULL);
}

bool ml_files_asked_for(const struct ml_files *files, size_t index)
{
    return !files->only || ml_str_is(files->files[index].name, files->only);
}

static bool is_utf16(struct ml_str text)
{
    return ml_str_starts(text, "\xff\xfe") || ml_str_starts(text, "\xfe\xff");
}

int ml_files_add(struct ml_files *files, const struct ml_files_kind *kind, struct ml_str name,
                 struct ml_str text, struct ml_err *err)
{
    struct ml_err why = ML_ERR_INIT;
    ML_AUTO_FREE char *shown = file_name_to_show(name);
    size_t mark = ml_str_starts(text, ML_BYTE_ORDER_MARK) ? strlen(ML_BYTE_ORDER_MARK) : 0;
    text = (struct ml_str){text.ptr + mark, text.len - mark};
    if (files_check_room(files, kind, err) < 0)
        return err->kind;
    if (!file_name_is_good(name))
        ml_err_set(
            &why, ML_EINVALID,
            "%s: the name of a file has at most %d bytes, and characters that can be printed",
            shown, ML_FILE_NAME_MAX);
    else if (text.len > kind->size_max)
        ml_err_set(&why, ML_ELIMIT, "%s: larger than %zu bytes", shown, kind->size_max);
    else if (kind != &ml_files_manifests && is_utf16(text)) /* libyaml reads it */
        ml_err_set(&why, ML_EINVALID, "%s: is UTF-16; save it as UTF-8", shown);
    if (why.kind)
        files_refuse(files, name, &why);
    else if (text.len > kind->total_max - files->bytes)
        return ml_err_set(err, ML_ELIMIT, "%s larger than %zu bytes in all", kind->what,
                          kind->total_max);
    else
        files_insert(files, name, text);
    return 0;
}

static const char *file_type_name(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static int check_type_and_size(const struct stat *info, const struct ml_files_kind *kind,
                               const char *shown, struct ml_err *err)
{
    if (!S_ISREG(info->st_mode))
        return ml_err_set(err, ML_EINVALID, "%s: is %s, not a file", shown,
                          file_type_name(info->st_mode));
    if (info->st_size > (off_t)kind->size_max)
        return ml_err_set(err, ML_ELIMIT, "%s: larger than %zu bytes", shown, kind->size_max);
    return 0;
}

/* Checked before it is opened, as opening alone has effects on a device and blocks on a pipe, and
 * again afterwards, as it may have been replaced in between. */
static int open_regular_file(const struct ml_files_kind *kind, int dir, const char *path,
                             const char *shown, struct ml_err *err)
{
    struct stat info;
    if (fstatat(dir, path, &info, 0) < 0)
        return ml_err_set(err, ML_EIO, "%s: cannot be opened: %s", shown, strerror(errno));
    if (check_type_and_size(&info, kind, shown, err) < 0)
        return err->kind;
    int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return ml_err_set(err, ML_EIO, "%s: cannot be opened: %s", shown, strerror(errno));
    if (fstat(fd, &info) < 0)
        ml_err_set(err, ML_EIO, "%s: cannot be read: %s", shown, strerror(errno));
    else if (check_type_and_size(&info, kind, shown, err) == 0)
        return fd;
    close(fd);
    return err->kind;
}

/* Reads at most one byte more than a file may have, so that ml_files_add refuses one that grows. */
static int read_file_text(int fd, size_t size_max, const char *shown, struct ml_buf *text,
                          struct ml_err *err)
{
    for (;;) {
        size_t room = ML_MIN((size_t)16 * 1024, size_max + 1 - text->len);
        if (room == 0)
            return 0;
        char *into = ml_buf_reserve(text, room);
        ssize_t got = read(fd, into, room);
        if (got < 0)
            return ml_err_set(err, ML_EIO, "%s: cannot be read: %s", shown, strerror(errno));
        if (got == 0)
            return 0;
        text->len += (size_t)got;
    }
}

/* A file that cannot be read goes to the refused ones of `files`. */
static int files_read_entry(struct ml_files *files, const struct ml_files_kind *kind, int dir,
                            const char *path, const char *shown, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text;
    struct ml_err why;
    struct ml_str name = ml_str_of(basename(path));
    ML_AUTO(ml_close_fd) int fd = open_regular_file(kind, dir, path, shown, &why);
    ml_buf_init(&text, kind->size_max + 1);
    if (fd >= 0 && read_file_text(fd, kind->size_max, shown, &text, &why) == 0)
        return ml_files_add(files, kind, name, ml_buf_str(&text), err);
    int r = files_check_room(files, kind, err);
    if (r == 0)
        files_refuse(files, name, &why);
    return r;
}

static void close_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static int files_read_folder(struct ml_files *files, const struct ml_files_kind *kind,
                             const char *path, struct ml_err *err)
{
    ML_AUTO(close_dir) DIR *dir = opendir(path);
    if (!dir)
        return ml_err_set(err, ML_EIO, "%s: cannot be opened: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || !kind->wanted(ml_str_of(entry->d_name)))
            continue;
        ML_AUTO_FREE char *name = file_name_to_show(ml_str_of(entry->d_name));
        ML_AUTO_FREE char *shown = ml_asprintf("%s/%s", path, name);
        if (files_read_entry(files, kind, dirfd(dir), entry->d_name, shown, err) < 0)
            return err->kind;
    }
    return 0;
}

/* Errors of the folder or of its other files are ignored: a script that requires a missing module
 * is refused later. */
static void files_read_rest_of_folder(struct ml_files *files, const struct ml_files_kind *kind,
                                      const char *path)
{
    ML_AUTO(ml_files_fini) struct ml_files all = ML_FILES_INIT;
    size_t folder_len = (size_t)(basename(path) - path);
    ML_AUTO_FREE char *folder = folder_len ? ml_strndup(path, folder_len) : ml_strdup(".");
    struct ml_err why;
    files->only = ml_str_dup(files->files[0].name);
    if (files_read_folder(&all, kind, folder, &why) < 0)
        return;
    for (size_t i = 0; i < all.count; i++)
        if (!ml_str_is(all.files[i].name, files->only) &&
            ml_files_add(files, kind, all.files[i].name, all.files[i].text, &why) < 0)
            return;
}

static int files_read_single(struct ml_files *files, const struct ml_files_kind *kind,
                             const char *path, struct ml_err *err)
{
    int r = files_read_entry(files, kind, AT_FDCWD, path, path, err);
    if (r < 0)
        return r;
    if (files->refused_count > 0) {
        *err = files->refused[0].err;
        return err->kind;
    }
    if (kind->with_folder)
        files_read_rest_of_folder(files, kind, path);
    return 0;
}

int ml_files_read(struct ml_files *files, const struct ml_files_kind *kind, const char *path,
                  struct ml_err *err)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return ml_err_set(err, ML_EIO, "%s: %s", path, strerror(errno));
    struct ml_files fresh = ML_FILES_INIT;
    int r = S_ISDIR(info.st_mode) ? files_read_folder(&fresh, kind, path, err)
                                  : files_read_single(&fresh, kind, path, err);
    if (r < 0) {
        ml_files_fini(&fresh);
        return r;
    }
    *files = fresh;
    return 0;
}

bool ml_files_may_recover(const struct ml_files *files)
{
    for (size_t i = 0; i < files->refused_count; i++)
        if (files->refused[i].err.kind == ML_EIO)
            return true;
    return false;
}

/* Rotated so that two files that change places do not cancel out. */
static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

uint64_t ml_file_fingerprint(const struct ml_script_file *file)
{
    uint64_t print = rotate(ml_str_hash(file->name), 7) ^ ml_str_hash(file->text);
    return print ? print : 1;
}

uint64_t ml_files_fingerprint(const struct ml_files *files, const struct ml_script *script)
{
    uint64_t print = 0;
    for (size_t i = 0; i < files->count; i++)
        if (!script || ml_script_loaded_file(script, files->files[i].name))
            print = rotate(print, 14) ^ ml_file_fingerprint(&files->files[i]);
    return print;
}

/* ---- the watch of a path ---- */

/* An editor saves in several steps, `cp -r` writes several files: one change for all. */
#define SETTLE_NS (10 * ML_NS_PER_MS)
#define RETRY_NS  (1 * ML_NS_PER_S)

#define WATCHES_MAX 512
#define LINKS_MAX   40 /* on the way to one file, as in Linux */

#define WATCH_MASK                                                                                 \
    (IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |            \
     IN_DELETE_SELF | IN_MOVE_SELF)

/* Something of a folder that matters. */
struct watched {
    int watch;
    char *name; /* of the entry; NULL: all of them */
};

struct ml_path_watch {
    char *path;
    int inotify;
    struct watched *watched;
    size_t count;
    struct ml_loop_watch *readable;
    struct ml_timer settle; /* fires when nothing has changed for SETTLE_NS */
    bool (*changed)(void *context);
    void *context;
};

static void add_watched(struct ml_path_watch *self, const char *folder, const char *name)
{
    int watch = self->count < WATCHES_MAX ? inotify_add_watch(self->inotify, folder, WATCH_MASK)
                                          : -1;
    if (watch < 0)
        return;
    self->watched = ml_realloc(self->watched, (self->count + 1) * sizeof *self->watched);
    self->watched[self->count++] = (struct watched){watch, name ? ml_strdup(name) : NULL};
}

static char *join_path(const char *folder, const char *name)
{
    bool slash = folder[0] && folder[strlen(folder) - 1] == '/';
    return ml_asprintf("%s%s%s", folder, slash ? "" : "/", name);
}

/* A place on the way along a path. */
struct way {
    char *folder; /* which exists, and is reached without links */
    char *rest;   /* of the path, below it */
    unsigned links;
};

static void way_replace(struct way *way, char *folder, char *rest)
{
    free(way->folder);
    free(way->rest);
    way->folder = folder;
    way->rest = rest;
}

/* The link `name` of the folder takes its place in the path. False: it cannot be followed. */
static bool way_follow(struct way *way, const char *link, const char *rest)
{
    char target[PATH_MAX];
    ssize_t len = readlink(link, target, sizeof target - 1);
    if (len <= 0 || ++way->links > LINKS_MAX)
        return false;
    target[len] = '\0';
    way_replace(way, target[0] == '/' ? ml_strdup("/") : ml_strdup(way->folder),
                ml_asprintf("%s/%s", target, rest));
    return true;
}

/* Watches what decides where the path leads: each link on the way, and the file at the end, or the
 * first name that is missing. Returns the last folder, which the caller frees; `out_file`: a file,
 * or nothing, comes behind it. */
static char *watch_way(struct ml_path_watch *self, const char *path, bool *out_file)
{
    struct way way = {ml_strdup(path[0] == '/' ? "/" : "."), ml_strdup(path), 0};
    *out_file = false;
    for (;;) {
        char *name = way.rest + strspn(way.rest, "/");
        size_t len = strcspn(name, "/");
        if (len == 0)
            break;
        ML_AUTO_FREE char *part = ml_strndup(name, len);
        ML_AUTO_FREE char *full = join_path(way.folder, part);
        ML_AUTO_FREE char *rest = ml_strdup(name + len);
        struct stat info;
        bool exists = lstat(full, &info) == 0;
        if (exists && S_ISDIR(info.st_mode)) {
            way_replace(&way, ml_take(&full), ml_take(&rest));
            continue;
        }
        add_watched(self, way.folder, part);
        *out_file = !exists || !S_ISLNK(info.st_mode) || !way_follow(&way, full, rest);
        if (*out_file)
            break;
    }
    free(way.rest);
    return way.folder;
}

static void watch_links_of_folder(struct ml_path_watch *self, const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        bool is_file;
        if (entry->d_name[0] == '.' || (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN))
            continue;
        ML_AUTO_FREE char *path = join_path(folder, entry->d_name);
        free(watch_way(self, path, &is_file));
    }
    closedir(dir);
}

static void drop_watched(struct watched *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].name);
    free(list);
}

static bool is_watched(const struct ml_path_watch *self, int watch, const char *name)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->watched[i].watch == watch &&
            (!name || !self->watched[i].name || strcmp(self->watched[i].name, name) == 0))
            return true;
    return false;
}

/* Watches what the path leads to by now; a folder that came later replaces the one above it. */
static void path_watch_renew(struct ml_path_watch *self)
{
    struct watched *before = self->watched;
    size_t count = self->count;
    bool is_file;
    self->watched = NULL;
    self->count = 0;
    ML_AUTO_FREE char *folder = watch_way(self, self->path, &is_file);
    add_watched(self, folder, NULL);
    watch_links_of_folder(self, folder);
    for (size_t i = 0; i < count; i++)
        if (!is_watched(self, before[i].watch, NULL))
            inotify_rm_watch(self->inotify, before[i].watch);
    drop_watched(before, count);
}

static void path_watch_on_settled(void *context)
{
    struct ml_path_watch *self = context;
    path_watch_renew(self);
    if (!self->changed(self->context) || self->count == 0)
        ml_timer_start(&self->settle, RETRY_NS);
}

static void path_watch_on_inotify(void *context)
{
    struct ml_path_watch *self = context;
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool matters = false;
    ssize_t len;
    while ((len = read(self->inotify, events, sizeof events)) > 0) {
        for (char *at = events; at < events + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            matters |= (event->mask & IN_Q_OVERFLOW) ||
                       is_watched(self, event->wd, event->len > 0 ? event->name : NULL);
            at += sizeof *event + event->len;
        }
    }
    if (matters)
        ml_timer_start(&self->settle, SETTLE_NS);
}

struct ml_path_watch *ml_path_watch_new(struct ml_loop *loop, const char *path,
                                        bool (*changed)(void *context), void *context)
{
    struct ml_path_watch *self = ml_new(struct ml_path_watch);
    self->path = ml_strdup(path);
    self->changed = changed;
    self->context = context;
    self->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (self->inotify >= 0)
        self->readable = ml_loop_watch_fd(loop, self->inotify, path_watch_on_inotify, self);
    ml_timer_init(&self->settle, loop, path_watch_on_settled, self);
    ml_timer_start(&self->settle, 0);
    return self;
}

void ml_path_watch_free(struct ml_path_watch *self)
{
    if (!self)
        return;
    ml_timer_stop(&self->settle);
    ml_loop_watch_free(self->readable);
    if (self->inotify >= 0)
        close(self->inotify);
    drop_watched(self->watched, self->count);
    free(self->path);
    free(self);
}
