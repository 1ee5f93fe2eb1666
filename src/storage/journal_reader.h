#pragma once

#include "base/mutex.h"
#include "storage/journal_format.h"
#include "storage/manifest.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kaas::storage {

/// What a journal held when it was read: where the batches of each log lie.
class JournalImage {
public:
    struct Piece {
        std::shared_ptr<File> file;
        std::shared_ptr<const std::string> path;
        JournalExtent extent;
    };

    /// A place where entries stood that later ones prove, and of which nobody can say whose.
    struct Gap {
        std::shared_ptr<const std::string> path;
        std::uint64_t number;  ///< of the file
        std::uint64_t position;
    };

    /// Reads the journal called `name` (DESIGN 7), opening every file afresh; each file up to where
    /// its good entries end, and over damage to what was synced, as good entries behind it tell. A
    /// journal that is not there was never begun, or nobody needs it any more. Blocks. Errors:
    /// kCorrupt and kIo with file and offset, the volume's.
    [[nodiscard]] static Result<std::shared_ptr<const JournalImage>> read(Volume& volume,
                                                                          const std::string& name);

    /// The entries of one log, in the order in which they were written.
    [[nodiscard]] std::span<const Piece> of(const JournalKey& key) const;
    /// A gap that the last entry of the log may have stood in. Empty when there is no gap, or an
    /// entry of the log stands behind: then it has lost none if all up to that one is there.
    [[nodiscard]] const Gap* gap_behind(const JournalKey& key) const;

    [[nodiscard]] std::span<const Gap> gaps() const { return gaps_; }
    /// Calls `visit` for every log that has entries.
    void for_each(const std::function<void(const JournalKey&)>& visit) const;
    /// Tells the process's log what was found.
    void log(const std::string& name) const;

private:
    /// Behind what was added before.
    void add(const std::string& path, std::uint64_t number, std::shared_ptr<File> file,
             const JournalContents& contents);

    std::unordered_map<JournalKey, std::vector<Piece>> pieces_;
    std::vector<Gap> gaps_;
};

/// The journals that recoveries on one volume ask for; each is read once, however many partitions
/// have entries in it. Thread: any that may block.
class JournalReaders {
public:
    /// `self`: whose earlier incarnations are over, so that what was read of them stays true.
    JournalReaders(Volume& volume, Owner self) : volume_(volume), self_(self) {}

    /// Incarnations of any broker that may still write on this volume; every other that ever had an
    /// epoch here is over. Before the first call, only `self`'s own earlier ones are.
    void set_living(std::set<base::Incarnation> living) KAAS_EXCLUDES(mutex_);
    /// Nothing is being opened now: forgets what was read of other brokers' journals, which others
    /// take care of, too.
    void forget_others() KAAS_EXCLUDES(mutex_);

    /// What the journal `name` of `owner` holds; of one who may still write, as it is now.
    [[nodiscard]] Result<std::shared_ptr<const JournalImage>> open(const std::string& name,
                                                                   const Owner& owner)
        KAAS_EXCLUDES(mutex_);
    /// Every epoch of the partition below `epoch` is sealed by a durable picture, or had nothing in
    /// a journal that is needed. An earlier incarnation's journal of which this is true for all of
    /// its logs goes, after a check of the session. Thread: any that may block.
    void superseded(const base::TopicPartition& partition, base::LeaderEpoch epoch,
                    SessionCheck& session) KAAS_EXCLUDES(mutex_);

private:
    struct Known {
        const base::BrokerId broker;
        base::Mutex mutex;
        std::shared_ptr<const JournalImage> image KAAS_GUARDED_BY(mutex);
        std::unordered_set<JournalKey> needed KAAS_GUARDED_BY(mutex);
    };
    [[nodiscard]] bool is_over(const Owner& owner) const KAAS_REQUIRES(mutex_);
    [[nodiscard]] static bool is_unneeded(Known& known, const base::TopicPartition& partition,
                                          base::LeaderEpoch epoch);

    Volume& volume_;
    const Owner self_;
    base::Mutex mutex_;
    std::optional<std::set<base::Incarnation>> living_ KAAS_GUARDED_BY(mutex_);
    std::unordered_map<std::string, std::shared_ptr<Known>> known_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::storage
