#include "net/frame_reader.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "net/frame_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace kaas::net {
namespace {

iovec piece(std::byte* begin, std::size_t bytes) { return {.iov_base = begin, .iov_len = bytes}; }
iovec piece(base::MutableBytes bytes) { return piece(bytes.data(), bytes.size()); }

}  // namespace

FrameReader::Next FrameReader::next(SlabSource& slabs, bool waited, base::FrameRef& frame) {
    if (!whole_.block && run_.bytes.empty() && prefix_have_ == kPrefixBytes) {
        Next begun = begin_partial(slabs, waited);
        if (begun != Next::kReceive) return begun;
    }
    if (whole_.block) {
        frame = std::exchange(whole_, {});
        return Next::kFrame;
    }
    if (!run_.bytes.empty()) {
        auto size = static_cast<std::size_t>(base::load_be<std::int32_t>(run_.bytes.data()));
        base::MutableBytes rest = run_.bytes.subspan(kPrefixBytes + size);
        frame.bytes = run_.bytes.subspan(kPrefixBytes, size);
        frame.block = rest.empty() ? std::move(run_.block) : run_.block;
        run_.bytes = rest;
        return Next::kFrame;
    }
    bool needs_slab = !partial_.block && (prefix_have_ > 0 || !expect_large_);
    if (needs_slab && !slabs.ensure()) return Next::kNoMemory;
    return Next::kReceive;
}

FrameReader::Next FrameReader::begin_partial(SlabSource& slabs, bool waited) {
    auto size = base::load_be<std::int32_t>(prefix_.data());
    if (size < 0) return Next::kNegative;
    if (!valid(size)) return Next::kTooLarge;
    auto bytes = static_cast<std::size_t>(size);
    if (bytes <= SlabSource::kSmallFrameMax) {
        if (!slabs.ensure()) return Next::kNoMemory;
        begin_partial_at(slabs.take(0), slabs);
    } else {
        base::BlockRef block = slabs.memory().allocate(bytes, waited);
        if (!block) return Next::kNoMemory;
        partial_ = {block, {block->data(), bytes}};
        partial_have_ = early_.bytes.size();
        moved_ += partial_have_;
        std::copy(early_.bytes.begin(), early_.bytes.end(), block->data());
        early_ = {};
        prefix_have_ = 0;
    }
    if (partial_have_ == partial_.bytes.size()) finish_partial();  // an empty frame
    return Next::kReceive;
}

/// The frame whose prefix is known has its first bytes, `body`, at the end of what is taken of the
/// slab, and fits into the rest of it.
void FrameReader::begin_partial_at(base::MutableBytes body, SlabSource& slabs) {
    auto bytes = static_cast<std::size_t>(base::load_be<std::int32_t>(prefix_.data()));
    partial_ = {slabs.block(), {body.data(), bytes}};
    partial_have_ = body.size();
    slabs.extend(bytes - body.size());
    prefix_have_ = 0;
}

FrameReader::Room FrameReader::room(SlabSource& slabs, std::array<iovec, 2>& pieces) {
    std::size_t count = 0;
    if (partial_.block) {
        pieces[count++] = piece(partial_.bytes.subspan(partial_have_));
        if (owns_memory()) {
            pieces[count++] = piece(prefix_.data(), kPrefixBytes);
        } else if (slabs.ensure()) {
            pieces[count++] = piece(slabs.room());
        }
    } else if (prefix_have_ == 0 && !expect_large_) {
        pieces[count++] = piece(slabs.room());
    } else {
        pieces[count++] = piece(prefix_.data() + prefix_have_, kPrefixBytes - prefix_have_);
        if (prefix_have_ > 0) pieces[count++] = piece(slabs.room());
    }
    return Room(pieces).first(count);
}

void FrameReader::received(std::size_t bytes, SlabSource& slabs) {
    KAAS_ASSERT(!whole_.block && run_.bytes.empty());
    if (partial_.block) {
        bool own = owns_memory();
        std::size_t taken = std::min(bytes, partial_.bytes.size() - partial_have_);
        partial_have_ += taken;
        if (partial_have_ == partial_.bytes.size()) finish_partial();
        if (bytes == taken) return;
        if (own) {
            prefix_have_ = bytes - taken;
        } else {
            scan(slabs.take(bytes - taken), slabs);
        }
    } else if (prefix_have_ == 0 && !expect_large_) {
        scan(slabs.take(bytes), slabs);
    } else {
        std::size_t taken = std::min(bytes, kPrefixBytes - prefix_have_);
        prefix_have_ += taken;
        if (bytes > taken) after_prefix(slabs.take(bytes - taken), slabs);
    }
}

/// `bytes` are what was taken of the slab last, and begin with a prefix.
void FrameReader::scan(base::MutableBytes bytes, SlabSource& slabs) {
    std::size_t at = 0;
    while (bytes.size() - at >= kPrefixBytes) {
        auto size = base::load_be<std::int32_t>(bytes.data() + at);
        if (!valid(size) || bytes.size() - at - kPrefixBytes < static_cast<std::size_t>(size))
            break;
        at += kPrefixBytes + static_cast<std::size_t>(size);
        expect_large_ = static_cast<std::size_t>(size) > SlabSource::kSmallFrameMax;
    }
    if (at > 0) run_ = {slabs.block(), bytes.first(at)};
    base::MutableBytes rest = bytes.subspan(at);
    prefix_have_ = std::min(rest.size(), kPrefixBytes);
    std::copy_n(rest.begin(), prefix_have_, prefix_.begin());
    if (rest.size() > kPrefixBytes) after_prefix(rest.subspan(kPrefixBytes), slabs);
}

/// The prefix is whole, and `bytes`, at least one, came after it; they are what was taken of the
/// slab last.
void FrameReader::after_prefix(base::MutableBytes bytes, SlabSource& slabs) {
    auto size = base::load_be<std::int32_t>(prefix_.data());
    if (!valid(size)) return;  // `next` says so once the frames before it are given
    auto wanted = static_cast<std::size_t>(size);
    if (bytes.size() >= wanted) {
        whole_ = {slabs.block(), bytes.first(wanted)};
        prefix_have_ = 0;
        expect_large_ = wanted > SlabSource::kSmallFrameMax;
        if (bytes.size() > wanted) scan(bytes.subspan(wanted), slabs);
        return;
    }
    if (wanted - bytes.size() <= slabs.left()) {
        begin_partial_at(bytes, slabs);
    } else {
        early_ = {slabs.block(), bytes};
    }
}

void FrameReader::finish_partial() {
    expect_large_ = partial_.bytes.size() > SlabSource::kSmallFrameMax;
    whole_ = std::exchange(partial_, {});
    partial_have_ = 0;
}

bool FrameReader::owns_memory() const {
    return partial_.bytes.size() == partial_.block->capacity();
}

}  // namespace kaas::net
