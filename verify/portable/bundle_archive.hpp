// Reads the file of a bundle (docs/format.md, Run bundles). The file may be hostile: its members must match bundle.json
// in order, size and hash. Members are unpacked only into unnamed temporary files.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files/tar_archive.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "verify/files/artifact_root.hpp"
#include "verify/finding.hpp"
#include "verify/portable/line_file.hpp"

namespace muniment::verify {

// Members of every bundle in file order. The last two are for human readers; a bundle of version 1 lacks them.
enum class BundleText : std::uint8_t {
  checkpoint,
  keys,
  events,
  nodes,
  artifacts,
  manifests,
  snapshots,
  claims,
  evidence,
  readme,
  report
};
inline constexpr std::size_t bundle_texts = 11;
inline constexpr std::size_t bundle_texts_for_people = 2;

struct BundleMember {
  std::string path;
  std::string sha256;  // hexadecimal
  std::int64_t size_bytes = 0;
};

// Content of bundle.json.
struct BundleIndex {
  Uuid log_id;
  std::string origin, run_id;
  std::int64_t version = 0, run_no = 0, size = 0, events = 0;
  std::vector<BundleMember> files;

  std::size_t texts() const { return version == 1 ? bundle_texts - bundle_texts_for_people : bundle_texts; }
};

// Errors: unavailable if the text is not a bundle of a known version; corrupt if it violates docs/format.md.
Result<BundleIndex> parse_bundle_index(std::string_view text);

class BundleArchive {
 public:
  // Reads bundle.json and the texts. Errors: as parse_bundle_index; unavailable also if the file is not a tar archive
  // in one Zstandard frame.
  static Result<BundleArchive> open(const std::string& path, Findings& findings);

  const BundleIndex& index() const { return index_; }
  const LineFile& text(BundleText which) const { return texts_[static_cast<std::size_t>(which)]; }
  Result<std::string> whole_text(BundleText which, std::size_t bytes_max) const;

  // Reads the artifacts and the end of the archive. It keeps the content of the `wanted` ones that are no larger than a
  // patch.
  Status read_artifacts(const std::set<std::string>& wanted, Findings& findings);
  const std::map<std::string, FileFacts>& artifacts() const { return artifacts_; }  // by artifact_id
  const std::map<std::string, std::string>& kept() const { return kept_; }

 private:
  BundleArchive(TarReader tar, BundleIndex index) : tar_(std::move(tar)), index_(std::move(index)) {}
  template <typename Take>
  Result<FileFacts> read_member(std::size_t number, Findings& findings, Take take);

  TarReader tar_;
  BundleIndex index_;
  std::vector<LineFile> texts_;
  std::map<std::string, FileFacts> artifacts_;
  std::map<std::string, std::string> kept_;
};

}  // namespace muniment::verify
