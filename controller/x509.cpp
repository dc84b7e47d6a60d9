#include "controller/x509.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <new>

namespace controller::x509 {
namespace {

template <auto Free>
struct releaser {
  void operator()(auto* pointer) const { Free(pointer); }
};
using key_ptr = std::unique_ptr<EVP_PKEY, releaser<EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, releaser<X509_free>>;
using bio_ptr = std::unique_ptr<BIO, releaser<BIO_free_all>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, releaser<X509_EXTENSION_free>>;
using names_ptr = std::unique_ptr<GENERAL_NAMES, releaser<GENERAL_NAMES_free>>;

bio_ptr reading(std::string_view text) {
  return bio_ptr(BIO_new_mem_buf(text.data(), static_cast<int>(std::min<std::size_t>(text.size(), 1u << 20))));
}

std::string drained(const bio_ptr& bio_ptr) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio_ptr.get(), &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::string text_of(X509* certificate) {
  const bio_ptr output(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(output.get(), certificate);
  return drained(output);
}

std::string text_of(EVP_PKEY* key) {
  const bio_ptr output(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(output.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return drained(output);
}

/// No pass phrase: asking for one would block the process on a terminal.
int no_phrase(char*, int, int, void*) { return -1; }

key_ptr key_of(std::string_view pem) {
  key_ptr out(PEM_read_bio_PrivateKey(reading(pem).get(), nullptr, no_phrase, nullptr));
  ERR_clear_error();
  return out;
}

certificate_ptr certificate_of(std::string_view pem) {
  certificate_ptr out(PEM_read_bio_X509(reading(pem).get(), nullptr, no_phrase, nullptr));
  ERR_clear_error();
  return out;
}

/// What both kinds have: version, a random serial, name, times, key.
certificate_ptr blank(const std::string& name, EVP_PKEY* key, validity validity) {
  certificate_ptr out(X509_new());
  if (!out || !key) throw std::bad_alloc();
  X509_set_version(out.get(), X509_VERSION_3);
  std::array<unsigned char, 16> serial{};
  RAND_bytes(serial.data(), serial.size());
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, and always of the same length
  const std::unique_ptr<BIGNUM, releaser<BN_free>> number(BN_bin2bn(serial.data(), serial.size(), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(out.get()));
  X509_NAME_add_entry_by_txt(X509_get_subject_name(out.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()), -1, 0);
  ASN1_TIME_set(X509_getm_notBefore(out.get()), validity.not_before);
  ASN1_TIME_set(X509_getm_notAfter(out.get()), validity.until);
  X509_set_pubkey(out.get(), key);
  return out;
}

void extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const extension_ptr made(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (made) X509_add_ext(certificate, made.get(), -1);
}

bool is_address(const std::string& name) {
  std::array<unsigned char, 16> nowhere{};
  return inet_pton(AF_INET, name.c_str(), nowhere.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), nowhere.data()) == 1;
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm tm{};
  return ASN1_TIME_to_tm(time, &tm) == 1 ? timegm(&tm) : 0;
}

std::string address_text(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const int family = address->length == 4 ? AF_INET : AF_INET6;
  if (address->length != 4 && address->length != 16) return {};
  return inet_ntop(family, address->data, out.data(), out.size()) ? out.data() : std::string();
}

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> out;
  const names_ptr all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const auto* entry = sk_GENERAL_NAME_value(all.get(), i);
    if (entry->type == GEN_DNS) {
      out.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(entry->d.dNSName)),
                       static_cast<std::size_t>(ASN1_STRING_length(entry->d.dNSName)));
    } else if (entry->type == GEN_IPADD) {
      out.push_back(address_text(entry->d.iPAddress));
    }
  }
  std::ranges::sort(out);
  return out;
}

std::string serial_of(X509* certificate) {
  const std::unique_ptr<BIGNUM, releaser<BN_free>> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* const text = number ? BN_bn2hex(number.get()) : nullptr;
  std::string out = text ? text : "";
  OPENSSL_free(text);
  return out;
}

info info_of(X509* certificate) {
  info out;
  out.serial = serial_of(certificate);
  out.pem = text_of(certificate);
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(), name.size());
  out.name = name.data();
  out.names = names_of(certificate);
  out.not_before = seconds_of(X509_get0_notBefore(certificate));
  out.until = seconds_of(X509_get0_notAfter(certificate));
  out.authority = X509_check_ca(certificate) == 1;
  out.server = X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, 0) == 1;
  out.client = X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, 0) == 1;
  return out;
}

}  // namespace

