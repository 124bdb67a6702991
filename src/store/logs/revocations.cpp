#include "store/logs/revocations.hpp"

#include <algorithm>

#include "base/json/json.hpp"
#include "store/read/reader_impl.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t page_events = 1'000;

bool covers(const Revocation& revoked, const std::vector<std::string>& sources, std::string_view owner) {
  return (revoked.owner.empty() || revoked.owner == owner) &&
         std::ranges::find(sources, revoked.source) != sources.end();
}

}  // namespace

// Revocations that the tables of documents do not cover yet are read again on the next call.
Result<const std::map<std::int64_t, Revocation>*> Reader::revocations() {
  KnownRevocations& known = impl_->revocations;
  ASSIGN_OR_RETURN(const std::int64_t shown, follower_position("document"));
  EventFilter filter;
  filter.run_no = 0;  // _log
  filter.types = {"source.revoked"};
  filter.from_seq = known.next_seq;
  while (true) {
    ASSIGN_OR_RETURN(const auto page, events(filter, page_events));
    for (const events::Event& event : page) {
      if (!event.body) continue;
      ASSIGN_OR_RETURN(const json::Document body, json::parse(*event.body));
      known.by_seq[event.seq] = {log_no(), event.seq, std::string(body.root()["source"].string_or("")),
                                 std::string(body.root()["owner"].string_or(""))};
    }
    if (page.size() < page_events) break;
    filter.from_seq = page.back().seq + 1;
  }
  known.next_seq = std::max(known.next_seq, shown);
  return &known.by_seq;
}

Result<std::optional<Revocation>> find_revocation_by(const std::vector<Reader*>& readers, const std::string& source,
                                                     const std::optional<std::string>& owner) {
  for (Reader* const reader : readers) {
    ASSIGN_OR_RETURN(const auto* const revoked, reader->revocations());
    const auto found = std::ranges::find_if(*revoked, [&](const auto& item) {
      return item.second.source == source && (!owner || item.second.owner == *owner);
    });
    if (found != revoked->end()) return std::optional(found->second);
  }
  return std::optional<Revocation>();
}

Result<std::optional<Revocation>> find_revocation(const std::vector<Reader*>& readers, std::int16_t log_no,
                                                  const std::vector<std::string>& sources, std::string_view owner) {
  for (Reader* const reader : readers) {
    if (reader->log_no() <= log_no) continue;
    ASSIGN_OR_RETURN(const auto* const revoked, reader->revocations());
    const auto found =
        std::ranges::find_if(*revoked, [&](const auto& item) { return covers(item.second, sources, owner); });
    if (found != revoked->end()) return std::optional(found->second);
  }
  return std::optional<Revocation>();
}

}  // namespace muniment::store
