// What `dsv4 checkpoint inspect` shows of a checkpoint: card, totals, shards and findings.
#pragma once

#include "core/checkpoint/checkpoint.hpp"

#include <string>

namespace dsv4::checkpoint {

// For people: at most `most_findings` findings are listed, with a count of the rest. Ends with a newline.
std::string inspect_text(const Checkpoint& checkpoint, std::size_t most_findings = 20);

// For programs: one JSON object with every finding. Keys: directory, loadable, model, geometry, totals, shards,
// findings. Sizes are in bytes.
std::string inspect_json(const Checkpoint& checkpoint);

} // namespace dsv4::checkpoint
