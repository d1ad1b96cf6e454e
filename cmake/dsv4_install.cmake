# What `cmake --install` puts where: the program, its plugins and data, the plugin SDK, and the CMake package `dsv4`.
include(CMakePackageConfigHelpers)
set(DSV4_DATA_INSTALL_DIR ${CMAKE_INSTALL_DATADIR}/dsv4)
set(DSV4_PACKAGE_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/dsv4)

# The plugin SDK: headers and the package.
install(TARGETS dsv4_sdk EXPORT dsv4Targets)
install(DIRECTORY sdk/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk)
install(EXPORT dsv4Targets NAMESPACE dsv4:: DESTINATION ${DSV4_PACKAGE_INSTALL_DIR} COMPONENT sdk)
install(FILES sdk/cmake/dsv4_plugin.cmake sdk/cmake/plugin.map DESTINATION ${DSV4_PACKAGE_INSTALL_DIR} COMPONENT sdk)
set(DSV4_PROGRAM_NAME ${CMAKE_INSTALL_BINDIR}/dsv4)
configure_package_config_file(sdk/cmake/dsv4Config.cmake.in ${CMAKE_BINARY_DIR}/dsv4Config.cmake
  INSTALL_DESTINATION ${DSV4_PACKAGE_INSTALL_DIR} PATH_VARS DSV4_PROGRAM_NAME DSV4_PLUGIN_INSTALL_DIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/dsv4ConfigVersion.cmake VERSION ${PROJECT_VERSION}
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_BINARY_DIR}/dsv4Config.cmake ${CMAKE_BINARY_DIR}/dsv4ConfigVersion.cmake
  DESTINATION ${DSV4_PACKAGE_INSTALL_DIR} COMPONENT sdk)

# The program and the bundled plugins. Plugins that tests build for themselves are written elsewhere and stay behind.
if(TARGET dsv4)
  install(TARGETS dsv4 RUNTIME COMPONENT program)
endif()
get_property(plugin_targets GLOBAL PROPERTY DSV4_PLUGIN_TARGETS)
foreach(plugin IN LISTS plugin_targets)
  get_target_property(directory ${plugin} LIBRARY_OUTPUT_DIRECTORY)
  if(directory STREQUAL DSV4_PLUGIN_OUTPUT_DIR)
    install(TARGETS ${plugin} LIBRARY DESTINATION ${DSV4_PLUGIN_INSTALL_DIR} COMPONENT program)
  endif()
endforeach()

# Data and documents.
foreach(data pipelines models knowledge)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${data})
    install(DIRECTORY ${data} DESTINATION ${DSV4_DATA_INSTALL_DIR} COMPONENT program)
  endif()
endforeach()
install(DIRECTORY examples DESTINATION ${DSV4_DATA_INSTALL_DIR} COMPONENT sdk)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
