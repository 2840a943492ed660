#!/bin/sh
# heat.sh [SHARE] runs the tests with a real Heat, or a share of them: 2/3 is the last third.
#
# Tests mostly wait for Heat. So two halves of them run at the same time, each with a lab of its own. Those that measure run afterwards, alone.
set -e
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go test -c -vet=off -tags openstack -o "$dir/heat.test" .

run() { test -z "$1" || "$dir/heat.test" -test.timeout 35m -test.parallel 6 -test.run "^($1)\$"; }
half() { echo "$waiting" | awk -v half="$1" 'NR % 2 == half' | paste -s -d '|'; }

due=$("$dir/heat.test" -test.list '^Test' | awk -v share="${1:-0/1}" '{ split(share, s, "/") } NR % s[2] == s[1]')
test -n "$due" # no test at all is a mistake
measured=$(echo "$due" | grep -xE 'TestCost|TestHeatH9' | paste -s -d '|' || true)
waiting=$(echo "$due" | grep -vxE 'TestCost|TestHeatH9' || true)

failed=0 begin=$(date +%s)
run "$(half 0)" &
run "$(half 1)" || failed=1
wait $! || failed=1
run "$measured" || failed=1
echo "the tests with a real Heat took $(($(date +%s) - begin)) s"
exit $failed
