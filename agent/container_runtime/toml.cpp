#include "agent/container_runtime/toml.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace agent::container_runtime {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool is_within(const toml_path& path, const toml_path& parent) {
  return path.size() >= parent.size() && std::equal(parent.begin(), parent.end(), path.begin());
}

/// Reads a document once, from its beginning to its end.
class toml_reader {
 public:
  explicit toml_reader(std::string_view text) : text_(text) {}

  std::expected<toml_document, text::phrase> read() {
    if (text_.starts_with("\xEF\xBB\xBF")) return std::unexpected(text::phrase{"fix_runtime.toml.byte_order_mark"});
    if (const auto end = text_.find('\n'); end != std::string_view::npos && end > 0 && text_[end - 1] == '\r')
      out_.newline = "\r\n";
    while (index_ < text_.size()) {
      if (!read_line())
        return std::unexpected(
            text::phrase{"fix_runtime.toml.line", {{"line", std::to_string(line_)}, {"problem", problem_}}});
    }
    return std::move(out_);
  }

 private:
  /// `key` is one below fix_runtime.toml.
  bool fail(std::string_view key, std::string_view value = {}) {
    problem_ = {"fix_runtime.toml." + std::string(key)};
    if (!value.empty()) problem_.arguments.push_back({"value", std::string(value)});
    return false;
  }
  bool has_more() const { return index_ < text_.size(); }
  char next() const { return has_more() ? text_[index_] : '\0'; }
  void skip_blanks() {
    while (is_blank(next())) ++index_;
  }

  /// A comment and the line end, or the end of the text.
  bool end_line() {
    skip_blanks();
    if (next() == '#') index_ = std::min(text_.find('\n', index_), text_.size());
    if (next() == '\r') ++index_;
    if (!has_more()) return true;
    if (next() != '\n') return fail("two_things");
    ++index_;
    ++line_;
    return true;
  }

  bool read_line() {
    skip_blanks();
    if (next() == '\r' || next() == '\n' || next() == '#') return end_line();
    if (!has_more()) return true;
    return next() == '[' ? read_head() : read_setting();
  }

  bool read_head() {
    const bool is_array = text_.substr(index_, 2) == "[[";
    const std::string_view close = is_array ? "]]" : "]";
    index_ += close.size();
    toml_path path;
    if (!read_path(path)) return false;
    if (text_.substr(index_, close.size()) != close) return fail("table_end", close);
    index_ += close.size();
    if (names_.contains(path)) return fail("is_key", path.back());
    if (is_array) {  // one more element: none of its keys and tables are there yet
      const auto is_of_element = [&](const toml_path& known) { return is_within(known, path); };
      std::erase_if(heads_, is_of_element);
      std::erase_if(names_, is_of_element);
    } else if (!heads_.insert(path).second) {
      return fail("table_twice");
    }
    if (!end_line()) return false;
    table_ = path;
    out_.tables.push_back({std::move(path), index_});
    return true;
  }

  bool read_setting() {
    toml_path path = table_, keys;
    if (!read_path(keys)) return false;
    path.insert(path.end(), keys.begin(), keys.end());
    // An error of TOML too: runtimes would not start.
    if (heads_.contains(path) || !names_.insert(path).second) return fail("twice", path.back());
    if (next() != '=') return fail("nothing");
    ++index_;
    skip_blanks();
    toml_setting setting{
        .path = std::move(path), .value = {}, .begin = index_, .end = 0, .line_end = 0, .table_size = table_.size()};
    if (!read_value(setting)) return false;
    setting.end = index_;
    if (!end_line()) return false;
    setting.line_end = index_;
    out_.settings.push_back(std::move(setting));
    return true;
  }

  bool read_path(toml_path& path) {
    for (;;) {
      skip_blanks();
      std::string key;
      if (next() == '"' || next() == '\'') {
        const auto begin = index_;
        if (!skip_text()) return false;
        key = unquoted(text_.substr(begin, index_ - begin));
      } else {
        while (is_bare(next())) key += text_[index_++];
        if (key.empty()) return fail("no_name");
      }
      path.push_back(std::move(key));
      skip_blanks();
      if (next() != '.') return true;
      ++index_;
    }
  }

  bool skip_text() {
    const char quote = next();
    if (text_.substr(index_, 3) == std::string(3, quote)) return fail("several_lines");
    for (++index_; has_more() && next() != '\n'; ++index_) {
      if (next() == '\\' && quote == '"' && text_.substr(index_ + 1, 1) != "\n") {
        ++index_;
      } else if (next() == quote) {
        ++index_;
        return true;
      }
    }
    return fail("no_quote");
  }

  /// Arrays and inline tables may hold others; only arrays go over lines.
  bool read_value(toml_setting& setting) {
    std::string open;
    do {
      const char c = next();
      if (!has_more()) return fail("no_end");
      const auto begin = index_;
      if (c == '"' || c == '\'') {
        if (!skip_text()) return false;
      } else if (c == '[' || c == '{') {
        open += c;
        ++index_;
      } else if (c == ']' || c == '}') {
        if (open.empty() || open.back() != (c == ']' ? '[' : '{')) return fail("too_many", {&c, 1});
        open.pop_back();
        ++index_;
      } else if (c == '#' && !open.empty()) {
        setting.has_comment = true;
        index_ = std::min(text_.find('\n', index_), text_.size());
        continue;
      } else if (c == '\n' || c == '\r') {
        if (open.empty() || open.contains('{')) return fail("no_end");
        if (c == '\n') ++line_;
        ++index_;
      } else if (!open.empty() && (is_blank(c) || c == ',' || c == '=')) {
        ++index_;
      } else {
        while (is_bare(next()) || next() == '.' || next() == '+' || next() == ':') ++index_;
        if (index_ == begin) return fail("no_value", {&c, 1});
        if (open.empty() && !is_plain(text_.substr(begin, index_ - begin))) return fail("no_quotes");
      }
      setting.value += text_.substr(begin, index_ - begin);
    } while (!open.empty());
    return true;
  }

  static bool is_plain(std::string_view value) {
    return value == "true" || value == "false" || value == "inf" || value == "nan" ||
           (!value.empty() && std::string_view("+-0123456789").contains(value.front()));
  }

  std::string_view text_;
  std::size_t index_ = 0, line_ = 1;
  toml_path table_;
  std::set<toml_path> heads_, names_;  ///< tables and keys so far, of arrays those of the last element
  text::phrase problem_;
  toml_document out_;
};

}  // namespace

const toml_setting* toml_document::find(const toml_path& path) const {
  const auto found = std::ranges::find(settings, path, &toml_setting::path);
  return found == settings.end() ? nullptr : &*found;
}

const toml_table* toml_document::find_table(const toml_path& path) const {
  const auto found = std::ranges::find(tables, path, &toml_table::path);
  return found == tables.end() ? nullptr : &*found;
}

bool toml_document::has(const toml_path& path) const {
  return std::ranges::any_of(settings, [&](const auto& setting) { return is_within(setting.path, path); }) ||
         std::ranges::any_of(tables, [&](const auto& table) { return is_within(table.path, path); });
}

std::expected<toml_document, text::phrase> read_toml(std::string_view text) { return toml_reader(text).read(); }

std::string unquoted(std::string_view value) {
  if (value.size() < 2 || (value.front() != '"' && value.front() != '\'')) return std::string(value);
  return std::string(value.substr(1, value.size() - 2));
}

}  // namespace agent::container_runtime
