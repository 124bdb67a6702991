// Modifies the search indexes of a folder independently of the log, as a process with write access could, for tests of
// the verifier.
//
//   edit_index FOLDER lexical|vector remove CHUNK
//   edit_index FOLDER lexical|vector add CHUNK SEQ TEXT      a current passage without labels
//   edit_index FOLDER lexical|vector at NEXT_SEQ             sets the position up to which the log was indexed
//
// In the vector shard the change applies to each space with an @.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "retrieval/lexical/lexical_index.hpp"
#include "retrieval/vector/vector_shard.hpp"

namespace {

using muniment::Error;
using muniment::Status;
using muniment::success;
using namespace muniment::retrieval;

struct Edit {
  std::string what;
  ChunkId chunk = 0;
  std::int64_t seq = 0;
  std::string text;
};

Status edit_lexical(const std::string& folder, const Edit& edit) {
  auto index = LexicalIndex::open(folder + "/lexical");
  if (!index) return index.error();
  std::int64_t next_seq = (*index)->watermark();
  if (edit.what == "remove") {
    if (const Status done = (*index)->remove(edit.chunk); !done) return done;
  } else if (edit.what == "add") {
    LexicalChunk chunk;
    chunk.id = edit.chunk;
    chunk.text = edit.text;
    chunk.facts.valid_from = edit.seq;
    if (const Status done = (*index)->add(chunk); !done) return done;
  } else {
    next_seq = edit.seq;
  }
  return (*index)->commit(next_seq);
}

Status edit_vector(const std::string& folder, const Edit& edit) {
  auto shard = VectorShard::open(folder + "/vector");
  if (!shard) return shard.error();
  for (const SpaceStatus& space : (*shard)->spaces()) {
    const bool mark = space.space.starts_with("mark:");
    if (mark != (edit.what == "at") || (mark && space.space != "mark:vectors")) continue;
    std::vector<float> vector(space.dimension, 0.0F);
    vector[0] = 1;
    VectorBatch batch;
    batch.space = space.space;
    batch.dimension = space.dimension;
    batch.next_seq = mark ? edit.seq : space.next_seq;
    if (edit.what == "remove") batch.remove = {edit.chunk};
    Facts facts;
    facts.valid_from = edit.seq;
    if (edit.what == "add") batch.add.push_back({edit.chunk, vector, facts});
    if (const Status done = (*shard)->write(batch); !done) return done;
  }
  return success();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() < 5) return 2;
  Edit edit{words[3], 0, 0, ""};
  const std::int64_t number = std::atoll(words[4].c_str());
  if (edit.what == "at")
    edit.seq = number;
  else
    edit.chunk = static_cast<ChunkId>(number);
  if (words.size() > 6) edit.seq = std::atoll(words[5].c_str()), edit.text = words[6];
  const Status done = words[2] == "lexical" ? edit_lexical(words[1], edit) : edit_vector(words[1], edit);
  if (!done) std::fprintf(stderr, "edit_index: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
