// Chains entries by run and appends them to a tree.
#include "audit/entry_chain.hpp"

#include <fmt/format.h>

#include <string>

#include "events/entry.hpp"

namespace muniment::audit {
namespace {

constexpr std::size_t runs_remembered_max = 65'536;

}  // namespace

Error missing_event(const TreeWriter& writer, const store::Reader& reader) {
  return Error(Errc::corrupt, fmt::format("event {0} of log {1} is missing. Run muniment-verify --log {1}",
                                          writer.size(), reader.log_no()));
}

Status EntryChain::add(const events::Event& event, store::Reader& reader, TreeWriter& writer) {
  if (event.seq != writer.size()) return missing_event(writer, reader);
  auto last = last_.find(event.run_no);
  if (last == last_.end()) {
    if (last_.size() >= runs_remembered_max) last_.clear();
    ASSIGN_OR_RETURN(const Hash before, reader.previous_run_hash(event));
    last = last_.emplace(event.run_no, before).first;
  }
  std::string entry;
  events::encode_entry(log_id_, event, last->second, entry);
  last->second = event.run_hash;
  return writer.add(entry, sha256({std::string_view("\0", 1), entry}));
}

}  // namespace muniment::audit
