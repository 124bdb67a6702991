// Tests of proof files: every leaf of every small tree is proven, and any change of a proof is detected.
#include <gtest/gtest.h>

#include "base/crypto/base64.hpp"
#include "verify/log/hashing.hpp"
#include "verify/portable/proof.hpp"

namespace muniment::verify {
namespace {

const std::string log_text = "0193f0a0-0000-7000-8000-000000000001";
const std::string body = R"({"content":"Grüße"})";
const std::string salt(32, '\x07');

struct SmallLog {
  std::vector<std::string> entries;
  std::vector<Hash> leaves;

  explicit SmallLog(std::int64_t size) {
    for (std::int64_t seq = 0; seq < size; ++seq) {
      const std::string event_id(16, '\x22'), previous(32, '\x33');
      const Hash body_hash = sha256({salt, body});
      EventView event;
      event.seq = event.run_seq = seq;
      event.run_no = 1;
      event.recorded_at = {1'795'000'000'000'000 + seq};
      event.origin = 2;
      event.type = "message.added";
      event.schema_version = 1;
      event.actor = "uid:1000";
      event.event_id = event_id;
      std::string entry;
      encode_before_previous(*parse_uuid(log_text), "r1", event, entry);
      entries.push_back(entry + previous + std::string(view(body_hash)));
      leaves.push_back(sha256({std::string_view("\0", 1), entries.back()}));
    }
  }

  static std::size_t split_of(std::size_t count) {
    std::size_t split = 1;
    while (split * 2 < count) split *= 2;
    return split;
  }
  Hash root(std::size_t begin, std::size_t end) const {
    if (end - begin == 1) return leaves[begin];
    const std::size_t split = begin + split_of(end - begin);
    return node_hash(root(begin, split), root(split, end));
  }
  // RFC 6962, 2.1.1
  std::vector<Hash> path(std::size_t index, std::size_t begin, std::size_t end) const {
    if (end - begin == 1) return {};
    const std::size_t split = begin + split_of(end - begin);
    auto hashes = index < split ? path(index, begin, split) : path(index, split, end);
    hashes.push_back(index < split ? root(split, end) : root(begin, split));
    return hashes;
  }
};

class VerifyProof : public testing::Test {
 protected:
  std::string proof_of(const SmallLog& log, std::size_t index, bool with_signature = true) const {
    std::string text =
        "c2sp.org/tlog-proof@v1\nextra " + to_base64(log.entries[index]) + "\nindex " + std::to_string(index) + "\n";
    for (const Hash& hash : log.path(index, 0, log.leaves.size())) text += to_base64(view(hash)) + "\n";
    const Checkpoint checkpoint{origin_, static_cast<std::int64_t>(log.leaves.size()), log.root(0, log.leaves.size())};
    text += "\n" + checkpoint.text() + "\n";
    return with_signature ? text + signer_.sign(checkpoint.text()).line() : text;
  }
  Verdict verdict_of(const std::string& proof) const { return judge_proof(proof, keys_, std::nullopt).verdict; }
  static std::string replaced(std::string text, const std::string& what, const std::string& with) {
    return text.replace(text.find(what), what.size(), with);
  }

