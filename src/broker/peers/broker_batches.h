#pragma once

#include "base/ids.h"

#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace kaas::broker {

/// What is to go to other brokers: one call to each is under way at a time, and what comes
/// meanwhile goes together with the next (Apache `InterBrokerSendThread`).
/// Thread: one, its owner's.
template <class Item>
class BrokerBatches {
public:
    /// Sends a batch, which is not empty; `answered` is to be called once, within the call or later
    /// but never after this has ended, when the next one may follow.
    using Send = std::move_only_function<void(base::BrokerId to, std::vector<Item> batch,
                                              std::move_only_function<void()> answered)>;

    explicit BrokerBatches(Send send) : send_(std::move(send)) {}

    void add(base::BrokerId to, Item item) {
        lines_[to].waiting.push_back(std::move(item));
        send_next(to);
    }

private:
    struct Line {
        bool under_way = false;
        std::vector<Item> waiting{};
    };

    void send_next(base::BrokerId to) {
        auto& line = lines_[to];
        if (line.under_way || line.waiting.empty()) return;
        line.under_way = true;
        send_(to, std::exchange(line.waiting, {}), [this, to] {
            lines_[to].under_way = false;
            send_next(to);
        });
    }

    Send send_;
    std::map<base::BrokerId, Line> lines_;
};

}  // namespace kaas::broker
