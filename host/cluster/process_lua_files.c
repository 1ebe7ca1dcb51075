/* cluster.process: the folders that processes live in. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/process_lua_internal.h"

#define OPEN_AT_ONCE 16

static int answer(lua_State *L, bool done)
{
    if (done) {
        lua_pushboolean(L, true);
        return 1;
    }
    int problem = errno;
    lua_pushnil(L);
    lua_pushstring(L, strerror(problem));
    return 2;
}

/* make_folder(path) -> true, or nil and why not. Those above it are made too; all for their owner
 * alone, who is also the one that pods run as. */
ML_RAISES
static int process_make_folder(lua_State *L)
{
    size_t len;
    const char *path = luaL_checklstring(L, 1, &len);
    char *part = lua_newuserdatauv(L, len + 1, 0);
    memcpy(part, path, len + 1);
    for (size_t i = 1; i < len; i++) {
        if (part[i] != '/')
            continue;
        part[i] = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return answer(L, false);
        part[i] = '/';
    }
    return answer(L, mkdir(path, 0700) == 0 || errno == EEXIST);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

/* remove(path) -> true, or nil and why not: a file, or a folder with all that is in it. Links are
 * not followed. */
ML_RAISES
static int process_remove(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    bool removed = nftw(path, remove_entry, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS) == 0;
    return answer(L, removed || errno == ENOENT);
}

static bool write_file(const char *path, mode_t mode, struct ml_str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = write(fd, text.ptr, text.len) == (ssize_t)text.len && fchmod(fd, mode) == 0;
    int problem = errno;
    close(fd);
    errno = problem;
    return written;
}

/* write(path, text, mode) -> true, or nil and why not */
ML_RAISES
static int process_write(lua_State *L)
{
    struct ml_str text;
    const char *path = luaL_checkstring(L, 1);
    text.ptr = luaL_checklstring(L, 2, &text.len);
    lua_Integer mode = luaL_checkinteger(L, 3);
    luaL_argcheck(L, mode >= 0 && mode <= 0777, 3, "permissions, 0 to 0777");
    return answer(L, write_file(path, (mode_t)mode, text));
}

/* link(target, path) -> true, or nil and why not: a symbolic link; one that is there already stays
 */
ML_RAISES
static int process_link(lua_State *L)
{
    const char *target = luaL_checkstring(L, 1);
    return answer(L, symlink(target, luaL_checkstring(L, 2)) == 0 || errno == EEXIST);
}

/* exists(path) -> bool */
ML_RAISES
static int process_exists(lua_State *L)
{
    lua_pushboolean(L, access(luaL_checkstring(L, 1), F_OK) == 0);
    return 1;
}

const luaL_Reg process_files[] = {{"make_folder", process_make_folder},
                                  {"remove", process_remove},
                                  {"write", process_write},
                                  {"link", process_link},
                                  {"exists", process_exists},
                                  {NULL, NULL}};
