#include "scheduler_config/flags/command_line.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "scheduler_config/flags/flag_table.hpp"
#include "text/text.hpp"
#include "text/yaml/source.hpp"

namespace scheduler_config {
namespace {

using text::yaml::node;

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// "registry/kube-scheduler" of "registry/kube-scheduler:v1.36.3@sha256:...".
std::string_view image_name(std::string_view image) {
  image = file_name(image.substr(0, image.find('@')));
  return image.substr(0, image.find(':'));
}

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 6> shells{"sh", "bash", "ash", "dash", "ksh", "zsh"};
  return std::ranges::find(shells, file_name(program)) != shells.end();
}
/// "-c", "-ec", "-lc": the line is the next word.
bool is_line_option(std::string_view text) {
  return text.size() > 1 && text[0] == '-' && text[1] != '-' && text.ends_with('c');
}

bool is_kube_scheduler(std::string_view name) {
  return name == "kube-scheduler" || name.starts_with("kube-scheduler-");
}

std::vector<word> words_of(const node* container, std::string_view key) {
  std::vector<word> out;
  const auto* list = text::yaml::find(container, key);
  if (!list || !list->sequence()) return out;
  for (const auto* item : list->items) out.push_back({item->text, item->location});
  return out;
}

/// What stands in the words of a shell's command: its line as words of their own.
bool follow_shell(std::vector<word>& words, command_line& out) {
  const auto option = std::ranges::find_if(words, is_line_option, &word::text);
  out.through_shell = true;
  if (option == words.end() || option + 1 == words.end()) {
    out.shell = words.front();
    return false;
  }
  const auto line = *(option + 1);
  auto parts = words_of_shell(line.text);
  if (parts && !parts->empty() && parts->front() == "exec") parts->erase(parts->begin());
  if (!parts || parts->empty() || parts->front().contains('=')) {
    out.shell = line;
    return false;
  }
  words.clear();
  for (auto& part : *parts) words.push_back({std::move(part), line.location});
  return true;
}

/// Takes the program off, with what starts it: "/go-runner --log-file=x kube-scheduler", "hyperkube scheduler".
void remove_program(std::vector<word>& words, command_line& out) {
  const auto named = std::ranges::find_if(words, [](const word& word) {
    return !word.text.starts_with('-') && !word.text.contains('=') && is_kube_scheduler(file_name(word.text));
  });
  const bool hyperkube = file_name(words.front().text) == "hyperkube";
  if (hyperkube && words.size() > 1) {
    words.erase(words.begin(), words.begin() + 2);
  } else if (named != words.end()) {
    words.erase(words.begin(), named + 1);
  } else {
    out.own_program = true;
    words.erase(words.begin());
  }
}

class flag_reader {
 public:
  flag_reader(const std::vector<word>& words, command_line& out) : words_(words), out_(out) {}

  void run() {
    for (; index_ < words_.size(); ++index_) {
      const auto& word = words_[index_];
      const std::string_view text = word.text;
      if (text == "--") {
        ++index_;
        break;
      }
      if (text.starts_with("--"))
        long_flag(word);
      else if (text.starts_with('-') && text.size() > 1)
        short_flag(word);
      else if (!text.empty())
        out_.arguments.push_back(word);
    }
    for (; index_ < words_.size(); ++index_) {
      if (!words_[index_].text.empty()) out_.arguments.push_back(words_[index_]);
    }
  }

 private:
  void long_flag(const word& word) { value(word, std::string_view(word.text).substr(2), false); }

  /// -v2, -v=2, -v 2 and -h; all else is a long flag that lost a dash.
  void short_flag(const word& word) {
    const auto rest = std::string_view(word.text).substr(1);
    if (rest[0] == 'v' && rest.size() > 1 &&
        rest.find_first_not_of("0123456789", rest[1] == '=' ? 2 : 1) == rest.npos) {
      auto& made = add(word, "v");
      made.value = rest.substr(rest[1] == '=' ? 2 : 1);
    } else if (rest == "h") {
      add(word, "help").value = "true";
    } else {
      value(word, rest, rest.size() > 1);
    }
  }

  flag& add(const word& word, std::string_view name) {
    auto& made = out_.flags.emplace_back();
    made.text = word.text;
    made.location = word.location;
    made.name = name;
    std::ranges::replace(made.name, '_', '-');
    return made;
  }

  void value(const word& word, std::string_view text, bool one_dash) {
    const auto equals = std::min(text.find('='), text.size());
    auto& made = add(word, text.substr(0, equals));
    made.one_dash = one_dash;
    if (equals < text.size()) {
      const auto value = text.substr(equals + 1);
      const auto blank = value.find(" -");
      made.has_another = blank != value.npos;
      made.value = value.substr(0, blank);
      return;
    }
    const auto* rule = flag_rule_of(made.name);
    if (rule && (rule->type == flag_type::boolean || rule->type == flag_type::version)) {
      made.value = "true";
    } else if (rule && !one_dash) {  // pflag takes the next word whatever it is
      made.without_value = index_ + 1 >= words_.size();
      if (!made.without_value) made.value = words_[++index_].text;
    } else if (index_ + 1 < words_.size() && !words_[index_ + 1].text.starts_with('-')) {
      made.value = words_[++index_].text;
    }
  }

  const std::vector<word>& words_;
  command_line& out_;
  std::size_t index_ = 0;
};

}  // namespace

std::optional<std::vector<std::string>> words_of_shell(std::string_view line) {
  line = text::trimmed(line);
  std::vector<std::string> out;
  bool inside = false;  // a word has begun
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\'' || c == '"') {
      const auto end = line.find(c, i + 1);
      if (end == line.npos) return std::nullopt;
      const auto quoted = line.substr(i + 1, end - i - 1);
      if (c == '"' && quoted.find_first_of("$`\\") != quoted.npos) return std::nullopt;
      if (!inside) out.emplace_back();
      inside = true;
      out.back() += quoted;
      i = end;
    } else if (c == '\\' && i + 1 < line.size() && line[i + 1] == '\n') {
      ++i;  // the line goes on
    } else if (c == ' ' || c == '\t') {
      inside = false;
    } else if (std::string_view("\n\r\\$`|&;<>(){}*?[]!#~").contains(c)) {
      return std::nullopt;
    } else {
      if (!inside) out.emplace_back();
      inside = true;
      out.back() += c;
    }
  }
  return out;
}

command_line read_command_line(const node* container) {
  command_line out;
  auto words = words_of(container, "command");
  const bool entrypoint = words.empty();  // the image's own
  for (const auto* key : {"command", "args"}) {
    const auto* value = text::yaml::find(container, key);
    if (value && value->scalar() && !value->text.empty()) out.text = {key, value->location};
  }
  for (auto& word : words_of(container, "args")) words.push_back(std::move(word));
  if (entrypoint) {
    // The image says which program it is.
    const auto image = text::yaml::text_at(container, "image");
    out.own_program = !image.empty() && !is_kube_scheduler(image_name(image));
  }
  if (!words.empty() && is_shell(words.front().text) && !follow_shell(words, out)) return out;
  if (!entrypoint && !out.through_shell && words.front().text.contains(' ')) {
    out.unsplit = words.front();
    return out;
  }
  if (!words.empty() && (!entrypoint || out.through_shell)) remove_program(words, out);
  flag_reader(words, out).run();
  return out;
}

}  // namespace scheduler_config
