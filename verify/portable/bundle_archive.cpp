#include "verify/portable/bundle_archive.hpp"

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "verify/log/run_facts.hpp"
#include "verify/portable/zstd_frame.hpp"
#include "verify/state/run_folder.hpp"

namespace muniment::verify {
namespace {

constexpr std::array<std::string_view, bundle_texts> text_names{
    "checkpoint",      "keys",         "events.jsonl",   "nodes",     "artifacts.jsonl", "manifests.jsonl",
    "snapshots.jsonl", "claims.jsonl", "evidence.jsonl", "README.md", "report.html"};
constexpr std::string_view artifacts_folder = "artifacts/";

Error not_a_bundle(std::string_view why) { return {Errc::unavailable, fmt::format("not a bundle: {}", why)}; }
Error not_as_it_was(std::string_view why) { return {Errc::corrupt, std::string(why)}; }

// Converts an error of the archive itself: a file that cannot be unpacked is not evidence of a changed bundle.
Error unreadable(Error error) {
  if (error.code == Errc::corrupt) error.code = Errc::unavailable;
  return error;
}

Result<std::string> read_whole(TarReader& tar, const TarEntry& entry, std::size_t bytes_max) {
  if (entry.size_bytes > static_cast<std::int64_t>(bytes_max))
    return not_as_it_was(fmt::format("{} has over {} bytes", entry.path, bytes_max));
  std::string text;
  while (true) {
    const auto block = tar.read();
    if (!block) return unreadable(block.error());
    if (block->empty()) return text;
    text += *block;
    if (text.size() > bytes_max) return not_as_it_was(fmt::format("{} has over {} bytes", entry.path, bytes_max));
  }
}

// Checks that all listed members have their names and that their total size is within the limit.
Status check_files(const BundleIndex& index) {
  if (index.files.size() < index.texts()) return not_as_it_was("bundle.json lists too few files");
  std::int64_t bytes = 0;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < index.files.size(); ++i) {
    const BundleMember& file = index.files[i];
    const bool is_text = i < index.texts();
    if (is_text && file.path != text_names[i])
      return not_as_it_was(fmt::format("bundle.json lists {} instead of {}", file.path, text_names[i]));
    if (!is_text) {
      const std::string id = file.path.substr(0, artifacts_folder.size()) == artifacts_folder
                                 ? file.path.substr(artifacts_folder.size())
                                 : "";
      const auto uuid = parse_uuid(id);
      if (!uuid || uuid->text() != id || !seen.insert(id).second)
        return not_as_it_was(fmt::format("bundle.json lists {}", file.path));
    }
    const std::int64_t bytes_max = is_text ? limits::bundle_text_bytes_max : limits::bundle_bytes_max;
    if (file.size_bytes < 0 || file.size_bytes > bytes_max || (bytes += file.size_bytes) > limits::bundle_bytes_max) {
      return not_as_it_was(fmt::format("{} exceeds the limit of {} bytes in total", file.path, bytes_max));
    }
  }
  return success();
}

}  // namespace

Result<BundleIndex> parse_bundle_index(std::string_view text) {
  const auto document = json::parse(text);
  if (!document) return not_a_bundle("bundle.json is not valid JSON: " + document.error().message);
  const json::Value root = document->root();
  const auto version = root["version"].as_int();
  if (text_of(root, "format") != "muniment-bundle" || (version != 1 && version != 2))
    return not_a_bundle("bundle.json names an unknown format or version");
  const auto log_id = parse_uuid(text_of(root, "log_id").value_or(""));
  const auto run_no = root["run_no"].as_int(), size = root["size"].as_int(), events = root["events"].as_int();
  const Text origin = text_of(root, "origin"), run_id = text_of(root, "run_id");
  if (!log_id || !run_no || !size || !events || !origin || !run_id || *run_no < 0 || *size < 0 || *events < 0) {
    return not_as_it_was("bundle.json lacks log_id, origin, run_id, run_no, size or events");
  }
  if ((*run_no == 0) != (*run_id == log_run_id)) return not_as_it_was("run_no 0 and run_id _log must occur together");
  BundleIndex index{*log_id, *origin, *run_id, *version, *run_no, *size, *events, {}};
  for (const json::Value file : root["files"]) {
    if (index.files.size() == limits::bundle_files_max)
      return not_as_it_was(fmt::format("over {} files", limits::bundle_files_max));
    index.files.push_back({text_of(file, "path").value_or(""), text_of(file, "sha256").value_or(""),
                           file["size_bytes"].as_int().value_or(-1)});
  }
  RETURN_IF_ERROR(check_files(index));
  return index;
}

