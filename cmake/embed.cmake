# cmake -DOUTPUT=library.c -DNAME=script_library -DROOT=…/lua -DFILES="moonloop/time.lua;…" -P embed.cmake
# Writes a C file that takes the Lua files into the binary, which needs none of them at run time.
# The assembler reads them: as C arrays they would take longer to compile than all the rest.
cmake_minimum_required(VERSION 3.25)
set(externs "")
set(entries "")
set(number 0)
foreach(file IN LISTS FILES)
  string(REGEX REPLACE "\\.lua$" "" module "${file}")
  string(REGEX REPLACE "/init$" "" module "${module}")
  string(REPLACE "/" "." module "${module}")
  set(text "${NAME}_${number}")
  string(APPEND externs "extern const unsigned char ${text}[], ${text}_end[];\n"
         "__asm__(\".section .rodata\\n${text}: .incbin \\\"${ROOT}/${file}\\\"\\n"
         "${text}_end: .byte 0\\n.text\");\n")
  string(APPEND entries
         "    {\"${module}\", \"${file}\", ${text}, ${text}_end},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "/* Made by embed.cmake. */\n#include \"script/library.h\"\n\n${externs}\n"
     "const struct script_library ${NAME}[] = {\n${entries}    {NULL, NULL, NULL, NULL},\n};\n")
