# dsv4_add_plugin(NAME kind-name SOURCES ... [MANIFEST manifest.toml] [LIBS ...]): builds one plugin library.
#
# The manifest becomes the ELF section .dsv4.manifest, readable without loading the library; its SHA-256 is compiled into
# the descriptor (DSV4_MANIFEST_SHA256) so that the loader can hold the two equal. Only dsv4_plugin_entry is exported.
# Used by the bundled plugins and, through find_package(dsv4), by everyone else's.
set(DSV4_SDK_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(dsv4_add_plugin)
  cmake_parse_arguments(arg "" "NAME;MANIFEST" "SOURCES;LIBS" ${ARGN})
  if(NOT arg_NAME MATCHES "^(backend|spec|parser|transport|api|engine)-[a-z0-9-]+$")
    message(FATAL_ERROR "dsv4_add_plugin: NAME '${arg_NAME}' must be <kind>-<name>, kind one of backend, spec, parser, "
      "transport, api, engine, in lower case")
  endif()
  if(NOT arg_MANIFEST)
    set(arg_MANIFEST manifest.toml)
  endif()
  get_filename_component(manifest ${arg_MANIFEST} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT EXISTS ${manifest})
    message(FATAL_ERROR "dsv4_add_plugin(${arg_NAME}): no manifest at ${manifest}")
  endif()
  file(SHA256 ${manifest} sha256)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})

  string(REPLACE "-" "_" target "${arg_NAME}")
  set(target dsv4_plugin_${target})
  set(embed ${CMAKE_CURRENT_BINARY_DIR}/${target}_manifest.cpp)
  file(CONFIGURE OUTPUT ${embed} @ONLY CONTENT
    "// Generated: embeds @manifest@ (@sha256@).
__asm__(\".pushsection .dsv4.manifest,\\\"a\\\",@progbits\\n.incbin \\\"@manifest@\\\"\\n.popsection\\n\");
")
  set_source_files_properties(${embed} PROPERTIES OBJECT_DEPENDS ${manifest})

  add_library(${target} MODULE ${arg_SOURCES} ${embed})
  target_link_libraries(${target} PRIVATE dsv4::sdk ${arg_LIBS})
  target_compile_definitions(${target} PRIVATE DSV4_PLUGIN_NAME="${arg_NAME}" DSV4_MANIFEST_SHA256="${sha256}")
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${arg_NAME}
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_options(${target} PRIVATE -Wl,--version-script=${DSV4_SDK_CMAKE_DIR}/plugin.map -Wl,-z,relro,-z,now)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${DSV4_SDK_CMAKE_DIR}/plugin.map)
  # Sanitizer runtimes are resolved from the host program, so undefined symbols are checked in plain builds only.
  if(NOT DSV4_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  if(DSV4_PLUGIN_OUTPUT_DIR)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${DSV4_PLUGIN_OUTPUT_DIR})
  endif()
endfunction()
