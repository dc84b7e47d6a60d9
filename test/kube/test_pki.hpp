#pragma once
// Certificates made at test time: a CA, and leaves it signs, ECDSA P-256, all as PEM text.

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace kube_test {

struct pem_pair {
  std::string certificate, key;
};

struct leaf_options {
  std::string name = "kube-apiserver";
  std::string alt = "DNS:localhost,IP:127.0.0.1";
  long valid_from = -3600, valid_for = 3600;  ///< seconds from now

  leaf_options() = default;
};

class test_ca {
 public:
  explicit test_ca(const std::string& name = "test-ca") : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    fill(certificate_.get(), key_.get(), name, -3600, 3600, 1);
    X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
    extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    extend(certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  }

  std::string pem() const { return text(certificate_.get()); }

  pem_pair issue(const leaf_options& options = leaf_options()) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> leaf(X509_new(), &X509_free);
    fill(leaf.get(), key.get(), options.name, options.valid_from, options.valid_for, ++serial_);
    X509_set_issuer_name(leaf.get(), X509_get_subject_name(certificate_.get()));
    if (!options.alt.empty()) extend(leaf.get(), NID_subject_alt_name, options.alt.c_str());
    X509_sign(leaf.get(), key_.get(), EVP_sha256());
    return {text(leaf.get()), text(key.get())};
  }

 private:
  static void fill(X509* certificate, EVP_PKEY* key, const std::string& name, long not_before, long until,
                   long serial) {
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), not_before);
    X509_gmtime_adj(X509_getm_notAfter(certificate), until);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  }
  static void extend(X509* certificate, int nid, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  static std::string drain(BIO* bio) {
    char* data = nullptr;
    const auto size = BIO_get_mem_data(bio, &data);
    std::string all(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return all;
  }
  static std::string text(X509* certificate) {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    return drain(bio);
  }
  static std::string text(EVP_PKEY* key) {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    return drain(bio);
  }

  struct free_key {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  };
  struct free_certificate {
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  std::unique_ptr<EVP_PKEY, free_key> key_;
  std::unique_ptr<X509, free_certificate> certificate_;
  long serial_ = 1;
};

}  // namespace kube_test
