#include "store/logs/erasure.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "store/read/reader_impl.hpp"
#include "store/tables/run_row.hpp"

namespace muniment::store {
namespace {

// Types without user text that the verifier or the daemon needs: announcements of erasures, salted hashes of snapshots,
// the chain of keys, and the history of the log.
#define MUNIMENT_KEPT_TYPES "'event.redacted', 'artifact.redacted', 'snapshot.taken', 'key.rotated'"
#define MUNIMENT_NO_HASH "repeat('0', 64)"

// Advisory lock of a log. While a transaction holds it, nothing is erased.
#define MUNIMENT_ERASURE_LOCK "1836412522"

constexpr std::string_view columns_of_artifacts = "artifact_id, path, size_bytes, seq";

// Selects the artifacts that these bodies refer to: {"artifact_id": …} of a spilled part, or a string that is a pointer
// to one.
constexpr std::string_view referred_sql =
    "SELECT a.artifact_id, a.path, a.size_bytes, a.seq FROM artifact a WHERE a.log_no = $1 AND a.run_id = $2 "
    "AND a.hash <> " MUNIMENT_NO_HASH
    " AND a.artifact_id IN (SELECT (m[1])::uuid FROM unnest($3::text[]) body, regexp_matches(body, "
    "'\"(?:(?:text_|chunks_)?artifact_id\"\\s*:\\s*\"|artifact://[^\"/]+/)"
    "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})', 'gi') m)";

// Selects large states stored from the first erased event on. After the erasure, states stored after its announcement
// were folded without the erased content and are excluded.
constexpr std::string_view states_sql =
    "SELECT a.artifact_id, a.path, a.size_bytes, a.seq FROM snapshot s JOIN artifact a USING (artifact_id) "
    "WHERE s.log_no = $1 AND s.run_no = $2 AND s.seq >= (SELECT min(wanted) FROM unnest($3::bigint[]) wanted) AND s.salt IS NOT NULL "
    "AND a.hash <> " MUNIMENT_NO_HASH
    " AND (EXISTS (SELECT FROM event e WHERE e.log_no = $1 AND e.seq = ANY ($3::bigint[]) AND e.salt IS NOT NULL) "
    "OR s.seq < (SELECT min(e.seq) FROM event e WHERE e.log_no = $1 AND e.run_no = $2 AND e.type = 'event.redacted' "
    "AND (e.body->>'seq')::bigint = ANY ($3::bigint[])))";

constexpr std::string_view counts_sql =
    "SELECT (SELECT count(*) FROM manifest WHERE log_no = $1 AND seq = ANY ($3::bigint[]) AND salt IS NOT NULL), "
    "(SELECT count(*) FROM claim WHERE log_no = $1 AND seq = ANY ($3::bigint[])), "
    "(SELECT count(*) FROM evidence WHERE log_no = $1 AND seq = ANY ($3::bigint[])), "
    "(SELECT count(*) FROM pointer WHERE log_no = $1 AND seq = ANY ($3::bigint[])), "
    "(SELECT count(*) FROM snapshot WHERE log_no = $1 AND run_no = $2 AND salt IS NOT NULL "
    "AND (seq >= (SELECT min(wanted) FROM unnest($3::bigint[]) wanted) OR artifact_id = ANY ($4::uuid[]))), "
    "(SELECT count(*) FROM document WHERE log_no = $1 AND seq = ANY ($3::bigint[]))";

// Selects revisions whose bytes or text these artifacts hold.
constexpr std::string_view documents_sql =
    "SELECT d.seq FROM document d WHERE d.log_no = $1 AND (d.artifact_id = ANY ($2::uuid[]) OR d.text_artifact_id = ANY ($2::uuid[])) "
    "AND d.ended_by IS DISTINCT FROM 'erased'";

// Selects the answers that cite a passage of these revisions by its hash; the followers "report" and "run" may be
// behind.
constexpr std::string_view answers_sql =
    "WITH erased AS MATERIALIZED (SELECT DISTINCT encode(hash, 'hex') AS hash FROM chunk WHERE log_no = $1 AND seq = ANY ($2::bigint[])), "
    "answer AS (SELECT seq FROM report_place WHERE log_no = $1 AND type = 'question.answered' AND seq > $3 UNION "
    "SELECT seq FROM event WHERE log_no = $1 AND type = 'question.answered' AND seq > $3 AND seq >= "
    "coalesce((SELECT next_seq FROM follower WHERE log_no = $1 AND name = 'report'), 0)) "
    "SELECT e.seq, coalesce(r.run_id, (SELECT began.body ->> 'run_id' FROM event began WHERE began.log_no = $1 AND "
    "began.run_no = e.run_no AND began.run_seq = 0), '_log') FROM answer JOIN event e ON e.log_no = $1 AND e.seq = answer.seq "
    "LEFT JOIN run r ON r.log_no = $1 AND r.run_no = e.run_no "
    "WHERE EXISTS (SELECT FROM erased) AND NOT e.seq = ANY ($2::bigint[]) AND EXISTS (SELECT FROM json_array_elements(e.body -> 'citations') citation "
    "JOIN erased ON erased.hash = citation ->> 'hash') ORDER BY e.seq";

constexpr std::size_t events_per_page = 4'096;
constexpr std::size_t bytes_per_page = 8 << 20;

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  return text;
}

// Returns whether the event removes content. Without it, the next rebuild or the successor of a restored log would
// restore that content. The SQL above need not name these types, because they are events of the run _log, and
// erase_copies still accepts announcements of older daemons.
bool withdraws(std::string_view type) { return type == "document.retracted" || type == "source.revoked"; }

bool kept_type(std::string_view type) {
  return withdraws(type) || type == "event.redacted" || type == "artifact.redacted" || type == "snapshot.taken" ||
         type == "key.rotated" || type.starts_with("log.");
}

std::vector<std::string> ids_of(const std::vector<ErasedArtifact>& artifacts) {
  std::vector<std::string> ids;
  for (const ErasedArtifact& artifact : artifacts) ids.push_back(artifact.artifact_id.text());
  return ids;
}

class Planner {
 public:
  Planner(Reader& reader, std::int16_t log_no) : reader_(reader), log_no_(log_no) {}

