#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace kaas::coordinator {

/// The journal of one slot, as its state machine sees it (DESIGN 11). The state machine applies a
/// change, appends it here, and answers nobody before it is settled. In a broker it is the slot's
/// `broker::SlotSeat`, on a `storage::SlotLog`. Thread: the coordinators' loop.
class SlotWriter {
public:
    virtual ~SlotWriter() = default;

    /// Takes a change that the state machine has applied to itself: the text of one JSON object,
    /// without a newline. May ask the state machine for a picture, which then has to hold it.
    virtual void append(std::string change) = 0;

    /// Runs once, on the coordinators' loop and never within `settle`; in the order of the calls.
    /// True: everything that was appended before the call is durable, and a session check that
    /// began after the call was good, so an answer may leave (DESIGN rule 7). False: this
    /// leadership of the slot is over, its state machine is about to go, and nobody can say which
    /// of the changes stand: the answer is NOT_COORDINATOR.
    using Settled = std::move_only_function<void(bool durable)>;
    virtual void settle(Settled done) = 0;
};

/// Answers once what was appended is settled: with `lost` if this leadership is over.
template <class Answer>
void answer_settled(SlotWriter& writer, std::move_only_function<void(Answer)> done,
                    std::type_identity_t<Answer> answer, std::type_identity_t<Answer> lost) {
    writer.settle([done = std::move(done), answer = std::move(answer),
                   lost = std::move(lost)](bool durable) mutable {
        done(durable ? std::move(answer) : std::move(lost));
    });
}

}  // namespace kaas::coordinator
