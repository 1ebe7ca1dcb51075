# cmake -DOUTPUT=library.c -DROOT=…/lua -DFILES="moonloop/time.lua;…" -DSCRIPT_MODULES="…" -P embed.cmake
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
  set(for_scripts false)
  if(module IN_LIST SCRIPT_MODULES)
    set(for_scripts true)
  endif()
  set(text "script_text_${number}")
  string(APPEND externs "extern const unsigned char ${text}[], ${text}_end[];\n"
         "__asm__(\".section .rodata\\n${text}: .incbin \\\"${ROOT}/${file}\\\"\\n"
         "${text}_end: .byte 0\\n.text\");\n")
  string(APPEND entries
         "    {\"${module}\", \"${file}\", ${text}, ${text}_end, ${for_scripts}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "/* Made by embed.cmake. */\n#include \"script/library.h\"\n\n${externs}\n"
     "const struct script_library script_library[] = {\n${entries}    {NULL, NULL, NULL, NULL, false},\n};\n")
