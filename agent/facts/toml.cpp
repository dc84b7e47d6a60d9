#include "agent/facts/toml.hpp"

#include <algorithm>
#include <set>

namespace agent::facts {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Nested further is no configuration of anyone.
constexpr std::size_t deepest_table = 64;

/// Reads a document once, from its beginning to its end.
class toml_reader {
 public:
  explicit toml_reader(std::string_view text) : text_(text) {}

  std::expected<toml_document, toml_problem> read() {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (text_.starts_with(mark)) {
      refuse_later("byte_order_mark");
      index_ = mark.size();
    }
    if (const auto end = text_.find('\n'); end != std::string_view::npos && end > 0 && text_[end - 1] == '\r')
      out_.newline = "\r\n";
    while (index_ < text_.size()) {
      if (!read_line()) return std::unexpected(std::move(problem_));
    }
    return std::move(out_);
  }

 private:
  bool fail(std::string_view code, std::string_view value = {}) {
    problem_ = {line_, std::string(code), std::string(value)};
    return false;
  }
  void refuse_later(std::string_view code, std::string_view value = {}) {
    if (!out_.later_problem) out_.later_problem = {line_, std::string(code), std::string(value)};
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
    if (const auto* key = key_above(path, path.size())) return fail("is_key", *key);
    if (is_array) {  // one more element: none of its keys and tables are there yet
      const auto is_of_element = [&](const toml_path& known) { return is_within(known, path); };
      std::erase_if(heads_, is_of_element);
      std::erase_if(names_, is_of_element);
      std::erase_if(dotted_, is_of_element);
    } else if (!heads_.insert(path).second) {
      return fail("table_twice", path.back());
    }
    if (dotted_.contains(path)) refuse_later("dotted_twice", path.back());
    const auto line = line_;
    if (!end_line()) return false;
    table_ = path;
    out_.tables.push_back({std::move(path), index_, line});
    return true;
  }

  bool read_setting() {
    if (!read_member(table_, 0)) return false;
    const auto begin = last_;
    if (!end_line()) return false;
    out_.settings[begin].line_end = index_;
    return true;
  }

  /// A key, and its value below `parent`. `last_` is its place among the settings.
  bool read_member(const toml_path& parent, std::size_t depth) {
    toml_path path = parent, keys;
    if (!read_path(keys)) return false;
    path.insert(path.end(), keys.begin(), keys.end());
    // An error of TOML too: runtimes would not start.
    if (const auto* key = key_above(path, path.size() - 1)) return fail("is_key", *key);
    if (has_within(heads_, path) || has_within(names_, path)) return fail("twice", path.back());
    add_dotted(path, parent.size());
    if (next() != '=') return fail("nothing");
    ++index_;
    skip_blanks();
    toml_setting setting{.path = path, .value = {}, .begin = index_, .end = 0, .line_end = 0, .line = line_};
    setting.table_size = table_.size();
    const auto place = out_.settings.size();
    if (next() == '{') {
      out_.settings.push_back(setting);
      if (!read_inline_table(path, depth + 1)) return false;
      setting.value = text_.substr(setting.begin, index_ - setting.begin);
      setting.end = index_;
      out_.settings[place] = std::move(setting);
    } else {
      if (!read_value(setting)) return false;
      setting.end = index_;
      out_.settings.push_back(std::move(setting));
    }
    names_.insert(std::move(path));
    last_ = place;
    return true;
  }

  /// The tables between `parent` and the last name of a dotted key.
  void add_dotted(const toml_path& path, std::size_t parent) {
    for (auto length = parent + 1; length < path.size(); ++length) {
      toml_path table(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(length));
      if (!dotted_.contains(table) && has_within(heads_, table)) refuse_later("dotted_twice", table.back());
      dotted_.insert(std::move(table));
    }
  }

  bool read_inline_table(const toml_path& path, std::size_t depth) {
    if (depth > deepest_table) return fail("too_deep");
    ++index_;
    skip_blanks();
    if (next() == '}') {
      ++index_;
      return true;
    }
    for (;;) {
      if (!has_more() || next() == '\n' || next() == '\r') return fail("no_end");
      if (!read_member(path, depth)) return false;
      skip_blanks();
      const char c = next();
      if (c != ',' && c != '}') return fail("no_end");
      ++index_;
      if (c == '}') return true;
      skip_blanks();
    }
  }

  /// The name of the key with a value that is one of the first `size` paths above, or the path itself.
  const std::string* key_above(const toml_path& path, std::size_t size) const {
    for (std::size_t length = 1; length <= size; ++length) {
      const auto key = names_.find(toml_path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(length)));
      if (key != names_.end()) return &key->back();
    }
    return nullptr;
  }
  static bool has_within(const std::set<toml_path>& paths, const toml_path& parent) {
    const auto first = paths.lower_bound(parent);
    return first != paths.end() && is_within(*first, parent);
  }

  bool read_path(toml_path& path) {
    for (;;) {
      skip_blanks();
      std::string key;
      if (next() == '"' || next() == '\'') {
        const auto begin = index_;
        if (text_.substr(index_, 3) == std::string(3, next())) return fail("no_name");
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
    if (text_.substr(index_, 3) == std::string(3, quote)) return skip_long_text(quote);
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

  /// A text over several lines.
  bool skip_long_text(char quote) {
    const std::string close(3, quote);
    for (index_ += 3; has_more(); ++index_) {
      if (text_.substr(index_, 3) == close) {
        index_ += 3;
        for (int more = 0; more < 2 && next() == quote; ++more) ++index_;  // quotes of the text itself
        return true;
      }
      if (next() == '\\' && quote == '"') ++index_;
      if (next() == '\n') ++line_;
    }
    return fail("no_quote");
  }

  /// Arrays may hold arrays and inline tables; only arrays go over lines.
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
  /// Tables by their heads, keys, and tables that dotted keys made; of arrays those of the last element.
  std::set<toml_path> heads_, names_, dotted_;
  std::size_t last_ = 0;
  toml_problem problem_;
  toml_document out_;
};

}  // namespace

bool is_within(const toml_path& path, const toml_path& parent) {
  return path.size() >= parent.size() && std::equal(parent.begin(), parent.end(), path.begin());
}

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

std::expected<toml_document, toml_problem> read_toml(std::string_view text) { return toml_reader(text).read(); }

std::string unquoted(std::string_view value) {
  if (value.size() < 2 || (value.front() != '"' && value.front() != '\'')) return std::string(value);
  if (value.size() >= 6 && value.substr(0, 3) == std::string(3, value.front())) {
    value = value.substr(3, value.size() - 6);
    if (value.starts_with('\r')) value.remove_prefix(1);
    if (value.starts_with('\n')) value.remove_prefix(1);  // the first line end is none of the text
    return std::string(value);
  }
  return std::string(value.substr(1, value.size() - 2));
}

}  // namespace agent::facts
