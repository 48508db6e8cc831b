#include "harness/history/sqlite.h"

#include <cmath>
#include <exception>

#include "harness/history/summary.h"
#include "reference/base/input_error.h"

namespace moegauge::sqlite {

namespace {

// How long a writer waits for the others.
constexpr int patience_ms = 60'000;

}  // namespace

Query& Query::bind(std::int64_t value) {
  add(static_cast<std::uint64_t>(value));
  if (sqlite3_bind_int64(statement_, ++parameter_, value) != SQLITE_OK) database_.fail();
  return *this;
}

Query& Query::bind(double value) {
  if (std::isnan(value)) return bind_null();
  add(std::bit_cast<std::uint64_t>(value));
  if (sqlite3_bind_double(statement_, ++parameter_, value) != SQLITE_OK) database_.fail();
  return *this;
}

Query& Query::bind(std::string_view value) {
  add(value);
  const int size = static_cast<int>(value.size());
  if (sqlite3_bind_text(statement_, ++parameter_, value.data(), size, SQLITE_TRANSIENT) !=
      SQLITE_OK) {
    database_.fail();
  }
  return *this;
}

Query& Query::bind_null() {
  add(std::string_view("null"));
  if (sqlite3_bind_null(statement_, ++parameter_) != SQLITE_OK) database_.fail();
  return *this;
}

Query& Query::bind_sum() { return bind(sum()); }

bool Query::step() {
  column_ = 0;
  sum_ = empty_sum;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail();
  return false;
}

void Query::run() {
  while (step()) {
  }
}

std::int64_t Query::integer() {
  if (sqlite3_column_type(statement_, column_) != SQLITE_INTEGER) database_.corrupt("no integer");
  const std::int64_t value = sqlite3_column_int64(statement_, column_++);
  add(static_cast<std::uint64_t>(value));
  return value;
}

double Query::number() {
  if (null()) return no_number;
  if (sqlite3_column_type(statement_, column_) != SQLITE_FLOAT) database_.corrupt("no number");
  const double value = sqlite3_column_double(statement_, column_++);
  add(std::bit_cast<std::uint64_t>(value));
  return value;
}

std::string Query::text() {
  if (sqlite3_column_type(statement_, column_) != SQLITE_TEXT) database_.corrupt("no text");
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
  const int size = sqlite3_column_bytes(statement_, column_++);
  std::string value(data == nullptr ? "" : data, static_cast<std::size_t>(size));
  add(value);
  return value;
}

bool Query::null() {
  if (sqlite3_column_type(statement_, column_) != SQLITE_NULL) return false;
  ++column_;
  add(std::string_view("null"));
  return true;
}

void Query::check_sum() {
  const std::int64_t expected = sum();
  if (integer() != expected) database_.corrupt("a row's sum is wrong");
}

// FNV-1a (reference/base/fnv1a.h) over one value after the other.
void Query::add(std::string_view bytes) {
  for (const char c : bytes) sum_ = (sum_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  add(static_cast<std::uint64_t>(bytes.size()));
}

void Query::add(std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) {
    sum_ = (sum_ ^ (value >> (8 * byte) & 0xFF)) * 0x100000001b3;
  }
}

Database::Database(std::filesystem::path file, int flags) : file_(std::move(file)) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(file_.c_str(), &opened, flags, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) fail(code, opened == nullptr ? "no memory" : sqlite3_errmsg(opened));
  sqlite3_busy_timeout(opened, patience_ms);
  sqlite3_extended_result_codes(opened, 1);
  // What a damaged or foreign file says must not run.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

Query Database::query(const char* sql) {
  auto& kept = statements_[sql];
  if (kept == nullptr) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql, -1, &made, nullptr) != SQLITE_OK) fail();
    kept.reset(made);
  }
  return {*this, kept.get()};
}

void Database::run(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void Database::fail() {
  fail(sqlite3_extended_errcode(database_.get()), sqlite3_errmsg(database_.get()));
}

void Database::fail(int code, const std::string& said) const {
  const std::string where = file_.string();
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
      throw InputError(where, "no history", "a file that moegauge history add made is expected");
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:  // a table is not there
    case SQLITE_MISMATCH:
      corrupt(said);
    case SQLITE_CANTOPEN:
      throw InputError(where, "cannot open the history: its folder is not there or read-only",
                       "give a place that can be written to");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw InputError(where, "another process has been writing for a minute",
                       "wait for it and try again");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw InputError(where, "cannot write the history: it or its folder is read-only",
                       "give a place that can be written to");
    case SQLITE_FULL:
      throw InputError(where, "cannot write the history: the disk is full",
                       "make room and try again; the history is as it was");
    default:
      throw InputError(where, "cannot read or write the history: " + said,
                       "give a place with room that can be written to; the history is as it was");
  }
}

void Database::corrupt(const std::string& what) const {
  throw InputError(file_.string(), "the history is damaged (" + what + ")",
                   "build it again from the result files with moegauge history add");
}

std::int64_t number_of(Database& database, const char* sql) {
  Query query = database.query(sql);
  return query.step() ? query.integer() : 0;
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const std::exception&) {  // SQLite has rolled back by itself
  }
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace moegauge::sqlite
