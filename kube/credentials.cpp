#include "kube/credentials.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstring>

#include "kube/config_fault.hpp"
#include "text/input_file.hpp"
#include "text/phrase.hpp"

namespace kube {

namespace {

using namespace std::chrono_literals;

constexpr auto reread_after = 60s;  // client-go transport/token_source.go
constexpr auto exec_leeway = 30s;   // renewed this long before it expires
constexpr auto exec_retry = 5s;     // between two tries to renew one that can still be used

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using bio = std::unique_ptr<BIO, freed_by<BIO_free_all>>;
using certificate = std::unique_ptr<X509, freed_by<X509_free>>;
using private_key = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;

bio reader(const std::string& pem) { return bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

/// No terminal is asked for the pass phrase of an encrypted key.
int no_phrase(char*, int, int, void*) { return 0; }

std::string fingerprint_of(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return {};
  return std::to_string(about.st_size) + "." + std::to_string(about.st_ino) + "." +
         std::to_string(about.st_mtim.tv_sec) + "." + std::to_string(about.st_mtim.tv_nsec);
}

bool one_line(const std::string& text) { return text.find_first_of("\r\n") == std::string::npos; }

}  // namespace

text::phrase fault_of_ca(const std::string& pem, const std::string& name) {
  auto stream = reader(pem);
  const certificate first(PEM_read_bio_X509(stream.get(), nullptr, no_phrase, nullptr));
  ERR_clear_error();
  return first ? text::phrase() : text::phrase{"kubeconfig.no_ca", {{"name", name}}};
}

text::phrase fault_of_pair(const std::string& certificate_pem, const std::string& key_pem, const std::string& name) {
  auto stream = reader(certificate_pem);
  const certificate leaf(PEM_read_bio_X509(stream.get(), nullptr, no_phrase, nullptr));
  stream = reader(key_pem);
  const private_key key(PEM_read_bio_PrivateKey(stream.get(), nullptr, no_phrase, nullptr));
  const bool match = leaf && key && X509_check_private_key(leaf.get(), key.get()) == 1;
  ERR_clear_error();
  if (match) return {};
  return {std::string("kubeconfig.") + (!leaf ? "no_certificate" : !key ? "no_key" : "no_pair"), {{"name", name}}};
}

namespace {

result<void> unless_wrong(const text::phrase& fault) {
  if (fault.empty()) return {};
  return config_error(words_of(fault, text::language::en));
}

std::expected<std::string, text::phrase> pem_in(const pem_source& source) {
  if (!source.data.empty() || source.path.empty()) return source.data;
  auto bytes = bytes_of_file(source.path);
  if (bytes && text::is_utf16(*bytes))
    return std::unexpected(text::phrase{"kubeconfig.utf16_file", {{"file", source.path}}});
  return bytes;
}

text::phrase fault_of_token(const user_config& user) {
  const text::phrase_argument key{"key", std::string("token")};
  if (user.token_file.empty())
    return one_line(without_line_end(user.token)) ? text::phrase() : text::phrase{"kubeconfig.token_lines"};
  const auto bytes = bytes_of_file(user.token_file);
  if (!bytes) return bytes.error();
  if (text::is_utf16(*bytes)) return {"kubeconfig.utf16_file", {{"file", user.token_file}}};
  const auto line = without_line_end(*bytes);
  if (line.empty()) return {"kubeconfig.empty_file", {key, {"file", user.token_file}}};
  return one_line(line) ? text::phrase() : text::phrase{"kubeconfig.more_lines", {key, {"file", user.token_file}}};
}

}  // namespace

text::phrase fault_of_credentials(const cluster_config& config) {
  const auto& user = config.user;
  const auto ca = pem_in(config.ca), certificate = pem_in(user.certificate), key = pem_in(user.key);
  for (const auto* file : {&ca, &certificate, &key})
    if (!*file) return file->error();
  auto out = config.ca.empty() ? text::phrase() : fault_of_ca(*ca, config.ca.name());
  if (out.empty() && !user.certificate.empty()) out = fault_of_pair(*certificate, *key, user.certificate.name());
  return out.empty() ? fault_of_token(user) : out;
}

result<void> check_ca(const std::string& pem, const std::string& name) { return unless_wrong(fault_of_ca(pem, name)); }

result<void> check_pair(const std::string& certificate_pem, const std::string& key_pem, const std::string& name) {
  return unless_wrong(fault_of_pair(certificate_pem, key_pem, name));
}

result<bool> watched_file::refresh(steady_time now, bool force) {
  if (path_.empty()) return false;
  auto seen = fingerprint_of(path_);
  const bool due = force || fingerprint_.empty() || seen != fingerprint_ || now - read_at_ >= reread_after;
  if (!due) return false;
  auto bytes = read_file(path_);
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  fingerprint_ = std::move(seen);
  read_at_ = now;
  if (*bytes == text_) return false;
  text_ = std::move(*bytes);
  return true;
}

credentials::credentials(boost::asio::any_io_executor executor, cluster_config config, wall_clock wall)
    : executor_(std::move(executor)),
      config_(std::move(config)),
      token_file_(config_.user.token_file),
      username_file_(config_.user.username_file),
      password_file_(config_.user.password_file),
      ca_file_(config_.ca.data.empty() ? config_.ca.path : ""),
      certificate_file_(config_.user.certificate.data.empty() ? config_.user.certificate.path : ""),
      key_file_(config_.user.key.data.empty() ? config_.user.key.path : "") {
  exec_->wall = std::move(wall);
  const auto& user = config_.user;
  if (!user.as_user.empty()) fixed_headers_.push_back("Impersonate-User: " + user.as_user);
  if (!user.as_uid.empty()) fixed_headers_.push_back("Impersonate-Uid: " + user.as_uid);
  for (const auto& group : user.as_groups) fixed_headers_.push_back("Impersonate-Group: " + group);
  for (const auto& [key, values] : user.as_extra)
    for (const auto& value : values) fixed_headers_.push_back("Impersonate-Extra-" + key + ": " + value);
}

bool credentials::needs_exec() const {
  const auto& user = config_.user;
  return user.exec && user.token_file.empty() && user.token.empty() && user.username.empty() &&
         user.username_file.empty();
}

/// CA and client certificate; takes over only what fits together.
result<void> credentials::refresh_tls(steady_time now, bool force) {
  const auto& user = config_.user;
  bool changed = !now_.tls;
  for (auto* file : {&ca_file_, &certificate_file_, &key_file_}) {
    const auto got = file->refresh(now, force);
    if (got && *got) changed = true;
    if (!got && !now_.tls) return std::unexpected(got.error());
  }
  if (exec_seen_ != exec_->runs) changed = true;
  if (!changed) return {};

  auto next = std::make_shared<tls_material>();
  next->ca = config_.ca.data.empty() ? ca_file_.text() : config_.ca.data;
  next->certificate = user.certificate.data.empty() ? certificate_file_.text() : user.certificate.data;
  next->key = user.key.data.empty() ? key_file_.text() : user.key.data;
  if (next->certificate.empty() && !exec_->got.certificate.empty()) {
    next->certificate = exec_->got.certificate;
    next->key = exec_->got.key;
  }
  result<void> good;
  if (!config_.ca.empty()) good = check_ca(next->ca, config_.ca.name());
  if (!good && now_.tls)
    next->ca = now_.tls->ca;
  else if (!good)
    return good;
  if (!next->certificate.empty()) {
    good =
        check_pair(next->certificate, next->key, user.certificate.empty() ? "of the plugin" : user.certificate.name());
    if (!good && !now_.tls) return good;
    if (!good) next->certificate = now_.tls->certificate, next->key = now_.tls->key;
  }
  if (now_.tls && now_.tls->ca == next->ca && now_.tls->certificate == next->certificate && now_.tls->key == next->key)
    return {};
  now_.tls = std::move(next);
  ++now_.serial;
  return {};
}

/// The line that a file has. Between two renames it may be gone or empty for a moment: once there was a credential,
/// that is no error, and the line is the last one, or empty.
result<std::string> credentials::line_in(watched_file& file, std::string_view noun, steady_time now, bool force) const {
  const auto read = file.refresh(now, force);
  if (!read && now_.authorization.empty()) return std::unexpected(read.error());
  const std::vector<text::phrase_argument> name{{"key", std::string(noun)}, {"file", file.path()}};
  auto line = std::string(without_line_end(file.text()));
  if (line.empty() && now_.authorization.empty())
    return std::unexpected(unless_wrong({"kubeconfig.empty_file", name}).error());
  if (!one_line(line)) return std::unexpected(unless_wrong({"kubeconfig.more_lines", name}).error());
  return line;
}

result<void> credentials::refresh_files(steady_time now, bool force) {
  if (auto fresh = refresh_tls(now, force); !fresh) return fresh;
  const auto& user = config_.user;
  std::string header;
  if (!user.token_file.empty()) {
    const auto token = line_in(token_file_, "token", now, force);
    if (!token) return std::unexpected(token.error());
    header = token->empty() ? now_.authorization : "Bearer " + *token;
  } else if (!user.username_file.empty()) {
    const auto name = line_in(username_file_, "user name", now, force);
    if (!name) return std::unexpected(name.error());
    const auto password = line_in(password_file_, "password", now, force);
    if (!password) return std::unexpected(password.error());
    header =
        name->empty() || password->empty() ? now_.authorization : "Basic " + base64_encode(*name + ":" + *password);
  } else if (!user.token.empty()) {
    header = "Bearer " + without_line_end(user.token);
  } else if (!user.username.empty()) {
    header = "Basic " + base64_encode(user.username + ":" + user.password);
  } else if (!exec_->got.token.empty()) {
    header = "Bearer " + without_line_end(exec_->got.token);
  }
  if (!one_line(header)) return unless_wrong({"kubeconfig.token_lines"});
  exec_seen_ = exec_->runs;
  if (header != now_.authorization) {
    now_.authorization = std::move(header);
    ++now_.serial;
  }
  return {};
}

boost::asio::awaitable<void> credentials::run_exec(std::shared_ptr<exec_state> state, exec_config config,
                                                   std::string info) {
  auto got = co_await run_exec_plugin(std::move(config), std::move(info));
  state->running = false;
  const auto now = state->wall();
  if (got) {
    state->valid = true;
    state->ends = got->expires;
    // A credential that lives shorter than twice the leeway is renewed after half its life.
    if (got->expires != std::chrono::system_clock::time_point::max() && got->expires > now)
      got->expires -= std::min<std::chrono::system_clock::duration>(exec_leeway, (got->expires - now) / 2);
    state->got = std::move(*got);
    ++state->runs;
  } else {
    state->failed = std::move(got.error());
    state->got.expires = now + exec_retry;
  }
  state->done->notify_all();
}

task<void> credentials::refresh_exec(steady_time deadline) {
  auto state = exec_;
  const auto now = state->wall();
  const bool usable = state->valid && now < state->ends;
  if (usable && now < state->got.expires) co_return result<void>();
  state->valid = usable;
  if (!state->running) {
    state->running = true;
    const auto& plugin = *config_.user.exec;
    auto info = exec_info(plugin, config_, config_.ca.data.empty() ? ca_file_.text() : config_.ca.data,
                          plugin.mode != exec_config::interactive::never && have_terminal());
    boost::asio::co_spawn(executor_, run_exec(state, plugin, std::move(info)), boost::asio::detached);
  }
  if (usable) co_return result<void>();
  // A plugin that cannot even be started is over before there is anyone to wake.
  const auto reason = state->running ? co_await wait_list::wait(state->done, deadline) : woken::by_event;
  if (reason == woken::by_cancellation)
    co_return std::unexpected(error{errc::cancelled, 0, "cancelled while the credential plugin ran", {}});
  if (reason == woken::by_deadline)
    co_return std::unexpected(
        error{errc::timeout, 0, "credential plugin \"" + config_.user.exec->command + "\" is still running", {}});
  if (!state->valid) co_return std::unexpected(state->failed);
  co_return result<void>();
}

task<credential> credentials::current(steady_time deadline) {
  if (needs_exec()) {
    // The plugin may want to know the CA, which is in a file.
    if (!now_.tls && !config_.ca.empty()) {
      if (auto read = ca_file_.refresh(std::chrono::steady_clock::now()); !read)
        co_return std::unexpected(read.error());
    }
    auto ready = co_await refresh_exec(deadline);
    if (!ready) co_return std::unexpected(std::move(ready.error()));
  }
  auto fresh = refresh_files(std::chrono::steady_clock::now(), false);
  if (!fresh) co_return std::unexpected(std::move(fresh.error()));
  co_return now_;
}

task<bool> credentials::renew(std::uint64_t rejected, steady_time deadline) {
  if (now_.serial != rejected) co_return true;  // someone else's 401 has renewed it already
  if (needs_exec()) {
    exec_->valid = false;
    auto ready = co_await refresh_exec(deadline);
    if (!ready) co_return std::unexpected(std::move(ready.error()));
  }
  auto fresh = refresh_files(std::chrono::steady_clock::now(), true);
  if (!fresh) co_return std::unexpected(std::move(fresh.error()));
  co_return now_.serial != rejected;
}

}  // namespace kube
