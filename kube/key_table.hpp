#pragma once
// The names of labels and annotations, each kept once: 5,000 nodes with 70 labels of one hardware profile have 350,000
// names and 70 different ones. Append-only and bounded, so that a name is either always a number or never, and maps can
// be compared as bytes; a table for each thread, because the maps of one loop never leave it.

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace kube {

class key_table {
 public:
  static constexpr std::size_t cap = 4096;     ///< names
  static constexpr std::size_t longest = 317;  ///< bytes: 253 of a domain, "/", 63 of a name

  /// The number of `key`, from 1; 0 where it is not kept: no qualified name ("domain/name"), or the table was full when
  /// it first came.
  std::uint32_t number_of(std::string_view key);
  /// The number of a key that is kept; 0 where it is not.
  std::uint32_t known(std::string_view key) const;
  /// The name behind a number that number_of gave. Valid as long as the thread.
  std::string_view name_of(std::uint32_t number) const { return names_[number - 1]; }
  std::size_t size() const { return names_.size(); }

  static key_table& of_this_thread();

 private:
  std::deque<std::string> names_;
  boost::unordered_flat_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace kube
