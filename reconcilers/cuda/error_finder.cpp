#include "reconcilers/cuda/error_finder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "api/xid.hpp"
#include "reconcilers/cuda/error_pattern.hpp"
#include "reconcilers/cuda/error_signs.hpp"
#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

constexpr std::size_t longest_lookback = 512;
constexpr std::size_t longest_typed = 256;
constexpr std::size_t block_size = 64 << 10;
constexpr std::size_t most_xids = 64;
constexpr std::uint64_t largest_xid = 999;
constexpr std::uint64_t recovery_xid = 154;
/// XIDs are below 200 today: what a person types beyond that is a slip.
constexpr std::uint64_t largest_typed_xid = 199;

using words = std::span<const std::string_view>;

bool has(words list, std::string_view word) { return std::ranges::find(list, word) != list.end(); }

/// Right before a number, they make it a code.
constexpr std::string_view words_before_code[] = {"error",    "err",    "errno", "errorcode", "code", "failure",
                                                  "returned", "result", "ret",   "res",       "rc",   "with"};
/// May stand between such a word and the name of CUDA.
constexpr std::string_view filler_words[] = {
    "error",    "err",     "code",   "failed",         "failure", "fails",   "with",
    "returned", "returns", "return", "result",         "results", "unknown", "status",
    "driver",   "runtime", "api",    "call",           "kernel",  "value",   "the",
    "an",       "to",      "in",     "from",           "and",     "fatal",   "reason",
    "cause",    "init",    "got",    "initialization", "library"};
/// A number before them is an amount.
constexpr std::string_view units[] = {"device", "devices", "gpu", "gpus",    "card",    "cards",   "times",
                                      "time",   "ms",      "s",   "seconds", "percent", "retries", "streams",
                                      "events", "errors",  "of",  "mib",     "gib",     "bytes"};
/// Functions of the driver begin with one of them.
constexpr std::string_view driver_functions[] = {"cuinit",   "cudevice", "cuctx",   "cumem",    "culaunch",
                                                 "cumodule", "custream", "cuevent", "cudriver", "cugetproc",
                                                 "cuipc",    "cugraph",  "culib",   "culink",   "curesult"};
/// A sentence with one of them before the error speaks of what might be.
constexpr std::string_view hedges[] = {"if",      "whether",  "unless", "avoid",   "avoids", "avoiding",
                                       "prevent", "prevents", "means",  "meaning", "cause"};
constexpr std::string_view card_words[] = {"gpu", "nvrm", "nvidia", "dcgm"};
/// The runtimes of other vendors say the same words as CUDA behind their names.
constexpr std::string_view other_runtimes[] = {"hip", "musa", "npu"};
/// Right before a number, they make it an exit code; so does one of them before a word of `words_of_status`.
constexpr std::string_view words_of_exit[] = {"exit", "exited", "exitcode", "exit_code", "exitstatus"};
constexpr std::string_view words_of_status[] = {"code", "status", "with"};
constexpr std::string_view chinese_exit = "退出码";

std::string_view line_around(std::string_view text, std::size_t position) {
  const auto first = position > longest_lookback ? position - longest_lookback : 0;
  const auto before = text.substr(first, position - first).rfind('\n');
  const auto begin = before == text.npos ? first : first + before + 1;
  const auto after = text.substr(position, longest_lookback);
  return text.substr(begin, position - begin + after.substr(0, after.find('\n')).size());
}

