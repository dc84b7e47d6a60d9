#include "cli/console/session.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "kube/config.hpp"

namespace cli::console {
namespace {

constexpr std::string_view cookie_name = "quartermaster-console";
constexpr std::string_view attributes = "; Path=/console/; HttpOnly; SameSite=Strict";
constexpr std::size_t nonce_size = 12, tag_size = 16;
/// Of a sealed token: browsers keep 4,096 bytes of a cookie.
constexpr std::size_t longest = 3800;

using cipher_context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::string set_cookie(std::string_view value, std::string_view more, bool secure) {
  return std::string(cookie_name) + "=" + std::string(value) + std::string(attributes) + std::string(more) +
         (secure ? "; Secure" : "");
}

}  // namespace

session_cookies::session_cookies() {
  if (RAND_bytes(key_.data(), static_cast<int>(key_.size())) != 1) throw std::runtime_error("no random numbers");
}

/// AES-256-GCM: nonce, text, tag.
std::string session_cookies::sealed(std::string_view token) const {
  std::string out(nonce_size + token.size() + tag_size, '\0');
  const cipher_context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int size = 0, rest = 0;
  auto* const nonce = bytes_of(out);
  auto* const text = nonce + nonce_size;
  const bool is_done =
      context && RAND_bytes(nonce, nonce_size) == 1 &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), nonce) == 1 &&
      EVP_EncryptUpdate(context.get(), text, &size, bytes_of(token), static_cast<int>(token.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), text + size, &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, tag_size, text + token.size()) == 1;
  return is_done ? out : std::string();
}

std::optional<std::string> session_cookies::opened(std::string_view sealed) const {
  if (sealed.size() < nonce_size + tag_size) return std::nullopt;
  const auto text = sealed.substr(nonce_size, sealed.size() - nonce_size - tag_size);
  std::string tag(sealed.substr(sealed.size() - tag_size)), out(text.size(), '\0');
  const cipher_context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int size = 0, rest = 0;
  const bool is_done =
      context && EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), bytes_of(sealed)) == 1 &&
      EVP_DecryptUpdate(context.get(), bytes_of(out), &size, bytes_of(text), static_cast<int>(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, tag_size, bytes_of(tag)) == 1 &&
      EVP_DecryptFinal_ex(context.get(), bytes_of(out) + size, &rest) == 1;
  return is_done ? std::optional(std::move(out)) : std::nullopt;
}

std::string session_cookies::made_of(std::string_view token, bool secure) const {
  const auto value = kube::base64_encode(sealed(token));
  return value.empty() || value.size() > longest ? std::string() : set_cookie(value, "", secure);
}

std::string session_cookies::gone(bool secure) { return set_cookie("", "; Max-Age=0", secure); }

std::string session_cookies::token_in(std::string_view cookies) const {
  while (!cookies.empty()) {
    const auto end = std::min(cookies.find(';'), cookies.size());
    auto entry = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    if (!entry.starts_with(cookie_name) || !entry.substr(cookie_name.size()).starts_with('=')) continue;
    const auto bytes = kube::base64_decode(entry.substr(cookie_name.size() + 1));
    if (const auto token = bytes ? opened(*bytes) : std::nullopt; token && !token->empty()) return *token;
  }
  return {};
}

}  // namespace cli::console
