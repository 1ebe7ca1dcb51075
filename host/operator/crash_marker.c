/* The folder of --state-dir keeps two things from one process to the next: the version of a script
 * that ran when the process died (the crash marker), and the last good set of files to run
 * instead. moonloop.c opens the marker, scripts.c the sets. */
#include "operator/crash_marker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME    "crash-marker"
#define MARKER_MAGIC UINT64_C(0x316b72616d6f6f6d) /* "moomark1" */
#define DEATHS_MAX   2                            /* in a row; then it is quarantined */

struct deaths {
    uint64_t version; /* 0: the entry is free, and so are those behind it */
    uint64_t count;
};

/* The file, in the byte order of the machine. */
struct marker_page {
    uint64_t magic;
    volatile uint64_t at_work;
    struct deaths deaths[ML_CRASH_MARKER_VERSIONS_MAX]; /* oldest first */
};

struct ml_crash_marker {
    char *folder;
    int fd; /* holds the lock */
    struct marker_page *page;
};

/* ---- the page ---- */

static bool page_is_sound(const struct marker_page *page)
{
    bool free_before = false;
    for (size_t i = 0; i < ML_COUNT(page->deaths); i++) {
        const struct deaths *deaths = &page->deaths[i];
        if (deaths->count > DEATHS_MAX || !deaths->version != !deaths->count ||
            (deaths->version && free_before))
            return false;
        free_before = !deaths->version;
    }
    return page->magic == MARKER_MAGIC;
}

/* The entry of the version, or a free one. */
static struct deaths *page_find_or_make_room(struct marker_page *page, uint64_t version)
{
    size_t last = ML_COUNT(page->deaths) - 1;
    for (size_t i = 0; i <= last; i++)
        if (page->deaths[i].version == version || !page->deaths[i].version)
            return &page->deaths[i];
    memmove(page->deaths, page->deaths + 1, last * sizeof *page->deaths);
    page->deaths[last] = (struct deaths){0};
    return &page->deaths[last];
}

