// Tests capsules: the file under damage and interruptions, their answers beside the daemon's engine, and their union.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "base/clock.hpp"
#include "base/crypto/crc32c.hpp"
#include "base/process/spawn.hpp"
#include "capsule/capsule.hpp"
#include "capsule/merge.hpp"
#include "capsule/rpc.hpp"
#include "retrieval/child/tool_child.hpp"
#include "retrieval/query/card.hpp"
#include "retrieval/text/document_text.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::capsule {
namespace {

using retrieval::Question;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Describes the document aether://notes/a, whose chunks are written as JSON.
std::string about_of(const std::string& text, const std::string& revision, const std::string& chunks) {
  return R"({"uri":"aether://notes/a","corpus":"notes","document":"a","revision":")" + revision +
         R"(","bytes_hash":")" + to_hex(sha256(text)) + R"(","size_bytes":)" + std::to_string(text.size()) +
         R"(,"title":"a","chunks":[)" + chunks + "]}";
}

std::string one_chunk(const std::string& text) {
  return "[0," + std::to_string(text.size()) + ",\"" + to_hex(sha256(text)) + "\"]";
}

class CapsuleTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }

  // Ingests one document and indexes it.
  static void put(Capsule& capsule, const std::string& corpus, const std::string& id, const std::string& text,
                  const std::string& tag = {}) {
    retrieval::DocumentToIngest about;
    about.corpus = corpus;
    about.id = id;
    about.source = "test";
    about.timestamp = Time{1'700'000'000'000'000};
    if (!tag.empty()) about.tags = {tag};
    const auto done = capsule.ingest({about}, {text});
    ASSERT_TRUE(done.ok()) << done.error().message;
    ASSERT_FALSE((*done)[0].error) << (*done)[0].error->message;
    const Status settled = capsule.settle();
    ASSERT_TRUE(settled.ok()) << settled.error().message;
  }

  std::unique_ptr<Capsule> made(const std::string& name) {
    auto capsule = Capsule::open_or_create(at(name));
    EXPECT_TRUE(capsule.ok());
    return capsule ? *std::move(capsule) : nullptr;
  }

  static std::string ask(Capsule& capsule, const std::string& text) {
    Question question;
    question.text = text;
    const auto answer = capsule.answer(question);
    return answer ? retrieval::result_json(text, *answer) : "error: " + std::string(name_of(answer.error().code));
  }

  static std::string ask_file(const std::string& path, const std::string& text) {
    auto capsule = Capsule::open(path);
    return capsule ? ask(**capsule, text) : "error: " + std::string(name_of(capsule.error().code));
  }

  const test::TemporaryFolder folder_;
};

TEST_F(CapsuleTest, ADocumentIsFoundAndASecondRevisionReplacesIt) {
  const auto capsule = made("a.mv2");
  put(*capsule, "notes", "plan.md", "# Plan\n\nThe harbour crane is repaired in March.\n");
  EXPECT_NE(ask(*capsule, "harbour crane").find("ev://notes/plan.md#p0"), std::string::npos);
  const std::int64_t before = capsule->index().frames() - 1;
  put(*capsule, "notes", "plan.md", "# Plan\n\nThe lighthouse is painted in April.\n");
  EXPECT_EQ(ask(*capsule, "harbour crane").find("harbour crane is repaired"), std::string::npos);
  Question question;
  question.text = "harbour crane";
  question.as_of = before;
  const auto then = capsule->answer(question);
  ASSERT_TRUE(then.ok()) << then.error().message;
  ASSERT_EQ(then->cards.size(), 1U);
  EXPECT_NE(then->cards[0].summary.find("repaired in March"), std::string::npos);
  EXPECT_FALSE(then->cards[0].current);
  const auto history = capsule->history("notes", "plan.md");
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history->size(), 2U);
}

TEST_F(CapsuleTest, AnUnchangedDocumentIsNotWrittenAgain) {
  const auto capsule = made("a.mv2");
  put(*capsule, "notes", "a", "one text");
  const auto frames = capsule->index().frames();
  put(*capsule, "notes", "a", "one text");
  EXPECT_EQ(capsule->index().frames(), frames);
}

TEST_F(CapsuleTest, ARetractedDocumentIsFoundOnlyAsOfBefore) {
  const auto capsule = made("a.mv2");
  put(*capsule, "notes", "a", "zeppelin over the lake");
  ASSERT_TRUE(capsule->retract("notes", "a", "", "obsolete").ok());
  ASSERT_TRUE(capsule->settle().ok());
  EXPECT_NE(ask(*capsule, "zeppelin").find("nothing_indexed"), std::string::npos);
  Question question;
  question.text = "zeppelin";
  question.as_of = 0;
  const auto then = capsule->answer(question);
  ASSERT_TRUE(then.ok());
  EXPECT_EQ(then->cards.size(), 1U);
}

