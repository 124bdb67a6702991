#include "verify/signed/tiles.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "verify/log/hashing.hpp"
#include "verify/signed/tile_name.hpp"

namespace muniment::verify {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t tiles_queued_max = 256;
constexpr std::size_t entries_bytes_max = static_cast<std::size_t>(tile_width) * (2 + 65'535);
constexpr int folders_deep_max = 12;
constexpr std::string_view being_written = ".new";  // a file that is not renamed to its final name yet
// The time of a file may be a clock tick behind the system clock.
constexpr std::int64_t tick_micros = 1'000'000;

using Hashes = std::vector<Hash>;

std::string bytes_of(const Hashes& hashes, std::size_t width) {
  std::string bytes;
  for (std::size_t i = 0; i < width; ++i) bytes += view(hashes[i]);
  return bytes;
}

Hash root_of(const Hashes& hashes) {
  Tree tree;
  for (const Hash& hash : hashes) tree.add(hash);
  return tree.root();
}

// Returns whether a bundle holds the entries that hash to these leaves and, unless `longer`, nothing else.
bool holds_entries(std::string_view bundle, const Hashes& leaves, std::size_t width, bool longer) {
  for (std::size_t i = 0; i < width; ++i) {
    if (bundle.size() < 2) return false;
    const std::size_t size =
        static_cast<std::size_t>(static_cast<std::uint8_t>(bundle[0])) << 8 | static_cast<std::uint8_t>(bundle[1]);
    if (bundle.size() < 2 + size) return false;
    if (sha256({std::string_view("\0", 1), bundle.substr(2, size)}) != leaves[i]) return false;
    bundle.remove_prefix(2 + size);
  }
  return longer || bundle.empty();
}

}  // namespace

struct TileFiles::Impl {
  // Consecutive hashes of one level, starting at a multiple of 256.
  struct Tile {
    int level = 0;
    std::int64_t index = 0;
    std::shared_ptr<const Hashes> hashes;  // 256 of them, or fewer at the end of the log
  };

  std::string folder;
  Fd root;
  std::int64_t published = 0;
  Time started;
  Findings& findings;

  std::array<Hashes, tile_levels_max + 1> open_tiles;          // the hashes of the last tile of each level
  std::array<std::int64_t, tile_levels_max + 1> next_index{};  // index of that tile
  std::int64_t size = 0;
  std::int64_t verified = 0;  // leaves whose tiles an earlier verify has read

  BoundedQueue<Tile> queue{tiles_queued_max};
  std::vector<std::jthread> workers;
  std::mutex mutex;
  std::vector<Error> unread;
  std::atomic<std::int64_t> files{0}, in_flight{0};
  std::atomic<bool> unfinished{false};

  Impl(std::string path, Fd fd, std::int64_t published_size, Time since, Findings& all)
      : folder(std::move(path)), root(std::move(fd)), published(published_size), started(since), findings(all) {}
  ~Impl() {
    queue.close();
    workers.clear();  // joins them before the members that they use are destroyed
  }

  void start(unsigned jobs) {
    for (unsigned job = 0; job < jobs; ++job) {
      workers.emplace_back([this] {
        while (const auto tile = queue.pop()) check(*tile);
      });
    }
  }

  void found(const std::string& path, std::string expected, std::string actual) {
    findings.add({Check::tile, -1, "", folder + "/" + path + ": " + std::move(expected), std::move(actual)});
  }

  void push(int level, Hash hash) {
    Hashes& hashes = open_tiles[static_cast<std::size_t>(level)];
    hashes.push_back(hash);
    if (hashes.size() < static_cast<std::size_t>(tile_width)) return;
    const Hash above = root_of(hashes);
    Tile tile{level, next_index[static_cast<std::size_t>(level)]++,
              std::make_shared<Hashes>(std::exchange(hashes, {}))};
    if (!queue.try_push(std::move(tile))) check(tile);  // the queue is full: check the tile on this thread
    if (level < tile_levels_max) push(level + 1, above);
  }

