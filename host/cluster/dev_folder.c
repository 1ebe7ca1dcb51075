/* The folder of a `moonloop dev`: made, locked, and removed with those that killed processes left.
 * Called by dev.c. */
#include "cluster/dev_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cluster/process_path.h"

#define FOLDER_PREFIX "moonloop-"
#define LOCK_NAME     ".lock" /* in each folder; locked as long as its maker lives */

static void remove_dev_folder(const char *folder)
{
    process_path_remove(AT_FDCWD, folder);
}

/* [caller frees] The lock file of a folder says which folder that is. A copy of it, or a folder of
 * the user's with a file of that name, has none that does. */
static char *describe_folder(const struct stat *info)
{
    return ml_asprintf("moonloop dev %ju:%ju\n", (uintmax_t)info->st_dev, (uintmax_t)info->st_ino);
}

static bool is_lock_of(int lock, const struct stat *folder)
{
    char text[64];
    ML_AUTO_FREE char *wanted = describe_folder(folder);
    ssize_t length = read(lock, text, sizeof text);
    return length == (ssize_t)strlen(wanted) && memcmp(text, wanted, (size_t)length) == 0;
}

/* A folder of an earlier `moonloop dev` that ended without removing it. */
static bool is_abandoned_folder(const char *folder)
{
    struct stat info;
    if (lstat(folder, &info) < 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return false;
    ML_AUTO_FREE char *lock = ml_asprintf("%s/" LOCK_NAME, folder);
    int fd = open(lock, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool left = is_lock_of(fd, &info) && flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return left;
}

/* Removes the folders of processes that were killed before they could. */
static void remove_abandoned_folders(const char *parent)
{
    DIR *all = opendir(parent);
    const struct dirent *entry;
    while (all && (entry = readdir(all))) {
        if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) != 0)
            continue;
        ML_AUTO_FREE char *folder = ml_asprintf("%s/%s", parent, entry->d_name);
        if (is_abandoned_folder(folder))
            remove_dev_folder(folder);
    }
    if (all)
        closedir(all);
}

/* The lock file gets its name only once it is locked: remove_abandoned_folders of another process
 * would take an unlocked one for abandoned. */
static int lock_dev_folder(struct ml_dev_folder *self)
{
    ML_AUTO_FREE char *beside = ml_asprintf("%s/" LOCK_NAME ".new", self->path);
    ML_AUTO_FREE char *lock = ml_asprintf("%s/" LOCK_NAME, self->path);
    self->lock = open(beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat info;
    if (self->lock < 0 || flock(self->lock, LOCK_EX | LOCK_NB) < 0 || stat(self->path, &info) < 0)
        return -1;
    ML_AUTO_FREE char *text = describe_folder(&info);
    if (write(self->lock, text, strlen(text)) != (ssize_t)strlen(text))
        return -1;
    return rename(beside, lock);
}

int ml_dev_folder_make(struct ml_dev_folder *self, struct ml_err *err)
{
    const char *parent = getenv("TMPDIR");
    parent = parent && *parent ? parent : "/tmp";
    remove_abandoned_folders(parent);
    char *path = ml_asprintf("%s/" FOLDER_PREFIX "XXXXXX", parent);
    if (!mkdtemp(path)) {
        int r = ml_err_set(err, ML_EIO,
                           "%s: cannot be made: %s; TMPDIR says where, a folder that you may write",
                           path, strerror(errno));
        free(path);
        return r;
    }
    *self = (struct ml_dev_folder){.path = path, .lock = -1};
    if (lock_dev_folder(self) < 0)
        return ml_err_set(err, ML_EIO, "%s/" LOCK_NAME ": cannot be made: %s", path,
                          strerror(errno));
    return 0;
}

void ml_dev_folder_remove(struct ml_dev_folder *self)
{
    if (!self->path)
        return;
    remove_dev_folder(self->path);
    if (self->lock >= 0)
        close(self->lock);
    free(ml_take(&self->path));
}
