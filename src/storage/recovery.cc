#include "storage/recovery.h"

#include "base/log.h"
#include "storage/batch_check.h"
#include "storage/epoch_beginning.h"
#include "storage/epoch_reader.h"
#include "storage/journal.h"
#include "storage/journal_reader.h"
#include "storage/partition_log.h"
#include "storage/segment_move.h"
#include "storage/transaction_marker.h"
#include "storage/void_epochs.h"
#include "wire/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

/// Recovery reads a tail in pieces of this size, larger where a batch is.
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

/// The good batches of a file from a position on, as they are read.
class TailReader {
public:
    TailReader(File& file, std::uint64_t position, std::uint64_t end)
        : file_(file), position_(position), end_(end) {}

    /// The next batch; empty at the end, which is where the bytes are no good any more. Valid until
    /// the next call.
    [[nodiscard]] Result<std::optional<wire::BatchView>> next(base::Offset expected) {
        if (end_ - position_ < wire::BatchHeader::kBytes) return std::nullopt;
        KAAS_TRY(hold(wire::BatchHeader::kBytes));
        const auto header = wire::BatchHeader::parse(held());
        if (!header || header->size() > end_ - position_) return std::nullopt;
        KAAS_TRY(hold(header->size()));
        const auto batch = check_stored(held());
        if (!batch || batch->header.base_offset != expected.value()) return std::nullopt;
        position_ += batch->bytes.size();
        at_ += batch->bytes.size();
        return *batch;
    }
    /// Goes on behind a batch of that size that was found elsewhere: it had its place here, too.
    void skip(std::uint64_t bytes) {
        if (bytes > end_ - position_) {
            position_ = end_;
            return;
        }
        position_ += bytes;
        buffer_.clear();
        at_ = 0;
    }

private:
    [[nodiscard]] base::ByteView held() const { return base::ByteView(buffer_).subspan(at_); }

    [[nodiscard]] Result<void> hold(std::size_t bytes) {
        if (buffer_.size() - at_ >= bytes) return {};
        const auto wanted = std::min<std::uint64_t>(std::max(bytes, kReadBytes), end_ - position_);
        buffer_.resize(wanted);
        at_ = 0;
        KAAS_TRY(read_exactly(file_, position_, buffer_, Patience::kMayBlock));
        return {};
    }

    File& file_;
    std::uint64_t position_;
    const std::uint64_t end_;
    std::vector<std::byte> buffer_;
    std::size_t at_ = 0;
};

/// The batches of one log in a journal, as a tail asks for them.
class JournaledTail {
public:
    /// `pieces` stay with the image that they are of.
    explicit JournaledTail(std::span<const JournalImage::Piece> pieces) : pieces_(pieces) {}

    /// The batch that begins at `expected`; empty when the journal has none. Valid until the next
    /// call. `expected` never goes back.
    [[nodiscard]] Result<std::optional<wire::BatchView>> next(base::Offset expected) {
        for (; !pieces_.empty(); drop_piece()) {
            const auto& piece = pieces_.front();
            if (piece.extent.end <= expected) continue;
            if (piece.extent.base > expected) return std::nullopt;
            KAAS_TRY(load(piece));
            while (!rest_.empty()) {
                const auto batch = wire::first_batch(rest_);
                if (!batch) break;
                if (base::Offset{batch->header.base_offset} > expected) return std::nullopt;
                const auto checked = check_stored(batch->bytes);
                rest_ = rest_.subspan(batch->bytes.size());
                if (base::Offset{batch->header.base_offset} < expected) continue;
                if (!checked) return std::nullopt;
                return *checked;
            }
        }
        return std::nullopt;
    }
    /// An entry behind what was found: it was written when all before it was durable.
    [[nodiscard]] const JournalImage::Piece* left_behind() const {
        return pieces_.empty() ? nullptr : &pieces_.front();
    }

private:
    [[nodiscard]] Result<void> load(const JournalImage::Piece& piece) {
        if (loaded_) return {};
        const auto& entry = piece.extent;
        if (!entry.whole) {
            return fail(ErrorCode::kCorrupt,
                        fmt::format("{} at {}: offsets {} to {} are damaged and nowhere else",
                                    *piece.path, entry.position, entry.base, entry.end));
        }
        buffer_.resize(piece.extent.bytes);
        KAAS_TRY(read_exactly(*piece.file, piece.extent.position, buffer_, Patience::kMayBlock));
        rest_ = buffer_;
        loaded_ = true;
        return {};
    }
    void drop_piece() {
        pieces_ = pieces_.subspan(1);
        loaded_ = false;
    }

