// Loads the built plugin library with dlopen and a host table of this file's own: nothing of the core takes part.
#pragma once

#include "tests/support/catch.hpp"

#include "dsv4/host.h"
#include "dsv4/parser.h"
#include "dsv4/plugin.h"

#include <dlfcn.h>

#include <map>
#include <string>

// The options as a host would pass them; the type is the host's own.
struct dsv4_options {
    std::map<std::string, std::string> texts;
    std::map<std::string, std::int64_t> numbers;
    std::map<std::string, bool> flags;
};

namespace dsv4::test {

// The code of a boundary error, which is released; DSV4_OK for NULL. Every error must say something.
inline std::int32_t error_code(dsv4_error* error) {
    if (!error) return DSV4_OK;
    const std::int32_t code = error->code;
    CHECK(error->message.size > 0);
    error->release(error);
    return code;
}

class LoadedParser {
  public:
    LoadedParser() {
        const std::string path = std::string(DSV4_PLUGIN_DIR) + "/parser-deepseek-v4.so";
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // never unloaded, as in the real host
        INFO(path);
        REQUIRE(library != nullptr);
        const auto entry = reinterpret_cast<dsv4_plugin_entry_fn>(dlsym(library, DSV4_PLUGIN_ENTRY_SYMBOL));
        REQUIRE(entry != nullptr);
        descriptor_ = entry(DSV4_ABI_MAJOR, DSV4_ABI_MINOR);
        REQUIRE(descriptor_ != nullptr);
        options_.texts["encoding"] = "v4-0731";
        options_.numbers["buffer_limit_bytes"] = 16 << 20;
        options_.flags["strict_reasoning"] = options_.flags["response_format_in_prompt"] = false;
        host_.struct_size = sizeof host_;
        host_.abi_major = DSV4_ABI_MAJOR;
        host_.abi_minor = DSV4_ABI_MINOR;
        host_.option_string = [](const dsv4_options* o, dsv4_str name, dsv4_str* out) -> dsv4_error* {
            const std::string& value = o->texts.at(std::string(name.data, name.size));
            *out = {value.data(), value.size()};
            return nullptr;
        };
        host_.option_int = [](const dsv4_options* o, dsv4_str name, std::int64_t* out) -> dsv4_error* {
            *out = o->numbers.at(std::string(name.data, name.size));
            return nullptr;
        };
        host_.option_bool = [](const dsv4_options* o, dsv4_str name, std::int32_t* out) -> dsv4_error* {
            *out = o->flags.at(std::string(name.data, name.size));
            return nullptr;
        };
        host_.ctx = &metrics_;
        host_.metric = [](void* ctx, std::int32_t kind, dsv4_str name, dsv4_str, const dsv4_label*, std::size_t) {
            CHECK(kind == DSV4_METRIC_COUNTER);
            auto& metrics = *static_cast<std::map<std::string, double>*>(ctx);
            return reinterpret_cast<dsv4_metric*>(&metrics[std::string(name.data, name.size)]);
        };
        host_.metric_update = [](void*, dsv4_metric* metric, double value) {
            *reinterpret_cast<double*>(metric) += value;
        };
        instance_.struct_size = sizeof instance_;
        REQUIRE(create(DSV4_KIND_PARSER, &instance_) == nullptr);
    }
    ~LoadedParser() { instance_.destroy(instance_.self); }
    LoadedParser(const LoadedParser&) = delete;
    LoadedParser& operator=(const LoadedParser&) = delete;

    dsv4_error* create(std::int32_t kind, dsv4_instance* out) {
        return descriptor_->create(&host_, kind, &options_, out);
    }
    const dsv4_plugin& descriptor() const { return *descriptor_; }
    dsv4_options& options() { return options_; } // for further instances
    const dsv4_parser_table& table() const { return *static_cast<const dsv4_parser_table*>(instance_.table); }
    double metric(const std::string& name) const { return metrics_.at(name); }
    void* self() const { return instance_.self; }

  private:
    const dsv4_plugin* descriptor_ = nullptr;
    dsv4_options options_;
    std::map<std::string, double> metrics_; // a map's values stay where they are
    dsv4_host host_{};
    dsv4_instance instance_{};
};

} // namespace dsv4::test
