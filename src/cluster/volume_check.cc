#include "cluster/volume_check.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "base/uuid.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <latch>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using std::chrono::microseconds;
using storage::Liveness;
using storage::MarkKind;
using storage::OpenMode;
using storage::Volume;

/// Names that are raced for in one round. A directory may cost milliseconds to remove.
constexpr int kFileRaces = 16;
constexpr int kDirectoryRaces = 2;
/// More than one page and one rsize of any network file system is not needed to see a short read.
constexpr std::size_t kFileBytes = 300'000;
constexpr std::size_t kGrowthBytes = 5'000;
/// What directories on all supported systems take (NAME_MAX); topics' names come near to it.
constexpr std::size_t kLongestName = 255;
/// No network and no disk answers a sync so quickly: who does has not asked them.
constexpr microseconds kTooQuick{30};

struct Outcome {
    Verdict verdict = Verdict::kGood;
    std::string what;
};
using Proof = storage::Result<Outcome>;

Outcome good(std::string what) { return {Verdict::kGood, std::move(what)}; }
Outcome bad(std::string what) { return {Verdict::kBad, std::move(what)}; }

/// Where the proofs are made.
struct Bench {
    Volume& mine;
    Volume& other;
    std::string home;
    const base::Clock& clock;
    int rounds;

    [[nodiscard]] std::string at(std::string_view name) const {
        return home + "/" + std::string(name);
    }
    [[nodiscard]] bool is_two() const { return &mine != &other; }
};

bool is(const storage::Error& error, storage::ErrorCode code) { return error.code == code; }

template <class T>
bool refused_as_there(const storage::Result<T>& made) {
    return !made && is(made.error(), storage::ErrorCode::kExists);
}

/// Bytes that tell their place.
std::string pattern(std::size_t begin, std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) {
        const auto at = begin + i;
        text[i] = static_cast<char>('a' + (at ^ (at >> 8U) ^ (at >> 16U)) % 26);
    }
    return text;
}

storage::Result<void> write(storage::File& file, std::uint64_t at, std::string_view text) {
    const base::ByteView piece = base::as_bytes(text);
    return file.write_at(at, {&piece, 1});
}

microseconds median(std::vector<microseconds> all) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::ranges::nth_element(all, middle);
    return *middle;
}

template <class Call>
microseconds timed(const base::Clock& clock, Call&& call) {
    const auto begin = clock.now();
    std::forward<Call>(call)();
    return std::chrono::duration_cast<microseconds>(clock.now() - begin);
}

// The proofs.

/// How often each name was won when two went for all of them at once.
template <class Make>
std::vector<int> race(const Bench& bench, std::string_view kind, int names, const Make& make) {
    std::vector<std::atomic<int>> won(static_cast<std::size_t>(names));
    const auto run = [&](Volume& volume) {
        for (int name = 0; name < names; ++name) {
            if (make(volume, bench.at(fmt::format("{}-{}", kind, name)))) {
                ++won[static_cast<std::size_t>(name)];
            }
        }
    };
    std::latch both(2);
    base::ThreadPool rival("kaas-check", 1);
    rival.post([&] {
        both.arrive_and_wait();
        run(bench.other);
    });
    both.arrive_and_wait();
    run(bench.mine);
    rival.stop();
    return {won.begin(), won.end()};
}

template <class Make, class Remove>
Proof exclusive(const Bench& bench, std::string_view kind, int races, const Make& make,
                const Remove& remove) {
    const auto one = bench.at(kind);
    KAAS_TRY(make(bench.mine, one));
    const bool is_refused =
        refused_as_there(make(bench.other, one)) && refused_as_there(make(bench.mine, one));
    KAAS_TRY(remove(bench.mine, one));
    if (!is_refused) return bad("a name that was there was made once more");
    const int names = races * std::max(1, bench.rounds);
    const auto won = race(bench, kind, names, make);
    for (int name = 0; name < names; ++name) {
        KAAS_TRY(storage::unless(storage::ErrorCode::kNotFound,
                                 remove(bench.mine, bench.at(fmt::format("{}-{}", kind, name)))));
    }
    const auto wrong = std::ranges::count_if(won, [](int winners) { return winners != 1; });
    if (wrong > 0) return bad(fmt::format("{} of {} races had no, or two, winners", wrong, names));
    return good(fmt::format("{} races had one winner each", names));
}

Proof exclusive_files(const Bench& bench) {
    return exclusive(
        bench, "file", kFileRaces,
        [](Volume& volume, const std::string& path) -> storage::Result<void> {
            KAAS_TRY(volume.create(path));
            return {};
        },
        [](Volume& volume, const std::string& path) { return volume.unlink(path); });
}