    std::span<const JournalImage::Piece> pieces_;
    std::vector<std::byte> buffer_;
    base::ByteView rest_;
    bool loaded_ = false;
};

class Recovery {
public:
    explicit Recovery(const PartitionLogOptions& options)
        : options_(options),
          log_dir_(*options.log_dir),
          volume_(options.log_dir->volume()),
          paths_{options.directory},
          now_ms_(options.log_dir->clock().wall_ms()) {}

    /// Reads what there is. From now on `must_write` says what is next.
    [[nodiscard]] Result<void> read() {
        KAAS_TRY_ASSIGN(found, walk());
        if (!found) return {};
        found_epoch_ = base::LeaderEpoch{found->state.epoch};
        found_file_ = found->state.file;
        found_lines_ = found->state.lines.size();
        source_ = found->volume;
        const bool moved = source_ != &volume_;
        KAAS_TRY(take_state(found->state));
        // The journal first: all that stood before its entries is in the segment by then, even if
        // the owner still writes.
        if (!found->state.released) KAAS_TRY(open_journal(found->state.epoch));
        KAAS_TRY_ASSIGN(tail, open_tail(found->state));
        tail_end_ = tail;
        load_producers();
        // What was only read counts once it stands in a durable picture of our own.
        must_write_ = moved || tail > last_.bytes || !journaled_.empty() || !found->state.settled();
        picture_vouched_ = found->state.picture_vouched;
        return {};
    }
    [[nodiscard]] bool must_write() const { return must_write_; }

    /// Makes the files of our own epoch. To be durable before `write_picture`.
    [[nodiscard]] Result<void> write_files(Syncs syncs) {
        if (source_ != &volume_) {
            KAAS_TRY(bring_over());
        } else if (!picture_vouched_) {
            // Our picture will name files in its directory, whose own name may not be durable yet.
            KAAS_TRY(sync_directory(volume_, *paths_.directory, syncs));
        }
        return begin(syncs);
    }

    /// The commit point. To be durable before `finish`.
    [[nodiscard]] Result<void> write_picture(Syncs syncs) {
        KAAS_TRY_ASSIGN(epoch_log, write_first_picture(volume_, paths_, options_.epoch,
                                                       begun_->manifest, syncs));
        begun_->epoch_log = std::make_unique<EpochLog>(std::move(epoch_log));
        return {};
    }

    /// The check, behind which the log may be served.
    [[nodiscard]] Result<Opened> finish() {
        KAAS_TRY(log_dir_.session().confirm());
        report_stray_records(begun_ ? begun_->end : recorded_end_);
        if (!found_epoch_) {
            KAAS_TRY(make_topic_directory(volume_, *paths_.directory));
            return lazy(std::nullopt);
        }
        tell_journal();
        if (!must_write_) return lazy(found_epoch_);
        return std::move(*begun_);
    }

private:
    [[nodiscard]] Result<std::optional<TakenEpoch>> walk() {
        if (options_.earlier.empty()) return std::nullopt;
        const auto path = paths_.manifest();
        auto found = take_over(path, options_.earlier, on_void());
        if (found || found.error().code != ErrorCode::kNotFound) return found;
        const bool written = std::ranges::any_of(options_.earlier, &EpochCandidate::written);
        const bool moved = std::ranges::any_of(
            options_.earlier, [&](const EpochCandidate& one) { return one.volume != &volume_; });
        if (written && !moved) return found;
        // Nobody knows of a write, and there is no directory. On this machine's file systems that
        // is the truth; elsewhere an absence may be a stale cache entry, and making the directory
        // is the way to know. After a move one absent directory says nothing of another volume's.
        if (!written && !moved && volume_.is_local()) return std::nullopt;
        for (const auto& candidate : options_.earlier) {
            if (candidate.written) continue;
            KAAS_TRY(make_topic_directory(*candidate.volume, *paths_.directory));
            KAAS_TRY(make_partition_directory(*candidate.volume, *paths_.directory));
        }
        voids_.clear();
        return take_over(path, options_.earlier, on_void());
    }