  Result<ErasurePlan> plan(const ErasureTarget& target) {
    if (target.seq) RETURN_IF_ERROR(take_event(*target.seq));
    if (target.artifact_id) RETURN_IF_ERROR(take_artifact(*target.artifact_id));
    if (target.run_id) RETURN_IF_ERROR(take_run(*target.run_id));
    if (!target.run_id) RETURN_IF_ERROR(find_copies_of_part(0));
    return complete();
  }

  // Plans an earlier erasure again, including copies made since.
  Result<ErasurePlan> plan_again(const ErasurePlan& before) {
    plan_.run_no = before.run_no;
    plan_.run_id = before.run_id;
    plan_.seqs = before.seqs;
    plan_.artifacts = before.artifacts;
    if (plan_.run_no == 0) {
      RETURN_IF_ERROR(guarded(reader_.connection(), "looking for documents", [&] {
        take_documents(plan_.artifacts);
        return Done{};
      }));
    }
    RETURN_IF_ERROR(find_copies_of_part(before.seqs.size()));
    return complete();
  }

  // Plans for artifacts that may belong to another run. Returns nullopt if no corpus contains them.
  Result<std::optional<ErasurePlan>> plan_documents(const std::vector<ErasedArtifact>& artifacts) {
    plan_.run_no = 0;
    plan_.run_id = log_run_id;
    RETURN_IF_ERROR(guarded(reader_.connection(), "looking for documents", [&] {
      take_documents(artifacts);
      return Done{};
    }));
    if (plan_.seqs.empty()) return std::optional<ErasurePlan>();
    RETURN_IF_ERROR(find_copies_of_part(0));
    ASSIGN_OR_RETURN(ErasurePlan plan, complete());
    return std::optional(std::move(plan));
  }

 private:
  Result<ErasurePlan> complete() {
    ASSIGN_OR_RETURN(ErasurePlan plan, guarded(reader_.connection(), "looking for copies", [&] {
                       find_states();
                       return std::move(plan_);
                     }));
    std::vector<std::string> pointers;
    for (const ErasedArtifact& artifact : plan.artifacts) {
      pointers.push_back("artifact://" + plan.run_id + "/" + artifact.artifact_id.text());
    }
    if (!pointers.empty()) {
      ASSIGN_OR_RETURN(const auto needed, reader_.needed(pointers));
      plan.needed.assign(needed.begin(), needed.end());
    }
    return plan;
  }

