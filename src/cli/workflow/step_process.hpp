// Runs one command of a blind workflow with limits, confined or not, and captures its output. When the command has
// ended, no process that it started is left; if this process is killed, the kernel kills them, and without process
// namespaces the process that watches the command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/process/stop_signals.hpp"
#include "base/result.hpp"
#include "cli/workflow/confinement.hpp"
#include "cli/workflow/notifier.hpp"
#include "evidence/workflow/spec.hpp"

namespace muniment::cli {

struct StepPlan {
  std::vector<std::string> argv;         // argv[0] is an absolute path
  std::vector<std::string> environment;  // NAME=value
  std::string folder;                    // working folder
  evidence::workflow::StepLimits limits;
  std::vector<std::string> writes;  // folders whose size counts against the limit of the disk
  std::int64_t files_max = 0;       // files and links in `writes`; 0: no limit
  // For a command that is not confined: folder at which it has a file system in memory, which no other process sees and
  // which ends with this process. Empty: none.
  std::string private_folder;
  bool confined = false;
  View view;                         // for a confined command
  std::string view_folder;           // empty folder at which the view is built
  std::vector<std::string> removed;  // folders that existed before the step; looking for their files is recorded
  std::string examined;              // folder of the view that the command is to open a file of; empty: none
  std::string isolation = "full";    // lowest accepted isolation: none, partial, full
};

// Isolation that a command had.
struct Isolation {
  std::string level = "none";
  std::vector<std::string> missing;
  int landlock = 0;    // ABI of Landlock's rules; 0: none
  std::string source;  // source of the records of refused accesses; empty: none
};

struct StepOutcome {
  int exit_code = 0;  // valid if `signal` is 0
  int signal = 0;
  // Limit that ended it (seconds, output_bytes, disk_bytes, files), disk_full if its output could not be stored, or
  // interrupted; empty: its own end.
  std::string ended_by;
  std::int64_t duration_us = 0;
  Fd stdout_file, stderr_file;  // unnamed files
  Fd private_folder;            // that of the plan; not open: there is none, and the files are on the disk
  Isolation isolation;
  std::vector<Refusal> refusals;
  std::int64_t refused = 0, omitted = 0;
  std::optional<bool> examined;  // it opened a file of plan.examined; nullopt: unknown

  bool good() const { return signal == 0 && exit_code == 0 && ended_by.empty(); }
};

// Blocks until the command has ended. Errors: unavailable if the demanded isolation, or for isolation other than none
// the private folder, cannot be reached, with the step that failed, and then the command was not started; not_found or
// denied if the program cannot be executed.
Result<StepOutcome> run_step(const StepPlan& plan, StopSignals& stop);

}  // namespace muniment::cli
