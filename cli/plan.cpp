// `dsv4 plan`: checks a pipeline file and prints the serving plan, or the Program that its model is lowered to.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/resolve.hpp"
#include "core/lower/deepseek_v4.hpp"
#include "dsl/compile.hpp"
#include "dsl/plan_table.hpp"

#include <cstdio>

namespace dsv4::cli {
namespace {

std::string program_text(const plan::ServingPlan& plan) {
    const auto directory = checkpoint::resolve({plan.checkpoint.path, plan.checkpoint.id, plan.checkpoint.revision},
                                               checkpoint::Environment::of_process())
                               .value();
    const auto checkpoint = checkpoint::Checkpoint::open(directory).value();
    checkpoint.loadable().value();
    lower::Options options;
    options.precision = plan.engine.precision == plan::Precision::score ? DSV4_SCORE : DSV4_SERVE;
    return program::print(lower::lower(checkpoint.card().geometry, lower::WeightTable(checkpoint.weights()), options));
}

} // namespace

int plan(const PlanOptions& options) {
    return guarded([&] {
        const auto compilation = dsl::compile_file(options.pipeline, {options.set}).value();
        std::fputs(dsl::render_human(compilation.diagnostics, compilation.sources, {color_on_stderr()}).c_str(),
                   stderr);
        if (!compilation.plan) return int(findings);
        std::string text;
        if (options.program)
            text = program_text(*compilation.plan);
        else if (options.json)
            text = plan::to_json(*compilation.plan, {options.origins});
        else
            text = dsl::render_plan(*compilation.plan, {options.origins, stdout_is_terminal()});
        std::fputs(text.c_str(), stdout);
        return int(clean);
    });
}

} // namespace dsv4::cli