Proof exclusive_directories(const Bench& bench) {
    return exclusive(
        bench, "directory", kDirectoryRaces,
        [](Volume& volume, const std::string& path) { return volume.make_directory(path); },
        [](Volume& volume, const std::string& path) { return volume.remove_directory(path); });
}

/// Rule 5: who has seen a name absent, and perhaps remembers it, learns the truth by creating it.
Proof absence(const Bench& bench) {
    const auto path = bench.at("late");
    if (bench.other.hold(path)) return bad("a name that nobody made is there");
    KAAS_TRY(bench.mine.make_directory(path));
    const auto again = bench.other.make_directory(path);
    KAAS_TRY(bench.mine.remove_directory(path));
    if (refused_as_there(again)) return good("creating tells a remembered absence from a true one");
    return bad("what had been seen absent was made a second time");
}

Proof reads_back(Volume& volume, const std::string& path, std::size_t bytes) {
    KAAS_TRY_ASSIGN(text, storage::read_whole(volume, path, bytes * 2));
    if (text == pattern(0, bytes)) return good({});
    if (text.size() != bytes) {
        return bad(fmt::format("{} bytes were synced, {} were read", bytes, text.size()));
    }
    return bad(fmt::format("other bytes were read than the {} that were synced", bytes));
}

/// Close-to-open, as we use it: an open after the writer's sync sees all of it.
Proof visible(const Bench& bench) {
    const auto path = bench.at("written");
    KAAS_TRY_ASSIGN(file, bench.mine.create(path));
    std::size_t bytes = 0;
    for (int round = 0; round <= bench.rounds; ++round) {
        const auto more = round == 0 ? kFileBytes : kGrowthBytes;
        KAAS_TRY(write(*file, bytes, pattern(bytes, more)));
        KAAS_TRY(file->sync());
        bytes += more;
        KAAS_TRY_ASSIGN(seen, reads_back(bench.other, path, bytes));
        if (seen.verdict != Verdict::kGood) return seen;
    }
    KAAS_TRY(bench.mine.unlink(path));
    return good(
        fmt::format("{} bytes in {} syncs, each seen by the next open", bytes, bench.rounds + 1));
}

/// Honest as far as can be seen: no error, and no answer that nobody can have given.
Proof synced(const Bench& bench) {
    const auto path = bench.at("synced");
    KAAS_TRY_ASSIGN(file, bench.mine.create(path));
    std::vector<microseconds> files;
    std::vector<microseconds> directories;
    storage::Result<void> done;
    for (int round = 0; round < bench.rounds && done; ++round) {
        KAAS_TRY(write(*file, static_cast<std::uint64_t>(round) * kGrowthBytes,
                       pattern(0, kGrowthBytes)));
        files.push_back(timed(bench.clock, [&] { done = file->sync(); }));
        if (!done) break;
        directories.push_back(
            timed(bench.clock, [&] { done = bench.mine.sync_directory(bench.home); }));
    }
    KAAS_TRY(bench.mine.unlink(path));
    if (!done && !is(done.error(), storage::ErrorCode::kNoSpace)) return bad(done.error().context);
    KAAS_TRY(done);
    const auto what = fmt::format("a file takes {} us, a directory {} us", median(files).count(),
                                  median(directories).count());
    if (bench.mine.is_local() || median(files) > kTooQuick) return good(what);
    return Outcome{Verdict::kNote, what + ": quicker than any server can be"};
}

/// A session's life and end: `holder` made it, `marker` ends it.
Proof marked(const Bench& bench, Volume& holder, Volume& marker, MarkKind kind) {
    const auto path = bench.at("session");
    KAAS_TRY(holder.make_directory(path));
    KAAS_TRY_ASSIGN(held, holder.hold(path));
    KAAS_TRY_ASSIGN(before, held->look());
    if (before != Liveness::kAlive) return bad("a session that nobody ended looks ended");
    KAAS_TRY(marker.mark(path, kind));
    Liveness after = Liveness::kAlive;
    storage::Result<Liveness> looked = Liveness::kAlive;
    const auto took = timed(bench.clock, [&] { looked = held->look(); });
    KAAS_TRY(looked);
    after = *looked;
    if (kind == MarkKind::kKeep) KAAS_TRY(marker.remove_directory(path));
    if (after != Liveness::kMarked) {
        return bad(kind == MarkKind::kKeep ? "a mode that was taken away is still seen"
                                           : "a session that was removed still looks alive");
    }
    return good(fmt::format("seen by the next look, which takes {} us", took.count()));
}

