// Tests of both ends of the embedding channels: the child, whose peer is slow, disconnected or invalid; and the daemon,
// whose child is hostile and whose embedding server is unavailable.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <future>
#include <limits>
#include <thread>

#include "retrieval/child/embed_server.hpp"
#include "retrieval/child/messages.hpp"
#include "retrieval/child/remote_embedder.hpp"

namespace muniment::retrieval {
namespace {

using namespace std::chrono_literals;

struct Pair {
  Pair() {
    int ends[2];
    EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    childs = Fd(ends[0]);
    daemons = std::make_shared<const Fd>(ends[1]);
  }
  Fd childs;
  std::shared_ptr<const Fd> daemons;
};

Result<Vectors> embed_texts(Embedder& embedder, const std::vector<std::string>& texts,
                            TextKind kind = TextKind::query) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return embedder.embed(views, kind);
}

Errc code_of(const Result<Vectors>& vectors) { return vectors ? Errc::system_error : vectors.error().code; }

class RemoteEmbedderTest : public ::testing::Test {
 protected:
  void open(std::chrono::milliseconds patience = 5s, std::chrono::milliseconds pause = 0ms) {
    RemoteEmbedderOptions options;
    options.identity = {"http", "1", 2, "aa"};
    options.sockets = {documents_.childs.get(), queries_.childs.get()};
    options.query_patience = options.document_patience = patience;
    options.pause = pause;
    embedder_ = std::make_unique<RemoteEmbedder>(options);
  }
  int daemon() const { return queries_.daemons->get(); }
  Frame asked() { return receive_frame(daemon(), limits::embed_request_bytes_max, steady_now() + 10s).value(); }
  void answer(MessageKind kind, std::uint64_t call, const std::string& payload) {
    EXPECT_TRUE(send_frame(daemon(), kind, call, payload, limits::embed_answer_bytes_max, steady_now() + 10s));
  }
  std::future<Result<Vectors>> ask(const std::string& text = "text") {
    return std::async(std::launch::async, [this, text] { return embed_texts(*embedder_, {text}); });
  }
  static std::string one_vector(float x = 0.6F, float y = 0.8F, std::size_t dimension = 2) {
    return to_wire(packed({{x, y}}, dimension));
  }
  // Returns the result of a request that the daemon answers with this message.
  Result<Vectors> answered(MessageKind kind, const std::string& payload, std::uint64_t off = 0) {
    auto asking = ask();
    answer(kind, asked().call + off, payload);
    return asking.get();
  }

