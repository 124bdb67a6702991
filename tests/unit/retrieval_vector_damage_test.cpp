// Tests of a vector shard whose files are truncated, lost or corrupted: it reports corrupt, or it has an earlier state
// at the watermark that it reports. It never returns wrong results silently, and never crashes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>

#include "retrieval/vector/records/record_store.hpp"
#include "retrieval/vector/records/records.hpp"
#include "support/vector_model.hpp"

namespace muniment::retrieval {
namespace {

namespace fs = std::filesystem;
using TemporaryFolder = test::QuickFolder;
using namespace test;

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void replace(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A shard that was closed and opened several times, and then stopped with several batches only in its log.
class DamagedShard : public ::testing::Test {
 protected:
  static constexpr std::size_t dimension = 24;

  void SetUp() override {
    auto shard = opened(live_.path());
    answers_[0] = {};
    for (std::int64_t seq = 1; seq <= 9; ++seq) {
      batches_.push_back(next(seq));
      model_.apply(batches_.back());
      write(*shard, batches_.back());
      answers_[seq] = answers_of(*shard);
      if (seq == 3 || seq == 6) {
        shard.reset();
        shard = opened(live_.path());
      }
    }
    fs::copy(live_.path(), crashed_.path() + "/shard", fs::copy_options::recursive);  // as a crash leaves it
    shard.reset();
    fs::copy(live_.path(), crashed_.path() + "/closed", fs::copy_options::recursive);
  }

  using Answers = std::vector<std::vector<std::pair<ChunkId, double>>>;

  // Runs exact searches now and as of every second seq; a search that reports corrupt gives one entry {0, 0}.
  Answers answers_of(const VectorShard& shard) {
    Answers answers;
    for (std::int64_t seq = 0; seq <= 8; seq += 2) {
      const auto hits = shard.search("s", queries_[static_cast<std::size_t>(seq) / 2], seq == 0 ? Filter() : as_of(seq),
                                     {.k = 12, .exact = true});
      EXPECT_TRUE(hits || hits.error().code == Errc::corrupt) << hits.error().message;
      answers.push_back(hits ? listed(*hits) : std::vector<std::pair<ChunkId, double>>{{0, 0}});
    }
    return answers;
  }

  // Copies `from`, damages the copy, and checks its state. Returns true if it could still be opened.
  bool survives(const std::string& from, const std::string& what,
                const std::function<void(const std::string&)>& damage) {
    TemporaryFolder place;
    const std::string folder = place.path() + "/shard";
    fs::copy(crashed(from), folder, fs::copy_options::recursive);
    damage(folder);
    auto shard = VectorShard::open(folder);
    if (!shard) {
      EXPECT_EQ(shard.error().code, Errc::corrupt) << what << ": " << shard.error().message;
      return false;
    }
    const auto spaces = (*shard)->spaces();
    const std::int64_t seq = spaces.empty() ? 0 : spaces.front().next_seq;
    if (answers_.count(seq) == 0) {
      ADD_FAILURE() << what << ": was never at " << seq;
      return true;
    }
    const Answers now = answers_of(**shard);
    for (std::size_t i = 0; i < now.size() && seq > 0; ++i) {
      const bool says_corrupt = now[i].size() == 1 && now[i].front().first == 0;
      EXPECT_TRUE(says_corrupt || now[i] == answers_[seq][i]) << what << ": wrong at " << seq << ", query " << i;
    }
    catch_up(**shard, seq, what);
    return true;
  }

  // Applies the log's remaining batches, which must restore the shard's state.
  void catch_up(VectorShard& shard, std::int64_t seq, const std::string& what) {
    for (; seq < 9; ++seq) {
      const Status written = shard.write(batches_[static_cast<std::size_t>(seq)]);
      if (!written) {
        EXPECT_EQ(written.error().code, Errc::corrupt) << what << ": " << written.error().message;
        return;
      }
    }
    EXPECT_EQ(answers_of(shard).front(), answers_[9].front()) << what;
  }

  std::vector<std::string> files(const std::string& from) const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(crashed(from))) names.push_back(file.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string crashed(const std::string& from) const { return crashed_.path() + "/" + from; }
  std::string bytes(const std::string& from, const std::string& name) const {
    return bytes_of(crashed(from) + "/" + name);
  }

  static bool ends_with(const std::string& name, const std::string& end) {
    return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  }

  std::map<std::int64_t, Answers> answers_;

 private:
  Batch next(std::int64_t seq) {
    Batch batch("s", dimension, seq);
    for (ChunkId i = 1; i <= 30; ++i)
      batch.put(static_cast<ChunkId>(seq) * 100 + i, points_.next(), labelled("tag:x", seq));
    for (ChunkId i = 1; i <= 8 && seq > 1; ++i) batch.close.emplace_back(static_cast<ChunkId>(seq - 1) * 100 + i, seq);
    return batch;
  }

  TemporaryFolder live_, crashed_;
  Clusters points_{dimension, 4, 31};
  std::vector<FloatVector> queries_{points_.next(), points_.next(), points_.next(), points_.next(), points_.next()};
  std::vector<Batch> batches_;
  VectorModel model_;
};

TEST_F(DamagedShard, IsWholeAfterACrash) {
  EXPECT_TRUE(survives("shard", "as it was", [](const std::string&) {}));
  EXPECT_TRUE(survives("closed", "as it was", [](const std::string&) {}));
}

TEST_F(DamagedShard, ALogThatIsCutLeadsToAnEarlierStateOrIsCorrupt) {
  int opened_at_all = 0;
  for (const std::string& name : files("shard")) {
    if (!ends_with(name, ".log")) continue;
    const std::size_t size = bytes("shard", name).size();
    for (std::size_t cut = 0; cut < size; cut += size / 40 + 1) {
      opened_at_all += survives("shard", name + " cut to " + std::to_string(cut),
                                [&](const std::string& folder) { fs::resize_file(folder + "/" + name, cut); });
    }
  }
  EXPECT_GT(opened_at_all, 10);
}

TEST_F(DamagedShard, AFileThatIsMissingOrCutIsNoticed) {
  for (const std::string from : {"shard", "closed"}) {
    for (const std::string& name : files(from)) {
      if (name == "LOCK" || name.rfind("LOG", 0) == 0) continue;
      const bool whole =
          survives(from, name + " removed", [&](const std::string& folder) { fs::remove(folder + "/" + name); });
      EXPECT_FALSE(whole && (ends_with(name, ".sst") || name == "CURRENT" || name.rfind("MANIFEST", 0) == 0)) << name;
      const std::size_t size = bytes(from, name).size();
      for (std::size_t part = 0; part < 8; ++part) {
        survives(from, name + " cut to " + std::to_string(part) + "/8",
                 [&](const std::string& folder) { fs::resize_file(folder + "/" + name, size * part / 8); });
      }
    }
  }
}

// RocksDB opens this without an error: the manifest has lost its end, and with it the newer tables.
TEST_F(DamagedShard, AManifestThatIsCutAnywhereIsNoticedOrDoesNotMatter) {
  for (const std::string& name : files("shard")) {
    if (name.rfind("MANIFEST", 0) != 0) continue;
    const std::size_t size = bytes("shard", name).size();
    for (std::size_t cut = 1; cut < size; cut += 3) {
      survives("shard", name + " cut to " + std::to_string(cut),
               [&](const std::string& folder) { fs::resize_file(folder + "/" + name, cut); });
    }
  }
}

// The same without RocksDB's checks: each kind of record is removed or reset to an earlier value.
TEST_F(DamagedShard, ARecordThatIsLostOrStaleIsNoticed) {
  std::vector<std::pair<std::string, std::string>> records;
  const auto with_store = [](const std::string& folder, const std::function<Status(vec::RecordStore&)>& work) {
    auto store = vec::RecordStore::open(folder);
    ASSERT_TRUE(store && work(**store));
  };
  TemporaryFolder first;
  fs::copy(crashed("closed"), first.path() + "/shard", fs::copy_options::recursive);
  with_store(first.path() + "/shard", [&](vec::RecordStore& store) {
    return store.scan(std::string(1, 0), std::string(1, 2), [&](std::string_view key, std::string_view value) {
      records.emplace_back(key, value);
      return success();
    });
  });
  std::map<char, int> noticed;  // by kind of record
  for (std::size_t i = 0; i < records.size(); i += i < 4 ? 1 : 17) {
    for (const bool lost : {true, false}) {
      const std::string& key = records[i].first;
      const std::string& value = records[i].second;
      TemporaryFolder place;
      const std::string folder = place.path() + "/shard";
      fs::copy(crashed("closed"), folder, fs::copy_options::recursive);
      with_store(folder, [&](vec::RecordStore& store) {
        vec::Changes changes;
        if (lost)
          changes.remove(key);
        else
          changes.put(key, value.size() < 5 ? value + "    " : value.substr(0, value.size() - 4) + std::string(4, 1));
        return store.write(changes);
      });
      const auto shard = VectorShard::open(folder);
      const auto then = shard ? (*shard)->search("s", FloatVector(dimension, 1), as_of(8), {})
                              : Result<std::vector<Hit>>(shard.error());
      ASSERT_FALSE(then) << "record " << i << (lost ? " lost" : " changed");
      EXPECT_EQ(then.error().code, Errc::corrupt);
      ++noticed[key.size() > 5 ? key[5] : '0'];
    }
  }
  for (const char kind : {'0', 'a', 'c', 'g', 'h', 'n'}) EXPECT_GT(noticed[kind], 0) << kind;
}

TEST_F(DamagedShard, AFlippedBitIsNoticedOrDoesNotMatter) {
  std::mt19937 random(17);
  for (const std::string from : {"shard", "closed"}) {
    std::vector<std::string> names;
    for (const std::string& name : files(from)) {
      if (!bytes(from, name).empty() && name.rfind("LOG", 0) != 0) names.push_back(name);
    }
    for (int i = 0; i < 80; ++i) {
      const std::string& name = names[random() % names.size()];
      std::string all = bytes(from, name);
      const std::size_t at = random() % all.size();
      all[at] = static_cast<char>(all[at] ^ 1 << random() % 8);
      survives(from, name + " flipped at " + std::to_string(at),
               [&](const std::string& folder) { replace(folder + "/" + name, all); });
    }
  }
}

TEST(QuietVectorShard, LeavesNoMoreFilesWithEveryStart) {
  TemporaryFolder place;
  for (int start = 0; start < 25; ++start) opened(place.path()).reset();
  EXPECT_LT(std::distance(fs::directory_iterator(place.path()), fs::directory_iterator()), 25);
}

// Simulates a crash between a removal and the rewriting of the files: the next open completes it.
TEST(ErasingVectorShard, GoesOnAtTheNextOpen) {
  TemporaryFolder place;
  opened(place.path()).reset();
  const std::string secret = "what somebody had the right to have erased";
  const auto change = [&](const std::function<void(vec::Changes&)>& make) {
    const auto store = vec::RecordStore::open(place.path());
    ASSERT_TRUE(store);
    vec::Changes changes;
    make(changes);
    ASSERT_TRUE((*store)->write(changes));
  };
  const auto on_disk = [&] {
    for (const auto& file : fs::directory_iterator(place.path())) {
      if (bytes_of(file.path()).find(secret) != std::string::npos) return true;
    }
    return false;
  };
  change([&](vec::Changes& changes) { changes.put("\x02", secret); });
  vec::ShardHeader header;
  header.erasing = 1;
  change([&](vec::Changes& changes) {
    changes.remove("\x02");
    changes.put(vec::shard_key(), vec::encode(header));
  });
  EXPECT_TRUE(on_disk());
  opened(place.path()).reset();
  EXPECT_FALSE(on_disk());
}

}  // namespace
}  // namespace muniment::retrieval
