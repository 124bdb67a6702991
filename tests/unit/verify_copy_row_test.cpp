// Tests of the rows of a binary COPY, as an honest server and a hostile one send them.
#include "verify/postgres/copy_row.hpp"

#include <gtest/gtest.h>

#include <string>

#include "verify/postgres/postgres.hpp"

namespace muniment::verify {
namespace {

const std::string header("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", 19);
const std::string row("\0\3\0\0\0\2\0\7\xff\xff\xff\xff\0\0\0\3abc", 19);

TEST(CopyRow, HoldsItsFields) {
  CopyFields fields;
  const auto first = parse_copy_row(header + row, true, fields);
  ASSERT_TRUE(first && *first);
  const auto later = parse_copy_row(row, false, fields);
  ASSERT_TRUE(later && *later);
  const Row values(fields);
  EXPECT_EQ(values.integer(0), 7);
  EXPECT_TRUE(values.null(1));
  EXPECT_EQ(values.text(2), "abc");
  const auto trailer = parse_copy_row(std::string_view("\xff\xff", 2), false, fields);
  ASSERT_TRUE(trailer);
  EXPECT_FALSE(*trailer);
}

TEST(CopyRow, WhatIsNotWholeIsRefused) {
  CopyFields fields;
  for (std::size_t size = 0; size < row.size(); ++size)
    EXPECT_FALSE(parse_copy_row(row.substr(0, size), false, fields)) << size;
  EXPECT_FALSE(parse_copy_row(row + "x", false, fields));
  EXPECT_FALSE(parse_copy_row(row, true, fields)) << "without its header";
  EXPECT_FALSE(parse_copy_row(std::string("\0\1\x7f\xff\xff\xff", 6), false, fields)) << "a length that is not there";
}

TEST(CopyRow, AColumnThatWasNotSentReadsAsNull) {
  const Row values;
  EXPECT_TRUE(values.null(3));
  EXPECT_EQ(values.integer(3), 0);
  EXPECT_EQ(values.bytes(3), "");
}

TEST(CopyRow, ATimeOfInfinityIsTheLargest) {
  const std::string bytes("\x7f\xff\xff\xff\xff\xff\xff\xff", 8);
  EXPECT_EQ(Row({bytes}).time(0).micros, INT64_MAX);
}

}  // namespace
}  // namespace muniment::verify
