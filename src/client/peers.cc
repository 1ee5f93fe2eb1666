#include "client/peers.h"

#include "client/channel.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace kaas::client {

Channel& Peers::at(const std::string& host, std::uint16_t port) {
    std::unique_ptr<Channel>& channel = channels_[{host, port}];
    if (!channel) {
        Channel::Options options = common_;
        options.host = host;
        options.port = port;
        channel = std::make_unique<Channel>(std::move(options));
    }
    return *channel;
}

void Peers::forget(const std::string& host, std::uint16_t port) {
    // Out of the map before it ends: its calls' callbacks may come back here.
    auto channel = channels_.extract({host, port});
}

}  // namespace kaas::client
