// As much of SQLite as the history needs: errors as InputError with what to do, statements that
// free themselves, and sums of rows, because SQLite does not notice a bit that turned over in one.
#pragma once

#include <sqlite3.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace moegauge::sqlite {

class Database;

// One execution of a prepared statement: bind all, then step. Resets itself when it goes.
class Query {
 public:
  Query(Database& database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

  // The next parameter. NaN becomes NULL.
  Query& bind(std::int64_t value);
  Query& bind(double value);
  Query& bind(std::string_view value);
  Query& bind_null();
  // The sum of all that was bound before it.
  Query& bind_sum();
  bool step();  // whether there is a row
  void run();   // of no rows

  // The next column of the row. Throws InputError where it is of another type.
  std::int64_t integer();
  double number();  // NaN for NULL
  std::string text();
  bool null();  // whether the next column is; it is then passed
  // The last column, which holds the sum of all before it; throws InputError where it does not.
  void check_sum();

 private:
  void add(std::string_view bytes);
  void add(std::uint64_t value);
  std::int64_t sum() const { return static_cast<std::int64_t>(sum_ >> 32 ^ (sum_ & 0xFFFFFFFF)); }

  Database& database_;
  sqlite3_stmt* statement_;
  int parameter_ = 0, column_ = 0;
  std::uint64_t sum_ = empty_sum;
  static constexpr std::uint64_t empty_sum = 0xcbf29ce484222325;
};

class Database {
 public:
  // `flags` of sqlite3_open_v2.
  Database(std::filesystem::path file, int flags);

  // Statements are prepared once for each text.
  Query query(const char* sql);
  void run(const char* sql);
  std::int64_t last_id() const { return sqlite3_last_insert_rowid(database_.get()); }
  bool read_only() const { return sqlite3_db_readonly(database_.get(), "main") == 1; }
  const std::filesystem::path& file() const { return file_; }

  [[noreturn]] void fail();  // with the error that the last call left
  [[noreturn]] void fail(int code, const std::string& said) const;
  [[noreturn]] void corrupt(const std::string& what) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> database_;
  std::map<const char*, std::unique_ptr<sqlite3_stmt, Finalize>> statements_;  // by address
};

// Of a query for one number; 0 where there is none.
std::int64_t number_of(Database& database, const char* sql);

// Rolls back what was not committed.
class Transaction {
 public:
  explicit Transaction(Database& database, const char* begin = "BEGIN IMMEDIATE")
      : database_(database) {
    database_.run(begin);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace moegauge::sqlite
