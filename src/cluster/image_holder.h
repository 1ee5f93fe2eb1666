#pragma once

#include "base/executor.h"
#include "base/mutex.h"
#include "catalog/image.h"
#include "cluster/versioned.h"

#include <functional>
#include <map>
#include <vector>

namespace kaas::cluster {

/// The newest image that this broker was given.
/// Thread: any. Reactors read through a `Reader` of their own.
class ImageHolder {
public:
    using Reader = Versioned<catalog::Image>::Reader;

    /// Holds an empty image until the first push.
    ImageHolder();

    /// One per reactor; the holder must outlive it.
    [[nodiscard]] Reader reader() const { return Reader(current_); }
    [[nodiscard]] catalog::ImagePtr get() const { return current_.get(); }

    /// Takes the next image. False, and nothing happens, when it is not newer than the one held: a
    /// push of a controller that has been succeeded (DESIGN 10).
    bool publish(catalog::ImagePtr next) KAAS_EXCLUDES(mutex_);

    /// Runs `done` on `home` once an image of at least `version` is held, at once if it is. The
    /// waiter sets its own deadline; what never comes is dropped with the holder.
    void when(catalog::ImageVersion version, base::Executor& home, base::Executor::Work done)
        KAAS_EXCLUDES(mutex_);

private:
    struct Waiter {
        base::Executor* home;
        base::Executor::Work done;
    };

    Versioned<catalog::Image> current_;
    base::Mutex mutex_;
    catalog::ImageVersion newest_ KAAS_GUARDED_BY(mutex_);
    std::multimap<catalog::ImageVersion, Waiter> waiters_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::cluster
