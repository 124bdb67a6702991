// Finds siblings of a task's words, numbers and paths in a text.
#include "evidence/completion/text/siblings.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "evidence/completion/text/facts.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

// Sets of alternatives: a text that names one member excludes the others. '|' separates members, a space separates
// forms.
constexpr std::array contrasts{
    std::string_view(
        "import imports importer importing imported importable|export exports exporter exporting exported"),
    std::string_view("upload uploads uploader uploading uploaded|download downloads downloader downloading downloaded"),
    std::string_view("encode encoder encoding encodes encoded|decode decoder decoding decodes decoded"),
    std::string_view("encrypt encryption encrypts encrypted|decrypt decryption decrypts decrypted"),
    std::string_view("compress compression compressed|decompress decompression decompressed"),
    std::string_view(
        "serialize serializer serialization serialized|deserialize deserializer deserialization deserialized"),
    std::string_view("staging stage|production prod|development dev|canary|preprod preproduction|qa"),
    std::string_view("login signin|logout signout|signup registration register"),
    std::string_view("hourly|daily nightly|weekly|monthly|quarterly|yearly annual annually"),
    std::string_view("authentication authenticate authenticated auth authn|authorization authorize authorized authz"),
    std::string_view("producer producers|consumer consumers"),
    std::string_view("publisher publishers publish|subscriber subscribers subscribe"),
    std::string_view("sender senders|receiver receivers recipient recipients"),
    std::string_view("frontend|backend"),
    std::string_view("android|ios"),
    std::string_view("linux|windows win32 win64|macos darwin osx"),
    std::string_view("inbound|outbound"),
    std::string_view("incoming|outgoing"),
    std::string_view("ascending asc|descending desc"),
    std::string_view("minimum|maximum"),
    std::string_view("json|yaml yml|xml|csv|toml"),
    std::string_view("email emails mail mails smtp|sms"),
    std::string_view("debit debits|credit credits"),
    std::string_view("buyer buyers|seller sellers"),
    std::string_view("customer customers|supplier suppliers|vendor vendors"),
    std::string_view("invoice invoices invoicing|refund refunds refunding refunded"),
    std::string_view("primary|replica replicas|standby|secondary"),
    std::string_view("header headers|footer footers"),
    std::string_view("horizontal horizontally|vertical vertically"),
    std::string_view("desktop|mobile|tablet"),
    std::string_view("width|height"),
    std::string_view("kilobyte kilobytes|megabyte megabytes|gigabyte gigabytes|terabyte terabytes"),
    std::string_view("north|south"),
    std::string_view("east|west"),
    std::string_view("latitude|longitude"),
    std::string_view("uppercase|lowercase"),
    std::string_view("prefix prefixes|suffix suffixes"),
    std::string_view("lock locks locked locking|unlock unlocks unlocked unlocking"),
    std::string_view("mount mounts mounted|unmount unmounts unmounted"),
    std::string_view("install installs installed installation|uninstall uninstalls uninstalled"),
    std::string_view("german germany|french france|spanish spain|italian italy|portuguese|dutch|polish poland|english"),
    std::string_view("postgres postgresql|mysql mariadb|sqlite|mongodb|oracle"),
    std::string_view("chrome chromium|firefox|safari"),
    std::string_view("aws|azure|gcp"),
    std::string_view("paypal|stripe|adyen|klarna"),
    std::string_view("github|gitlab|bitbucket"),
    std::string_view("kafka|rabbitmq|nats|sqs"),
    std::string_view("redis|memcached"),
    std::string_view("tcp|udp"),
};
constexpr std::uint32_t members_of_row_max = 16;
constexpr std::size_t short_number_digits = 2;
constexpr std::size_t extension_bytes_max = 6;
constexpr std::size_t words_of_beginning = 8;
constexpr std::size_t lines_of_prose = 8;  // in longer texts (logs, reports, diffs) words are adjacent by chance
constexpr std::size_t attached_letters_max = 12, attached_digits_max = 8;

