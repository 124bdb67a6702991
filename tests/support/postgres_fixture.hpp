// A private Postgres for tests: one server for each test program, started when a test first asks, and
// a fresh database for each test, copied from a template that has the migrations.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/temporary_folder.hpp"

namespace muniment::test {

// The server's data folder, for tests that look at the server itself.
std::string shared_data_dir();

// A new database with the migrations applied (or empty), dropped by the process's end.
std::string fresh_database();
std::string empty_database();

// Runs statements, each call a transaction; a failure throws. As the cluster's superuser.
void run_sql(const std::string& uri, const std::string& sql);
// The first column of the first row; "" for NULL or no row.
std::string ask_sql(const std::string& uri, const std::string& sql);

}  // namespace muniment::test
