// Tests DSSE envelopes and in-toto statements of test results. tests/golden/attestation has one, signed with a fixed
// key.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/crypto/base64.hpp"
#include "base/crypto/dsse.hpp"
#include "base/json/json.hpp"
#include "evidence/attestation/statement.hpp"

namespace muniment::evidence::attestation {
namespace {

constexpr const char* evidence_id = "01a207ea-733a-7e31-b137-4b2783c600aa";
const std::string digest(64, 'a');
const std::string hash(64, 'b');

std::string content(int exit_code = 0, int failed = 0, const std::string& text = "Ran 2 tests in 0.001s\n\nOK") {
  json::Writer out;
  out.begin_object().member("text", text).key("command").begin_object();
  out.member("command_id", evidence_id).member("suite", hash).member("argv", std::vector<std::string>{"pytest", "-q"});
  out.member("cwd", "/src").member("exit_code", exit_code).member("started_at", "2026-11-01T12:00:00.000000Z");
  out.member("ended_at", "2026-11-01T12:00:01.000000Z").member("tree_after", "git:d20ace79 v2 sha256:" + digest);
  out.end_object().key("report").begin_object().member("format", "pytest").member("total", 2);
  out.member("passed", 2 - failed).member("failed", failed).member("skipped", 0).member("listed", true);
  out.member("complete", true);
  if (failed > 0) out.member("failures", std::vector<std::string>{"test_adder.py::test_zero"});
  return std::move(out.end_object().end_object()).text();
}

NoteSigner signer(std::uint8_t seed_byte = 7, KeyType type = KeyType::ed25519) {
  Seed seed{};
  seed[0] = seed_byte;
  return {"muniment.test/log", type, SigningKey::from_seed(seed)};
}

Envelope attested(const std::string& payload, const NoteSigner& by = signer()) {
  Envelope envelope{std::string(payload_type), payload, {}};
  sign_envelope(envelope, by.sign(envelope.signed_text()));
  return envelope;
}

std::string statement() { return write_statement(content(), evidence_id, hash).value(); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Envelope, TheSignedTextIsThatOfTheSpecification) {
  const Envelope envelope{"http://example.com/HelloWorld", "hello world", {}};
  EXPECT_EQ(envelope.signed_text(), "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

TEST(Envelope, IsThatOfTheGoldenFile) {
  const std::string path = std::string(MUNIMENT_GOLDEN) + "/attestation/envelope.json";
  const std::string made = attested(statement()).text() + "\n";
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) std::ofstream(path) << made;
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(made, kept.str());
}

TEST(Envelope, ATrustedSignatureAmongOthersCounts) {
  Envelope envelope = attested(statement(), signer(8));
  const VerifierKey trusted = signer().verifier();
  EXPECT_EQ(signer_of(envelope, {&trusted, 1}), nullptr);
  sign_envelope(envelope, signer().sign(envelope.signed_text()));
  const auto read = Envelope::parse(envelope.text());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->signatures.size(), 2U);
  EXPECT_EQ(signer_of(*read, {&trusted, 1}), &trusted);
}

TEST(Envelope, ASignatureInAnotherEncodingDoesNotHideATrustedOne) {
  const std::string other = R"("signatures":[{"keyid":"x","sig":"-----BEGIN-----"},{"sig":""},)";
  const VerifierKey trusted = signer().verifier();
  const auto read = Envelope::parse(replaced(attested(statement()).text(), R"("signatures":[)", other));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(signer_of(*read, {&trusted, 1}), &trusted);
  const VerifierKey stranger = signer(8).verifier();
  EXPECT_EQ(signer_of(*read, {&stranger, 1}), nullptr);
}

TEST(Envelope, NoBitOfPayloadTypeOrSignatureMayChange) {
  const VerifierKey trusted = signer().verifier();
  const Envelope good = attested(statement());
  ASSERT_NE(signer_of(good, {&trusted, 1}), nullptr);
  for (std::size_t at = 0; at < good.payload.size(); at += 37) {
    Envelope changed = good;
    changed.payload[at] = static_cast<char>(changed.payload[at] ^ 1);
    EXPECT_EQ(signer_of(changed, {&trusted, 1}), nullptr) << at;
  }
  for (std::size_t at = 0; at < good.signatures[0].bytes.size(); ++at) {
    Envelope changed = good;
    changed.signatures[0].bytes[at] = static_cast<char>(changed.signatures[0].bytes[at] ^ 1);
    EXPECT_EQ(signer_of(changed, {&trusted, 1}), nullptr) << at;
  }
  Envelope confused = good;
  confused.payload_type = "application/vnd.in-toto.test-result+json";
  EXPECT_EQ(signer_of(confused, {&trusted, 1}), nullptr);
}

// A length decides where the payload begins, so that bytes cannot move between the type and the payload.
TEST(Envelope, BytesDoNotMoveBetweenTypeAndPayload) {
  EXPECT_NE((Envelope{"a", "b 1 c", {}}).signed_text(), (Envelope{"a 5 b", "c", {}}).signed_text());
}

TEST(Envelope, ASignatureOfACheckpointIsNone) {
  const VerifierKey trusted = signer().verifier();
  const std::string checkpoint = Checkpoint{"muniment.test/log", 3, Hash{}}.text();
  for (const auto& [type, payload] : {std::pair<std::string, std::string>{std::string(payload_type), checkpoint},
                                      {"", checkpoint},
                                      {checkpoint, ""}}) {
    Envelope envelope{type, payload, {}};
    sign_envelope(envelope, signer().sign(checkpoint));
    EXPECT_EQ(signer_of(envelope, {&trusted, 1}), nullptr);
    const std::string first_line = envelope.signed_text().substr(0, envelope.signed_text().find('\n'));
    EXPECT_NE(first_line.find(' '), std::string::npos) << "a key name has no space";
    EXPECT_FALSE(Checkpoint::parse(envelope.signed_text()).ok() && first_line == trusted.name);
  }
}

TEST(Envelope, AWitnessDoesNotAttest) {
  const NoteSigner witness = signer(9, KeyType::cosignature);
  Envelope envelope{std::string(payload_type), statement(), {}};
  sign_envelope(envelope, witness.sign(envelope.signed_text(), 1));
  const VerifierKey trusted = witness.verifier();
  EXPECT_EQ(signer_of(envelope, {&trusted, 1}), nullptr);
}

TEST(Envelope, OtherTextsAreRefused) {
  const std::string good = attested("{}").text();
  ASSERT_TRUE(Envelope::parse(good).ok());
  EXPECT_TRUE(Envelope::parse(replaced(good, "\"keyid\"", "\"x\"")).ok()) << "a keyid is optional";
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{}"), good.substr(1), good + good,
        replaced(good, "payloadType", "type"), replaced(good, "\"payload\"", "\"load\""), replaced(good, "e30=", "e30"),
        replaced(good, "e30=", "e3\n0="), replaced(good, "[{", "[1,{"), replaced(good, "\"sig\"", "\"signature\""),
        std::string(R"({"payloadType":"x","payload":"e30=","signatures":[]})")}) {
    const auto read = Envelope::parse(bad);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.error().code, Errc::invalid_argument);
  }
  EXPECT_EQ(Envelope::parse(std::string(envelope_bytes_max + 1, ' ')).error().code, Errc::too_large);
}

