/* host.file: files that must survive a crash. Lua's io cannot lock, cut or sync. */
#include "cluster/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_TYPE "cluster.host.File"

struct host_file {
    int fd; /* -1: closed */
};

/* nil, "PATH: what is wrong" */
ML_RAISES
static int fail(lua_State *L, const char *what)
{
    const char *why = strerror(errno);
    lua_pushnil(L);
    if (what)
        lua_pushfstring(L, "%s: %s", what, why);
    else
        lua_pushstring(L, why);
    return 2;
}

ML_RAISES
static int succeed(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

ML_RAISES
static struct host_file *check(lua_State *L)
{
    struct host_file *file = luaL_checkudata(L, 1, FILE_TYPE);
    luaL_argcheck(L, file->fd >= 0, 1, "the file is closed");
    return file;
}

/* open(path) -> file | nil, message: for reading and appending; made when it is not there, with
 * mode 0600; locked against other processes until it is closed. */
ML_RAISES
static int file_open(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct host_file *file = lua_newuserdatauv(L, sizeof *file, 0);
    file->fd = -1;
    luaL_setmetatable(L, FILE_TYPE);
    file->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file->fd < 0)
        return fail(L, path);
    if (flock(file->fd, LOCK_EX | LOCK_NB) == 0)
        return 1;
    lua_pushnil(L);
    if (errno == EWOULDBLOCK)
        lua_pushfstring(L, "%s: another process uses it", path);
    else
        lua_pushfstring(L, "%s: cannot be locked: %s", path, strerror(errno));
    return 2;
}

static int write_all(int fd, const char *text, size_t len)
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

/* file:write(text) -> true | nil, message: all of it, or the file is as before. */
ML_RAISES
static int file_write(lua_State *L)
{
    struct host_file *file = check(L);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    off_t before = lseek(file->fd, 0, SEEK_END);
    if (write_all(file->fd, text, len) == 0)
        return succeed(L);
    int why = errno;
    int cut = ftruncate(file->fd, before);
    errno = cut < 0 ? errno : why;
    return fail(L, NULL);
}

/* file:read() -> text | nil, message: the whole file. */
ML_RAISES
static int file_read(lua_State *L)
{
    struct host_file *file = check(L);
    luaL_Buffer text;
    lseek(file->fd, 0, SEEK_SET);
    luaL_buffinit(L, &text);
    for (;;) {
        ssize_t got = read(file->fd, luaL_prepbuffer(&text), LUAL_BUFFERSIZE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(L, NULL);
        if (got == 0)
            break;
        luaL_addsize(&text, (size_t)got);
    }
    luaL_pushresult(&text);
    return 1;
}

/* file:cut(size) -> true | nil, message: nothing stays behind that many bytes. */
ML_RAISES
static int file_cut(lua_State *L)
{
    struct host_file *file = check(L);
    lua_Integer size = luaL_checkinteger(L, 2);
    luaL_argcheck(L, size >= 0, 2, "below 0");
    return ftruncate(file->fd, (off_t)size) < 0 ? fail(L, NULL) : succeed(L);
}

/* file:sync() -> true | nil, message: what was written is on the disk. */
ML_RAISES
static int file_sync(lua_State *L)
{
    return fdatasync(check(L)->fd) < 0 ? fail(L, NULL) : succeed(L);
}

ML_RAISES
static int file_close(lua_State *L)
{
    struct host_file *file = luaL_checkudata(L, 1, FILE_TYPE);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    return 0;
}

/* make(path) -> true | nil, message: an empty file for its owner alone, for those who then write it
 * by other means; one that is there keeps what it has, and nobody else reads it from now on. What
 * is no plain file (/dev/stdout) is left alone. */
ML_RAISES
static int file_make(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return succeed(L);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    int r = fd < 0 || fstat(fd, &info) < 0 ? -1 : 0;
    if (r == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077))
        r = fchmod(fd, 0600);
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return r < 0 ? fail(L, path) : succeed(L);
}

/* make_folder(path) -> true | nil, message: for its owner alone; fine when it is there. */
ML_RAISES
static int make_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail(L, path);
    return succeed(L);
}

/* sync_folder(path) -> true | nil, message: renames in it are on the disk. */
ML_RAISES
static int sync_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -1 : fsync(fd);
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return r < 0 ? fail(L, path) : succeed(L);
}

ML_RAISES
int host_open_file(lua_State *L)
{
    static const luaL_Reg methods[] = {{"write", file_write}, {"read", file_read},
                                       {"cut", file_cut},     {"sync", file_sync},
                                       {"close", file_close}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"open", file_open},
                                         {"make", file_make},
                                         {"make_folder", make_folder},
                                         {"sync_folder", sync_folder},
                                         {NULL, NULL}};
    luaL_newmetatable(L, FILE_TYPE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, file_close);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
