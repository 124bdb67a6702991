// The table of the questions that may leave this machine.
#pragma once

#include <span>
#include <string_view>

namespace muniment::bridge {

// A form of queries and the question that is asked instead. The form is in lower case: "a|b" is one of these words, a
// word with a question mark may be missing, {x} and {y} are slots of general language. The question repeats the
// word of the form that is marked with "=" at {=}.
struct QuestionTemplate {
  std::string_view id;  // the type of the question
  std::string_view form;
  std::string_view question;
};

// In the order in which the forms are tried.
std::span<const QuestionTemplate> question_templates();

}  // namespace muniment::bridge
