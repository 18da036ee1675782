# What a program does with an installed Palladium, by pkg-config and the compilers: for the scripts
# beside this one.
#
# SOURCE holds the programs, WORK is a folder for what is made, COMPILER is that of the build.
find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message(FATAL_ERROR "needs pkg-config")
endif()
set(compilers ${COMPILER})
foreach(name g++ clang++-16)
  find_program(found ${name} NO_CACHE)
  if(found)
    list(APPEND compilers ${found})
  endif()
  unset(found)
endforeach()
list(REMOVE_DUPLICATES compilers)

# flags(<variable> <pkg-config's options>): its words, of the palladium.pc in a folder.
function(flags variable pc_folder)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_folder} ${PKG_CONFIG} ${ARGN} palladium
    OUTPUT_VARIABLE words OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${words}")
  set(${variable} ${words} PARENT_SCOPE)
endfunction()

# compile(<variable> <words>): sets <variable> to what the compiler says, and status.
function(compile variable)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  set(${variable} "${said}" PARENT_SCOPE)
  set(status ${status} PARENT_SCOPE)
endfunction()

# The program with a `pl` of its own is built by pkg-config's words and run against the library in
# <libdir>; other compilers accept it, too.
function(use_by_pkg_config libdir)
  flags(words ${libdir}/pkgconfig --cflags --libs)
  compile(said ${COMPILER} -std=c++20 -Wall -Wextra -Werror ${SOURCE}/own_pl.cpp -o ${WORK}/own_pl ${words})
  if(status)
    message(FATAL_ERROR "${said}")
  endif()
  flags(version ${libdir}/pkgconfig --modversion)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libdir} ${WORK}/own_pl
    OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
  if(NOT printed STREQUAL "7 26 306 2 8 4\n${version}\n")
    message(FATAL_ERROR "prints ${printed}")
  endif()
  flags(words ${libdir}/pkgconfig --cflags)
  foreach(compiler IN LISTS compilers)
    compile(said ${compiler} -std=c++20 -Wall -Wextra -Werror -fsyntax-only ${SOURCE}/own_pl.cpp ${words})
    if(status)
      message(FATAL_ERROR "${compiler}: ${said}")
    endif()
  endforeach()
endfunction()

# Under an older standard a program that uses the umbrella header, and with the build's compiler each
# header, gets one #error that names C++20 and
# how to ask for it, and nothing after it but the stop.
function(refuse_older_standards libdir include)
  flags(words ${libdir}/pkgconfig --cflags)
  file(GLOB_RECURSE headers RELATIVE ${include} ${include}/palladium/*.hpp)
  list(LENGTH headers count)
  if(count LESS 30)
    message(FATAL_ERROR "only ${count} headers in ${include}")
  endif()
  foreach(compiler IN LISTS compilers)
    foreach(standard c++11 c++14 c++17)
      set(texts "#include <palladium/palladium.hpp>\nusing pl::_\;\nint main() { pl::Array a = pl::f(b)\; }\n")
      if(standard STREQUAL c++17 AND compiler STREQUAL COMPILER)
        foreach(header IN LISTS headers)
          list(APPEND texts "#include <${header}>\n")
        endforeach()
      endif()
      foreach(text IN LISTS texts)
        file(WRITE ${WORK}/older.cpp "${text}")
        compile(said ${compiler} -std=${standard} -fsyntax-only ${WORK}/older.cpp ${words})
        string(REGEX MATCHALL "api.hpp:[0-9]+:[0-9]+: error: [^\n]*" ours "${said}")
        string(REGEX MATCHALL " error: " errors "${said}")
        string(REGEX MATCHALL "\n" lines "${said}")
        list(LENGTH ours one)
        list(LENGTH errors two)
        list(LENGTH lines length)
        if(NOT status OR NOT one EQUAL 1 OR NOT two EQUAL 2 OR length GREATER 16 OR
           NOT ours MATCHES "C[+][+]20.*-std=c[+][+]20.*target_compile_features[(].*cxx_std_20[)]")
          message(FATAL_ERROR "${compiler} -std=${standard} on ${text}: ${said}")
        endif()
      endforeach()
    endforeach()
  endforeach()
endfunction()
