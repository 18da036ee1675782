# cmake -DFOLDER=<codegen/device> -DOUTPUT=<library_text.cpp> -P embed.cmake
#
# Writes the device library's files as one C++ table {name, text}.
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/common/*.cuh ${FOLDER}/cuda/*.cuh ${FOLDER}/cpu/*.cuh)
list(SORT files)
set(table "")
set(count 0)
foreach(name IN LISTS files)
  file(READ ${FOLDER}/${name} text)
  # A raw string literal may hold 65536 characters; none of these files comes near.
  string(APPEND table "    {\"${name}\", R\"pl(${text})pl\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT}.new "// Made by embed.cmake from codegen/device/*/*.cuh.
#include \"codegen/device/library.hpp\"

namespace palladium::device {

extern const File embedded[${count}];
extern const int embedded_count;
const File embedded[${count}] = {
${table}};
const int embedded_count = ${count};

}  // namespace palladium::device
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