  Pair documents_, queries_;
  std::unique_ptr<RemoteEmbedder> embedder_;
};

TEST_F(RemoteEmbedderTest, AGoodAnswerIsTheVectors) {
  open();
  const auto vectors = answered(MessageKind::answer, one_vector());
  ASSERT_TRUE(vectors) << vectors.error().message;
  EXPECT_EQ((Vectors{{0.6F, 0.8F}}), *vectors);
  EXPECT_TRUE(answered(MessageKind::answer, one_vector(0, 0)));  // the zero vector is valid
}

TEST_F(RemoteEmbedderTest, WhatCannotBeVectorsIsNotBelieved) {
  open();
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  const std::string wrong[] = {one_vector(nan, 0),
                               one_vector(infinite, 0),
                               one_vector(3, 4),
                               one_vector(0.1F, 0),
                               one_vector(0.6F, 0.8F, 3),
                               to_wire(packed({}, 2)),
                               to_wire(packed({{1, 0}, {0, 1}}, 2)),
                               one_vector() + "x",
                               "garbage",
                               ""};
  for (const std::string& payload : wrong)
    EXPECT_EQ(Errc::unavailable, code_of(answered(MessageKind::answer, payload))) << payload;
  EXPECT_EQ(Errc::unavailable, code_of(answered(MessageKind::failure, "no error")));
  EXPECT_TRUE(answered(MessageKind::answer, one_vector())) << "the channel is as good as before";
}

TEST_F(RemoteEmbedderTest, AnyFailureIsSaidInItsWords) {
  open();
  for (const Errc code : {Errc::unavailable, Errc::denied, Errc::invalid_argument}) {
    const auto vectors = answered(MessageKind::failure, to_wire(Error(code, "status 401: no key")));
    ASSERT_EQ(Errc::unavailable, code_of(vectors));
    EXPECT_EQ("status 401: no key", vectors.error().message);
  }
}

TEST_F(RemoteEmbedderTest, NonsenseOnTheChannelEndsItsUse) {
  const std::function<void(std::uint64_t)> nonsense[] = {
      [this](std::uint64_t call) { answer(MessageKind::answer, call + 1, one_vector()); },
      [this](std::uint64_t call) { answer(MessageKind::embed, call, one_vector()); },
      [this](std::uint64_t) { EXPECT_EQ(100, ::write(daemon(), std::string(100, '!').data(), 100)); },
      [this](std::uint64_t call) {
        const FrameHeader header{0x3143534d, static_cast<std::uint32_t>(MessageKind::answer), call,
                                 std::uint64_t{1} << 40};
        EXPECT_EQ(static_cast<ssize_t>(sizeof header), ::write(daemon(), &header, sizeof header));
      },
      [this](std::uint64_t) { ::shutdown(daemon(), SHUT_RDWR); },
  };
  for (const auto& say : nonsense) {
    queries_ = Pair();
    open();
    auto asking = ask();
    say(asked().call);
    EXPECT_EQ(Errc::unavailable, code_of(asking.get()));
    const auto begin = steady_now();
    EXPECT_EQ(Errc::unavailable, code_of(embed_texts(*embedder_, {"again"})));
    EXPECT_LT(steady_now() - begin, 2s);
  }
}

TEST_F(RemoteEmbedderTest, AfterAFailureNobodyIsAskedForAWhile) {
  open(50ms, 300ms);
  EXPECT_EQ(Errc::unavailable, code_of(embed_texts(*embedder_, {"slow"})));
  const std::uint64_t first = asked().call;
  const auto again = embed_texts(*embedder_, {"at once"});
  ASSERT_EQ(Errc::unavailable, code_of(again));
  EXPECT_EQ("no answer within 50 ms", again.error().message);
  EXPECT_FALSE(await_readable(daemon(), steady_now()));
  // The late answer is discarded, and the next request gets its own answer.
  std::this_thread::sleep_for(300ms);
  answer(MessageKind::answer, first, one_vector(1, 0));
  const auto vectors = answered(MessageKind::answer, one_vector(0, 1));
  ASSERT_TRUE(vectors) << vectors.error().message;
  EXPECT_EQ((Vectors{{0, 1}}), *vectors);
}

TEST_F(RemoteEmbedderTest, NothingIsSentBehindAQuestionWithoutAnAnswer) {
  open(50ms);
  EXPECT_FALSE(embed_texts(*embedder_, {"first"}));
  EXPECT_FALSE(embed_texts(*embedder_, {std::string(30'000, 'x')}));
  EXPECT_EQ("first", from_wire<EmbedTask>(asked().payload)->texts.at(0));
  EXPECT_FALSE(await_readable(daemon(), steady_now()));
}

TEST_F(RemoteEmbedderTest, ATextThatIsRefusedKeepsNobodyWaiting) {
  open(5s, 1h);
  EXPECT_FALSE(answered(MessageKind::failure, to_wire(Error(Errc::invalid_argument, "too long"))));
  EXPECT_TRUE(answered(MessageKind::answer, one_vector()));
}

TEST_F(RemoteEmbedderTest, OneWaitsForTheOtherButNotForLong) {
  open(200ms);
  auto first = ask("first");
  asked();
  auto second = ask("second");
  EXPECT_EQ(Errc::unavailable, code_of(first.get()));
  EXPECT_EQ(Errc::unavailable, code_of(second.get()));
  EXPECT_FALSE(await_readable(daemon(), steady_now()));
}

TEST_F(RemoteEmbedderTest, ManyAndLongTextsGoInPartsThatFit) {
  open();
  auto asking = std::async(std::launch::async, [this] {
    return embed_texts(*embedder_, std::vector<std::string>(40, std::string(100'000, 'x') + "\xc3\xa9"));
  });
  for (const std::size_t count : {16U, 16U, 8U}) {
    const Frame frame = asked();
    const auto task = from_wire<EmbedTask>(frame.payload);
    ASSERT_TRUE(task);
    EXPECT_EQ(TextKind::query, task->kind);
    ASSERT_EQ(count, task->texts.size());
    EXPECT_EQ(std::string(32 * 1024, 'x'), task->texts[0]);
    answer(MessageKind::answer, frame.call, to_wire(packed(Vectors(count, {1, 0}), 2)));
  }
  const auto vectors = asking.get();
  ASSERT_TRUE(vectors);
  EXPECT_EQ(40U, vectors->size());
}

TEST(FirstCharacters, ACutLeavesNoHalfCharacter) {
  EXPECT_EQ("a", first_characters("a\xc3\xa9", 2));
  EXPECT_EQ("a\xc3\xa9", first_characters("a\xc3\xa9", 3));
  EXPECT_EQ("", first_characters("\xf0\x9f\x98\x80", 3));
}

// An embedder that a test can make fail; it refuses texts of more than `bytes_max` bytes.
struct Fake {
  std::atomic<int> opened = 0, opens_left_to_fail = 0;
  std::atomic<std::size_t> bytes_max = 1'000'000;
  std::atomic<bool> away = false;
  std::atomic<bool> stuck = false;
};

class FakeEmbedder : public Embedder {
 public:
  FakeEmbedder(Fake& fake, std::function<bool()> given_up) : fake_(fake), given_up_(std::move(given_up)) {}
  const EmbedderIdentity& identity() const override { return inner_->identity(); }
  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind kind) override {
    while (fake_.stuck && !given_up_()) std::this_thread::sleep_for(1ms);
    if (given_up_()) return Error(Errc::unavailable, "given up");
    if (fake_.away) return Error(Errc::unavailable, "gone");
    for (const std::string_view text : texts) {
      if (text.size() > fake_.bytes_max || text.starts_with("forbidden"))
        return Error(Errc::invalid_argument, "refused");
    }
    return inner_->embed(texts, kind);
  }

 private:
  Fake& fake_;
  const std::function<bool()> given_up_;
  const std::unique_ptr<Embedder> inner_ = make_hash_embedder();
};

class EmbedServerTest : public ::testing::Test {
 protected:
  void start() {
    RemoteOptions options;
    options.pause = 5ms;
    options.open = [this](const WantedEmbedder& wanted) -> Result<std::unique_ptr<Embedder>> {
      ++fake_.opened;
      if (fake_.opens_left_to_fail-- > 0) return Error(Errc::unavailable, "not up yet");
      return std::unique_ptr<Embedder>(new FakeEmbedder(fake_, wanted.given_up));
    };
    server_ = std::make_unique<EmbedServer>(options, [this] { ++known_; });
  }
  // Returns a new child that uses this embedder.
  std::unique_ptr<RemoteEmbedder> child() {
    documents_ = Pair(), queries_ = Pair();
    server_->serve({documents_.daemons, queries_.daemons});
    RemoteEmbedderOptions options;
    options.identity = make_hash_embedder()->identity();
    options.sockets = {documents_.childs.get(), queries_.childs.get()};
    options.pause = 0ms;
    return std::make_unique<RemoteEmbedder>(options);
  }
  bool eventually(const std::function<bool()>& true_now) {
    for (const Deadline end = steady_now() + 20s; steady_now() < end; std::this_thread::sleep_for(1ms)) {
      if (true_now()) return true;
    }
    return false;
  }

  Fake fake_;
  std::atomic<int> known_ = 0;
  Pair documents_, queries_;
  std::unique_ptr<EmbedServer> server_;
};

TEST_F(EmbedServerTest, AnswersAreThoseOfTheEmbedder) {
  start();
  const auto remote = child();
  const std::vector<std::string> texts(40, "the ship left the harbour");
  for (const TextKind kind : {TextKind::document, TextKind::query}) {
    const auto vectors = embed_texts(*remote, texts, kind);
    ASSERT_TRUE(vectors) << vectors.error().message;
    EXPECT_EQ(*embed_texts(*make_hash_embedder(), texts, kind), *vectors);
  }
  EXPECT_EQ(1, known_);
}

TEST_F(EmbedServerTest, AServerThatIsAwayAtTheStartIsAskedAgain) {
  fake_.opens_left_to_fail = 3;
  start();
  EXPECT_FALSE(server_->first_identity(steady_now() + 10s) && known_ == 0);
  ASSERT_TRUE(eventually([this] { return known_ == 1; }));
  EXPECT_EQ("hash", server_->identity()->name);
  ASSERT_TRUE(eventually([this] { return server_->problem().empty(); }));
  EXPECT_TRUE(embed_texts(*child(), {"text"}));
}

TEST_F(EmbedServerTest, AFailureIsPassedOnAndIsOverWhenItIsOver) {
  start();
  const auto remote = child();
  fake_.away = true;
  const auto failed = embed_texts(*remote, {"text"});
  ASSERT_FALSE(failed);
  EXPECT_EQ("gone", failed.error().message);
  EXPECT_EQ("gone", server_->problem());
  fake_.away = false;
  EXPECT_TRUE(embed_texts(*remote, {"text"}));
  EXPECT_EQ("", server_->problem());
}

TEST_F(EmbedServerTest, TheNextChildIsServedThoughTheOneBeforeLeftARequest) {
  start();
  auto first = child();
  fake_.stuck = true;
  auto asking = std::async(std::launch::async, [&] { return embed_texts(*first, {"text"}); });
  std::this_thread::sleep_for(20ms);
  const Pair old_documents = std::move(documents_), old_queries = std::move(queries_);
  const auto second = child();  // the first child's sockets are shut down
  EXPECT_EQ(Errc::unavailable, code_of(asking.get()));
  fake_.stuck = false;
  EXPECT_TRUE(embed_texts(*second, {"text"}));
  EXPECT_TRUE(embed_texts(*second, {"text"}, TextKind::document));
}

TEST_F(EmbedServerTest, AHostileChildLosesItsChannelAndNothingElse) {
  EmbedTask query{TextKind::query, {"text"}};
  EmbedTask latin{TextKind::query, {"caf\xe9"}};
  const auto send = [this](MessageKind kind, const std::string& payload) {
    return send_frame(queries_.childs.get(), kind, 1, payload, 64 << 20, steady_now() + 1s);
  };
  const std::function<void()> attacks[] = {
      [&] { EXPECT_EQ(100, ::write(queries_.childs.get(), std::string(100, '!').data(), 100)); },
      [&] { EXPECT_TRUE(send(MessageKind::search, to_wire(query))); },
      [&] { EXPECT_TRUE(send(MessageKind::embed, "garbage")); },
      [&] {
        EXPECT_TRUE(send(MessageKind::embed, to_wire(EmbedTask{TextKind::document, {"text"}})));
      },
      [&] { EXPECT_TRUE(send(MessageKind::embed, to_wire(latin))); },
      [&] { EXPECT_TRUE(send(MessageKind::embed, std::string(8, '\xff'))); },
      [&] { (void)send(MessageKind::embed, std::string(limits::embed_request_bytes_max + 1, 'x')); },
  };
  start();
  for (const auto& attack : attacks) {
    const auto remote = child();
    attack();
    const auto end = receive_frame(queries_.childs.get(), limits::embed_answer_bytes_max, steady_now() + 10s);
    EXPECT_TRUE(!end && end.error().code == Errc::unavailable);
    EXPECT_TRUE(embed_texts(*remote, {"text"}, TextKind::document)) << "the other channel";
  }
  EXPECT_TRUE(embed_texts(*child(), {"text"}));
}

TEST_F(EmbedServerTest, ItStopsAtOnceWhateverItWaitsFor) {
  fake_.opens_left_to_fail = 1'000'000;
  start();
  ASSERT_TRUE(server_->first_identity(steady_now() + 10s) == std::nullopt);
  server_->stop();
  fake_.opens_left_to_fail = 0;
  start();
  const auto remote = child();
  fake_.stuck = true;
  auto asking = std::async(std::launch::async, [&] { return embed_texts(*remote, {"text"}); });
  std::this_thread::sleep_for(20ms);
  server_->stop();
  EXPECT_FALSE(asking.get());
}

TEST_F(EmbedServerTest, APassageThatIsRefusedIsEmbeddedByItsBeginning) {
  FakeEmbedder embedder(fake_, [] { return false; });
  const std::vector<std::string> texts = {"short", std::string(4'000, 'a') + " end", "forbidden"};
  fake_.bytes_max = 1'500;
  const auto vectors = embed_documents(embedder, texts);
  ASSERT_TRUE(vectors) << vectors.error().message;
  const auto expected = embed_texts(*make_hash_embedder(), {"short", std::string(1'001, 'a')}, TextKind::document);
  EXPECT_EQ(expected->at(0), vectors->at(0));
  EXPECT_EQ(expected->at(1), vectors->at(1));
  EXPECT_EQ(std::vector<float>(embedder.identity().dimension, 0.0F), vectors->at(2));
  fake_.bytes_max = 0;
  EXPECT_EQ(Errc::invalid_argument, code_of(embed_documents(embedder, texts))) << "it refuses everything";
  fake_.away = true;
  EXPECT_EQ(Errc::unavailable, code_of(embed_documents(embedder, texts)));
}

}  // namespace
}  // namespace muniment::retrieval
