/* A path as a source. The folder is watched, not the file: editors replace a file, and the
 * kubelet replaces the link ..data, by renaming a new one over it. */
#include "run/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* An editor saves in several steps, `cp -r` writes several files: one reading for all. */
#define SETTLE_NS (20 * ML_NS_PER_MS)
#define RETRY_NS  (1 * ML_NS_PER_S)

#define WATCH_MASK                                                                                 \
    (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF |       \
     IN_MOVE_SELF)

struct path_source {
    struct ml_source source;
    struct ml_loop *loop;
    char *path;
    int inotify;
    int watch; /* -1: the folder is not watched, because it is not there */
    struct ml_loop_watch *readable;
    struct ml_timer settle; /* fires when the folder has been quiet for a moment */
    struct ml_err last;
};

static struct path_source *of(struct ml_source *source)
{
    return ml_container_of(source, struct path_source, source);
}

static void watch_folder(struct path_source *self)
{
    struct stat info;
    ML_AUTO_FREE char *folder = ml_strdup(self->path);
    if (stat(self->path, &info) < 0 || !S_ISDIR(info.st_mode)) {
        char *slash = strrchr(folder, '/');
        if (slash == folder)
            slash[1] = '\0';
        else if (slash)
            *slash = '\0';
        else
            strcpy(folder, ".");
    }
    self->watch = inotify_add_watch(self->inotify, folder, WATCH_MASK);
}

static void read_files(void *context)
{
    struct path_source *self = context;
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (self->watch < 0)
        watch_folder(self);
    if (ml_files_read(&files, self->path, &err) < 0) {
        if (strcmp(err.message, self->last.message) != 0)
            ml_source_tell_trouble(&self->source, &err);
        self->last = err;
        ml_timer_start(&self->settle, RETRY_NS);
        return;
    }
    self->last = ML_ERR_INIT;
    ml_source_tell_files(&self->source, &files);
    ml_files_fini(&files);
    if (self->watch < 0)
        ml_timer_start(&self->settle, RETRY_NS);
}

static void on_inotify(void *context)
{
    struct path_source *self = context;
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t len;
    while ((len = read(self->inotify, events, sizeof events)) > 0) {
        for (char *at = events; at < events + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))
                self->watch = -1;
            at += sizeof *event + event->len;
        }
    }
    ml_timer_start(&self->settle, SETTLE_NS);
}

static void path_start(struct ml_source *source)
{
    struct path_source *self = of(source);
    self->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (self->inotify >= 0)
        self->readable = ml_loop_watch_fd(self->loop, self->inotify, on_inotify, self);
    ml_timer_start(&self->settle, 0);
}

static void path_free(struct ml_source *source)
{
    struct path_source *self = of(source);
    ml_timer_stop(&self->settle);
    ml_loop_watch_free(self->readable);
    if (self->inotify >= 0)
        close(self->inotify);
    free(self->path);
    free(self);
}

static const struct ml_source_class path_class = {.start = path_start, .free = path_free};

struct ml_source *ml_source_path_new(struct ml_loop *loop, const char *path)
{
    struct path_source *self = ml_new(struct path_source);
    self->source.class = &path_class;
    self->source.name = ml_strdup(path);
    self->loop = loop;
    self->path = ml_strdup(path);
    self->inotify = -1;
    self->watch = -1;
    self->last = ML_ERR_INIT;
    ml_timer_init(&self->settle, loop, read_files, self);
    return &self->source;
}
