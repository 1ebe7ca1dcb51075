# ml_layer(NAME SOURCES a.c b.c [LINKS layers below and libraries])
# One static library per folder of host/; includes are written from host/ ("base/buf.h").
function(ml_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;LINKS" ${ARGN})
  add_library(ml_${name} STATIC ${LAYER_SOURCES})
  target_include_directories(ml_${name} PUBLIC ${PROJECT_SOURCE_DIR}/host)
  target_link_libraries(ml_${name} PUBLIC ${LAYER_LINKS})
endfunction()
