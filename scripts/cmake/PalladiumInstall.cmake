# `cmake --install`: headers, libpalladium.so, its compile helper, the CLI, what find_package(palladium)
# and pkg-config read, and the documentation. What programs need when they run is the component
# palladium_runtime, the rest palladium_development. A Debian package keeps libraries in a folder of
# their architecture: its files are the component palladium_debian, which nothing but cpack installs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

write_basic_package_version_file(${PROJECT_BINARY_DIR}/palladiumConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

# All of it, with the library in <libdir>, as components <runtime> and <development>; words that follow
# go to every install().
function(palladium_install libdir runtime development)
  install(TARGETS palladium_library EXPORT ${development}
    LIBRARY DESTINATION ${libdir} COMPONENT ${runtime} NAMELINK_COMPONENT ${development} ${ARGN})
  # Where codegen/nvrtc looks for it.
  install(TARGETS palladium_compile
    RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/palladium COMPONENT ${runtime} ${ARGN})
  if(TARGET palladium_cli)
    install(TARGETS palladium_cli
      RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${runtime} ${ARGN})
  endif()

  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/palladium
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${development} ${ARGN}
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.def")
  install(EXPORT ${development} FILE palladiumConfig.cmake NAMESPACE palladium::
    DESTINATION ${libdir}/cmake/palladium COMPONENT ${development} ${ARGN})
  install(FILES ${PROJECT_BINARY_DIR}/palladiumConfigVersion.cmake
    DESTINATION ${libdir}/cmake/palladium COMPONENT ${development} ${ARGN})
  file(RELATIVE_PATH prefix_from_pc /prefix/${libdir}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
  configure_file(${PROJECT_SOURCE_DIR}/scripts/cmake/palladium.pc.in
    ${PROJECT_BINARY_DIR}/${development}/palladium.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${development}/palladium.pc
    DESTINATION ${libdir}/pkgconfig COMPONENT ${development} ${ARGN})

  set(documentation ${CMAKE_INSTALL_DATAROOTDIR}/doc/palladium)
  install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    DESTINATION ${documentation} COMPONENT ${development} ${ARGN})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs
    DESTINATION ${documentation} COMPONENT ${development} ${ARGN}
    FILES_MATCHING PATTERN "*.md")
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright
    DESTINATION ${documentation} COMPONENT ${runtime} ${ARGN})
endfunction()

file(RELATIVE_PATH libdir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
palladium_install(${libdir} palladium_runtime palladium_development)
set(debian_libdir lib/${CMAKE_LIBRARY_ARCHITECTURE})
palladium_install(${debian_libdir} palladium_debian palladium_debian EXCLUDE_FROM_ALL)
if(TARGET palladium_cli)
  set_target_properties(palladium_cli PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${libdir};$ORIGIN/../${debian_libdir}")
endif()
