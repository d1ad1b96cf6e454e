/* The foreign engine contract: a serving plan to a launch of another engine, watched as a child process by the host. */
#ifndef DSV4_ENGINE_H
#define DSV4_ENGINE_H

#include "dsv4/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsv4_variable {
    dsv4_str name;
    dsv4_str value; /* "env:NAME" or "file:PATH" for secrets, resolved by the host at start */
} dsv4_variable;

typedef struct dsv4_file {
    dsv4_str path; /* relative to the launch's working directory */
    dsv4_str text;
} dsv4_file;

/* One process. */
typedef struct dsv4_process {
    uint32_t struct_size;
    int32_t node;
    const dsv4_str* argv;
    uint32_t argc;
    const dsv4_variable* environment; /* added to a cleared environment */
    uint32_t environment_count;
    const dsv4_file* files;
    uint32_t file_count;
    dsv4_str endpoint;    /* its HTTP address, or empty */
    dsv4_str health_path; /* "/health" */
    uint32_t ready_timeout_s;
    uint32_t reserved;
} dsv4_process;

/* Owned by the plugin; lives until launch_release. */
typedef struct dsv4_launch {
    uint32_t struct_size;
    const dsv4_process* processes; /* in start order */
    uint32_t process_count;
    uint32_t process_bytes; /* stride */
    dsv4_str endpoint;      /* where clients go */
    dsv4_str metrics_url;
} dsv4_launch;

/* Any thread; starts nothing itself. */
typedef struct dsv4_engine_table {
    uint32_t struct_size;
    /* `plan_json` is the canonical JSON of the serving plan (docs/contracts.md). DSV4_UNSUPPORTED names the field that
     * this engine cannot express. */
    dsv4_error* (*launch)(void* self, dsv4_str plan_json, const dsv4_launch** out);
    void (*launch_release)(void* self, const dsv4_launch* launch);
    /* The version text that `argv --version` printed, to "MAJOR.MINOR.PATCH"; lives until the next call. */
    dsv4_error* (*parse_version)(void* self, dsv4_str output, dsv4_str* out);
} dsv4_engine_table;

#ifdef __cplusplus
}
#endif
#endif