pem_pair make_authority(const std::string& name, validity validity) {
  const key_ptr key(EVP_EC_gen("P-256"));
  const auto made = blank(name, key.get(), validity);
  X509* const self = made.get();
  X509_set_issuer_name(self, X509_get_subject_name(self));
  extend(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(self, self, NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(self, self, NID_subject_key_identifier, "hash");
  X509_sign(self, key.get(), EVP_sha256());
  return {text_of(self), text_of(key.get())};
}

kube::result<pem_pair> issue(const pem_pair& authority, const std::string& name, std::span<const std::string> names,
                             validity validity, usage purpose) {
  const auto issuer = certificate_of(authority.certificate);
  const auto signer = key_of(authority.key);
  if (!issuer || !signer || X509_check_private_key(issuer.get(), signer.get()) != 1) {
    ERR_clear_error();
    return std::unexpected(kube::error{kube::errc::config, 0, "the certificate authority is no usable pair", {}});
  }
  const key_ptr key(EVP_EC_gen("P-256"));
  const auto made = blank(name, key.get(), validity);
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer.get()));
  extend(made.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  extend(made.get(), issuer.get(), NID_key_usage, "critical,digitalSignature");
  extend(made.get(), issuer.get(), NID_ext_key_usage, purpose == usage::server ? "serverAuth" : "clientAuth");
  extend(made.get(), issuer.get(), NID_authority_key_identifier, "keyid");
  std::string alternatives;
  for (const auto& entry : names)
    alternatives += (alternatives.empty() ? "" : ",") + ((is_address(entry) ? "IP:" : "DNS:") + entry);
  if (!alternatives.empty()) extend(made.get(), issuer.get(), NID_subject_alt_name, alternatives);
  X509_sign(made.get(), signer.get(), EVP_sha256());
  return pem_pair{text_of(made.get()), text_of(key.get())};
}

std::vector<info> read(std::string_view pem) {
  constexpr std::string_view begin = "-----BEGIN CERTIFICATE-----", end = "-----END CERTIFICATE-----";
  std::vector<info> out;
  for (auto stop = pem.find(end); stop != pem.npos; stop = pem.find(end)) {
    const auto whole = pem.substr(0, stop + end.size());
    pem.remove_prefix(whole.size());
    const auto position = whole.rfind(begin);
    if (position == whole.npos) continue;
    if (const auto certificate = certificate_of(whole.substr(position))) out.push_back(info_of(certificate.get()));
  }
  return out;
}

std::optional<info> peer_of(const ssl_st* connection) {
  const certificate_ptr presented(SSL_get1_peer_certificate(connection));
  if (!presented) return std::nullopt;
  return info_of(presented.get());
}

bool signed_by(const info& leaf, const info& authority) {
  const auto below = certificate_of(leaf.pem), above = certificate_of(authority.pem);
  const bool good = below && above &&
                    X509_NAME_cmp(X509_get_issuer_name(below.get()), X509_get_subject_name(above.get())) == 0 &&
                    X509_verify(below.get(), X509_get0_pubkey(above.get())) == 1;
  ERR_clear_error();
  return good;
}

bool belongs(const pem_pair& pair) {
  const auto certificate = certificate_of(pair.certificate);
  const auto key = key_of(pair.key);
  const bool good = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return good;
}

std::vector<info> living(std::string_view list, std::int64_t now) {
  auto out = read(list);
  std::erase_if(out, [&](const info& info) { return !info.authority || info.until <= now; });
  return out;
}

std::string joined(std::span<const info> all) {
  std::string out;
  for (const auto& entry : all) out += entry.pem;
  return out;
}

std::optional<info> leaf_of(const pem_pair& pair) {
  if (!belongs(pair)) return std::nullopt;
  auto all = read(pair.certificate);
  return all.empty() ? std::nullopt : std::optional<info>(std::move(all.front()));
}

const info* signer_of(const info& leaf, std::span<const info> authorities) {
  const auto match = std::ranges::find_if(authorities, [&](const info& info) { return signed_by(leaf, info); });
  return match == authorities.end() ? nullptr : &*match;
}

std::int64_t due(const info& info) { return info.until - (info.until - info.not_before) / 3; }

}  // namespace controller::x509
