# lane.sh: what the run.sh of test lanes share, to be sourced. The lane has `usage`, and `own_option` where it has arguments of its own.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
. "$root/test/cluster/layout.sh"
run='' k8s=${k8s_minors[0]} operator=''

wrong() { echo "run.sh: $1 (see --help)" >&2; exit 2; }
die() { echo "run.sh: $1" >&2; exit 1; }

# read_options "ALLOWED..." ARGUMENT...: sets $run, $k8s and $operator; --cluster sets the variable $cluster_variable.
# own_option ARGUMENT... takes what is not allowed here: it sets $taken to how many arguments it took, or to 0.
read_options() {
  local allowed=" $1 " taken; shift
  while (($#)); do
    taken=2
    case ${1/#--run/-run} in
      -h|--help) usage; exit 0 ;;
      -run|--k8s|--operator|--cluster) [[ $allowed == *" ${1/#--run/-run} "* ]] || wrong "unknown argument '$1'"; needs_value "$@" ;;&
      -run) run=$2 ;;
      --k8s) k8s=$2 ;;
      --operator) operator=$(readlink -e "$2") || wrong "no file $2"; [[ -x $operator ]] || wrong "$2 is no program"; export QM_OPERATOR=$operator ;;
      --cluster) export "$cluster_variable=$2" ;;
      *)
        taken=0
        ! declare -F own_option >/dev/null || own_option "$@"
        ((taken)) || wrong "unknown argument '$1'" ;;
    esac
    shift "$taken"
  done
  run=${QM_RUN:-$run}  # of ./dev test --run
  [[ " ${k8s_minors[*]} " == *" $k8s "* ]] || wrong "--k8s '$k8s' is not one of: ${k8s_minors[*]}"
}

needs_value() { [[ $# -ge 2 ]] || wrong "$1 needs a value"; }

# find_operator sets $operator where no option did.
find_operator() {
  local candidate
  for candidate in "$root/build/release/quartermaster" "$root/build/dev/quartermaster"; do [[ -n $operator || ! -x $candidate ]] || operator=$candidate; done
}

build_cluster() { "$root/test/cluster/build.sh" --k8s "$k8s" --tools "$@"; }

# compile FOLDER: the tests of that folder of test/, such as chart/server, sets $binary to their program and goes to the folder.
compile() {
  "$root/test/compile.sh" "./$1" || exit
  binary=$root/build/test/$1.test
  cd "$root/test/$1" || exit
}

# select_tests sets $selection to the arguments that choose tests: those of -run, else those of the set QM_SET. A test whose name ends in
# _long is only in the sets `long`, which has no others, and `all`. The default is `short`, or `all` with QM_NIGHTLY, which
# makes the tests themselves longer.
select_tests() {
  set_name=${QM_SET:-${QM_NIGHTLY:+all}} set_name=${set_name:-short}
  case $set_name in
    short) selection=(-test.skip '_long$') ;;
    long) selection=(-test.run '_long$') ;;
    all) selection=() ;;
    *) wrong "QM_SET '$set_name' is not one of: short, long, all" ;;
  esac
  [[ -z $run ]] || selection=(-test.run "$run")
}

# select_part FOLDER: of the set `long`, only part QM_SLICE of QM_PARTS, where both are there (./dev, `slice`).
select_part() {
  [[ -n ${QM_SLICE:-} && ${QM_PARTS:-1} -gt 1 ]] || return 0
  local names
  names=$(grep -hoE '^func Test\w+_long\(' "$root/test/$1"/*_test.go | sed 's/^func //; s/($//' | sort |
    awk -v parts="$QM_PARTS" -v part=$((QM_SLICE % QM_PARTS)) 'NR % parts == part' | paste -sd'|')
  echo "part $((QM_SLICE % QM_PARTS + 1)) of $QM_PARTS of the set 'long': $names"
  selection=(-test.run "^($names)\$")
}

# run_tests FOLDER [ARGUMENT...]: compiles them and runs them in place of this script. Each wait has its own deadline; the one for all is for
# what hangs, and a busy machine must not reach it.
run_tests() {
  local selection
  select_tests
  if [[ $set_name == long && -z $run ]] && ! grep -Eqs '^func Test\w*_long\(' "$root/test/$1"/*_test.go; then
    echo "no test of $1 is in the set 'long'"; exit 0
  fi
  if [[ -n $run ]]; then
    local rc=0
    grep -hoE '^func Test\w+' "$root/test/$1"/*_test.go | cut -c6- | grep -E -- "${run%%/*}" >/dev/null || rc=$?
    [[ $rc != 2 ]] || wrong "-run '$run' is no regular expression"
    if [[ $rc == 1 && -n ${QM_RUN:-} ]]; then echo "no test of $1 has '$run' in its name"; exit 0; fi
    [[ $rc == 0 ]] || wrong "-run '$run': no test of $1 has such a name"
  fi
  [[ $set_name != long || -n $run ]] || select_part "$1"
  compile "$1"
  QM_K8S=$k8s exec "$binary" -test.v -test.timeout 45m "${@:2}" "${selection[@]}"
}
