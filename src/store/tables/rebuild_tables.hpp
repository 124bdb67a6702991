// Defines for Rebuild how each derived table follows from the log.
#pragma once

#include <string_view>

#include "store/tables/rebuild.hpp"

// An event holds its run's number. The run's id is in its first event, or in the table if that event is erased.
#define MUNIMENT_RUN_NAME                                                                            \
  "CASE WHEN e.run_no = 0 THEN '_log' ELSE coalesce((SELECT s.body->>'run_id' FROM rebuilt_event s " \
  "WHERE s.run_no = e.run_no AND s.type = 'run.started'), (SELECT r.run_id FROM public.run r "       \
  "WHERE r.log_no = $1 AND r.run_no = e.run_no)) END"

namespace muniment::store {

// The statements that derive a table from rebuilt_event, and the columns that identify a row.
struct Rebuild::Table {
  std::string_view name;
  std::string_view key;
  std::string_view columns;
  std::string_view compared;  // the columns in a form that EXCEPT can compare
  std::string_view updated;   // the columns that an update sets; empty: a row is deleted and inserted
  std::string_view follower;  // empty: its rows are written with their events
  std::string_view fill;      // $1 log_no, $2 upto; empty: derived in code
  bool replace;
  std::string_view blank = {};  // columns and values of a row after an erasure, if the row remains
  std::string_view blanks = {};
  // Applies the changes that events from {1} on made to the rows, in log {0}. Empty: later events do not change the
  // rows of earlier ones.
  std::string_view later = {};
  bool goes = false;  // an erasure deletes the row
};

}  // namespace muniment::store
