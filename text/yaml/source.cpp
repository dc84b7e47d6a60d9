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

#include "text/text.hpp"

namespace reconcilers::yaml {
namespace {

constexpr std::size_t max_merged = 1'000'000;
constexpr int max_depth = 200;  // of values; aliases nest deeper than any file

/// Where the parser is, in characters: its own columns count bytes. Places are asked for in the order of the text
/// mostly, so each character is counted once even where a file is one line.
class locator {
 public:
  explicit locator(const std::string& text) : text_(text) {}

  place operator()(const YAML::Mark& mark) {
    if (mark.is_null()) return last_;
    const auto end = std::min(text_.size(), static_cast<std::size_t>(mark.pos));
    if (mark.line + 1 != last_.line || end < at_) {
      last_ = {mark.line + 1, 1};
      at_ = end - std::min(end, static_cast<std::size_t>(mark.column));
    }
    for (; at_ < end; ++at_) last_.column += (static_cast<unsigned char>(text_[at_]) & 0xc0) != 0x80;
    return last_;
  }

 private:
  const std::string& text_;
  place last_;
  std::size_t at_ = 0;
};

std::string located(const std::string& name, place at, std::string_view what) {
  return name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + std::string(what);
}

/// Makes the tree out of the parser's events.
class builder final : public YAML::EventHandler {
 public:
  builder(std::string_view text, locator& where, source& into) : text_(text), where_(where), into_(into) {}

