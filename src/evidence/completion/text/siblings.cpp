#include "evidence/completion/text/siblings.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "evidence/completion/text/facts.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

// Alternatives of one another: who says one means none of the others. Members are separated by '|', forms by a space.
constexpr std::array contrasts{
    std::string_view("import imports importer importing imported importable|export exports exporter exporting exported"),
    std::string_view("upload uploads uploader uploading uploaded|download downloads downloader downloading downloaded"),
    std::string_view("encode encoder encoding encodes encoded|decode decoder decoding decodes decoded"),
    std::string_view("encrypt encryption encrypts encrypted|decrypt decryption decrypts decrypted"),
    std::string_view("compress compression compressed|decompress decompression decompressed"),
    std::string_view("serialize serializer serialization serialized|deserialize deserializer deserialization deserialized"),
    std::string_view("staging stage|production prod|development dev|canary|preprod preproduction|qa"),
    std::string_view("login signin|logout signout|signup registration register"),
    std::string_view("hourly|daily nightly|weekly|monthly|quarterly|yearly annual annually"),
    std::string_view("january|february|april|june|july|august|september|october|november|december"),
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
    std::string_view("minimum min|maximum max"),
    std::string_view("json|yaml yml|xml|csv|toml"),
    std::string_view("email emails mail mails smtp|sms|push"),
    std::string_view("debit debits|credit credits"),
    std::string_view("buyer buyers|seller sellers"),
    std::string_view("customer customers|supplier suppliers|vendor vendors"),
    std::string_view("invoice invoices invoicing|refund refunds refunding refunded"),
    std::string_view("primary|replica replicas|standby|secondary"),
    std::string_view("header headers|footer footers"),
    std::string_view("horizontal horizontally|vertical vertically"),
    std::string_view("public|private"),
    std::string_view("internal|external"),
    std::string_view("desktop|mobile|tablet"),
    std::string_view("row rows|column columns"),
    std::string_view("width|height"),
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

// Hash of a form → its row and its member.
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

// Its digits and dots: "418" of "#418", "20.1" of "v20.1"; empty where the token is no plain number.
std::string_view label_number(std::string_view core) {
  while (!core.empty() && (core[0] == '#' || core[0] == 'v')) core.remove_prefix(1);
  if (core.empty() || core.find_first_not_of("0123456789.") != std::string_view::npos || !is_digit(core[0])) return {};
  return core;
}

// "v20" is the node 20 of "v20.1.0".
bool is_same_number(std::string_view wanted, std::string_view shown) {
  return shown.starts_with(wanted) && (shown.size() == wanted.size() || shown[wanted.size()] == '.');
}

// "SHOP-301": the name in front of the dash, the number behind it. Any other token: its number alone.
struct Label {
  std::string name, number;
  bool shown = false;
};

Label label_of(std::string_view before, std::string_view core) {
  const std::size_t dash = core.find_last_of("-#");
  if (dash != std::string_view::npos && dash >= 2 && core.size() - dash <= 8) {
    const bool letters = std::all_of(core.begin(), core.begin() + static_cast<std::ptrdiff_t>(dash), is_letter);
    const std::string_view number = label_number(core.substr(dash + 1));
    if (letters && !number.empty()) return {lowered(core.substr(0, dash)), std::string(number), false};
  }
  const std::string_view number = label_number(core);
  if (number.empty() || before.size() < 2 || !std::all_of(before.begin(), before.end(), is_letter)) return {};
  return {lowered(before), std::string(number), false};
}

// Calls take(before, core, after) with each token that is no white space.
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
      add_compound(before, word, terms, profile);
      before = word;
    });
    each_token(task, [&](std::string_view prior, std::string_view core, std::string_view after) {
      if (labels_.size() == sibling_labels_max) return;
      Label label = label_of(prior, core);
      if (label.number.empty() || (classes_of(label.name) & no_name) != 0) return;
      // "below 200 ms", "coverage 90 %" measure; they name nothing.
      if ((classes_of(lowered(after.substr(0, word_bytes_max))) & count_noun) != 0 || after == "%") return;
      labels_.push_back(std::move(label));
    });
  }

  void read(std::string_view text) {
    if (any_ || !compounds_.empty()) read_words(text);
    if (!labels_.empty()) read_labels(text);
  }

  std::string found() const {
    for (std::size_t row = 0; row < contrasts.size(); ++row) {
      if (wanted_[row] != 0 && shown_[row] != 0 && (wanted_[row] & shown_[row]) == 0) return other_of_row_[row];
    }
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (!labels_[i].shown && !other_labels_[i].empty()) return other_labels_[i];
    }
    return other_compound_;
  }

 private:
  static constexpr std::uint32_t no_name = stop_word | preposition | count_noun | hedge | future | praise;

  struct Compound {
    std::uint64_t second_hash = 0;
    std::string second;
  };

  // "authentication module" of which the text names the module alone.
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

  void read_words(std::string_view text) {
    std::string before;
    each_word(text, [&](std::string_view word) {
      const std::uint64_t hash = hash_of(word);
      if (const std::uint32_t* place = contrast_table().find(hash)) {
        const std::uint32_t row = *place / members_of_row_max, member = *place % members_of_row_max;
        if (wanted_[row] != 0) {
          shown_[row] = static_cast<std::uint16_t>(shown_[row] | (1U << member));
          if ((wanted_[row] & (1U << member)) == 0) other_of_row_[row] = word;
        }
      }
      if (!compounds_.empty()) {
        read_compound(before, word);
        before = word;
      }
    });
  }

  void read_compound(std::string_view before, std::string_view word) {
    if (!other_compound_.empty() || before.size() < 4 || classes_of(before) != 0) return;
    const std::uint64_t concept_hash = hash_of(concept_of(stem_of(word)));
    for (const Compound& compound : compounds_) {
      if (compound.second_hash == concept_hash) other_compound_ = std::string(before) + ' ' + compound.second;
    }
  }

  void read_labels(std::string_view text) {
    other_labels_.resize(labels_.size());
    each_token(text, [&](std::string_view before, std::string_view core, std::string_view) {
      if (std::none_of(core.begin(), core.end(), is_digit)) return;
      const Label shown = label_of(before, core);
      for (std::size_t i = 0; i < labels_.size(); ++i) {
        Label& label = labels_[i];
        if (label.shown) continue;
        // A short number occurs by chance: it must have the name, or letters of its own ("node3").
        const bool by_chance = label.number.size() <= short_number_digits && is_digit(core[0]);
        if (by_chance ? shown.name == label.name && is_same_number(label.number, shown.number)
                      : holds_number(core, label.number)) {
          label.shown = true;
        } else if (!shown.number.empty() && shown.name == label.name && other_labels_[i].empty()) {
          other_labels_[i] = shown.name + ' ' + shown.number;
        }
      }
    });
  }

  // The number anywhere in a token: "shop-1.4.0/", "node3", "#418".
  static bool holds_number(std::string_view core, std::string_view number) {
    for (std::size_t at = core.find(number); at != std::string_view::npos; at = core.find(number, at + 1)) {
      if (at > 0 && (is_digit(core[at - 1]) || core[at - 1] == '.')) continue;
      std::string_view rest = core.substr(at);
      rest = rest.substr(0, std::min(rest.find_first_not_of("0123456789."), rest.size()));
      if (is_same_number(number, rest)) return true;
    }
    return false;
  }

  std::array<std::uint16_t, contrasts.size()> wanted_{}, shown_{};
  std::array<std::string, contrasts.size()> other_of_row_;
  bool any_ = false;
  std::vector<Compound> compounds_;
  std::string other_compound_;
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

}  // namespace muniment::evidence::completion
