#pragma once

#include "base/ids.h"
#include "storage/error.h"
#include "storage/segment.h"
#include "wire/record_batch.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace kaas::storage {

/// Reads the whole batches of a segment, one after the other, through a buffer that grows where a
/// batch is larger. What it gives is good: checksums are compared, offsets go upwards within the
/// segment. Blocks. Thread: one at a time.
class BatchStream {
public:
    /// Sees how many bytes are about to be read; its error ends the stream.
    using BeforeRead = std::function<Result<void>(std::uint64_t bytes)>;

    /// `span` outlives the stream.
    BatchStream(std::shared_ptr<File> file, const SegmentSpan& span, std::uint64_t position,
                std::size_t buffer_bytes, BeforeRead before_read);

    /// Valid until the next call; empty at the end. Errors: kCorrupt with file and position, the
    /// volume's, that of `before_read`.
    [[nodiscard]] Result<std::optional<wire::BatchView>> next();

private:
    [[nodiscard]] Result<void> hold(std::size_t bytes);
    /// Reads on behind the `held` bytes, up to `wanted`; less where the file ends.
    [[nodiscard]] Result<void> fill(std::size_t held, std::size_t wanted);
    [[nodiscard]] std::unexpected<Error> corrupt(const std::string& why) const;

    std::shared_ptr<File> file_;
    const SegmentSpan& span_;
    std::size_t buffer_bytes_;
    BeforeRead before_read_;
    std::uint64_t position_;  ///< of the next batch
    base::Offset expected_;   ///< its base offset is no lower
    std::vector<std::byte> buffer_;
    std::size_t at_ = 0;  ///< of the next batch in `buffer_`
};

}  // namespace kaas::storage
