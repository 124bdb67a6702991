// Parses pointers and citations.
#include "evidence/pointer.hpp"

#include <algorithm>
#include <charconv>

#include "base/utf8.hpp"

namespace muniment::evidence {
namespace {

constexpr std::string_view citation_open = "[ref:";

std::optional<std::int64_t> parse_count(std::string_view digits) {
  if (digits.empty() || digits.size() > 19) return std::nullopt;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

Error bad_pointer(std::string_view text, std::string_view why) {
  return Error(Errc::invalid_argument,
               "\"" + std::string(text.substr(0, 200)) + "\" is not a pointer: " + std::string(why));
}

Status set_run(Pointer& pointer, std::string_view run_id) {
  if (run_id != log_run_id) RETURN_IF_ERROR(check_run_id(run_id));
  pointer.run_id = run_id;
  return success();
}

Result<Pointer> parse_artifact(Pointer pointer, std::string_view rest) {
  const std::size_t hash_sign = rest.find('#');
  const std::string_view path = rest.substr(0, hash_sign);
  const std::size_t slash = path.find('/');
  const auto id = parse_uuid(slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1));
  if (!id) return bad_pointer(pointer.text, "want artifact://<run>/<artifact_id>");
  RETURN_IF_ERROR(set_run(pointer, path.substr(0, slash)));
  pointer.id = *id;
  if (hash_sign != std::string_view::npos) {
    pointer.span = parse_span(rest.substr(hash_sign + 1));
    if (!pointer.span)
      return bad_pointer(pointer.text, "a span is #b<start>-<end>, and its end is not before its start");
  }
  return pointer;
}

Result<Pointer> parse_manifest(Pointer pointer, std::string_view rest) {
  const auto id = parse_uuid(rest);
  if (!id) return bad_pointer(pointer.text, "want manifest://<manifest_id>");
  pointer.id = *id;
  return pointer;
}

Result<Pointer> parse_snapshot(Pointer pointer, std::string_view rest) {
  const std::size_t slash = rest.find('/');
  const auto seq = parse_count(slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1));
  if (!seq) return bad_pointer(pointer.text, "want snap://<run>/<seq>");
  RETURN_IF_ERROR(set_run(pointer, rest.substr(0, slash)));
  pointer.seq = *seq;
  return pointer;
}

Result<Pointer> parse_run(Pointer pointer, std::string_view rest) {
  RETURN_IF_ERROR(set_run(pointer, rest));
  return pointer;
}

Result<Pointer> parse_log(Pointer pointer, std::string_view rest) {
  if (rest == "validation" || rest == "metrics") return pointer;
  constexpr std::string_view before = "runs/";
  constexpr std::string_view after = "/events";
  if (!rest.starts_with(before) || !rest.ends_with(after) || rest.size() < before.size() + after.size()) {
    return bad_pointer(pointer.text, "want log://runs/<run>/events, log://validation or log://metrics");
  }
  RETURN_IF_ERROR(set_run(pointer, rest.substr(before.size(), rest.size() - before.size() - after.size())));
  return pointer;
}

bool is_fragment(std::string_view fragment) {
  if (fragment.starts_with('b')) return parse_span(fragment).has_value();
  return (fragment.starts_with('p') || fragment.starts_with('e')) && parse_count(fragment.substr(1));
}

// e<run_seq> or e<run_seq>.<n>
Result<Pointer> parse_event_of_run(Pointer pointer) {
  const std::string_view fragment = pointer.fragment;
  const std::size_t dot = fragment.find('.');
  const auto run_seq = fragment.starts_with('e')
                           ? parse_count(fragment.substr(1, dot == std::string_view::npos ? dot : dot - 1))
                           : std::nullopt;
  if (dot != std::string_view::npos) pointer.passage = parse_count(fragment.substr(dot + 1));
  if (!run_seq || (dot != std::string_view::npos && !pointer.passage)) {
    return bad_pointer(pointer.text,
                       "in the corpus run a fragment is e<run_seq>, or e<run_seq>.<n> for a passage of it");
  }
  RETURN_IF_ERROR(set_run(pointer, pointer.document));
  pointer.seq = *run_seq;
  return pointer;
}

Result<Pointer> parse_evidence(Pointer pointer, std::string_view rest) {
  const std::size_t slash = rest.find('/');
  const std::size_t hash_sign = rest.find('#');
  if (slash == std::string_view::npos || slash == 0 || hash_sign == std::string_view::npos || hash_sign < slash) {
    return bad_pointer(pointer.text, "want ev://<corpus>/<document>#<fragment>?v=<revision>");
  }
  pointer.corpus = rest.substr(0, slash);
  const std::string_view encoded = rest.substr(slash + 1, hash_sign - slash - 1);
  const auto document = percent_decode(encoded);
  const bool is_text =
      document && first_invalid_utf8(*document) == std::string_view::npos && document->find('\0') == std::string::npos;
  if (!is_text || document->empty() || encoded.find('?') != std::string_view::npos)
    return bad_pointer(pointer.text, "its document is not percent-encoded");
  pointer.document = *document;
  std::string_view fragment = rest.substr(hash_sign + 1);
  if (const std::size_t version = fragment.find("?v="); version != std::string_view::npos) {
    pointer.revision = fragment.substr(version + 3);
    fragment = fragment.substr(0, version);
  }
  pointer.fragment = fragment;
  if (pointer.corpus == "run") return parse_event_of_run(std::move(pointer));
  if (!is_fragment(fragment)) return bad_pointer(pointer.text, "a fragment is p<n>, b<start>-<end> or e<run_seq>");
  if (fragment.starts_with('p')) pointer.seq = *parse_count(fragment.substr(1));
  return pointer;
}

struct Scheme {
  std::string_view prefix;
  PointerKind kind;
  Result<Pointer> (*parse)(Pointer, std::string_view);
};
constexpr Scheme schemes[] = {
    {"artifact://", PointerKind::artifact, parse_artifact},
    {"manifest://", PointerKind::manifest, parse_manifest},
    {"snap://", PointerKind::snapshot, parse_snapshot},
    {"run://", PointerKind::run, parse_run},
    {"log://", PointerKind::log, parse_log},
    {"ev://", PointerKind::evidence, parse_evidence},
};

}  // namespace

