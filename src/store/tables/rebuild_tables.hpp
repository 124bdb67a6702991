// How each derived table follows from the log: what Rebuild knows of a table.
#pragma once

#include <string_view>

#include "store/tables/rebuild.hpp"

// An event knows its run by number; the name is in the run's first event, or, where that is
// erased, in the table.
#define MUNIMENT_RUN_NAME                                                                            \
  "CASE WHEN e.run_no = 0 THEN '_log' ELSE coalesce((SELECT s.body->>'run_id' FROM rebuilt_event s " \
  "WHERE s.run_no = e.run_no AND s.type = 'run.started'), (SELECT r.run_id FROM public.run r "       \
  "WHERE r.log_no = $1 AND r.run_no = e.run_no)) END"

namespace muniment::store {

// How a table follows from rebuilt_event, and how two rows of it are the same one.
struct Rebuild::Table {
  std::string_view name;
  std::string_view key;
  std::string_view columns;
  std::string_view compared;  // the columns as EXCEPT can compare them
  std::string_view updated;   // the columns that an update sets; empty: a row is deleted and inserted
  std::string_view follower;  // empty: its rows come with their events
  std::string_view fill;      // $1 log_no, $2 upto; empty: folded in code
  bool replace;
  std::string_view blank = {};  // what an erasure leaves of a row that stays: columns, and then their values
  std::string_view blanks = {};
  // Brings its rows to what events from {1} on changed in them, of log {0}; empty: rows of earlier events stay as they
  // are.
  std::string_view later = {};
  bool goes = false;  // an erasure leaves no row
};

}  // namespace muniment::store
