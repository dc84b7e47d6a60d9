// A program on a card, for bench/card: the driver's library is loaded at run time, and its kernel is PTX, which the
// driver compiles. No toolkit is needed. `card_client` alone says how it is used.
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::microseconds, std::chrono::milliseconds, std::chrono::steady_clock, std::chrono::system_clock;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr unsigned threads_of_block = 256;
constexpr std::size_t input_size = 256 << 10;  ///< bytes that a request sends to the card

/// What a bench needs of a card.
struct used_card {
  virtual ~used_card() = default;
  virtual int multiprocessors() = 0;
  virtual std::uint64_t total() = 0;  ///< bytes of memory, as a program sees them
  virtual bool take(std::uint64_t bytes) = 0;
  /// Sends the input, runs that many blocks with that many steps each, and waits for the result.
  virtual void answer(unsigned blocks, unsigned steps) = 0;
};

/// Functions of libcuda; return codes are the driver's, 0 is success.
class cuda_device : public used_card {
 public:
  cuda_device() {
    int number = 0;
    void* context = nullptr;
    must("cuInit", function<int(unsigned)>("cuInit")(0));
    must("cuDeviceGet", function<int(int*, int)>("cuDeviceGet")(&number, 0));
    must("cuCtxCreate", function<int(void**, unsigned, int)>("cuCtxCreate_v2")(&context, 0, number));
    constexpr int multiprocessor_count = 16;
    must("cuDeviceGetAttribute",
         function<int(int*, int, int)>("cuDeviceGetAttribute")(&multiprocessors_, multiprocessor_count, number));
    void* module = nullptr;
    must("cuModuleLoadData", function<int(void**, const void*)>("cuModuleLoadData")(&module, kernel));
    must("cuModuleGetFunction",
         function<int(void**, void*, const char*)>("cuModuleGetFunction")(&work_, module, "work"));
    must("cuMemAlloc", allocate_(&buffer_, input_size));
  }

  int multiprocessors() override { return multiprocessors_; }

  std::uint64_t total() override {
    std::size_t free = 0, total = 0;
    must("cuMemGetInfo", function<int(std::size_t*, std::size_t*)>("cuMemGetInfo_v2")(&free, &total));
    return total;
  }

  bool take(std::uint64_t bytes) override {
    std::uint64_t pointer = 0;
    return allocate_(&pointer, bytes) == 0;
  }

  void answer(unsigned blocks, unsigned steps) override {
    must("cuMemcpyHtoD", send_(buffer_, input_.data(), input_.size()));
    void* arguments[] = {&buffer_, &steps};
    must("cuLaunchKernel", launch_(work_, blocks, 1, 1, threads_of_block, 1, 1, 0, nullptr, arguments, nullptr));
    float result = 0;
    must("cuMemcpyDtoH", receive_(&result, buffer_, sizeof result));
  }

 private:
  /// Multiplies and adds; writes nothing that anyone reads.
  static constexpr const char* kernel =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .entry work(.param .u64 out, .param .u32 steps) {\n"
      ".reg .f32 %f<3>; .reg .u32 %r<3>; .reg .u64 %d<3>; .reg .pred %p;\n"
      "ld.param.u64 %d1,[out]; cvta.to.global.u64 %d2,%d1; ld.param.u32 %r1,[steps];\n"
      "mov.f32 %f1,0f3F800001; mov.f32 %f2,0f3F7FFFFF; mov.u32 %r2,0;\n"
      "L: fma.rn.f32 %f1,%f1,%f2,%f2; add.u32 %r2,%r2,1; setp.lt.u32 %p,%r2,%r1; @%p bra L;\n"
      "setp.eq.f32 %p,%f1,0f00000000; @!%p bra E; st.global.f32 [%d2],%f1;\nE: ret; }\n";

  static void* loaded() {
    if (void* const out = dlopen("libcuda.so.1", RTLD_NOW)) return out;
    throw std::runtime_error(std::string("no driver: ") + dlerror());
  }
  template <class Signature>
  Signature* function(const char* name) {
    void* const out = dlsym(library_, name);
    if (!out) throw std::runtime_error(std::string("the driver's library has no ") + name);
    return reinterpret_cast<Signature*>(out);
  }
  void must(const char* call, int code) {
    if (code == 0) return;
    const char* name = "an unknown error";
    function<int(int, const char**)>("cuGetErrorName")(code, &name);
    throw std::runtime_error(std::string(call) + ": " + name + " (" + std::to_string(code) + ")");
  }

  void* library_ = loaded();
  void* work_ = nullptr;
  int multiprocessors_ = 0;
  std::uint64_t buffer_ = 0;
  std::vector<char> input_ = std::vector<char>(input_size);
  int (*allocate_)(std::uint64_t*, std::size_t) = function<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2");
  int (*send_)(std::uint64_t, const void*,
               std::size_t) = function<int(std::uint64_t, const void*, std::size_t)>("cuMemcpyHtoD_v2");
  int (*receive_)(void*, std::uint64_t,
                  std::size_t) = function<int(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2");
  int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) =
      function<int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)>(
          "cuLaunchKernel");
};

