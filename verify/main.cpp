// Entry point of muniment-verify, which verifies a log, a proof, a bundle or a capsule without trust in the daemon, its
// operator or its DBA.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "verify/log/progress.hpp"
#include "verify/options.hpp"
#include "verify/report.hpp"

namespace {

using namespace muniment::verify;

template <typename AnyReport>
int tell(const AnyReport& report, const CommandLine& line) {
  const std::string text = line.json ? json_of(report) : text_of(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const bool shown = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!line.report.empty() && !(std::ofstream(line.report) << json_of(report)).flush()) {
    std::fprintf(stderr, "muniment-verify: the report cannot be written to %s\n", line.report.c_str());
    return usage_exit_code;
  }
  if (!shown) {  // also if --report wrote a file: the reader of standard output has no verdict
    std::fprintf(stderr, "muniment-verify: the verdict could not be written to standard output\n");
    return usage_exit_code;
  }
  return exit_code_of(report.verdict, line.unsigned_ok);
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = parse_command_line(argc, argv);
  if (const int* const code = std::get_if<int>(&parsed)) return *code;
  CommandLine& line = std::get<CommandLine>(parsed);
  if (!line.proof.proof.empty()) return tell(verify_proof(line.proof), line);
  if (!line.capsule.capsule.empty()) return tell(verify_capsule(line.capsule), line);
  ProgressLine progress(::isatty(STDERR_FILENO) != 0);
  line.options.progress = line.bundle.progress = progress.sink();
  const Report report = line.bundle.bundle.empty() ? verify(line.options) : verify_bundle(line.bundle);
  progress.clear();
  const int code = tell(report, line);
  if (report.unsaved.empty()) return code;
  std::fprintf(stderr, "muniment-verify: the state is not saved: %s\n", report.unsaved.c_str());
  return usage_exit_code;
}
