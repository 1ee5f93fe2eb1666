#pragma once

#include "security/scram.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace kaas::broker {

/// The connections of one reactor that are about to authenticate: from their SaslHandshake to the
/// end of their exchange. Thread: the reactor's.
class SaslExchanges {
public:
    /// Null when the connection has sent no SaslHandshake, or is past all that.
    [[nodiscard]] security::ScramServer* find(std::uint64_t connection_id) {
        const auto found = exchanges_.find(connection_id);
        return found == exchanges_.end() ? nullptr : &found->second;
    }
    void begin(std::uint64_t connection_id, security::ScramServer::Find find) {
        exchanges_.try_emplace(connection_id, security::scram_nonce(), std::move(find));
    }
    void drop(std::uint64_t connection_id) { exchanges_.erase(connection_id); }

private:
    std::unordered_map<std::uint64_t, security::ScramServer> exchanges_;
};

}  // namespace kaas::broker