std::uint64_t number_in(std::string_view digits) {
  std::uint64_t out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

/// The number from `begin` on, after `separators`; 0: something else stands there.
std::uint64_t number_after(std::string_view text, std::size_t begin, std::string_view separators) {
  begin = std::min(text.find_first_not_of(separators, begin), text.size());
  const auto word = word_at(text, begin);
  if (word.empty() || word.size() > 3 || !std::ranges::all_of(word, is_digit)) return 0;
  return number_in(word);
}

/// Goes back word by word from `end`; brackets with all that is in them are skipped.
std::string_view word_before(std::string_view text, std::size_t& end) {
  const auto floor = end > longest_lookback ? end - longest_lookback : 0;
  while (end > floor && !is_word_character(text[end - 1])) {
    const auto character = text[end - 1];
    if (!std::string_view(" :=(#'[<>,-.)").contains(character)) return {};
    --end;
    if (character != ')') continue;
    const auto group = text.substr(floor, end - floor);
    const auto open = group.rfind('(');
    if (open == text.npos || group.substr(open).contains('\n')) return {};
    end = floor + open;
  }
  const auto last = end;
  while (end > floor && is_word_character(text[end - 1])) --end;
  return text.substr(end, last - end);
}

bool speaks_of_cuda(std::string_view word) {
  if (word.starts_with("cuda")) return true;
  return std::ranges::any_of(driver_functions, [word](std::string_view name) { return word.starts_with(name); });
}

/// PyTorch asks "Did you run some cuda functions before calling NumCudaDevices() ...? Error 802: ...", Numba says
/// "[700] Call to cuMemcpyDtoH results in ...".
bool is_code_by_form(std::string_view text, std::size_t begin, std::size_t end) {
  const auto line = line_around(text, begin);
  const auto before = line.substr(0, static_cast<std::size_t>(text.data() + begin - line.data()));
  if (before.ends_with("error ") && text.substr(end).starts_with(':') && before.contains("cudagetdevicecount"))
    return true;
  return before.ends_with('[') && text.substr(end).starts_with("] call to cu");
}

/// "CUDA error: 802", "cuInit(0) failed: 100", "cudaGetDeviceCount returned 35": the words right before a number.
bool is_code_of_cuda(std::string_view text, std::size_t begin) {
  constexpr int most_words = 8;
  auto end = begin;
  auto word = word_before(text, end);
  constexpr std::string_view results[] = {"cuda_error", "cudaerror", "cudaerror_t", "curesult", "cudaresult"};
  if (has(results, word)) return true;
  if (!has(words_before_code, word) && word != "failed") return false;
  if (word == "with") {  // "failed with 2"
    constexpr std::string_view failures[] = {"failed", "fails", "failure", "error", "returned"};
    if (word = word_before(text, end); !has(failures, word)) return false;
  }
  for (int i = 0; i < most_words; ++i) {
    word = word_before(text, end);
    if (speaks_of_cuda(word)) return true;
    if (!has(filler_words, word)) return false;
  }
  return false;
}

/// "HIP error: an illegal memory access", "hipErrorInvalidDeviceFunction: invalid device function": `end` is where the
/// words begin.
bool is_of_other_runtime(std::string_view text, std::size_t end) {
  constexpr std::string_view article = " an ";
  if (text.substr(0, end).ends_with(article)) end -= article.size() - 1;
  if (!text.substr(0, end).ends_with(": ")) return false;
  auto word = word_before(text, end);
  if (word == "error") word = word_before(text, end);
  return std::ranges::any_of(other_runtimes, [word](std::string_view name) { return word.starts_with(name); });
}

/// "exit code 137", "exitCode":137, "exited with code 137", "Exited (137)", "exitcode : -9", "退出码：137": `end` is
/// where the number begins.
bool is_exit_code(std::string_view text, std::size_t end) {
  constexpr std::string_view chinese_colon = "：";
  auto before =
      text::trimmed(text.substr(end > longest_lookback ? end - longest_lookback : 0, std::min(end, longest_lookback)));
  while (before.ends_with(chinese_colon) || before.ends_with(':'))
    before = text::trimmed(before.substr(0, before.size() - (before.ends_with(':') ? 1 : chinese_colon.size())));
  if (before.ends_with(chinese_exit)) return true;
  auto word = word_before(text, end);
  for (int i = 0; i < 2 && has(words_of_status, word); ++i) word = word_before(text, end);
  return has(words_of_exit, word);
}

/// After a code comes a mark or a word that is no unit.
bool ends_as_code(std::string_view text, std::size_t end) {
  if (end >= text.size()) return true;
  if (text[end] == '.') return end + 1 >= text.size() || !is_digit(text[end + 1]);
  if (text[end] == '%' || text[end] == '/') return false;
  if (text[end] != ' ') return true;
  return !has(units, word_at(text, end + 1)) && !text.substr(end + 1).starts_with('%');
}

/// A version such as 560.35, not two numbers.
bool has_fraction(std::string_view text) {
  for (std::size_t i = 1; i + 1 < text.size(); ++i)
    if (text[i] == '.' && is_digit(text[i - 1]) && is_digit(text[i + 1])) return true;
  return false;
}

std::size_t section_named(std::string_view id) {
  const auto signs = all_error_signs();
  return static_cast<std::size_t>(std::ranges::find(signs, id, &error_signs::id) - signs.begin());
}

}  // namespace