  const std::string origin_ = "example.com/log/" + log_text;
  const NoteSigner signer_{origin_, KeyType::ed25519, SigningKey::from_seed(Seed{1})};
  const std::vector<VerifierKey> keys_{signer_.verifier()};
};

TEST_F(VerifyProof, EveryLeafOfEverySmallTreeIsProven) {
  for (std::size_t size = 1; size <= 33; ++size) {
    const SmallLog log(static_cast<std::int64_t>(size));
    for (std::size_t index = 0; index < size; ++index) {
      const ProofReport report = judge_proof(proof_of(log, index), keys_, std::nullopt);
      ASSERT_EQ(report.verdict, Verdict::verified) << index << " of " << size << ": " << text_of(report);
      ASSERT_EQ(report.entry->seq, static_cast<std::int64_t>(index));
    }
  }
}

TEST_F(VerifyProof, TheReportSaysWhatWasProven) {
  const std::string text = text_of(judge_proof(proof_of(SmallLog(7), 5), keys_, std::nullopt));
  for (const char* part : {"VERIFIED", "seq 5 of run r1 (run_seq 5)", "message.added, reported by uid:1000",
                           "recorded 2026-11-18T", "in a tree of 7 events with root "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST_F(VerifyProof, AnyFlippedBitOfTheEntryOrTheHashesIsNoticed) {
  const SmallLog log(7);
  const std::string proof = proof_of(log, 5);
  const std::size_t hashes_end = proof.find("\n\n");
  for (std::size_t at = 0; at < hashes_end; ++at) {
    std::string changed = proof;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_NE(verdict_of(changed), Verdict::verified) << at << "\n" << changed;
  }
}

TEST_F(VerifyProof, AnyFlippedBitOfTheCheckpointIsNoticed) {
  const std::string proof = proof_of(SmallLog(7), 5);
  for (std::size_t at = proof.find("\n\n") + 2; at < proof.size(); ++at) {
    std::string changed = proof;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_NE(verdict_of(changed), Verdict::verified) << at << "\n" << changed;
  }
}

TEST_F(VerifyProof, AProofThatIsTooLongOrTooShortOrForAnotherLeafIsRefused) {
  const SmallLog log(7);
  const std::string proof = proof_of(log, 5);
  const std::string sibling = to_base64(view(log.path(5, 0, 7)[0])) + "\n";
  EXPECT_EQ(verdict_of(replaced(proof, sibling, "")), Verdict::tampered);
  EXPECT_EQ(verdict_of(replaced(proof, sibling, sibling + sibling)), Verdict::tampered);
  EXPECT_EQ(verdict_of(replaced(proof, "index 5", "index 4")), Verdict::tampered);
  EXPECT_EQ(verdict_of(replaced(proof, "index 5", "index 7")), Verdict::tampered);
}

TEST_F(VerifyProof, ALeafThatIsReallyANodeIsNoEntry) {
  // Without the domain byte, the two children of a node would be a valid entry.
  const SmallLog log(4);
  const std::string node = std::string(view(log.leaves[0])) + std::string(view(log.leaves[1]));
  const Checkpoint checkpoint{origin_, 2, log.root(0, 4)};
  const std::string text = "c2sp.org/tlog-proof@v1\nextra " + to_base64(node) + "\nindex 0\n" +
                           to_base64(view(log.root(2, 4))) + "\n\n" + checkpoint.text() + "\n" +
                           signer_.sign(checkpoint.text()).line();
  EXPECT_EQ(verdict_of(text), Verdict::unreadable);
}

TEST_F(VerifyProof, WhoSignedDecides) {
  const SmallLog log(3);
  const std::vector<VerifierKey> other{
      NoteSigner(origin_, KeyType::ed25519, SigningKey::from_seed(Seed{2})).verifier()};
  EXPECT_EQ(judge_proof(proof_of(log, 1), other, std::nullopt).verdict, Verdict::wrong_key);
  EXPECT_EQ(judge_proof(proof_of(log, 1), {}, std::nullopt).verdict, Verdict::is_unsigned);
  EXPECT_EQ(judge_proof(proof_of(log, 1, false), {}, std::nullopt).verdict, Verdict::is_unsigned);
  EXPECT_EQ(judge_proof(proof_of(log, 1, false), keys_, std::nullopt).verdict, Verdict::wrong_key);
  const std::string another = "0193f0a0-0000-7000-8000-000000000002";
  EXPECT_EQ(judge_proof(replaced(proof_of(log, 1), "example.com/log/" + log_text, "example.com/log/" + another), {},
                        std::nullopt)
                .verdict,
            Verdict::tampered);
}

TEST_F(VerifyProof, AReceiptAndABodyAreHeldAgainstTheEntry) {
  const SmallLog log(3);
  const std::string proof = proof_of(log, 1);
  const auto judged = [&](const std::string& receipt) { return judge_proof(proof, keys_, receipt); };
  const std::string good =
      R"({"seq":1,"run_seq":1,"event_id":"22222222-2222-2222-2222-222222222222","recorded_at":"2026-11-18T11:06:40.000001Z",)"
      R"("body_hash":")" +
      to_hex(sha256({salt, body})) + R"(","leaf_hash":")" + to_hex(log.leaves[1]) + R"("})";
  EXPECT_TRUE(judged(good).receipt_fits) << text_of(judged(good));
  EXPECT_EQ(judged(replaced(good, "\"run_seq\":1", "\"run_seq\":2")).findings.at(0).check, Check::receipt);
  EXPECT_EQ(judged(replaced(good, to_hex(log.leaves[1]).substr(0, 4), "0000")).verdict, Verdict::tampered);
  const std::string event = R"({"event":{"seq":1,"salt":")" + to_hex(salt) + R"(","body":)" + body + "}}";
  EXPECT_TRUE(judged(event).body_fits);
  EXPECT_FALSE(judged(replaced(event, "Gr", "gr")).body_fits);
  EXPECT_EQ(judged(replaced(event, "Gr", "gr")).verdict, Verdict::tampered);
  EXPECT_EQ(judged("{}").verdict, Verdict::unreadable);
  EXPECT_EQ(judged("no JSON").verdict, Verdict::unreadable);
}

TEST_F(VerifyProof, WhatIsNoProofIsUnreadable) {
  const std::string proof = proof_of(SmallLog(3), 1);
  for (const std::string& text :
       {std::string(), std::string("c2sp.org/tlog-proof@v1\n"), proof.substr(0, 200), replaced(proof, "@v1", "@v2"),
        replaced(proof, "index 1", "index 01"), replaced(proof, "index 1", "index -1"),
        replaced(proof, "extra ", "extra"), replaced(proof, "\n\n", "\nAAAA\n\n")}) {
    EXPECT_EQ(verdict_of(text), Verdict::unreadable) << text;
  }
}

}  // namespace
}  // namespace muniment::verify
