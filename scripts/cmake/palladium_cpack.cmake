# Read by cpack once for each kind of package: a .deb holds the files that are laid out for it.
list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build_folder)
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_INSTALL_CMAKE_PROJECTS ${build_folder} palladium palladium_debian /)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
else()
  set(CPACK_INSTALL_CMAKE_PROJECTS ${build_folder} palladium palladium_runtime / ${build_folder} palladium
    palladium_development /)
endif()
