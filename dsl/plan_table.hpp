// A serving plan for people: `dsv4 plan FILE`.
#pragma once

#include "core/plan/serving_plan.hpp"

#include <string>

namespace dsv4::dsl {

struct PlanTableStyle {
    bool origins = false; // a third column: where each value came from
    bool color = false;
};
// One section a heading, one value a line. Conditions of [[require]] are listed, not evaluated.
std::string render_plan(const plan::ServingPlan& plan, PlanTableStyle style = {});

} // namespace dsv4::dsl
