// Reads and writes the tiles and entry bundles of a log's tree.
#include "audit/tree_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"
#include "events/merkle.hpp"

namespace muniment::audit {
namespace {

constexpr std::size_t hash_bytes = sizeof(Hash);
constexpr std::string_view temporary = ".new";   // one name suffices for the only writer
constexpr std::size_t tile_path_bytes_max = 24;  // for a number up to the maximum of int64

Hash hash_at(std::string_view hashes, std::size_t index) {
  Hash hash;
  std::memcpy(hash.data(), hashes.data() + index * hash_bytes, hash_bytes);
  return hash;
}

Result<std::string> read_tile(const Fd& folder, const std::string& path, std::size_t bytes) {
  ASSIGN_OR_RETURN(const RegularFile file, open_regular_beneath(folder, path));
  ASSIGN_OR_RETURN(std::string tile, read_at(file.fd, 0, bytes));
  if (tile.size() != bytes)
    return Error(Errc::corrupt, fmt::format("{} has {} bytes, expected {}", path, tile.size(), bytes));
  return tile;
}

}  // namespace

Hash tile_root(std::string_view hashes) {
  std::vector<Hash> row(hashes.size() / hash_bytes);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = hash_at(hashes, i);
  for (std::size_t left = row.size(); left > 1; left /= 2) {
    for (std::size_t i = 0; i < left / 2; ++i) row[i] = events::merkle_node(row[2 * i], row[2 * i + 1]);
  }
  return row.front();
}

Result<std::string_view> TreeReader::tile(int level, std::int64_t index) {
  const std::string full = tile_path(level, index);
  if (const auto held = tiles_.find(full); held != tiles_.end()) return std::string_view(held->second);
  const std::int64_t hashes = std::min(tile_width, tile_hashes(level, size_) - index * tile_width);
  if (hashes <= 0) return Error(Errc::corrupt, fmt::format("a log of {} events has no {}", size_, full));
  const std::size_t bytes = static_cast<std::size_t>(hashes) * hash_bytes;
  // A partial tile is removed once the full one exists.
  const auto failed = [](const Result<std::string>& tile) { return !tile && !is_transient(tile.error().code); };
  auto read = read_tile(folder_, full, bytes);
  if (failed(read) && hashes < tile_width) read = read_tile(folder_, tile_path(level, index, hashes), bytes);
  if (failed(read) && hashes < tile_width) read = read_tile(folder_, full, bytes);
  if (failed(read)) return Error(Errc::corrupt, "cannot read the tree: " + read.error().message);
  if (!read) return std::move(read).error().within("cannot read the tree");
  return std::string_view(tiles_.emplace(full, *std::move(read)).first->second);
}

Result<Hash> TreeReader::node(int level, std::int64_t index) {
  const int tile_level = level / 8;
  const int below = level % 8;  // levels above the tile's hashes
  const std::int64_t first = index << below;
  ASSIGN_OR_RETURN(const std::string_view hashes, tile(tile_level, first / tile_width));
  const auto begin = static_cast<std::size_t>(first % tile_width) * hash_bytes;
  const auto length = (std::size_t{1} << below) * hash_bytes;
  if (begin + length > hashes.size()) {
    return Error(Errc::corrupt, fmt::format("a log of {} events has no node {} of level {}", size_, index, level));
  }
  return tile_root(hashes.substr(begin, length));
}

std::int64_t recorded_size(const std::string& folder) {
  const auto full = [&](std::int64_t index) {
    return ::access((folder + "/" + tile_path(0, index)).c_str(), F_OK) == 0;
  };
  // Full tiles have no gaps, so a binary search finds the first missing one.
  std::int64_t missing = 1;
  while (full(missing - 1)) missing *= 2;
  std::int64_t low = missing / 2;
  while (low < missing) {
    const std::int64_t middle = (low + missing) / 2;
    if (full(middle))
      low = middle + 1;
    else
      missing = middle;
  }
  std::int64_t width = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> partial(
      ::opendir((folder + "/" + tile_path(0, missing) + ".p").c_str()),
      [](DIR* listing) { return listing == nullptr ? 0 : ::closedir(listing); });
  while (const dirent* entry = partial ? ::readdir(partial.get()) : nullptr) {
    width = std::max(width, parse_decimal(entry->d_name).value_or(0));
  }
  return missing * tile_width + std::min(width, tile_width - 1);
}

namespace {

struct TileFile {
  bool entries = false;
  std::int64_t level = 0;
  std::int64_t index = 0;
  std::int64_t width = tile_width;
};

// Parses "0/x001/234.p/17"; returns nullopt for other names.
std::optional<TileFile> tile_file(const std::string& path) {
  TileFile tile;
  std::string rest = path;
  if (const std::size_t partial = rest.find(".p/"); partial != std::string::npos) {
    const auto width = parse_decimal(rest.substr(partial + 3));
    if (!width || *width < 1 || *width >= tile_width) return std::nullopt;
    tile.width = *width;
    rest.resize(partial);
  }
  const std::string kind = rest.substr(0, rest.find('/'));
  tile.entries = kind == "entries";
  const auto level = tile.entries ? std::optional<std::int64_t>(0) : parse_decimal(kind);
  if (!level || *level > tile_levels_max || rest.size() > tile_path_bytes_max) return std::nullopt;
  tile.level = *level;
  for (const char c : rest.substr(std::min(rest.size(), kind.size() + 1))) {
    if (c >= '0' && c <= '9')
      tile.index = tile.index * 10 + (c - '0');
    else if (c != 'x' && c != '/')
      return std::nullopt;
  }
  return tile;
}

// Returns the end offsets of the entries of a bundle; fewer than expected if it was truncated.
std::vector<std::size_t> ends_of(std::string_view bundle) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at + 2 <= bundle.size();) {
    at += 2 + (static_cast<std::size_t>(static_cast<std::uint8_t>(bundle[at])) << 8 |
               static_cast<std::uint8_t>(bundle[at + 1]));
    if (at > bundle.size()) break;
    ends.push_back(at);
  }
  return ends;
}

}  // namespace

