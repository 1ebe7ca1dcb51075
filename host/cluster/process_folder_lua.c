/* process.open_folder: the folders of `moonloop dev` in which pods and volumes live. Objects of the
 * API name what is in them, and containers may write there: every path is below such a folder, and
 * no link on the way is followed (process_path.h). */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/process_lua_internal.h"
#include "cluster/process_path.h"
#include "cluster/trusted_internal.h"

#define FOLDER   "cluster.process.Folder"
#define READ_MAX 4096

struct folder {
    int fd; /* O_PATH */
};

ML_RAISES static int folder_of(lua_State *L)
{
    const struct folder *folder = luaL_checkudata(L, 1, FOLDER);
    return folder->fd;
}

ML_RAISES static int push_done(lua_State *L, bool done)
{
    if (!done && errno == EXDEV)
        return host_push_error(L, "it leads out of its folder");
    return host_push_done(L, done, NULL);
}

/* open_folder(path) -> folder, or nil and why not. The path is the caller's own, never an object's:
 * links in it are followed. A missing folder is made, for its owner only. */
ML_RAISES int process_folder_open(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct folder *folder = lua_newuserdatauv(L, sizeof *folder, 0);
    folder->fd = -1;
    luaL_setmetatable(L, FOLDER);
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        folder->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return folder->fd < 0 ? host_push_done(L, false, path) : 1;
}

/* folder:make_folder(path) -> true, or nil and why not. Creates missing parents too, all for their
 * owner only, who is also the user that pods run as. */
ML_RAISES static int folder_make_folder(lua_State *L)
{
    int base = folder_of(L);
    int fd = process_path_folder(base, luaL_checkstring(L, 2), true);
    bool made = fd >= 0; /* closing keeps errno when there is nothing to close */
    ml_close_fd(&fd);
    return push_done(L, made);
}

/* folder:remove(path) -> true, or nil and why not: a file, or a folder with all that is in it;
 * true if it is not there. */
ML_RAISES static int folder_remove(lua_State *L)
{
    const char *name;
    int base = folder_of(L);
    int parent = process_path_parent(base, luaL_checkstring(L, 2), false, &name);
    bool removed = parent >= 0 ? process_path_remove(parent, name) : errno == ENOENT;
    int saved = errno;
    ml_close_fd(&parent);
    errno = saved;
    return push_done(L, removed);
}

/* folder:unlink(path) -> true, or nil and why not: a file or a link; true if it is not there */
ML_RAISES static int folder_unlink(lua_State *L)
{
    const char *name;
    int base = folder_of(L);
    int parent = process_path_parent(base, luaL_checkstring(L, 2), false, &name);
    bool removed = (parent >= 0 && unlinkat(parent, name, 0) == 0) || errno == ENOENT;
    int saved = errno;
    ml_close_fd(&parent);
    errno = saved;
    return push_done(L, removed);
}

/* An existing file that is no plain one is refused: a pipe would make us wait. */
static bool write_file(int parent, const char *name, mode_t mode, struct ml_str text)
{
    struct stat info;
    int fd = openat(parent, name,
                    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    errno = EINVAL;
    bool written = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ftruncate(fd, 0) == 0 &&
                   write(fd, text.ptr, text.len) == (ssize_t)text.len && fchmod(fd, mode) == 0;
    int saved = errno;
    close(fd);
    errno = saved;
    return written;
}

/* folder:write(path, text, mode) -> true, or nil and why not */
ML_RAISES static int folder_write(lua_State *L)
{
    int base = folder_of(L);
    const char *path = luaL_checkstring(L, 2), *name;
    struct ml_str text = host_check_str(L, 3);
    lua_Integer mode = luaL_checkinteger(L, 4);
    luaL_argcheck(L, mode >= 0 && mode <= 0777, 4, "permissions, 0 to 0777");
    int parent = process_path_parent(base, path, false, &name);
    bool written = parent >= 0 && write_file(parent, name, (mode_t)mode, text);
    int saved = errno;
    ml_close_fd(&parent);
    errno = saved;
    return push_done(L, written);
}

/* folder:link(target, path) -> true, or nil and why not: a symbolic link; an existing one stays */
ML_RAISES static int folder_link(lua_State *L)
{
    int base = folder_of(L);
    const char *target = luaL_checkstring(L, 2), *name;
    int parent = process_path_parent(base, luaL_checkstring(L, 3), false, &name);
    bool linked = parent >= 0 && (symlinkat(target, parent, name) == 0 || errno == EEXIST);
    int saved = errno;
    ml_close_fd(&parent);
    errno = saved;
    return push_done(L, linked);
}

/* Only of a regular file: others might make us wait. */
static ssize_t read_file_end(int parent, const char *name, char *out, size_t max)
{
    struct stat info;
    int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t len = -1;
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        len = pread(fd, out, max, ML_MAX(info.st_size - (off_t)max, (off_t)0));
    close(fd);
    return len;
}

/* folder:read_end(path, max) -> the last bytes of a file, or nil where there is none */
ML_RAISES static int folder_read_end(lua_State *L)
{
    char bytes[READ_MAX];
    int base = folder_of(L);
    const char *path = luaL_checkstring(L, 2), *name;
    lua_Integer max = luaL_checkinteger(L, 3);
    luaL_argcheck(L, max > 0 && max <= READ_MAX, 3, "1 to 4096");
    int parent = process_path_parent(base, path, false, &name);
    ssize_t len = parent < 0 ? -1 : read_file_end(parent, name, bytes, (size_t)max);
    ml_close_fd(&parent);
    if (len < 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, bytes, (size_t)len);
    return 1;
}

/* folder:has(path) -> bool: whether something is there, a link as well */
ML_RAISES static int folder_has(lua_State *L)
{
    const char *name;
    int base = folder_of(L);
    int parent = process_path_parent(base, luaL_checkstring(L, 2), false, &name);
    lua_pushboolean(L, parent >= 0 && faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    ml_close_fd(&parent);
    return 1;
}

/* folder:has_folder(path) -> bool: whether a folder is there, and no link to one */
ML_RAISES static int folder_has_folder(lua_State *L)
{
    int base = folder_of(L);
    int fd = process_path_folder(base, luaL_checkstring(L, 2), false);
    lua_pushboolean(L, fd >= 0);
    ml_close_fd(&fd);
    return 1;
}

static int folder_gc(lua_State *L)
{
    struct folder *folder = lua_touserdata(L, 1);
    ml_close_fd(&folder->fd);
    return 0;
}

void process_folder_register(lua_State *L)
{
    static const luaL_Reg methods[] = {{"make_folder", folder_make_folder},
                                       {"remove", folder_remove},
                                       {"unlink", folder_unlink},
                                       {"write", folder_write},
                                       {"link", folder_link},
                                       {"read_end", folder_read_end},
                                       {"has", folder_has},
                                       {"has_folder", folder_has_folder},
                                       {NULL, NULL}};
    host_new_type(L, FOLDER, methods, folder_gc);
}
