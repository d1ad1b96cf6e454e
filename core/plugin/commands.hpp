// `dsv4 plugins list | inspect | check` as pure functions: what to print and the exit code.
#pragma once

#include "core/plan/serving_plan.hpp"

#include <string>
#include <vector>

namespace dsv4::plugin {

struct CommandOutput {
    int exit_code = 0; // 0 clean, 1 findings, 3 environment
    std::string out;
    std::string err;
};

struct CommandRequest {
    std::vector<std::string> paths; // further directories, absolute: --path
    bool json = false;              // --json
};

// 0 when every plugin can be loaded, 1 when any is refused.
CommandOutput list_command(const CommandRequest& request);
// `name`: a plugin's name, or a path to a file. 0; 1 when it is refused (what is known is still printed); 3 when there
// is none.
CommandOutput inspect_command(const std::string& name, const CommandRequest& request);
// Loads it and makes its instances in a child process. 0 when all steps passed, 1 when one failed, 3 when there is
// none. Call it before the program starts threads.
CommandOutput check_command(const std::string& name, const CommandRequest& request, const plan::Options& options = {});

// "name=value" pairs of --option to options: true, false, numbers, else text. Throws Failure(invalid).
plan::Options parse_options(const std::vector<std::string>& pairs);

} // namespace dsv4::plugin
