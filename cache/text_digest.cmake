# cmake -DROOT=<source tree> -DFOLDERS=<list> -DFILES=<list> -DOUTPUT=<text_digest.cpp>
#   -P text_digest.cmake
#
# Hashes the sources that decide a cubin, by name and content, never by path or time: two
# builds of one commit have one digest, whatever compiled them.
set(texts "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE files RELATIVE ${ROOT}
    ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.hpp ${ROOT}/${folder}/*.def ${ROOT}/${folder}/*.cuh
    ${ROOT}/${folder}/*.cmake)
  list(SORT files)
  list(APPEND all ${files})
endforeach()
foreach(file IN LISTS all FILES)
  file(SHA256 ${ROOT}/${file} digest)
  string(APPEND texts "${file} ${digest}\n")
endforeach()
string(SHA256 digest "${texts}")
file(WRITE ${OUTPUT}.new "// Made by text_digest.cmake.
#include \"cache/text_digest.hpp\"

namespace palladium::cache {

const char* const text_digest = \"${digest}\";

}  // namespace palladium::cache
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
