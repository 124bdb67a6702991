// Creates the log, and appends events and artifacts for tests.
#include "support/log_fixture.hpp"

#include "base/json/json.hpp"
#include "store/postgres/partitions.hpp"

namespace muniment::test {

void LogFixture::SetUp() {
  uri = fresh_database();
  store::ArtifactFilesOptions options;
  options.root = folder.path() + "/artifacts";
  options.bytes_max = 64 << 20;
  auto opened = store::ArtifactFiles::open(options);
  ASSERT_TRUE(opened) << opened.error().message;
  files = std::move(*opened);
  store::Connection connection(uri, store::DatabaseRole::writer);
  const auto made = store::ensure_partitions(connection, 1, 0, partition_bits);
  ASSERT_TRUE(made) << made.error().message;
  open_log();
}

void LogFixture::TearDown() { close_log(); }

void LogFixture::open_log() {
  tail = std::make_unique<store::Tail>();
  runs = std::make_unique<store::RunDirectory>();
  store::AppenderOptions options;
  options.uri = uri;
  auto opened = store::Appender::open(options, clock, *tail, *runs);
  ASSERT_TRUE(opened) << opened.error().message;
  appender = std::move(*opened);
  reader = std::make_unique<store::Reader>(store::LogPlace{uri, 1});
}

void LogFixture::close_log() {
  if (appender) appender->stop();
  if (tail) tail->close();
  appender.reset();
}

Result<std::vector<events::Receipt>> LogFixture::append(store::AppendRequest request) {
  if (request.actor.empty()) request.actor = "uid:1000";
  return store::append_and_wait(*appender, std::move(request), std::chrono::seconds(60));
}

events::Receipt LogFixture::append(const std::shared_ptr<store::Run>& run, std::string_view type,
                                   const std::string& body, std::vector<store::Row> rows) {
  store::AppendRequest request;
  events::NewEvent event;
  event.type = type;
  event.body = body;
  event.event_id = make_uuid_v7(clock.now());
  event.event_id_is_ours = true;
  events::seal(event);
  request.events.push_back({run, std::move(event)});
  for (store::Row& row : rows) request.rows.push_back({0, std::move(row)});
  auto receipts = append(std::move(request));
  EXPECT_TRUE(receipts) << type << ": " << receipts.error().message;
  return receipts ? receipts->front() : events::Receipt{};
}

std::shared_ptr<store::Run> LogFixture::start_run(const std::string& run_id, const std::string& parent) {
  const auto run = runs->insert(std::make_shared<store::Run>(run_id));
  json::Writer body;
  body.begin_object().member("run_id", run_id).key("agent").begin_object().member("name", "tester").end_object();
  body.member("client", "pgtest").key("labels").begin_object().member("kind", "test").end_object();
  if (!parent.empty()) body.key("parent").begin_object().member("run_id", parent).member("run_seq", 0).end_object();
  append(run, "run.started", body.end_object().text());
  return run;
}

store::ArtifactRow LogFixture::put(const std::shared_ptr<store::Run>& run, const std::string& bytes) {
  const auto file = files->store(bytes, run->run_id, "main", make_uuid_v7(clock.now()), "text/plain");
  EXPECT_TRUE(file) << file.error().message;
  store::ArtifactRow row;
  row.artifact_id = file->artifact_id;
  row.run_id = run->run_id;
  row.step_id = "main";
  row.path = file->path;
  row.hash = file->hash;
  row.mime_type = "text/plain";
  row.size_bytes = file->size_bytes;
  json::Writer body;
  body.begin_object()
      .member("artifact_id", row.artifact_id.text())
      .member("run_id", row.run_id)
      .member("step_id", "main");
  body.member("path", row.path)
      .member("hash", to_hex(row.hash))
      .member("mime_type", row.mime_type)
      .member("size_bytes", row.size_bytes);
  append(run, "artifact.stored", body.end_object().text(), {row});
  files->committed(row.artifact_id);
  return row;
}

std::vector<events::Event> LogFixture::events_of(const std::shared_ptr<store::Run>& run) {
  store::EventFilter filter;
  filter.run_no = run->view().run_no;
  auto events = reader->events(filter, 1'000);
  EXPECT_TRUE(events) << events.error().message;
  return events ? *std::move(events) : std::vector<events::Event>();
}

std::vector<std::string> LogFixture::types_of(const std::shared_ptr<store::Run>& run) {
  std::vector<std::string> types;
  for (const events::Event& event : events_of(run)) types.push_back(event.type);
  return types;
}

}  // namespace muniment::test