std::string_view section_of_xid(std::uint64_t xid) {
  if (xid == recovery_xid) return "xid-154";
  const auto* entry = api::find_xid(xid);
  if (entry == nullptr) return "xid-other";
  switch (entry->cause) {
    case api::xid_cause::program:
      return "xid-program";
    case api::xid_cause::memory:
      return "xid-memory";
    case api::xid_cause::nvlink:
      return "xid-nvlink";
    case api::xid_cause::firmware:
      return "xid-gsp";
    case api::xid_cause::bus:
      return entry->action == api::xid_class::fatal ? "xid-79" : "xid-other";
    case api::xid_cause::card:
      return entry->action == api::xid_class::fatal ? "xid-card" : "xid-other";
    case api::xid_cause::driver:
    case api::xid_cause::unknown:
      return "xid-other";
  }
  return "xid-other";
}

error_finder::error_finder() : found_(all_error_signs().size(), false) {}

void error_finder::read(std::string_view part) {
  while (!part.empty()) {
    cleaner_.append(part.substr(0, block_size), text_);
    part.remove_prefix(std::min(part.size(), block_size));
    if (text_.size() - next_ < block_size + longest_match) continue;
    search(text_.size() - longest_match);
    const auto kept = std::min(next_, longest_lookback);
    text_.erase(0, next_ - kept);
    next_ = kept;
    is_whole_ = false;
  }
}

void error_finder::finish() {
  search(text_.size());
  if (is_whole_ && text_.size() <= longest_typed) read_typed();
  for (const auto xid : xids_) found_[section_named(section_of_xid(xid))] = true;
}

void error_finder::search(std::size_t end) {
  while (next_ < end) {
    if (!is_word_character(text_[next_])) {
      ++next_;
      continue;
    }
    const auto begin = next_;
    while (next_ < text_.size() && is_word_character(text_[next_])) ++next_;
    // A word that began in the part before is seen from its middle here.
    if (begin == 0 || !is_word_character(text_[begin - 1])) read_word(begin, next_);
  }
}

void error_finder::read_word(std::size_t begin, std::size_t end) {
  const auto word = std::string_view(text_).substr(begin, end - begin);
  if (is_digit(word.front())) {
    if (word.size() > 3) return;
    read_code(begin, end);
    return read_exit(begin, end);
  }
  if (word.starts_with("xid")) read_xid(begin, end);
  if (word == "dcgm_fi_dev_xid_errors") read_xid_metric(end);
  read_patterns(begin, word);
}

void error_finder::read_patterns(std::size_t begin, std::string_view word) {
  const auto& index = signs_by_word();
  const auto read = [&](const error_index::pattern& pattern) {
    if (found_[pattern.section] || !stands_at(pattern, text_, begin)) return;
    if (is_hedged(begin) || is_of_other_runtime(text_, begin)) return;
    found_[pattern.section] = true;
  };
  // A word begins with an ASCII letter here.
  std::ranges::for_each(index.open[static_cast<unsigned char>(word.front())], read);
  if (const auto match = index.patterns.find(word); match != index.patterns.end())
    std::ranges::for_each(match->second, read);
}

void error_finder::read_code(std::size_t begin, std::size_t end) {
  const auto& codes = signs_by_word().codes;
  const auto code = codes.find(std::string_view(text_).substr(begin, end - begin));
  if (code == codes.end() || found_[code->second]) return;
  const bool is_code =
      is_code_by_form(text_, begin, end) || (ends_as_code(text_, end) && is_code_of_cuda(text_, begin));
  if (is_code && !is_hedged(begin)) found_[code->second] = true;
}

void error_finder::read_exit(std::size_t begin, std::size_t end) {
  const std::string_view text = text_;
  const bool is_signal = begin > 0 && text[begin - 1] == '-';
  const auto& exits = signs_by_word().exits;
  const auto code = exits.find(text.substr(begin - is_signal, end - begin + is_signal));
  if (code == exits.end() || found_[code->second] || !ends_as_code(text, end)) return;
  if (is_exit_code(text, begin - is_signal) && !is_hedged(begin)) found_[code->second] = true;
}

/// "Xid (PCI:0000:3b:00): 48", and on a line that speaks of a card "Xid=48", "XID error 48", "XID48".
void error_finder::read_xid(std::size_t begin, std::size_t end) {
  const std::string_view text = text_;
  auto next = std::min(text.find_first_not_of(' ', end), text.size());
  if (next < text.size() && text[next] == '(') {
    constexpr std::size_t longest_address = 40;
    const auto close = text.substr(next, longest_address).find(')');
    if (close == text.npos || !text.substr(next, close).contains(':')) return;
    add_xid(number_after(text, next + close + 1, ": "));
    return;
  }
  const auto word = text.substr(begin, end - begin);
  auto xid = number_after(word, 3, "");
  if (word == "xid") {
    constexpr std::string_view separators = " =:#'-";
    for (const auto* name : {"error", "code", "event", "number"}) {
      const auto other = std::min(text.find_first_not_of(separators, next), text.size());
      if (word_at(text, other) == name) next = other + std::string_view(name).size();
    }
    xid = number_after(text, next, separators);
  }
  const auto line = line_around(text, begin);
  if (xid != 0 && std::ranges::any_of(card_words, [line](auto name) { return line.contains(name); }) &&
      !is_hedged(begin))
    add_xid(xid);
}

