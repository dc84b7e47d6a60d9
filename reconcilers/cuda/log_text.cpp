#include "reconcilers/cuda/log_text.hpp"

namespace reconcilers::cuda {

void log_text::put(char character, std::string& out) {
  const bool is_break = character == '\n' || character == '\r';
  if (is_break || static_cast<unsigned char>(character) <= ' ') {
    if (out.empty() || out.back() == '\n') return;
    if (out.back() != ' ')
      out += is_break ? '\n' : ' ';
    else if (is_break)
      out.back() = '\n';
    return;
  }
  if (character >= 'A' && character <= 'Z') character = static_cast<char>(character - 'A' + 'a');
  out += character == '"' || character == '`' ? '\'' : character;
}

void log_text::take(char character, std::string& out) {
  constexpr char escape = '\x1b';
  switch (place_) {
    case place::plain:
      if (character == '\\')
        place_ = place::backslash;
      else if (character == escape)
        place_ = place::escape;
      else if (character == '\xe2')
        place_ = place::quote_first;
      else
        put(character, out);
      return;
    case place::backslash:  // \" is a quotation mark, \n a line break
      place_ = character == 'u' ? place::code_point : place::plain;
      digits_.clear();
      if (character == 'n' || character == 'r' || character == 't')
        put(character == 't' ? ' ' : '\n', out);
      else if (character == '\\')
        place_ = place::backslash;
      else if (character != 'u')
        put(character, out);
      return;
    case place::code_point:
      digits_ += character;
      if (digits_.size() < 4) return;
      place_ = digits_ == "001b" || digits_ == "001B" ? place::escape : place::plain;
      if (place_ == place::plain) put(digits_ == "0022" || digits_ == "0027" ? '\'' : ' ', out);
      return;
    case place::escape:
      place_ = character == '[' ? place::control : place::plain;
      return;
    case place::control:
      if (character >= '@') place_ = place::plain;
      return;
    case place::quote_first:
      place_ = character == '\x80' ? place::quote_second : place::plain;
      return;
    case place::quote_second:  // ‘ ’ “ ”
      place_ = place::plain;
      put(character >= '\x98' && character <= '\x9d' ? '\'' : ' ', out);
      return;
  }
}

void log_text::append(std::string_view part, std::string& out) {
  for (const auto character : part) {
    if (place_ == place::plain && character > ' ' && character != '\\' && character != '"' && character != '`') {
      out += character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a') : character;
      continue;
    }
    take(character, out);
  }
}

}  // namespace reconcilers::cuda
