// Loads the records of a shard and checks their digests.
#include "retrieval/vector/records/loading.hpp"

#include "retrieval/vector/graph_editor.hpp"

namespace muniment::retrieval::vec {
namespace {

Error damaged(const SpaceHeader& header, const std::string& what) {
  return Error(Errc::corrupt, "the vector space " + header.name + " is damaged: " + what);
}

class SpaceLoader {
 public:
  SpaceLoader(const RecordStore& store, SpaceHeader header)
      : store_(store), header_(header), space_(std::make_shared<Space>(std::move(header))) {}

  Result<std::shared_ptr<Space>> load() {
    space_->reserve(header_.slots);
    space_->header.slots = header_.slots;
    const auto node = [&](std::string_view key, std::string_view value) { return take_node(key, value); };
    RETURN_IF_ERROR(store_.scan(kind_key(header_.number, RecordKind::node), space_end(header_.number), node));
    const auto links = [&](std::string_view key, std::string_view value) { return take_links(key, value); };
    RETURN_IF_ERROR(
        store_.scan(kind_key(header_.number, RecordKind::links), kind_key(header_.number, RecordKind::history), links));
    RETURN_IF_ERROR(check());
    return std::move(space_);
  }

 private:
  Status take_node(std::string_view key, std::string_view value) {
    const auto slot = parse_node_key(key);
    const auto record = decode_vector(value, space_->padded());
    if (!slot || *slot >= header_.slots || !record || record->level != GraphEditor::level_for(record->chunk)) {
      return damaged(header_, "a vector's record is malformed");
    }
    if (space_->slot_of(record->chunk) != no_slot) return damaged(header_, "a chunk has two vectors");
    space_->fill(*slot, *record);
    space_->admit(*slot, *record);
    digest_ += record_hash(key, value);
    ++vectors_;
    return success();
  }

  // The nodes were loaded before.
  Status take_links(std::string_view key, std::string_view value) {
    const auto at = parse_links_key(key);
    Links links;
    const bool fits = at && at->slot < header_.slots && space_->live().test(at->slot) &&
                      at->level <= space_->level(at->slot) && decode_links(value, at->level, links);
    if (!fits) return damaged(header_, "a list of links is malformed");
    for (const Slot to : links) {
      if (to == no_slot) break;
      if (to >= header_.slots || !space_->live().test(to) || space_->level(to) < at->level) {
        return damaged(header_, "a link leads nowhere");
      }
    }
    space_->set_links(at->slot, at->level, {links.data(), links_max(at->level)});
    digest_ += record_hash(key, value);
    return success();
  }

  Status check() const {
    if (vectors_ != header_.vectors) {
      return damaged(header_,
                     "it has " + std::to_string(vectors_) + " of its " + std::to_string(header_.vectors) + " vectors");
    }
    if (digest_ != header_.live_digest) return damaged(header_, "records are missing or stale");
    const bool entered = header_.entry == no_slot ? space_->live_count() == 0 : space_->live().test(header_.entry);
    return entered ? success() : Status(damaged(header_, "its graph has no entry"));
  }

  const RecordStore& store_;
  const SpaceHeader header_;
  std::shared_ptr<Space> space_;
  std::uint64_t digest_ = 0;
  std::uint32_t vectors_ = 0;
};

}  // namespace

Result<Loaded> load(const RecordStore& store) {
  Loaded loaded;
  ASSIGN_OR_RETURN(const auto stored, store.get(shard_key()));
  if (!stored) return Error(Errc::corrupt, "the vector shard has lost its header");
  const auto header = decode_shard_header(*stored);
  if (!header) return Error(Errc::corrupt, "the vector shard's header is damaged, or of another version");
  loaded.header = *header;
  std::vector<SpaceHeader> headers;
  std::uint64_t digest = 0;
  for (std::uint32_t number = 1; number < header->next_number; ++number) {
    ASSIGN_OR_RETURN(const auto bytes, store.get(header_key(number)));
    if (!bytes) continue;  // dropped or lost: the digest distinguishes them
    digest += record_hash(header_key(number), *bytes);
    auto space = decode_space_header(*bytes, number);
    if (!space) return Error(Errc::corrupt, "the header of vector space " + std::to_string(number) + " is damaged");
    headers.push_back(std::move(*space));
  }
  if (headers.size() != header->spaces || digest != header->headers_digest) {
    return Error(Errc::corrupt, "the vector shard has lost a space, or has an outdated state of one");
  }
  for (SpaceHeader& space : headers) {
    ASSIGN_OR_RETURN(auto filled, SpaceLoader(store, std::move(space)).load());
    loaded.spaces.emplace(filled->header.name, std::move(filled));
  }
  return loaded;
}

}  // namespace muniment::retrieval::vec
