#include "agent/allocation/starter.hpp"

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/grpc/server.hpp"
#include "test/agent/exporter/wire.hpp"
#include "test/facts_in.hpp"
#include "test/words.hpp"

namespace agent::allocation {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct allocation_starter : testing::Test {
  std::string folder = made_folder(), plugins = folder + "/plugins", cdi = folder + "/cdi";
  boost::asio::io_context loop;
  controller::store<kube::running_pod> pods;
  std::expected<container_edits, std::string> edits = container_edits{{{"QM_CARD", "A"}}, {}, {}};
  std::unique_ptr<starter> subject;

  allocation_starter() {
    fs::create_directories(plugins);
    make();
  }
  ~allocation_starter() override {
    subject.reset();
    fs::remove_all(folder);
  }
  static std::string made_folder() {
    auto pattern = (fs::temp_directory_path() / "starter.XXXXXX").string();
    return ::mkdtemp(pattern.data());
  }
  const std::map<std::string, std::string> without_cards{{"CARDS", "none"}};
  void make(std::string pod_resources = {}) {
    subject.reset();
    subject = std::make_unique<starter>(
        loop.get_executor(),
        starter_options{.resource = {"nvidia.com/gpu", device_unit::card},
                        .node = "n",
                        .plugin_folder = plugins,
                        .pod_resources = std::move(pod_resources),
                        .cdi_folder = cdi,
                        .without_cards = without_cards,
                        .patience = 150ms,
                        .longest_making = 1h},
        pods, [] { return std::vector<quota::card>{{.uuid = "A", .model = "T4", .memory_mib = 16000}}; },
        [this](container_start) -> boost::asio::awaitable<std::expected<container_edits, std::string>> {
          co_return edits;
        });
  }
  void record(const json& entries) {
    std::ofstream(plugins + "/kubelet_internal_checkpoint")
        << json{{"Data", {{"PodDeviceEntries", entries}, {"RegisteredDevices", json::object()}}}, {"Checksum", 1}};
  }
  static json entry(const char* uid, const char* container, const char* id) {
    return {{"PodUID", uid},
            {"ContainerName", container},
            {"ResourceName", "nvidia.com/gpu"},
            {"DeviceIDs", {{"-1", json::array({id})}}},
            {"AllocResp", ""}};
  }
  void put_pod(const char* uid = "u1", const char* id = "") {
    kube::running_pod out;
    out.key = {"lab", "p"};
    out.id = kube::uid::parse(uid);
    out.resource_version = ++version;
    out.node_name = "n";
    out.containers = {{"main", kube::container::role::main, {}, {}}};
    out.ids = {{"main", id}};
    out.annotations =
        kube::packed_map::of({{api::placement_annotation,
                               R"({"v":1,"node":"n","containers":{"main":[{"card":"A","cores":100,"whole":true}]}})"}});
    pods.put(std::move(out));
  }
  std::uint64_t version = 0;

