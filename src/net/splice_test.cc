// Goal: file regions arrive byte for byte between the text around them, by whichever way they are
// sent, and a file that fails ends the connection. Method: answers with regions of a file on a
// local volume, of the same one passed off as remote, and of a volume in memory.
#include "base/metrics.h"
#include "base/thread_pool.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "net/server.h"
#include "net/test_client.h"
#include "storage/file_slice.h"
#include "storage/memory_volume.h"
#include "storage/posix_volume.h"
#include "storage/volume.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <gtest/gtest.h>

#include <stdlib.h>  // mkdtemp

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kaas::net {
namespace {

constexpr std::size_t kFileBytes = 9'000'000;

std::string contents() {
    std::string text;
    for (std::uint32_t i = 0; text.size() < kFileBytes; ++i)
        text += std::to_string(i * 2'654'435'761U);
    text.resize(kFileBytes);
    return text;
}

/// A file of another volume that says it is remote, or that nothing of it is in memory.
class Disguised final : public storage::File {
public:
    Disguised(std::shared_ptr<storage::File> file, bool local)
        : file_(std::move(file)), local_(local) {}

    storage::Result<void> write_at(std::uint64_t offset,
                                   std::span<const base::ByteView> pieces) override {
        return file_->write_at(offset, pieces);
    }
    storage::Result<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override {
        return file_->read_at(offset, into);
    }
    storage::Result<std::size_t> try_read_at(std::uint64_t, base::MutableBytes) override {
        EXPECT_TRUE(local_) << "a reactor looked into a remote file";
        return std::size_t{0};
    }
    bool cached(std::uint64_t, std::uint64_t) override {
        EXPECT_TRUE(local_) << "a reactor looked into a remote file";
        return false;
    }
    storage::Result<void> sync() override { return file_->sync(); }
    storage::Result<std::uint64_t> size() override { return file_->size(); }
    bool has_descriptor() const override { return file_->has_descriptor(); }
    storage::Lease descriptor_if_open() override {
        EXPECT_TRUE(local_) << "a reactor used a remote file";
        return file_->descriptor_if_open();
    }
    storage::Result<storage::Lease> descriptor() override { return file_->descriptor(); }
    bool is_local() const override { return local_; }

private:
    std::shared_ptr<storage::File> file_;
    bool local_;
};

class SpliceTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "kaas-net-XXXXXX").string();
        directory_ = ::mkdtemp(pattern.data());
        auto volume = storage::PosixVolume::open(directory_);
        EXPECT_TRUE(volume);
        posix_ = std::move(*volume);
        server_ = std::make_unique<Server>(ServerOptions{.request_memory_bytes = 64 << 20},
                                           reactors_, handler_, pool_, registry_);
        auto port = server_->listen({.host = "127.0.0.1"});
        EXPECT_TRUE(port);
        port_ = *port;
        server_->start();
    }
    void TearDown() override {
        server_.reset();
        std::filesystem::remove_all(directory_);
    }

    [[nodiscard]] std::shared_ptr<storage::File> write_file(storage::Volume& volume) {
        auto file = volume.create("file");
        EXPECT_TRUE(file);
        base::ByteView bytes = base::as_bytes(contents_);
        EXPECT_TRUE((*file)->write_at(0, {&bytes, 1}));
        return std::move(*file);
    }

    struct Region {
        std::uint64_t offset;
        std::uint32_t length;
    };
    /// From now on "splice" is answered with text and these regions in turn, and text at the end.
    void answer_with(const std::shared_ptr<storage::File>& file,
                     const std::vector<Region>& regions) {
        expected_.clear();
        handler_.on("splice", [file, regions](std::unique_ptr<Exchange> exchange) {
            exchange->respond(response(file, regions));
        });
        for (const Region& region : regions) {
            std::string length(4, '\0');
            base::store_be(reinterpret_cast<std::byte*>(length.data()), region.length);
            expected_ += "before " + length + contents_.substr(region.offset, region.length);
        }
        expected_ += "after";
    }
    static Response response(const std::shared_ptr<storage::File>& file,
                             const std::vector<Region>& regions) {
        wire::Writer writer;
        writer.int32(0);
        Response response;
        for (const Region& region : regions) {
            writer.raw(base::as_bytes("before "));
            writer.records(wire::Records::external(region.length, response.slices.size()), false);
            response.slices.push_back({file, region.offset, region.length});
        }
        writer.raw(base::as_bytes("after"));
        writer.patch_int32(0, static_cast<std::int32_t>(writer.wire_size() - 4));
        response.output = writer.take();
        return response;
    }
    void expect_answers(int count) {
        TestClient client("127.0.0.1", port_);
        std::string requests;
        for (int i = 0; i < count; ++i) requests += framed("splice") + framed("echo between");
        client.send(requests);
        for (int i = 0; i < count; ++i) {
            auto answer = client.receive_frame();
            ASSERT_TRUE(answer);
            ASSERT_TRUE(*answer == expected_) << "answer " << i;
            ASSERT_EQ(client.receive_frame(), "between");
        }
    }
    [[nodiscard]] std::uint64_t sent_by(const char* path) {
        return registry_
            .counter("kaas_network_sent_bytes_total", "", {{"reactor", "0"}, {"path", path}})
            .value();
    }

    std::string directory_;
    const std::string contents_ = contents();
    std::unique_ptr<storage::PosixVolume> posix_;
    storage::MemoryVolume memory_;
    base::metrics::Registry registry_;
    ReactorPool reactors_{1};
    base::ThreadPool pool_{"io", 2};
    ScriptedHandler handler_;
    std::unique_ptr<Server> server_;
    std::uint16_t port_ = 0;
    std::string expected_;
};

