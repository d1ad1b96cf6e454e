// A serving plan brought to life: checkpoint, plugins, weights and engine of one rank, in the order that their
// lifetimes need.
#pragma once

#include "core/checkpoint/checkpoint.hpp"
#include "core/engine/engine.hpp"
#include "core/host/host.hpp"
#include "core/lower/weight_table.hpp"
#include "core/plan/serving_plan.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/registry.hpp"
#include "core/runtime/backend_session.hpp"

#include <functional>
#include <memory>
#include <string>

namespace dsv4::runtime {

struct DeploymentOptions {
    host::LogOptions log;
    // The api plugin takes requests for any model name: there is one model and no list to pick from.
    bool any_model = false;
    // While weights stream in; false cancels.
    std::function<bool(const checkpoint::Progress&)> progress;
};

// Built and destroyed on the control thread. Throws Failure where the plan asks for what this build or machine lacks.
class Deployment {
  public:
    Deployment(plan::ServingPlan plan, DeploymentOptions options = {});
    ~Deployment();
    Deployment(const Deployment&) = delete;
    Deployment& operator=(const Deployment&) = delete;

    const plan::ServingPlan& plan() const noexcept { return plan_; }
    const checkpoint::Checkpoint& checkpoint() const noexcept { return *checkpoint_; }
    host::Host& host() noexcept { return host_; }
    engine::Engine& engine() noexcept { return *engine_; }
    // The plan's api plugin, made on first use.
    const plugin::Instance& api();

  private:
    class Metrics;
    class Generate;

    plugin::Instance make(const std::string& name, plugin::Kind kind, plan::Options options);
    plugin::Instance make_parser();
    void open_engine(const std::function<bool(const checkpoint::Progress&)>& progress);

    plan::ServingPlan plan_;
    const bool any_model_;
    host::Host host_;
    plugin::Registry registry_;
    std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
    std::unique_ptr<Metrics> metrics_;
    std::unique_ptr<plugin::Instance> parser_, backend_;
    std::unique_ptr<BackendSession> session_;
    std::unique_ptr<engine::Engine> engine_;
    std::unique_ptr<Generate> generate_;
    std::unique_ptr<plugin::Instance> api_;
};

} // namespace dsv4::runtime
