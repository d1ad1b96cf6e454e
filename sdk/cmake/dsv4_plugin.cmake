# dsv4_add_plugin(NAME kind-name SOURCES ... [MANIFEST manifest.toml] [LIBS ...]): builds one plugin library.
#
# The manifest becomes the ELF section .dsv4.manifest, readable without loading the library; its SHA-256 is compiled into
# the descriptor (DSV4_MANIFEST_SHA256) so that the loader can hold the two equal. Only dsv4_plugin_entry is exported.
# The target is dsv4_plugin_<name with underscores>. Used by the bundled plugins and, through find_package(dsv4), by
# everyone else's.

# Writes `out`, a source file whose only content is the manifest's bytes in the section.
function(_dsv4_embed_manifest manifest out)
  file(SIZE ${manifest} bytes)
  if(bytes EQUAL 0 OR bytes GREATER 1048576)
    message(FATAL_ERROR "dsv4_add_plugin: ${manifest} has ${bytes} bytes; a manifest has 1 to 1048576")
  endif()
  file(READ ${manifest} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(REGEX REPLACE "(0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],)" "\\1\n" hex "${hex}")
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
"/* Generated from the plugin's manifest. `retain` keeps the section where the linker collects garbage. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define DSV4_KEEP __attribute__((section(\".dsv4.manifest\"), used, retain, aligned(1)))
#endif
#endif
#ifndef DSV4_KEEP
#define DSV4_KEEP __attribute__((section(\".dsv4.manifest\"), used, aligned(1)))
#endif
DSV4_KEEP static const unsigned char dsv4_manifest[] = {
@hex@};
")
  # A sanitizer would put its red zones into the section.
  set_source_files_properties(${out} PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
endfunction()

function(dsv4_add_plugin)
  cmake_parse_arguments(arg "" "NAME;MANIFEST" "SOURCES;LIBS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dsv4_add_plugin: unknown arguments '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_NAME MATCHES "^(backend|spec|parser|transport|api|engine)-[a-z0-9][a-z0-9-]*$")
    message(FATAL_ERROR "dsv4_add_plugin: NAME '${arg_NAME}' must be <kind>-<name>, kind one of backend, spec, parser, "
      "transport, api, engine, in lower case")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "dsv4_add_plugin(${arg_NAME}): SOURCES is empty")
  endif()
  if(NOT arg_MANIFEST)
    set(arg_MANIFEST manifest.toml)
  endif()
  get_filename_component(manifest ${arg_MANIFEST} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT EXISTS ${manifest})
    message(FATAL_ERROR "dsv4_add_plugin(${arg_NAME}): no manifest at ${manifest}")
  endif()
  # A changed manifest configures again, so bytes and hash always belong together.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})
  file(SHA256 ${manifest} sha256)

  string(REPLACE "-" "_" target "${arg_NAME}")
  set(target dsv4_plugin_${target})
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(extension c)
  if(CXX IN_LIST languages)
    set(extension cpp)
  endif()
  set(embed ${CMAKE_CURRENT_BINARY_DIR}/${target}_manifest.${extension})
  _dsv4_embed_manifest(${manifest} ${embed})

  add_library(${target} MODULE ${arg_SOURCES} ${embed})
  set_property(GLOBAL APPEND PROPERTY DSV4_PLUGIN_TARGETS ${target})
  target_link_libraries(${target} PRIVATE dsv4::sdk ${arg_LIBS})
  target_compile_definitions(${target} PRIVATE DSV4_PLUGIN_NAME="${arg_NAME}" DSV4_MANIFEST_SHA256="${sha256}")
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${arg_NAME} SUFFIX ".so"
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-z,relro,-z,now)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  # Sanitizer runtimes are resolved from the host program, so undefined symbols are checked in plain builds only.
  if(NOT DSV4_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  if(DSV4_PLUGIN_OUTPUT_DIR)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${DSV4_PLUGIN_OUTPUT_DIR})
  endif()
endfunction()