// Maps the hash of a form to its row and its member.
const WordTable& contrast_table() {
  static const WordTable table = [] {
    WordTable made;
    for (std::uint32_t row = 0; row < contrasts.size(); ++row) {
      std::uint32_t member = 0;
      const std::string text = std::string(contrasts[row]) + '|';
      std::size_t begin = 0;
      for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '|' && text[i] != ' ') continue;
        const std::uint64_t hash = hash_of(std::string_view(text).substr(begin, i - begin));
        if (!made.contains(hash)) made.insert(hash, row * members_of_row_max + member);
        if (text[i] == '|') ++member;
        begin = i + 1;
      }
    }
    return made;
  }();
  return table;
}

// The digits and dots of a token: "418" of "#418", "20.1" of "v20.1"; empty if the token is not a plain number.
std::string_view label_number(std::string_view core) {
  while (!core.empty() && (core[0] == '#' || core[0] == 'v')) core.remove_prefix(1);
  if (core.empty() || !is_digit(core[0])) return {};
  if (!std::all_of(core.begin(), core.end(), [](char c) { return is_digit(c) || c == '.'; })) return {};
  return core;
}

// Returns whether a number equals the wanted one or its beginning: "v20" and "v20.1.0".
bool is_same_number(std::string_view wanted, std::string_view shown) {
  return shown.starts_with(wanted) && (shown.size() == wanted.size() || shown[wanted.size()] == '.');
}

// A label. "SHOP-301": the name before the dash and the number after it. Any other token: its number alone.
struct Label {
  std::string name, number;
  bool shown = false;
};

// The label at the beginning of a token: "db-07" of "db-07-2026-11-26.dump".
std::string_view labelled_beginning(std::string_view core) {
  const std::size_t dash = core.find('-');
  if (dash == std::string_view::npos || dash < 2 || dash > attached_letters_max) return core;
  const std::size_t end = std::min(core.find_first_not_of("0123456789", dash + 1), core.size());
  const bool letters = std::all_of(core.begin(), core.begin() + static_cast<std::ptrdiff_t>(dash), is_letter);
  return letters && end > dash + 1 && end < core.size() && core[end] == '-' ? core.substr(0, end) : core;
}

Label label_of(std::string_view before, std::string_view core) {
  core = labelled_beginning(core);
  std::size_t dash = core.size();
  while (dash > 0 && core[dash - 1] != '-' && core[dash - 1] != '#') --dash;
  dash = dash == 0 ? std::string_view::npos : dash - 1;
  if (dash != std::string_view::npos && dash >= 2 && core.size() - dash <= 8) {
    const bool letters = std::all_of(core.begin(), core.begin() + static_cast<std::ptrdiff_t>(dash),
                                     [](char c) { return is_letter(c) || c == '-'; });
    const std::string_view number = label_number(core.substr(dash + 1));
    if (letters && !number.empty()) return {lowered(core.substr(0, dash)), std::string(number), false};
  }
  // "node3", "db2", "v2": letters, then digits
  const auto digit = static_cast<std::size_t>(std::find_if(core.begin(), core.end(), is_digit) - core.begin());
  const bool attached = digit > 0 && digit <= attached_letters_max && core.size() - digit <= attached_digits_max &&
                        core.find_first_not_of("0123456789.", digit) == std::string_view::npos && digit < core.size() &&
                        std::all_of(core.begin(), core.begin() + static_cast<std::ptrdiff_t>(digit), is_letter);
  if (attached) return {lowered(core.substr(0, digit)), std::string(core.substr(digit)), false};
  const std::string_view number = label_number(core);
  if (number.empty() || before.size() < 2 || !std::all_of(before.begin(), before.end(), is_letter)) return {};
  return {lowered(before), std::string(number), false};
}

// Calls take(before, core, after) with each token between white space.
template <typename Take>
void each_token(std::string_view text, Take&& take) {
  std::string_view before, core;
  const auto put = [&](std::string_view next) {
    if (!core.empty()) take(before, core, next);
    before = core;
    core = next;
  };
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && is_blank(text[i])) ++i;
    const std::size_t begin = i;
    while (i < text.size() && !is_blank(text[i])) ++i;
    if (i > begin) put(core_of(text.substr(begin, i - begin)));
  }
  put({});
}

// Returns whether the line describes a runner or curl itself.
bool describes_tool(std::string_view line) {
  line = trimmed(line);
  for (const std::string_view name :
       {"platform ", "plugins:", "rootdir:", "cachedir:", "configfile:", "% Total", "Dload", "Internal ctest"}) {
    if (line.starts_with(name)) return true;
  }
  return false;
}

