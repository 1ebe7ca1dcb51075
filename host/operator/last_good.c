#include "operator/last_good.h"

#include "operator/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x31746573646f6f67) /* "goodset1" */
#define NONE  SIZE_MAX

/* The beginning of a file; each name and text follow as a struct record and their bytes. All in
 * the byte order of the machine. What stands behind the last one is of no meaning. */
struct header {
    uint64_t magic;
    uint64_t generation; /* of two good ones the higher counts; 0: not good */
    uint64_t fingerprint;
    uint64_t count;
};

struct record {
    uint64_t name_len, text_len;
};

struct ml_last_good {
    int fds[2];
    struct header headers[2];
    size_t good;     /* index of the one to read, or NONE */
    size_t proposed; /* of the one that waits to be good, or NONE */
};

/* ---- files ---- */

static int open_file(const char *path, struct ml_err *err)
{
    struct stat info;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0)
        return ml_err_set(err, ML_EIO, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && fchmod(fd, 0600) == 0)
        return fd;
    close(fd);
    return ml_err_set(err, ML_EINVALID, "%s: is not a file of ours", path);
}

static bool read_all(int fd, void *into, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(fd, (char *)into + done, size - done);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static int write_all(int fd, const void *bytes, size_t size, struct ml_err *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, (const char *)bytes + done, size - done);
        if (put <= 0)
            return ml_err_set(err, ML_EIO, "the last good scripts cannot be kept: %s",
                              strerror(put < 0 ? errno : ENOSPC));
        done += (size_t)put;
    }
    return 0;
}

static int write_header(struct ml_last_good *self, size_t index, struct ml_err *err)
{
    if (lseek(self->fds[index], 0, SEEK_SET) < 0)
        return ml_err_set(err, ML_EIO, "the last good scripts cannot be kept: %s", strerror(errno));
    return write_all(self->fds[index], &self->headers[index], sizeof self->headers[index], err);
}

static int write_records(int fd, const struct ml_files *files, struct ml_err *err)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct ml_script_file *file = &files->files[i];
        const struct record record = {file->name.len, file->text.len};
        if (write_all(fd, &record, sizeof record, err) < 0 ||
            write_all(fd, file->name.ptr, file->name.len, err) < 0 ||
            write_all(fd, file->text.ptr, file->text.len, err) < 0)
            return err->kind;
    }
    return 0;
}

static bool read_record(int fd, struct ml_files *files)
{
    struct record record;
    struct ml_err err;
    if (!read_all(fd, &record, sizeof record) || record.name_len > ML_FILE_NAME_MAX ||
        record.text_len > ML_SCRIPT_SOURCE_MAX)
        return false;
    ML_AUTO_FREE char *bytes = ml_alloc(record.name_len + record.text_len + 1);
    return read_all(fd, bytes, record.name_len + record.text_len) &&
           ml_files_add(files, &ml_files_scripts, (struct ml_str){bytes, record.name_len},
                        (struct ml_str){bytes + record.name_len, record.text_len}, &err) == 0;
}

static bool read_set(int fd, const struct header *header, struct ml_files *files)
{
    if (header->count > ML_FILES_MAX || lseek(fd, sizeof *header, SEEK_SET) < 0)
        return false;
    for (uint64_t i = 0; i < header->count; i++)
        if (!read_record(fd, files))
            return false;
    return files->refused_count == 0 && ml_batch_fingerprint(files, NULL) == header->fingerprint;
}

/* ---- the two ---- */

static uint64_t newest(const struct ml_last_good *self)
{
    return self->good == NONE ? 0 : self->headers[self->good].generation;
}

int ml_last_good_open(const char *folder, const char *source, struct ml_last_good **out,
                      struct ml_err *err)
{
    struct ml_last_good *self = ml_new(struct ml_last_good);
    *self = (struct ml_last_good){.fds = {-1, -1}, .good = NONE, .proposed = NONE};
    for (size_t i = 0; i < ML_COUNT(self->fds); i++) {
        ML_AUTO_FREE char *path = ml_asprintf("%s/last-good-%016llx-%d", folder,
                                              (unsigned long long)ml_str_hash(ml_str_of(source)),
                                              (int)i);
        self->fds[i] = open_file(path, err);
        if (self->fds[i] < 0) {
            ml_last_good_close(self);
            return err->kind;
        }
        struct header *header = &self->headers[i];
        if (!read_all(self->fds[i], header, sizeof *header) || header->magic != MAGIC)
            *header = (struct header){.magic = MAGIC};
        if (header->generation > newest(self))
            self->good = i;
    }
    *out = self;
    return 0;
}

void ml_last_good_close(struct ml_last_good *self)
{
    for (size_t i = 0; self && i < ML_COUNT(self->fds); i++)
        if (self->fds[i] >= 0)
            close(self->fds[i]);
    free(self);
}

int ml_last_good_propose(struct ml_last_good *self, const struct ml_files *files,
                         struct ml_err *err)
{
    size_t index = self->good == 0 ? 1 : 0;
    self->proposed = NONE;
    self->headers[index] = (struct header){
        .magic = MAGIC,
        .fingerprint = ml_batch_fingerprint(files, NULL),
        .count = files->count,
    };
    if (write_header(self, index, err) < 0 || write_records(self->fds[index], files, err) < 0)
        return err->kind;
    self->proposed = index;
    return 0;
}

int ml_last_good_accept(struct ml_last_good *self, struct ml_err *err)
{
    size_t index = self->proposed;
    if (index == NONE)
        return 0;
    self->proposed = NONE;
    self->headers[index].generation = newest(self) + 1;
    if (write_header(self, index, err) < 0)
        return err->kind;
    self->good = index;
    return 0;
}

bool ml_last_good_read(struct ml_last_good *self, struct ml_files *files)
{
    *files = ML_FILES_INIT;
    if (self->good == NONE)
        return false;
    if (read_set(self->fds[self->good], &self->headers[self->good], files))
        return true;
    ml_files_fini(files);
    return false;
}
