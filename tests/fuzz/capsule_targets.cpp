// Targets of capsules: the file, and the parts that it holds.
#include <algorithm>
#include <cstring>

#include "base/crypto/crc32c.hpp"
#include "capsule/index.hpp"
#include "fuzz/target.hpp"
#include "retrieval/vector/packed_shard.hpp"
#include "verify/portable/capsule.hpp"

namespace muniment::fuzz {
namespace {

// Whatever is opened has frames that can be read or are refused as damaged.
void try_capsule_file(const std::string& bytes) {
  with_file(bytes, [&](const std::string& path) {
    const auto file = capsule::CapsuleFile::open(path, capsule::Access::read);
    if (!file) {
      const Errc code = file.error().code;
      return require(code == Errc::corrupt || code == Errc::invalid_argument, "a capsule is refused as something else");
    }
    require((*file)->end() <= bytes.size(), "a state exceeds the file");
    const bool whole = (*file)->verify().ok();
    const auto index = capsule::Index::open(**file);
    if (index) {
      for (std::int64_t number = 0; number < (*index)->frames(); ++number) (void)(*index)->revision(number);
    }
    if (whole) (void)(*file)->segment(capsule::SegmentKind::frames);
    const verify::CapsuleReport report = verify::verify_capsule({path, {}});
    require(report.verdict != verify::Verdict::verified, "a capsule is verified without a key");
    require(whole || report.verdict != verify::Verdict::is_unsigned, "the verifier finds a damaged capsule consistent");
    require(!text_of(report).empty() && !json_of(report).empty(), "a report without words");
  });
}

// With correct checksums, since every mutation would fail at them.
void try_capsule(const std::string& bytes) {
  try_capsule_file(bytes);
  std::string mended = bytes;
  const auto mend = [&](std::size_t at, std::size_t size) {
    if (at + size + 4 > mended.size()) return;
    const std::uint32_t crc = crc32c(std::string_view(mended).substr(at, size));
    std::memcpy(mended.data() + at + size, &crc, sizeof crc);
  };
  mend(0, 60);
  for (std::size_t at = capsule::file_header_bytes; at + capsule::frame_header_bytes <= mended.size(); at += 8) {
    if (mended.compare(at, 4, "MUFR") != 0) continue;
    std::uint64_t about = 0, body = 0;
    std::memcpy(&about, mended.data() + at + 24, sizeof about);
    std::memcpy(&body, mended.data() + at + 32, sizeof body);
    const std::size_t left = mended.size() - at - capsule::frame_header_bytes;
    if (about <= left && body <= left && capsule::padded(about) + body <= left) {
      const std::string_view payload = std::string_view(mended).substr(at + capsule::frame_header_bytes);
      const Hash hash = sha256({payload.substr(0, about), payload.substr(capsule::padded(about), body)});
      std::memcpy(mended.data() + at + 40, hash.data(), hash.size());
    }
    mend(at, 104);
  }
  try_capsule_file(mended);
}

void try_capsule_parts(const std::string& bytes) {
  if (const auto commit = capsule::decode_commit(bytes))
    require(capsule::encode(*commit, 0).size() == bytes.size(), "a commit has two sizes");
  (void)capsule::catalogue_of(bytes);
  capsule::Frame frame;
  frame.about = bytes;
  frame.body = bytes;
  if (const auto revision = capsule::revision_of(frame)) {
    for (const store::ChunkRow& chunk : revision->chunks) (void)capsule::text_of(*revision, chunk);
  }
}

void try_packed_vectors(const std::string& bytes) {
  const auto shard = retrieval::PackedShard::open(bytes);
  if (!shard) return require(shard.error().code == Errc::corrupt, "packed vectors are refused as something else");
  for (const retrieval::SpaceStatus& space : (*shard)->spaces()) {
    const std::vector<float> vector(space.dimension, 1.0F);
    retrieval::Filter filter;
    filter.all_of = {{"corpus:notes"}};
    require((*shard)->search(space.space, vector, filter, {}).ok(), "packed vectors cannot be searched");
  }
}

std::string packed_vectors() {
  const auto shard = *retrieval::PackedShard::open({});
  const std::vector<float> vector{1, 0, -1};
  retrieval::VectorBatch batch;
  batch.space = "hash/1@notes";
  batch.dimension = vector.size();
  batch.next_seq = 2;
  batch.add.push_back({1, vector, {{"corpus:notes", "tag:a"}, 0, 1}});
  batch.add.push_back({2, vector, {{"corpus:notes"}, 0, 1}});
  require(shard->write(batch).ok(), "a seed cannot be made");
  return shard->encode();
}

}  // namespace

std::vector<Target> capsule_targets() {
  capsule::Commit commit;
  commit.segments.emplace_back();
  return {
      {"capsule", try_capsule, {golden("capsule/frames.mv2")}},
      {"capsule_parts",
       try_capsule_parts,
       {capsule::encode(commit, 128), R"({"notes":{"documents":1,"chunks":1,"tags":["a"]}})",
        R"({"uri":"aether://n/a","corpus":"n","document":"a","size_bytes":4,"chunks":[[0,4,"00"]]})"}},
      {"packed_vectors", try_packed_vectors, {packed_vectors()}},
  };
}

}  // namespace muniment::fuzz