  std::optional<grpc::status> prepared(std::vector<std::string> ids, const std::function<void()>& meanwhile = {}) {
    std::optional<grpc::status> out;
    subject->prepare(std::move(ids), [&out](const grpc::status& status) { out = status; });
    loop.restart();
    loop.poll();
    if (meanwhile) meanwhile();
    loop.run();
    return out;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    if (fs::exists(cdi))
      for (const auto& file : fs::directory_iterator(cdi)) out.push_back(file.path().filename().string());
    return out;
  }
};

TEST_F(allocation_starter, writes_the_file_of_the_container_that_starts_and_removes_it_once_that_is_made) {
  ASSERT_TRUE(subject->begin());
  put_pod();
  record(json::array({entry("u1", "main", "slot-1")}));
  const auto answer = subject->answer_for({"slot-1"});
  ASSERT_TRUE(answer);
  const auto name = device_name_of({"slot-1"});
  EXPECT_THAT(answer->cdi_names, ElementsAre("quartermaster.io/nvidia.com-gpu=" + name));
  EXPECT_EQ(answer->environment, without_cards) << "for a runtime that skips the name";
  EXPECT_THAT(files(), IsEmpty()) << "the kubelet has not said whose they are";
  const auto done = prepared({"slot-1"});
  ASSERT_TRUE(done && done->good()) << done->text;
  ASSERT_THAT(files(), ElementsAre("quartermaster.io-nvidia.com-gpu-" + name + ".json"));
  std::ifstream file(cdi + "/" + files().front());
  const auto text = json::parse(file);
  EXPECT_EQ(text["devices"][0]["name"], name);
  EXPECT_EQ(text["devices"][0]["containerEdits"]["env"], json::array({"QM_CARD=A"}));
  subject->clear_made();
  EXPECT_THAT(files(), SizeIs(1)) << "it is not made yet";
  put_pod("u1", "4711");
  subject->clear_made();
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(allocation_starter, what_an_earlier_one_left_is_gone_before_anything_is_offered) {
  fs::create_directories(cdi);
  const auto own = cdi + "/quartermaster.io-nvidia.com-gpu-" + device_name_of({"slot-1"}) + ".json";
  for (const auto& name : {own, own + ".draft", cdi + "/nvidia.yaml"}) std::ofstream(name) << "{}";
  ASSERT_TRUE(subject->begin());
  EXPECT_THAT(files(), ElementsAre("nvidia.yaml"));
}

TEST_F(allocation_starter, a_refusal_leaves_no_file) {
  ASSERT_TRUE(subject->begin());
  put_pod();
  record(json::array({entry("u1", "main", "slot-1")}));
  ASSERT_TRUE(prepared({"slot-1"})->good());
  edits = std::unexpected("the memory limit of card A could not be set");
  const auto refused = prepared({"slot-1"});
  EXPECT_EQ(refused->code, static_cast<int>(grpc::status_code::failed_precondition));
  EXPECT_THAT(refused->text, words::has_in_order({"memory limit", "card A"}));
  EXPECT_THAT(files(), IsEmpty());
  const auto other = prepared({"slot-2"});
  EXPECT_EQ(other->text, words::english("start.not_recorded"));
}

TEST_F(allocation_starter, waits_a_moment_for_a_pod_that_the_API_has_not_shown) {
  ASSERT_TRUE(subject->begin());
  record(json::array({entry("u1", "main", "slot-1")}));
  const auto done = prepared({"slot-1"}, [this] { put_pod(); });
  EXPECT_TRUE(done->good()) << done->text;
}

TEST_F(allocation_starter, a_call_that_the_kubelet_gave_up_writes_nothing) {
  ASSERT_TRUE(subject->begin());
  record(json::array({entry("u1", "main", "slot-1")}));
  std::optional<grpc::status> second;
  const auto first = prepared({"slot-1"}, [&] {
    subject->prepare({"slot-1"}, [&](const grpc::status& status) { second = status; });
    put_pod();
  });
  EXPECT_EQ(first->code, static_cast<int>(grpc::status_code::unavailable));
  ASSERT_TRUE(second && second->good());
  EXPECT_THAT(files(), SizeIs(1));
}

TEST_F(allocation_starter, files_of_pods_that_are_gone_and_its_own_at_the_end_are_removed) {
  ASSERT_TRUE(subject->begin());
  put_pod();
  record(json::array({entry("u1", "main", "slot-1")}));
  ASSERT_TRUE(prepared({"slot-1"})->good());
  pods.erase(kube::object_key{"lab", "p"});
  subject->clear_made();
  EXPECT_THAT(files(), IsEmpty());
  put_pod();
  ASSERT_TRUE(prepared({"slot-1"})->good());
  subject.reset();
  EXPECT_THAT(files(), IsEmpty());
}

/// Answers at most so many calls as its rate limit has it.
struct busy_kubelet final : grpc::call_handler {
  int refusals = 0, calls = 0;
  std::string list;
  void serve(std::shared_ptr<grpc::served_call> call, std::string_view) override {
    if (++calls <= refusals) return call->finish({grpc::status_code::resource_exhausted, "rejected by rate limit"});
    call->send(list);
    call->finish();
  }
};

struct allocation_starter_of_busy_kubelet : allocation_starter {
  busy_kubelet kubelet;
  grpc::server listening{loop.get_executor(), kubelet, {.socket = folder + "/kubelet.sock"}};

  allocation_starter_of_busy_kubelet() {
    make(folder + "/kubelet.sock");
    kubelet.list = exporter::wire_of({{"lab", "p", "main", "nvidia.com/gpu", {"slot-1"}}});
    put_pod();
    record(json::array({entry("u1", "main", "slot-1")}));
  }
  grpc::status status_of_start() {
    EXPECT_TRUE(subject->begin());
    EXPECT_TRUE(listening.listen());
    std::optional<grpc::status> out;
    subject->prepare({"slot-1"}, [&out](const grpc::status& status) { out = status; });
    loop.restart();
    while (!out && loop.run_one_for(5s) > 0) {
    }
    return out.value_or(grpc::status(grpc::status_code::internal, "no answer"));
  }
};

TEST_F(allocation_starter_of_busy_kubelet, asks_again_a_moment_later) {
  kubelet.refusals = 1;
  const auto status = status_of_start();
  EXPECT_TRUE(status.good()) << status.text;
  EXPECT_EQ(kubelet.calls, 2);
  EXPECT_THAT(files(), SizeIs(1));
}

TEST_F(allocation_starter_of_busy_kubelet, says_so_when_its_patience_is_over) {
  kubelet.refusals = 1'000;
  const auto status = status_of_start();
  EXPECT_EQ(status.code, static_cast<int>(grpc::status_code::unavailable));
  EXPECT_THAT(status.text, HasSubstr("rejected by rate limit"));
  EXPECT_GT(kubelet.calls, 1);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(allocation_starter, a_record_that_cannot_be_read_is_said) {
  ASSERT_TRUE(subject->begin());
  EXPECT_THAT(prepared({"slot-1"})->text, HasSubstr("kubelet_internal_checkpoint is not there"));
  std::ofstream(plugins + "/kubelet_internal_checkpoint") << "{}";
  EXPECT_THAT(prepared({"slot-1"})->text, HasSubstr("has no Data"));
  fs::remove_all(cdi);
  EXPECT_EQ(prepared({"slot-1"})->code, static_cast<int>(grpc::status_code::unavailable));
}

}  // namespace
}  // namespace agent::allocation
