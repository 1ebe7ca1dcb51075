/* cluster.process: what machine this is. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cluster/process_lua_internal.h"

static bool is_usable(const struct ifaddrs *entry)
{
    return entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET &&
           (entry->ifa_flags & IFF_UP) && !(entry->ifa_flags & IFF_LOOPBACK);
}

/* The first address that others could reach; false when there is none. */
static bool find_address(char out[NI_MAXHOST])
{
    struct ifaddrs *list;
    bool found = false;
    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *entry = list; entry && !found; entry = entry->ifa_next)
        found = is_usable(entry) && getnameinfo(entry->ifa_addr, sizeof(struct sockaddr_in), out,
                                                NI_MAXHOST, NULL, 0, NI_NUMERICHOST) == 0;
    freeifaddrs(list);
    return found;
}

/* As Go calls it, which is what Kubernetes shows. */
static const char *architecture(const char *machine)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (strcmp(machine, names[i][0]) == 0)
            return names[i][1];
    return machine;
}

/* machine() -> { address = nil or text, architecture =, kernel = } */
ML_RAISES
static int process_machine(lua_State *L)
{
    char address[NI_MAXHOST];
    struct utsname name = {0};
    bool found = find_address(address);
    uname(&name);
    lua_createtable(L, 0, 3);
    if (found)
        lua_pushstring(L, address);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, "address");
    lua_pushstring(L, architecture(name.machine));
    lua_setfield(L, -2, "architecture");
    lua_pushstring(L, name.release);
    lua_setfield(L, -2, "kernel");
    return 1;
}

/* user() -> the number of the user that everything runs as */
static int process_user(lua_State *L)
{
    lua_pushinteger(L, geteuid());
    return 1;
}

const luaL_Reg process_machines[] = {
    {"machine", process_machine}, {"user", process_user}, {NULL, NULL}};
