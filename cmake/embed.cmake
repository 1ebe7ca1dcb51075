# cmake -DOUTPUT=library.c -DROOT=…/lua -DMODULES="moonloop;moonloop.time" -P embed.cmake
# Writes the Lua modules as C arrays: the binary needs no file at run time.
set(arrays "")
set(entries "")
set(number 0)
foreach(module IN LISTS MODULES)
  string(REPLACE "." "/" file "${module}")
  if(IS_DIRECTORY "${ROOT}/${file}")
    set(file "${file}/init")
  endif()
  file(READ "${ROOT}/${file}.lua" bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char text_${number}[] = {\n${bytes}\n};\n")
  string(APPEND entries
         "    {\"${module}\", \"${file}.lua\", text_${number}, sizeof(text_${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "/* Made by embed.cmake. */\n#include \"script/library.h\"\n\n${arrays}\n"
     "const struct script_library script_library[] = {\n${entries}    {NULL, NULL, NULL, 0},\n};\n")
