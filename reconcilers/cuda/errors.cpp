#include "reconcilers/cuda/errors.hpp"

#include <algorithm>
#include <string>

#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

/// What an error is known by; its words stand in the pages.
struct signs {
  std::string_view id, name;
  int code;
  std::string_view phrases;
};

constexpr signs sign_table[] = {
    {"unsatisfied-condition", "", 0, "unsatisfied condition"},
    {"invalid-image", "CUDA_ERROR_INVALID_IMAGE", 200,
     "cudaerrorinvalidkernelimage\n"
     "device kernel image is invalid"},
    {"no-binary-for-gpu", "CUDA_ERROR_NO_BINARY_FOR_GPU", 209,
     "cudaerrornokernelimagefordevice\n"
     "no kernel image is available for execution"},
    {"illegal-address", "CUDA_ERROR_ILLEGAL_ADDRESS", 700,
     "cudaerrorillegaladdress\n"
     "illegal memory access was encountered"},
    {"unsupported-ptx-version", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 222,
     "cudaerrorunsupportedptxversion\n"
     "ptx was compiled with an unsupported toolchain"},
    {"insufficient-driver", "cudaErrorInsufficientDriver", 35,
     "driver version is insufficient for cuda runtime version"},
    {"unknown-error", "CUDA_ERROR_UNKNOWN", 999,
     "cudaerrorunknown\n"
     "cuda error: unknown error\n"
     "cuda unknown error"},
    {"system-not-ready", "CUDA_ERROR_SYSTEM_NOT_READY", 802,
     "cudaerrorsystemnotready\n"
     "system not yet initialized"},
    {"driver-mismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 803,
     "cudaerrorsystemdrivermismatch\n"
     "unsupported display driver / cuda driver combination"},
    {"forward-package-not-supported", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", 804,
     "cudaerrorcompatnotsupportedondevice\n"
     "forward compatibility was attempted on non supported hw"},
    {"vllm-bf16", "", 0, "bfloat16 is only supported on gpus with compute capability"},
    {"paddle-auto-growth", "", 0,
     "autogrowthbestfitallocator\n"
     "auto_growth\n"
     "autogrow"},
    {"out-of-memory", "CUDA_ERROR_OUT_OF_MEMORY", 0,
     "cuda out of memory\n"
     "cuda error: out of memory\n"
     "cudaerrormemoryallocation\n"
     "cuda failure 2: out of memory\n"
     "memory allocation error: out of memory\n"
     "oom when allocating tensor"},
    {"nvml-unknown-error", "", 0, "failed to initialize nvml: unknown error"},
    {"xid-79", "Xid 79", 0, "fallen off the bus"},
    {"no-cuda-device", "CUDA_ERROR_NO_DEVICE", 100,
     "torch.cuda.is_available() false\n"
     "torch.cuda.is_available() is false\n"
     "torch.cuda.is_available(): false\n"
     "torch.cuda.is_available() returns false\n"
     "torch.cuda.is_available() returned false\n"
     "torch.cuda.is_available() -> false\n"
     "torch.cuda.is_available() == false\n"
     "torch.cuda.is_available()) false\n"
     "no cuda gpus are available\n"
     "no cuda-capable device is detected\n"
     "found no nvidia driver on your system\n"
     "torch not compiled with cuda enabled"},
};

// Raw string literals that the build makes of docs/troubleshooting*.md.
constexpr std::string_view english_page =
#include "troubleshooting.md.inc"
    ;
constexpr std::string_view chinese_page =
#include "troubleshooting.zh.md.inc"
    ;

/// What stands between two marks; to the end where the second is not there.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  const auto match = text.find(begin);
  if (match == text.npos) return {};
  text.remove_prefix(match + begin.size());
  return text.substr(0, text.find(end));
}

/// The items of a Markdown list, one a line; a line that is no item belongs to the one before it.
std::string steps_of(std::string_view list) {
  std::string out;
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find('\n', begin), list.size());
    const auto line = list.substr(begin, end - begin);
    const bool item = line.starts_with("- ");
    if (!out.empty()) out += item ? '\n' : ' ';
    out += item ? line.substr(2) : text::trimmed(line);
    begin = end + 1;
  }
  return out;
}

/// The section of a page that ends with the command for `id`.
std::string_view section_of(std::string_view page, std::string_view id) {
  const auto command = "`quartermaster explain error " + std::string(id);
  for (auto position = page.find("\n## "); position != page.npos;) {
    const auto next = page.find("\n## ", position + 1);
    const auto section = page.substr(position, next - position);
    if (section.contains(command + "`") || section.contains(command + " --lang")) return section;
    position = next;
  }
  return {};
}

