# Configures the project in SOURCE, which takes the tree at PALLADIUM in, below WORK: with all that
# Palladium can build, for their names, and with what another project gets. CONFIGURE holds what both
# are given. Where PALLADIUM_TEST_FULL is set, the second is built, too, and its program run.
function(configure folder)
  file(REMOVE ${WORK}/${folder}/CMakeCache.txt)  # what is new in it is looked at; objects stay
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/${folder} ${CONFIGURE}
      -DPALLADIUM_SOURCE=${PALLADIUM} ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${said}")
  endif()
endfunction()

# fails_if(<file> MATCHES <regex>) or fails_if(<file> LACKS <regex>)
function(fails_if file how pattern)
  file(READ ${file} text)
  string(REGEX MATCH "${pattern}" found "${text}")
  if((how STREQUAL MATCHES AND found) OR (how STREQUAL LACKS AND NOT found))
    message(FATAL_ERROR "${file} ${how} ${pattern}: ${found}")
  endif()
endfunction()

configure(all -DAT_LEAST=60 -DPALLADIUM_TESTS=ON -DPALLADIUM_CLI=ON -DPALLADIUM_EXAMPLES=ON
  -DPALLADIUM_BENCHMARKS=ON -DPALLADIUM_INSTALL=ON)
configure(own -DAT_LEAST=20)
# The parent names no kind of build, and gets none; Palladium is optimised.
fails_if(${WORK}/own/CMakeCache.txt LACKS "\nCMAKE_BUILD_TYPE:STRING=\n")
fails_if(${WORK}/own/build.ninja LACKS "FLAGS = [^\n]*-O2[^\n]*-std=c[+][+]20")
fails_if(${WORK}/own/build.ninja MATCHES "build CMakeFiles/(program|runtime).dir[^\n]*\n[^\n]*\n[^\n]*FLAGS =[^\n]*-O2")
fails_if(${WORK}/own/build.ninja MATCHES "-Werror")
fails_if(${WORK}/own/build.ninja MATCHES "build [^:\n]*palladium_(cli|test|example|benchmark)")
if(EXISTS ${WORK}/own/compile_commands.json)
  message(FATAL_ERROR "writes compile_commands.json into the parent's folder")
endif()
# Nothing of Palladium's is installed with the parent.
file(GLOB scripts ${WORK}/own/_deps/palladium-build/cmake_install.cmake)
foreach(script IN LISTS scripts)
  fails_if(${script} MATCHES "file\\(INSTALL")
endforeach()

if(NOT DEFINED ENV{PALLADIUM_TEST_FULL})
  return()
endif()
foreach(program demo program)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/own --target ${program}
    RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${said}")
  endif()
endforeach()
execute_process(COMMAND ${WORK}/own/bin/demo OUTPUT_VARIABLE demo COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/own/bin/program OUTPUT_VARIABLE program COMMAND_ERROR_IS_FATAL ANY)
if(NOT "${demo}${program}" STREQUAL "40\n42\n")
  message(FATAL_ERROR "prints ${demo}${program}")
endif()
if(NOT EXISTS ${WORK}/own/_deps/palladium-build/palladium-compile)
  message(FATAL_ERROR "the compile helper does not come with the library")
endif()
