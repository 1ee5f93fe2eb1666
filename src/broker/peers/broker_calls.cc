#include "broker/peers/broker_calls.h"

#include "catalog/broker_identity.h"
#include "catalog/model.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace kaas::broker {

void BrokerCalls::apply(const catalog::Image& next) {
    if (ended_) return;
    std::map<base::BrokerId, std::pair<std::string, std::uint16_t>> addresses;
    for (const auto& [id, broker] : next.brokers()) {
        const auto* at = broker->endpoint(catalog::kInternalListener);
        if (broker->living() && at != nullptr) addresses.emplace(id, std::pair(at->host, at->port));
    }
    // What ends may call again, and shall do so where the broker is now.
    addresses_.swap(addresses);
    for (const auto& [id, was] : addresses) {
        const auto now = addresses_.find(id);
        if (now == addresses_.end() || now->second != was) peers_.forget(was.first, was.second);
    }
}

void BrokerCalls::end() {
    apply(catalog::Image());
    ended_ = true;
}

}  // namespace kaas::broker
