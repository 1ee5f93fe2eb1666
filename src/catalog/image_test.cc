// Goal: an image built by changes, one built by reading those changes' lines, and one read back
// from a picture are the same; earlier images never change; a change that does not fit leaves no
// trace. Method: random histories by printed seed, compared through the picture, whose keys are
// sorted.

#include "catalog/image.h"

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/error.h"
#include "catalog/model.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kaas::catalog {
namespace {

namespace json = boost::json;

std::string picture(const Image& image) { return json::serialize(to_picture(image)); }

Result<Change> through_text(const Change& change) {
    return parse_change(json::parse(json::serialize(to_json(change))).as_object());
}

Broker broker(int id, base::Incarnation incarnation = {base::Uuid::random()}) {
    return {.id = base::BrokerId(id),
            .sessions = {{"main", incarnation}},
            .endpoints = {{"PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092}},
            .rack = std::nullopt,
            .unknown = nullptr};
}

Partition partition_of(const Broker& leader, const std::string& volume = "main") {
    Partition partition;
    partition.replicas = {leader.id};
    auto session = leader.sessions.find(volume);
    partition.leader = {leader.id,
                        session == leader.sessions.end() ? base::Incarnation{} : session->second};
    partition.runs = {{base::LeaderEpoch(0), volume}};
    return partition;
}

Topic topic(std::string name, const Broker& leader, std::size_t partitions = 1) {
    return {.name = std::move(name),
            .id = {base::Uuid::random()},
            .partitions = std::vector<Partition>(partitions, partition_of(leader)),
            .configs = {},
            .unknown = nullptr};
}

/// Makes changes that fit the image they are asked for.
class History {
public:
    explicit History(unsigned seed) : random_(seed) {}

    Change next(const Image& image) {
        const auto topics = image.topics_by_name();
        if (image.brokers().empty() || one_in(10)) return BrokerRegistered{broker(1 + below(3))};
        if (topics.empty() || one_in(4)) return create(image);
        const auto& chosen =
            *topics[static_cast<std::size_t>(below(static_cast<int>(topics.size())))];
        const auto id = chosen.id;
        const base::PartitionId index(below(static_cast<int>(chosen.partitions.size())));
        const auto& partition = *chosen.partition(index);
        switch (below(12)) {
            case 0: return PartitionsAdded{id, {partition_of(any_broker(image))}};
            case 1:
                return ConfigsChanged{id, {{"retention.ms", std::to_string(below(9))}, {"x", {}}}};
            case 2:
                return ConfigsChanged{base::BrokerId(below(3) - 1), {{"log.retention.ms", "7"}}};
            case 3: return TopicDeleted{id};
            case 4: return LeadershipRenewed{any_broker(image).id};
            case 5: return Released{{{{id, index}, partition.leader_epoch}}};
            case 6: return opened({id, index}, partition);
            case 7: return reclaim_or_leave(image);
            case 8: return BrokerDraining{any_broker(image).id};
            case 9:
                if (partition.released) return move(image, {id, index}, partition);
                return AskedBack{{{{id, index}, partition.leader_epoch}}};
            case 10: return ReplicasChanged{{{{id, index}, {any_broker(image).id}}}};
            default: return move(image, {id, index}, partition);
        }
    }

private:
    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
    bool one_in(int n) { return below(n) == 0; }
    const Broker& any_broker(const Image& image) {
        auto at = image.brokers().begin();
        std::advance(at, below(static_cast<int>(image.brokers().size())));
        return *at->second;
    }
    Change create(const Image& image) {
        auto made = topic("t" + std::string(one_in(2) ? "." : "_") + std::to_string(counter_++),
                          any_broker(image), std::size_t{1} + static_cast<std::size_t>(below(3)));
        if (one_in(2)) made.configs = {{"cleanup.policy", "compact"}, {"segment.ms", "100"}};
        return TopicCreated{made};
    }
    Change reclaim_or_leave(const Image& image) {
        if (!image.deletions().empty()) return TopicReclaimed{image.deletions().begin()->first};
        if (const auto& some = any_broker(image); !some.living() && image.brokers().size() > 1) {
            return BrokerUnregistered{some.id};
        }
        return BrokerGone{any_broker(image).id};
    }
    Change opened(base::TopicPartition id, const Partition& partition) {
        const auto epoch = partition.leader_epoch;
        const auto written =
            below(2) == 0 ? epoch : base::LeaderEpoch(below(epoch.value() + 1) - 1);
        return Opened{{{id, epoch, written}}};
    }
    Change move(const Image& image, base::TopicPartition id, const Partition& partition) {
        const auto& to = any_broker(image);
        return Assigned{{{.partition = id,
                          .replicas = {to.id, base::BrokerId(9)},
                          .leader = {to.id, {base::Uuid::random()}},
                          .leader_epoch = partition.leader_epoch + 1 + below(3),
                          .volume = one_in(3) ? "fast" : "main"}}};
    }

    std::mt19937 random_;
    int counter_ = 0;
};

TEST(Image, LinesAndPicturesLeadToTheSameImage) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        History history(seed);
        ImagePtr direct = ImageEditor("c").finish();
        ImagePtr by_lines = direct;
        for (int step = 0; step < 100; ++step) {
            const auto change = history.next(*direct);
            const auto before = picture(*direct);
            ImageEditor editor(*direct);
            ASSERT_TRUE(editor.apply(change)) << json::serialize(to_json(change));
            auto next = std::move(editor).finish();
            ASSERT_EQ(picture(*direct), before) << "an earlier image changed";
            direct = next;

            auto read = through_text(change);
            ASSERT_TRUE(read) << read.error().context;
            ImageEditor other(*by_lines);
            ASSERT_TRUE(other.apply(*read));
            by_lines = std::move(other).finish();
            ASSERT_EQ(picture(*by_lines), picture(*direct)) << json::serialize(to_json(change));

            auto parsed = parse_picture(json::parse(picture(*direct)).as_object());
            ASSERT_TRUE(parsed) << parsed.error().context;
            ASSERT_EQ(picture(**parsed), picture(*direct));
            ASSERT_EQ((*parsed)->version(), direct->version());
            ASSERT_EQ((*parsed)->partition_count(), direct->partition_count());
            ASSERT_EQ((*parsed)->topic_count(), direct->topic_count());
        }
    }
}

TEST(Image, OneEditorForManyChangesEqualsOneEditorEach) {
    History history(7);
    ImagePtr stepwise = ImageEditor("c").finish();
    ImageEditor batch("c");
    for (int step = 0; step < 200; ++step) {
        const auto change = history.next(*stepwise);
        ImageEditor editor(*stepwise);
        ASSERT_TRUE(editor.apply(change));
        stepwise = std::move(editor).finish();
        ASSERT_TRUE(batch.apply(change));
    }
    EXPECT_EQ(picture(*std::move(batch).finish()), picture(*stepwise));
}

class Sample : public ::testing::Test {
protected:
    Sample() {
        apply(BrokerRegistered{one_});
        apply(TopicCreated{orders_});
    }
    void apply(const Change& change) {
        ImageEditor editor(*image_);
        auto good = editor.apply(change);
        ASSERT_TRUE(good) << good.error().context;
        image_ = std::move(editor).finish();
    }
    const Partition& first() { return image_->topic("orders.eu")->partitions.front(); }

