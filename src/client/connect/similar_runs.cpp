#include "client/connect/similar_runs.hpp"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "base/ids.hpp"
#include "base/text.hpp"
#include "client/connect/pages.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t similar_max = 3;
constexpr std::size_t runs_compared_max = 5'000;
constexpr std::size_t similar_bytes_max = 128;

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

Result<std::vector<std::string>> newest_runs(Client& client) {
  std::vector<std::string> ids;
  RETURN_IF_ERROR(
      each_item(client, "run.list", R"({"limit":1000})", "runs", [&](const json::Value& run) -> Result<bool> {
        ids.emplace_back(run["run_id"].string_or(""));
        return ids.size() < runs_compared_max;
      }));
  return ids;
}

}  // namespace

std::vector<std::string> similar_ids(std::string_view word, const std::vector<std::string>& ids) {
  struct Near {
    bool begins = false;
    std::size_t distance = 0;
    std::string id;
  };
  if (word.empty() || word.size() > similar_bytes_max) return {};
  const std::string wanted = in_small_letters(word);
  const std::size_t distance_max = std::max<std::size_t>(2, wanted.size() / 3);
  std::vector<Near> found;
  for (const std::string& id : ids) {
    const std::string candidate = in_small_letters(id);
    const bool begins = wanted.size() >= 2 && candidate.starts_with(wanted);
    const std::size_t distance = edit_distance(wanted, candidate);
    const bool is_near = distance <= distance_max && distance < wanted.size();
    if (begins || is_near) found.push_back({begins, distance, id});
  }
  std::ranges::stable_sort(found, {}, [](const Near& one) { return std::tuple(!one.begins, one.distance); });
  std::vector<std::string> similar;
  for (const Near& one : found) {
    if (similar.size() < similar_max) similar.push_back(one.id);
  }
  return similar;
}

Error with_similar_runs(Client& client, Error error) {
  const std::string said = "no run " + error.run_id;
  const std::size_t at = error.message.find(said);
  if (error.code != Errc::not_found || error.run_id.empty() || at == std::string::npos) return error;
  const auto ids = newest_runs(client);
  if (!ids) return error;
  const std::vector<std::string> similar = similar_ids(error.run_id, *ids);
  if (similar.empty()) return error;
  const std::size_t behind = at + said.size();
  error.message.insert(behind, ". Did you mean " + joined(similar, ", ") + "?");
  if (const std::size_t stop = error.message.find("?.", behind); stop != std::string::npos)
    error.message.erase(stop + 1, 1);
  return error;
}

}  // namespace muniment::cli
