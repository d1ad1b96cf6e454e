# dsv4_add_test(NAME SOURCES... [LIBS ...] [LABELS ...]): one Catch2 program, its cases registered with ctest one by one.
# A test reads its data from DSV4_SOURCE_DIR and built plugins from DSV4_PLUGIN_DIR, both compiled in.
find_package(Catch2 REQUIRED)
include(Catch)
add_library(dsv4_catch_main OBJECT ${CMAKE_SOURCE_DIR}/tests/support/catch_main.cpp)
if(TARGET Catch2::Catch2WithMain)
  target_link_libraries(dsv4_catch_main PUBLIC Catch2::Catch2WithMain)
else()
  target_link_libraries(dsv4_catch_main PUBLIC Catch2::Catch2)
endif()

function(dsv4_add_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE dsv4_catch_main dsv4_warnings ${arg_LIBS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE DSV4_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    DSV4_PLUGIN_DIR="${DSV4_PLUGIN_OUTPUT_DIR}" DSV4_BINARY_DIR="${CMAKE_BINARY_DIR}")
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}: " PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300)
endfunction()