std::string_view name_of(PointerKind kind) {
  switch (kind) {
    case PointerKind::artifact: return "artifact";
    case PointerKind::manifest: return "manifest";
    case PointerKind::snapshot: return "snapshot";
    case PointerKind::run: return "run";
    case PointerKind::log: return "log";
    case PointerKind::evidence: return "evidence";
  }
  return "";
}

Pointer Pointer::canonical() const {
  Pointer same = *this;
  if (kind == PointerKind::artifact) {
    same.text = "artifact://" + run_id + "/" + id.text();
    if (span) same.text += "#b" + std::to_string(span->start) + "-" + std::to_string(span->end);
  } else if (kind == PointerKind::manifest) {
    same.text = "manifest://" + id.text();
  } else if (kind == PointerKind::evidence && !revision.empty()) {
    same.text = evidence_pointer(corpus, document, fragment, revision);
  }
  return same;
}

std::string Pointer::name() const {
  const std::size_t scheme_end = text.find("://") + 3;
  return text.substr(scheme_end, text.find('#', scheme_end) - scheme_end);
}

std::optional<ByteSpan> parse_span(std::string_view fragment) {
  if (!fragment.starts_with('b')) return std::nullopt;
  const std::size_t dash = fragment.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto start = parse_count(fragment.substr(1, dash - 1));
  const auto end = parse_count(fragment.substr(dash + 1));
  if (!start || !end || *end < *start) return std::nullopt;
  return ByteSpan{*start, *end};
}

std::string evidence_pointer(std::string_view corpus, std::string_view document, std::string_view fragment,
                             std::string_view revision) {
  std::string out = "ev://" + std::string(corpus) + "/";
  for (std::size_t at = 0; at <= document.size();) {  // keeps the slashes, so that a path stays readable
    const std::size_t slash = std::min(document.find('/', at), document.size());
    out += percent_encode(document.substr(at, slash - at));
    if (slash < document.size()) out += '/';
    at = slash + 1;
  }
  return out.append("#").append(fragment).append("?v=").append(revision);
}

std::string document_uri(std::string_view corpus, std::string_view document) {
  std::string uri = evidence_pointer(corpus, document, "", "");
  uri.resize(uri.find('#'));
  return uri.replace(0, std::string_view("ev://").size(), document_scheme);
}

Result<DocumentName> parse_document_uri(std::string_view uri) {
  // The same spelling as an ev:// pointer up to the fragment.
  if (uri.starts_with(document_scheme)) {
    auto parsed = parse_pointer("ev://" + std::string(uri.substr(document_scheme.size())) + "#p0?v=0000000000000000");
    if (parsed && parsed->run_id.empty()) return DocumentName{std::move(parsed->corpus), std::move(parsed->document)};
  }
  return Error(Errc::invalid_argument, "PARSE_ERROR: write aether://<collection>/<relative_path>");
}

std::string event_pointer(std::string_view document, std::optional<std::int64_t> passage, std::string_view revision) {
  std::string out = "ev://run/" + std::string(document);
  if (passage) out.append(".").append(std::to_string(*passage));
  return out.append("?v=").append(revision);
}

Result<Pointer> parse_pointer(std::string_view text) {
  if (text.size() > pointer_bytes_max) {
    return Error(Errc::invalid_argument,
                 "a pointer of " + std::to_string(text.size()) + " bytes, limit " + std::to_string(pointer_bytes_max));
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f)
      return bad_pointer(text, "it contains white space or a control character");
  }
  for (const Scheme& scheme : schemes) {
    if (!text.starts_with(scheme.prefix)) continue;
    Pointer pointer;
    pointer.kind = scheme.kind;
    pointer.text = text;
    return scheme.parse(std::move(pointer), text.substr(scheme.prefix.size()));
  }
  return bad_pointer(text, "want artifact://, manifest://, snap://, run://, log:// or ev://");
}

std::vector<Citation> find_citations(std::string_view draft) {
  std::vector<Citation> citations;
  std::size_t from = 0;
  while ((from = draft.find(citation_open, from)) != std::string_view::npos) {
    const std::size_t close = draft.find(']', from);
    if (close == std::string_view::npos) break;
    const std::size_t begin = from + citation_open.size();
    citations.push_back({from, close + 1, std::string(draft.substr(begin, close - begin))});
    from = close + 1;
  }
  return citations;
}

}  // namespace muniment::evidence
