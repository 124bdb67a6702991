// Tables of verbs and nouns.
#include "evidence/run_judge/actions/effects.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace muniment::evidence::run_judge {
namespace {

struct Verb {
  std::string_view base;
  std::string_view past;  // separated by blanks
  Effects effects;
};

constexpr Effects changes = creates | updates;

constexpr Verb verbs[] = {
    {"book", "booked", changes},
    {"reserve", "reserved", changes},
    {"create", "created", creates | pushes},
    {"add", "added", changes},
    {"insert", "inserted", changes},
    {"open", "opened", creates | pushes},
    {"raise", "raised", changes | pushes},
    {"register", "registered", changes},
    {"enroll", "enrolled", changes},
    {"schedule", "scheduled", changes | sends},
    {"reschedule", "rescheduled", changes},
    {"arrange", "arranged", changes},
    {"place", "placed", creates | pays},
    {"order", "ordered", creates | pays},
    {"purchase", "purchased", creates | pays},
    {"buy", "bought", creates | pays},
    {"secure", "secured", creates},
    {"log", "logged", changes},
    {"save", "saved", changes},
    {"record", "recorded", changes},
    {"generate", "generated", changes},
    {"write", "wrote written", changes},
    {"submit", "submitted", creates | sends | pushes},
    {"file", "filed", creates | sends},
    {"set", "set", changes},
    {"put", "put", changes},
    {"make", "made", any_effect},
    {"upsert", "upserted", changes},
    {"update", "updated", updates},
    {"change", "changed", updates},
    {"modify", "modified", updates},
    {"edit", "edited", updates},
    {"adjust", "adjusted", updates},
    {"amend", "amended", updates},
    {"patch", "patched", updates},
    {"move", "moved", updates},
    {"shift", "shifted", updates},
    {"advance", "advanced", updates},
    {"assign", "assigned", updates},
    {"reassign", "reassigned", updates},
    {"upgrade", "upgraded", updates | installs},
    {"downgrade", "downgraded", updates},
    {"extend", "extended", updates},
    {"renew", "renewed", updates | pays},
    {"apply", "applied", updates | pays | deploys},
    {"mark", "marked", updates},
    {"rename", "renamed", updates},
    {"convert", "converted", changes},
    {"merge", "merged", merges | updates},
    {"combine", "combined", merges | updates},
    {"link", "linked", changes},
    {"attach", "attached", changes},
    {"tag", "tagged", changes | commits},
    {"label", "labelled labeled", updates},
    {"exchange", "exchanged", changes},
    {"swap", "swapped", updates},
    {"switch", "switched", updates},
    {"replace", "replaced", changes},
    {"correct", "corrected", updates},
    {"fix", "fixed", updates},
    {"rewrite", "rewrote rewritten", updates},
    {"refactor", "refactored", updates},
    {"implement", "implemented", changes},
    {"append", "appended", changes},
    {"prioritize", "prioritized prioritised", updates},
    {"cancel", "cancelled canceled", cancels},
    {"delete", "deleted", cancels},
    {"remove", "removed", cancels | updates},
    {"void", "voided", cancels | pays},
    {"archive", "archived", cancels | updates},
    {"revoke", "revoked", cancels | updates},
    {"unsubscribe", "unsubscribed", cancels | updates},
    {"subscribe", "subscribed", changes},
    {"close", "closed", updates | cancels},
    {"resolve", "resolved", updates | cancels},
    {"complete", "completed", any_effect},
    {"finalize", "finalized finalised", any_effect},
    {"reopen", "reopened", updates},
    {"escalate", "escalated", changes | sends},
    {"send", "sent", sends},
    {"resend", "resent", sends},
    {"email", "emailed", sends},
    {"text", "texted", sends},
    {"notify", "notified", sends},
    {"inform", "informed", sends},
    {"alert", "alerted", sends},
    {"message", "messaged", sends},
    {"contact", "contacted", sends},
    {"phone", "phoned", sends},
    {"post", "posted", sends | creates},
    {"reply", "replied", sends | creates},
    {"respond", "responded", sends | creates},
    {"forward", "forwarded", sends},
    {"invite", "invited", sends | changes},
    {"share", "shared", sends | updates},
    {"publish", "published", sends | deploys | changes},
    {"charge", "charged", pays},
    {"pay", "paid", pays},
    {"refund", "refunded", pays},
    {"reimburse", "reimbursed", pays},
    {"credit", "credited", pays | updates},
    {"transfer", "transferred", pays | updates | sends},
    {"issue", "issued", pays | creates | sends},
    {"process", "processed", any_effect},
    {"waive", "waived", pays | updates},
    {"grant", "granted", changes | pays},
    {"deactivate", "deactivated", updates | cancels},
    {"disable", "disabled", updates | cancels},
    {"block", "blocked", updates | cancels},
    {"suspend", "suspended", updates | cancels},
    {"enable", "enabled", updates},
    {"activate", "activated", updates | creates},
    {"unlock", "unlocked", updates},
    {"restore", "restored", updates | undoes},
    {"reset", "reset", updates | undoes},
    {"approve", "approved", updates},
    {"confirm", "confirmed", any_effect},
    {"export", "exported", creates | sends},
    {"import", "imported", changes},
    {"sync", "synced", changes},
    {"upload", "uploaded", changes | sends},
    {"provision", "provisioned", creates | deploys},
    {"release", "released", deploys | updates | creates},
    {"ship", "shipped", deploys},
    {"deploy", "deployed", deploys},
    {"promote", "promoted", deploys | updates},
    {"revert", "reverted", undoes | updates | deploys | commits},
    {"checkin", "", updates},
    {"rollback", "", undoes | updates | deploys},
    {"restart", "restarted", deploys | updates},
    {"migrate", "migrated", updates | deploys},
    {"commit", "committed", commits},
    {"push", "pushed", pushes | updates},
    {"install", "installed", installs},
    {"freeze", "froze frozen", updates},
    {"pause", "paused", updates},
    {"resume", "resumed", updates},
    {"redirect", "redirected", updates},
    {"leave", "left", changes | sends},
    {"comment", "commented", changes | sends},
    {"deliver", "delivered", sends},
    {"capture", "captured", pays},
    {"authorize", "authorized authorised", pays | updates},
    {"settle", "settled", pays},
    {"collect", "collected", pays},
    {"donate", "donated", pays},
    {"withdraw", "withdrew withdrawn", pays | cancels | updates},
    {"onboard", "onboarded", changes},
    {"dispatch", "dispatched", sends | deploys},
    {"broadcast", "broadcast", sends},
    {"hold", "held", creates},
    {"sign", "signed", changes},
    {"signup", "", changes},
    {"enrol", "enrolled", changes},
    {"rebook", "rebooked", changes},
    {"increase", "increased", updates},
    {"decrease", "decreased", updates},
    {"reduce", "reduced", updates},
    {"lower", "lowered", updates},
    {"bump", "bumped", updates},
    {"configure", "configured", updates},
    {"launch", "launched", deploys | creates},
    {"trigger", "triggered", deploys | creates},
    {"start", "started", deploys | changes},
    {"stop", "stopped", updates | cancels},
    {"terminate", "terminated", updates | cancels},
    {"drop", "dropped", cancels | updates},
    {"clear", "cleared", cancels | updates},
    {"clone", "cloned", creates},
    {"copy", "copied", changes},
    {"duplicate", "duplicated", creates},
    {"redeem", "redeemed", pays | updates},
    {"return", "returned", changes | pays},
    {"run", "ran", any_effect},
    {"execute", "executed", any_effect},
};

// Verbs of the names of tools that are nouns as well, so that a reading verb in the name takes precedence.
constexpr std::string_view nouns_too[] = {
    "book",   "order",    "email",    "text",   "message",   "contact",  "phone",   "post",  "charge",
    "refund", "credit",   "transfer", "issue",  "process",   "tag",      "label",   "link",  "file",
    "log",    "record",   "place",    "set",    "schedule",  "exchange", "release", "patch", "commit",
    "invite", "purchase", "import",   "export", "close",     "open",     "secure",  "share", "return",
    "hold",   "run",      "start",    "copy",   "duplicate", "sign"};

constexpr std::string_view reading_verbs[] = {
    "get",       "list",    "search",  "find",      "read",     "show",     "view",     "fetch",
    "lookup",    "look",    "check",   "query",     "retrieve", "describe", "count",    "calculate",
    "think",     "browse",  "select",  "status",    "verify",   "validate", "estimate", "quote",
    "preview",   "inspect", "grep",    "cat",       "ls",       "head",     "tail",     "availability",
    "available", "history", "details", "detail",    "info",     "diff",     "download", "load",
    "compare",   "explain", "plan",    "peek",      "poll",     "wait",     "ask",      "calculator",
    "whoami",    "echo",    "pwd",     "open_file", "goto",     "todo",     "todowrite"};

struct Noun {
  std::string_view words;
  int thing;
  Effects effects;
};

constexpr Noun nouns[] = {
    {"booking bookings reservation reservations trip itinerary stay request change changes", general_thing, creates},
    {"flight flights airline airfare fare leg", 2, 0},
    {"hotel hotels room rooms suite lodging accommodation", 3, 0},
    {"table tables restaurant restaurants dinner lunch brunch", 4, 0},
    {"car cars rental vehicle", 5, 0},
    {"train trains rail", 6, 0},
    {"ticket tickets case cases incident", 7, 0},
    {"contact contacts lead leads customer customers account accounts profile client company record records person persons people member",
     8, 0},
    {"deal deals opportunity opportunities pipeline stage", 9, 0},
    {"email emails mail message messages sms notification notifications reply", 10, sends},
    {"meeting meetings event events calendar appointment appointments demo call invite invitation invitations session",
     11, 0},
    {"task tasks todo reminder reminders followup", 12, 0},
    {"invoice invoices bill", 13, 0},
    {"refund refunds reimbursement", 14, pays},
    {"payment payments charge charges transaction deposit", 15, pays},
    {"order orders purchase shipment", 16, 0},
    {"subscription subscriptions membership", 17, 0},
    {"note notes comment comments", 18, 0},
    {"pr prs pull mr merge", request_thing, pushes},
    {"branch", 20, 0},
    {"seat seats", 21, 0},
    {"bag bags baggage baggages luggage", 22, 0},
    {"insurance", 23, 0},
    {"address", 24, 0},
    {"password", 25, 0},
    {"cancellation cancellations", general_thing, cancels},
    {"discount coupon voucher credit certificate", 26, pays},
    {"commit", 27, commits},
    {"release deployment deploy rollout", 28, deploys},
    {"migration migrations", 0, updates | deploys},
    {"service build fix database schema file files code bug issue document upgrade update", 0, 0},
};

constexpr std::string_view alternatives[] = {
    "economy business first premium_economy",
    "low medium normal high urgent critical",
    "staging production prod development dev",
    "aisle window middle",
    "morning afternoon evening",
    "vegetarian vegan kosher halal",
    "single double twin king queen suite studio",
    "basic starter pro professional enterprise",
    "monday tuesday wednesday thursday friday saturday sunday",
    "won lost",
    "indoor outdoor patio",
    "one-way round-trip",
};

struct Vocabulary {
  std::map<std::string, const Verb*, std::less<>> verbs;
  std::map<std::string, const Noun*, std::less<>> nouns;
  std::map<std::string, int, std::less<>> alternatives;
};

template <typename Use>
void each_word(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

const Vocabulary& vocabulary() {
  static const Vocabulary all = [] {
    Vocabulary made;
    for (const Verb& verb : verbs) {
      made.verbs.emplace(verb.base, &verb);
      each_word(verb.past, [&](std::string_view past) { made.verbs.emplace(past, &verb); });
    }
    for (const Noun& noun : nouns)
      each_word(noun.words, [&](std::string_view word) { made.nouns.emplace(word, &noun); });
    int group = 0;
    for (const std::string_view row : alternatives) {
      ++group;
      each_word(row, [&](std::string_view word) { made.alternatives.emplace(word, group); });
    }
    return made;
  }();
  return all;
}

std::string alternatives_pattern(bool past) {
  std::string pattern;
  for (const Verb& verb : verbs) {
    each_word(past ? verb.past : verb.base, [&](std::string_view word) {
      if (!pattern.empty()) pattern += '|';
      pattern += word;
    });
  }
  return pattern;
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

std::vector<std::string> words_of(std::string_view name) {
  constexpr std::size_t words_kept_max = 32;
  std::vector<std::string> words;
  std::string word;
  const auto end = [&] {
    if (!word.empty() && words.size() < words_kept_max) words.push_back(word);
    word.clear();
  };
  for (std::size_t at = 0; at < name.size() && words.size() < words_kept_max; ++at) {
    const char c = name[at];
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      end();
      continue;
    }
    if (is_upper(c) && at > 0 && is_lower(name[at - 1])) end();
    word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  end();
  return words;
}

Effects effects_of_verb(std::string_view word) {
  const auto found = vocabulary().verbs.find(word);
  return found == vocabulary().verbs.end() ? 0 : found->second->effects;
}

Effects effects_of_noun(std::string_view word) {
  const auto found = vocabulary().nouns.find(word);
  return found == vocabulary().nouns.end() ? 0 : found->second->effects;
}

std::string_view base_of(std::string_view word) {
  const auto found = vocabulary().verbs.find(word);
  return found == vocabulary().verbs.end() ? std::string_view() : found->second->base;
}

bool is_reading_verb(std::string_view word) {
  return std::find(std::begin(reading_verbs), std::end(reading_verbs), word) != std::end(reading_verbs);
}

bool is_noun_too(std::string_view word) {
  return std::find(std::begin(nouns_too), std::end(nouns_too), word) != std::end(nouns_too);
}

std::string past_forms() { return alternatives_pattern(true); }
std::string base_forms() { return alternatives_pattern(false); }

int thing_of(std::string_view noun) {
  const auto found = vocabulary().nouns.find(noun);
  return found == vocabulary().nouns.end() ? 0 : found->second->thing;
}

int alternatives_of(std::string_view word) {
  const auto found = vocabulary().alternatives.find(word);
  return found == vocabulary().alternatives.end() ? 0 : found->second;
}

}  // namespace muniment::evidence::run_judge
