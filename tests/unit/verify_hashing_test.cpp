// Tests of the verifier's entry encoding and tree against RFC 6962's test vectors and a direct recursion.
#include <gtest/gtest.h>

#include <vector>

#include "verify/log/hashing.hpp"

namespace muniment::verify {
namespace {

Hash leaf_of(std::string_view data) { return sha256({std::string_view("\0", 1), data}); }

// The definition: a tree of n > 1 leaves is split at the largest power of two smaller than n.
Hash root_by_definition(const std::vector<Hash>& leaves, std::size_t begin, std::size_t end) {
  if (begin == end) return sha256("");
  if (end - begin == 1) return leaves[begin];
  std::size_t split = 1;
  while (split * 2 < end - begin) split *= 2;
  return node_hash(root_by_definition(leaves, begin, begin + split), root_by_definition(leaves, begin + split, end));
}

TEST(VerifyTree, TheEmptyTreeHasTheHashOfNothing) {
  EXPECT_EQ(to_hex(Tree().root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Tree().edge(), "");
}

// The eight leaves and the roots of Certificate Transparency's reference tree.
TEST(VerifyTree, TheRootsAreThoseOfTheReferenceTree) {
  const std::vector<std::string> inputs{"",
                                        std::string(1, '\0'),
                                        "\x10",
                                        "\x20\x21",
                                        "\x30\x31",
                                        "\x40\x41\x42\x43",
                                        "\x50\x51\x52\x53\x54\x55\x56\x57",
                                        "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f"};
  const std::vector<std::string> roots{"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                                       "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
                                       "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
                                       "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
                                       "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
                                       "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
                                       "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
                                       "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};
  Tree tree;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tree.add(leaf_of(inputs[i]));
    EXPECT_EQ(to_hex(tree.root()), roots[i]) << i;
  }
}

TEST(VerifyTree, EverySizeHasTheRootOfTheDefinitionAndOneSubtreeASetBit) {
  std::vector<Hash> leaves;
  Tree tree;
  for (std::size_t size = 1; size <= 300; ++size) {
    leaves.push_back(leaf_of(std::to_string(size)));
    tree.add(leaves.back());
    ASSERT_EQ(tree.root(), root_by_definition(leaves, 0, size)) << size;
    ASSERT_EQ(tree.edge().size(), 32 * static_cast<std::size_t>(__builtin_popcountll(size))) << size;
  }
}

TEST(VerifyEntry, EveryFieldStandsWhereTheFormatSays) {
  EventView event;
  event.seq = 0x0102030405060708;
  event.run_no = 2;
  event.run_seq = 3;
  event.recorded_at = {-2};
  event.origin = 3;
  event.type = "x.y.z";
  event.schema_version = 0x0102;
  event.step_id = "s";
  event.actor = "uid:1000";
  const std::string event_id(16, '\x11');
  event.event_id = event_id;
  Uuid log_id;
  log_id.bytes.fill(0xaa);
  std::string entry;
  encode_before_previous(log_id, "run", event, entry);
  EXPECT_EQ(to_hex(entry),
            "01"
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            "0102030405060708"
            "0000000000000002"
            "000372756e"
            "0000000000000003"
            "fffffffffffffffe"
            "00"
            "03"
            "0005782e792e7a"
            "0102"
            "01000173"
            "00087569643a31303030"
            "11111111111111111111111111111111");
  event.occurred_at = Time{1};
  event.step_id = std::nullopt;
  entry.clear();
  encode_before_previous(log_id, "run", event, entry);
  EXPECT_NE(to_hex(entry).find("fffffffffffffffe"
                               "010000000000000001"
                               "03"),
            std::string::npos);
  EXPECT_NE(to_hex(entry).find("0102"
                               "00"
                               "00087569643a31303030"),
            std::string::npos);
}

}  // namespace
}  // namespace muniment::verify
