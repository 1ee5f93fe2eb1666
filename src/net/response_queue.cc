#include "net/response_queue.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "net/exchange.h"
#include "storage/partition_log.h"
#include "wire/writer.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace kaas::net {

const storage::FileSlice& ResponseQueue::Slot::slice() const {
    return response.slices[response.output.splices()[splice].cookie];
}

std::size_t ResponseQueue::Slot::text_end() const {
    return has_splice() ? response.output.splices()[splice].position
                        : response.output.bytes().size();
}

bool ResponseQueue::Slot::done() const {
    return state == State::kReady && !has_splice() && text_sent == response.output.bytes().size();
}

ResponseQueue::Place ResponseQueue::open() {
    slots_.emplace_back();
    ++unanswered_;
    return std::prev(slots_.end());
}

void ResponseQueue::answer(Place place, Response response) {
    KAAS_ASSERT(place->state == State::kOpen);
    for (const wire::Splice& splice : response.output.splices()) {
        KAAS_ASSERT(splice.length > 0 && splice.cookie < response.slices.size() &&
                    splice.length == response.slices[splice.cookie].length);
    }
    text_bytes_ += response.output.bytes().size();
    --unanswered_;
    place->response = std::move(response);
    place->state = State::kReady;
}

void ResponseQueue::drop(Place place) {
    KAAS_ASSERT(place->state == State::kOpen);
    --unanswered_;
    slots_.erase(place);
}

void ResponseQueue::close_at(Place place) {
    KAAS_ASSERT(place->state == State::kOpen);
    --unanswered_;
    place->state = State::kClose;
}

void ResponseQueue::abandon() {
    std::erase_if(slots_, [](const Slot& slot) { return slot.state != State::kOpen; });
    text_bytes_ = 0;
}

ResponseQueue::Front ResponseQueue::front() const {
    if (slots_.empty()) return Front::kNothing;
    const Slot& slot = slots_.front();
    switch (slot.state) {
        case State::kOpen: return Front::kNothing;
        case State::kClose: return Front::kClose;
        case State::kReady: break;
    }
    return slot.text_sent < slot.text_end() ? Front::kText : Front::kSlice;
}

ResponseQueue::Gathered ResponseQueue::gather(std::span<iovec> pieces) {
    Gathered gathered;
    for (const Slot& slot : slots_) {
        if (slot.state != State::kReady) break;
        gathered.more = gathered.pieces == pieces.size();
        if (gathered.more) break;
        base::ByteView text =
            slot.response.output.bytes().subspan(slot.text_sent, slot.text_end() - slot.text_sent);
        if (!text.empty()) {
            pieces[gathered.pieces++] = {.iov_base = const_cast<std::byte*>(text.data()),
                                         .iov_len = text.size()};
            gathered.bytes += text.size();
        }
        gathered.more = slot.has_splice();
        if (gathered.more) break;
    }
    return gathered;
}

void ResponseQueue::text_sent(std::size_t bytes) {
    text_bytes_ -= bytes;
    while (bytes > 0) {
        Slot& slot = slots_.front();
        std::size_t step = std::min(bytes, slot.text_end() - slot.text_sent);
        KAAS_ASSERT(step > 0);
        slot.text_sent += step;
        bytes -= step;
        pop_done();
    }
}

storage::FileSlice ResponseQueue::slice() const {
    const Slot& slot = slots_.front();
    storage::FileSlice rest = slot.slice();
    rest.offset += slot.slice_sent;
    rest.length -= slot.slice_sent;
    return rest;
}

void ResponseQueue::slice_sent(std::size_t bytes) {
    Slot& slot = slots_.front();
    slot.slice_sent += bytes;
    if (slot.slice_sent < slot.slice().length) return;
    slot.slice_sent = 0;
    ++slot.splice;
    pop_done();
}

bool ResponseQueue::text_follows_slice() const {
    const Slot& slot = slots_.front();
    if (slot.text_sent < slot.response.output.bytes().size()) return true;
    return slots_.size() > 1 && std::next(slots_.begin())->state == State::kReady;
}

void ResponseQueue::pop_done() {
    if (slots_.front().done()) slots_.pop_front();
}

}  // namespace kaas::net
