// Any bytes as the file of a dead broker's journal: a log opens from it and serves what is good in
// it, or is refused, and never crashes.
#include "base/assert.h"
#include "base/bytes.h"
#include "base/log.h"
#include "storage/epoch_beginning.h"
#include "storage/journal.h"
#include "storage/testing_log.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace kaas;
using namespace kaas::storage;

constexpr std::string_view kManifest =
    R"({"log":{"kind":"manifest","epoch":0,"file":1},)"
    R"("owner":{"broker":1,"incarnation":"AAAAAAAAAAAAAAAAAAAAAA"},)"
    R"("journal":"1.AAAAAAAAAAAAAAAAAAAAAA","segments":[],)"
    R"("active":{"epoch":0,"base":0,"end":0,"bytes":0},"epochs":[[0,0]],"log_start":0,)"
    R"("producers":[]})"
    "\n";
constexpr std::string_view kJournalLog =
    R"({"log":{"kind":"journal","epoch":0,"file":1},"files":[1]})"
    "\n";

void put(Volume& volume, const std::string& path, std::string_view text) {
    auto file = volume.create(path);
    KAAS_ASSERT(file);
    const auto piece = base::as_bytes(text);
    KAAS_ASSERT((*file)->write_at(0, {&piece, 1}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    base::log::configure({.level = base::log::Level::kError});
    MemoryVolume volume;
    base::ManualClock clock;
    const PartitionPaths paths{"topic.AAAAAAAAAAAAAAAAAAAAAA/0"};
    const base::LeaderEpoch epoch{0};
    KAAS_ASSERT(make_topic_directory(volume, *paths.directory));
    KAAS_ASSERT(make_partition_directory(volume, *paths.directory));
    KAAS_ASSERT(volume.make_directory(paths.epoch_directory(epoch)));
    put(volume, paths.epoch_directory(epoch) + "/manifest-1.jsonl", kManifest);
    put(volume, paths.epoch_directory(epoch) + "/00000000000000000000.log", "");
    const JournalPath journal{"1.AAAAAAAAAAAAAAAAAAAAAA"};
    KAAS_ASSERT(volume.make_directory(std::string(JournalPath::kParent)));
    KAAS_ASSERT(volume.make_directory(journal.directory()));
    KAAS_ASSERT(volume.make_directory(journal.epoch_log().epoch_directory(0)));
    put(volume, journal.epoch_log().file(0, 1), kJournalLog);
    put(volume, journal.file(1), {reinterpret_cast<const char*>(data), size});

    testing::Broker broker(volume, clock);
    const auto log = broker.open(1);
    if (!log) {
        KAAS_ASSERT(log.error().code == ErrorCode::kCorrupt);
        return 0;
    }
    KAAS_ASSERT(testing::read_all(**log, base::Offset{0}));
    (void)testing::read_values(**log);  // records are the producers' and may be anything
    return 0;
}