  void check(const Tile& tile) {
    check_kind(tile, false);
    if (tile.level == 0) check_kind(tile, true);
  }

  // Opens the tile or a wider one that begins with it, because not every size at which a verification ends is
  // published.
  Result<RegularFile> open_at_least(TileName name) const {
    const std::int64_t least = name.width;
    auto file = open_regular_beneath(root, name.path());
    const fs::path partials = fs::path(folder + "/" + name.path()).parent_path();
    std::error_code error;
    for (fs::directory_iterator entry(partials, error), end; !file && !error && entry != end; entry.increment(error)) {
      name.width = parse_decimal(entry->path().filename().string()).value_or(0);
      if (name.width > least && name.width < tile_width) file = open_regular_beneath(root, name.path());
    }
    if (file) return file;
    name.width = tile_width;  // tried last, because it replaces the partial files
    return open_regular_beneath(root, name.path());
  }

  enum class Must : std::uint8_t { be_there, may_lack, begin_so };

  // Checks every width of one tile or of one bundle.
  void check_kind(const Tile& tile, bool entries) {
    const auto width = static_cast<std::int64_t>(tile.hashes->size());
    const std::int64_t must_be =
        std::clamp<std::int64_t>(tile_hashes(tile.level, published) - tile.index * tile_width, 0, tile_width);
    TileName name{entries, tile.level, tile.index, tile_width};
    const bool whole =
        width == tile_width && compare(tile, name, must_be == tile_width ? Must::be_there : Must::may_lack);
    name.width = 1;
    std::error_code error;
    const fs::path partials = fs::path(folder + "/" + name.path()).parent_path();
    for (fs::directory_iterator entry(partials, error), end; !error && entry != end; entry.increment(error)) {
      const auto here = parse_decimal(entry->path().filename().string());
      const bool verified_before = here && tile.index * tile_width + *here <= tile_hashes(tile.level, verified);
      if (here && *here >= 1 && *here <= width && *here < tile_width && *here != must_be && !verified_before) {
        name.width = *here;
        compare(tile, name, Must::may_lack);
      }
    }
    if (must_be < 1 || must_be >= tile_width || must_be > width) return;
    name.width = must_be;
    if (compare(tile, name, Must::may_lack) || whole) return;
    name.width = tile_width;  // the tile may have been completed meanwhile, which removes the partial ones
    if (compare(tile, name, Must::begin_so)) return;
    name.width = must_be;
    compare(tile, name, Must::be_there);
  }

  // Returns true if the file exists.
  bool compare(const Tile& tile, const TileName& name, Must must) {
    const std::string path = name.path();
    const bool longer = must == Must::begin_so;  // longer than the part of the log that was read
    const std::size_t width = longer ? tile.hashes->size() : static_cast<std::size_t>(name.width);
    auto file = open_regular_beneath(root, path);
    if (!file && file.error().code == Errc::not_found) {
      if (must == Must::be_there) found(path, "a file that the published checkpoint requires", "missing");
      return false;
    }
    if (!file) {
      found(path, "a regular file", file.error().message);
      return false;
    }
    const std::size_t bytes_max = name.entries ? entries_bytes_max : tile_bytes;
    auto bytes = read_at(file->fd, 0, std::min(bytes_max + 1, static_cast<std::size_t>(file->size) + 1));
    if (!bytes) {
      const std::lock_guard lock(mutex);
      unread.push_back(bytes.error());
      return true;
    }
    ++files;
    const std::string hashes = name.entries ? "" : bytes_of(*tile.hashes, width);
    const bool same = name.entries ? holds_entries(*bytes, *tile.hashes, width, longer)
                      : longer     ? bytes->starts_with(hashes)
                                   : *bytes == hashes;
    if (!same)
      found(path, fmt::format("the {} {} of the events", width, name.entries ? "entries" : "hashes"), "other bytes");
    return true;
  }

