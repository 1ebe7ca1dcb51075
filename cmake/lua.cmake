# moonloop::lua, our copy of Lua: the distribution's own source with a few small edits, cmake/lua/moonloop.patch
# (docs/decisions/0007). MOONLOOP_LUA_SOURCE: where that source lies unpacked; else it is fetched.
set(lua_ours ${PROJECT_SOURCE_DIR}/cmake/lua)
set(lua_here ${PROJECT_BINARY_DIR}/lua)
set(lua_source "${MOONLOOP_LUA_SOURCE}")
if(NOT lua_source)
  execute_process(COMMAND ${lua_ours}/source.sh OUTPUT_VARIABLE lua_source OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
endif()

# Copied and edited anew only when the source or the edits are others: what is built from it stays.
file(SHA256 ${lua_ours}/moonloop.patch lua_patch)
file(SHA256 ${lua_source}/src/ltable.c lua_table)
set(lua_stamp "${lua_source} ${lua_table} ${lua_patch}")
set(lua_made "")
if(EXISTS ${lua_here}/made)
  file(READ ${lua_here}/made lua_made)
endif()
if(NOT lua_made STREQUAL lua_stamp)
  file(REMOVE_RECURSE ${lua_here})
  file(COPY ${lua_source}/src DESTINATION ${lua_here})
  find_program(PATCH_PROGRAM patch REQUIRED)
  execute_process(COMMAND ${PATCH_PROGRAM} --strip=1 --fuzz=0 --batch --input=${lua_ours}/moonloop.patch
                  WORKING_DIRECTORY ${lua_here}/src RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "cmake/lua/moonloop.patch does not apply to ${lua_source}:\n${said}")
  endif()
  file(WRITE ${lua_here}/made "${lua_stamp}")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${lua_ours}/moonloop.patch)

file(GLOB lua_sources ${lua_here}/src/*.c)
list(REMOVE_ITEM lua_sources ${lua_here}/src/lua.c ${lua_here}/src/luac.c)
add_library(ml_lua STATIC ${lua_sources} ${lua_ours}/moonloop_lua.c ${lua_ours}/moonloop_lua_names.c)
target_include_directories(ml_lua SYSTEM PUBLIC ${lua_here}/src ${lua_ours})
# As the distribution compiles it. The modules in C that busted brings look for Lua in the program that loads them.
target_compile_definitions(ml_lua PRIVATE LUA_COMPAT_5_3 LUA_USE_POSIX)
target_compile_options(ml_lua PRIVATE -w -O2 -fno-function-sections -include ${lua_ours}/moonloop_lua.h)
if(NOT MOONLOOP_STATIC)
  target_compile_definitions(ml_lua PRIVATE LUA_USE_DLOPEN)
  target_link_options(ml_lua INTERFACE -Wl,--export-dynamic-symbol=lua_* -Wl,--export-dynamic-symbol=luaL_*)
endif()
if(MOONLOOP_ASAN)
  # Lua checks how C uses its stack. It is not instrumented itself, as it would then take three times as long.
  target_compile_definitions(ml_lua PRIVATE LUA_USE_APICHECK)
  target_compile_options(ml_lua PRIVATE -UNDEBUG)
  if(NOT MOONLOOP_GC_STRESS)
    target_compile_options(ml_lua PRIVATE -fno-sanitize=all)
  endif()
endif()
target_link_libraries(ml_lua PRIVATE m)
add_library(moonloop::lua ALIAS ml_lua)

# The program that compiles our own Lua files during the build (embed.cmake): reading them as text would take half of
# the time that `moonloop dev` needs to start.
add_executable(ml_lua_compile ${lua_ours}/compile.c)
target_link_libraries(ml_lua_compile PRIVATE moonloop::lua m)