Proof marked_both_ways(const Bench& bench, MarkKind kind) {
    KAAS_TRY_ASSIGN(seen, marked(bench, bench.mine, bench.mine, kind));
    if (!bench.is_two()) return seen;
    for (int round = 0; round < bench.rounds && seen.verdict == Verdict::kGood; ++round) {
        KAAS_TRY_ASSIGN(theirs, marked(bench, bench.mine, bench.other, kind));
        seen = theirs;
        if (seen.verdict != Verdict::kGood) break;
        KAAS_TRY_ASSIGN(ours, marked(bench, bench.other, bench.mine, kind));
        if (ours.verdict != Verdict::kGood) return ours;
    }
    return seen;
}
Proof mark_removes(const Bench& bench) { return marked_both_ways(bench, MarkKind::kRemove); }
Proof mark_keeps(const Bench& bench) { return marked_both_ways(bench, MarkKind::kKeep); }

/// A controller shows that it lives by a directory's time.
Proof beats(const Bench& bench) {
    const auto path = bench.at("beats");
    KAAS_TRY(bench.mine.make_directory(path));
    KAAS_TRY_ASSIGN(mine, bench.mine.hold(path));
    KAAS_TRY_ASSIGN(other, bench.other.hold(path));
    for (std::int64_t counter = 1; counter <= 2 + bench.rounds; ++counter) {
        KAAS_TRY(mine->beat(counter));
        KAAS_TRY_ASSIGN(seen, other->last_beat());
        if (seen != counter) {
            return bad(fmt::format("the time of a directory was set to {} s and read as {} s",
                                   counter, seen));
        }
    }
    KAAS_TRY(bench.mine.remove_directory(path));
    return good("a directory's time, once set, is seen at once");
}

/// A deleted topic is renamed aside in one step, with files open in it.
Proof renamed(const Bench& bench) {
    KAAS_TRY(bench.mine.make_directory(bench.at("topic")));
    const auto text = pattern(0, kGrowthBytes);
    KAAS_TRY_ASSIGN(file, bench.mine.create(bench.at("topic/file")));
    KAAS_TRY(write(*file, 0, text));
    KAAS_TRY(bench.mine.rename(bench.at("topic"), bench.at("aside")));
    if (bench.mine.hold(bench.at("topic"))) return bad("a renamed directory has its old name, too");
    std::string still(text.size(), '\0');
    const auto got =
        file->read_at(0, std::as_writable_bytes(std::span(still.data(), still.size())));
    if (!got || still != text) return bad("a file that was open cannot be read after the rename");
    KAAS_TRY_ASSIGN(seen, reads_back(bench.mine, bench.at("aside/file"), text.size()));
    if (seen.verdict != Verdict::kGood) return seen;
    KAAS_TRY(bench.mine.rename(bench.at("aside/file"), bench.at("aside/moved")));
    file.reset();
    KAAS_TRY(bench.mine.unlink(bench.at("aside/moved")));
    KAAS_TRY(bench.mine.remove_directory(bench.at("aside")));
    return good("a directory goes to its new name whole, with what is open in it");
}

/// Segments are removed while somebody may still read them. NFS hides such a file under another
/// name (".nfs..."), which goes when it is closed.
Proof removed_while_open(const Bench& bench) {
    KAAS_TRY(bench.mine.make_directory(bench.at("open")));
    KAAS_TRY_ASSIGN(file, bench.mine.create(bench.at("open/file")));
    KAAS_TRY(write(*file, 0, pattern(0, kGrowthBytes)));
    KAAS_TRY(bench.other.unlink(bench.at("open/file")));
    KAAS_TRY_ASSIGN(left, bench.other.list(bench.at("open")));
    file.reset();
    KAAS_TRY_ASSIGN(later, bench.mine.list(bench.at("open")));
    if (!later.empty()) return bad(fmt::format("{} stays after the last close", later.front()));
    const auto removed = bench.mine.remove_directory(bench.at("open"));
    if (!removed) return bad(removed.error().context);
    if (left.empty()) return good("its name goes at once");
    return Outcome{Verdict::kNote, "its name goes when the last reader closes it"};
}

Proof listed(const Bench& bench) {
    constexpr int kNames = 100;
    KAAS_TRY(bench.mine.make_directory(bench.at("list")));
    std::vector<std::string> wanted;
    for (int i = 0; i < kNames; ++i) {
        const auto name = fmt::format("{:03}", i);
        KAAS_TRY(bench.mine.create(bench.at("list/" + name)));
        wanted.push_back(name);
    }
    KAAS_TRY_ASSIGN(all, bench.mine.list(bench.at("list")));
    for (const auto& name : wanted) KAAS_TRY(bench.mine.unlink(bench.at("list/" + name)));
    KAAS_TRY_ASSIGN(none, bench.mine.list(bench.at("list")));
    KAAS_TRY(storage::remove_tree(bench.mine, bench.at("list")));
    if (all != wanted) return bad(fmt::format("{} of {} names were listed", all.size(), kNames));
    if (!none.empty()) return bad(none.front() + " is listed after its removal");
    return good("every name is listed once, and none that is gone");
}

