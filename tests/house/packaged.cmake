# Makes a .deb of BUILD by cpack, checks what it says of itself and what lies where, unpacks it below WORK
# as dpkg does, and uses it: the tool, a program by pkg-config and one by find_package.
include(${CMAKE_CURRENT_LIST_DIR}/use.cmake)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
execute_process(COMMAND ${CPACK} --config ${BUILD}/CPackConfig.cmake -G DEB -B ${WORK}
  RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
file(GLOB package ${WORK}/*.deb)
if(status OR NOT package)
  message(FATAL_ERROR "${said}")
endif()

function(field_is name pattern)
  execute_process(COMMAND dpkg-deb --field ${package} ${name} OUTPUT_VARIABLE value
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT value MATCHES "${pattern}")
    message(FATAL_ERROR "${name}: ${value}")
  endif()
endfunction()
execute_process(COMMAND dpkg --print-architecture OUTPUT_VARIABLE architecture
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
field_is(Package "^palladium$")
field_is(Version "^${VERSION}$")
field_is(Architecture "^${architecture}$")
field_is(Maintainer "^[^<]+ <[^@ ]+@[^@ ]+>$")
field_is(Description "^[^\n]+\n [^\n]+")
foreach(library libc6 libgcc-s1 "libstdc[+][+]6")
  field_is(Depends "(^|, )${library} [(]>= [0-9.]+[)]")
endforeach()
field_is(Depends "^[^:|]*$")
if(NOT package MATCHES "/palladium_${VERSION}_${architecture}.deb$")
  message(FATAL_ERROR "${package}")
endif()

execute_process(COMMAND dpkg-deb --contents ${package} OUTPUT_VARIABLE contents COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${contents}")
set(places "bin/palladium|include/palladium/.*[.](hpp|def)|libexec/palladium/palladium-compile|share/doc/palladium/.*")
string(APPEND places "|lib/${ARCHITECTURE}/(libpalladium[.]so.*|pkgconfig/palladium[.]pc|cmake/palladium/.*[.]cmake)")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^d" AND NOT line MATCHES "^[-l][^ ]+ root/root .* [.]/usr/(${places})( -> .*)?$")
    message(FATAL_ERROR "out of its place, or not root's: ${line}")
  endif()
endforeach()
set(root ${WORK}/root)
execute_process(COMMAND dpkg-deb --extract ${package} ${root} COMMAND_ERROR_IS_FATAL ANY)
set(libdir ${root}/usr/lib/${ARCHITECTURE})
foreach(file bin/palladium libexec/palladium/palladium-compile lib/${ARCHITECTURE}/libpalladium.so
    include/palladium/version.hpp share/doc/palladium/copyright share/doc/palladium/CHANGELOG.md
    share/doc/palladium/README.md share/doc/palladium/docs/index.md lib/${ARCHITECTURE}/pkgconfig/palladium.pc
    lib/${ARCHITECTURE}/cmake/palladium/palladiumConfig.cmake)
  if(NOT EXISTS ${root}/usr/${file})
    message(FATAL_ERROR "no ${file} in the package:\n${contents}")
  endif()
endforeach()
# The loader's cache learns of the library, and what other packages need of it has a name.
execute_process(COMMAND dpkg-deb --control ${package} ${WORK}/control COMMAND_ERROR_IS_FATAL ANY)
file(READ ${WORK}/control/postinst configured)
file(READ ${WORK}/control/shlibs shlibs)
if(NOT configured MATCHES "ldconfig" OR NOT shlibs MATCHES "^libpalladium [0-9.]+ palladium [(]>= ${VERSION}[)]")
  message(FATAL_ERROR "postinst: ${configured} shlibs: ${shlibs}")
endif()
foreach(file bin/palladium libexec/palladium/palladium-compile lib/${ARCHITECTURE}/libpalladium.so)
  execute_process(COMMAND ${NM} ${root}/usr/${file} OUTPUT_VARIABLE symbols ERROR_QUIET)
  if(symbols)
    message(FATAL_ERROR "${file} is not stripped")
  endif()
endforeach()

execute_process(COMMAND ${root}/usr/bin/palladium doctor --json OUTPUT_VARIABLE doctor ERROR_VARIABLE ignored)
string(JSON version GET "${doctor}" version)
string(FIND "${doctor}" "\"path\": \"${root}/usr/libexec/palladium/palladium-compile\"" helper)
if(helper EQUAL -1 OR NOT version STREQUAL VERSION)
  message(FATAL_ERROR "the packaged tool does not find its compile helper: ${doctor}")
endif()
set(compilers "")  # what is installed is tried with all of them
use_by_pkg_config(${libdir})

execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${root}/usr -DCMAKE_CXX_COMPILER=${COMPILER}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
# What is installed serves such a program as well: that is built and run for the package in a full run.
if(NOT DEFINED ENV{PALLADIUM_TEST_FULL})
  return()
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env PALLADIUM_TARGET=interpreter ${WORK}/build/consumer
  OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "^0.0900\n0.2447\n0.6652\n")
  message(FATAL_ERROR "prints ${printed}")
endif()
