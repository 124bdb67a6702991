// Implements the record store on RocksDB.
#include "retrieval/vector/records/record_store.hpp"

#include <rocksdb/db.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <filesystem>
#include <system_error>

namespace muniment::retrieval::vec {
namespace {

constexpr std::size_t write_buffer_bytes = 16 << 20;
constexpr std::size_t block_cache_bytes = 8 << 20;  // cache for single reads by the writer; a search reads memory
constexpr std::size_t readahead_bytes = 2 << 20;
constexpr std::size_t block_bytes = 16 << 10;
constexpr std::size_t logs_max = 8;  // log files that are kept

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view_of(const rocksdb::Slice& bytes) { return {bytes.data(), bytes.size()}; }

rocksdb::Options options_of_shard() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(block_cache_bytes);
  table.block_size = block_bytes;
  table.checksum = rocksdb::kXXH3;
  table.format_version = 5;
  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kNoCompression;  // codes do not compress
  options.write_buffer_size = write_buffer_bytes;
  options.target_file_size_base = 4 * write_buffer_bytes;
  options.max_background_jobs = 2;
  options.paranoid_checks = true;
  // A torn last record is a batch that was not acknowledged; any other fault in a log is damage.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  options.skip_stats_update_on_db_open = true;
  options.max_open_files = -1;  // opens every file at once, so that a missing one is detected
  options.keep_log_file_num = 2;
  options.info_log_level = rocksdb::WARN_LEVEL;
  return options;
}

// Converts a RocksDB status. A failed or inconsistent read means damage (corrupt); for an operation that only writes,
// `otherwise` is system_error, since the disk is at fault.
Error error_of(const rocksdb::Status& status, std::string_view doing, Errc otherwise = Errc::corrupt) {
  const std::string text = status.ToString();
  Errc code = status.IsCorruption() ? Errc::corrupt : otherwise;
  if (status.IsIOError() && text.find("/LOCK") != std::string::npos)
    code = Errc::conflict;
  else if (status.IsNoSpace())
    code = Errc::over_budget;
  else if (text.find("Too many open files") != std::string::npos)
    code = Errc::unavailable;
  else if (status.IsBusy() || status.IsTimedOut() || status.IsTryAgain())
    code = Errc::unavailable;
  return Error(code, std::string(doing) + ": " + text);
}

struct Folder {
  bool empty = true;
  std::size_t logs = 0;
};

// RocksDB would start over without an error in a folder that has lost CURRENT.
Result<Folder> look_into(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  std::filesystem::directory_iterator files(path, failed);
  if (failed) return Error(Errc::system_error, "opening the vector shard in " + path + ": " + failed.message());
  Folder folder;
  bool current = false;
  for (; files != std::filesystem::directory_iterator(); files.increment(failed)) {
    const std::string name = files->path().filename();
    current = current || name == "CURRENT";
    if (files->path().extension() == ".log") ++folder.logs;
    if (name != "LOCK" && name.rfind("LOG", 0) != 0) folder.empty = false;
  }
  if (!folder.empty && !current)
    return Error(Errc::corrupt, "the vector shard in " + path + " has lost its file CURRENT");
  return folder;
}

// Every open begins a log file, and RocksDB keeps the empty ones until a flush, which requires a write: here the
// deletion of a key that does not exist.
rocksdb::Status clear_logs(rocksdb::DB& db) {
  const auto status = db.Delete(rocksdb::WriteOptions(), rocksdb::Slice());
  return status.ok() ? db.Flush(rocksdb::FlushOptions()) : status;
}

}  // namespace

struct Changes::Batch {
  rocksdb::WriteBatch batch;
};

Changes::Changes() : batch_(std::make_unique<Batch>()) {}
Changes::~Changes() = default;
// A batch in memory accepts every operation; the write reports its status.
void Changes::put(std::string_view key, std::string_view value) {
  batch_->batch.Put(slice(key), slice(value)).PermitUncheckedError();
}
void Changes::remove(std::string_view key) { batch_->batch.Delete(slice(key)).PermitUncheckedError(); }
void Changes::remove_range(std::string_view from, std::string_view to) {
  batch_->batch.DeleteRange(slice(from), slice(to)).PermitUncheckedError();
}

