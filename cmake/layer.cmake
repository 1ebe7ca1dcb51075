# ml_layer(NAME SOURCES a.c b.c [LINKS layers below and libraries])
# One static library per folder of host/; includes are written from host/ ("base/buf.h").
function(ml_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;LINKS" ${ARGN})
  add_library(ml_${name} STATIC ${LAYER_SOURCES})
  target_include_directories(ml_${name} PUBLIC ${PROJECT_SOURCE_DIR}/host)
  target_link_libraries(ml_${name} PUBLIC ${LAYER_LINKS})
endfunction()

# ml_program(a.c b.c): the program `moonloop`, made of these files.
function(ml_program)
  add_executable(moonloop_cli ${ARGN})
  set_target_properties(moonloop_cli PROPERTIES OUTPUT_NAME moonloop RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS moonloop_cli RUNTIME DESTINATION bin)
endfunction()

# ml_embed(VARIABLE NAME ROOT FOLDER [FILE…]): ROOT/FOLDER without its stubs and specs, and ROOT/FILE, compiled, as a C file,
# the table NAME; its path in VARIABLE. The names of modules begin with FOLDER.
function(ml_embed variable name root folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${root} ${root}/${folder}/*.lua)
  list(FILTER files EXCLUDE REGEX "^${folder}/(meta|spec)/")
  list(APPEND files ${ARGN})
  list(TRANSFORM files PREPEND ${root}/ OUTPUT_VARIABLE paths)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DNAME=${name} -DROOT=${root} "-DFILES=${files}"
            -DCOMPILER=$<TARGET_FILE:ml_lua_compile> -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/${name}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${paths} ml_lua_compile ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()