/// DCGM_FI_DEV_XID_ERRORS{gpu="0",...} 48, or without labels.
void error_finder::read_xid_metric(std::size_t end) {
  const std::string_view text = text_;
  auto line = text.substr(end, longest_match);
  line = line.substr(0, line.find('\n'));
  const auto close = line.rfind('}');
  add_xid(number_after(line, close == line.npos ? 0 : close + 1, " =:"));
}

void error_finder::add_xid(std::uint64_t xid) {
  if (xid != 0 && xid <= largest_xid && xids_.size() < most_xids) xids_.insert(xid);
}

/// The same sentence has said before that this might be, or what to do then.
bool error_finder::is_hedged(std::size_t begin) const {
  constexpr std::size_t longest_sentence = 160;
  const auto first = begin > longest_sentence ? begin - longest_sentence : 0;
  auto sentence = std::string_view(text_).substr(first, begin - first);
  for (auto end = sentence.size(); end-- > 0;) {
    const auto character = sentence[end];
    const bool is_end =
        std::string_view(".:?!;").contains(character) && end + 1 < sentence.size() && sentence[end + 1] == ' ';
    if (character != '\n' && !is_end) continue;
    sentence.remove_prefix(end + 1);
    break;
  }
  bool out = false;
  each_part(sentence, " ,:()'", [&](std::string_view word) { out = out || has(hedges, word); });
  return out;
}

/// All of it is numbers with the words that people put before them, or a name. Each number has its own verdict.
void error_finder::read_typed() {
  const auto typed = text::trimmed(text_);
  const auto& names = signs_by_word().names;
  if (const auto match = names.find(typed); match != names.end()) found_[match->second] = true;
  struct number_read {
    std::string_view number;
    bool is_xid, is_bare;
  };
  std::vector<number_read> numbers;
  bool is_xid = false, has_other = false, is_bare = true;
  each_part(typed, " \n:=()#',.!;/", [&](std::string_view word) {
    constexpr std::string_view allowed[] = {"cuda",   "error",  "code", "cudaerror", "err", "failure", "runtime",
                                            "driver", "nvidia", "nvrm", "number",    "and", "or"};
    if (word.starts_with("xid")) {
      is_xid = true;
      word.remove_prefix(word.starts_with("xids") ? 4 : 3);
    } else if (word.starts_with("cuda")) {
      is_xid = false;
    }
    if (!word.empty() && std::ranges::all_of(word, is_digit))
      return numbers.push_back({word, is_xid, is_bare && !is_xid});
    has_other = has_other || (!word.empty() && !has(allowed, word));
    is_bare = is_bare && (word.empty() || word == "and" || word == "or");
  });
  if (has_other || has_fraction(typed)) return;
  for (const auto& entry : numbers) read_typed_number(entry.number, entry.is_xid, entry.is_bare);
}

void error_finder::read_typed_number(std::string_view number, bool is_xid, bool is_bare) {
  const auto value = number.size() <= 3 ? number_in(number) : 0;
  if (is_xid && value != 0 && value <= largest_typed_xid) return add_xid(value);
  const auto& codes = signs_by_word().codes;
  const auto code = is_xid ? codes.end() : codes.find(number);
  if (code != codes.end()) found_[code->second] = true;
  const auto& exits = signs_by_word().exits;
  const auto exit = is_bare ? exits.find(number) : exits.end();
  if (exit != exits.end()) found_[exit->second] = true;
  // A number alone may be all of them; what only a program did is then said of CUDA's.
  const auto* xid = is_bare ? api::find_xid(value) : nullptr;
  const bool is_other = code != codes.end() || exit != exits.end();
  if (xid != nullptr && (!is_other || xid->action == api::xid_class::fatal)) return add_xid(value);
  if (!is_other && unknown_.size() < most_xids) unknown_.push_back((is_xid ? "Xid " : "") + std::string(number));
}

}  // namespace reconcilers::cuda
