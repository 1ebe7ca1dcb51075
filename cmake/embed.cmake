# cmake -DOUTPUT=library.c -DNAME=script_library -DROOT=…/lua -DFILES="moonloop/time.lua;…" -DCOMPILER=…/ml_lua_compile
#       -DFOLDER=… -P embed.cmake
# Compiles the Lua files into FOLDER, and writes a C file that takes them into the binary, which needs none of them at
# run time. The assembler reads them: as C arrays they would take longer to compile than all the rest.
cmake_minimum_required(VERSION 3.25)
foreach(file IN LISTS FILES)
  cmake_path(GET file PARENT_PATH parent)
  file(MAKE_DIRECTORY ${FOLDER}/${parent})
endforeach()
execute_process(COMMAND ${COMPILER} ${ROOT} ${FOLDER} ${FILES} COMMAND_ERROR_IS_FATAL ANY)
set(externs "")
set(entries "")
set(number 0)
foreach(file IN LISTS FILES)
  string(REGEX REPLACE "\\.lua$" "" module "${file}")
  string(REGEX REPLACE "/init$" "" module "${module}")
  string(REPLACE "/" "." module "${module}")
  set(code "${NAME}_${number}")
  string(APPEND externs "extern const unsigned char ${code}[], ${code}_end[];\n"
         "__asm__(\".section .rodata\\n${code}: .incbin \\\"${FOLDER}/${file}\\\"\\n"
         "${code}_end: .byte 0\\n.text\");\n")
  string(APPEND entries
         "    {\"${module}\", \"${file}\", ${code}, ${code}_end},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "/* Made by embed.cmake. */\n#include \"script/library.h\"\n\n${externs}\n"
     "const struct script_library ${NAME}[] = {\n${entries}    {NULL, NULL, NULL, NULL},\n};\n")
