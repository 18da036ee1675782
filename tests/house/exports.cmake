# Fails where LIBRARY defines a dynamic symbol outside namespace palladium, or needs a library that a
# user's program may bring in another version.
execute_process(COMMAND ${NM} -DC --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
list(LENGTH lines count)
if(count EQUAL 0)
  message(FATAL_ERROR "${LIBRARY} exports nothing")
endif()
list(FILTER lines EXCLUDE REGEX "^[0-9a-f]+ . (typeinfo (name )?for |vtable for )?palladium::")
if(lines)
  list(JOIN lines "\n" lines)
  message(FATAL_ERROR "exported beside palladium's own:\n${lines}")
endif()

file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${LIBRARY} RESOLVED_DEPENDENCIES_VAR needed)
list(FILTER needed INCLUDE REGEX "/lib(crypto|ssl|zstd|fmt|spdlog|cuda|nvrtc|cudart)\\.")
if(needed)
  message(FATAL_ERROR "linked with ${needed}")
endif()
