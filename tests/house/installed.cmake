# Installs BUILD into a fresh prefix under WORK, asks the installed CLI for its compile helper, builds
# SOURCE against it as its user would, runs it, and fails where the build takes more than 10 seconds of
# one core or README does not show what the program prints. Then another program, by pkg-config.
include(${CMAKE_CURRENT_LIST_DIR}/use.cmake)
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND ${WORK}/prefix/bin/palladium doctor --json
  OUTPUT_VARIABLE doctor ERROR_VARIABLE ignored)
string(FIND "${doctor}" "\"path\": \"${WORK}/prefix/libexec/palladium/palladium-compile\"" helper)
if(helper EQUAL -1)
  message(FATAL_ERROR "the installed library does not find its compile helper: ${doctor}")
endif()

# The shell's `times` counts seconds of the processor: other tests may run meanwhile.
execute_process(
  COMMAND sh -c [[
    "$1" -S "$2" -B "$3" -G "$4" -DCMAKE_PREFIX_PATH="$5" -DCMAKE_CXX_COMPILER="$6" >/dev/null &&
    "$1" --build "$3" >/dev/null && times]]
    sh ${CMAKE_COMMAND} ${SOURCE} ${WORK}/build ${GENERATOR} ${WORK}/prefix ${COMPILER}
  OUTPUT_VARIABLE times COMMAND_ERROR_IS_FATAL ANY)
if(NOT times MATCHES "\n0m([0-9]+)[.][0-9]+s 0m([0-9]+)[.][0-9]+s")
  message(FATAL_ERROR "not less than a minute: ${times}")
endif()
math(EXPR seconds "${CMAKE_MATCH_1} + ${CMAKE_MATCH_2} + 1")
if(seconds GREATER 10)
  message(FATAL_ERROR "configuring and building the program took ${seconds} s")
endif()

execute_process(COMMAND ${WORK}/build/consumer OUTPUT_FILE ${WORK}/printed COMMAND_ERROR_IS_FATAL ANY)
file(READ ${WORK}/printed printed)
file(READ ${README} readme)
string(FIND "${readme}" "```cuda\n${printed}```" shown)
if(printed STREQUAL "" OR shown EQUAL -1)
  message(FATAL_ERROR "README.md does not show what the program printed: ${WORK}/printed")
endif()

# What programs need when they run is a component.
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/runtime
  --component palladium_runtime OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE files RELATIVE ${WORK}/runtime ${WORK}/runtime/*)
list(FILTER files EXCLUDE REGEX "^(${LIBDIR}/libpalladium[.]so[.][0-9.]+|share/doc/palladium/copyright)$")
list(SORT files)
if(NOT files STREQUAL "bin/palladium;libexec/palladium/palladium-compile")
  message(FATAL_ERROR "the component palladium_runtime has ${files}")
endif()

# What is installed may be moved.
file(RENAME ${WORK}/prefix ${WORK}/moved)
use_by_pkg_config(${WORK}/moved/${LIBDIR})
refuse_older_standards(${WORK}/moved/${LIBDIR} ${WORK}/moved/include)
message(STATUS "built in ${seconds} s")