class Siblings {
 public:
  Siblings(std::string_view task, const TaskTerms& terms, const Profile& profile) {
    std::string before;
    each_word(task, [&](std::string_view word) {
      if (const std::uint32_t* place = contrast_table().find(hash_of(word))) {
        const std::uint32_t row = *place / members_of_row_max, member = *place % members_of_row_max;
        wanted_[row] = static_cast<std::uint16_t>(wanted_[row] | (1U << member));
        any_ = true;
      }
      if (profile.lines <= lines_of_prose) add_compound(before, word, terms, profile);
      add_quoted(before, word, terms, profile);
      before = word;
    });
    each_token(task, [&](std::string_view prior, std::string_view core, std::string_view after) {
      if (labels_.size() == sibling_labels_max) return;
      Label label = label_of(prior, core);
      const bool version = label.number.find('.') != std::string::npos;  // "the 1.4.0 release"
      if (label.number.empty() || (!version && (classes_of(label.name) & no_name) != 0)) return;
      // "below 200 ms" and "coverage 90 %" are measurements, not labels.
      if ((classes_of(lowered(after.substr(0, word_bytes_max))) & count_noun) != 0 || after == "%") return;
      labels_.push_back(std::move(label));
    });
  }

  void read(std::string_view text) {
    const bool words = any_ || !compounds_.empty();
    if (!words && labels_.empty() && quoted_.empty()) return;
    other_labels_.resize(labels_.size());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      before_.clear();
      if (describes_tool(line)) continue;
      if (!quoted_.empty() && other_quoted_.empty()) read_quoted(line);
      if (!words && labels_.empty()) continue;
      each_token(line, [&](std::string_view before, std::string_view core, std::string_view) {
        if (words) read_words(core);
        if (!labels_.empty()) read_label(before, core);
      });
    }
  }

  bool shows_number() const {
    return std::any_of(labels_.begin(), labels_.end(),
                       [](const Label& label) { return label.shown && label.number.size() > short_number_digits; });
  }

  std::string found() const {
    for (std::size_t row = 0; row < contrasts.size(); ++row) {
      if (wanted_[row] != 0 && shown_[row] != 0 && (wanted_[row] & shown_[row]) == 0) return other_of_row_[row];
    }
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (!labels_[i].shown && !other_labels_[i].empty()) return other_labels_[i];
    }
    return other_compound_.empty() ? other_quoted_ : other_compound_;
  }

 private:
  static constexpr std::uint32_t no_name = stop_word | preposition | count_noun | hedge | future | praise;

  struct Compound {
    std::uint64_t second_hash = 0;
    std::string second;
  };

  // "authentication module", if the text names only the module.
  void add_compound(std::string_view first, std::string_view second, const TaskTerms& terms, const Profile& profile) {
    std::size_t of_first = terms.terms.size(), of_second = of_first;
    for (std::size_t i = 0; i < terms.terms.size(); ++i) {
      if (terms.terms[i].word == first) of_first = i;
      if (terms.terms[i].word == second) of_second = i;
    }
    if (of_first == terms.terms.size() || of_second == terms.terms.size()) return;
    if (terms.terms[of_first].weight == 1 || terms.terms[of_second].weight > 1) return;
    if (profile.covered[of_first] || !profile.covered[of_second]) return;
    compounds_.push_back({terms.terms[of_second].concept_hash, std::string(second)});
  }

  // "orders table", if the text contains: Table "public.customers".
  void add_quoted(std::string_view first, std::string_view second, const TaskTerms& terms, const Profile& profile) {
    const auto covered = [&](std::string_view word) {
      for (std::size_t i = 0; i < terms.terms.size(); ++i) {
        if (terms.terms[i].word == word) return profile.covered[i] ? 1 : 0;
      }
      return -1;
    };
    if (covered(first) == 0 && covered(second) == 1) {
      quoted_.push_back({hash_of(concept_of(stem_of(second))), std::string(second)});
    }
  }

  void read_quoted(std::string_view line) {
    for (std::size_t at = line.find('"'); at != std::string_view::npos; at = line.find('"', at + 1)) {
      std::size_t end = at;
      while (end > 0 && is_blank(line[end - 1])) --end;
      std::size_t begin = end;
      while (begin > 0 && end - begin < word_bytes_max && is_letter(line[begin - 1])) --begin;
      const std::size_t close = line.find('"', at + 1);
      if (begin == end || end == at || close == std::string_view::npos) continue;
      const std::string_view name = line.substr(at + 1, close - at - 1);
      const std::uint64_t concept_hash = hash_of(concept_of(stem_of(lowered(line.substr(begin, end - begin)))));
      for (const Compound& compound : quoted_) {
        if (compound.second_hash == concept_hash && !name.empty())
          other_quoted_ = compound.second + ' ' + std::string(name);
      }
    }
  }

  void read_words(std::string_view token) {
    // An extension can name the task's subject, but not a sibling: pyproject.toml, report.json.
    const std::size_t dot = token.rfind('.');
    const bool extended = dot != std::string_view::npos && dot > 0 && token.size() - dot <= extension_bytes_max;
    each_word(token.substr(0, extended ? dot : token.size()), [&](std::string_view word) { read_word(word, false); });
    if (extended) each_word(token.substr(dot), [&](std::string_view word) { read_word(word, true); });
  }

  void read_word(std::string_view word, bool extension) {
    const std::uint32_t* place = any_ ? contrast_table().find(hash_of(word)) : nullptr;
    if (place != nullptr) {
      const std::uint32_t row = *place / members_of_row_max, member = *place % members_of_row_max;
      const bool own = (wanted_[row] & (1U << member)) != 0;
      if (wanted_[row] != 0 && (own || !extension)) {
        shown_[row] = static_cast<std::uint16_t>(shown_[row] | (1U << member));
        if (!own) other_of_row_[row] = word;
      }
    }
    if (compounds_.empty()) return;
    read_compound(before_, word);
    before_ = word;
  }

  void read_compound(std::string_view before, std::string_view word) {
    if (!other_compound_.empty() || before.size() < 4 || classes_of(before) != 0) return;
    const std::uint64_t concept_hash = hash_of(concept_of(stem_of(word)));
    for (const Compound& compound : compounds_) {
      if (compound.second_hash == concept_hash) other_compound_ = std::string(before) + ' ' + compound.second;
    }
  }

  void read_label(std::string_view before, std::string_view core) {
    ++labels_read_;
    if (std::none_of(core.begin(), core.end(), is_digit)) return;
    const Label shown = label_of(before, core);
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      Label& label = labels_[i];
      if (label.shown) continue;
      // A short number can occur by chance: it requires the name, or attached letters ("node3").
      const bool by_chance = label.number.size() <= short_number_digits && is_digit(core[0]);
      if (by_chance ? shown.name == label.name && is_same_number(label.number, shown.number)
                    : holds_number(core, label.number)) {
        label.shown = true;
      } else if (!shown.number.empty() && shown.name == label.name && other_labels_[i].empty()) {
        // A second ticket after the first words is a reference: "(SHOP-412)".
        if (core.find('-') != std::string_view::npos && labels_read_ > words_of_beginning) continue;
        other_labels_[i] = shown.name + ' ' + shown.number;
      }
    }
  }

  // Returns whether the token contains the number: "shop-1.4.0/", "node3", "#418".
  static bool holds_number(std::string_view core, std::string_view number) {
    for (std::size_t at = 0; at + number.size() <= core.size(); ++at) {
      if (core[at] != number[0] || (at > 0 && (is_digit(core[at - 1]) || core[at - 1] == '.'))) continue;
      std::size_t end = at;
      while (end < core.size() && (is_digit(core[end]) || core[end] == '.')) ++end;
      if (is_same_number(number, core.substr(at, end - at))) return true;
    }
    return false;
  }

  std::array<std::uint16_t, contrasts.size()> wanted_{}, shown_{};
  std::array<std::string, contrasts.size()> other_of_row_;
  bool any_ = false;
  std::vector<Compound> compounds_, quoted_;
  std::string other_compound_, other_quoted_, before_;
  std::size_t labels_read_ = 0;
  std::vector<Label> labels_;
  std::vector<std::string> other_labels_;
};

}  // namespace