error_words words_of(std::string_view section, std::string_view symptom, std::string_view check,
                     std::string_view cure) {
  return {.title = std::string(between(section, "\n## ", "\n")),
          .symptom = steps_of(between(section, symptom, "\n\n")),
          .check = steps_of(between(section, check, "\n\n")),
          .cure = steps_of(between(section, cure, "\n\n"))};
}

std::vector<known_error> read_pages() {
  std::vector<known_error> out;
  for (const auto& row : sign_table) {
    const auto english = section_of(english_page, row.id), chinese = section_of(chinese_page, row.id);
    auto source = between(english, "source: ", "\n");
    if (source.starts_with('<')) source = between(source, "<", ">");
    out.push_back({.id = row.id,
                   .name = row.name,
                   .code = row.code,
                   .phrases = row.phrases,
                   .source = source,
                   .en = words_of(english, "**Symptom** ", "**Check**\n\n", "**Cure**\n\n"),
                   .zh = words_of(chinese, "**现象** ", "**检查**\n\n", "**处理**\n\n")});
  }
  return out;
}

bool is_figure(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_figure(c) || (c >= 'a' && c <= 'z') || c == '_'; }

/// Calls `each` for the parts of `text` between separators that are not empty.
template <class Each>
void each_part(std::string_view text, std::string_view separators, Each each) {
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// `word` as a whole word of `text`.
bool has_word(std::string_view text, std::string_view word) {
  for (auto match = text.find(word); match != std::string_view::npos; match = text.find(word, match + 1)) {
    const auto after = match + word.size();
    if ((match == 0 || !is_word(text[match - 1])) && (after == text.size() || !is_word(text[after]))) return true;
  }
  return false;
}

/// Nothing but a number and the words people put before it.
bool is_code(std::string_view text, std::string_view code) {
  bool found = false, other = false;
  each_part(text, " \t\r\n:=()#", [&](std::string_view word) {
    if (word == code)
      found = true;
    else if (word != "cuda" && word != "error" && word != "code")
      other = true;
  });
  return found && !other;
}

/// A log line that speaks of CUDA and has the number right behind a word for an error.
bool line_has_code(std::string_view line, std::string_view code) {
  if (!line.contains("cuda") && !line.contains("cuinit")) return false;
  for (auto match = line.find(code); match != std::string_view::npos; match = line.find(code, match + 1)) {
    const auto after = match + code.size();
    if ((match > 0 && (is_word(line[match - 1]) || line[match - 1] == '.')) ||
        (after < line.size() && (is_figure(line[after]) || line[after] == '.')))
      continue;
    const auto before = line.substr(match > 20 ? match - 20 : 0, std::min<std::size_t>(match, 20));
    for (const auto* word : {"error", "err", "code", "returned", "status"}) {
      if (has_word(before, word)) return true;
    }
  }
  return false;
}

std::string with_single_blanks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_part(text, " \t\r\n", [&](std::string_view word) {
    if (!out.empty()) out += ' ';
    out += word;
  });
  return out;
}

/// `flat`: the text with single blanks only, because terminals break lines where they like.
bool names_error(std::string_view text, std::string_view flat, const known_error& known_error) {
  const auto trimmed = text::trimmed(text);
  if (trimmed == known_error.id) return true;
  bool found = false;
  each_part(known_error.phrases, "\n", [&](std::string_view phrase) { found = found || flat.contains(phrase); });
  if (found) return true;
  if (!known_error.name.empty()) {
    const auto name = text::lower_case(known_error.name);
    constexpr std::string_view prefix = "cuda_error_";
    if (has_word(text, name)) return true;
    // "INVALID_IMAGE" alone; a word like "unknown" within a log says nothing.
    if (name.starts_with(prefix) && name.substr(prefix.size()).contains('_') &&
        trimmed == std::string_view(name).substr(prefix.size()))
      return true;
  }
  if (known_error.code == 0) return false;
  const auto code = std::to_string(known_error.code);
  if (is_code(trimmed, code)) return true;
  each_part(text, "\n", [&](std::string_view line) { found = found || line_has_code(line, code); });
  return found;
}

}  // namespace

std::span<const known_error> known_errors() {
  static const auto all = read_pages();
  return all;
}

std::vector<const known_error*> errors_in(std::string_view text) {
  const auto lower = text::lower_case(text);
  const auto flat = with_single_blanks(lower);
  std::vector<const known_error*> out;
  for (const auto& known_error : known_errors()) {
    if (names_error(lower, flat, known_error)) out.push_back(&known_error);
  }
  return out;
}

}  // namespace reconcilers::cuda
