#include "text/yaml/source.hpp"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "text/input_file.hpp"
#include "text/text.hpp"
#include "text/yaml/fault_words.hpp"

namespace text::yaml {
namespace {

constexpr std::size_t max_merged = 1'000'000;
constexpr int max_depth = 200;  // levels of values; aliases can nest deeper than the text does

/// Converts a mark of the parser, whose columns count bytes, to a place, whose columns count characters. Marks come
/// mostly in the order of the text, so each character is counted once, even in a file of one line.
class locator {
 public:
  explicit locator(const std::string& text) : text_(text) {}

  place operator()(const YAML::Mark& mark) {
    if (mark.is_null()) return last_;
    const auto end = std::min(text_.size(), static_cast<std::size_t>(mark.pos));
    if (mark.line + 1 != last_.line || end < position_) {
      last_ = {mark.line + 1, 1};
      position_ = end - std::min(end, static_cast<std::size_t>(mark.column));
    }
    for (; position_ < end; ++position_) last_.column += (static_cast<unsigned char>(text_[position_]) & 0xc0) != 0x80;
    return last_;
  }

 private:
  const std::string& text_;
  place last_;
  std::size_t position_ = 0;
};

std::string located(const std::string& name, place place, std::string_view message) {
  return name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + std::string(message);
}

/// Builds the tree from the parser's events.
class builder final : public YAML::EventHandler {
 public:
  builder(std::string_view text, locator& locator, source& source) : text_(text), locator_(locator), source_(source) {}