  Status take_event(std::int64_t seq) {
    ASSIGN_OR_RETURN(const auto event, reader_.event_at(seq));
    if (!event) return Error(Errc::not_found, "no event " + std::to_string(seq));
    if (!event->body) return Error(Errc::conflict, "event " + std::to_string(seq) + " is erased already");
    if (withdraws(event->type)) {
      return Error(
          Errc::invalid_argument,
          fmt::format(
              "event {} is a {}: erasing it would restore the content that it removed. It is kept, with its reason. "
              "To erase a document itself, name the document.revised that brought it.",
              seq, event->type));
    }
    if (kept_type(event->type)) {
      return Error(
          Errc::invalid_argument,
          "event " + std::to_string(seq) + " is a " + event->type +
              ": it holds no user text, and the log cannot be read without it. Erase the event that holds the text.");
    }
    plan_.run_no = event->run_no;
    plan_.run_id = event->run_id;
    plan_.seqs.push_back(seq);
    if (event->type != "artifact.stored") return success();
    const auto body = json::parse(*event->body);
    const auto id = body ? parse_uuid(body->root()["artifact_id"].string_or("")) : std::nullopt;
    return id ? take_artifact(*id) : success();
  }

  Status take_artifact(const Uuid& id) {
    ASSIGN_OR_RETURN(const auto row, reader_.artifact(id));
    if (!row) return Error(Errc::not_found, "no artifact " + id.text());
    if (is_erased(*row)) return Error(Errc::conflict, "artifact " + id.text() + " is erased already");
    ASSIGN_OR_RETURN(const auto event, reader_.event_at(row->seq));
    if (!event) return Error(Errc::corrupt, "artifact " + id.text() + " has no event. Run muniment-verify");
    plan_.run_no = event->run_no;
    plan_.run_id = row->run_id;
    add_artifact({id, row->path, row->size_bytes}, row->seq);
    return success();
  }

  Status take_run(const std::string& run_id) {
    ASSIGN_OR_RETURN(const auto run, reader_.load_run(run_id));
    if (!run || run->view().run_no <= 0) {
      Error error(Errc::not_found, "no run " + run_id);
      error.run_id = run_id;
      return error;
    }
    plan_.run_no = run->view().run_no;
    plan_.run_id = run_id;
    ASSIGN_OR_RETURN(plan_.seqs, guarded(reader_.connection(), "reading the events of a run", [&] {
                       return integers("erase_run_events",
                                       "SELECT seq FROM event WHERE log_no = $1 AND run_no = $2 AND salt IS NOT NULL "
                                       "AND type NOT IN (" MUNIMENT_KEPT_TYPES ")",
                                       Params().integer(log_no_).integer(plan_.run_no));
                     }));
    if (plan_.seqs.empty()) return Error(Errc::conflict, "run " + run_id + " is erased already");
    return guarded(reader_.connection(), "reading the artifacts of a run", [&] {
      add_artifacts("erase_run_artifacts",
                    "SELECT " + std::string(columns_of_artifacts) +
                        " FROM artifact WHERE log_no = $1 AND run_id = $2 AND hash <> " MUNIMENT_NO_HASH,
                    Params().integer(log_no_).text(run_id));
      return Done{};
    });
  }

  // For an event or an artifact: finds all content to which it refers, and the events that preview that content.
  // `looked_at` is the number of events that an earlier plan examined, possibly a whole run; previews of these are not
  // searched either.
  Status find_copies_of_part(std::size_t looked_at) {
    const std::int64_t from =
        looked_at == 0 ? 0
                       : *std::ranges::max_element(plan_.seqs.begin(),
                                                   plan_.seqs.begin() + static_cast<std::ptrdiff_t>(looked_at)) +
                             1;
    // The documents of one ingest share an artifact, and each may have further ones. Repeats until it finds nothing
    // new.
    while (looked_at < plan_.seqs.size()) {
      std::vector<std::string> bodies;
      for (; looked_at < plan_.seqs.size(); ++looked_at) {
        ASSIGN_OR_RETURN(auto event, reader_.event_at(plan_.seqs[looked_at]));
        if (!event || !event->body) continue;
        const auto carried = plan_.run_no == 0 ? carried_from(*event->body) : std::nullopt;
        if (carried) plan_.carried.push_back(*carried);
        bodies.push_back(*std::move(event->body));
      }
      RETURN_IF_ERROR(guarded(reader_.connection(), "looking for artifacts", [&] {
        add_artifacts("erase_referred", referred_sql, Params().integer(log_no_).text(plan_.run_id).texts(bodies));
        if (plan_.run_no == 0) take_documents(plan_.artifacts);
        return Done{};
      }));
    }
    return plan_.artifacts.empty() ? success() : find_previews(from);
  }

