// What check.cjs has to find here: seven names, one type name of three types, one long function, and "anew" in this comment. It is no part of the program.
enum class place { at, shelf };
const char* message = "two words of "
                      "ours";
struct card {
  int what = 0;
  int memory_mib = 0;
};
int used_mib(const card& of, int index) {
  card off(of);
  for (auto one : {1, 2}) index += one;
  const auto [from, memory] = card{};
  auto add = [](int with) { return with + 1; };
  return of.what + index + from + memory + add(1);
}
int long_function(int number) {
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  number += 1;
  return number;
}

// One name, three types; the alias that only shortens does not count.
namespace first {
struct row {};
}  // namespace first
namespace second {
enum class row { empty };
struct table {
  struct row {};
};
}  // namespace second
namespace third {
using row = int;
}  // namespace third
namespace fourth {
using row = second::table::row;
}  // namespace fourth
