#pragma once

#include "client/channel.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace kaas::client {

/// The channels of one reactor, one for each (host, port), made when first asked for.
///
/// A channel without calls costs nothing but its connection, and stays until it is forgotten.
/// Thread: the reactor's.
class Peers {
public:
    /// `common`: what all channels share; its host and port are not used.
    explicit Peers(Channel::Options common) : common_(std::move(common)) {}

    /// Valid until `forget`, or the end of this.
    [[nodiscard]] Channel& at(const std::string& host, std::uint16_t port);
    /// Closes the channel, if there is one: its calls end with kDown.
    void forget(const std::string& host, std::uint16_t port);

private:
    Channel::Options common_;
    std::map<std::pair<std::string, std::uint16_t>, std::unique_ptr<Channel>> channels_;
};

}  // namespace kaas::client