TEST_F(CapsuleTest, FeedbackRaisesACardFromThenOn) {
  const auto capsule = made("a.mv2");
  put(*capsule, "notes", "a", "the river is wide");
  put(*capsule, "notes", "b", "the river is deep");
  Question question;
  question.text = "river";
  const auto first = capsule->answer(question);
  ASSERT_EQ(first->cards.size(), 2U);
  const std::string last = first->cards[1].id;
  const std::string about = "{\"pointer\":\"" + last + "\",\"value\":1}";
  ASSERT_TRUE(capsule->give_feedback(last, 1, about).ok());
  const auto second = capsule->answer(question);
  const auto score_of = [&](const retrieval::Answer& answer) {
    return std::ranges::find(answer.cards, last, &retrieval::Card::id)->score;
  };
  EXPECT_GT(score_of(*second), score_of(*first));
  question.as_of = 1;
  EXPECT_EQ(score_of(*capsule->answer(question)), score_of(*first));
  EXPECT_FALSE(capsule->give_feedback("ev://notes/none#p0?v=0000000000000000", 1, about).ok());
}

TEST_F(CapsuleTest, NamesThatLeaveTheCollectionAreRefused) {
  const auto capsule = made("a.mv2");
  for (const std::string& id : {std::string("../a"), std::string("a/../b"), std::string("/a"), std::string("a//b"),
                                std::string("a\0b", 3), std::string(10'000, 'x'), std::string()}) {
    retrieval::DocumentToIngest about;
    about.corpus = "notes";
    about.id = id;
    const auto done = capsule->ingest({about}, {"text"});
    ASSERT_TRUE(done.ok());
    EXPECT_TRUE((*done)[0].error.has_value()) << id;
  }
}

TEST_F(CapsuleTest, TwoWritersAreRefusedAndReadersAreNot) {
  const auto writer = made("a.mv2");
  put(*writer, "notes", "a", "the first text");
  const auto reader = Capsule::open(at("a.mv2"));
  ASSERT_TRUE(reader.ok());
  EXPECT_NE(ask(**reader, "first").find("ev://notes/a#p0"), std::string::npos);
  const auto second = (*reader)->add_frame(FrameType::log, "{}", "turn");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::conflict);
}

TEST_F(CapsuleTest, AWriterWaitsForAQueryThatIsBeingRecorded) {
  put(*made("a.mv2"), "notes", "a", "the first text");
  const Fd query(::open(at("a.mv2").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(query.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_FALSE(CapsuleFile::open(at("a.mv2"), Access::write_at_once).ok());
  std::thread recording([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::flock(query.get(), LOCK_UN);
  });
  EXPECT_TRUE(CapsuleFile::open(at("a.mv2"), Access::write).ok());
  recording.join();
}

TEST_F(CapsuleTest, AReaderMayOpenWhileAWriterCutsATornEnd) {
  put(*made("a.mv2"), "notes", "a", "the first text");
  const std::string path = at("a.mv2"), torn(4 << 20, 'x');
  std::atomic<bool> stop = false;
  std::thread writing([&] {
    for (int i = 0; i < 60; ++i) {
      const auto file = CapsuleFile::open(path, Access::write);  // cuts what the last one left
      if (file) (void)(*file)->append_now(FrameType::log, "{}", torn);
    }
    stop = true;
  });
  int opened = 0;
  while (!stop) opened += CapsuleFile::open(path, Access::read).ok() ? 1 : 0;
  writing.join();
  EXPECT_GT(opened, 0);
}

TEST_F(CapsuleTest, EveryFlippedByteIsRefusedOrChangesNothing) {
  {
    const auto capsule = made("a.mv2");
    put(*capsule, "notes", "a", "the copper kettle is on the stove");
    put(*capsule, "notes", "b", "a brass lamp is on the table");
    ASSERT_TRUE(capsule->compact(Anew::indexes).ok());
  }
  const std::string path = at("a.mv2"), expected = ask_file(path, "copper kettle");
  ASSERT_NE(expected.find("ev://notes/a#p0"), std::string::npos);
  const std::string bytes = bytes_of(path);
  const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  std::size_t refused = 0;
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    const char flipped = static_cast<char>(bytes[place] ^ 0x20);
    ASSERT_EQ(::pwrite(file.get(), &flipped, 1, static_cast<off_t>(place)), 1);
    const std::string answer = ask_file(path, "copper kettle");
    if (answer != expected) {
      ASSERT_TRUE(answer == "error: corrupt" || answer == "error: invalid_argument") << place << ": " << answer;
      ++refused;
    }
    ASSERT_EQ(::pwrite(file.get(), &bytes[place], 1, static_cast<off_t>(place)), 1);
  }
  EXPECT_GT(refused, bytes.size() / 2);
}

TEST_F(CapsuleTest, ATruncatedCapsuleHasTheStateOfItsLastCompleteCommit) {
  std::vector<std::pair<std::size_t, std::string>> states;  // size after each commit, and the answer then
  {
    const auto capsule = made("a.mv2");
    for (const char* const id : {"a", "b"}) {
      put(*capsule, "notes", id, std::string("a lantern for the night watch ") + id);
      states.emplace_back(capsule->file().end(), ask(*capsule, "lantern"));
    }
  }
  const std::string path = at("a.mv2");
  for (std::size_t size = bytes_of(path).size(); size-- > 0;) {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(size)), 0);
    const auto file = CapsuleFile::open(path, Access::read);
    if (!file) {
      ASSERT_TRUE(file.error().code == Errc::corrupt || file.error().code == Errc::invalid_argument);
      continue;
    }
    ASSERT_GT((*file)->lost_bytes(), 0U) << size;
    ASSERT_LE((*file)->end(), size);
    for (const auto& [end, answer] : states) {
      if ((*file)->end() != end || size % 64 != 0) continue;
      ASSERT_EQ(ask_file(path, "lantern"), answer) << size;
    }
  }
}

TEST_F(CapsuleTest, AWriterCutsATornEndOffAndGoesOn) {
  {
    const auto capsule = made("a.mv2");
    put(*capsule, "notes", "a", "the tide is low");
  }
  const std::string whole = bytes_of(at("a.mv2"));
  std::ofstream(at("a.mv2"), std::ios::binary | std::ios::app) << std::string(1'000, 'x');
  {
    const auto torn = CapsuleFile::open(at("a.mv2"), Access::read);
    ASSERT_TRUE(torn.ok());
    EXPECT_EQ((*torn)->torn_bytes(), 1'000U);
  }
  const auto capsule = Capsule::open(at("a.mv2"));
  ASSERT_TRUE(capsule.ok());
  ASSERT_TRUE((*capsule)->add_frame(FrameType::log, "{\"role\":\"user\"}", "hello").ok());
  EXPECT_TRUE((*capsule)->file().verify().ok());
  EXPECT_EQ(bytes_of(at("a.mv2")).substr(file_header_bytes, whole.size() - file_header_bytes),
            whole.substr(file_header_bytes));
}

TEST_F(CapsuleTest, ADocumentThatHoldsACommitIsNoState) {
  std::uint64_t end = 0;
  ASSERT_TRUE(CapsuleFile::create(at("a.mv2"), CapsuleFile::new_header()).ok());
  {
    const auto file = CapsuleFile::open(at("a.mv2"), Access::write);
    ASSERT_TRUE(file.ok());
    Commit forged;
    forged.number = 99;
    forged.frames = 7;
    forged.next = file_header_bytes;
    const std::string commit = encode(forged, (*file)->end() + frame_header_bytes);
    FrameHeader header;
    header.type = FrameType::commit;
    header.number = forged.frames;
    header.body_bytes = commit.size();
    header.payload = sha256(commit);
    ASSERT_TRUE((*file)->append_now(FrameType::log, {}, encode(header) + commit).ok());
    end = (*file)->end();
    ASSERT_TRUE((*file)->commit().ok());
  }
  ASSERT_EQ(::truncate(at("a.mv2").c_str(), static_cast<off_t>(end)), 0);
  const auto file = CapsuleFile::open(at("a.mv2"), Access::read);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_GT((*file)->lost_bytes(), 0U);
  EXPECT_EQ((*file)->state().number, 0U);
  EXPECT_EQ((*file)->state().frames, 0U);
}

TEST_F(CapsuleTest, ASegmentThatIsShorterThanItsNameIsRefused) {
  Commit commit;
  Segment& segment = commit.segments.emplace_back();
  segment.bytes = segment.name_bytes = 5;
  EXPECT_FALSE(decode_commit(encode(commit, 128)));
  segment.bytes = 8;
  EXPECT_TRUE(decode_commit(encode(commit, 128)));
}

TEST_F(CapsuleTest, ADamagedIndexIsMadeAnewFromTheFrames) {
  std::vector<Segment> segments;
  {
    const auto capsule = made("a.mv2");
    put(*capsule, "notes", "a", "the copper kettle is on the stove");
    segments = capsule->file().state().segments;
  }
  const std::string path = at("a.mv2"), expected = ask_file(path, "copper kettle");
  for (const Segment& segment : segments) {
    if (segment.bytes > 0) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(segment.offset)).put('\x7f');
    }
  }
  EXPECT_EQ(ask_file(path, "copper kettle"), "error: corrupt");
  {
    const auto file = CapsuleFile::open(path, Access::write);
    ASSERT_TRUE(file.ok());
    const auto done = catch_up(**file, Anew::indexes);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  EXPECT_EQ(ask_file(path, "copper kettle"), expected);
}

TEST_F(CapsuleTest, AFileThatIsWrittenAnewKeepsItsLinkAndItsPermissions) {
  put(*made("a.mv2"), "notes", "a", "the copper kettle");
  ASSERT_EQ(::chmod(at("a.mv2").c_str(), 0640), 0);
  std::filesystem::create_symlink(at("a.mv2"), at("link.mv2"));
  const auto capsule = Capsule::open(at("link.mv2"));
  ASSERT_TRUE(capsule.ok());
  ASSERT_TRUE((*capsule)->compact(Anew::indexes).ok());
  put(**capsule, "notes", "b", "a brass lamp");
  EXPECT_TRUE(std::filesystem::is_symlink(at("link.mv2")));
  struct stat about {};
  ASSERT_EQ(::stat(at("a.mv2").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0640U);
  EXPECT_NE(ask_file(at("a.mv2"), "brass lamp").find("ev://notes/b#p0"), std::string::npos);
}

TEST_F(CapsuleTest, AQuestionDoesNotChangeAFileThatIsCutShort) {
  std::uint64_t first = 0;
  {
    const auto capsule = made("a.mv2");
    put(*capsule, "notes", "a", "the tide is low");
    first = capsule->file().end();
    put(*capsule, "notes", "b", "the tide is high");
  }
  for (const std::uint64_t size : {first + 100, bytes_of(at("a.mv2")).size() - 8}) {
    ASSERT_EQ(::truncate(at("a.mv2").c_str(), static_cast<off_t>(size)), 0);
    const std::string before = bytes_of(at("a.mv2"));
    Server server(at("a.mv2"));
    const auto params = json::parse(R"({"queries":[{"query":"tide"}]})");
    const auto answer = server.call("evidence.retrieve", params->root());
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_NE(answer->find("ev://notes/a#p0"), std::string::npos);
    EXPECT_TRUE(bytes_of(at("a.mv2")) == before) << size;
    EXPECT_FALSE(merge({at("a.mv2")}, at("merged.mv2"), false).ok());
    ::rename(at("a.mv2").c_str(), at("b.mv2").c_str());
    std::filesystem::copy_file(at("b.mv2"), at("a.mv2"));
  }
}

TEST_F(CapsuleTest, FramesOfOneFileHaveDifferentTimes) {
  const auto capsule = made("a.mv2");
  put(*capsule, "notes", "a", "the tide is low");
  const std::int64_t later = Clock().now().micros + 3'600'000'000;
  const auto first = capsule->file().append(FrameType::log, later, {}, "a clock that is set back afterwards");
  const auto second = capsule->file().append_now(FrameType::log, {}, "turn");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(second->header.time_us, later + 1);
}

TEST_F(CapsuleTest, AFrameThatHasAnotherNumberIsRefused) {
  ASSERT_TRUE(CapsuleFile::create(at("a.mv2"), CapsuleFile::new_header()).ok());
  const std::string text = "The tide is low.";
  FrameHeader first;
  std::uint64_t place = 0;
  {
    const auto file = CapsuleFile::open(at("a.mv2"), Access::write);
    ASSERT_TRUE(file.ok());
    for (const char* const revision : {"r2", "r1"}) {
      const auto frame = (*file)->append_now(FrameType::document, about_of(text, revision, one_chunk(text)), text);
      ASSERT_TRUE(frame.ok());
      if (revision[1] == '2') first = frame->header, place = frame->offset;
    }
    ASSERT_TRUE((*file)->commit().ok());
  }
  first.number = 5'000;
  std::fstream(at("a.mv2"), std::ios::binary | std::ios::in | std::ios::out).seekp(static_cast<std::streamoff>(place))
      << encode(first);
  const auto file = CapsuleFile::open(at("a.mv2"), Access::write);
  ASSERT_TRUE(file.ok());
  const auto index = Index::open(**file);
  ASSERT_FALSE(index.ok());
  EXPECT_EQ(index.error().code, Errc::corrupt);
  const auto indexed = catch_up(**file, Anew::indexes);
  ASSERT_FALSE(indexed.ok());
  EXPECT_EQ(indexed.error().code, Errc::corrupt);
}

TEST_F(CapsuleTest, ChunksThatRepeatTheTextAreRefused) {
  const std::string text(1'000, 'x'), chunk = one_chunk(text);
  const auto read = [&](const std::string& chunks) {
    const std::string about = about_of(text, "r1", chunks);
    Frame frame;
    frame.about = about;
    frame.body = text;
    return revision_of(frame).ok();
  };
  EXPECT_TRUE(read(chunk));
  std::string many = chunk;
  for (int i = 0; i < 999; ++i) many += "," + chunk;
  EXPECT_FALSE(read(many));
  const std::string hash = ",\"" + to_hex(sha256("xxxxx")) + "\"]";
  EXPECT_TRUE(read("[0,5" + hash + ",[5,10" + hash));
  EXPECT_FALSE(read("[5,10" + hash + ",[0,5" + hash));
}

// The rows of a segment lead to a document that the frames do not have.
TEST_F(CapsuleTest, ARowThatLeadsToNoFrameIsRefused) {
  const std::string text = "The forged kettle is on the stove.";
  {
    const auto capsule = made("a.mv2");
    put(*capsule, "notes", "a", "the copper kettle is on the stove");
    ASSERT_TRUE(capsule->add_frame(FrameType::log, "{}", "turn").ok());
    ASSERT_TRUE(capsule->compact(Anew::indexes).ok());
  }
  {
    const auto file = CapsuleFile::open(at("a.mv2"), Access::write);
    ASSERT_TRUE(file.ok());
    Commit state = (*file)->state();
    const auto stored = (*file)->segment(SegmentKind::frames);
    ASSERT_TRUE(stored.ok());
    std::string bytes(*stored);
    ASSERT_EQ(bytes.size(), 2 * sizeof(FrameRow));
    auto* const rows = reinterpret_cast<FrameRow*>(bytes.data());
    const std::string about = about_of(text, "r1", one_chunk(text));
    FrameHeader forged;
    forged.time_us = rows[0].time_us;
    forged.about_bytes = about.size();
    forged.body_bytes = text.size();
    forged.payload = sha256({about, text});
    forged.chain = next_chain(sha256(encode((*file)->header())), forged);
    std::string frame = encode(forged) + about;
    frame.resize(forged.body_offset());
    const auto hidden = (*file)->append_segment(SegmentKind::model, {}, frame + text + std::string(8, '\0'));
    ASSERT_TRUE(hidden.ok());
    rows[0].offset = hidden->offset;
    const auto other = (*file)->frame_at(rows[1].offset);
    ASSERT_TRUE(other.ok());
    const auto moved = (*file)->append_segment(
        SegmentKind::model, {}, encode(other->header) + "{}" + std::string(6, '\0') + "turn" + std::string(4, '\0'));
    ASSERT_TRUE(moved.ok());
    rows[1].offset = moved->offset;
    const auto places = (*file)->append_segment(SegmentKind::frames, {}, bytes);
    ASSERT_TRUE(places.ok());
    std::erase_if(state.segments, [](const Segment& one) { return one.kind == SegmentKind::frames; });
    state.segments.push_back(*places);
    ASSERT_TRUE((*file)->commit(state.indexed, state.next, state.segments).ok());
  }
  const auto file = CapsuleFile::open(at("a.mv2"), Access::read);
  ASSERT_TRUE(file.ok());
  const auto index = Index::open(**file);
  ASSERT_TRUE(index.ok()) << index.error().message;
  const auto revision = (*index)->revision(0);
  ASSERT_FALSE(revision.ok());
  EXPECT_EQ(revision.error().code, Errc::corrupt);
}

TEST_F(CapsuleTest, AQuestionIsNotRecordedAfterASignatureThatItDidNotSee) {
  put(*made("a.mv2"), "notes", "a", "the tide is low");
  const auto reader = Capsule::open(at("a.mv2"));
  ASSERT_TRUE(reader.ok());
  Question question;
  question.text = "tide";
  const auto answer = (*reader)->answer(question);
  ASSERT_TRUE(answer.ok());
  {
    const auto signer = Capsule::open(at("a.mv2"));
    ASSERT_TRUE((*signer)->add_frame(FrameType::signature, "{}", "note").ok());
  }
  const std::string before = bytes_of(at("a.mv2"));
  EXPECT_FALSE((*reader)->record_query(question, *answer, {}, {}));
  EXPECT_TRUE(bytes_of(at("a.mv2")) == before);
}

TEST_F(CapsuleTest, TheBytesOfTheFormatAreThoseOfTheGoldenFile) {
  const std::string golden = std::string(MUNIMENT_GOLDEN) + "/capsule/frames.mv2";
  FileHeader header;
  header.id = "0123456789abcdef";
  header.created_us = 1'700'000'000'000'000;
  ASSERT_TRUE(CapsuleFile::create(at("a.mv2"), header).ok());
  {
    const auto file = CapsuleFile::open(at("a.mv2"), Access::write);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(
        (*file)->append(FrameType::log, header.created_us + 1, "{\"role\":\"user\"}", "Where is the plan?").ok());
    const auto text = std::string("The plan is in the drawer.\n");
    const std::string about =
        R"({"uri":"aether://notes/plan.md","corpus":"notes","document":"plan.md","revision":"r1","bytes_hash":")" +
        to_hex(sha256(text)) + R"(","size_bytes":27,"title":"Plan","chunks":[[0,26,")" +
        to_hex(sha256(text.substr(0, 26))) + "\"]]}";
    ASSERT_TRUE((*file)->append(FrameType::document, header.created_us + 2, about, text).ok());
    const auto segment = (*file)->append_segment(SegmentKind::catalogue, {}, "{}");
    ASSERT_TRUE(segment.ok());
    ASSERT_TRUE((*file)->commit(0, file_header_bytes, {*segment}).ok());
    ASSERT_TRUE(
        (*file)->append(FrameType::retraction, header.created_us + 3, R"({"uri":"aether://notes/old.md"})", "").ok());
    ASSERT_TRUE((*file)->commit(false).ok());
  }
  const std::string bytes = bytes_of(at("a.mv2"));
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) {
    std::filesystem::create_directories(std::filesystem::path(golden).parent_path());
    std::ofstream(golden, std::ios::binary) << bytes;
  }
  EXPECT_TRUE(bytes == bytes_of(golden)) << "run with MUNIMENT_ACCEPT=1 to accept";
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
}

TEST_F(CapsuleTest, TheEngineOfACapsuleAnswersLikeThatOfTheDaemon) {
  const char* const words[] = {"copper",  "kettle", "stove", "lamp",  "river",
                               "harbour", "crane",  "plan",  "march", "winter"};
  std::mt19937 random(1);
  const auto word = [&] { return std::string(words[random() % std::size(words)]); };
  const auto sentence = [&] {
    std::string out;
    for (std::size_t i = 0; i < 4 + random() % 12; ++i) out += word() + " ";
    return out;
  };
  const auto capsule = made("a.mv2");
  for (int i = 0; i < 40; ++i)
    put(*capsule, i % 3 == 0 ? "docs" : "notes", "d" + std::to_string(random() % 25), sentence(), word());
  const auto index = Index::open(capsule->file());
  ASSERT_TRUE(index.ok());
  const auto packed = (*index)->engine();
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  const auto engine = retrieval::Engine::open({at("engine"), {}});
  ASSERT_TRUE(engine.ok());
  for (std::int64_t number = 0; number < (*index)->frames(); ++number) {
    retrieval::EngineBatch batch;
    batch.next_seq = number + 1;
    const auto revision = (*index)->revision(number);
    ASSERT_TRUE(revision.ok());
    for (const store::ChunkRow& chunk : revision->chunks) {
      const auto text = text_of(*revision, chunk);
      batch.add.push_back({static_cast<retrieval::ChunkId>(chunk.chunk_id), revision->row.corpus,
                           retrieval::index_text_of(retrieval::format_named(revision->row.format), *text),
                           revision->row.title, chunk.heading, revision->row.language,
                           retrieval::facts_of(revision->row, {})});
    }
    for (std::int64_t before = 0; before < number; ++before) {
      const FrameRow& row = (*index)->row(before);
      if (row.valid_to != number) continue;
      for (std::uint32_t i = 0; i < row.chunks; ++i) batch.close.emplace_back(row.first_chunk + i, number);
    }
    ASSERT_TRUE((*engine)->index(batch).ok());
  }
  const auto left = (*packed)->searcher(), right = (*engine)->searcher();
  std::size_t found = 0;
  for (int i = 0; i < 300; ++i) {
    retrieval::LaneQuery query;
    query.text = word() + " " + word();
    query.mode = static_cast<retrieval::Mode>(random() % 3);
    query.k = 1 + random() % 20;
    query.corpora = {"docs", "notes"};
    if (random() % 2 == 0) query.corpora = {"notes"};
    for (const std::string& corpus : query.corpora) {
      if (query.filter.all_of.empty()) query.filter.all_of.emplace_back();
      query.filter.all_of[0].push_back("corpus:" + corpus);
    }
    if (random() % 3 == 0) query.filter.all_of.push_back({"tag:" + word()});
    if (random() % 3 == 0) query.filter.as_of = static_cast<std::int64_t>(random() % 40);
    const auto a = (*left)->search(query), b = (*right)->search(query);
    ASSERT_TRUE(a.ok() && b.ok());
    ASSERT_EQ(a->candidates.size(), b->candidates.size()) << query.text;
    for (std::size_t rank = 0; rank < a->candidates.size(); ++rank) {
      EXPECT_EQ(a->candidates[rank].chunk, b->candidates[rank].chunk);
      EXPECT_EQ(a->candidates[rank].score, b->candidates[rank].score);
      EXPECT_EQ(a->candidates[rank].confidence, b->candidates[rank].confidence);
    }
    found += a->candidates.size();
  }
  EXPECT_GT(found, 500U);
}

class MergeTest : public CapsuleTest {
 protected:
  void make(const std::string& name, std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto capsule = made(name);
    for (int i = 0; i < 6; ++i) {
      const std::string id = "d" + std::to_string(random() % 4);
      put(*capsule, "notes", id, "text " + std::to_string(random() % 3) + " of " + id);
    }
    ASSERT_TRUE(capsule->add_frame(FrameType::log, "{\"role\":\"user\"}", "turn " + std::to_string(seed)).ok());
  }
  std::string merged(const std::vector<std::string>& inputs, const std::string& output, bool latest = false) {
    std::vector<std::string> paths;
    for (const std::string& name : inputs) paths.push_back(at(name));
    const auto done = merge(paths, at(output), latest);
    EXPECT_TRUE(done.ok()) << (done ? "" : done.error().message);
    return bytes_of(at(output));
  }
};

TEST_F(MergeTest, IsAssociativeCommutativeAndIdempotent) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    const std::string n = std::to_string(seed);
    make("a" + n, seed);
    make("b" + n, seed + 10);
    make("c" + n, seed + 20);
    for (const bool latest : {false, true}) {
      const std::string m = n + (latest ? "l" : "");
      const std::string ab = merged({"a" + n, "b" + n}, "ab" + m, latest);
      EXPECT_TRUE(ab == merged({"b" + n, "a" + n}, "ba" + m, latest)) << "not commutative";
      merged({"b" + n, "c" + n}, "bc" + m, latest);
      const std::string left = merged({"ab" + m, "c" + n}, "ab_c" + m, latest);
      EXPECT_TRUE(left == merged({"a" + n, "bc" + m}, "a_bc" + m, latest)) << "not associative";
      EXPECT_TRUE(left == merged({"ab_c" + m, "ab_c" + m, "a" + n}, "again" + m, latest)) << "not idempotent";
    }
  }
}

TEST_F(MergeTest, KeepsHistoryAndNamesConflicts) {
  const auto left = made("left"), right = made("right");
  put(*left, "notes", "same", "the same text");
  put(*left, "notes", "both", "the left version of the contract");
  put(*right, "notes", "same", "the same text");
  put(*right, "notes", "both", "the right version of the contract");
  put(*right, "notes", "more", "only on the right");
  const auto different = diff(at("left"), at("right"));
  ASSERT_TRUE(different.ok());
  EXPECT_TRUE(different->only_left.empty());
  EXPECT_EQ(different->only_right, std::vector<std::string>{"aether://notes/more"});
  EXPECT_EQ(different->changed, std::vector<std::string>{"aether://notes/both"});
  const auto done = merge({at("left"), at("right")}, at("merged"), false);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->documents, 4U);
  EXPECT_EQ(done->duplicates, 1U);
  EXPECT_EQ(done->conflicts, std::vector<std::string>{"aether://notes/both"});
  const auto capsule = Capsule::open(at("merged"));
  ASSERT_TRUE(capsule.ok());
  EXPECT_EQ((*capsule)->history("notes", "both")->size(), 2U);
  EXPECT_NE(ask(**capsule, "contract").find("right version"), std::string::npos);
  const auto again = merge({at("left")}, at("merged"), false);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::conflict);
}

TEST_F(MergeTest, WithItselfKeepsWhatIsCurrentAgain) {
  {
    const auto capsule = made("a");
    put(*capsule, "notes", "contract", "the first version of the contract");
    put(*capsule, "notes", "contract", "the second version of the contract");
    put(*capsule, "notes", "contract", "the first version of the contract");
    put(*capsule, "notes", "lamp", "a brass lamp");
    ASSERT_TRUE(capsule->retract("notes", "lamp", "", "lost").ok());
    put(*capsule, "notes", "lamp", "a brass lamp");
  }
  merged({"a", "a"}, "b");
  EXPECT_EQ(ask_file(at("b"), "contract"), ask_file(at("a"), "contract"));
  EXPECT_EQ(ask_file(at("b"), "lamp"), ask_file(at("a"), "lamp"));
  EXPECT_NE(ask_file(at("b"), "lamp").find("ev://notes/lamp#p0"), std::string::npos);
}

TEST_F(MergeTest, ComparesTheBytesAndNotWhatADescriptionClaims) {
  const std::string text = "pay the invoice", other = "pay the forger.";
  const auto make_one = [&](const std::string& name, const std::string& body, std::int64_t time_us) {
    ASSERT_TRUE(CapsuleFile::create(at(name), CapsuleFile::new_header()).ok());
    const auto file = CapsuleFile::open(at(name), Access::write);
    const std::string about =
        R"({"uri":"aether://notes/a","corpus":"notes","document":"a","bytes_hash":")" + to_hex(sha256(text)) +
        R"(","size_bytes":15,"timestamp":"2026-01-01T00:00:00Z","chunks":[[0,15,")" + to_hex(sha256(body)) + "\"]]}";
    ASSERT_TRUE((*file)->append(FrameType::document, time_us, about, body).ok());
    ASSERT_TRUE((*file)->commit().ok());
  };
  make_one("real", text, 2'000);
  make_one("forged", other, 1'000);
  const auto done = merge({at("real"), at("forged")}, at("both"), false);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->documents, 2U);
  EXPECT_EQ(done->conflicts, std::vector<std::string>{"aether://notes/a"});
}

TEST_F(MergeTest, ACompactedCapsuleHasTheSameFramesAndAnswers) {
  make("a", 7);
  const std::string before = ask_file(at("a"), "text");
  const auto capsule = Capsule::open(at("a"));
  const Hash chain = (*capsule)->file().state().chain;
  const auto size = (*capsule)->file().end();
  ASSERT_TRUE((*capsule)->compact(Anew::indexes).ok());
  EXPECT_EQ((*capsule)->file().state().chain, chain);
  EXPECT_LT((*capsule)->file().end(), size);
  EXPECT_TRUE((*capsule)->file().verify().ok());
  EXPECT_EQ(ask(**capsule, "text"), before);
}

TEST_F(CapsuleTest, AnswersTheMethodsOfTheCommands) {
  Server server(at("a.mv2"));
  const auto call = [&](std::string_view method, const std::string& params) {
    const auto parsed = json::parse(params);
    EXPECT_TRUE(parsed.ok());
    const auto result = server.call(method, parsed->root());
    return result ? *result : "error: " + result.error().message;
  };
  EXPECT_NE(call("evidence.retrieve", R"({"queries":[{"query":"x"}]})").find("no such capsule"), std::string::npos);
  call("corpus.ingest",
       R"({"corpus":"notes","documents":[{"id":"a.md","text":"The ferry sails at noon."}],"wait":true})");
  EXPECT_NE(call("evidence.retrieve", R"({"queries":[{"query":"ferry"}]})").find("sails at noon"), std::string::npos);
  EXPECT_NE(call("context.build", R"({"query":"ferry"})").find("sails at noon"), std::string::npos);
  EXPECT_NE(call("pointer.resolve", R"({"pointers":["aether://notes/a.md"]})").find("sails at noon"),
            std::string::npos);
  EXPECT_NE(call("pointer.resolve", R"({"pointers":["aether://notes/b.md"]})").find("NOT_FOUND"), std::string::npos);
  EXPECT_NE(call("log.append", R"({"role":"user","content":"When?"})").find("seq"), std::string::npos);
  EXPECT_NE(call("run.list", "{}").find("needs a daemon"), std::string::npos);
}

}  // namespace
}  // namespace muniment::capsule

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--text-child")
    return muniment::retrieval::serve_tool(muniment::first_handed_over);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
