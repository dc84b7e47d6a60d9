// What errors are known by, and what of docs/troubleshooting*.md is read.
#include "reconcilers/cuda/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "reconcilers/cuda/error_pattern.hpp"
#include "reconcilers/cuda/error_signs.hpp"
#include "test/words.hpp"
#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using testing::ElementsAre;
using text::language;
using ids = std::vector<std::string>;

ids named(std::string_view text) {
  ids out;
  for (const auto& match : errors_in(text)) out.emplace_back(match.error->id);
  return out;
}

TEST(errors, S31_are_known_by_code_and_by_name) {
  const std::pair<const char*, const char*> table[] = {
      {"INVALID_IMAGE", "invalid-image"},
      {"CUDA_ERROR_INVALID_IMAGE", "invalid-image"},
      {"cudaErrorInvalidKernelImage", "invalid-image"},
      {"200", "invalid-image"},
      {"ILLEGAL_ADDRESS", "illegal-address"},
      {"illegal_address", "illegal-address"},
      {"700", "illegal-address"},
      {"UNSUPPORTED_PTX_VERSION", "unsupported-ptx-version"},
      {"222", "unsupported-ptx-version"},
      {"999", "unknown-error"},
      {"CUDA_ERROR_UNKNOWN (999)", "unknown-error"},
      {" error 999 ", "unknown-error"},
      {"802", "system-not-ready"},
      {"Error 802", "system-not-ready"},
      {"CUDA error: 802", "system-not-ready"},
      {"35", "insufficient-driver"},
      {"209", "no-binary-for-gpu"},
      {"803", "driver-mismatch"},
      {"804", "forward-package-not-supported"},
      {"vllm-bf16", "vllm-bf16"},
      {"unsatisfied condition: cuda>=12.4", "unsatisfied-condition"},
  };
  for (const auto& [text, id] : table) EXPECT_THAT(named(text), ElementsAre(id)) << text;
}

TEST(errors, S31_S78_S91_are_found_in_pasted_lines) {
  const std::pair<const char*, const char*> table[] = {
      {"nvidia-container-cli: requirement error: unsatisfied condition: cuda>=11.7, please update your driver to a "
       "newer "
       "version, or use an earlier cuda container: unknown",
       "unsatisfied-condition"},
      {"ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has "
       "compute capability 7.5.",
       "vllm-bf16"},
      {"UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet "
       "initialized (Triggered internally at CUDAFunctions.cpp:109.)",
       "system-not-ready"},
      {"time=2025 level=DEBUG\ncuInit err: 802\nmore", "system-not-ready"},
      {"cudaGetDeviceCount returned 35\n-> CUDA driver version is insufficient for CUDA runtime version",
       "insufficient-driver"},
      {"RuntimeError: CUDA error: an illegal memory access was encountered", "illegal-address"},
      {"CUDA error at main.cu:256 code=999(cudaErrorUnknown) \"cudaSetDevice(0)\"", "unknown-error"},
      {"RuntimeError: CUDA error: device kernel image is invalid", "invalid-image"},
      {"the provided PTX was compiled with an unsupported toolchain.", "unsupported-ptx-version"},
      {"no kernel image is available for execution on the device", "no-binary-for-gpu"},
      {"paddle::memory::allocation::AutoGrowthBestFitAllocator::AllocImpl(unsigned long)", "paddle-auto-growth"},
      {"Error 804: forward compatibility was attempted on non supported HW", "forward-package-not-supported"},
  };
  for (const auto& [text, id] : table) EXPECT_THAT(named(text), ElementsAre(id)) << text;
}

/// As people paste them: PyTorch, TensorFlow, ONNX Runtime, nvidia-smi, the kernel's log, a Python prompt.
TEST(errors, what_people_paste_most_is_known) {
  const std::pair<const char*, const char*> table[] = {
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.75 "
       "GiB "
       "of which 1.06 GiB is free.",
       "out-of-memory"},
      {"RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API "
       "call",
       "out-of-memory"},
      {"failed to allocate 2.25G (2415919104 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
       "out-of-memory"},
      {"ResourceExhaustedError: OOM when allocating tensor with shape[256,128,112,112]", "out-of-memory"},
      {"onnxruntime::CudaCall CUDA failure 2: out of memory ; GPU=0 ; hostname=infer", "out-of-memory"},
      {"OUT_OF_MEMORY", "out-of-memory"},
      {"$ nvidia-smi\nFailed to initialize NVML: Unknown Error", "nvml-unknown-error"},
      {"[12345.678901] NVRM: Xid (PCI:0000:5e:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
       "xid-79"},
      {"Xid 79", "xid-79"},
      {">>> torch.cuda.is_available()\nFalse", "no-cuda-device"},
      {"RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is\nFalse.",
       "no-cuda-device"},
      {"torch.cuda.is_available() -> False", "no-cuda-device"},
      {"RuntimeError: No CUDA GPUs are available", "no-cuda-device"},
      {"AssertionError: Torch not compiled with CUDA enabled", "no-cuda-device"},
      {"CUDA error: no CUDA-capable device is detected", "no-cuda-device"},
  };
  for (const auto& [text, id] : table) EXPECT_THAT(named(text), ElementsAre(id)) << text;
}