  // Adds the revisions that these artifacts hold; they are events of the run _log.
  void take_documents(const std::vector<ErasedArtifact>& artifacts) {
    for (const std::int64_t seq :
         integers("erase_documents", documents_sql, Params().integer(log_no_).texts(ids_of(artifacts)))) {
      if (std::ranges::find(plan_.seqs, seq) == plan_.seqs.end()) plan_.seqs.push_back(seq);
    }
  }

  // Finds events of the run that show the beginning of one of the artifacts.
  Status find_previews(std::int64_t from_seq) {
    EventFilter rest_of_run;
    rest_of_run.from_seq = from_seq;
    rest_of_run.run_no = plan_.run_no;
    rest_of_run.from_run_seq = 0;
    for (;;) {
      ASSIGN_OR_RETURN(const std::vector<events::Event> page,
                       reader_.events(rest_of_run, events_per_page, bytes_per_page));
      if (page.empty()) return success();
      for (const events::Event& event : page) {
        if (event.body && !kept_type(event.type) && shows_artifact(*event.body)) plan_.seqs.push_back(event.seq);
      }
      rest_of_run.from_run_seq = page.back().run_seq + 1;
    }
  }

  bool shows_artifact(std::string_view body) const {
    if (body.find("\"preview\"") == std::string_view::npos) return false;
    const std::string lower = lower_case(std::string(body));
    return std::ranges::any_of(plan_.artifacts, [&](const ErasedArtifact& artifact) {
      return lower.find(artifact.artifact_id.text()) != std::string::npos;
    });
  }

  // Finds the states from the first erased event on, and counts the affected rows.
  void find_states() {
    if (plan_.run_no > 0) {
      add_artifacts("erase_states", states_sql, Params().integer(log_no_).integer(plan_.run_no).integers(plan_.seqs));
    }
    std::ranges::sort(plan_.seqs);
    plan_.seqs.erase(std::unique(plan_.seqs.begin(), plan_.seqs.end()), plan_.seqs.end());
    const pqxx::row counts =
        query(reader_.connection(), "erase_counts", counts_sql,
              Params().integer(log_no_).integer(plan_.run_no).integers(plan_.seqs).texts(ids_of(plan_.artifacts)))[0];
    plan_.manifests = integer_of(counts[0]);
    plan_.claims = integer_of(counts[1]);
    plan_.evidence = integer_of(counts[2]);
    plan_.pointers = integer_of(counts[3]);
    plan_.snapshots = integer_of(counts[4]);
    plan_.documents = integer_of(counts[5]);
  }

  // Adds the artifact with its artifact.stored event, which holds the metadata and the unsalted hash.
  void add_artifact(ErasedArtifact artifact, std::int64_t stored_seq) {
    const bool known = std::ranges::any_of(
        plan_.artifacts, [&](const ErasedArtifact& other) { return other.artifact_id == artifact.artifact_id; });
    if (known) return;
    plan_.artifacts.push_back(std::move(artifact));
    plan_.seqs.push_back(stored_seq);
  }

  void add_artifacts(std::string_view name, std::string_view sql, const Params& params) {
    for (const pqxx::row& row : query(reader_.connection(), name, sql, params)) {
      add_artifact({uuid_of(row[0]), text_of(row[1]), integer_of(row[2])}, integer_of(row[3]));
    }
  }

  std::vector<std::int64_t> integers(std::string_view name, std::string_view sql, const Params& params) {
    std::vector<std::int64_t> found;
    for (const pqxx::row& row : query(reader_.connection(), name, sql, params)) found.push_back(integer_of(row[0]));
    return found;
  }

  Reader& reader_;
  const std::int16_t log_no_;
  ErasurePlan plan_;
};

std::string row_json(const RunRow& row) {
  json::Writer out;
  out.begin_object().member("agent", row.agent).raw_member("labels", stored_labels(row));
  const auto optional = [&out](std::string_view name, const std::optional<std::string>& text) {
    if (text) out.member(name, *text);
  };
  optional("goal", row.goal);
  optional("parent", row.parent);
  optional("external_id", row.external_id);
  optional("outcome", row.outcome);
  if (row.halt) out.raw_member("halt", *row.halt);
  return std::move(out.end_object()).text();
}

}  // namespace

