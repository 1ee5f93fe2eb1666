#include "storage/batch_stream.h"

#include "storage/batch_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kaas::storage {

BatchStream::BatchStream(std::shared_ptr<File> file, const SegmentSpan& span,
                         std::uint64_t position, std::size_t buffer_bytes, BeforeRead before_read)
    : file_(std::move(file)),
      span_(span),
      buffer_bytes_(buffer_bytes),
      before_read_(std::move(before_read)),
      position_(position),
      expected_(span.facts.base) {}

std::unexpected<Error> BatchStream::corrupt(const std::string& why) const {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{} at {}: {}", span_.segment->path(), position_, why));
}

Result<void> BatchStream::hold(std::size_t bytes) {
    const auto held = buffer_.size() - at_;
    if (held >= bytes) return {};
    const auto left = span_.facts.bytes - position_;
    if (bytes > left) return corrupt(fmt::format("{} bytes of a batch, {} are left", bytes, left));
    const auto wanted = std::min<std::uint64_t>(std::max(bytes, buffer_bytes_), left);
    KAAS_TRY(before_read_(wanted - held));
    if (at_ > 0) std::memmove(buffer_.data(), buffer_.data() + at_, held);
    at_ = 0;
    auto read = fill(held, wanted);
    if (!read && wanted > bytes) {
        // What cannot be read may lie behind this batch: from now on none is read before its turn.
        buffer_bytes_ = 0;
        read = fill(held, bytes);
    }
    if (!read) return std::unexpected(std::move(read).error());
    if (buffer_.size() < bytes) {
        return corrupt(fmt::format("the file ends at {}, {} bytes were recorded",
                                   position_ + buffer_.size(), span_.facts.bytes));
    }
    return {};
}

Result<void> BatchStream::fill(std::size_t held, std::size_t wanted) {
    buffer_.resize(wanted);
    const auto read = file_->read_at(position_ + held, base::MutableBytes(buffer_).subspan(held));
    buffer_.resize(held + read.value_or(0));
    if (!read) return std::unexpected(read.error());
    return {};
}

Result<std::optional<wire::BatchView>> BatchStream::next() {
    if (position_ >= span_.facts.bytes) return std::nullopt;
    KAAS_TRY(hold(wire::BatchHeader::kBytes));
    const auto header = wire::BatchHeader::parse(base::ByteView(buffer_).subspan(at_));
    if (!header) return corrupt(header.error().context);
    KAAS_TRY(hold(header->size()));
    const auto batch = check_stored(base::ByteView(buffer_).subspan(at_));
    if (!batch) return corrupt(batch.error().context);
    const base::Offset first{batch->header.base_offset};
    const base::Offset last{batch->header.last_offset()};
    if (first < expected_ || last >= span_.facts.end) {
        return corrupt(fmt::format("offsets {} to {}, not within [{}, {})", first, last, expected_,
                                   span_.facts.end));
    }
    expected_ = last + 1;
    position_ += batch->bytes.size();
    at_ += batch->bytes.size();
    return *batch;
}

}  // namespace kaas::storage
