/* Watches a path with inotify. source.c watches scripts with it, `moonloop dev` and `moonloop test`
 * manifests and tests. */
#include "operator/path_watch.h"

#include <errno.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* An editor saves in several steps, `cp -r` writes several files: one change for all. */
#define SETTLE_NS (20 * ML_NS_PER_MS)
#define RETRY_NS  (1 * ML_NS_PER_S)

#define WATCH_MASK                                                                                 \
    (IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |            \
     IN_DELETE_SELF | IN_MOVE_SELF)

struct ml_path_watch {
    char *path;
    int inotify;
    int watch; /* of the folder, or of the one above it as long as it is missing; -1: of neither */
    struct ml_loop_watch *readable;
    struct ml_timer settle; /* fires when nothing has changed for SETTLE_NS */
    bool (*changed)(void *context);
    void *context;
};

/* A folder that came later replaces the one above it; one that is watched stays as it is. */
static void path_watch_add_folder(struct ml_path_watch *self)
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
    int watch = inotify_add_watch(self->inotify, folder, WATCH_MASK);
    if (self->watch >= 0 && self->watch != watch)
        inotify_rm_watch(self->inotify, self->watch);
    self->watch = watch;
}

static void path_watch_on_settled(void *context)
{
    struct ml_path_watch *self = context;
    path_watch_add_folder(self);
    if (!self->changed(self->context) || self->watch < 0)
        ml_timer_start(&self->settle, RETRY_NS);
}

static void path_watch_on_inotify(void *context)
{
    struct ml_path_watch *self = context;
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t len;
    while ((len = read(self->inotify, events, sizeof events)) > 0) {
        for (char *at = events; at < events + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->wd == self->watch &&
                (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)))
                self->watch = -1;
            at += sizeof *event + event->len;
        }
    }
    ml_timer_start(&self->settle, SETTLE_NS);
}

struct ml_path_watch *ml_path_watch_new(struct ml_loop *loop, const char *path,
                                        bool (*changed)(void *context), void *context)
{
    struct ml_path_watch *self = ml_new(struct ml_path_watch);
    self->path = ml_strdup(path);
    self->changed = changed;
    self->context = context;
    self->watch = -1;
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
    free(self->path);
    free(self);
}
