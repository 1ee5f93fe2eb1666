// Goal: answers leave whole and in the order of the requests, however they become ready and however
// little a send takes. Method: random schedules from printed seeds, compared with what must come
// out.
#include "net/response_queue.h"

#include "base/bytes.h"
#include "net/exchange.h"
#include "net/test_client.h"
#include "storage/file_slice.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <gtest/gtest.h>

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kaas::net {
namespace {

using Front = ResponseQueue::Front;

/// A slice is written as its length in dots.
void append_slice(std::string& text, std::uint64_t length) { text.append(length, '.'); }

struct Answer {
    Response response;
    std::string sent_as;
};

Answer random_answer(std::mt19937& random) {
    Answer answer;
    wire::Writer writer;
    auto text = [&](std::size_t bytes) {
        std::string piece(bytes, static_cast<char>('a' + random() % 26));
        writer.raw(base::as_bytes(piece));
        answer.sent_as += piece;
    };
    text(random() % 20);
    for (std::size_t left = random() % 4; left > 0; --left) {
        auto length = static_cast<std::uint32_t>(1 + random() % 50);
        writer.records(wire::Records::external(length, answer.response.slices.size()), true);
        answer.sent_as += static_cast<char>(length + 1);  // the compact length
        append_slice(answer.sent_as, length);
        answer.response.slices.push_back({nullptr, 1000, length});
        if (random() % 2 == 0) text(1 + random() % 5);
    }
    text(1);
    answer.response.output = writer.take();
    return answer;
}

/// Sends some of what the queue has ready, as a socket that takes little.
std::string send_some(ResponseQueue& queue, std::mt19937& random) {
    std::string sent;
    if (queue.front() == Front::kText) {
        std::array<iovec, 3> pieces;
        auto text = queue.gather(pieces);
        std::string all;
        for (const iovec& piece : std::span(pieces).first(text.pieces)) {
            all.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
        }
        EXPECT_EQ(all.size(), text.bytes);
        sent = all.substr(0, random() % (all.size() + 1));
        queue.text_sent(sent.size());
    } else if (queue.front() == Front::kSlice) {
        auto slice = queue.slice();
        std::size_t bytes = random() % (slice.length + 1);
        append_slice(sent, bytes);
        queue.slice_sent(bytes);
    }
    return sent;
}

TEST(ResponseQueue, AnswersLeaveInOrderWhateverASendTakes) {
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        std::mt19937 random(seed);
        ResponseQueue queue;
        std::vector<std::pair<ResponseQueue::Place, Answer>> open;
        std::vector<std::string> expected;  // by request; a dropped one is empty
        std::vector<std::size_t> index;
        std::string sent;
        for (int step = 0; step < 200; ++step) {
            switch (random() % 4) {
                case 0:
                    open.emplace_back(queue.open(), random_answer(random));
                    index.push_back(expected.size());
                    expected.emplace_back();
                    break;
                case 1:
                    if (open.empty()) break;
                    {
                        std::size_t which = random() % open.size();
                        auto [place, answer] = std::move(open[which]);
                        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
                        std::size_t request = index[which];
                        index.erase(index.begin() + static_cast<std::ptrdiff_t>(which));
                        if (random() % 5 == 0) {
                            queue.drop(place);
                        } else {
                            expected[request] = answer.sent_as;
                            queue.answer(place, std::move(answer.response));
                        }
                    }
                    break;
                default: sent += send_some(queue, random);
            }
        }
        while (!open.empty()) {
            queue.drop(open.back().first);
            open.pop_back();
        }
        while (queue.front() != Front::kNothing) sent += send_some(queue, random);
        std::string all;
        for (const std::string& answer : expected) all += answer;
        ASSERT_EQ(sent, all) << "seed " << seed;
        EXPECT_EQ(queue.size(), 0U);
        EXPECT_EQ(queue.text_bytes(), 0U);
        EXPECT_EQ(queue.unanswered(), 0U);
    }
}

TEST(ResponseQueue, SmallAnswersAreGatheredUpToAnOpenOne) {
    ResponseQueue queue;
    auto first = queue.open();
    auto second = queue.open();
    auto third = queue.open();
    auto fourth = queue.open();
    queue.answer(second, text_response("b"));
    EXPECT_EQ(queue.front(), Front::kNothing);
    queue.answer(first, text_response("a"));
    queue.answer(fourth, text_response("d"));
    std::array<iovec, 8> pieces;
    auto text = queue.gather(pieces);
    EXPECT_EQ(text.pieces, 2U);
    EXPECT_EQ(text.bytes, 10U);
    EXPECT_FALSE(text.more);
    queue.drop(third);
    EXPECT_EQ(queue.gather(pieces).pieces, 3U);
    EXPECT_TRUE(queue.gather(std::span(pieces).first(2)).more);
}

TEST(ResponseQueue, ClosesAfterTheAnswersBefore) {
    ResponseQueue queue;
    auto first = queue.open();
    queue.close_at(queue.open());
    EXPECT_EQ(queue.front(), Front::kNothing);
    queue.answer(first, text_response("a"));
    EXPECT_EQ(queue.front(), Front::kText);
    queue.text_sent(5);
    EXPECT_EQ(queue.front(), Front::kClose);
}

TEST(ResponseQueue, AbandonedPlacesCanStillBeGivenBack) {
    ResponseQueue queue;
    auto open = queue.open();
    queue.answer(queue.open(), text_response("b"));
    queue.abandon();
    EXPECT_EQ(queue.size(), 1U);
    EXPECT_EQ(queue.text_bytes(), 0U);
    queue.drop(open);
    EXPECT_EQ(queue.size(), 0U);
}

}  // namespace
}  // namespace kaas::net