Proof long_names(const Bench& bench) {
    const auto path = bench.at(std::string(kLongestName, 'n'));
    const auto made = bench.mine.create(path);
    if (!made) return bad(made.error().context);
    KAAS_TRY(bench.mine.unlink(path));
    return good(fmt::format("{} bytes", kLongestName));
}

Proof locked(const Bench& bench) {
    KAAS_TRY_ASSIGN(first, bench.mine.lock(bench.at("lock"), "check"));
    const auto second = bench.other.lock(bench.at("lock"), "check");
    if (!second && is(second.error(), storage::ErrorCode::kLocked)) return good("one holder");
    return Outcome{Verdict::kNote, second ? "two hold it at once" : second.error().context};
}

struct Property {
    std::string_view name;
    Proof (*prove)(const Bench&);
    std::string_view advice;
};

constexpr std::string_view kNotFit =
    "This file system cannot carry kaas: take one that docs/volumes.md names.";
constexpr std::string_view kCaches =
    "A cache answers where the server has to be asked: see the mount options of docs/volumes.md.";
constexpr std::string_view kSeeError = "Mend what the error names, and check again.";

constexpr std::array<Property, 13> kProperties = {{
    {"exclusive files", exclusive_files, kNotFit},
    {"exclusive directories", exclusive_directories, kNotFit},
    {"absence", absence, kNotFit},
    {"visibility", visible, kCaches},
    {"fsync", synced,
     "Let syncs reach the disk: an export with `sync`, no write-back cache that a power cut "
     "empties."},
    {"mark", mark_removes, kCaches},
    {"mode bits", mark_keeps,
     "Modes have to be kept and asked for afresh, and every broker has to be the same user."},
    {"times", beats, kCaches},
    {"rename", renamed, kNotFit},
    {"remove while open", removed_while_open,
     "As NFS does it: a deleted topic gives its space back when the last reader has closed it."},
    {"list", listed, kNotFit},
    {"long names", long_names, "Topics with names near 249 characters cannot be made here."},
    {"lock", locked, "Clusters do not need it; two standalone brokers would not see each other."},
}};

Finding prove(const Property& property, const Bench& bench) {
    auto outcome = property.prove(bench);
    if (!outcome) return {property.name, Verdict::kUnknown, outcome.error().context, kSeeError};
    const bool is_good = outcome->verdict == Verdict::kGood;
    return {property.name, outcome->verdict, std::move(outcome->what),
            is_good ? std::string_view() : property.advice};
}

/// A directory that nobody else knows of.
storage::Result<std::string> make_home(Volume& volume) {
    KAAS_TRY(storage::make_directory_if_missing(volume, std::string(kCheckDirectory)));
    auto home = std::string(kCheckDirectory) + "/" + base::Uuid::random().to_string();
    KAAS_TRY(volume.make_directory(home));
    return home;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::kGood: return "good";
        case Verdict::kNote: return "note";
        case Verdict::kBad: return "bad";
        case Verdict::kUnknown: return "unknown";
    }
    return "unknown";
}

Findings check_volume(storage::Volume& mine, storage::Volume& other,
                      const VolumeCheckOptions& options) {
    auto home = make_home(mine);
    if (!home) return {{"writing", Verdict::kUnknown, home.error().context, kSeeError}};
    const Bench bench{.mine = mine,
                      .other = other,
                      .home = *home,
                      .clock = *options.clock,
                      .rounds = options.rounds};
    Findings findings;
    for (const auto& property : kProperties) {
        if (bench.rounds == 0 && property.prove == synced) continue;
        findings.push_back(prove(property, bench));
    }
    // A session whose mode was taken away cannot be listed, only removed.
    auto cleaned =
        storage::unless(storage::ErrorCode::kNotFound, mine.remove_directory(bench.at("session")));
    cleaned = storage::remove_tree(mine, *home);
    if (!cleaned) {
        findings.push_back({"clean-up", Verdict::kNote, cleaned.error().context,
                            "Remove it by hand: nobody reads what is in __check."});
    }
    return findings;
}

storage::Result<bool> is_same_volume(storage::Volume& mine, storage::Volume& other) {
    KAAS_TRY_ASSIGN(home, make_home(mine));
    const auto seen = other.hold(home);
    KAAS_TRY(mine.remove_directory(home));
    if (!seen && !is(seen.error(), storage::ErrorCode::kNotFound)) {
        return std::unexpected(seen.error());
    }
    return seen.has_value();
}

std::string first_fault(const Findings& findings) {
    const auto found = std::ranges::find(findings, Verdict::kBad, &Finding::verdict);
    if (found == findings.end()) return {};
    return fmt::format("{}: {}. {}", found->property, found->what, found->advice);
}

}  // namespace kaas::cluster