  // Checks all files below a folder. A file that disappears during the check was a partial tile.
  Status check_names(const fs::path& below, int depth) {
    std::error_code error;
    fs::directory_iterator entry(below, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      std::error_code ignored;
      if (depth < folders_deep_max && entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
        RETURN_IF_ERROR(check_names(entry->path(), depth + 1));
      } else {
        check_name(entry->path());
      }
    }
    if (error && error != std::errc::no_such_file_or_directory) {
      return Error(Errc::unavailable, fmt::format("{}: {}", below.string(), error.message()));
    }
    return success();
  }

  void check_name(const fs::path& file) {
    const std::string path = file.lexically_relative(folder).string();
    if (path == "checkpoint") return;
    if (path == being_written) {
      unfinished = true;
      return;
    }
    const auto tile = tile_name(path);
    if (!tile) {
      found(path, "no such file", "a file that is not a tile");
    } else if (tile->index * tile_width + tile->width > tile_hashes(tile->level, size)) {
      check_in_flight(path);
    }
  }

  // Tiles follow the log, so a tile beyond the events that were read was written later.
  void check_in_flight(const std::string& path) {
    struct stat status {};
    if (::fstatat(root.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    const std::int64_t made = status.st_mtim.tv_sec * 1'000'000 + status.st_mtim.tv_nsec / 1'000;
    if (made >= started.micros - tick_micros && made <= Clock().now().micros + tick_micros) {
      ++in_flight;
    } else {
      found(path, fmt::format("a tile of the log's {} events", size), "a tile of events beyond the log's end");
    }
  }
};

TileFiles::TileFiles(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TileFiles::TileFiles(TileFiles&&) noexcept = default;
TileFiles& TileFiles::operator=(TileFiles&&) noexcept = default;
TileFiles::~TileFiles() = default;

Result<TileFiles> TileFiles::open(const std::string& folder, std::int64_t published, Time started, unsigned jobs,
                                  Findings& findings) {
  ASSIGN_OR_RETURN(Fd root, open_folder(folder));
  auto impl = std::make_unique<Impl>(folder, std::move(root), published, started, findings);
  impl->start(jobs);
  return TileFiles(std::move(impl));
}

Status TileFiles::resume(std::int64_t size, std::string_view edge) {
  std::string rebuilt;
  for (int level = tile_levels_max; level >= 0; --level) {
    const std::int64_t all = tile_hashes(level, size);
    const std::int64_t width = all % tile_width;
    impl_->next_index[static_cast<std::size_t>(level)] = all / tile_width;
    if (width == 0) continue;
    ASSIGN_OR_RETURN(const RegularFile file, impl_->open_at_least({false, level, all / tile_width, width}));
    ASSIGN_OR_RETURN(const std::string bytes, read_at(file.fd, 0, static_cast<std::size_t>(width) * sizeof(Hash)));
    Tree tree;
    for (std::size_t at = 0; at + sizeof(Hash) <= bytes.size(); at += sizeof(Hash)) {
      Hash hash{};
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), sizeof(Hash), hash.begin());
      impl_->open_tiles[static_cast<std::size_t>(level)].push_back(hash);
      tree.add(hash);
    }
    rebuilt += tree.edge();
  }
  impl_->size = impl_->verified = size;
  if (rebuilt != edge) return Error(Errc::corrupt, "the tiles at the saved size do not match the saved tree");
  return success();
}

void TileFiles::add(const Hash& leaf) {
  ++impl_->size;
  impl_->push(0, leaf);
}

Status TileFiles::finish() {
  for (int level = 0; level <= tile_levels_max; ++level) {
    const Hashes& hashes = impl_->open_tiles[static_cast<std::size_t>(level)];
    if (!hashes.empty())
      impl_->check({level, impl_->next_index[static_cast<std::size_t>(level)], std::make_shared<Hashes>(hashes)});
  }
  impl_->queue.close();
  impl_->workers.clear();  // joins them
  RETURN_IF_ERROR(impl_->check_names(impl_->folder, 0));
  if (!impl_->unread.empty()) return impl_->unread.front();
  return success();
}

TileCounts TileFiles::counts() const { return {impl_->files, impl_->in_flight, impl_->unfinished}; }

}  // namespace muniment::verify