CutTiles cut_tiles(const std::string& folder) {
  namespace fs = std::filesystem;
  CutTiles cut;
  const fs::path top = folder + "/tile";
  std::error_code error;
  for (fs::recursive_directory_iterator file(top, error), end; !error && file != end; file.increment(error)) {
    std::error_code gone;  // a partial tile may be removed during the walk
    if (!file->is_regular_file(gone) || gone) continue;
    const std::string path = file->path().lexically_relative(top).string();
    const auto tile = tile_file(path);
    const auto bytes = static_cast<std::int64_t>(file->file_size(gone));
    if (!tile || gone) continue;
    if (tile->entries ? bytes > 0 : bytes == tile->width * static_cast<std::int64_t>(hash_bytes)) continue;
    cut.paths.push_back("tile/" + path);
    // A name that no tile of this log can have gets a position above every size.
    const auto first =
        static_cast<std::int64_t>((static_cast<std::uint64_t>(tile->index) << (8 * (tile->level + 1))) & INT64_MAX);
    if (cut.from < 0 || first < cut.from) cut.from = first;
  }
  std::sort(cut.paths.begin(), cut.paths.end());
  return cut;
}

Result<TreeWriter> TreeWriter::open(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return file_error("making", folder, errno);
  ASSIGN_OR_RETURN(Fd opened, open_folder(folder));
  return TreeWriter(std::move(opened));
}

Status TreeWriter::start_at(std::int64_t size) {
  size_ = size / tile_width * tile_width;
  levels_.clear();
  entries_.clear();
  for (int level = 1; tile_hashes(level, size_) > 0; ++level) {
    std::string hashes;
    const std::int64_t count = tile_hashes(level, size_);
    for (std::int64_t below = count / tile_width * tile_width; below < count; ++below) {
      const auto tile = read_tile(folder_, tile_path(level - 1, below), tile_bytes);
      if (!tile) return Error(Errc::corrupt, "cannot read the tree: " + tile.error().message);
      hashes.append(view(tile_root(*tile)));
    }
    levels_.resize(static_cast<std::size_t>(level) + 1);
    levels_.back() = std::move(hashes);
  }
  return success();
}