    [[nodiscard]] std::function<void(const EpochCandidate&)> on_void() {
        return [this](const EpochCandidate& candidate) { voids_.push_back(candidate); };
    }

    /// A manifest that is gone before the controller has heard of it takes its records with it.
    void report_stray_records(base::Offset end) const {
        for (const auto& [volume, epoch, written] : voids_) {
            const auto stray = find_stray_records(*volume, paths_, base::LeaderEpoch{epoch}, end);
            if (!stray || !*stray) continue;
            log_dir_.count_stray_records();
            base::log::error("storage",
                             "{} has no manifest, and holds records up to offset {}: the log ends "
                             "at {} without them. If they were acknowledged, its manifest was lost",
                             (*stray)->file, (*stray)->end, end);
        }
    }

    [[nodiscard]] Result<void> take_state(const EpochState& state) {
        auto manifest = Manifest::from(state);
        if (!manifest) {
            return fail(
                manifest.error().code,
                fmt::format("{}: {}", paths_.epoch_directory(base::LeaderEpoch(state.epoch)),
                            manifest.error().context));
        }
        manifest_ = std::move(*manifest);
        for (const auto& facts : manifest_.sealed) spans_.push_back(existing(facts));
        if (manifest_.active) last_ = *manifest_.active;
        recorded_end_ = manifest_.end();
        return {};
    }

    [[nodiscard]] SegmentSpan existing(const SegmentFacts& facts) const {
        return {std::make_shared<Segment>(paths_, facts.name(), IndexOrigin::kExisting), facts};
    }

    /// How long the file of the last segment is; its recorded length when nothing can have come
    /// after.
    [[nodiscard]] Result<std::uint64_t> open_tail(const EpochState& state) {
        if (!manifest_.active) return std::uint64_t{0};
        if (last_.bytes > 0) spans_.push_back(existing(last_));
        manifest_.active.reset();
        if (last_.bytes > 0) manifest_.sealed.push_back(last_);
        if (state.released) return last_.bytes;
        tail_path_ = paths_.file(last_.name(), ".log");
        auto file = source_->open(tail_path_, OpenMode::kRead);
        if (!file && file.error().code == ErrorCode::kNotFound) {
            // Its manifest is durable and names it. Whoever has superseded us may have removed the
            // whole epoch since; otherwise the file is lost, or (elsewhere than here) the absence
            // is a stale cache entry and goes by itself.
            KAAS_TRY(log_dir_.session().confirm());
            return fail(volume_.is_local() ? ErrorCode::kCorrupt : ErrorCode::kIo,
                        tail_path_ + ": named by the manifest, and not there");
        }
        if (!file) return std::unexpected(std::move(file).error());
        tail_ = std::move(*file);
        KAAS_TRY_ASSIGN(size, tail_->size());
        if (size < last_.bytes) {
            return fail(ErrorCode::kCorrupt, fmt::format("{} at {}: {} bytes were synced",
                                                         tail_path_, size, last_.bytes));
        }
        return size;
    }

    /// Our picture may only name what is on our own volume, so that the old one can go. A move has
    /// most of it copied before it hands over; what it did not get to is copied here.
    [[nodiscard]] Result<void> bring_over() {
        KAAS_TRY(make_topic_directory(volume_, *paths_.directory));
        KAAS_TRY(make_partition_directory(volume_, *paths_.directory));
        for (const auto& span : spans_) {
            KAAS_TRY(copy_segment(*source_, volume_, paths_, span.facts));
        }
        // Those that were dropped stay named: a move may have copied them before they were.
        manifest_.unfinished.clear();  // not copied: they go with all that is on the old volume
        return {};
    }