struct RecordStore::Database {
  std::unique_ptr<rocksdb::DB> db;
};

class RecordStore::Moment {
 public:
  explicit Moment(rocksdb::DB& db) : db_(db), snapshot_(db.GetSnapshot()) {}
  ~Moment() { db_.ReleaseSnapshot(snapshot_); }
  Moment(const Moment&) = delete;
  const rocksdb::Snapshot* snapshot() const { return snapshot_; }

 private:
  rocksdb::DB& db_;
  const rocksdb::Snapshot* snapshot_;
};

Result<std::unique_ptr<RecordStore>> RecordStore::open(const std::string& folder) {
  ASSIGN_OR_RETURN(const Folder found, look_into(folder));
  rocksdb::Options options = options_of_shard();
  options.create_if_missing = found.empty;
  rocksdb::DB* db = nullptr;
  try {
    if (const auto status = rocksdb::DB::Open(options, folder, &db); !status.ok()) {
      return error_of(status, "opening the vector shard in " + folder);
    }
  } catch (const std::exception& thrown) {  // for example, std::length_error from a damaged length
    return Error(Errc::corrupt, "opening the vector shard in " + folder + ": " + thrown.what());
  }
  auto store = std::unique_ptr<RecordStore>(new RecordStore());
  store->database_ = std::make_unique<Database>();
  store->database_->db.reset(db);
  store->created_ = found.empty;
  if (found.logs > logs_max) {
    if (const auto status = clear_logs(*db); !status.ok())
      return error_of(status, "opening the vector shard in " + folder);
  }
  return store;
}

// Flushes the write-ahead log, so that the next open has nothing to replay.
RecordStore::~RecordStore() {
  if (!database_) return;
  database_->db->Flush(rocksdb::FlushOptions()).PermitUncheckedError();
  database_->db->Close().PermitUncheckedError();
}

std::shared_ptr<const RecordStore::Moment> RecordStore::now() const {
  return std::make_shared<const Moment>(*database_->db);
}

Result<std::optional<std::string>> RecordStore::get(std::string_view key, const Moment* at) const {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.snapshot = at != nullptr ? at->snapshot() : nullptr;
  std::string value;
  const auto status = database_->db->Get(options, slice(key), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return error_of(status, "reading the vector shard");
  return std::optional(std::move(value));
}

Status RecordStore::scan(std::string_view from, std::string_view to, const Visit& visit, const Moment* at) const {
  const rocksdb::Slice end = slice(to);
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = readahead_bytes;
  options.iterate_upper_bound = &end;
  options.snapshot = at != nullptr ? at->snapshot() : nullptr;
  const std::unique_ptr<rocksdb::Iterator> records(database_->db->NewIterator(options));
  for (records->Seek(slice(from)); records->Valid(); records->Next()) {
    RETURN_IF_ERROR(visit(view_of(records->key()), view_of(records->value())));
  }
  if (!records->status().ok()) return error_of(records->status(), "reading the vector shard");
  return success();
}

Status RecordStore::write(const Changes& changes) {
  rocksdb::WriteOptions options;
  options.sync = true;
  const auto status = database_->db->Write(options, &changes.batch_->batch);
  if (!status.ok()) return error_of(status, "writing to the vector shard", Errc::system_error);
  return success();
}

// A removed record remains in the log and in older files until these are replaced: the log by a flush, the files by a
// compaction down to the last level.
Status RecordStore::erase_for_good() {
  auto status = database_->db->Flush(rocksdb::FlushOptions());
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  if (status.ok()) status = database_->db->CompactRange(options, nullptr, nullptr);
  // Deletes unused files at once, before RocksDB would.
  if (status.ok()) status = database_->db->DisableFileDeletions();
  if (status.ok()) status = database_->db->EnableFileDeletions(/*force=*/true);
  if (!status.ok()) return error_of(status, "erasing from the vector shard", Errc::system_error);
  return success();
}

}  // namespace muniment::retrieval::vec