TEST(Envelope, BothAlphabetsOfBase64AreRead) {
  Envelope envelope{"x", "\xfb\xff\xfe", {{"", "\xff\xff\xfe"}}};
  std::string text = envelope.text();
  ASSERT_NE(text.find("+//+"), std::string::npos);
  EXPECT_EQ(Envelope::parse(replaced(text, "+//+", "-__-"))->payload, envelope.payload);
}

TEST(Statement, IsReadAsWritten) {
  const auto read = parse_statement(statement());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->outcome, TestOutcome::passed);
  ASSERT_EQ(read->subjects.size(), 1U);
  EXPECT_EQ(read->subjects[0].sha256, digest);
  EXPECT_EQ(content_of(*read, "now"), content());
}

TEST(Statement, AFailedRunIsFailed) {
  for (const std::string& failed : {content(1, 1), content(1, 0), content(0, 1)}) {
    const auto read = parse_statement(write_statement(failed, evidence_id, hash).value());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->outcome, TestOutcome::failed);
  }
}

TEST(Statement, ALongOutputIsCut) {
  const auto read =
      parse_statement(write_statement(content(0, 0, std::string(40'000, 'x') + "OK"), evidence_id, hash).value());
  ASSERT_TRUE(read.ok());
  EXPECT_LT(read->content.size(), 6'000U);
  EXPECT_NE(read->content.find("xOK"), std::string::npos);
}

TEST(Statement, TextsAreNotTestResults) {
  EXPECT_EQ(write_statement(R"({"text":"12 passed"})", evidence_id, hash).error().code, Errc::conflict);
}

TEST(Statement, ContradictionsAreRefused) {
  const std::string good = statement();
  for (const std::string& bad :
       {replaced(good, "PASSED", "FAILED"),
        replaced(good, "PASSED", "WARNED"),
        replaced(good, "PASSED", "OK"),
        replaced(good, "\"command_id\"", "\"x\""),
        replaced(good, "\"command_id\":\"0", "\"command_id\":\"g"),
        replaced(good, "Statement/v1", "Statement/v0.1"),
        replaced(good, "test-result/v0.1", "test-result/v0.2"),
        replaced(good, "\"digest\"", "\"digests\""),
        replaced(good, "\"sha256\":\"" + digest, "\"sha256\":\"" + hash),
        replaced(good, "\"format\":\"pytest\"", "\"format\":\"golden\""),
        replaced(good, "\"configuration\":[", "\"x\":["),
        replaced(good, "\"test_output\"", "\"review\""),
        replaced(good, "\"exit_code\":0", "\"exit_code\":1"),
        replaced(good, "\"started_at\"", "\"x\""),
        replaced(good, "\"ended_at\":\"2026-11-01T12:00:01.000000Z\"", "\"ended_at\":\"2026-11-01T11:00:00.000000Z\""),
        replaced(good, "\"ended_at\":\"2026", "\"ended_at\":\"later"),
        replaced(good, "\"argv\":[\"pytest\",\"-q\"]", "\"argv\":\"pytest\""),
        replaced(replaced(good, "\"subject\":[{", "\"subject\":{\"a\":{"), "}],\"predicateType", "}},\"predicateType"),
        std::string("{}"),
        std::string("null")}) {
    const auto read = parse_statement(bad);
    EXPECT_FALSE(read.ok()) << bad;
  }
}

TEST(Statement, OfAnotherProgramHasItsTestsAsReport) {
  const std::string text =
      R"({"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"gitCommit":"d20ace79"}}],)"
      R"("predicateType":"https://in-toto.io/attestation/test-result/v0.1","predicate":{"result":"RESULT","configuration":[],)"
      R"("passedTests":["a","b"]}})";
  const auto passed = parse_statement(replaced(text, "RESULT", "PASSED"));
  ASSERT_TRUE(passed.ok()) << passed.error().message;
  const std::string made = content_of(*passed, "2026-11-01T12:00:00Z");
  const auto document = json::parse(made);
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->root()["report"]["passed"].as_int(), 2);
  EXPECT_EQ(document->root()["command"]["exit_code"].as_int(), 0);
  EXPECT_EQ(document->root()["command"]["argv"].size(), 0U);
  const std::string warned = content_of(parse_statement(replaced(text, "RESULT", "WARNED")).value(), "now");
  EXPECT_EQ(warned.find("report"), std::string::npos);
}

}  // namespace
}  // namespace muniment::evidence::attestation
