#include "cluster/image_holder.h"

#include "base/mutex.h"
#include "catalog/image.h"

#include <memory>
#include <utility>
#include <vector>

namespace kaas::cluster {

ImageHolder::ImageHolder() : current_(std::make_shared<const catalog::Image>()) {}

bool ImageHolder::publish(catalog::ImagePtr next) {
    std::vector<Waiter> due;
    {
        base::MutexLock lock(mutex_);
        const auto version = next->version();
        if (version <= newest_) return false;
        newest_ = version;
        current_.set(std::move(next));
        const auto end = waiters_.upper_bound(version);
        for (auto at = waiters_.begin(); at != end; ++at) due.push_back(std::move(at->second));
        waiters_.erase(waiters_.begin(), end);
    }
    for (auto& waiter : due) waiter.home->post(std::move(waiter.done));
    return true;
}

void ImageHolder::when(catalog::ImageVersion version, base::Executor& home,
                       base::Executor::Work done) {
    {
        base::MutexLock lock(mutex_);
        if (version > newest_) {
            waiters_.emplace(version, Waiter{&home, std::move(done)});
            return;
        }
    }
    home.post(std::move(done));
}

}  // namespace kaas::cluster