    /// What the journal of the epoch's owner has of it beyond what is recorded. Entries of other
    /// epochs are not looked at: who wrote the newest picture has taken from them what counts.
    [[nodiscard]] Result<void> open_journal(std::int32_t epoch) {
        if (manifest_.journal.empty()) return {};
        const auto key = journal_key(*paths_.directory, base::LeaderEpoch{epoch});
        if (!key) return {};
        auto image = source_ == &volume_
                         ? log_dir_.journal_readers().open(manifest_.journal, manifest_.owner)
                         : JournalImage::read(*source_, manifest_.journal);
        if (!image) return std::unexpected(std::move(image).error());
        journal_ = std::move(*image);
        journaled_ = journal_->of(*key);
        if (const auto* gap = journal_->gap_behind(*key)) {
            return fail(ErrorCode::kCorrupt,
                        fmt::format("{} at {}: entries are damaged, and nobody can say that none "
                                    "was of {}",
                                    *gap->path, gap->position, *paths_.directory));
        }
        while (!journaled_.empty() && journaled_.front().extent.end <= recorded_end_) {
            journaled_ = journaled_.subspan(1);
        }
        return {};
    }

    /// All that earlier epochs left in a journal is sealed now, or was never needed.
    void tell_journal() const {
        const auto key = journal_key(*paths_.directory, options_.epoch);
        if (!key) return;
        log_dir_.journal_readers().superseded(key->partition, key->epoch, log_dir_.session());
        if (auto* const journal = log_dir_.journal()) {
            journal->superseded(key->partition, key->epoch);
        }
    }

    void load_producers() {
        producers_.load(manifest_.producers);
        producers_.expire(now_ms_, options_.config->producer_id_expiration_ms);
    }

    /// What a batch of the tail says of its producer. Gives the transaction that it ends as
    /// aborted.
    [[nodiscard]] std::optional<AbortedTransaction> replay(const wire::BatchView& batch) {
        const auto& header = batch.header;
        if (!header.has_producer_id()) return std::nullopt;
        if (!header.control()) {
            producers_.record(header, now_ms_);
            return std::nullopt;
        }
        const auto marker = parse_marker(batch, log_dir_.recovery_site());
        if (!marker || !*marker) return std::nullopt;
        const auto ended = producers_.end_transaction(
            {.producer = base::ProducerId{header.producer_id},
             .epoch = base::ProducerEpoch{header.producer_epoch},
             .coordinator_epoch = (*marker)->coordinator_epoch,
             .commit = (*marker)->end == TransactionEnd::kCommit},
            base::Offset{header.base_offset}, header.max_timestamp, now_ms_);
        return ended ? ended->index_entry() : std::nullopt;
    }

    /// Serves from what is there; the epoch begins at its first write.
    [[nodiscard]] Result<Opened> lazy(std::optional<base::LeaderEpoch> written_epoch) {
        auto opened = opened_at(recorded_end_, recorded_end_);
        opened.written_epoch = written_epoch;
        return opened;
    }

    [[nodiscard]] SegmentPlan plan_from(base::Offset base) const {
        return {options_.epoch, base, now_ms_,
                roll_jitter_ms(*options_.config, *paths_.directory, base)};
    }

    /// `high_watermark` and the place of the next batch are the same: the log's end.
    [[nodiscard]] Opened opened_at(base::Offset end, base::Offset active_base) {
        manifest_.owner = log_dir_.options().owner;
        manifest_.compactions = 0;  // an epoch counts its own
        manifest_.journal =
            log_dir_.journal() != nullptr ? JournalPath::of(manifest_.owner).name : std::string();
        manifest_.epochs.assign(options_.epoch, end);
        Opened opened{.paths = paths_,
                      .end = end,
                      .plan = plan_from(active_base),
                      .producers = std::move(producers_),
                      .manifest = manifest_,
                      .view = {.sealed = std::make_shared<const std::vector<SegmentSpan>>(spans_),
                               .log_start = manifest_.log_start,
                               .high_watermark = end}};
        const auto unstable = opened.producers.first_unstable(end);
        opened.view.last_stable_offset =
            std::max(std::min(unstable.value_or(end), end), manifest_.log_start);
        return opened;
    }

