// Tests of the vector shard's parts: codes and their products, chunk → slot, label → slots.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>
#include <set>

#include "retrieval/vector/chunk_map.hpp"
#include "retrieval/vector/codes.hpp"
#include "retrieval/vector/label_index.hpp"

namespace muniment::retrieval {
namespace {

TEST(Codes, EveryKernelGivesTheSameNumbers) {
  std::mt19937 random(7);
  const auto kernels = vec::dot_kernels();
  ASSERT_EQ(kernels.back().name, "portable");
  for (std::size_t padded : {32u, 96u, 384u, 4096u}) {
    std::vector<std::int16_t> probe(padded);
    std::vector<std::int8_t> left(padded), code(padded);
    for (int round = 0; round < 20; ++round) {
      for (auto& value : probe) value = static_cast<std::int16_t>(static_cast<int>(random() % 8'001) - 4'000);
      for (auto& value : left) value = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
      for (auto& value : code) value = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
      for (const auto& kernel : kernels) {
        EXPECT_EQ(kernel.probe(probe.data(), code.data(), padded),
                  kernels.back().probe(probe.data(), code.data(), padded))
            << kernel.name;
        EXPECT_EQ(kernel.codes(left.data(), code.data(), padded),
                  kernels.back().codes(left.data(), code.data(), padded))
            << kernel.name;
      }
    }
  }
}

TEST(Codes, TheLargestSumFitsItsThirtyTwoBits) {
  for (std::size_t dimension : {1u, 33u, 384u, 768u, 1536u, 4096u}) {
    const std::vector<float> ones(dimension, 1);
    const vec::Probe probe = vec::make_probe(ones);
    const vec::Code code = vec::make_code(ones);
    const std::int64_t sum = static_cast<std::int64_t>(dimension) * probe.values[0] * code.bytes[0];
    for (const auto& kernel : vec::dot_kernels())
      EXPECT_EQ(kernel.probe(probe.values.data(), code.bytes.data(), code.bytes.size()), sum) << kernel.name;
    EXPECT_NEAR(static_cast<double>(sum) * double{probe.scale} * double{code.scale}, 1, 1e-5);
  }
}

RC_GTEST_PROP(ChunkMap, KnowsWhatAMapKnows, ()) {
  vec::ChunkMap chunks;
  std::map<ChunkId, vec::Slot> model;
  for (const auto& [id, slot] : *rc::gen::container<std::vector<std::pair<ChunkId, vec::Slot>>>(
           rc::gen::pair(rc::gen::inRange<ChunkId>(1, 60), rc::gen::arbitrary<vec::Slot>()))) {
    if (model.erase(id) != 0)
      chunks.erase(id);
    else
      chunks.insert(id, model[id] = slot);
    for (ChunkId any = 1; any < 60; ++any)
      RC_ASSERT(chunks.find(any) == (model.count(any) != 0 ? model[any] : vec::no_slot));
  }
}

TEST(LabelIndex, ListsAndBitmapsHoldTheSameSlots) {
  constexpr vec::Slot slots = 4'096;
  vec::LabelIndex labels;
  std::set<vec::Slot> model;
  const auto held = [&] {
    vec::Bitmap out(slots);
    labels.collect(1, out);
    std::set<vec::Slot> set;
    out.each([&](vec::Slot slot) { set.insert(slot); });
    return set;
  };
  std::mt19937 random(3);
  for (int turn = 0; turn < 6'000; ++turn) {  // grows past one in 32, then shrinks to zero
    const vec::Slot slot = random() % slots;
    const bool grows = turn < 3'000;
    if (grows && model.insert(slot).second) labels.add(1, slot, slots);
    if (!grows && !model.empty()) {
      const vec::Slot gone = *(model.lower_bound(slot) == model.end() ? model.begin() : model.lower_bound(slot));
      model.erase(gone);
      labels.remove(1, gone, slots);
    }
    if (turn % 50 == 0) {
      ASSERT_EQ(held(), model) << turn;
    }
  }
  EXPECT_EQ(held(), model);
}

}  // namespace
}  // namespace muniment::retrieval
