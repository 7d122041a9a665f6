# Starts the processes of a control plane and stops them with the test. Reads `start NAME` and `keep` from stdin.
# When stdin ends, for any reason, it kills every process and removes the directory. It prints `ended NAME CODE` for a
# process that ends earlier.
dir=$1
runners=
keep=
trap : HUP INT TERM
mkdir -m 700 "$dir" || exit 1
echo ready

# Runs one process; NAME.args has one argument per line. TERM may arrive at any time: before the process exists, it is
# only noted in $stop.
run() {
  child=
  stop=
  trap 'stop=1; [ -z "$child" ] || kill -KILL "$child" 2>/dev/null' TERM
  set --
  while IFS= read -r argument; do set -- "$@" "$argument"; done <"$dir/$name.args"
  "$@" </dev/null >"$dir/$name.log" 2>&1 &
  child=$!
  [ -z "$stop" ] || kill -KILL "$child" 2>/dev/null
  echo "$child" >"$dir/$name.pid"
  wait "$child"
  code=$?
  wait "$child" 2>/dev/null
  echo "ended $name $code"
}

while read -r command name; do
  case $command in
    start)
      run </dev/null &
      runners="$runners $!"
      ;;
    keep) keep=1 ;;
  esac
done

trap '' HUP INT TERM PIPE
[ -z "$runners" ] || kill -TERM $runners 2>/dev/null
wait
if [ -n "$keep" ]; then
  for file in "$dir"/* "$dir"/.[!.]*; do
    case $file in
      *.log) ;;
      *) rm -rf "$file" ;;
    esac
  done
else
  rm -rf "$dir"
fi
