// Starts the components of a daemon without its socket, and performs the steps of a request.
#include "support/method_caller.hpp"

#include "store/postgres/partitions.hpp"

namespace muniment::test {
namespace {

constexpr std::int16_t log_no = 1;

const SchemaSet& schemas() {
  static const auto set = SchemaSet::embedded();
  return *set;
}

}  // namespace

MethodCaller::MethodCaller() {
  store::Connection connection(uri_, store::DatabaseRole::writer);
  const Status opened = connection.ensure_open();
  if (!opened) throw std::runtime_error(opened.error().message);
  const auto made = store::ensure_partitions(connection, log_no, 0);
  if (!made) throw std::runtime_error(made.error().message);
  open();
}
MethodCaller::~MethodCaller() { close(); }

void MethodCaller::restart() {
  close();
  open();
}

void MethodCaller::close() {
  services_.reset();
  if (tail_) tail_->close();  // wakes the followers
  retrieval_.reset();
  reader_.reset();
  archiver_.reset();
  redactor_.reset();
  publisher_.reset();
  submitter_.reset();
  halts_.reset();
  snapshots_.reset();
  appender_.reset();
  tail_.reset();
  runs_.reset();
  files_.reset();
}

void MethodCaller::open() {
  runs_ = std::make_unique<store::RunDirectory>();
  tail_ = std::make_unique<store::Tail>();
  store::AppenderOptions options;
  options.uri = uri_;
  options.log_no = log_no;
  auto appender = store::Appender::open(options, clock_, *tail_, *runs_);
  if (!appender) throw std::runtime_error(appender.error().message);
  appender_ = *std::move(appender);
  store::ArtifactFilesOptions files;
  files.root = folder_.path() + "/artifacts";
  files.bytes_max = 1 << 30;
  auto opened = store::ArtifactFiles::open(files);
  if (!opened) throw std::runtime_error(opened.error().message);
  files_ = *std::move(opened);
  snapshot::SnapshotterOptions pace;
  pace.place = {uri_, log_no};
  snapshots_ = std::make_unique<snapshot::Snapshotter>(pace, clock_, *appender_, *runs_, *tail_, *files_);
  auto halts = evidence::HaltJournal::open({folder_.path() + "/halts", {uri_, log_no}}, *appender_, *runs_);
  if (!halts) throw std::runtime_error(halts.error().message);
  halts_ = *std::move(halts);
  auto publisher =
      audit::Publisher::open({folder_.path(), "muniment.test", {uri_, log_no}}, clock_, *appender_, *tail_);
  if (!publisher) throw std::runtime_error(publisher.error().message);
  publisher_ = *std::move(publisher);
  submitter_ =
      std::make_unique<audit::Submitter>(std::vector<audit::Keeper>(), *publisher_, clock_, [](const Error&) {});
  publisher_->start();
  reader_ = std::make_unique<store::Reader>(store::LogPlace{uri_, log_no});
  archive_ = std::make_unique<store::BodyArchive>(folder_.path() + "/archive");
  redactor_ = std::make_unique<audit::Redactor>(audit::RedactionOptions{folder_.path() + "/redactions", {uri_, log_no}},
                                                clock_, *appender_, *runs_, *tail_, *files_, *archive_, *snapshots_);
  archiver_ = std::make_unique<audit::Archiver>(store::LogPlace{uri_, log_no, folder_.path() + "/archive"}, clock_,
                                                *appender_, *runs_, *tail_, *publisher_, *archive_);
  // The tests of the methods do not search, because the search child is the daemon's program.
  retrieval::ServiceOptions searching;
  searching.place = {uri_, log_no};
  searching.search.engine.folder = folder_.path() + "/index";
  searching.search.command = {"/bin/false"};
  auto retrieval = retrieval::Service::start(std::move(searching), {clock_, *appender_, *runs_, *tail_, *files_});
  if (!retrieval) throw std::runtime_error(retrieval.error().message);
  retrieval_ = *std::move(retrieval);
  services_.reset(new gateway::Services{clock_, *appender_, *runs_, *tail_, *files_, *snapshots_, *halts_, *publisher_,
                                        *submitter_, *redactor_, *archiver_, *retrieval_, folder_.path(), uri_,
                                        folder_.path() + "/munimentd.sock", clock_.now()});
}

Result<gateway::Answer> MethodCaller::ask(std::string_view method, const std::string& params, std::string_view key,
                                          bool check_ids) {
  const gateway::MethodInfo* info = gateway::find_method(method);
  if (!info) return Error(Errc::invalid_argument, "no such method");
  texts_.push_back(params);
  auto document = json::parse(texts_.back());
  if (!document) return std::move(document).error();
  documents_.push_back(std::make_unique<json::Document>(*std::move(document)));
  const json::Value root = documents_.back()->root();
  RETURN_IF_ERROR(schemas().find("rpc/" + std::string(method) + "#params")->validate(root));
  const auto run = [&](store::Reader* reader) {
    gateway::Call call{caller, root, *services_, reader, clock_.monotonic() + std::chrono::seconds(30), key, check_ids};
    return info->function(call);
  };
  if (info->runs != gateway::Runs::on_worker && !check_ids) {
    auto answer = run(nullptr);
    if (!answer || !std::holds_alternative<gateway::NeedsWorker>(*answer)) return answer;
  }
  return run(reader_.get());
}

Result<gateway::Reply> MethodCaller::append(gateway::PendingAppend pending) {
  auto receipts = store::append_and_wait(*appender_, std::move(pending.request), std::chrono::seconds(60));
  if (receipts) return pending.finish(*services_, *receipts);
  if (pending.refused && receipts.error().conflict != AppendConflict::maybe_duplicate) {
    return pending.refused(*services_, std::move(receipts).error());
  }
  return std::move(receipts).error();
}

Outcome MethodCaller::call(std::string_view method, const std::string& params, std::string_view key) {
  for (const bool check_ids : {false, true}) {
    auto answer = ask(method, params, key, check_ids);
    if (!answer) return outcome_of(method, std::move(answer).error());
    if (auto* reply = std::get_if<gateway::Reply>(&*answer)) return outcome_of(method, *reply);
    auto reply = append(std::get<gateway::PendingAppend>(*std::move(answer)));
    if (reply || reply.error().conflict != AppendConflict::maybe_duplicate) return outcome_of(method, reply);
  }
  return outcome_of(method, store::requeue(AppendConflict::maybe_duplicate));
}

Outcome MethodCaller::outcome_of(std::string_view method, const Result<gateway::Reply>& reply) {
  Outcome outcome;
  if (!reply) {
    outcome.code = name_of(reply.error().code);
    outcome.text = reply.error().message;
    outcome.error = reply.error();
    outcome.document = std::make_shared<Result<json::Document>>(json::Document());
    return outcome;
  }
  outcome.text = reply->result;
  auto text = std::make_shared<std::string>(reply->result);
  auto parsed = json::parse(*text);
  EXPECT_TRUE(parsed.ok()) << *text;
  // The document contains views of its text, so that both are stored together.
  outcome.document = std::shared_ptr<Result<json::Document>>(new Result<json::Document>(std::move(parsed)),
                                                             [text](auto* held) { delete held; });
  const Status fits = schemas().find("rpc/" + std::string(method) + "#result")->validate((*outcome.document)->root());
  EXPECT_TRUE(fits.ok()) << method << ": " << (fits ? "" : fits.error().message) << "\n" << *text;
  return outcome;
}

}  // namespace muniment::test
