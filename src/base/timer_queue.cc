#include "base/timer_queue.h"

#include "base/clock.h"
#include "base/executor.h"

#include <cstddef>
#include <optional>
#include <utility>

namespace kaas::base {

void TimerQueue::arm(Entry& entry, Clock::Steady deadline, Executor::Work callback) {
    cancel(entry);
    entry.deadline_ = deadline;
    entry.callback_ = std::move(callback);
    heap_.push_back(&entry);
    entry.place_ = heap_.size() - 1;
    sift_up(entry.place_);
}

void TimerQueue::cancel(Entry& entry) {
    if (!entry.armed()) return;
    remove(entry.place_);
    entry.callback_ = nullptr;
}

std::optional<Clock::Steady> TimerQueue::next_deadline() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.front()->deadline_;
}

Executor::Work TimerQueue::take_due(Clock::Steady now) {
    if (heap_.empty() || heap_.front()->deadline_ > now) return {};
    Entry& entry = *heap_.front();
    remove(0);
    return std::exchange(entry.callback_, nullptr);
}

void TimerQueue::remove(std::size_t place) {
    heap_[place]->place_ = Entry::kNowhere;
    Entry* last = heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) return;
    put(place, last);
    sift_up(place);
    sift_down(last->place_);
}

void TimerQueue::put(std::size_t place, Entry* entry) {
    heap_[place] = entry;
    entry->place_ = place;
}

void TimerQueue::sift_up(std::size_t place) {
    Entry* entry = heap_[place];
    while (place > 0) {
        std::size_t parent = (place - 1) / 2;
        if (heap_[parent]->deadline_ <= entry->deadline_) break;
        put(place, heap_[parent]);
        place = parent;
    }
    put(place, entry);
}

void TimerQueue::sift_down(std::size_t place) {
    Entry* entry = heap_[place];
    for (;;) {
        std::size_t child = 2 * place + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && heap_[child + 1]->deadline_ < heap_[child]->deadline_)
            ++child;
        if (entry->deadline_ <= heap_[child]->deadline_) break;
        put(place, heap_[child]);
        place = child;
    }
    put(place, entry);
}

}  // namespace kaas::base
