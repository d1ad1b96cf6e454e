// The wrapped backend: its library, its instance and its sessions.
#pragma once

#include "dsv4/backend.h"
#include "dsv4/host.h"
#include "dsv4/plugin.h"

#include <memory>
#include <string>

namespace dsv4::wrong {

// Loads the library and makes an instance. The library stays loaded.
class Inner {
  public:
    Inner(const std::string& path, const dsv4_host& host, const std::string& accumulate);
    ~Inner();
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

    const dsv4_backend_table& table() const { return *static_cast<const dsv4_backend_table*>(instance_.table); }
    void* self() const { return instance_.self; }

  private:
    dsv4_host host_; // the real one, but for the options
    dsv4_instance instance_{};
};

// Closed with its last owner, so that executables end before it does.
class InnerSession {
  public:
    InnerSession(const Inner& inner, const dsv4_session_config& config);
    ~InnerSession();
    InnerSession(const InnerSession&) = delete;
    InnerSession& operator=(const InnerSession&) = delete;

    const dsv4_backend_table& table() const { return table_; }
    dsv4_session* raw() const { return session_; }

  private:
    const dsv4_backend_table& table_;
    dsv4_session* session_ = nullptr;
};

} // namespace dsv4::wrong
