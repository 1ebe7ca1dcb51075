#include "operator/crash_marker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME  "crash-marker"
#define MAGIC      UINT64_C(0x316b72616d6f6f6d) /* "moomark1" */
#define DEATHS_MAX 2                            /* in a row; then it is quarantined */

struct deaths {
    uint64_t version; /* 0: the entry is free, and so are those behind it */
    uint64_t count;
};

/* The file, in the byte order of the machine. */
struct page {
    uint64_t magic;
    volatile uint64_t at_work;
    struct deaths deaths[ML_CRASH_MARKER_VERSIONS_MAX]; /* oldest first */
};

struct ml_crash_marker {
    char *folder;
    int fd; /* holds the lock */
    struct page *page;
};

/* ---- what stands in the page ---- */

static bool is_sound(const struct page *page)
{
    bool free_before = false;
    for (size_t i = 0; i < ML_COUNT(page->deaths); i++) {
        const struct deaths *deaths = &page->deaths[i];
        if (deaths->count > DEATHS_MAX || !deaths->version != !deaths->count ||
            (deaths->version && free_before))
            return false;
        free_before = !deaths->version;
    }
    return page->magic == MAGIC;
}

/* That of the version, or the one to note it in. */
static struct deaths *find_or_make_room(struct page *page, uint64_t version)
{
    size_t last = ML_COUNT(page->deaths) - 1;
    for (size_t i = 0; i <= last; i++)
        if (page->deaths[i].version == version || !page->deaths[i].version)
            return &page->deaths[i];
    memmove(page->deaths, page->deaths + 1, last * sizeof *page->deaths);
    page->deaths[last] = (struct deaths){0};
    return &page->deaths[last];
}

/* How often what was at work has died in a row; 0: nothing was. */
static uint64_t count_death(struct page *page)
{
    uint64_t version = page->at_work;
    if (!version)
        return 0;
    page->at_work = 0;
    struct deaths *deaths = find_or_make_room(page, version);
    *deaths = (struct deaths){version, ML_MIN(deaths->count + 1, (uint64_t)DEATHS_MAX)};
    return deaths->count;
}

void ml_crash_marker_forgive(struct ml_crash_marker *self)
{
    struct deaths *all = self->page->deaths;
    size_t kept = 0;
    for (size_t i = 0; i < ML_CRASH_MARKER_VERSIONS_MAX; i++)
        if (all[i].count >= DEATHS_MAX)
            all[kept++] = all[i];
    memset(all + kept, 0, (ML_CRASH_MARKER_VERSIONS_MAX - kept) * sizeof *all);
}

bool ml_crash_marker_quarantined(const struct ml_crash_marker *self, uint64_t version)
{
    for (size_t i = 0; i < ML_CRASH_MARKER_VERSIONS_MAX; i++)
        if (self->page->deaths[i].version == version)
            return self->page->deaths[i].count >= DEATHS_MAX;
    return false;
}

uint64_t ml_crash_marker_version(const struct ml_script_file *file)
{
    uint64_t name = ml_str_hash(file->name);
    uint64_t version = (name << 7 | name >> 57) ^ ml_str_hash(file->text);
    return version ? version : 1;
}

volatile uint64_t *ml_crash_marker_at_work(struct ml_crash_marker *self)
{
    return &self->page->at_work;
}

const char *ml_crash_marker_folder(const struct ml_crash_marker *self)
{
    return self->folder;
}

/* ---- the file ---- */

static int open_file(const char *path, struct ml_err *err)
{
    struct stat info;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0)
        return ml_err_set(err, ML_EIO, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        ml_err_set(err, ML_EINVALID, "%s: is not a file", path);
    else if (fchmod(fd, 0600) < 0)
        ml_err_set(err, ML_EIO, "%s: cannot be made private: %s", path, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        ml_err_set(err, ML_EALREADY_EXISTS,
                   "%s: another process has it; give each process a folder of its own", path);
    else
        return fd;
    close(fd);
    return err->kind;
}

/* A page that is not sound becomes an empty one. True: it was not, and was not new either. */
static bool read_page(int fd, struct page *out)
{
    struct stat info = {.st_size = -1};
    ssize_t got = pread(fd, out, sizeof *out, 0);
    int r = fstat(fd, &info);
    if (r == 0 && got == (ssize_t)sizeof *out && info.st_size == got && is_sound(out))
        return false;
    *out = (struct page){.magic = MAGIC};
    return got != 0;
}

/* Written whole before it is mapped: a page that the disk has no room for ends the process. */
static int map_page(int fd, const char *path, const struct page *page, struct page **out,
                    struct ml_err *err)
{
    ssize_t put = pwrite(fd, page, sizeof *page, 0);
    if (put >= 0 && put != (ssize_t)sizeof *page)
        errno = ENOSPC;
    if (put != (ssize_t)sizeof *page || ftruncate(fd, sizeof *page) < 0)
        return ml_err_set(err, ML_EIO, "%s: cannot be written: %s", path, strerror(errno));
    void *mapped = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return ml_err_set(err, ML_EIO, "%s: cannot be mapped: %s", path, strerror(errno));
    *out = mapped;
    return 0;
}

int ml_crash_marker_open(const char *folder, struct ml_log *log, struct ml_crash_marker **out,
                         struct ml_err *err)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/" FILE_NAME, folder);
    struct page page, *mapped = NULL;
    int fd = open_file(path, err);
    if (fd < 0)
        return err->kind;
    if (read_page(fd, &page))
        ml_warn(log, "host", "the crash marker is damaged; beginning a new one",
                ML_S("file", path));
    uint64_t deaths = count_death(&page);
    if (deaths)
        ml_warn(log, "host", "the process died while a script was at work",
                ML_I("deaths", (int64_t)deaths));
    if (map_page(fd, path, &page, &mapped, err) < 0) {
        close(fd);
        return err->kind;
    }
    struct ml_crash_marker *self = ml_new(struct ml_crash_marker);
    *self = (struct ml_crash_marker){ml_strdup(folder), fd, mapped};
    *out = self;
    return 0;
}

void ml_crash_marker_close(struct ml_crash_marker *self)
{
    if (!self)
        return;
    munmap(self->page, sizeof *self->page);
    close(self->fd);
    free(self->folder);
    free(self);
}