Result<BundleArchive> BundleArchive::open(const std::string& path, Findings& findings) {
  {
    ASSIGN_OR_RETURN(const RegularFile file, open_named(path));
    if (Status one = check_one_frame(file.fd, file.size); !one) return unreadable(std::move(one).error());
  }
  auto tar = TarReader::open(path);
  if (!tar) return unreadable(std::move(tar).error());
  const auto entry = tar->next();
  if (!entry) return unreadable(entry.error());
  const std::optional<TarEntry>& first = *entry;
  if (!first || first->path != "bundle.json") return not_a_bundle("its first member is not bundle.json");
  ASSIGN_OR_RETURN(const std::string text, read_whole(*tar, *first, limits::bundle_index_bytes_max));
  ASSIGN_OR_RETURN(BundleIndex index, parse_bundle_index(text));
  BundleArchive bundle(*std::move(tar), std::move(index));
  for (std::size_t i = 0; i < bundle.index_.texts(); ++i) {
    ASSIGN_OR_RETURN(LineFile file, LineFile::make());
    Status written = success();
    ASSIGN_OR_RETURN(const FileFacts facts, bundle.read_member(i, findings, [&](std::string_view block) {
      if (written) written = file.append(block);
    }));
    RETURN_IF_ERROR(written);
    if (facts.size_bytes != file.size()) return not_a_bundle("a member could not be copied to a temporary file");
    bundle.texts_.push_back(std::move(file));
  }
  return bundle;
}

// Reads the next member of the archive, which must be the next one in bundle.json.
template <typename Take>
Result<FileFacts> BundleArchive::read_member(std::size_t number, Findings& findings, Take take) {
  const BundleMember& wanted = index_.files[number];
  const auto read = tar_.next();
  if (!read) return unreadable(read.error());
  const std::optional<TarEntry>& entry = *read;
  if (!entry) return not_as_it_was(fmt::format("{} is missing", wanted.path));
  if (entry->path != wanted.path || entry->size_bytes != wanted.size_bytes) {
    return not_as_it_was(fmt::format("{} of {} bytes found where bundle.json lists {} of {}", entry->path,
                                     entry->size_bytes, wanted.path, wanted.size_bytes));
  }
  FileFacts facts;
  Sha256 digest;
  while (true) {
    const auto block = tar_.read();
    if (!block) return unreadable(block.error());
    if (block->empty()) break;
    digest.update(*block);
    facts.size_bytes += static_cast<std::int64_t>(block->size());
    take(*block);
  }
  facts.hash = digest.finish();
  if (facts.size_bytes != wanted.size_bytes || to_hex(facts.hash) != wanted.sha256) {
    findings.add({Check::bundle, -1, index_.run_id,
                  fmt::format("{}: {} bytes with sha256 {}", wanted.path, wanted.size_bytes, wanted.sha256),
                  fmt::format("{} bytes with sha256 {}", facts.size_bytes, to_hex(facts.hash))});
  }
  return facts;
}

Result<std::string> BundleArchive::whole_text(BundleText which, std::size_t bytes_max) const {
  const LineFile& file = text(which);
  if (file.size() > static_cast<std::int64_t>(bytes_max)) {
    return not_as_it_was(fmt::format("{} has over {} bytes", text_names[static_cast<std::size_t>(which)], bytes_max));
  }
  return read_at(file.file(), 0, bytes_max);
}

Status BundleArchive::read_artifacts(const std::set<std::string>& wanted, Findings& findings) {
  for (std::size_t i = index_.texts(); i < index_.files.size(); ++i) {
    const std::string id = index_.files[i].path.substr(artifacts_folder.size());
    const bool keep = wanted.contains(id);
    std::string bytes;
    ASSIGN_OR_RETURN(const FileFacts facts, read_member(i, findings, [&](std::string_view block) {
                       // One byte over the limit suffices for the patch to be refused.
                       const std::size_t room = static_cast<std::size_t>(spilled_patch_bytes_max) + 1 - bytes.size();
                       if (keep) bytes += block.substr(0, room);
                     }));
    artifacts_.emplace(id, facts);
    if (keep) kept_.emplace(id, std::move(bytes));
  }
  const auto more = tar_.next();
  if (!more) return unreadable(more.error());
  if (*more) {
    findings.add({Check::bundle, -1, index_.run_id, "only members that bundle.json lists", (*more)->path});
    return success();
  }
  Status end = tar_.check_end();
  return end ? success() : Status(unreadable(std::move(end).error()));
}

}  // namespace muniment::verify