    Broker one_ = broker(1);
    Topic orders_ = topic("orders.eu", one_, 3);
    ImagePtr image_ = ImageEditor("cluster").finish();
};

TEST_F(Sample, TopicsAreFoundByNameAndById) {
    ASSERT_NE(image_->topic("orders.eu"), nullptr);
    EXPECT_EQ(image_->topic(orders_.id), image_->topic("orders.eu"));
    EXPECT_EQ(image_->topic("orders"), nullptr);
    EXPECT_EQ(image_->topic(base::TopicId{base::Uuid::random()}), nullptr);
    EXPECT_NE(image_->partition({orders_.id, base::PartitionId(2)}), nullptr);
    EXPECT_EQ(image_->partition({orders_.id, base::PartitionId(3)}), nullptr);
    EXPECT_EQ(image_->partition({orders_.id, base::PartitionId(-1)}), nullptr);
}

TEST_F(Sample, CollisionIsSeenUntilTheTopicGoes) {
    ASSERT_NE(image_->colliding_topic("orders_eu"), nullptr);
    EXPECT_EQ(image_->colliding_topic("orders_eu")->name, "orders.eu");
    EXPECT_EQ(image_->colliding_topic("orders-eu"), nullptr);
    apply(TopicDeleted{orders_.id});
    EXPECT_EQ(image_->colliding_topic("orders_eu"), nullptr);
}

TEST_F(Sample, EarlierLifeOfABrokerLeadsNothing) {
    EXPECT_EQ(image_->leader(first()), one_.id);
    apply(BrokerRegistered{broker(1)});
    EXPECT_EQ(image_->leader(first()), kNoBroker);
    apply(LeadershipRenewed{one_.id});
    EXPECT_EQ(image_->leader(first()), one_.id);
    EXPECT_EQ(first().leader_epoch, base::LeaderEpoch(1));
}

TEST_F(Sample, RenewalIsOncePerLife) {
    apply(LeadershipRenewed{one_.id});
    EXPECT_EQ(first().leader_epoch, base::LeaderEpoch(0));
    apply(Released{{{{orders_.id, base::PartitionId(0)}, base::LeaderEpoch(0)}}});
    EXPECT_EQ(image_->leader(first()), kNoBroker);
    apply(LeadershipRenewed{one_.id});
    EXPECT_EQ(first().leader_epoch, base::LeaderEpoch(1));
    EXPECT_EQ(image_->topic("orders.eu")->partitions[1].leader_epoch, base::LeaderEpoch(0));
}

TEST_F(Sample, AskedBackEndsWithItsEpoch) {
    const base::TopicPartition id{orders_.id, base::PartitionId(0)};
    const auto ask_back = [&] {
        apply(AskedBack{{{id, first().leader_epoch}}});
        EXPECT_TRUE(first().asked_back);
        EXPECT_EQ(image_->leader(first()), one_.id) << "it is held until it is released";
    };
    ask_back();
    apply(Released{{{id, first().leader_epoch}}});
    EXPECT_TRUE(first().released);
    EXPECT_FALSE(first().asked_back);

    apply(LeadershipRenewed{one_.id});
    ask_back();
    apply(Assigned{{{id, {one_.id}, first().leader, first().leader_epoch + 1, "main"}}});
    EXPECT_FALSE(first().asked_back);

    ask_back();
    one_ = broker(1);
    apply(BrokerRegistered{one_});
    EXPECT_TRUE(first().asked_back);
    apply(LeadershipRenewed{one_.id});
    EXPECT_FALSE(first().asked_back);
}

TEST_F(Sample, BrokerDrainsUntilItsNextLifeOrItsEnd) {
    const auto draining = [&] { return image_->broker(one_.id)->draining; };
    apply(BrokerDraining{one_.id});
    EXPECT_TRUE(draining());
    EXPECT_EQ(image_->leader(first()), one_.id) << "it leads what it has";
    apply(BrokerRegistered{one_});
    EXPECT_FALSE(draining());
    apply(BrokerDraining{one_.id});
    apply(BrokerGone{one_.id});
    EXPECT_FALSE(draining());
}

TEST_F(Sample, LeaderStaysAmongTheReplicasUntilAnotherOfTheTargetLeads) {
    const base::TopicPartition id{orders_.id, base::PartitionId(0)};
    const auto two = broker(2);
    apply(BrokerRegistered{two});
    using Brokers = std::vector<base::BrokerId>;
    const auto change = [&](const Brokers& replicas) { apply(ReplicasChanged{{{id, replicas}}}); };
    change({two.id, one_.id});
    EXPECT_EQ(first().replicas, (Brokers{two.id, one_.id}));
    EXPECT_TRUE(first().target.empty());

    change({two.id});
    EXPECT_EQ(first().replicas, (Brokers{two.id, one_.id}));
    EXPECT_EQ(first().target, Brokers{two.id});
    const auto epoch = first().leader_epoch;
    apply(Assigned{{{id, first().replicas, first().leader, epoch + 1, "main"}}});
    EXPECT_EQ(first().target, Brokers{two.id}) << "the old leader has it again";
    change(first().replicas);
    EXPECT_TRUE(first().target.empty()) << "called off";

    change({two.id});
    apply(Assigned{{{id, {two.id}, {two.id, two.sessions.begin()->second}, epoch + 2, "main"}}});
    EXPECT_EQ(first().replicas, Brokers{two.id});
    EXPECT_TRUE(first().target.empty());

    apply(BrokerGone{two.id});
    change({one_.id});
    EXPECT_EQ(first().replicas, Brokers{one_.id}) << "nobody leads, so nobody has to stay";
}

TEST_F(Sample, UnregisteredBrokerIsForgotten) {
    apply(BrokerGone{one_.id});
    apply(BrokerUnregistered{one_.id});
    EXPECT_EQ(image_->broker(one_.id), nullptr);
    EXPECT_EQ(image_->leader(first()), kNoBroker);
}

TEST_F(Sample, GoneBrokerStaysKnownButLeadsNothing) {
    apply(BrokerGone{one_.id});
    ASSERT_NE(image_->broker(one_.id), nullptr);
    EXPECT_FALSE(image_->broker(one_.id)->living());
    EXPECT_EQ(image_->leader(first()), kNoBroker);
    EXPECT_TRUE(image_->living_replicas(first()).empty());
}

TEST_F(Sample, WalkCoversOnlyWhatNobodyHasClosed) {
    const base::TopicPartition id{orders_.id, base::PartitionId(0)};
    const auto move = [&](int epoch, const char* volume) {
        apply(Assigned{{{id, {one_.id}, first().leader, base::LeaderEpoch(epoch), volume}}});
    };
    const auto opened = [&](int epoch, int written) {
        apply(Opened{{{id, base::LeaderEpoch(epoch), base::LeaderEpoch(written)}}});
    };
    const auto walk = [&] { return epochs_to_walk(first()); };
    const auto at = [](int epoch, const char* volume, bool written = false) {
        return WalkedEpoch{base::LeaderEpoch(epoch), volume, written};
    };
    using Walk = std::vector<WalkedEpoch>;

    EXPECT_EQ(walk(), Walk{});  // the first epoch has nothing below
    move(1, "main");
    move(2, "fast");
    EXPECT_EQ(walk(), (Walk{at(1, "main"), at(0, "main")}));
    opened(2, -1);  // nothing was written yet, and nobody can any more
    move(3, "fast");
    move(5, "main");
    EXPECT_EQ(walk(), (Walk{at(4, "fast"), at(3, "fast"), at(2, "fast")}));
    opened(5, 3);  // serves from epoch 3
    move(6, "main");
    move(7, "main");
    EXPECT_EQ(walk(), (Walk{at(6, "main"), at(5, "main"), at(3, "fast", true)}));
    opened(7, 3);
    opened(7, 7);  // its own first write
    EXPECT_EQ(first().runs, (std::vector<EpochRun>{{base::LeaderEpoch(0), "main"}}));
    move(8, "main");
    EXPECT_EQ(walk(), (Walk{at(7, "main", true)}));
    opened(5, 5);  // late: it changes nothing
    EXPECT_EQ(walk(), (Walk{at(7, "main", true)}));
}

TEST_F(Sample, DeletionIsPendingUntilReclaimed) {
    apply(TopicDeleted{orders_.id});
    EXPECT_EQ(image_->topic("orders.eu"), nullptr);
    ASSERT_EQ(image_->deletions().count(orders_.id), 1U);
    EXPECT_EQ(image_->deletions().at(orders_.id).volumes, std::vector<std::string>{"main"});
    apply(TopicCreated{topic("orders.eu", one_)});  // a new identity under the free name
    apply(TopicReclaimed{orders_.id});
    EXPECT_TRUE(image_->deletions().empty());
    EXPECT_NE(image_->topic("orders.eu"), nullptr);
}

TEST_F(Sample, ChangesThatDoNotFitLeaveNoTrace) {
    const base::TopicId stranger{base::Uuid::random()};
    const base::TopicPartition good{orders_.id, base::PartitionId(0)};
    const base::TopicPartition bad{orders_.id, base::PartitionId(3)};
    auto same_name = topic("orders.eu", one_);
    auto same_id = topic("other", one_);
    same_id.id = orders_.id;
    const base::LeaderEpoch next(1);
    const base::TopicPartition released{orders_.id, base::PartitionId(1)};
    const base::TopicPartition renewed{orders_.id, base::PartitionId(2)};
    apply(Released{{{released, base::LeaderEpoch(0)}}});
    apply(Assigned{{{renewed, {one_.id}, {}, next, "main"}}});
    const std::vector<std::pair<std::string, Change>> rows = {
        {"name taken", TopicCreated{same_name}},
        {"id taken", TopicCreated{same_id}},
        {"no partitions", TopicCreated{topic("empty", one_, 0)}},
        {"growth of a stranger", PartitionsAdded{stranger, {partition_of(one_)}}},
        {"config of a stranger", ConfigsChanged{stranger, {{"a", "b"}}}},
        {"stranger deleted", TopicDeleted{stranger}},
        {"stranger reclaimed", TopicReclaimed{stranger}},
        {"living topic reclaimed", TopicReclaimed{orders_.id}},
        {"unknown broker gone", BrokerGone{base::BrokerId(8)}},
        {"unknown broker renewed", LeadershipRenewed{base::BrokerId(8)}},
        {"second of two assignments bad",
         Assigned{{{good, {one_.id}, {}, next, "main"}, {bad, {one_.id}, {}, next, "main"}}}},
        {"assigned twice",
         Assigned{{{good, {one_.id}, {}, next, "main"}, {good, {one_.id}, {}, next, "main"}}}},
        {"epoch stands still", Assigned{{{good, {one_.id}, {}, base::LeaderEpoch(0), "main"}}}},
        {"release of a future epoch", Released{{{good, next}}}},
        {"living broker unregistered", BrokerUnregistered{one_.id}},
        {"unknown broker unregistered", BrokerUnregistered{base::BrokerId(8)}},
        {"second of two lists is a stranger's",
         ReplicasChanged{{{good, {base::BrokerId(2)}}, {bad, {one_.id}}}}},
        {"no replicas", ReplicasChanged{{{good, {}}}}},
        {"unknown broker drains", BrokerDraining{base::BrokerId(8)}},
        {"second of two epochs asked back is a stranger's",
         AskedBack{{{good, base::LeaderEpoch(0)}, {bad, base::LeaderEpoch(0)}}}},
        {"future epoch asked back", AskedBack{{{good, next}}}},
        {"past epoch asked back", AskedBack{{{renewed, base::LeaderEpoch(0)}}}},
        {"released epoch asked back", AskedBack{{{released, base::LeaderEpoch(0)}}}},
        {"future epoch opened", Opened{{{good, next, base::kNoLeaderEpoch}}}},
        {"served from a later epoch", Opened{{{good, base::LeaderEpoch(0), next}}}},
    };
    for (const auto& [fault, change] : rows) {
        ImageEditor editor(*image_);
        auto refused = editor.apply(change);
        ASSERT_FALSE(refused) << fault;
        EXPECT_EQ(refused.error().code, ErrorCode::kMalformed) << fault;
        EXPECT_EQ(picture(editor.image()), picture(*image_)) << fault;
    }
}

TEST_F(Sample, UnknownKeysSurviveChangesAndPictures) {
    auto edited = json::parse(picture(*image_)).as_object();
    edited["later"] = "kept";
    edited["topics"].as_array()[0].as_object()["owner"] = "team";
    edited["topics"].as_array()[0].as_object()["partitions"].as_array()[1].as_object()["tier"] = 2;
    edited["brokers"].as_array()[0].as_object()["zone"] = "z";
    auto read = parse_picture(edited);
    ASSERT_TRUE(read) << read.error().context;
    image_ = *read;
    apply(ConfigsChanged{orders_.id, {{"segment.ms", "5"}}});
    apply(BrokerGone{one_.id});
    const auto again = to_picture(*image_);
    EXPECT_EQ(again.at("later"), "kept");
    const auto& first_topic = again.at("topics").as_array()[0].as_object();
    EXPECT_EQ(first_topic.at("owner"), "team");
    EXPECT_EQ(first_topic.at("partitions").as_array()[1].as_object().at("tier"), 2);
    EXPECT_EQ(again.at("brokers").as_array()[0].as_object().at("zone"), "z");
}

TEST(BrokersVolumes, ReadBackAsTheyWere) {
    auto told = broker(1);
    told.volumes = {{"plain", {.path = "/a"}},
                    {"odd",
                     {.path = "/b",
                      .labels = {{"tier", "ssd"}},
                      .default_eligible = false,
                      .cordoned = true,
                      .takes_partitions = false}}};
    const auto read = through_text(BrokerRegistered{told});
    ASSERT_TRUE(read) << read.error().context;
    EXPECT_EQ(std::get<BrokerRegistered>(*read).broker.volumes, told.volumes);
}

TEST_F(Sample, EpochBeginsWithItsOwnCount) {
    ImageEditor editor(*image_);
    editor.begin_epoch(base::ControllerEpoch(4), base::BrokerId(2));
    EXPECT_EQ(editor.image().version(), (ImageVersion{base::ControllerEpoch(4), 0}));
    EXPECT_EQ(editor.image().controller(), base::BrokerId(2));
    ASSERT_TRUE(editor.apply(TopicDeleted{orders_.id}));
    EXPECT_EQ(editor.image().version().changes, 1U);
}

}  // namespace
}  // namespace kaas::catalog
