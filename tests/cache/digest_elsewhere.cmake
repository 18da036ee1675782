# cmake -DROOT=<source tree> -DFOLDERS=<list> -DFILES=<list> -DEXPECTED=<text_digest.cpp>
#   -DWORK=<folder> -P digest_elsewhere.cmake
#
# Fails unless a source tree at another path, with other times, has the digest of this one, and one
# with another byte has not.
file(REMOVE_RECURSE ${WORK})
foreach(folder IN LISTS FOLDERS)
  file(COPY ${ROOT}/${folder}/ DESTINATION ${WORK}/a/tree/${folder} NO_SOURCE_PERMISSIONS)
endforeach()
foreach(file IN LISTS FILES)
  get_filename_component(folder ${file} DIRECTORY)
  file(COPY ${ROOT}/${file} DESTINATION ${WORK}/a/tree/${folder} NO_SOURCE_PERMISSIONS)
endforeach()
file(GLOB_RECURSE copied ${WORK}/a/tree/*)
file(TOUCH_NOCREATE ${copied})

function(digest_of_copy result)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DROOT=${WORK}/a/tree "-DFOLDERS=${FOLDERS}" "-DFILES=${FILES}"
      -DOUTPUT=${WORK}/digest.cpp -P ${ROOT}/cache/text_digest.cmake
    COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${WORK}/digest.cpp text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

file(READ ${EXPECTED} expected)
digest_of_copy(elsewhere)
if(NOT elsewhere STREQUAL expected)
  message(FATAL_ERROR "the same sources have another digest elsewhere:\n${elsewhere}\n${expected}")
endif()
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE inside ${WORK}/a/tree/${folder}/*.cpp ${WORK}/a/tree/${folder}/*.hpp)
  list(GET inside 0 file)
  file(APPEND ${file} " ")
  digest_of_copy(changed)
  if(changed STREQUAL elsewhere)
    message(FATAL_ERROR "a byte of ${folder} does not change the digest")
  endif()
  set(elsewhere "${changed}")
endforeach()
file(REMOVE_RECURSE ${WORK})