    /// Copies the tail into our own first segment, and fsyncs it there.
    [[nodiscard]] Result<void> begin(Syncs syncs) {
        const auto base = recorded_end_;
        KAAS_TRY_ASSIGN(first, make_first_segment(volume_, paths_, {options_.epoch, base}));
        auto& [segment, log] = first;
        auto plan = plan_from(base);
        if (auto copied = copy_tail(tail_end_, *segment, *log, plan); !copied) {
            // Nothing names it yet, and on a full volume each attempt would leave one.
            std::ignore = volume_.unlink(segment->path());
            return copied;
        }
        if (plan.facts().end < manifest_.log_start) {
            return fail(ErrorCode::kCorrupt,
                        fmt::format("{}: the log begins at {} and ends at {}", *paths_.directory,
                                    manifest_.log_start, plan.facts().end));
        }
        KAAS_TRY(sync_file(*log, syncs));
        KAAS_TRY(segment->offsets().flush(volume_, syncs));
        KAAS_TRY(segment->times().flush(volume_, syncs));
        KAAS_TRY(segment->aborted().flush(volume_, segment->aborted_path(), syncs));
        KAAS_TRY(sync_directory(volume_, paths_.epoch_directory(options_.epoch), syncs));
        report(plan.facts(), tail_end_);
        tail_.reset();

        auto images = producers_.images();
        auto opened = opened_at(plan.facts().end, base);
        opened.plan = plan;
        opened.manifest.active = plan.facts();
        opened.manifest.producers = std::move(images);
        opened.active = std::move(segment);
        opened.active_log = std::move(log);
        opened.view.last = {opened.active, plan.facts()};
        opened.written_epoch = options_.epoch;
        begun_ = std::move(opened);
        return {};
    }

    [[nodiscard]] Result<void> copy_tail(std::uint64_t tail_end, Segment& segment, File& log,
                                         SegmentPlan& plan) {
        if (tail_ == nullptr) return {};
        TailReader tail(*tail_, last_.bytes, tail_end);
        JournaledTail journaled(journaled_);
        for (;;) {
            const auto expected = plan.facts().end;
            KAAS_TRY_ASSIGN(batch, tail.next(expected));
            if (!batch) {
                // Not synced there, then, if it ever was: the journal may have it, and what follows
                // may stand in either.
                KAAS_TRY_ASSIGN(kept, journaled.next(expected));
                if (!kept) return refuse_gap(journaled.left_behind(), expected);
                tail.skip(kept->bytes.size());
                batch = kept;
                from_journal_ += kept->bytes.size();
            }
            const auto& header = batch->header;
            const auto aborted = replay(*batch);
            const auto placement = plan.add({.base_offset = base::Offset{header.base_offset},
                                             .last_offset = base::Offset{header.last_offset()},
                                             .bytes = batch->bytes.size(),
                                             .max_timestamp_ms = header.max_timestamp,
                                             .now_ms = now_ms_,
                                             .aborted = aborted},
                                            *options_.config);
            KAAS_TRY(log.write_at(placement.position, {&batch->bytes, 1}));
            if (placement.offset_entry) segment.offsets().append(*placement.offset_entry);
            if (placement.time_entry) segment.times().append(*placement.time_entry);
            if (aborted) segment.aborted().append(*aborted);
        }
    }

    void report(const SegmentFacts& copied, std::uint64_t tail_end) const {
        if (tail_ == nullptr || (tail_end == last_.bytes && copied.bytes == 0)) return;
        // What is left is what no producer was told of, or damage: the file keeps it either way.
        const bool all = copied.bytes >= tail_end - last_.bytes;
        base::log::log(all ? base::log::Level::kInfo : base::log::Level::kWarn, "storage",
                       "{}: epoch {} recovered {} bytes behind offset {}: {} at {} has {}, {} came "
                       "from the journal",
                       *paths_.directory, options_.epoch, copied.bytes, copied.base, tail_path_,
                       last_.bytes, tail_end - last_.bytes, from_journal_);
    }

