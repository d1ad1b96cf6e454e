// The host's functions, as simple as the plugin allows.
#include "tests/api_openai/fake_host.hpp"

#include "dsv4/sdk/error.hpp"

#include <toml++/toml.h>

#include <dlfcn.h>

#include <chrono>
#include <cstring>
#include <stdexcept>

namespace dsv4::test {
namespace {

using sdk::str;
using sdk::view;

std::int64_t size_bytes(const std::string& text) {
    std::size_t end = 0;
    const std::int64_t number = std::stoll(text, &end);
    const std::string unit = text.substr(end);
    return number << (unit == " KiB" ? 10 : unit == " MiB" ? 20 : unit == " GiB" ? 30 : 0);
}

void load_defaults(dsv4_options& options) {
    const auto manifest = toml::parse_file(std::string(DSV4_SOURCE_DIR "/knowledge/plugins/api-openai.toml"));
    for (const auto& node : *manifest["option"].as_array()) {
        const toml::table& option = *node.as_table();
        const std::string name = *option["name"].value<std::string>();
        const std::string type = *option["type"].value<std::string>();
        const auto value = option["default"];
        if (type == "bool")
            options.values[name] = *value.value<bool>();
        else if (type == "int")
            options.values[name] = *value.value<std::int64_t>();
        else if (type == "float")
            options.values[name] = *value.value<double>();
        else if (type == "size")
            options.values[name] = size_bytes(*value.value<std::string>());
        else
            options.values[name] = *value.value<std::string>();
    }
}

template <class T> dsv4_error* get(const dsv4_options* options, dsv4_str name, T* out) {
    const auto it = options->values.find(std::string(view(name)));
    if (it == options->values.end())
        return sdk::make_error({Code::not_found, "no option " + std::string(view(name)), {}});
    if (const auto* value = std::get_if<T>(&it->second)) {
        *out = *value;
        return nullptr;
    }
    return sdk::make_error({Code::invalid, "wrong type of " + std::string(view(name)), {}});
}

} // namespace

struct HostFunctions {
    static FakeHost& host(void* ctx) { return *static_cast<FakeContext*>(ctx)->host; }
};

FakeHost::FakeHost(FakeService* service) : context_{service, this} {
    load_defaults(options);
    options.values["port"] = std::int64_t{0};
    table_.struct_size = sizeof table_;
    table_.abi_major = DSV4_ABI_MAJOR;
    table_.abi_minor = DSV4_ABI_MINOR;
    table_.ctx = &context_;
    table_.option_string = [](const dsv4_options* o, dsv4_str name, dsv4_str* out) -> dsv4_error* {
        const auto it = o->values.find(std::string(view(name)));
        if (it == o->values.end() || !std::holds_alternative<std::string>(it->second))
            return sdk::make_error({Code::not_found, "no text option " + std::string(view(name)), {}});
        *out = str(std::get<std::string>(it->second));
        return nullptr;
    };
    table_.option_int = [](const dsv4_options* o, dsv4_str name, std::int64_t* out) { return get(o, name, out); };
    table_.option_float = [](const dsv4_options* o, dsv4_str name, double* out) { return get(o, name, out); };
    table_.option_bool = [](const dsv4_options* o, dsv4_str name, std::int32_t* out) {
        bool value = false;
        dsv4_error* error = get(o, name, &value);
        *out = value;
        return error;
    };
    table_.log = [](void* ctx, std::int32_t, dsv4_str message) {
        FakeHost& h = HostFunctions::host(ctx);
        const std::lock_guard lock(h.mutex_);
        h.log_.emplace_back(view(message));
    };
    table_.monotonic_us = [](void*) {
        return std::uint64_t(
            std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
                .count());
    };
    table_.unix_us = [](void*) { return std::uint64_t{1'785'000'000'000'000}; };
    table_.secret = [](void* ctx, dsv4_str reference, char** out, std::size_t* size) -> dsv4_error* {
        FakeHost& h = HostFunctions::host(ctx);
        const auto it = h.secrets.find(std::string(view(reference)));
        if (it == h.secrets.end()) return sdk::make_error({Code::not_found, "no such secret", {}});
        *size = it->second.size();
        *out = new char[*size + 1];
        std::memcpy(*out, it->second.data(), *size);
        return nullptr;
    };
    table_.secret_release = [](void*, char* text, std::size_t) { delete[] text; };
    table_.thread_count = [](void*) -> std::uint32_t { return 1; };
    table_.metric = [](void* ctx, std::int32_t, dsv4_str name, dsv4_str, const dsv4_label* labels, std::size_t count) {
        FakeHost& h = HostFunctions::host(ctx);
        std::string key(view(name));
        for (std::size_t i = 0; i < count; ++i)
            key += (i ? "," : "{") + std::string(view(labels[i].name)) + "=" + std::string(view(labels[i].value));
        if (count) key += "}";
        const std::lock_guard lock(h.mutex_);
        return reinterpret_cast<dsv4_metric*>(&h.metrics_[key]);
    };
    table_.metric_update = [](void* ctx, dsv4_metric* metric, double value) {
        FakeHost& h = HostFunctions::host(ctx);
        const std::lock_guard lock(h.mutex_);
        *reinterpret_cast<double*>(metric) += value;
    };
    table_.metrics_expose = [](void*, void (*sink)(void*, dsv4_str), void* arg) {
        sink(arg, str("# TYPE a gauge\n"));
        sink(arg, str("a 1\n"));
    };
    tokenizer_.struct_size = sizeof tokenizer_;
    tokenizer_.vocab_size = std::uint32_t(256 + control_names.size());
    tokenizer_.encode = [](void*, dsv4_str text, std::int32_t* ids, std::size_t capacity,
                           std::size_t* count) -> dsv4_error* {
        *count = text.size;
        for (std::size_t i = 0; i < text.size && i < capacity; ++i) ids[i] = static_cast<unsigned char>(text.data[i]);
        return nullptr;
    };
    tokenizer_.control_id = [](void*, dsv4_str name) -> std::int32_t {
        for (std::size_t i = 0; i < control_names.size(); ++i)
            if (control_names[i] == view(name)) return std::int32_t(256 + i);
        return -1;
    };
    tokenizer_.bytes = [](void*, std::int32_t id) {
        static const std::string bytes = [] {
            std::string all;
            for (int i = 0; i < 256; ++i) all += char(i);
            return all;
        }();
        if (id >= 256) return str(control_names[std::size_t(id) - 256]);
        return dsv4_str{bytes.data() + id, 1};
    };
    tokenizer_.is_control = [](void*, std::int32_t id) -> std::int32_t { return id >= 256; };
    table_.tokenizer = &tokenizer_;
    grammar_.struct_size = sizeof grammar_;
    if (service) table_.generate = &FakeService::table();
}

double FakeHost::metric(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto it = metrics_.find(key);
    return it == metrics_.end() ? -1 : it->second;
}
std::vector<std::string> FakeHost::log() const {
    const std::lock_guard lock(mutex_);
    return log_;
}

LoadedApi::LoadedApi(FakeHost& host) {
    const std::string path = std::string(DSV4_PLUGIN_DIR) + "/api-openai.so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // never unloaded, as in the real host
    if (!library) throw std::runtime_error(dlerror());
    const auto entry = reinterpret_cast<dsv4_plugin_entry_fn>(dlsym(library, DSV4_PLUGIN_ENTRY_SYMBOL));
    if (!entry) throw std::runtime_error("no entry");
    instance_.struct_size = sizeof instance_;
    dsv4_error* error =
        entry(DSV4_ABI_MAJOR, DSV4_ABI_MINOR)->create(host.table(), DSV4_KIND_API, &host.options, &instance_);
    if (error) throw std::runtime_error(sdk::take_error(error).message);
}

LoadedApi::~LoadedApi() {
    if (started_) stop();
    instance_.destroy(instance_.self);
}

std::uint16_t LoadedApi::start() {
    if (dsv4_error* error = table().start(self())) throw std::runtime_error(sdk::take_error(error).message);
    started_ = true;
    const std::string endpoint(view(table().endpoint(self())));
    return std::uint16_t(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

void LoadedApi::drain(std::uint64_t from_now_us) {
    const auto now =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    if (dsv4_error* error = table().drain(self(), std::uint64_t(now) + from_now_us))
        throw std::runtime_error(sdk::take_error(error).message);
}

void LoadedApi::stop() {
    table().stop(self());
    started_ = false;
}

} // namespace dsv4::test
