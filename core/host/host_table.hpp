// The C table through which one plugin instance reaches the host.
#pragma once

#include "core/host/host.hpp"
#include "core/host/option_values.hpp"
#include "dsv4/host.h"

#include <string>

namespace dsv4::host {

// Its address is the table's ctx, so it does not move. A service that the host has when this is made is in the table,
// the others are NULL. Grammars are offered by no part yet, so their service is NULL.
class HostTable {
  public:
    HostTable(Host& host, std::string plugin_name);
    HostTable(const HostTable&) = delete;
    HostTable& operator=(const HostTable&) = delete;

    const dsv4_host* table() const noexcept { return &table_; }
    Host& host() noexcept { return host_; }
    const std::string& plugin_name() const noexcept { return plugin_name_; }

  private:
    Host& host_;
    std::string plugin_name_;
    dsv4_tokenizer_service tokenizer_{};
    dsv4_lowering_service lowering_{};
    dsv4_generate_service generate_{};
    dsv4_host table_{};
};

// What create passes on; valid while `values` lives and does not change.
const dsv4_options* as_options(const OptionValues& values) noexcept;

// The services' functions; their ctx is a HostTable.
dsv4_tokenizer_service tokenizer_service(const tokenizer::Tokenizer& tokenizer);
dsv4_lowering_service lowering_service();
dsv4_generate_service generate_service();

} // namespace dsv4::host
