// backend-wrong: backend-cpu with one mistake, chosen by options.
#include "session.hpp"

namespace dsv4::wrong {
namespace {

class WrongBackend final : public sdk::Backend {
  public:
    WrongBackend(const sdk::Host& host, const sdk::Options& options)
        : inner_(options.text("inner"), *host.table(), options.text("accumulate")) {
        settings_.mistake = mistake_named(options.text("mistake"));
        settings_.op = options.text("op");
        settings_.precision = options.text("precision");
        settings_.rows = options.text("rows");
        settings_.slot = options.integer("slot");
    }

    std::span<const dsv4_device_info> devices() override {
        const dsv4_device_info* list = nullptr;
        std::uint32_t count = 0;
        sdk::check(inner_.table().devices(inner_.self(), &list, &count));
        return {list, count};
    }
    void supports(const program::Program& program) override {
        sdk::check(inner_.table().supports(inner_.self(), sdk::str(program::encode(program))));
    }
    std::vector<dsv4_state_layout> state_layouts(const program::Program& program) override {
        const std::string bytes = program::encode(program);
        std::vector<dsv4_state_layout> layouts(DSV4_STATE_KIND_COUNT);
        std::uint32_t count = 0;
        sdk::check(inner_.table().state_layouts(inner_.self(), sdk::str(bytes), layouts.data(),
                                                std::uint32_t(layouts.size()), &count));
        layouts.resize(count);
        return layouts;
    }
    std::unique_ptr<sdk::Session> open(const dsv4_session_config& config) override {
        return std::make_unique<Session>(std::make_shared<InnerSession>(inner_, config), settings_);
    }

  private:
    Inner inner_;
    Settings settings_;
};

} // namespace
} // namespace dsv4::wrong

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0", .licence = "Apache-2.0"}), dsv4::wrong::WrongBackend)