TEST(errors, what_is_none_is_not_found) {
  for (const auto* text : {"", " ", "0", "1", "HTTP status 200", "exit code 35", "error 12002", "GET / 200 OK cuda",
                           "cuda 12.4.999", "took 700 ms", "unknown", "torch.cuda.is_available() True", "Xid 790",
                           "CUDA 11.7, error budget 99", "Error 8020", "cuda error at line.cu:1802"})
    EXPECT_THAT(named(text), ElementsAre()) << text;
}

struct corpus_case {
  int line;
  ids expected;
  std::string text;
};
std::ifstream corpus(const char* name) {
  return std::ifstream(std::filesystem::path(SOURCE_ROOT) / "test/reconcilers/cuda" / name);
}
std::vector<corpus_case> read_corpus(std::istream&& file) {
  std::vector<corpus_case> out;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with('#') || line.empty()) continue;
    const bool is_head = line.starts_with('[') && line.ends_with(']') &&
                         line.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789- []") == line.npos;
    if (!is_head) {
      out.back().text += line + "\n";
      continue;
    }
    out.push_back({number, {}, {}});
    std::istringstream names(line.substr(1, line.size() - 2));
    for (std::string name; names >> name;) out.back().expected.push_back(name);
  }
  return out;
}

TEST(errors, S31_each_line_of_the_corpus_has_its_sections_and_no_other) {
  const auto cases = read_corpus(corpus("error_lines.txt"));
  EXPECT_GE(cases.size(), 600u);
  std::set<std::string> seen;
  for (const auto& entry : cases) {
    EXPECT_EQ(named(entry.text), entry.expected) << "error_lines.txt:" << entry.line << ": " << entry.text;
    seen.insert(entry.expected.begin(), entry.expected.end());
  }
  for (const auto& known_error : known_errors())
    EXPECT_TRUE(seen.contains(std::string(known_error.id))) << "no line of the corpus is about " << known_error.id;
}

TEST(errors, S31_nothing_is_found_in_innocent_lines) {
  auto file = corpus("innocent_lines.txt");
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.empty()) continue;
    ++count;
    EXPECT_EQ(named(line), ids()) << line;
  }
  EXPECT_GE(count, 340);
}

/// The parts that a pipe gives end anywhere: within a word, an escape, a character of several bytes.
TEST(errors, are_found_wherever_a_log_is_cut) {
  const std::string text =
      "x\u001b[31mERROR: no runtime for \\\"nvidia\\\" is\r\nconfigured \x1b[0mNVRM: Xid (PCI:0000:61:00): 48, "
      "\xe2\x80\x9c "
      "CUDA error: 802 nvidia-smi\xe2\x80\x99: no such file or directory\n";
  const ids expected{"xid-memory", "driver-libraries-missing", "system-not-ready", "no-runtime-nvidia"};
  EXPECT_EQ(named(text), expected);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    error_finder finder;
    finder.read(std::string_view(text).substr(0, cut));
    finder.read(std::string_view(text).substr(cut));
    finder.finish();
    ids found;
    for (const auto& match : matches_of(finder)) found.emplace_back(match.error->id);
    EXPECT_EQ(found, expected) << cut;
  }
}

