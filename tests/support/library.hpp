// A small, deterministic library of chunks about three subjects, in the form of the engine's input.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "retrieval/engine/engine.hpp"

namespace muniment::test {

using namespace muniment::retrieval;

inline const std::vector<std::vector<std::string>> subjects = {
    {"harbour", "ship", "anchor", "captain", "tide", "cargo", "sailor", "deck", "lighthouse", "storm"},
    {"oven", "bread", "flour", "yeast", "baker", "crust", "dough", "butter", "recipe", "kitchen"},
    {"orbit", "rocket", "launch", "satellite", "engine", "thrust", "payload", "astronaut", "module", "telescope"},
};

inline EngineChunk chunk(ChunkId id, const std::string& corpus, const std::string& text, std::int64_t seq) {
  EngineChunk one{id, corpus, text, "title " + std::to_string(id), "", "en", {}};
  one.facts = {{"corpus:" + corpus, "tag:" + std::string(id % 2 == 0 ? "even" : "odd")}, 1'000 + id, seq, still_valid};
  return one;
}

// `count` chunks, one for each event from seq 1; chunks whose id modulo 3 is 1 are about the first subject.
inline std::vector<EngineChunk> library(std::size_t count, const std::string& corpus = "notes", ChunkId first = 1) {
  std::mt19937 random(42);
  std::vector<EngineChunk> chunks;
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<ChunkId>(first + i);
    const auto& words = subjects[(id - 1) % 3];
    std::string text;
    for (int word = 0; word < 25; ++word) text += words[random() % words.size()] + (word % 7 == 6 ? ". " : " ");
    chunks.push_back(chunk(id, corpus, text, id));
  }
  return chunks;
}

inline EngineBatch batch_of(const std::vector<EngineChunk>& chunks, std::int64_t from, std::int64_t next_seq) {
  EngineBatch batch;
  batch.from_seq = from;
  batch.next_seq = next_seq;
  for (const EngineChunk& one : chunks) {
    if (one.facts.valid_from >= from && one.facts.valid_from < next_seq) batch.add.push_back(one);
  }
  return batch;
}

inline LaneQuery asking(const std::string& text, std::size_t k = 10) {
  LaneQuery query;
  query.text = text;
  query.corpora = {"notes"};
  query.k = k;
  query.exact = true;
  return query;
}

inline std::vector<ChunkId> ids(const LaneAnswer& answer) {
  std::vector<ChunkId> out;
  for (const Candidate& one : answer.candidates) out.push_back(one.chunk);
  return out;
}

inline void expect_equal(const LaneAnswer& a, const LaneAnswer& b) {
  ASSERT_EQ(ids(a), ids(b));
  for (std::size_t i = 0; i < a.candidates.size(); ++i) {
    EXPECT_EQ(a.candidates[i].score, b.candidates[i].score) << i;
    EXPECT_EQ(a.candidates[i].lanes, b.candidates[i].lanes) << i;
  }
  EXPECT_EQ(a.identities, b.identities);
  EXPECT_EQ(a.watermark, b.watermark);
}

}  // namespace muniment::test
