# Compile settings that hold for every target of this build: language level, warnings, sanitizers, linker, cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Where built plugins land: beside the program, so that a build tree runs without installing.
set(DSV4_PLUGIN_OUTPUT_DIR ${CMAKE_BINARY_DIR}/lib/dsv4/plugins)
set(DSV4_PLUGIN_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/dsv4/plugins)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_library(dsv4_warnings INTERFACE)
target_compile_options(dsv4_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  $<$<BOOL:${DSV4_WERROR}>:-Werror>)
# gcc 12 sees overlaps in operator+ of std::string that are not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(dsv4_warnings INTERFACE -Wno-restrict)
endif()
# Results must not depend on what the compiler fuses: one rounding for each written operation.
add_compile_options(-ffp-contract=off)

if(DSV4_FUZZ)
  set(DSV4_SANITIZE "fuzzer-no-link,address,undefined" CACHE STRING "" FORCE)
endif()
if(DSV4_SANITIZE)
  add_compile_options(-fsanitize=${DSV4_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${DSV4_SANITIZE})
endif()

find_program(DSV4_CCACHE ccache)
if(DSV4_CCACHE)
  # Paths below the source folder are cached relative to it, so that a second clone finds what the first compiled.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DSV4_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
find_program(DSV4_MOLD mold)
if(DSV4_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
