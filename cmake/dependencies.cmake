# The libraries of the distribution. Each layer names the one it needs, as moonloop::NAME.
find_package(PkgConfig REQUIRED)

function(ml_dependency name)
  pkg_check_modules(DEP_${name} REQUIRED IMPORTED_TARGET ${ARGN})
  if(MOONLOOP_STATIC)
    add_library(moonloop::${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(moonloop::${name} INTERFACE ${DEP_${name}_STATIC_INCLUDE_DIRS})
    target_link_directories(moonloop::${name} INTERFACE ${DEP_${name}_STATIC_LIBRARY_DIRS})
    target_link_libraries(moonloop::${name} INTERFACE ${DEP_${name}_STATIC_LIBRARIES})
  else()
    add_library(moonloop::${name} ALIAS PkgConfig::DEP_${name})
  endif()
endfunction()

ml_dependency(curl libcurl)
ml_dependency(event libevent_openssl libevent_extra libevent_core) # in the order static linking needs
ml_dependency(yaml yaml-0.1)
ml_dependency(openssl openssl)
ml_dependency(zstd libzstd)
ml_dependency(pcre2 libpcre2-8)
if(MOONLOOP_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