/* How many times in a row the process died in the version that ran; 0: none did. */
static uint64_t page_count_death(struct marker_page *page)
{
    uint64_t version = page->at_work;
    if (!version)
        return 0;
    page->at_work = 0;
    struct deaths *deaths = page_find_or_make_room(page, version);
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

volatile uint64_t *ml_crash_marker_at_work(struct ml_crash_marker *self)
{
    return &self->page->at_work;
}

const char *ml_crash_marker_folder(const struct ml_crash_marker *self)
{
    return self->folder;
}

/* ---- the file ---- */

static int open_private_file(const char *path, struct ml_err *err)
{
    struct stat info;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0)
        return ml_err_set(err, ML_EIO, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        ml_err_set(err, ML_EINVALID, "%s: is not a file", path);
    else if (fchmod(fd, 0600) < 0)
        ml_err_set(err, ML_EIO, "%s: cannot be made private: %s", path, strerror(errno));
    else
        return fd;
    close(fd);
    return err->kind;
}

/* Held until the process ends. */
static int marker_lock(int fd, const char *path, struct ml_err *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return ml_err_set(err, ML_EALREADY_EXISTS,
                      "%s: another process has it; give each process a folder of its own", path);
}

/* Replaces a damaged page by an empty one. True: it was damaged, and not just new. */
static bool page_read(int fd, struct marker_page *out)
{
    struct stat info = {.st_size = -1};
    ssize_t got = pread(fd, out, sizeof *out, 0);
    int r = fstat(fd, &info);
    if (r == 0 && got == (ssize_t)sizeof *out && info.st_size == got && page_is_sound(out))
        return false;
    *out = (struct marker_page){.magic = MARKER_MAGIC};
    return got != 0;
}

/* Written whole before it is mapped: writing to a mapped page that the disk has no room for would
 * kill the process. */
static int page_map(int fd, const char *path, const struct marker_page *page,
                    struct marker_page **out, struct ml_err *err)
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
    ML_AUTO(ml_close_fd) int fd = open_private_file(path, err);
    struct marker_page page, *mapped = NULL;
    if (fd < 0 || marker_lock(fd, path, err) < 0)
        return err->kind;
    if (page_read(fd, &page))
        ml_warn(log, "host", "the crash marker is damaged; starting a new one", ML_S("file", path));
    uint64_t deaths = page_count_death(&page);
    if (deaths)
        ml_warn(log, "host", "the process died while a script was at work", ML_I("deaths", deaths));
    if (page_map(fd, path, &page, &mapped, err) < 0)
        return err->kind;
    *out = ml_new(struct ml_crash_marker);
    **out = (struct ml_crash_marker){ml_strdup(folder), fd, mapped};
    fd = -1;
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

/* ---- the last good set ---- */

#define GOOD_MAGIC UINT64_C(0x31746573646f6f67) /* "goodset1" */
#define NONE       SIZE_MAX

/* At the start of a file; after it, for each file of the set, a struct good_record and the bytes of
 * name and text. In the byte order of the machine. Bytes after the last one mean nothing. */
struct good_header {
    uint64_t magic;
    uint64_t revision; /* the higher of two wins; 0: proposed, not accepted */
    uint64_t fingerprint;
    uint64_t count;
};

struct good_record {
    uint64_t name_len, text_len;
};

struct ml_last_good {
    struct ml_last_good_opts opts;
    struct ml_timer proof; /* runs while a set is proposed */
    FILE *files[2];        /* without a buffer */
    struct good_header headers[2];
    size_t good;     /* index of the file to read, or NONE */
    size_t proposed; /* index of the file to be accepted, or NONE */
};

/* The header, and the records when `files` is not NULL. */
static int good_write(struct ml_last_good *self, size_t index, const struct ml_files *files,
                      struct ml_err *err)
{
    FILE *file = self->files[index];
    rewind(file);
    fwrite(&self->headers[index], sizeof self->headers[index], 1, file);
    for (size_t i = 0; files && i < files->count && !ferror(file); i++) {
        const struct ml_script_file *script = &files->files[i];
        const struct good_record record = {script->name.len, script->text.len};
        fwrite(&record, sizeof record, 1, file);
        fwrite(script->name.ptr, 1, script->name.len, file);
        fwrite(script->text.ptr, 1, script->text.len, file);
    }
    if (ferror(file))
        return ml_err_set(err, ML_EIO, "the last good scripts cannot be kept: %s", strerror(errno));
    return 0;
}

static bool good_read_record(FILE *from, struct ml_files *files)
{
    struct good_record record;
    struct ml_err err;
    if (fread(&record, sizeof record, 1, from) != 1 || record.name_len > ML_FILE_NAME_MAX ||
        record.text_len > ML_SCRIPT_SOURCE_MAX)
        return false;
    const size_t len = record.name_len + record.text_len;
    ML_AUTO_FREE char *bytes = ml_alloc(len);
    return fread(bytes, 1, len, from) == len &&
           ml_files_add(files, &ml_files_scripts, (struct ml_str){bytes, record.name_len},
                        (struct ml_str){bytes + record.name_len, record.text_len}, &err) == 0;
}

static bool good_read_set(FILE *from, const struct good_header *header, struct ml_files *files)
{
    if (header->count > ML_FILES_MAX || fseek(from, sizeof *header, SEEK_SET) < 0)
        return false;
    for (uint64_t i = 0; i < header->count; i++)
        if (!good_read_record(from, files))
            return false;
    return files->refused_count == 0 && ml_files_fingerprint(files, NULL) == header->fingerprint;
}

static uint64_t good_newest_revision(const struct ml_last_good *self)
{
    return self->good == NONE ? 0 : self->headers[self->good].revision;
}

static void good_warn(const struct ml_last_good_opts *opts, const struct ml_err *err)
{
    ml_warn(opts->log, "scripts", "the last good version is not kept", ML_S("source", opts->source),
            ML_ERR(err));
}

static void good_accept(struct ml_last_good *self)
{
    struct ml_err err;
    size_t index = self->proposed;
    self->proposed = NONE;
    self->headers[index].revision = good_newest_revision(self) + 1;
    if (good_write(self, index, NULL, &err) < 0)
        good_warn(&self->opts, &err);
    else
        self->good = index;
}

static void good_on_proof_due(void *context)
{
    struct ml_last_good *self = context;
    if (self->opts.works(self->opts.context))
        good_accept(self);
    else
        ml_timer_start(&self->proof, ML_CRASH_MARKER_WORKED_NS);
}

static int good_open(struct ml_last_good *self, size_t index, struct ml_err *err)
{
    uint64_t source = ml_str_hash(ml_str_of(self->opts.source));
    ML_AUTO_FREE char *path = ml_asprintf("%s/last-good-%016llx-%zu", self->opts.folder,
                                          (unsigned long long)source, index);
    struct good_header *header = &self->headers[index];
    int fd = open_private_file(path, err);
    if (fd < 0)
        return err->kind;
    FILE *file = self->files[index] = fdopen(fd, "r+");
    ml_assert(file != NULL);
    setvbuf(file, NULL, _IONBF, 0);
    if (fread(header, sizeof *header, 1, file) != 1 || header->magic != GOOD_MAGIC)
        *header = (struct good_header){.magic = GOOD_MAGIC};
    return 0;
}

int ml_last_good_open(const struct ml_last_good_opts *opts, struct ml_last_good **out,
                      struct ml_err *err)
{
    struct ml_last_good *self = ml_new(struct ml_last_good);
    *self = (struct ml_last_good){.opts = *opts, .good = NONE, .proposed = NONE};
    ml_timer_init(&self->proof, opts->loop, good_on_proof_due, self);
    for (size_t i = 0; i < ML_COUNT(self->files); i++) {
        if (good_open(self, i, err) < 0) {
            good_warn(opts, err);
            ml_last_good_close(self);
            return err->kind;
        }
        if (self->headers[i].revision > good_newest_revision(self))
            self->good = i;
    }
    *out = self;
    return 0;
}

void ml_last_good_close(struct ml_last_good *self)
{
    if (!self)
        return;
    ml_timer_stop(&self->proof);
    for (size_t i = 0; i < ML_COUNT(self->files); i++)
        if (self->files[i])
            fclose(self->files[i]);
    free(self);
}

void ml_last_good_propose(struct ml_last_good *self, const struct ml_files *files, bool good)
{
    struct ml_err err = ML_ERR_INIT;
    uint64_t fingerprint = ml_files_fingerprint(files, NULL);
    if (!self ||
        (self->proposed != NONE && self->headers[self->proposed].fingerprint == fingerprint))
        return;
    self->proposed = NONE;
    ml_timer_stop(&self->proof);
    if (!good)
        return;
    size_t index = self->good == 0 ? 1 : 0;
    self->headers[index] = (struct good_header){
        .magic = GOOD_MAGIC,
        .fingerprint = fingerprint,
        .count = files->count,
    };
    if (good_write(self, index, files, &err) < 0) {
        good_warn(&self->opts, &err);
        return;
    }
    self->proposed = index;
    ml_timer_start(&self->proof, ML_CRASH_MARKER_WORKED_NS);
}

void ml_last_good_end(struct ml_last_good *self)
{
    if (!self)
        return;
    ml_timer_stop(&self->proof);
    if (self->proposed != NONE && self->opts.works(self->opts.context))
        good_accept(self);
}

bool ml_last_good_read(struct ml_last_good *self, struct ml_files *files)
{
    *files = ML_FILES_INIT;
    if (!self || self->good == NONE)
        return false;
    if (good_read_set(self->files[self->good], &self->headers[self->good], files))
        return true;
    ml_files_fini(files);
    return false;
}
