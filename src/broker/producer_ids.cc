#include "broker/producer_ids.h"

#include <deque>
#include <expected>
#include <utility>
#include <vector>

namespace kaas::broker {

void ProducerIds::next(base::Executor& home, Done done) {
    base::ProducerId id{-1};
    bool first_to_wait = false;
    {
        base::MutexLock lock(mutex_);
        if (waiting_.empty() && next_ < end_) {
            id = next_;
            ++next_;
        } else {
            first_to_wait = waiting_.empty();
            waiting_.push_back({&home, std::move(done)});
        }
    }
    if (id.value() >= 0) {
        done(id);  // NOLINT(bugprone-use-after-move): moved only where no id was taken
    } else if (first_to_wait) {
        ask_for_more(home);
    }
}

void ProducerIds::ask_for_more(base::Executor& home) {
    controller_.allocate_producer_ids(kBlockSize,
                                      {&home, [this](auto block) { granted(std::move(block)); }});
}

void ProducerIds::granted(cluster::Result<cluster::ProducerIdBlock> block) {
    std::vector<std::pair<Waiter, cluster::Result<base::ProducerId>>> served;
    base::Executor* asker = nullptr;
    {
        base::MutexLock lock(mutex_);
        if (block) {
            next_ = block->first;
            end_ = block->first + block->count;
        }
        while (!waiting_.empty() && (!block || next_ < end_)) {
            if (block) {
                served.emplace_back(std::move(waiting_.front()), next_);
                ++next_;
            } else {
                served.emplace_back(std::move(waiting_.front()), std::unexpected(block.error()));
            }
            waiting_.pop_front();
        }
        if (!waiting_.empty()) asker = waiting_.front().home;
    }
    for (auto& [waiter, result] : served) {
        waiter.home->post([done = std::move(waiter.done), id = std::move(result)]() mutable {
            done(std::move(id));
        });
    }
    if (asker != nullptr) ask_for_more(*asker);
}

}  // namespace kaas::broker
