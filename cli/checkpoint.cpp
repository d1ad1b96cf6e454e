// `dsv4 checkpoint inspect`: what a checkpoint directory holds and what is wrong with it.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "core/checkpoint/inspect.hpp"

#include <cstdio>

namespace dsv4::cli {

int checkpoint_inspect(const CheckpointOptions& options) {
    return guarded([&] {
        const auto checkpoint = checkpoint::Checkpoint::open(options.directory).value();
        const std::string text =
            options.json ? checkpoint::inspect_json(checkpoint) : checkpoint::inspect_text(checkpoint);
        std::fputs(text.c_str(), stdout);
        return int(checkpoint.loadable().ok() ? clean : findings);
    });
}

} // namespace dsv4::cli