TEST_F(SpliceTest, CachedLocalFilesGoByTheReactor) {
    if (!posix_->is_local()) GTEST_SKIP() << "the temporary directory is not local";
    answer_with(write_file(*posix_), {{0, 5'000'000}, {100, 0}, {17, 1}, {4096, 40'000}});
    expect_answers(5);
    // The kernel may evict some of it meanwhile: that part goes by the pool.
    EXPECT_GT(sent_by("sendfile"), 0U);
    EXPECT_EQ(sent_by("sendfile") + sent_by("sendfile_pool"), 5 * 5'040'001U);
    EXPECT_EQ(sent_by("copy"), 0U);
}

TEST_F(SpliceTest, ColdLocalFilesGoByThePool) {
    answer_with(std::make_shared<Disguised>(write_file(*posix_), true),
                {{3, 5'000'000}, {0, 70'000}});
    expect_answers(5);
    EXPECT_EQ(sent_by("sendfile_pool"), 5 * 5'070'000U);
}

TEST_F(SpliceTest, RemoteFilesGoByThePoolUnseenByTheReactor) {
    answer_with(std::make_shared<Disguised>(write_file(*posix_), false),
                {{3, 5'000'000}, {0, 70'000}});
    expect_answers(5);
    EXPECT_EQ(sent_by("sendfile_pool"), 5 * 5'070'000U);
    EXPECT_EQ(sent_by("sendfile") + sent_by("copy"), 0U);
}

TEST_F(SpliceTest, FilesWithoutDescriptorAreCopied) {
    answer_with(write_file(memory_), {{3, 5'000'000}, {0, 70'000}});
    expect_answers(5);
    EXPECT_EQ(sent_by("copy"), 5 * 5'070'000U);
}

TEST_F(SpliceTest, FilesWithoutDescriptorAreReadByThePoolWhenTheyAreNotInMemory) {
    answer_with(std::make_shared<Disguised>(write_file(memory_), true),
                {{3, 5'000'000}, {0, 70'000}});
    expect_answers(5);
    EXPECT_EQ(sent_by("copy"), 5 * 5'070'000U);
}

TEST_F(SpliceTest, AFileThatEndsTooEarlyEndsTheConnection) {
    for (auto& file : {write_file(*posix_), write_file(memory_)}) {
        for (auto& seen :
             {file, std::shared_ptr<storage::File>(std::make_shared<Disguised>(file, true))}) {
            answer_with(seen, {{kFileBytes - 100, 200}});
            TestClient client("127.0.0.1", port_);
            client.send_frame("splice");
            EXPECT_TRUE(client.at_end());
        }
    }
    EXPECT_EQ(registry_.counter("kaas_connections_closed_total", "", {{"reason", "file"}}).value(),
              4U);
}

TEST_F(SpliceTest, AClientThatLeavesDuringThePoolsWorkIsLetGo) {
    answer_with(std::make_shared<Disguised>(write_file(*posix_), false), {{0, 9'000'000}});
    for (int i = 0; i < 20; ++i) {
        TestClient client("127.0.0.1", port_, 4096);
        client.send_frame("splice");
        handler_.wait_for_requests(static_cast<std::size_t>(i) + 1);
    }
    handler_.wait_for_disconnects(20);
}

/// A volume that does not answer before the test lets it.
class Hanging final : public storage::File {
public:
    explicit Hanging(std::shared_future<void> until) : until_(std::move(until)) {}

    storage::Result<void> write_at(std::uint64_t, std::span<const base::ByteView>) override {
        return {};
    }
    storage::Result<std::size_t> read_at(std::uint64_t, base::MutableBytes) override {
        until_.wait();
        return std::size_t{0};
    }
    storage::Result<std::size_t> try_read_at(std::uint64_t, base::MutableBytes) override {
        return std::size_t{0};
    }
    bool cached(std::uint64_t, std::uint64_t) override { return false; }
    storage::Result<void> sync() override { return {}; }
    storage::Result<std::uint64_t> size() override { return std::uint64_t{100}; }
    bool is_local() const override { return false; }

private:
    std::shared_future<void> until_;
};

TEST_F(SpliceTest, StoppingDoesNotWaitForAVolumeThatHangs) {
    std::promise<void> answers;
    auto file = std::make_shared<Hanging>(answers.get_future().share());
    handler_.on("splice", [file](std::unique_ptr<Exchange> exchange) {
        exchange->respond(response(file, {{0, 100}}));
    });
    TestClient client("127.0.0.1", port_);
    client.send_frame("splice");
    handler_.wait_for_requests(1);
    server_->stop(std::chrono::milliseconds(1));
    EXPECT_TRUE(client.at_end());
    EXPECT_EQ(server_->open_connections_for_test(), 1U);
    answers.set_value();
    server_.reset();
}

TEST_F(SpliceTest, TheServersEndWaitsForThePoolsWork) {
    answer_with(std::make_shared<Disguised>(write_file(*posix_), false), {{0, 9'000'000}});
    TestClient client("127.0.0.1", port_, 4096);
    client.send_frame("splice");
    handler_.wait_for_requests(1);
    server_->stop(std::chrono::milliseconds(0));
    EXPECT_TRUE(client.at_end());
    server_.reset();
}

}  // namespace
}  // namespace kaas::net
