/* What a plugin library is: one exported function, one descriptor, one embedded manifest.
 *
 * File name: <name>.so, where <name> is "<kind>-<rest>" in lower case and equals dsv4_plugin.name.
 * Exports: dsv4_plugin_entry and nothing else.
 * Manifest: TOML in the ELF section ".dsv4.manifest" (docs/plugins.md has its schema). The host reads it without
 * loading the library; dsv4_plugin.manifest_sha256 must be the lower-case hex SHA-256 of exactly those bytes.
 *
 * Order of calls: dsv4_plugin_entry (once; pure: no device, no thread, no file) -> create (any number of times)
 * -> the functions of the instance's table -> destroy. A library is never unloaded after create succeeded once.
 */
#ifndef DSV4_PLUGIN_H
#define DSV4_PLUGIN_H

#include "dsv4/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dsv4_host;
struct dsv4_options;

/* What an instance does; names its table type. */
typedef enum dsv4_kind {
    DSV4_KIND_BACKEND = 1,   /* dsv4_backend_table,   dsv4/backend.h */
    DSV4_KIND_SPEC = 2,      /* dsv4_spec_table,      dsv4/spec.h */
    DSV4_KIND_PARSER = 3,    /* dsv4_parser_table,    dsv4/parser.h */
    DSV4_KIND_TRANSPORT = 4, /* dsv4_transport_table, dsv4/transport.h */
    DSV4_KIND_API = 5,       /* dsv4_api_table,       dsv4/api.h */
    DSV4_KIND_ENGINE = 6     /* dsv4_engine_table,    dsv4/engine.h */
} dsv4_kind;

typedef enum dsv4_plugin_status {
    DSV4_STATUS_WIP = 1, /* loads only when the pipeline says so */
    DSV4_STATUS_BETA = 2,
    DSV4_STATUS_STABLE = 3
} dsv4_plugin_status;

typedef enum dsv4_security_posture {
    DSV4_POSTURE_UNKNOWN = 0,
    DSV4_POSTURE_TRUSTED_INPUT = 1,  /* safe only with inputs the operator controls */
    DSV4_POSTURE_UNTRUSTED_INPUT = 2 /* robust to hostile input */
} dsv4_security_posture;

/* One living object of a plugin, filled by create. */
typedef struct dsv4_instance {
    uint32_t struct_size; /* set by the host: capacity */
    uint32_t reserved;
    void* self;                  /* owned by the plugin; first argument of every function of `table` */
    const void* table;           /* the kind's table; static or owned by self */
    void (*destroy)(void* self); /* host control thread, once, after the last call into `table` returned */
} dsv4_instance;

/* The descriptor. Static storage; read from any thread. */
typedef struct dsv4_plugin {
    uint32_t struct_size;
    uint16_t abi_major; /* DSV4_ABI_MAJOR the plugin was built with */
    uint16_t abi_minor;
    const char* name;    /* equal to the file's base name */
    const char* version; /* the plugin's own, "MAJOR.MINOR.PATCH" */
    const char* licence; /* SPDX expression */
    int32_t status;      /* dsv4_plugin_status */
    int32_t security_posture;
    const char* manifest_sha256; /* 64 hex digits */

    /* Makes an instance of `kind`. Host control thread. `host` outlives the instance. `options` holds the plugin's
     * options, checked against the manifest with defaults filled in, and lives for the call only; read them with the
     * host's option_* functions. On error nothing was made and `out` is untouched. A kind that the manifest does not
     * offer is DSV4_UNSUPPORTED. */
    dsv4_error* (*create)(const struct dsv4_host* host, int32_t kind, const struct dsv4_options* options,
                          dsv4_instance* out);
} dsv4_plugin;

/* The one exported symbol. Returns the descriptor, or NULL when the plugin refuses this host. Pure. */
typedef const dsv4_plugin* (*dsv4_plugin_entry_fn)(uint32_t host_abi_major, uint32_t host_abi_minor);
#define DSV4_PLUGIN_ENTRY_SYMBOL "dsv4_plugin_entry"

#ifdef __cplusplus
}
#endif
#endif