std::optional<CarriedFrom> carried_from(std::string_view body) {
  if (body.find("\"carried_from\"") == std::string_view::npos) return std::nullopt;
  const auto parsed = json::parse(body);
  const json::Value from = parsed ? parsed->root()["carried_from"] : json::Value();
  const auto log_no = from["log_no"].as_int();
  const auto seq = from["seq"].as_int();
  if (!log_no || !seq) return std::nullopt;
  return CarriedFrom{static_cast<std::int16_t>(*log_no), *seq};
}

namespace {

Result<ErasurePlan> with_documents(Reader& reader, std::int16_t log_no, ErasurePlan plan) {
  if (plan.run_no == 0 || plan.artifacts.empty()) return plan;
  ASSIGN_OR_RETURN(auto documents, Planner(reader, log_no).plan_documents(plan.artifacts));
  if (documents) plan.elsewhere.push_back(*std::move(documents));
  return plan;
}

}  // namespace

Result<ErasurePlan> plan_erasure(Reader& reader, std::int16_t log_no, const ErasureTarget& target) {
  ASSIGN_OR_RETURN(ErasurePlan plan, Planner(reader, log_no).plan(target));
  ASSIGN_OR_RETURN(plan, with_documents(reader, log_no, std::move(plan)));
  std::vector<std::int64_t> seqs = plan.seqs;
  for (const ErasurePlan& other : plan.elsewhere) seqs.insert(seqs.end(), other.seqs.begin(), other.seqs.end());
  return guarded(reader.connection(), "looking for answers", [&] {
    for (const pqxx::row& row : query(reader.connection(), "erase_answers", answers_sql,
                                      Params().integer(log_no).integers(seqs).integer(*std::ranges::min_element(seqs))))
      plan.answers.push_back({integer_of(row[0]), text_of(row[1])});
    return std::move(plan);
  });
}

Result<ErasurePlan> plan_erasure_again(Reader& reader, std::int16_t log_no, const ErasurePlan& before) {
  ASSIGN_OR_RETURN(ErasurePlan plan, Planner(reader, log_no).plan_again(before));
  return with_documents(reader, log_no, std::move(plan));
}

Result<std::optional<std::string>> reason_to_keep(Reader& reader, std::int16_t log_no, std::int64_t run_no,
                                                  std::string_view run_id, Time now) {
  return guarded(reader.connection(), "looking for a reason to keep a run", [&]() -> std::optional<std::string> {
    const auto newest = [&](std::string_view name) {
      const pqxx::result rows = query(
          reader.connection(), "erase_keep",
          "SELECT seq, actor, " MUNIMENT_MICROS("recorded_at") ", body ->> $3::text FROM event WHERE log_no = $1 AND run_no = $2 "
          "AND type = 'run.annotated' AND body -> $3::text IS NOT NULL ORDER BY run_seq DESC LIMIT 1",
          Params().integer(log_no).integer(run_no).text(name));
      return rows.empty() ? std::optional<pqxx::row>() : rows[0];
    };
    if (const auto held = newest("legal_hold"); held && text_if((*held)[3]) == "true") {
      return "run " + std::string(run_id) + " is under a legal hold since " + format_time(time_of((*held)[2])) +
             " (seq " + text_of((*held)[0]) + ", set by " + text_of((*held)[1]) +
             "). Lift it with run.annotate {legal_hold: false}";
    }
    const auto kept = newest("retain_until");
    const auto text = kept ? text_if((*kept)[3]) : std::nullopt;
    if (!text) return std::nullopt;
    const auto until = parse_time(*text);  // a time that cannot be parsed is treated as in the future
    if (until && *until <= now) return std::nullopt;
    return "run " + std::string(run_id) + " is to be kept until " + (until ? format_time(*until) : *text) +
           " (retain_until, seq " + text_of((*kept)[0]) + ", set by " + text_of((*kept)[1]) +
           "). Change it with run.annotate {retain_until: …}: null or a past time lifts it";
  });
}

