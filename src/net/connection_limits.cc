#include "net/connection_limits.h"

#include "base/assert.h"
#include "base/mutex.h"

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace kaas::net {

ConnectionLimits::ConnectionLimits(ConnectionLimitOptions options, std::function<void()> on_room)
    : options_(std::move(options)), on_room_(std::move(on_room)) {}

bool ConnectionLimits::full() {
    base::MutexLock lock(mutex_);
    told_full_ = open_ >= options_.max;
    return told_full_;
}

bool ConnectionLimits::admit(const std::string& address) {
    auto found = options_.per_ip_overrides.find(address);
    std::size_t max =
        found != options_.per_ip_overrides.end() ? found->second : options_.max_per_ip;
    base::MutexLock lock(mutex_);
    std::size_t& here = per_ip_[address];
    if (here >= max) {
        if (here == 0) per_ip_.erase(address);
        return false;
    }
    ++here;
    ++open_;
    return true;
}

void ConnectionLimits::release(const std::string& address) {
    bool tell = false;
    {
        base::MutexLock lock(mutex_);
        auto here = per_ip_.find(address);
        KAAS_ASSERT(here != per_ip_.end() && open_ > 0);
        if (--here->second == 0) per_ip_.erase(here);
        --open_;
        tell = std::exchange(told_full_, false);
    }
    if (tell) on_room_();
}

}  // namespace kaas::net
