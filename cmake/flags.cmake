# With ccache, each content of a file is compiled only once: also across build folders, and after a patch is reverted.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Compiler flags for everything of ours.
add_compile_definitions(_GNU_SOURCE MOONLOOP_VERSION="${PROJECT_VERSION}")
add_compile_options(-Wall -Wextra -Wshadow -Wswitch-enum
                    "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>"
                    -Wpointer-arith -Wvla -Wformat-security -fstack-protector-strong -fno-omit-frame-pointer)
if(MOONLOOP_WERROR)
  add_compile_options(-Werror)
endif()
if(MOONLOOP_ASAN)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
  # From version 13 on, GCC also looks for uses of stacks after their end, and an error that a script catches takes
  # three times as long. Without it, each version makes the same checks at the same cost.
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    add_compile_options(--param=asan-use-after-return=0)
  endif()
  # A script's CPU time is limited as if nothing were checked: the checks take several times as much.
  add_compile_definitions(MOONLOOP_CPU_STRETCH=3)
  if(MOONLOOP_GC_STRESS)
    add_compile_definitions(MOONLOOP_GC_STRESS)
  endif()
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections -Wl,-z,relro,-z,now)
endif()
