/* What every table of the plugin boundary shares: the version rule, borrowed text, errors.
 *
 * The boundary is C. No exception and no C++ type crosses it. The C++ layer in dsv4/sdk/ turns it into ordinary C++.
 *
 * Version rule. A plugin is built against one DSV4_ABI_MAJOR.MINOR. The host loads it when the majors are equal and the
 * plugin's minor is not newer than the host's. A minor only appends: members at the end of a struct, enumerators at the
 * end of an enum. Nothing is moved, removed or given another meaning within a major.
 *
 * Struct rule. A struct that begins with `struct_size` may grow at its end; it has no padding there, so that a new
 * member always shows in struct_size. Whoever fills an input or a table sets struct_size to the sizeof it was compiled
 * with. For an output the caller sets struct_size to the capacity, and the callee writes at most that much and leaves
 * struct_size. A reader never touches a member beyond struct_size: DSV4_HAS_MEMBER tells. A function pointer that is
 * NULL or beyond struct_size means "not offered"; so does a call that answers DSV4_UNSUPPORTED. DSV4_HAS tests a
 * function pointer. All other structs have a fixed size within a major. Those that are held in arrays or inside other
 * structs and begin with struct_size all the same (dsv4_device_info, dsv4_weight, dsv4_state_layout, dsv4_sampling) are
 * of fixed size too: they grow into their `reserved` words, which are written 0. Arrays of anything else that grows
 * carry a stride.
 *
 * Pointer rule. Each pointer's comment states owner, lifetime and thread. Where none is stated: the caller owns what it
 * passes, it stays valid for the call only, and the callee copies what it keeps.
 */
#ifndef DSV4_ABI_H
#define DSV4_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSV4_ABI_MAJOR 1
#define DSV4_ABI_MINOR 0

/* The writer of *pointer knew the member. */
#define DSV4_HAS_MEMBER(pointer, member) ((pointer)->struct_size >= DSV4_MEMBER_END_(pointer, member))
/* The function of a table is offered. */
#define DSV4_HAS(pointer, member) (DSV4_HAS_MEMBER(pointer, member) && (pointer)->member != 0)
#define DSV4_MEMBER_END_(pointer, member)                                                                              \
    ((size_t)((const char*)&(pointer)->member - (const char*)(pointer)) + sizeof((pointer)->member))

/* UTF-8 text or raw bytes, not terminated. `data` may be NULL when size is 0. Borrowed unless said otherwise. */
typedef struct dsv4_str {
    const char* data;
    size_t size;
} dsv4_str;

/* What kind of mistake it was. Mirrors dsv4::Code. */
typedef enum dsv4_code {
    DSV4_OK = 0,
    DSV4_INVALID = 1,     /* the caller's input is wrong */
    DSV4_NOT_FOUND = 2,   /* a name, file or symbol does not exist */
    DSV4_UNSUPPORTED = 3, /* understood, and not offered here */
    DSV4_CORRUPT = 4,     /* data contradicts its own format */
    DSV4_EXHAUSTED = 5,   /* memory, pages or a limit ran out */
    DSV4_ENVIRONMENT = 6, /* the machine lacks something: device, driver, permission */
    DSV4_CANCELLED = 7,
    DSV4_DEADLINE = 8,
    DSV4_INTERNAL = 9 /* a defect of the callee */
} dsv4_code;

/* A failed call returns one; NULL means success. Created by the callee; the caller reads it and must call release once.
 * The texts live until then. Any thread. */
typedef struct dsv4_error dsv4_error;
struct dsv4_error {
    uint32_t struct_size;
    int32_t code;     /* dsv4_code, never DSV4_OK */
    dsv4_str message; /* one sentence that stands alone and names the thing */
    dsv4_str fix;     /* what to do about it; may be empty */
    void (*release)(dsv4_error* self);
};

#ifdef __cplusplus
}
#endif
#endif
