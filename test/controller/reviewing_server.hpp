#pragma once
// An API server that knows persons by their tokens and says what they may list or get. It counts what it is asked, and
// fails the test at any other write.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "kube/transport.hpp"

namespace controller_test {

class reviewing_server final : public kube::transport {
 public:
  struct right {
    std::string resource, ns;  ///< `ns` empty: of every namespace; a path such as /metrics has none
    friend auto operator<=>(const right&, const right&) = default;
  };
  std::map<std::string, std::string> persons;  ///< by token
  std::map<std::string, std::set<right>> rights;
  /// By token; without an entry the token is for the API server itself.
  std::map<std::string, std::set<std::string>> audiences;
  bool knows_audiences = true;  ///< false: each token is the API server's own, and no answer names an audience
  int token_reviews = 0, access_reviews = 0;
  bool is_down = false;
  std::function<boost::asio::awaitable<void>()> before_review;  ///< may be empty
  std::map<std::string, nlohmann::json> objects;                ///< by path; others are not there
  std::map<std::string, std::string> bodies;                    ///< by path, as they are sent
  std::map<std::string, std::string> targets;                   ///< path and query of the last question, by path

  kube::task<kube::response> send(kube::request request) override {
    using nlohmann::json;
    if (is_down) co_return std::unexpected(kube::error{kube::errc::connect, 0, "refused", std::nullopt});
    kube::response out;
    out.status = 201;
    const auto path = request.target.substr(0, request.target.find('?'));
    if (path == "/apis/authentication.k8s.io/v1/tokenreviews") {
      ++token_reviews;
      if (before_review) co_await before_review();
      const auto spec = json::parse(request.body)["spec"];
      const auto token = spec["token"].get<std::string>();
      const auto match = persons.find(token);
      json status{{"authenticated", false}};
      if (match != persons.end()) {
        const auto fitting = fitting_audiences(token, spec.value("audiences", json::array({"api-server"})));
        if (knows_audiences && fitting.empty()) {
          status["error"] =
              "[invalid bearer token, token audiences [\"a\"] is invalid for the target audiences [\"b\"]]";
        } else {
          status = {{"authenticated", true}, {"user", {{"username", match->second}, {"groups", {"everyone"}}}}};
          if (knows_audiences) status["audiences"] = fitting;
        }
      }
      out.body = json{{"status", status}}.dump();
    } else if (path == "/apis/authorization.k8s.io/v1/subjectaccessreviews") {
      ++access_reviews;
      const auto spec = json::parse(request.body)["spec"];
      EXPECT_EQ(spec["groups"], json({"everyone"})) << "rights of groups count";
      const bool is_path = spec.contains("nonResourceAttributes");
      const auto& question = spec[is_path ? "nonResourceAttributes" : "resourceAttributes"];
      EXPECT_EQ(question["verb"], is_path || question.contains("name") ? "get" : "list");
      const auto& own = rights[spec["user"].get<std::string>()];
      const auto name = question[is_path ? "path" : "resource"];
      const bool is_allowed = own.contains({name, question.value("namespace", "")}) || own.contains({name, ""});
      out.body = json{{"status", {{"allowed", is_allowed}}}}.dump();
    } else {
      EXPECT_EQ(request.verb, kube::method::get) << request.target;
      targets[path] = request.target;
      const auto match = objects.find(path);
      const auto bytes = bodies.find(path);
      out.status = match == objects.end() && bytes == bodies.end() ? 404 : 200;
      out.body = match != objects.end()  ? match->second.dump()
                 : bytes != bodies.end() ? bytes->second
                                         : R"({"kind":"Status","code":404})";
    }
    co_return out;
  }
  kube::task<kube::response> stream(kube::request, kube::chunk_sink) override {
    co_return std::unexpected(kube::error{kube::errc::connect, 0, "no streams here", std::nullopt});
  }

 private:
  /// Those of `names` that the token has, as the API server says them.
  std::vector<std::string> fitting_audiences(const std::string& token, const nlohmann::json& names) const {
    const auto match = audiences.find(token);
    const auto own = match == audiences.end() ? std::set<std::string>{"api-server"} : match->second;
    std::vector<std::string> out;
    for (const auto& name : names)
      if (own.contains(name.get<std::string>())) out.push_back(name.get<std::string>());
    return out;
  }
};

}  // namespace controller_test
