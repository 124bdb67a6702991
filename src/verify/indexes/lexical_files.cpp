#include "verify/indexes/lexical_files.hpp"

#include <sys/stat.h>
#include <xapian.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "base/files/file.hpp"
#include "base/text.hpp"

namespace muniment::verify {
namespace {

constexpr unsigned time_slot = 0, valid_from_slot = 1, valid_to_slot = 2;
// Prefixes of the terms that are not words: G, H and L are adjacent.
constexpr const char* first_of_labels = "G";
constexpr char last_prefix_of_labels = 'L';

// Runs `work`, which returns a Result, and converts exceptions of Xapian to errors.
template <typename Work>
auto guarded(const std::string& path, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Xapian::DatabaseModifiedError& error) {
    return Error(Errc::unavailable, path + ": " + error.get_msg());
  } catch (const Xapian::Error& error) {
    const bool disk = error.get_error_string() != nullptr;
    return Error(disk ? Errc::unavailable : Errc::corrupt, path + ": " + error.get_description());
  } catch (const std::exception& error) {  // for example, an allocation of a damaged length
    return Error(Errc::corrupt, path + ": " + error.what());
  }
}

// Decodes eight bytes that sort in numeric order.
std::int64_t number_in(const std::string& sortable) {
  if (sortable.size() != sizeof(std::uint64_t)) return -1;
  std::uint64_t bits = 0;
  for (const char byte : sortable) bits = bits << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(bits ^ (std::uint64_t{1} << 63));
}

IndexedFacts facts_of(const Xapian::Document& document) {
  IndexedFacts facts{number_in(document.get_value(valid_from_slot)), number_in(document.get_value(valid_to_slot)),
                     number_in(document.get_value(time_slot)), 0};
  std::vector<std::string> terms;
  Xapian::TermIterator term = document.termlist_begin();
  if (term != document.termlist_end()) term.skip_to(first_of_labels);
  for (; term != document.termlist_end(); ++term) {
    const std::string name = *term;
    if (name.front() > last_prefix_of_labels) break;
    terms.push_back(name);
  }
  facts.labels = digest_of_terms(std::move(terms));
  return facts;
}

}  // namespace

struct LexicalFiles::Impl {
  std::string folder;
  Xapian::Database live, history;
  std::int64_t next_seq = 0;
  bool erasing = false;
};

LexicalFiles::LexicalFiles(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LexicalFiles::LexicalFiles(LexicalFiles&&) noexcept = default;
LexicalFiles::~LexicalFiles() = default;

Result<LexicalFiles> LexicalFiles::open(const std::string& folder) {
  struct stat about {};
  if (::stat((folder + "/live").c_str(), &about) != 0) {
    return errno == ENOENT ? Error(Errc::not_found, folder + ": there is no lexical index")
                           : file_error("reading", folder, errno);
  }
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  RETURN_IF_ERROR(guarded(folder, [&]() -> Status {
    impl->live = Xapian::Database(folder + "/live");
    impl->history = Xapian::Database(folder + "/history");
    const std::string next = impl->live.get_metadata("next_seq");
    const auto number = next.empty() ? std::optional<std::int64_t>(0) : parse_decimal(next);
    if (!number) return Error(Errc::corrupt, folder + ": its position is not a number");
    impl->next_seq = *number;
    impl->erasing = !impl->live.get_metadata("erased").empty();
    return success();
  }));
  return LexicalFiles(std::move(impl));
}

std::int64_t LexicalFiles::next_seq() const { return impl_->next_seq; }
bool LexicalFiles::erasing() const { return impl_->erasing; }

Status LexicalFiles::visit(bool live, const Visit& visit) const {
  const Xapian::Database& database = live ? impl_->live : impl_->history;
  return guarded(impl_->folder, [&]() -> Status {
    for (Xapian::PostingIterator document = database.postlist_begin(""); document != database.postlist_end("");
         ++document) {
      visit(*document, facts_of(database.get_document(*document)));
    }
    return success();
  });
}

}  // namespace muniment::verify