Result<bool> TreeWriter::take() {
  const std::int64_t index = size_ / tile_width;
  const auto tile = read_tile(folder_, tile_path(0, index), tile_bytes);
  if (!tile) return false;
  const auto file = open_regular_beneath(folder_, entries_path(index));
  if (!file) return false;
  ASSIGN_OR_RETURN(const std::string bundle, read_at(file->fd, 0, static_cast<std::size_t>(file->size)));
  const std::vector<std::size_t> ends = ends_of(bundle);
  if (ends.size() != static_cast<std::size_t>(tile_width) || ends.back() != bundle.size()) return false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); begin = ends[i++]) {
    const std::string_view entry = std::string_view(bundle).substr(begin + 2, ends[i] - begin - 2);
    if (sha256({std::string_view("\0", 1), entry}) != hash_at(*tile, i)) return false;
  }
  size_ += tile_width;
  RETURN_IF_ERROR(remove_partial(entries_path(index)));
  RETURN_IF_ERROR(remove_partial(tile_path(0, index)));
  RETURN_IF_ERROR(push(1, view(tile_root(*tile))));
  return true;
}

Status TreeWriter::add(std::string_view entry, const Hash& leaf) {
  if (entry.size() > 0xFFFF)
    return Error(Errc::system_error, fmt::format("an entry of {} bytes, limit 65,535", entry.size()));
  entries_ += static_cast<char>(entry.size() >> 8);
  entries_ += static_cast<char>(entry.size() & 0xFF);
  entries_ += entry;
  ++size_;
  if (size_ % tile_width == 0) {
    const std::string path = entries_path(size_ / tile_width - 1);
    RETURN_IF_ERROR(write(path, entries_));
    RETURN_IF_ERROR(remove_partial(path));
    entries_.clear();
  }
  return push(0, view(leaf));
}

Status TreeWriter::push(std::size_t level, std::string_view hash) {
  if (levels_.size() <= level) levels_.resize(level + 1);
  levels_[level].append(hash);
  if (levels_[level].size() < tile_bytes) return success();
  const std::string tile = std::exchange(levels_[level], {});
  const int shown = static_cast<int>(level);
  const std::string path = tile_path(shown, tile_hashes(shown, size_) / tile_width - 1);
  RETURN_IF_ERROR(write(path, tile));
  RETURN_IF_ERROR(remove_partial(path));
  return push(level + 1, view(tile_root(tile)));
}

Status TreeWriter::write_partial() {
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    const auto width = static_cast<std::int64_t>(levels_[level].size() / hash_bytes);
    if (width == 0) continue;
    const int shown = static_cast<int>(level);
    RETURN_IF_ERROR(write(tile_path(shown, tile_hashes(shown, size_) / tile_width, width), levels_[level]));
  }
  if (entries_.empty()) return success();
  return write(entries_path(size_ / tile_width, size_ % tile_width), entries_);
}

Result<std::int64_t> TreeWriter::rewrite_partial() {
  std::int64_t mended = 0;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    std::vector<std::size_t> ends;
    for (std::size_t end = hash_bytes; end <= levels_[level].size(); end += hash_bytes) ends.push_back(end);
    const int shown = static_cast<int>(level);
    ASSIGN_OR_RETURN(
        const std::int64_t of_level,
        rewrite_partial_of(tile_path(shown, tile_hashes(shown, size_) / tile_width), levels_[level], ends));
    mended += of_level;
  }
  ASSIGN_OR_RETURN(const std::int64_t of_entries,
                   rewrite_partial_of(entries_path(size_ / tile_width), entries_, ends_of(entries_)));
  return mended + of_entries;
}