/// No card: each request is a pause, and limits are those of the environment. It shows that a bench runs.
class played_device : public used_card {
 public:
  int multiprocessors() override {
    const char* share = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    return share ? std::max(1, all_multiprocessors * std::atoi(share) / 100) : all_multiprocessors;
  }
  std::uint64_t total() override { return all_mib * mib; }
  bool take(std::uint64_t bytes) override {
    const char* limit = std::getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");  // "0=4096M"
    const auto most = limit ? std::strtoull(std::string(limit).substr(2).c_str(), nullptr, 10) : all_mib;
    if (taken_ + bytes > most * mib) return false;
    taken_ += bytes;
    return true;
  }
  void answer(unsigned, unsigned) override { std::this_thread::sleep_for(milliseconds(2)); }

 private:
  static constexpr int all_multiprocessors = 40;
  static constexpr std::uint64_t all_mib = 15'360;
  std::uint64_t taken_ = 0;
};

struct flags {
  bool dry = false;
  unsigned blocks = 1, steps = 1000, time = 2000, chunk = 256;
  std::int64_t begin = 0;
  double seconds = 5;
};

/// Steps with which one request of a program that is alone takes that long.
void calibrate(used_card& is, const flags& wanted) {
  unsigned steps = 1000;
  for (int turn = 0; turn < 12; ++turn) {
    is.answer(wanted.blocks, steps);
    const auto began = steady_clock::now();
    for (int i = 0; i < 5; ++i) is.answer(wanted.blocks, steps);
    const double took = std::chrono::duration<double, std::micro>(steady_clock::now() - began).count() / 5;
    if (took > wanted.time * 0.95 && took < wanted.time * 1.05) break;
    steps = static_cast<unsigned>(std::clamp(steps * std::clamp(wanted.time / took, 0.25, 4.0), 10.0, 2e8));
  }
  std::printf("steps %u\n", steps);
}

void take(used_card& is, const flags& wanted) {
  std::uint64_t taken = 0;
  while (taken < 2 * is.total() && is.take(wanted.chunk * mib)) taken += wanted.chunk * mib;
  std::printf("took %llu %d %llu\n", static_cast<unsigned long long>(taken / mib), is.multiprocessors(),
              static_cast<unsigned long long>(is.total() / mib));
}

void answer(used_card& is, const flags& wanted) {
  is.answer(wanted.blocks, 10);  // the first request waits for the driver's compiler
  const auto begin = system_clock::time_point(milliseconds(wanted.begin));
  if (system_clock::now() > begin)
    throw std::runtime_error("it was ready after the others had begun: give it more time with -warm-up");
  std::this_thread::sleep_until(begin);
  std::vector<double> took;
  const auto end = steady_clock::now() + std::chrono::duration<double>(wanted.seconds);
  while (steady_clock::now() < end) {
    const auto began = steady_clock::now();
    is.answer(wanted.blocks, wanted.steps);
    took.push_back(std::chrono::duration<double, std::milli>(steady_clock::now() - began).count());
  }
  std::ranges::sort(took);
  std::printf("answered %zu %.3f %.3f\n", took.size(), took[took.size() / 2], took[took.size() * 99 / 100]);
}

}  // namespace

int main(int count, char** words) {
  CLI::App app("A program on a card: what it sees of it, what it can take, and how quickly it answers requests.");
  flags wanted;
  app.add_flag("--dry", wanted.dry, "play the card: each request is a pause of 2 ms");
  app.require_subcommand(1);
  const auto verb = [&](const char* name, const char* help) { return app.add_subcommand(name, help); };
  auto* calibration = verb("calibrate", "prints \"steps N\": the length of a request that takes --time");
  calibration->add_option("--blocks", wanted.blocks, "blocks of a request")->required();
  calibration->add_option("--time", wanted.time, "microseconds")->required();
  auto* taking = verb("take", "prints \"took MIB MULTIPROCESSORS TOTAL_MIB\": takes memory until there is none");
  taking->add_option("--chunk", wanted.chunk, "MiB at once");
  auto* answering = verb("answer", "prints \"answered REQUESTS P50_MS P99_MS\"");
  answering->add_option("--blocks", wanted.blocks, "blocks of a request")->required();
  answering->add_option("--steps", wanted.steps, "length of a request")->required();
  answering->add_option("--begin", wanted.begin, "milliseconds since 1970")->required();
  answering->add_option("--seconds", wanted.seconds, "how long")->required();
  CLI11_PARSE(app, count, words);
  try {
    const std::unique_ptr<used_card> is =
        wanted.dry ? std::unique_ptr<used_card>(std::make_unique<played_device>()) : std::make_unique<cuda_device>();
    if (calibration->parsed()) calibrate(*is, wanted);
    if (taking->parsed()) take(*is, wanted);
    if (answering->parsed()) answer(*is, wanted);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "card_client: %s\n", problem.what());
    return 1;
  }
}
