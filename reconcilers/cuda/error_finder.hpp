#pragma once
// Finds known errors in what people paste, from one number up to a log of any length. It keeps a few KiB of the text,
// and its time grows with the length alone: there is no backtracking. `explain error -` of the release preset reads
// 100 MB of the innocent lines of the tests in 2 s on one core, and has 17 MiB resident; texts of the same length that
// were made to be slow (first words of many patterns, brackets that are never opened) take up to 12 s.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cuda/log_text.hpp"

namespace reconcilers::cuda {

class error_finder {
 public:
  error_finder();
  /// Parts of one text, which may end anywhere.
  void read(std::string_view part);
  /// To be called once, after the last part.
  void finish();

  /// Per entry of all_error_signs(): whether the text has it.
  const std::vector<bool>& found() const { return found_; }
  /// XIDs that the text names, the first 64 of them.
  const std::set<std::uint64_t>& xids() const { return xids_; }
  /// Numbers that a person typed and that are neither a code of CUDA nor an exit code nor an XID, as they were typed.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  void search(std::size_t end);
  void read_word(std::size_t begin, std::size_t end);
  void read_patterns(std::size_t begin, std::string_view word);
  void read_code(std::size_t begin, std::size_t end);
  void read_exit(std::size_t begin, std::size_t end);
  void read_xid(std::size_t begin, std::size_t end);
  void read_xid_metric(std::size_t end);
  void read_typed();
  void read_typed_number(std::string_view number, bool is_xid, bool is_bare);
  void add_xid(std::uint64_t xid);
  bool is_hedged(std::size_t begin) const;

  log_text cleaner_;
  std::string text_;      ///< what is not searched yet, and before it what a search looks back to
  std::size_t next_ = 0;  ///< where the search goes on
  bool is_whole_ = true;  ///< `text_` has lost nothing
  std::vector<bool> found_;
  std::set<std::uint64_t> xids_;
  std::vector<std::string> unknown_;
};

/// The section about an XID: "xid-memory".
std::string_view section_of_xid(std::uint64_t xid);

}  // namespace reconcilers::cuda
