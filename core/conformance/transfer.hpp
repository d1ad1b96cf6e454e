// Moves a half-finished sequence through state_export and state_import and finishes it twice.
#pragma once

#include "core/conformance/random.hpp"
#include "core/runtime/backend_session.hpp"

namespace dsv4::conformance {

struct TransferResult {
    Bytes straight, imported;              // logits of the second half, without and with the transfer
    bool refuses_other_checkpoint = false; // an import under another checkpoint hash fails
    bool refuses_damage = false;           // so does a blob with a damaged header
};

// `program` outputs "logits". Replaces the session's state.
TransferResult run_transfer(runtime::BackendSession& session, const program::Program& program,
                            const std::vector<std::int32_t>& tokens, std::int64_t half);

} // namespace dsv4::conformance
