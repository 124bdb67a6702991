// Tests of reading an artifact's file: it returns the recorded bytes or none.
#include <fstream>
#include <utility>
#include <vector>

#include "base/crypto/chained_sha256.hpp"
#include "unit/store_artifact_files_fixture.hpp"

namespace muniment::store {
namespace {

// Damages a small file and a file with pieces in every way that keeps its length.
TEST_F(ArtifactFilesTest, OtherBytesOfTheSameLengthAreNeverHandedOut) {
  for (const std::size_t size :
       {std::size_t{5}, std::size_t{1} << 20, (std::size_t{1} << 20) + 1, (std::size_t{3} << 20) + 77}) {
    const StoredFile file = stored(std::string(size, 'x'));
    fs::permissions(at(file.path), fs::perms::owner_write, fs::perm_options::add);
    std::fstream(at(file.path), std::ios::in | std::ios::out).seekp(static_cast<std::streamoff>(size / 2)) << 'y';
    Difference difference;
    const auto at_once = static_cast<std::int64_t>(size) / 2;
    EXPECT_EQ(files_->read(file, at_once, 1, &difference).error().code, Errc::corrupt) << size;
    EXPECT_EQ(difference.expected, to_hex(file.hash));
    EXPECT_EQ(files_->read(file, 0, file.size_bytes).error().code, Errc::corrupt) << size;
    EXPECT_EQ(files_->check(file).error().code, Errc::corrupt) << size;
  }
}

TEST_F(ArtifactFilesTest, ASpanWithItsOwnHashIsHandedOutOnlyWithIt) {
  const StoredFile file = stored("hello world");
  EXPECT_EQ(*files_->read_hashed(file.path, 6, 5, sha256("world")), "world");
  EXPECT_EQ(files_->read_hashed(file.path, 6, 5, sha256("hello")).error().code, Errc::corrupt);
  EXPECT_EQ(files_->read_hashed(file.path, 6, 6, sha256("world")).error().code, Errc::corrupt);
  EXPECT_EQ(files_->read_hashed(file.path, 6, INT64_MAX, sha256("world")).error().code, Errc::corrupt);
}

TEST_F(ArtifactFilesTest, AnotherNameIsRefusedBeforeAnythingIsRead) {
  const StoredFile file = stored("hello");
  EXPECT_TRUE(files_->read(file, 0, 5)) << "its staging name is its own";
  files_->committed(file.artifact_id);
  reopen();
  EXPECT_TRUE(files_->read(file, 0, 5));
  fs::create_hard_link(at(file.path), folder_ / "another");
  EXPECT_EQ(files_->read(file, 0, 5).error().code, Errc::corrupt);
  EXPECT_EQ(files_->check(file).error().code, Errc::corrupt);
  fs::remove(folder_ / "another");
  EXPECT_TRUE(files_->read(file, 0, 5));
}

TEST_F(ArtifactFilesTest, AFileOfAnotherLengthIsRefusedWithoutReadingIt) {
  const StoredFile file = stored("hello");
  fs::permissions(at(file.path), fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(at(file.path), std::uintmax_t{1} << 40);  // hashing this file would take an hour
  Difference difference;
  EXPECT_EQ(files_->check(file, &difference).error().code, Errc::corrupt);
  EXPECT_EQ(difference.actual, "1099511627776 bytes");
  EXPECT_EQ(files_->read(file, 0, 5).error().code, Errc::corrupt);
}

class PiecesTest : public ArtifactFilesTest {
 protected:
  // Returns bytes whose values depend on their positions.
  static std::string numbered(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 65'536);
    return bytes;
  }
  StoredFile large(std::size_t size) {
    bytes_ = numbered(size);
    return stored(bytes_);
  }
  fs::path pieces(const StoredFile& file) const { return at(file.path + ".pieces"); }
  void expect_slices(const StoredFile& file) {
    const std::int64_t size = file.size_bytes;
    for (const auto& [offset, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1},
                                                                                           {0, 65'536},
                                                                                           {65'535, 2},
                                                                                           {65'536, 65'536},
                                                                                           {100, 300'000},
                                                                                           {size - 1, 1},
                                                                                           {size - 70'000, 70'000},
                                                                                           {size, 0},
                                                                                           {0, 0},
                                                                                           {131'072, 0}}) {
      const auto slice = files_->read(file, offset, length);
      ASSERT_TRUE(slice) << offset << " " << slice.error().message;
      EXPECT_EQ(*slice, bytes_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length))) << offset;
    }
  }
  std::string bytes_;
};

TEST_F(PiecesTest, SlicesOfEveryKindAreThoseThatWereStored) {
  // Sizes: without pieces, the smallest with pieces, whole pieces, one full node, two nodes.
  for (const std::size_t size : {std::size_t{1} << 20, (std::size_t{1} << 20) + 1, std::size_t{2} << 20,
                                 std::size_t{257} << 16, (std::size_t{257} << 16) + 1, (std::size_t{33} << 20) + 5}) {
    const StoredFile file = large(size);
    EXPECT_EQ(fs::exists(pieces(file)), size > (1 << 20));
    expect_slices(file);
  }
}

// Computes the tree of docs/format.md over the state of SHA-256 after each piece.
TEST_F(PiecesTest, TheFileOfPiecesIsWhatTheFormatSays) {
  const StoredFile file = large((1 << 20) + 1);
  std::string values;
  ChainedSha256 digest;
  for (std::size_t at = 0; at + 65'536 < bytes_.size(); at += 65'536) {
    digest.update(std::string_view(bytes_).substr(at, 65'536));
    values += view(digest.chaining_value());
  }
  std::ifstream in(pieces(file), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), values);
  EXPECT_EQ(*file.pieces_root, sha256({std::string_view("\0", 1), values}));
  EXPECT_EQ(fs::hard_link_count(pieces(file)), 1u);
}

TEST_F(PiecesTest, PiecesThatAreGoneOrWrongAreMadeAnewFromTheWhole) {
  const StoredFile file = large(std::size_t{3} << 20);
  const auto held = fs::file_size(pieces(file));
  fs::remove(pieces(file));
  expect_slices(file);
  EXPECT_EQ(fs::file_size(pieces(file)), held);
  std::ofstream(pieces(file), std::ios::trunc) << "x";
  expect_slices(file);
  EXPECT_EQ(fs::file_size(pieces(file)), held);
  fs::remove(pieces(file));
  fs::create_symlink("/etc/passwd", pieces(file));
  expect_slices(file);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(pieces(file))));
}

// An event that predates pieces has no root: the file's pieces are then trusted only after the whole file was read.
TEST_F(PiecesTest, WithoutARootForgedPiecesDoNotMakeBadBytesGood) {
  StoredFile file = large(std::size_t{3} << 20);
  file.pieces_root.reset();
  fs::permissions(at(file.path), fs::perms::owner_write, fs::perm_options::add);
  const StoredFile other = stored(std::string(std::size_t{3} << 20, 'z'));
  fs::copy_file(at(other.path), at(file.path), fs::copy_options::overwrite_existing);
  fs::copy_file(pieces(other), pieces(file), fs::copy_options::overwrite_existing);
  EXPECT_EQ(files_->read(file, 70'000, 10).error().code, Errc::corrupt);
  std::ofstream(at(file.path), std::ios::binary) << bytes_;
  expect_slices(file);
  reopen();
  expect_slices(file);
}

TEST_F(PiecesTest, WithARootForgedPiecesDoNeither) {
  const StoredFile file = large(std::size_t{3} << 20);
  const StoredFile other = stored(std::string(std::size_t{3} << 20, 'z'));
  fs::copy_file(pieces(other), pieces(file), fs::copy_options::overwrite_existing);
  expect_slices(file);
  fs::permissions(at(file.path), fs::perms::owner_write, fs::perm_options::add);
  fs::copy_file(at(other.path), at(file.path), fs::copy_options::overwrite_existing);
  fs::copy_file(pieces(other), pieces(file), fs::copy_options::overwrite_existing);
  EXPECT_EQ(files_->read(file, 70'000, 10).error().code, Errc::corrupt);
}

TEST_F(PiecesTest, PiecesGoWhereTheirFileGoes) {
  const StoredFile erased = large((1 << 20) + 1);
  files_->committed(erased.artifact_id);
  ASSERT_TRUE(files_->erase(erased.artifact_id, erased.path));
  files_->abandon(large((1 << 20) + 1));
  reopen();
  EXPECT_TRUE(names().empty());
  large((1 << 20) + 1);  // it is unknown whether its event was committed
  ASSERT_TRUE(files_->sweep_staging([](const Uuid&) { return Result<bool>(false); }));
  EXPECT_TRUE(names().empty());
}

TEST_F(PiecesTest, AnUploadHasThemToo) {
  bytes_ = numbered((std::size_t{2} << 20) + 9);
  const Uuid id = make_uuid_v7(Clock().now());
  ASSERT_TRUE(files_->upload_append(id, 0, bytes_));
  const auto file = files_->upload_publish(id, "r1", "main", make_uuid_v7(Clock().now()), text_type);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->hash, sha256(bytes_));
  EXPECT_TRUE(fs::exists(pieces(*file)));
  expect_slices(*file);
}

}  // namespace
}  // namespace muniment::store
