#include "controller/gzip.hpp"

#include <array>
#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/crc.hpp>
#include <cstdint>

namespace controller {
namespace {

namespace zlib = boost::beast::zlib;

/// Where more saves little and takes much longer.
constexpr int level = 6, window_bits = 15, memory_level = 8;

void append_little_endian(std::string& out, std::uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(number >> shift & 0xff));
}

}  // namespace

std::string gzip(std::string_view text) {
  // Deflate, no flags, no time, no hint, operating system unknown.
  static constexpr std::array<unsigned char, 10> head{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
  std::string out(reinterpret_cast<const char*>(head.data()), head.size());
  zlib::deflate_stream deflate;
  deflate.reset(level, window_bits, memory_level, zlib::Strategy::normal);
  const auto begin = out.size();
  out.resize(begin + deflate.upper_bound(text.size()));
  zlib::z_params all;
  all.next_in = text.data();
  all.avail_in = text.size();
  all.next_out = out.data() + begin;
  all.avail_out = out.size() - begin;
  boost::system::error_code ended;
  deflate.write(all, zlib::Flush::finish, ended);
  out.resize(begin + all.total_out);
  boost::crc_32_type sum;
  sum.process_bytes(text.data(), text.size());
  append_little_endian(out, sum.checksum());
  append_little_endian(out, static_cast<std::uint32_t>(text.size()));
  return out;
}

}  // namespace controller
