// Writes and reads in-toto statements, version 1, with the predicate test-result, version 0.1: the payload of an
// attestation. A statement of Muniment has the content of the evidence in the extension field "muniment".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::evidence::attestation {

inline constexpr std::string_view payload_type = "application/vnd.in-toto+json";
inline constexpr std::string_view predicate_type = "https://in-toto.io/attestation/test-result/v0.1";

struct Subject {
  std::string name;
  std::string sha256;  // lower-case hex; empty: the subject has digests of other algorithms only
};

enum class TestOutcome { passed, warned, failed };

struct TestStatement {
  std::vector<Subject> subjects;  // not empty
  TestOutcome outcome = TestOutcome::failed;
  std::vector<std::string> passed, warned, failed;  // names of tests; may be incomplete or empty
  std::string content;  // content of the evidence, a JSON object with text, command and report; empty: not of Muniment
  std::string command_id;  // UUID of the command in `content`
};

// Returns whether the type is that of a statement: application/vnd.in-toto+json or …in-toto.test-result+json.
bool is_statement_type(std::string_view payload_type);

// Returns the content of evidence of type test_output as a statement. The subject is the working tree that the command
// left, otherwise the evidence itself, whose hash is `hash`. Errors: conflict if the content has no recorded command;
// too_large.
Result<std::string> write_statement(std::string_view content, std::string_view evidence_id, std::string_view hash);

// Errors: invalid_argument for any other payload, also a statement that contradicts itself.
Result<TestStatement> parse_statement(std::string_view payload);

// Returns the content of the evidence that the statement stands for. `now` replaces the time of the command, which
// only a statement of Muniment has.
std::string content_of(const TestStatement& statement, std::string_view now);

}  // namespace muniment::evidence::attestation
