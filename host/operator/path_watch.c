/* Watches a path with inotify. source.c watches scripts with it, `moonloop dev` and `moonloop test`
 * manifests and tests. */
#include "operator/path_watch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* An editor saves in several steps, `cp -r` writes several files: one change for all. */
#define SETTLE_NS (20 * ML_NS_PER_MS)
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
