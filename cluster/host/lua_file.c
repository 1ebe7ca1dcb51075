/* host.file: files that must survive a crash, for the store of `moonloop dev --data` and the audit
 * log. Lua's io cannot lock, cut or sync. */
#include "cluster/host/server_lua_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_TYPE "cluster.host.File"

struct open_file {
    int fd; /* -1: closed */
};

ML_RAISES static struct open_file *check_open_file(lua_State *L)
{
    struct open_file *file = luaL_checkudata(L, 1, FILE_TYPE);
    luaL_argcheck(L, file->fd >= 0, 1, "the file is closed");
    return file;
}

/* open(path) -> file | nil, message: opens for reading and appending, creates it with mode 0600 if
 * missing, and locks it against other processes until it is closed. */
ML_RAISES static int file_open(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct open_file *file = lua_newuserdatauv(L, sizeof *file, 0);
    file->fd = -1;
    luaL_setmetatable(L, FILE_TYPE);
    file->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file->fd < 0)
        return binding_push_done(L, false, path);
    if (flock(file->fd, LOCK_EX | LOCK_NB) == 0)
        return 1;
    lua_pushnil(L);
    if (errno == EWOULDBLOCK)
        lua_pushfstring(L, "%s: another process uses it", path);
    else
        lua_pushfstring(L, "%s: cannot be locked: %s", path, strerror(errno));
    return 2;
}

static int write_or_fail(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = write(fd, text, len);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        text += sent;
        len -= (size_t)sent;
    }
    return 0;
}

/* file:write(text) -> true | nil, message: writes all of it, or leaves the file as before. */
ML_RAISES static int file_write(lua_State *L)
{
    struct open_file *file = check_open_file(L);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    off_t before = lseek(file->fd, 0, SEEK_END);
    if (write_or_fail(file->fd, text, len) == 0)
        return binding_push_done(L, true, NULL);
    int why = errno;
    int cut = ftruncate(file->fd, before);
    errno = cut < 0 ? errno : why;
    return binding_push_done(L, false, NULL);
}

/* file:read() -> text | nil, message: the whole file. */
ML_RAISES static int file_read(lua_State *L)
{
    struct open_file *file = check_open_file(L);
    luaL_Buffer text;
    lseek(file->fd, 0, SEEK_SET);
    luaL_buffinit(L, &text);
    for (;;) {
        ssize_t got = read(file->fd, luaL_prepbuffer(&text), LUAL_BUFFERSIZE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return binding_push_done(L, false, NULL);
        if (got == 0)
            break;
        luaL_addsize(&text, (size_t)got);
    }
    luaL_pushresult(&text);
    return 1;
}

/* file:cut(size) -> true | nil, message: truncates the file to that size. */
ML_RAISES static int file_cut(lua_State *L)
{
    struct open_file *file = check_open_file(L);
    lua_Integer size = luaL_checkinteger(L, 2);
    luaL_argcheck(L, size >= 0, 2, "below 0");
    return binding_push_done(L, ftruncate(file->fd, (off_t)size) == 0, NULL);
}

/* file:sync() -> true | nil, message: flushes what was written to the disk. */
ML_RAISES static int file_sync(lua_State *L)
{
    return binding_push_done(L, fdatasync(check_open_file(L)->fd) == 0, NULL);
}

ML_RAISES static int file_close(lua_State *L)
{
    struct open_file *file = luaL_checkudata(L, 1, FILE_TYPE);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    return 0;
}

/* make(path) -> true | nil, message: creates an empty file for its owner only, which io.open then
 * writes; an existing one keeps its content but loses access for others. Other than plain files
 * (/dev/stdout) are left alone. */
ML_RAISES static int file_make(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return binding_push_done(L, true, NULL);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    int r = fd < 0 || fstat(fd, &info) < 0 ? -1 : 0;
    if (r == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077))
        r = fchmod(fd, 0600);
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return binding_push_done(L, r == 0, path);
}

/* make_folder(path) -> true | nil, message: creates it for its owner only; true if it exists. */
ML_RAISES static int file_make_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    return binding_push_done(L, mkdir(path, 0700) == 0 || errno == EEXIST, path);
}

/* sync_folder(path) -> true | nil, message: flushes renames in it to the disk. */
ML_RAISES static int file_sync_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -1 : fsync(fd);
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return binding_push_done(L, r == 0, path);
}

ML_RAISES int binding_open_file(lua_State *L)
{
    static const luaL_Reg methods[] = {{"write", file_write}, {"read", file_read},
                                       {"cut", file_cut},     {"sync", file_sync},
                                       {"close", file_close}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"open", file_open},
                                         {"make", file_make},
                                         {"make_folder", file_make_folder},
                                         {"sync_folder", file_sync_folder},
                                         {NULL, NULL}};
    binding_new_type(L, FILE_TYPE, methods, file_close);
    luaL_newlib(L, functions);
    return 1;
}
