#pragma once

#include "broker/call.h"
#include "broker/coordination/coordination.h"
#include "coordinator/done.h"
#include "wire/error_code.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// How handlers ask the coordinators of this broker.
namespace kaas::broker {

/// The answer that says an error and nothing else, for answers that have one place for it.
template <class Answer>
struct OnlyError {
    [[nodiscard]] Answer operator()(wire::ErrorCode error) const {
        if constexpr (std::is_same_v<Answer, wire::ErrorCode>) {
            return error;
        } else if constexpr (std::is_constructible_v<Answer, std::unexpected<wire::ErrorCode>>) {
            return Answer(std::unexpected(error));
        } else {
            Answer answer{};
            answer.error = error;
            return answer;
        }
    }
};

/// What `Coordination` is to do with the slot that it finds, or does not.
template <class Answer, class Ask, class Refuse>
[[nodiscard]] auto asking(const Call& call, Ask ask, coordinator::Done<Answer> done,
                          Refuse refuse) {
    return [ask = std::move(ask), done = brought_home(call.home(), std::move(done)),
            refuse = std::move(refuse)](auto slot) mutable {
        if (!slot) return done(refuse(slot.error()));
        ask(**slot, std::move(done));
    };
}

/// Has `ask(slot, done)` ask the slot of a group on the coordinators' loop; `done` runs on the
/// call's reactor. Without such a slot here it gets `refuse(error)`: NOT_COORDINATOR,
/// COORDINATOR_LOAD_IN_PROGRESS.
template <class Answer, class Ask, class Refuse = OnlyError<Answer>>
void ask_group(const Call& call, std::string_view group_id, Ask ask, coordinator::Done<Answer> done,
               Refuse refuse = {}) {
    call.services().coordination.with_group(
        call.state().partitions.image(), group_id,
        asking<Answer>(call, std::move(ask), std::move(done), std::move(refuse)));
}
/// The same with the slot of a transactional id.
template <class Answer, class Ask, class Refuse = OnlyError<Answer>>
void ask_transactions(const Call& call, std::string_view transactional_id, Ask ask,
                      coordinator::Done<Answer> done, Refuse refuse = {}) {
    call.services().coordination.with_transaction(
        call.state().partitions.image(), transactional_id,
        asking<Answer>(call, std::move(ask), std::move(done), std::move(refuse)));
}

template <class Item>
using Listed = std::expected<std::vector<Item>, wire::ErrorCode>;

/// Gathers what several slots list; with an error there is nothing else. Thread: the coordinators'
/// loop.
template <class Item>
class Gathering {
public:
    Gathering(std::size_t slots, coordinator::Done<Listed<Item>> done)
        : open_(slots), done_(std::move(done)) {}

    void take(Listed<Item> listed) {
        if (!listed) {
            all_ = std::move(listed);
        } else if (all_) {
            std::ranges::move(*listed, std::back_inserter(*all_));
        }
        if (--open_ == 0) done_(std::move(all_));
    }

private:
    std::size_t open_;
    Listed<Item> all_{};
    coordinator::Done<Listed<Item>> done_;
};

/// What `Coordination` is to do with all slots of a kind: `list(slot, done)` asks each on the
/// coordinators' loop; `done` runs once, on the call's reactor.
template <class Item, class List>
[[nodiscard]] auto listing(const Call& call, List list, coordinator::Done<Listed<Item>> done) {
    return [list = std::move(list),
            done = brought_home(call.home(), std::move(done))](auto slots) mutable {
        if (!slots) return done(std::unexpected(slots.error()));
        if (slots->empty()) return done({});
        auto all = std::make_shared<Gathering<Item>>(slots->size(), std::move(done));
        for (auto* slot : *slots) {
            list(*slot, [all](Listed<Item> listed) { all->take(std::move(listed)); });
        }
    };
}

}  // namespace kaas::broker
