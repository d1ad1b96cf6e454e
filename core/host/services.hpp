// The model services that a program run may offer to plugins, as interfaces that the core's other parts implement.
#pragma once

#include "dsv4/generate.h"
#include "dsv4/host.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::host {

// Errors are Failure exceptions. Any thread. See dsv4_lowering_service.
class Lowering {
  public:
    virtual ~Lowering() = default;
    // The binary form of a Program fragment for the layer whose weights start with `prefix`.
    virtual std::string lower_layer(std::string_view prefix, std::string_view options_json) = 0;
    // Lives as long as this object.
    virtual std::string_view config_json() const noexcept = 0;
};

// Errors are Failure exceptions. Threads and lifetimes as in dsv4_generate_service.
class Generate {
  public:
    virtual ~Generate() = default;
    virtual dsv4_request_handle* submit(const dsv4_generate_request& request) = 0;
    virtual void on_events(dsv4_request_handle* request, void (*wake)(void* arg), void* arg) noexcept = 0;
    // Null when there is no event within timeout_us.
    virtual const dsv4_event* next(dsv4_request_handle* request, std::uint64_t timeout_us) = 0;
    virtual void cancel(dsv4_request_handle* request) noexcept = 0;
    virtual void release(dsv4_request_handle* request) noexcept = 0;
    virtual std::vector<std::int32_t> tokenize(const dsv4_chat_request& chat) = 0;
    virtual std::string describe() = 0; // JSON
};

} // namespace dsv4::host