// `ends` are the offsets in `bytes` at which the parts of the tile end; a partial file holds the first parts.
Result<std::int64_t> TreeWriter::rewrite_partial_of(const std::string& full_path, std::string_view bytes,
                                                    const std::vector<std::size_t>& ends) {
  const std::string partial = full_path + ".p";
  const int opened = ::openat(folder_.get(), partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (opened < 0)
    return errno == ENOENT ? Result<std::int64_t>(0) : Result<std::int64_t>(file_error("opening", partial, errno));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(opened), ::closedir);
  if (!listing) {
    ::close(opened);
    return file_error("listing", partial, errno);
  }
  std::vector<std::size_t> widths;
  while (const dirent* entry = ::readdir(listing.get())) {
    const auto width = parse_decimal(entry->d_name);
    if (width && *width >= 1 && *width <= static_cast<std::int64_t>(ends.size()))
      widths.push_back(static_cast<std::size_t>(*width));
  }
  std::int64_t mended = 0;
  for (const std::size_t width : widths) {
    const std::string path = partial + "/" + std::to_string(width);
    const std::string_view wanted = bytes.substr(0, ends[width - 1]);
    const auto file = open_regular_beneath(folder_, path);
    const auto held = file ? read_at(file->fd, 0, wanted.size() + 1)
                           : Result<std::string>(file.error());  // one byte more, to detect a longer file
    if (held && *held == wanted) continue;
    RETURN_IF_ERROR(write(path, wanted));
    ++mended;
  }
  return mended;
}

Status TreeWriter::sync() {
  if (::syncfs(folder_.get()) != 0) return file_error("syncing", "the tiles", errno);
  return success();
}

Status TreeWriter::write_checkpoint(std::string_view note) { return write("checkpoint", note); }

Hash TreeWriter::root() const {
  // From right to left: the hashes left over from a lower tile join those to their left.
  events::MerkleEdge edge;
  std::vector<Hash> subtrees;  // largest first
  for (std::size_t level = levels_.size(); level-- > 0;) {
    std::string_view hashes = levels_[level];
    while (!hashes.empty()) {
      const std::size_t width = std::bit_floor(hashes.size() / hash_bytes);
      subtrees.push_back(tile_root(hashes.substr(0, width * hash_bytes)));
      hashes.remove_prefix(width * hash_bytes);
    }
  }
  std::string bytes;
  for (const Hash& subtree : subtrees) bytes.append(view(subtree));
  const auto decoded = events::MerkleEdge::decode(size_, bytes);
  return decoded ? decoded->root() : Hash{};  // cannot fail: a size's subtrees are the bits of the size
}

Status TreeWriter::make_folders(const std::string& path) {
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdirat(folder_.get(), part.c_str(), 0755) != 0 && errno != EEXIST) return file_error("making", part, errno);
  }
  return success();
}

// A file appears complete, because readers may open it at any time.
Status TreeWriter::write(const std::string& path, std::string_view bytes) {
  const std::string name(temporary);
  const Fd file(::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.open()) return file_error("making", path, errno);
  RETURN_IF_ERROR(write_all(file.get(), bytes, path));
  const auto renamed = [&] { return ::renameat(folder_.get(), name.c_str(), folder_.get(), path.c_str()) == 0; };
  if (renamed()) return success();
  if (errno == ENOENT) {  // the first tile of a folder
    RETURN_IF_ERROR(make_folders(path));
    if (renamed()) return success();
  }
  return file_error("naming", path, errno);
}

Status TreeWriter::remove_partial(const std::string& full_path) {
  const std::string partial = full_path + ".p";
  const int opened = ::openat(folder_.get(), partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (opened < 0) return errno == ENOENT ? success() : Status(file_error("opening", partial, errno));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(opened), ::closedir);
  if (!listing) {
    ::close(opened);
    return file_error("listing", partial, errno);
  }
  while (const dirent* entry = ::readdir(listing.get())) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    ::unlinkat(opened, entry->d_name, 0);
  }
  ::unlinkat(folder_.get(), partial.c_str(), AT_REMOVEDIR);
  return success();
}

}  // namespace muniment::audit
