#pragma once
// Certificates as PEM text: made, read and compared. ECDSA P-256 throughout. No file, no clock: times are seconds since
// 1970 and come from the caller. OpenSSL is behind it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/certificate.hpp"

struct ssl_st;

namespace controller::x509 {

struct validity {
  std::int64_t not_before = 0, until = 0;  ///< seconds since 1970
};

/// What we ask of a certificate.
struct info {
  std::string pem;
  std::string name;                ///< common name
  std::string serial;              ///< hexadecimal
  std::vector<std::string> names;  ///< DNS names and IP addresses it is for, sorted
  std::int64_t not_before = 0, until = 0;
  bool authority = false;               ///< may sign others
  bool server = false, client = false;  ///< is taken from one

  friend bool operator==(const info&, const info&) = default;
};

/// A certificate that signs itself and may sign leaves, nothing below them.
pem_pair make_authority(const std::string& name, validity validity);
/// What a leaf may be shown as; nothing else takes it.
enum class usage : std::uint8_t { server, client };
/// A leaf; `names` are DNS names and IP addresses. errc::config where the authority is no usable pair.
kube::result<pem_pair> issue(const pem_pair& authority, const std::string& name, std::span<const std::string> names,
                             validity validity, usage purpose = usage::server);

/// Every certificate in the text, in its order; invalid ones are skipped.
std::vector<info> read(std::string_view pem);
/// What the other side of a TLS connection has shown; empty: nothing.
std::optional<info> peer_of(const ssl_st* connection);
/// The signature of `leaf` is that of `authority`, by its name and its key. Times are not looked at.
bool signed_by(const info& leaf, const info& authority);
/// The private key is the one of the first certificate in the text.
bool belongs(const pem_pair& pair);

/// The certificates of a list that may sign and have not ended.
std::vector<info> living(std::string_view list, std::int64_t now);
/// Their text, one after the other.
std::string joined(std::span<const info> all);
/// Of the pair, where the key belongs to it.
std::optional<info> leaf_of(const pem_pair& pair);
/// Null: none of them.
const info* signer_of(const info& leaf, std::span<const info> authorities);
/// Two thirds of its life are over: another one is made.
std::int64_t due(const info& info);
/// A clock that is behind ours must not find a new certificate "not yet valid", in seconds.
inline constexpr std::int64_t backdated = 3600;

}  // namespace controller::x509