TEST(errors, are_found_in_the_middle_of_a_long_log) {
  error_finder finder;
  const std::string line = "step 700: cuda graph captured, error rate 35, err 700\n", word(300'000, 'x');
  for (int i = 0; i < 10'000; ++i) finder.read(line);
  finder.read(word);
  finder.read("\nNVRM: Xid (PCI:0000:61:00): 31, pid=1\n");
  for (int i = 0; i < 10'000; ++i) finder.read(line);
  finder.read("CUDA error: out of memory");
  finder.finish();
  const auto matches = matches_of(finder);
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[0].error->id, "xid-program");
  EXPECT_THAT(matches[0].xids, ElementsAre(31u));
  EXPECT_EQ(matches[1].error->id, "out-of-memory");
}

TEST(errors, S31_an_xid_comes_with_its_fault_and_what_the_agent_does) {
  const auto sentence = [](std::uint64_t xid) { return text_of_xid(xid, language::en); };
  const auto words_of = [](const std::string& code, const std::string& xid, const std::string& name,
                           const std::string& fault) {
    return words::english("cuda.xid." + code,
                          {{"xid", xid}, {"name", name}, {"fault", words::english("cuda.fault." + fault)}});
  };
  EXPECT_EQ(sentence(48), words_of("fatal", "48", "double-bit ECC error", "card"));
  EXPECT_EQ(sentence(31), words_of("application", "31", "memory page fault", "program"));
  EXPECT_THAT(sentence(74), testing::HasSubstr(words::english("cuda.fault.link")));
  EXPECT_THAT(sentence(119), testing::HasSubstr(words::english("cuda.fault.driver")));
  EXPECT_EQ(sentence(190), words_of("notice", "190", words::english("cuda.xid.not_in_table"), "unknown"));
  const auto found = errors_in("NVRM: Xid (PCI:0000:3b:00): 31, x\nNVRM: Xid (PCI:0000:3b:00): 13, x\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].xids, ElementsAre(13u, 31u));
}

TEST(errors, signs_are_written_as_they_are_compared) {
  std::set<std::string> names;
  for (const auto& row : all_error_signs()) {
    for (const auto& text : {row.aliases, row.patterns}) {
      EXPECT_EQ(std::string(text), text::lower_case(text)) << row.id;
      EXPECT_FALSE(text.contains('"') || text.contains('`') || text.contains("  ") || text.contains('\\')) << row.id;
      std::istringstream lines{std::string(text)};
      for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(is_word_character(line[line.starts_with('^')]) || row.aliases == text) << row.id << ": " << line;
        EXPECT_FALSE(line.ends_with('_')) << row.id << ": a word goes on there: " << line;
        EXPECT_TRUE(names.insert(line).second || row.aliases == text) << row.id << ": twice: " << line;
      }
    }
  }
}

TEST(errors, ids_codes_and_both_languages_are_whole) {
  std::set<std::string_view> seen;
  std::set<int> codes;
  for (const auto& known_error : known_errors()) {
    EXPECT_TRUE(seen.insert(known_error.id).second) << known_error.id;
    if (known_error.code != 0) EXPECT_TRUE(codes.insert(known_error.code).second) << known_error.code;
    EXPECT_FALSE(known_error.source.empty());
    for (const auto entry : {language::en, language::zh}) {
      for (const auto& text : {known_error.in(entry).title, known_error.in(entry).symptom, known_error.in(entry).check,
                               known_error.in(entry).cure}) {
        EXPECT_FALSE(text.empty()) << known_error.id;
        EXPECT_EQ(text::has_cjk(text), entry == language::zh) << known_error.id << ": " << text;
      }
    }
  }
}

TEST(errors, S31_every_section_of_the_troubleshooting_pages_is_one_of_them) {
  for (const auto& [name, lang] :
       {std::pair("docs/troubleshooting.md", language::en), {"docs/troubleshooting.zh.md", language::zh}}) {
    std::ostringstream read;
    read << std::ifstream(std::filesystem::path(SOURCE_ROOT) / name).rdbuf();
    const auto page = read.str();
    std::vector<std::string> headings, titles;
    for (auto position = page.find("\n## "); position != page.npos; position = page.find("\n## ", position + 1))
      headings.push_back(page.substr(position + 4, page.find('\n', position + 1) - position - 4));
    for (const auto& known_error : known_errors()) titles.push_back(known_error.in(lang).title);
    EXPECT_THAT(headings, testing::UnorderedElementsAreArray(titles)) << name;
    for (const auto& known_error : known_errors()) EXPECT_TRUE(page.contains(known_error.source)) << known_error.id;
  }
}

TEST(errors, steps_are_one_per_line_without_the_marks_of_the_list) {
  const auto& first = *errors_in("999").at(0).error;
  EXPECT_THAT(first.en.check, testing::StartsWith("`quartermaster explain compat --cuda X.Y --node NODE`.\n"));
  EXPECT_EQ(std::ranges::count(first.en.check, '\n'), 2);
  EXPECT_EQ(std::ranges::count(first.zh.cure, '\n'), 2);
  EXPECT_EQ(first.source, "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html");
}

}  // namespace
}  // namespace reconcilers::cuda
