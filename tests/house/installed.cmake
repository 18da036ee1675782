# Installs BUILD into a fresh prefix under WORK, builds SOURCE against it as its user would, runs it,
# and fails where the build takes more than 10 seconds or it prints other than EXPECTED.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
string(TIMESTAMP start "%s")
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${WORK}/build)
string(TIMESTAMP end "%s")
math(EXPR seconds "${end} - ${start}")
if(seconds GREATER 10)
  message(FATAL_ERROR "configuring and building the program took ${seconds} s")
endif()

execute_process(COMMAND ${WORK}/build/consumer OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed STREQUAL "${EXPECTED}\n")
  message(FATAL_ERROR "the program printed\n${printed}")
endif()
message(STATUS "built in ${seconds} s, printed ${printed}")
