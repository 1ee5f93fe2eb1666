// Goal: what a manifest's lines say comes back as it was meant, and nothing else passes. Method:
// states through text and back; one damaged key a row.

#include "storage/manifest.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;

[[nodiscard]] ProducerImage producer(std::int64_t id, std::int64_t offset) {
    ProducerImage image{.id = base::ProducerId{id}, .entry = {}};
    image.entry.epoch = base::ProducerEpoch{2};
    image.entry.coordinator_epoch = 5;
    image.entry.last_timestamp_ms = 77;
    image.entry.seen_ms = 78;
    image.entry.changed_at = base::Offset{offset};
    image.entry.add({.last_sequence = 8,
                     .offset_delta = 1,
                     .last_offset = base::Offset{offset - 4},
                     .timestamp_ms = 70});
    image.entry.add({.last_sequence = 9,
                     .offset_delta = 0,
                     .last_offset = base::Offset{offset},
                     .timestamp_ms = 77});
    return image;
}

[[nodiscard]] Manifest sample() {
    Manifest manifest;
    manifest.owner = {.broker = base::BrokerId{3}, .incarnation = {base::Uuid::random()}};
    manifest.sealed.push_back({.epoch = base::LeaderEpoch{1},
                               .base = base::Offset{0},
                               .end = base::Offset{500},
                               .bytes = 4000,
                               .max_timestamp_ms = 99,
                               .max_timestamp_offset = base::Offset{420}});
    manifest.active = SegmentFacts{.epoch = base::LeaderEpoch{4},
                                   .base = base::Offset{500},
                                   .end = base::Offset{510},
                                   .bytes = 80};
    manifest.epochs.assign(base::LeaderEpoch{1}, base::Offset{0});
    manifest.epochs.assign(base::LeaderEpoch{4}, base::Offset{500});
    manifest.log_start = base::Offset{20};
    manifest.producers = {producer(7, 505)};
    manifest.unknown.emplace("of_a_later_version", 1);
    return manifest;
}

[[nodiscard]] json::object through_text(const json::object& object) {
    return json::parse(json::serialize(object)).as_object();
}

void expect_equal(const Manifest& a, const Manifest& b) {
    EXPECT_EQ(a.owner.broker, b.owner.broker);
    EXPECT_EQ(a.owner.incarnation, b.owner.incarnation);
    EXPECT_EQ(a.sealed, b.sealed);
    EXPECT_EQ(a.active, b.active);
    EXPECT_EQ(a.epochs.starts(), b.epochs.starts());
    EXPECT_EQ(a.log_start, b.log_start);
    EXPECT_EQ(a.producers, b.producers);
    EXPECT_EQ(a.unknown, b.unknown);
}

TEST(ManifestTest, APictureComesBack) {
    const auto manifest = sample();
    const auto read = Manifest::from_picture(through_text(manifest.picture()));
    ASSERT_TRUE(read) << read.error().context;
    expect_equal(*read, manifest);
}

TEST(ManifestTest, LinesBringAReaderToTheWritersState) {
    auto writer = sample();
    auto reader = *Manifest::from_picture(through_text(writer.picture()));

    auto synced = *writer.active;
    synced.end = base::Offset{600};
    synced.bytes = 900;
    std::vector<ProducerImage> now{producer(7, 505), producer(8, 599)};
    const auto facts = writer.synced_facts(synced, now);
    EXPECT_EQ(facts.at("producers").as_array().size(), 1) << "only the changed one is told";
    ASSERT_TRUE(reader.apply_synced(through_text(facts)));
    writer.active = synced;
    writer.producers = now;
    expect_equal(reader, writer);

    ASSERT_TRUE(reader.apply_change(through_text(writer.roll_line(synced, now))));
    writer.roll(synced);
    expect_equal(reader, writer);
    EXPECT_EQ(reader.end(), base::Offset{600});

    ASSERT_TRUE(reader.apply_change(through_text(Manifest::drop_line({}, base::Offset{30}))));
    EXPECT_EQ(reader.log_start, base::Offset{30});
}

TEST(ManifestTest, ASyncedPointNeverGoesBack) {
    auto manifest = sample();
    auto earlier = *manifest.active;
    earlier.bytes = 79;
    EXPECT_FALSE(manifest.apply_synced(manifest.synced_facts(earlier, {})));
}

TEST(ManifestTest, EveryDamagedKeyIsRefusedByName) {
    struct Row {
        const char* key;
        json::value damage;
    };
    for (const auto& row : {
             Row{"owner", nullptr},
             Row{"owner", json::object{{"broker", 1}, {"incarnation", "no uuid"}}},
             Row{"segments", "text"},
             Row{"segments",
                 json::array{json::object{{"epoch", 1}, {"base", 10}, {"end", 5}, {"bytes", 1}}}},
             Row{"segments",
                 json::array{json::object{{"epoch", 1}, {"base", 0}, {"end", 501}, {"bytes", 1}}}},
             Row{"active", json::object{{"epoch", -1}, {"base", 500}, {"end", 500}, {"bytes", 0}}},
             Row{"active", json::object{{"epoch", 1}, {"base", 500}, {"end", 500}, {"bytes", -1}}},
             Row{"epochs", json::array{json::array{1}}},
             Row{"log_start", 1.5},
             Row{"producers", 1},
             Row{"producers", json::array{json::array{1, 2}}},
             Row{"producers", json::array{json::array{1, 70000, 0, 0, 0, 0, 0}}},
         }) {
        auto picture = sample().picture();
        picture[row.key] = row.damage;
        const auto read = Manifest::from_picture(picture);
        ASSERT_FALSE(read) << row.key << " " << row.damage;
        EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    }
}

}  // namespace
}  // namespace kaas::storage
