// Whatever bytes an auditor is handed: the verifier never crashes, and what it accepts is written in one way alone.
// The first byte chooses what the rest is: a note, keys, a proof, an entry, a line of a bundle, a saved state, a bundle.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/signed_note.hpp"
#include "verify/bundle.hpp"
#include "verify/bundle_archive.hpp"
#include "verify/bundle_rows.hpp"
#include "verify/bundle_tree.hpp"
#include "verify/entry.hpp"
#include "verify/proof.hpp"
#include "verify/report.hpp"
#include "verify/saved_state.hpp"

namespace {

using namespace muniment;
using namespace muniment::verify;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

const std::vector<VerifierKey>& keys() {
  static const std::vector<VerifierKey> one{NoteSigner("example.com/log", KeyType::ed25519, SigningKey::from_seed(Seed{1})).verifier()};
  return one;
}

void fuzz_note(const std::string& text) {
  const auto file = parse_checkpoint_file(text);
  if (file && file->note) require(file->note->signed_text() == text, "a note can be written in two ways");
  if (file && file->note) require(file->checkpoint.text() == file->note->text, "a checkpoint can be written in two ways");
}

void fuzz_keys(const std::string& text) {
  const auto parsed = VerifierKey::parse(text);
  if (parsed) require(parsed->text() == text, "a key can be written in two ways");
  (void)parse_verifier_keys(text).ok();
}

void fuzz_proof(const std::string& text) {
  const ProofReport report = judge_proof(text, keys(), text);
  require(report.verdict != Verdict::verified, "a proof without a signature by our key is verified");
  require(!text_of(report).empty() && !json_of(report).empty(), "a report without words");
}

void fuzz_bundle(const std::string& bytes) {
  const int file = ::memfd_create("bundle", MFD_CLOEXEC);
  require(::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "the bundle was not written");
  const Report report = verify_bundle({"/proc/self/fd/" + std::to_string(file), {}, {}});
  ::close(file);
  require(report.verdict != Verdict::verified, "a bundle is verified without a key");
  require(!text_of(report).empty() && !json_of(report).empty(), "a report without words");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0: fuzz_note(text); break;
    case 1: fuzz_keys(text); break;
    case 2: fuzz_proof(text); break;
    case 3: (void)decode_entry(text).ok(); break;
    case 4: (void)parse_bundle_event(text).ok(); break;
    case 5: (void)parse_bundle_index(text).ok(); break;
    case 6:
      if (const auto state = parse_saved_state(text)) (void)json_of(*state);
      break;
    default: fuzz_bundle(text);
  }
  return 0;
}