    /// No entry is written before all that stands before it is durable: in a segment or in the
    /// journal, of which each damage is known. So what lies between was lost; or it was written
    /// while we read, to a segment that we do not know of, by an owner who gets no answer out any
    /// more.
    [[nodiscard]] Result<void> refuse_gap(const JournalImage::Piece* piece,
                                          base::Offset end) const {
        if (piece == nullptr || piece->extent.base <= end) return {};
        auto why = fmt::format("{}: good up to offset {}, and {} at {} goes on at {}", tail_path_,
                               end, *piece->path, piece->extent.position, piece->extent.base);
        KAAS_TRY_ASSIGN(now, read_epoch(*source_, paths_.manifest(), found_epoch_->value()));
        const bool goes_on = !now || now->file != found_file_ || now->lines.size() != found_lines_;
        if (!goes_on) return fail(ErrorCode::kCorrupt, std::move(why));
        base::log::warn("storage", "{}; its owner still wrote", why);
        return {};
    }

    const PartitionLogOptions& options_;
    LogDir& log_dir_;
    Volume& volume_;
    const PartitionPaths paths_;
    const std::int64_t now_ms_;

    Manifest manifest_;
    base::Offset recorded_end_{0};
    SegmentFacts
        last_;  ///< the segment that was appended to last, as far as it is recorded as synced
    std::vector<SegmentSpan> spans_;
    ProducerState producers_;
    std::unique_ptr<File> tail_;
    std::string tail_path_;
    std::uint64_t tail_end_ = 0;
    std::optional<base::LeaderEpoch> found_epoch_;  ///< none: nothing was ever written
    std::uint32_t found_file_ = 0;                  ///< of the manifest
    std::size_t found_lines_ = 0;                   ///< ... in there, when it was read
    bool picture_vouched_ = false;
    bool must_write_ = false;
    std::vector<EpochCandidate> voids_;  ///< newer than what was found, and there before us
    std::optional<Opened> begun_;
    Volume* source_ = nullptr;  ///< where the newest epoch lies
    std::shared_ptr<const JournalImage> journal_;
    std::span<const JournalImage::Piece> journaled_;  ///< of `journal_`
    std::uint64_t from_journal_ = 0;
};

}  // namespace

Result<Opened> recover(const PartitionLogOptions& options) {
    return std::move(recover_together({&options, 1}).front());
}

std::vector<Result<Opened>> recover_together(std::span<const PartitionLogOptions> options) {
    std::vector<Recovery> recoveries;
    recoveries.reserve(options.size());
    for (const auto& one : options) recoveries.emplace_back(one);
    std::vector<Result<void>> outcomes(options.size());
    const auto each = [&](bool writers_only, const auto& step) {
        for (std::size_t i = 0; i < options.size(); ++i) {
            if (!outcomes[i] || (writers_only && !recoveries[i].must_write())) continue;
            outcomes[i] = step(recoveries[i]);
        }
    };
    each(false, [](Recovery& one) { return one.read(); });
    const auto writers = std::ranges::count_if(recoveries, &Recovery::must_write);
    auto& volume = options.front().log_dir->volume();
    const bool together =
        std::cmp_greater_equal(writers, kWorthSyncingAll) && volume.can_sync_all();
    const auto syncs = together ? Syncs::kLater : Syncs::kNow;
    const auto sync_all = [&] {
        if (!together) return;
        const auto synced = volume.sync_all();
        each(true, [&](Recovery&) { return synced; });
    };
    each(true, [&](Recovery& one) { return one.write_files(syncs); });
    sync_all();
    each(true, [&](Recovery& one) { return one.write_picture(syncs); });
    sync_all();
    std::vector<Result<Opened>> opened;
    opened.reserve(options.size());
    for (std::size_t i = 0; i < options.size(); ++i) {
        opened.push_back(outcomes[i] ? recoveries[i].finish()
                                     : Result<Opened>(std::unexpected(outcomes[i].error())));
    }
    return opened;
}

}  // namespace kaas::storage