  /// The parser takes whatever is left over for the next document; what is none by its looks is a slip of the hand.
  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();
    const auto rest = from(mark);
    const auto before = text_.substr(0, text_.size() - rest.size());
    const bool announced = rest.starts_with("---") || rest.starts_with('{') || rest.starts_with('[') ||
                           before.substr(document_).contains("\n...");
    if (any_ && !announced)
      throw YAML::ParserException(mark, "this does not belong to what is above it: indentation, or a missing ---");
    any_ = true;
    document_ = before.size();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(remember(make(mark, node::shape::null), anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto at = anchors_.find(anchor);
    if (at == anchors_.end()) throw YAML::ParserException(mark, "an alias inside of what it stands for");
    add(at->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto* made = make(mark, node::shape::scalar);
    made->text = value;
    made->quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (const auto rest = from(mark); rest.starts_with('"') || rest.starts_with('\'')) last_quoted_ = mark;
    add(remember(made, anchor));
  }
  /// The parser lets a quote run to the end of the file.
  void end() const {
    const auto mark = last_quoted_.value_or(YAML::Mark());
    auto rest = last_quoted_ ? from(mark) : std::string_view();
    if (rest.empty()) return;
    const auto quote = rest.substr(0, 1);
    const std::string_view escaped = quote == "'" ? "''" : "\\";  // what begins two characters that do not close it
    for (rest.remove_prefix(1); !rest.empty() && (!rest.starts_with(quote) || rest.starts_with(escaped));)
      rest.remove_prefix(std::min<std::size_t>(rest.starts_with(escaped) ? 2 : 1, rest.size()));
    if (rest.empty()) throw YAML::ParserException(mark, "this quote is never closed");
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
    const node* key;  ///< of a mapping, while its value is awaited
  };

  std::string_view from(const YAML::Mark& mark) const {
    return text_.substr(std::min(text_.size(), static_cast<std::size_t>(std::max(mark.pos, 0))));
  }
  node* make(const YAML::Mark& mark, node::shape is, YAML::EmitterStyle::value style = YAML::EmitterStyle::Default) {
    auto& made = into_.nodes.emplace_back();
    made.is = is;
    made.at = where_(mark);
    made.from = mark.is_null() ? text_.size() : text_.size() - from(mark).size();
    made.flow = style == YAML::EmitterStyle::Flow;
    return &made;
  }
  const node* remember(const node* made, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = made;
    return made;
  }
  void add(const node* made) {
    if (open_.empty()) {
      if (made->is != node::shape::null) into_.documents.push_back(made);
      return;
    }
    auto& to = open_.back();
    if (to.made->sequence()) {
      to.made->items.push_back(made);
    } else if (!to.key) {
      to.key = made;
    } else {
      to.made->entries.push_back({to.key, made});
      to.key = nullptr;
    }
  }
  void close() {
    const auto done = open_.back();
    open_.pop_back();
    add(remember(done.made, done.anchor));
  }

  /// `<<: *other`: what stands in the mapping itself wins, then the first that is merged.
  void merge(node& into) {
    const auto is_merge = [](const node::entry& of) {
      return of.key->scalar() && !of.key->quoted && of.key->text == "<<";
    };
    if (std::ranges::none_of(into.entries, is_merge)) return;
    std::vector<const node*> from;
    for (const auto& one : into.entries) {
      if (!is_merge(one)) continue;
      if (one.value->sequence())
        from.insert(from.end(), one.value->items.begin(), one.value->items.end());
      else
        from.push_back(one.value);
    }
    std::erase_if(into.entries, is_merge);
    std::unordered_map<std::string_view, const node*> there;
    for (const auto& one : into.entries) there.emplace(one.key->text, one.key);
    const auto own = into.entries.size();
    for (const auto* other : from) {
      if ((merged_ += other->entries.size()) > max_merged) throw YAML::ParserException(YAML::Mark(), "too many merges");
      for (const auto& one : other->entries) {
        const auto [at, absent] = there.emplace(one.key->text, one.key);
        if (absent)
          into.entries.push_back(one);
        else
          into.overridden = at->second;
      }
    }
    into.merged = into.entries.size() - own;
  }

  std::string_view text_;
  locator& where_;
  source& into_;
  bool any_ = false;  // a document was begun
  std::size_t document_ = 0;
  std::optional<YAML::Mark> last_quoted_;
  std::vector<level> open_;
  std::map<YAML::anchor_t, const node*> anchors_;
  std::size_t merged_ = 0;
};

/// The first character kubectl would refuse; libyaml's rule, reader.c.
std::optional<std::pair<place, std::string>> illegal_character(std::string_view text) {
  place at;
  while (!text.empty()) {
    const auto c = crl::take_character(text);
    if (c == crl::not_utf8) return std::pair(at, "not UTF-8");
    const bool legal = c == 0x09 || c == 0x0a || c == 0x0d || c == 0x85 || (c >= 0x20 && c <= 0x7e) ||
                       (c >= 0xa0 && c <= 0xd7ff) || (c >= 0xe000 && c <= 0xfffd && c != 0xfeff) || c >= 0x10000;
    if (!legal) return std::pair(at, "control characters are not allowed");
    if (c == '\n')
      ++at.line, at.column = 1;
    else
      ++at.column;
  }
  return std::nullopt;
}

/// JSON writes a character beyond U+FFFF as two \u escapes, YAML as one \U.
std::string without_surrogates(std::string_view text) {
  const auto unit = [&](std::size_t at) -> unsigned {
    if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return 0;
    unsigned value = 0;
    const auto* const end = text.data() + at + 6;
    const auto [stopped, wrong] = std::from_chars(text.data() + at + 2, end, value, 16);
    return wrong == std::errc{} && stopped == end ? value : 0;
  };
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const auto high = unit(at), low = unit(at + 6);
    if (high < 0xd800 || high >= 0xdc00 || low < 0xdc00 || low >= 0xe000) {
      at += 2;
      continue;
    }
    std::array<char, 16> joined{};
    std::snprintf(joined.data(), joined.size(), "\\U%08x", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
    out += text.substr(done, at - done);
    out += joined.data();
    done = at += 12;
  }
  return out += text.substr(done);
}

void add_json(const node& of, nlohmann::json& to, std::size_t& left, int depth = 0) {
  if (depth > max_depth) left = 0;
  if (left == 0) return;
  --left;
  switch (of.is) {
    case node::shape::null:
      to = nullptr;
      return;
    case node::shape::sequence:
      to = nlohmann::json::array();
      for (const auto* item : of.items) add_json(*item, to.emplace_back(), left, depth + 1);
      return;
    case node::shape::mapping:
      to = nlohmann::json::object();
      for (const auto& [key, value] : of.entries)
        add_json(*value, to[key->scalar() ? canonical(*key) : "?"], left, depth + 1);
      return;
    case node::shape::scalar:
      break;
  }
  switch (type_of(of)) {
    case type::null:
      to = nullptr;
      return;
    case type::boolean:
      to = canonical(of) == "true";
      return;
    case type::integer: {
      const auto digits = canonical(of);
      errno = 0;
      const auto value = std::strtoll(digits.c_str(), nullptr, 10);
      if (errno == 0)
        to = value;
      else
        to = digits;
      return;
    }
    case type::text:
    case type::real:
      to = of.text;
  }
}

/// One byte more than is allowed at most, so that /dev/zero ends too.
std::string slurp(std::istream& in) {
  std::string out(1u << 16, '\0');
  std::size_t size = 0;
  while (in && size <= max_bytes) {
    if (out.size() - size < out.size() / 2) out.resize(out.size() * 2);
    in.read(out.data() + size, static_cast<std::streamsize>(out.size() - size));
    size += static_cast<std::size_t>(in.gcount());
  }
  out.resize(size);
  return out;
}

}  // namespace

type type_of(const node& scalar) {
  if (scalar.is == node::shape::null) return type::null;
  return scalar.quoted ? type::text : type_of_plain(scalar.text);
}

std::string canonical(const node& of) {
  if (of.is == node::shape::null) return {};
  if (of.scalar()) return of.quoted ? of.text : canonical_plain(of.text);
  const auto json = to_json(of, 512);
  auto out = json ? json->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : std::string();
  return out.size() > 65'536 ? std::string() : out;
}

const node::entry* find_entry(const node* in, std::string_view key) {
  if (!in || !in->mapping()) return nullptr;
  const node::entry* out = nullptr;
  for (const auto& one : in->entries) {
    if (one.key->scalar() && one.key->text == key) out = &one;
  }
  return out;
}

const node* find(const node* in, std::string_view key) {
  const auto* entry = find_entry(in, key);
  return entry ? entry->value : nullptr;
}

std::string_view text_at(const node* in, std::string_view key) {
  const auto* value = find(in, key);
  return value && value->scalar() ? std::string_view(value->text) : std::string_view();
}

std::vector<const node*> repeated_keys(const node* in) {
  std::vector<const node*> out;
  if (!in || !in->mapping()) return out;
  std::unordered_set<std::string_view> later;
  for (auto at = in->entries.rbegin(); at != in->entries.rend(); ++at) {
    if (at->key->scalar() && !later.insert(at->key->text).second) out.push_back(at->key);
  }
  std::ranges::reverse(out);
  return out;
}

std::optional<nlohmann::json> to_json(const node& of, std::size_t most) {
  nlohmann::json out;
  std::size_t left = most;
  add_json(of, out, left);
  if (left == 0) return std::nullopt;
  return out;
}

std::expected<source, fault> parse(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (text.size() > max_bytes) return std::unexpected(fault{{}, "larger than 32 MiB"});
  if (const auto illegal = illegal_character(text)) return std::unexpected(fault{illegal->first, illegal->second});
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && (text[first] == '{' || text[first] == '[')) text = without_surrogates(text);
  source out;
  out.text = std::move(text);
  locator where(out.text);
  builder events(out.text, where, out);
  try {
    std::istringstream stream(out.text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
    events.end();
  } catch (const YAML::DeepRecursion& wrong) {
    const auto levels = std::to_string(wrong.depth());
    return std::unexpected(fault{where(wrong.mark), "nested " + levels + " levels deep; allowed are fewer"});
  } catch (const YAML::Exception& wrong) {
    return std::unexpected(fault{where(wrong.mark), wrong.msg});
  }
  return out;
}

std::expected<source, std::string> read(std::string name, std::string text) {
  auto out = parse(std::move(text));
  if (!out) return std::unexpected(located(name, out.error().at, out.error().what));
  out->name = std::move(name);
  return std::move(*out);
}

std::expected<std::string, std::string> read_bytes(const std::string& path, std::istream& standard_input) {
  if (path == "-") return slurp(standard_input);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return std::unexpected(path + ": a directory; name the files in it, for example " + path + "/*.yaml");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::unexpected(path + ": " + std::strerror(errno != 0 ? errno : EIO));
  return slurp(in);
}

std::expected<source, std::string> read_file(const std::string& path, std::istream& standard_input) {
  auto bytes = read_bytes(path, standard_input);
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  return read(path == "-" ? "<stdin>" : path, std::move(*bytes));
}

}  // namespace reconcilers::yaml
