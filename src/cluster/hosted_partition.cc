#include "cluster/hosted_partition.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "catalog/change.h"
#include "cluster/tenancy.h"
#include "storage/error.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {

HostedPartition::HostedPartition(base::TopicPartition id,
                                 std::shared_ptr<const std::string> topic_directory)
    : id_(id), topic_directory_(std::move(topic_directory)) {}

std::string HostedPartition::directory() const {
    return fmt::format("{}/{}", *topic_directory_, id_.partition);
}

bool HostedPartition::aim(std::optional<Tenure> tenure) {
    if (tenure && tenure->asked_back && moving && moving->handed_over) {
        left_volumes.insert(moving->volume);  // the next one to lead it is another broker
        moving.reset();
    }
    return tenancy_.aim(std::move(tenure));
}

void HostedPartition::strand(bool stranded) {
    tenancy_.strand(stranded);
    show();
}

Tenancy::Step HostedPartition::begin() {
    const bool has_left = !tenancy_.busy() && !log_ && !tenancy_.owes_report();
    if (moving && moving->handed_over && has_left) moving.reset();
    const auto step = tenancy_.begin();
    if (tenancy_.state() != Hosting::kOffline) read_only_.reset();
    show();
    return step;
}

void HostedPartition::opened(storage::Result<storage::LogPtr> result, base::Clock::Steady now) {
    const auto epoch = tenancy_.tenure().epoch;
    if (result) {
        log_ = std::move(*result);
        tenancy_.opened(now);
    } else if (tenancy_.failed(result.error().code, now)) {
        base::log::warn("cluster", "{}: epoch {} did not open: {}", directory(), epoch,
                        result.error().context);
    }
    show();
}

void HostedPartition::closed() {
    let_go();
    tenancy_.closed();
}

storage::LogPtr HostedPartition::start_over() {
    auto log = log_;
    if (log_) leaving_.push_back(std::exchange(log_, nullptr));
    read_only_.reset();
    if (moving && moving->handed_over) left_volumes.insert(moving->volume);
    moving.reset();
    ++life_;
    tenancy_.start_over();
    show();
    return log;
}

void HostedPartition::let_go() {
    if (log_->at_work()) leaving_.push_back(log_);
    log_.reset();
}

bool HostedPartition::earlier_at_rest() {
    std::erase_if(leaving_, [](const storage::LogPtr& log) { return !log->at_work(); });
    return leaving_.empty();
}

bool HostedPartition::at_rest() {
    return !tenancy_.busy() && !copying && !log_ && earlier_at_rest();
}

void HostedPartition::failed(const storage::Error& why, base::Clock::Steady now) {
    base::log::warn("cluster", "{}: epoch {} has failed: {}", directory(), tenancy_.tenure().epoch,
                    why.context);
    if (log_->is_readable()) read_only_ = log_;
    let_go();
    tenancy_.failed(why.code, now);
    show();
}

void HostedPartition::surrender() {
    read_only_.reset();
    show();
    tenancy_.surrender();
}

std::optional<catalog::OpenedEpoch> HostedPartition::news() {
    if (!log_) return std::nullopt;
    return tenancy_.news(id_, log_->written_epoch());
}

void HostedPartition::show() {
    const auto state = tenancy_.state();
    seat_->set(state, state == Hosting::kServing ? log_ : read_only_);
}

}  // namespace kaas::cluster