Result<std::optional<RunRow>> run_row_without(Reader& reader, std::int64_t run_no,
                                              const std::vector<std::int64_t>& seqs) {
  if (run_no == 0) return std::optional<RunRow>();
  ASSIGN_OR_RETURN(std::vector<events::Event> life, reader.life_of(run_no));
  RunRow row;
  bool concerned = false;
  for (events::Event& event : life) {
    if (std::ranges::binary_search(seqs, event.seq)) {
      event.body.reset();
      concerned = true;
    }
    apply_to_row(row, event);
  }
  return concerned ? std::optional(std::move(row)) : std::nullopt;
}

void hold_erasures(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no) {
  query(connection, work, "hold_erasures", "SELECT pg_advisory_xact_lock(" MUNIMENT_ERASURE_LOCK ", $1)",
        Params().integer(log_no));
}

namespace {

// Returns the names of Muniment's tables that match `which`, quoted for SQL.
std::vector<std::string> our_tables(pqxx::nontransaction& work, const std::string& which) {
  std::vector<std::string> names;
  for (const pqxx::row& row : work.exec(
           "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
           "WHERE n.nspname = 'public' AND pg_get_userbyid(c.relowner) = muniment_role('owner') AND " +
           which)) {
    names.emplace_back(row[0].c_str());
  }
  return names;
}

}  // namespace

Status analyse_tables(Connection& owner) {
  return guarded(owner, "analysing the tables", [&] {
    pqxx::nontransaction work(*owner.impl().link);
    // A partitioned table as a whole has statistics only if it was analysed explicitly.
    for (
        const std::string& name : our_tables(
            work,
            "(c.relkind = 'r' OR (c.relkind = 'p' AND EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = 'public' AND s.tablename = c.relname)))")) {
      work.exec("ANALYZE " + name);
    }
    return Done{};
  });
}

Status vacuum_tables(Connection& owner, std::int16_t log_no, const std::vector<std::int64_t>& seqs,
                     std::chrono::seconds limit) {
  std::map<std::int64_t, std::int64_t> one_of_each;  // keys: blocks, because no partition is smaller
  for (const std::int64_t seq : seqs) one_of_each.emplace(seq >> limits::partition_bits_min, seq);
  std::string touched;
  for (const auto& [block, seq] : one_of_each) touched += (touched.empty() ? "" : ",") + std::to_string(seq);
  std::string left;
  RETURN_IF_ERROR(guarded(owner, "vacuuming the tables", [&] {
    pqxx::nontransaction work(*owner.impl().link);
    const std::string before = work.exec1("SHOW statement_timeout")[0].c_str();
    work.exec(fmt::format("SET statement_timeout = '{}s'", limit.count()));
    for (
        const std::string& name : our_tables(
            work,
            fmt::format(
                "c.relkind = 'r' AND (NOT c.relispartition OR c.oid IN (SELECT tableoid FROM event WHERE log_no = {} AND seq IN ({})))",
                log_no, touched.empty() ? "-1" : touched))) {
      try {
        work.exec("VACUUM " + name);
      } catch (const pqxx::sql_error& error) {  // timed out or refused: continue with the other tables
        left += (left.empty() ? "" : ", ") + name + " (" + error.sqlstate() + ")";
      }
    }
    work.exec("SET statement_timeout = '" + before + "'");
    return Done{};
  }));
  return left.empty()
             ? success()
             : Error(Errc::unavailable, fmt::format("not vacuumed, within {} s each: {}", limit.count(), left));
}

Status erase_copies(Connection& redactor, std::int16_t log_no, std::int64_t run_no,
                    const std::vector<std::int64_t>& seqs, const std::vector<Uuid>& artifact_ids,
                    const std::optional<RunRow>& run_row) {
  return committed(redactor, "erasing", [&] {
    // The lock is taken before copies are erased. A rebuild that held the lock has then written its rows, which are
    // erased too. The logical message makes the transaction a write, so that its COMMIT waits for the standbys even if
    // no row changes.
    query(redactor, "erase_copies",
          "WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock(" MUNIMENT_ERASURE_LOCK
          ", $1)) "
          "SELECT erase_copies($1::smallint, $2, $3::bigint[], $4::uuid[], $5::jsonb), "
          "pg_logical_emit_message(true, 'muniment', 'erased') FROM held",
          Params()
              .integer(log_no)
              .integer(run_no)
              .integers(seqs)
              .uuids(artifact_ids)
              .text_or_null(run_row ? std::optional(row_json(*run_row)) : std::nullopt));
    return Done{};
  });
}

}  // namespace muniment::store