std::string sibling_in(std::string_view text, std::string_view task_content, const TaskTerms& terms,
                       const Profile& profile) {
  Siblings siblings(task_content.substr(0, task_bytes_read_max), terms, profile);
  siblings.read(text.substr(0, profiled_bytes_max));
  return siblings.found();
}

bool names_number_of(std::string_view text, std::string_view task_content, const TaskTerms& terms,
                     const Profile& profile) {
  Siblings siblings(task_content.substr(0, task_bytes_read_max), terms, profile);
  siblings.read(text.substr(0, profiled_bytes_max));
  return siblings.shows_number();
}

namespace {

constexpr std::size_t path_extension_letters_max = 5;

struct Path {
  std::string_view folder;     // "src"; empty: none
  std::string_view base;       // "scheduler"
  std::string_view extension;  // "py"; empty: none
};

// Reads a file name, a path, or the path of an address, without line, column and query. Returns false if the token is
// none of these.
bool read_path(std::string_view core, Path& path) {
  if (core.size() < 3 || core.size() > kin_bytes_max) return false;
  if (const std::size_t scheme = core.find("://"); scheme != std::string_view::npos) {
    core.remove_prefix(scheme + 3);
    core.remove_prefix(std::min(core.find('/'), core.size()));
  }
  core = core.substr(0, core.find_first_of(":?"));
  const std::size_t slash = core.rfind('/');
  if (core.empty() || slash + 1 == core.size()) return false;
  path.folder = slash == std::string_view::npos ? std::string_view() : core.substr(0, std::max<std::size_t>(slash, 1));
  path.base = slash == std::string_view::npos ? core : core.substr(slash + 1);
  const std::size_t dot = path.base.rfind('.');
  path.extension = {};
  if (dot != std::string_view::npos && dot > 0) {
    path.extension = path.base.substr(dot + 1);
    path.base = path.base.substr(0, dot);
    const bool letters = std::all_of(path.extension.begin(), path.extension.end(), is_letter);
    if (!letters || path.extension.empty() || path.extension.size() > path_extension_letters_max) return false;
  }
  if (path.extension.empty() && path.folder.empty()) return false;
  return path.base.size() >= 2 && std::any_of(path.base.begin(), path.base.end(), is_letter);
}

// Returns whether the folders are the same: "crates" and "/srv/work/crates".
bool is_same_folder(std::string_view wanted, std::string_view shown) {
  if (wanted == shown) return true;
  if (wanted == "/") return false;
  return !wanted.empty() && shown.size() > wanted.size() && shown.ends_with(wanted) &&
         shown[shown.size() - wanted.size() - 1] == '/';
}

bool is_of_tests(std::string_view token) {
  bool found = false;
  each_word(token, [&](std::string_view word) { found = found || (classes_of(word) & test_word) != 0; });
  return found;
}

template <typename Take>
void each_core(std::string_view text, Take&& take) {
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && is_blank(text[i])) ++i;
    const std::size_t begin = i;
    bool path = false;
    while (i < text.size() && !is_blank(text[i])) {
      path = path || text[i] == '/' || text[i] == '.';
      ++i;
    }
    if (path) take(core_of(text.substr(begin, i - begin)));
  }
}

}  // namespace

std::string kin_in(std::string_view text, std::string_view task_content) {
  std::vector<Path> wanted;
  each_core(task_content, [&](std::string_view core) {
    Path path;
    // A name such as invoices-YYYY-MM.pdf stands for many.
    if (wanted.size() < kin_paths_max && read_path(core, path) && path.base.find("YYYY") == std::string_view::npos)
      wanted.push_back(path);
  });
  if (wanted.empty()) return {};
  for (const Path& path : wanted) {
    if (text.find(path.base) != std::string_view::npos) return {};
  }
  std::vector<std::string_view> others;
  each_core(text, [&](std::string_view core) {
    Path path;
    if (others.size() > kin_others_max || !read_path(core, path)) return;
    const bool kin = std::any_of(wanted.begin(), wanted.end(), [&](const Path& own) {
      return own.extension == path.extension && is_same_folder(own.folder, path.folder);
    });
    if (!kin || is_of_tests(core) || std::find(others.begin(), others.end(), core) != others.end()) return;
    others.push_back(core);
  });
  return others.empty() || others.size() > kin_others_max ? std::string() : std::string(others.front());
}

}  // namespace muniment::evidence::completion
