// A private Postgres for tests: one server for each test program, started at its first use, and a
// fresh database for each test, copied from a template with the migrations.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/temporary_folder.hpp"

namespace muniment::test {

// The server's data folder, for tests of the server itself.
std::string shared_data_dir();

// Creates a database with the migrations applied (or empty), which is dropped at the end of the process.
std::string fresh_database();
std::string empty_database();

// Runs statements as the cluster's superuser, in one transaction for each call. Throws on failure.
void run_sql(const std::string& uri, const std::string& sql);
// Returns the first column of the first row; "" for NULL or no row.
std::string ask_sql(const std::string& uri, const std::string& sql);

}  // namespace muniment::test