  /// The parser reads leftover text as a new document. Leftover text that no `---`, `...`, `{` or `[` announces is a
  /// typo.
  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();
    const auto rest = from(mark);
    const auto before = text_.substr(0, text_.size() - rest.size());
    const bool announced = rest.starts_with("---") || rest.starts_with('{') || rest.starts_with('[') ||
                           before.substr(document_).contains("\n...");
    if (any_ && !announced) throw YAML::ParserException(mark, "yaml.fault.does_not_belong");
    any_ = true;
    document_ = before.size();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(remember(make(mark, node::shape::null), anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto match = anchors_.find(anchor);
    if (match == anchors_.end()) throw YAML::ParserException(mark, "yaml.fault.alias_inside");
    add(match->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto* made = make(mark, node::shape::scalar);
    made->text = value;
    made->quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (const auto rest = from(mark); rest.starts_with('"') || rest.starts_with('\'')) last_quoted_ = mark;
    add(remember(made, anchor));
  }
  /// Refuses a quote that is never closed: the parser accepts a quote that runs to the end of the file.
  void end() const {
    const auto mark = last_quoted_.value_or(YAML::Mark());
    auto rest = last_quoted_ ? from(mark) : std::string_view();
    if (rest.empty()) return;
    const auto quote = rest.substr(0, 1);
    const std::string_view escaped = quote == "'" ? "''" : "\\";  // an escape: two characters, no end of quote
    for (rest.remove_prefix(1); !rest.empty() && (!rest.starts_with(quote) || rest.starts_with(escaped));)
      rest.remove_prefix(std::min<std::size_t>(rest.starts_with(escaped) ? 2 : 1, rest.size()));
    if (rest.empty()) throw YAML::ParserException(mark, "yaml.fault.quote");
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open_.push_back({make(mark, node::shape::sequence, style), anchor, nullptr});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open_.push_back({make(mark, node::shape::mapping, style), anchor, nullptr});
  }
  void OnMapEnd() override {
    merge(*open_.back().made);
    close();
  }

 private:
  struct level {
    node* made;
    YAML::anchor_t anchor;
    const node* key;  ///< mappings: the key whose value comes next; null: a key comes next
  };

  std::string_view from(const YAML::Mark& mark) const {
    return text_.substr(std::min(text_.size(), static_cast<std::size_t>(std::max(mark.pos, 0))));
  }
  node* make(const YAML::Mark& mark, node::shape is, YAML::EmitterStyle::value style = YAML::EmitterStyle::Default) {
    auto& made = source_.nodes.emplace_back();
    made.is = is;
    made.location = locator_(mark);
    made.offset = mark.is_null() ? text_.size() : text_.size() - from(mark).size();
    made.flow = style == YAML::EmitterStyle::Flow;
    return &made;
  }
  const node* remember(const node* made, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = made;
    return made;
  }
  void add(const node* made) {
    if (open_.empty()) {
      if (made->is != node::shape::null) source_.documents.push_back(made);
      return;
    }
    auto& parent = open_.back();
    if (parent.made->sequence()) {
      parent.made->items.push_back(made);
    } else if (!parent.key) {
      parent.key = made;
    } else {
      parent.made->entries.push_back({parent.key, made});
      parent.key = nullptr;
    }
  }
  void close() {
    const auto done = open_.back();
    open_.pop_back();
    add(remember(done.made, done.anchor));
  }

  /// Resolves `<<: *other`. The mapping's own keys win; among merged mappings the first wins.
  void merge(node& target) {
    const auto is_merge = [](const node::entry& entry) {
      return entry.key->scalar() && !entry.key->quoted && entry.key->text == "<<";
    };
    if (std::ranges::none_of(target.entries, is_merge)) return;
    std::vector<const node*> nodes;
    for (const auto& entry : target.entries) {
      if (!is_merge(entry)) continue;
      if (entry.value->sequence())
        nodes.insert(nodes.end(), entry.value->items.begin(), entry.value->items.end());
      else
        nodes.push_back(entry.value);
    }
    std::erase_if(target.entries, is_merge);
    std::unordered_map<std::string_view, const node*> there;
    for (const auto& entry : target.entries) there.emplace(entry.key->text, entry.key);
    const auto own = target.entries.size();
    for (const auto* other : nodes) {
      if ((merged_ += other->entries.size()) > max_merged)
        throw YAML::ParserException(YAML::Mark(), "yaml.fault.merges");
      for (const auto& entry : other->entries) {
        const auto [match, absent] = there.emplace(entry.key->text, entry.key);
        if (absent)
          target.entries.push_back(entry);
        else
          target.overridden = match->second;
      }
    }
    target.merged = target.entries.size() - own;
  }

  std::string_view text_;
  locator& locator_;
  source& source_;
  bool any_ = false;  // a document has started
  std::size_t document_ = 0;
  std::optional<YAML::Mark> last_quoted_;
  std::vector<level> open_;
  std::map<YAML::anchor_t, const node*> anchors_;
  std::size_t merged_ = 0;
};

/// The first character that kubectl would refuse. Source: libyaml, reader.c.
std::optional<std::pair<place, std::string>> illegal_character(std::string_view text) {
  place place;
  while (!text.empty()) {
    const auto c = text::take_character(text);
    if (c == text::not_utf8) return std::pair(place, "yaml.fault.not_utf8");
    const bool legal = c == 0x09 || c == 0x0a || c == 0x0d || c == 0x85 || (c >= 0x20 && c <= 0x7e) ||
                       (c >= 0xa0 && c <= 0xd7ff) || (c >= 0xe000 && c <= 0xfffd && c != 0xfeff) || c >= 0x10000;
    if (!legal) return std::pair(place, "yaml.fault.control_character");
    if (c == '\n')
      ++place.line, place.column = 1;
    else
      ++place.column;
  }
  return std::nullopt;
}

/// The parser reads all of a bracket before it can say that it is too deep, in 80 bytes for each. Brackets in words
/// count, too, so the bound is far above what the parser takes.
std::optional<place> brackets_without_end(std::string_view text) {
  constexpr std::int64_t most = 100'000;
  std::int64_t depth = 0;
  place place;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') depth = std::max<std::int64_t>(depth - 1, 0);
    if (depth > most) return place;
    if (c == '\n')
      ++place.line, place.column = 1;
    else
      place.column += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }
  return std::nullopt;
}

/// A line up to the one that was not understood is indented by a tab, for which parsers find other words.
std::optional<fault> tab_in_indentation(std::string_view text, int last_line) {
  for (int line = 0; line <= last_line && !text.empty(); ++line) {
    const auto blanks = text.substr(0, std::min(text.find_first_not_of(" \t"), text.size()));
    if (const auto tab = blanks.find('\t'); tab != blanks.npos)
      return fault{{line + 1, static_cast<int>(tab) + 1}, "yaml.fault.tab_indents"};
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return std::nullopt;
}

/// JSON writes a character beyond U+FFFF as two \u escapes, YAML as one \U.
std::string without_surrogates(std::string_view text) {
  const auto unit = [&](std::size_t index) -> unsigned {
    if (index + 6 > text.size() || text[index] != '\\' || text[index + 1] != 'u') return 0;
    unsigned value = 0;
    const auto* const end = text.data() + index + 6;
    const auto [stopped, wrong] = std::from_chars(text.data() + index + 2, end, value, 16);
    return wrong == std::errc{} && stopped == end ? value : 0;
  };
  std::string out;
  std::size_t done = 0;
  for (std::size_t index = text.find('\\'); index < text.size(); index = text.find('\\', index)) {
    const auto high = unit(index), low = unit(index + 6);
    if (high < 0xd800 || high >= 0xdc00 || low < 0xdc00 || low >= 0xe000) {
      index += 2;
      continue;
    }
    std::array<char, 16> joined{};
    std::snprintf(joined.data(), joined.size(), "\\U%08x", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
    out += text.substr(done, index - done);
    out += joined.data();
    done = index += 12;
  }
  return out += text.substr(done);
}

void add_json(const node& node, nlohmann::json& output, std::size_t& left, int depth = 0) {
  if (depth > max_depth) left = 0;
  if (left == 0) return;
  --left;
  switch (node.is) {
    case node::shape::null:
      output = nullptr;
      return;
    case node::shape::sequence:
      output = nlohmann::json::array();
      for (const auto* item : node.items) add_json(*item, output.emplace_back(), left, depth + 1);
      return;
    case node::shape::mapping:
      output = nlohmann::json::object();
      for (const auto& [key, value] : node.entries)
        add_json(*value, output[key->scalar() ? canonical(*key) : "?"], left, depth + 1);
      return;
    case node::shape::scalar:
      break;
  }
  switch (type_of(node)) {
    case type::null:
      output = nullptr;
      return;
    case type::boolean:
      output = canonical(node) == "true";
      return;
    case type::integer: {
      const auto digits = canonical(node);
      errno = 0;
      const auto value = std::strtoll(digits.c_str(), nullptr, 10);
      if (errno == 0)
        output = value;
      else
        output = digits;
      return;
    }
    case type::text:
    case type::real:
      output = node.text;
  }
}

/// Stops once the input exceeds max_bytes, so that reading /dev/zero ends too.
std::string slurp(std::istream& input) {
  std::string out(1u << 16, '\0');
  std::size_t size = 0;
  while (input && size <= max_bytes) {
    if (out.size() - size < out.size() / 2) out.resize(out.size() * 2);
    input.read(out.data() + size, static_cast<std::streamsize>(out.size() - size));
    size += static_cast<std::size_t>(input.gcount());
  }
  out.resize(size);
  return out;
}

}  // namespace

type type_of(const node& scalar) {
  if (scalar.is == node::shape::null) return type::null;
  return scalar.quoted ? type::text : type_of_plain(scalar.text);
}

std::string canonical(const node& node) {
  if (node.is == node::shape::null) return {};
  if (node.scalar()) return node.quoted ? node.text : canonical_plain(node.text);
  const auto json = to_json(node, 512);
  auto out = json ? json->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : std::string();
  return out.size() > 65'536 ? std::string() : out;
}

const node::entry* find_entry(const node* parent, std::string_view key) {
  if (!parent || !parent->mapping()) return nullptr;
  const node::entry* out = nullptr;
  for (const auto& entry : parent->entries) {
    if (entry.key->scalar() && entry.key->text == key) out = &entry;
  }
  return out;
}

const node* find(const node* parent, std::string_view key) {
  const auto* entry = find_entry(parent, key);
  return entry ? entry->value : nullptr;
}

std::string_view text_at(const node* node, std::string_view key) {
  const auto* value = find(node, key);
  return value && value->scalar() ? std::string_view(value->text) : std::string_view();
}

std::vector<const node*> repeated_keys(const node* parent) {
  std::vector<const node*> out;
  if (!parent || !parent->mapping()) return out;
  std::unordered_set<std::string_view> later;
  for (auto position = parent->entries.rbegin(); position != parent->entries.rend(); ++position) {
    if (position->key->scalar() && !later.insert(position->key->text).second) out.push_back(position->key);
  }
  std::ranges::reverse(out);
  return out;
}

std::optional<nlohmann::json> to_json(const node& node, std::size_t most) {
  nlohmann::json out;
  std::size_t left = most;
  add_json(node, out, left);
  if (left == 0) return std::nullopt;
  return out;
}

std::expected<source, fault> parse(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (text.size() > max_bytes) return std::unexpected(fault{{}, "yaml.fault.too_large"});
  if (is_utf16(text)) return std::unexpected(fault{{}, "yaml.fault.utf16"});
  if (const auto illegal = illegal_character(text)) return std::unexpected(fault{illegal->first, illegal->second});
  if (const auto deep = brackets_without_end(text)) return std::unexpected(fault{*deep, "yaml.fault.too_deep"});
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && (text[first] == '{' || text[first] == '[')) text = without_surrogates(text);
  source out;
  out.text = std::move(text);
  locator locator(out.text);
  builder events(out.text, locator, out);
  try {
    std::istringstream stream(out.text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
    events.end();
  } catch (const YAML::DeepRecursion& wrong) {
    return std::unexpected(fault{locator(wrong.mark), "yaml.fault.too_deep"});
  } catch (const YAML::Exception& wrong) {
    if (const auto tab = tab_in_indentation(out.text, wrong.mark.line)) return std::unexpected(*tab);
    return std::unexpected(fault{locator(wrong.mark), fault_of_library(wrong.msg)});
  }
  return out;
}

std::expected<source, std::string> read(std::string name, std::string text) {
  auto out = parse(std::move(text));
  if (!out) return std::unexpected(located(name, out.error().location, out.error().message));
  out->name = std::move(name);
  return std::move(*out);
}

std::expected<std::string, std::string> read_bytes(const std::string& path, std::istream& standard_input) {
  if (path == "-") return slurp(standard_input);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::unexpected(path + ": yaml.fault.folder");
  if (const auto wrong = fault_of_input(path); !wrong.empty()) return std::unexpected(path + ": " + wrong);
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::unexpected(path + ": " + std::strerror(errno != 0 ? errno : EIO));
  auto out = slurp(stream);
  if (stream.bad()) return std::unexpected(path + ": " + std::strerror(errno));
  return out;
}

std::expected<source, std::string> read_file(const std::string& path, std::istream& standard_input) {
  auto bytes = read_bytes(path, standard_input);
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  return read(path == "-" ? "<stdin>" : path, std::move(*bytes));
}

}  // namespace text::yaml
