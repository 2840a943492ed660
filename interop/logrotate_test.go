//go:build interop

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// logrotateScript sets up a host in namespaces: the files of the packages, a master that runs as the user salt, and a
// minion. Between the minion's jobs, logrotate is forced to rotate the logs. The script fails if a log does not
// continue in the new file, or if a job is in none of the files.
const logrotateScript = `bin=$1 pkg=$2 dir=$3
fail() { echo "$1"; ls -l /var/log/salt; tail -n 5 $dir/*.out /var/log/salt/minion /var/log/salt/master; exit 1; }
until_true() { for i in $(seq 300); do ! eval "$1" || return 0; sleep 0.1; done; fail "waited in vain: $1"; }
ip link set lo up
mount -t tmpfs -o mode=755 tmpfs /var/log
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/cache
grep -v '^salt:' /etc/passwd >$dir/passwd; echo 'salt:x:64990:64990::/var/cache/salt:/bin/false' >>$dir/passwd
grep -v '^salt:' /etc/group >$dir/group; echo 'salt:x:64990:' >>$dir/group
mount --bind $dir/passwd /etc/passwd; mount --bind $dir/group /etc/group
mkdir -m 755 /var/log/salt $dir/bin $dir/etc $dir/root $dir/logrotate.d
systemd-tmpfiles --create $pkg/minion/tmpfiles.conf $pkg/master/tmpfiles.conf
install -d -o salt -g salt /var/cache/salt
cp $bin/brine-minion $bin/brine-master $dir/bin
cat >$dir/etc/master <<EOF
pki_dir: $dir/root/pki
cachedir: $dir/root/cache
sock_dir: $dir/root/run
pidfile: $dir/root/pid
log_file: /var/log/salt/master
log_level_logfile: debug
interface: 127.0.0.1
user: salt
auto_accept: true
EOF
cat >$dir/etc/minion <<EOF
id: self
master: 127.0.0.1
pki_dir: $dir/minion/pki
cachedir: $dir/minion/cache
sock_dir: $dir/minion/run
pidfile: $dir/minion/pid
log_file: /var/log/salt/minion
log_level_logfile: debug
EOF
chown salt:salt $dir/root
# As the debs have it, with the file of a stock package that names the same logs.
cp $pkg/minion/logrotate $dir/logrotate.d/brine-minion
cp $pkg/master/logrotate $dir/logrotate.d/brine-master
for log in master minion key; do
	printf '/var/log/salt/%s {\n\tweekly\n\tmissingok\n\trotate 7\n\tcompress\n\tnotifempty\n}\n' $log
done >$dir/logrotate.d/salt-common
printf 'weekly\nrotate 4\ncreate\ninclude %s\n' $dir/logrotate.d >$dir/logrotate.conf
chmod 644 $dir/logrotate.conf $dir/logrotate.d/*

$dir/bin/brine-master master -c $dir/etc >$dir/master.out 2>&1 &
$dir/bin/brine-minion minion -c $dir/etc >$dir/minion.out 2>&1 &
salt() { $dir/bin/brine-master salt -c $dir/etc "$@"; }
until_true 'salt -t 2 --out=newline_values_only self test.ping 2>/dev/null | grep -qx True'
# Both logs name the function of a job.
called() {
	salt self $1 >/dev/null || fail "$1 fails"
	until_true "grep -qw $1 /var/log/salt/master && grep -qw $1 /var/log/salt/minion"
}
round=0
for fun in test.true test.version test.random_hash; do
	round=$((round + 1))
	if [ $round = 3 ]; then # as the rpms have it, beside which there is no stock package
		rm $dir/logrotate.d/*
		cp $pkg/minion/rpm/logrotate $dir/logrotate.d/brine-minion
		cp $pkg/master/rpm/logrotate $dir/logrotate.d/brine-master
		chmod 644 $dir/logrotate.d/*
	fi
	called $fun
	old=$(stat -c %i /var/log/salt/master)/$(stat -c %i /var/log/salt/minion)
	out=$(logrotate -f -s $dir/state $dir/logrotate.conf 2>&1) || fail "logrotate ends with $?: $out"
	[ -z "$out" ] || fail "logrotate says $out"
	[ "$old" != "$(stat -c %i /var/log/salt/master)/$(stat -c %i /var/log/salt/minion)" ] || fail "the logs are the old files"
	[ -s /var/log/salt/master.$round.gz ] || fail "there is no master.$round.gz"
	[ -s /var/log/salt/minion.$round.gz ] || fail "there is no minion.$round.gz"
	[ "$(stat -c '%a %U %G' /var/log/salt/master)" = '640 salt salt' ] || fail "the master's new log has another owner"
done
called test.providers
for fun in test.true test.version test.random_hash; do
	for log in master minion; do
		zgrep -qw $fun /var/log/salt/$log.*.gz || fail "the log of the $log has no $fun"
	done
done
`

// TestLogrotate checks that the logs of a running master and minion continue in new files whenever logrotate rotates
// them with the configuration of the packages, and that nothing is lost.
func TestLogrotate(t *testing.T) {
	t.Parallel()
	prereq.Root(t)
	for _, tool := range []string{"logrotate", "unshare", "ip", "systemd-tmpfiles"} {
		if _, err := exec.LookPath(tool); err != nil {
			prereq.Missing(t, tool)
		}
	}
	dir := tempDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	pkg, err := filepath.Abs("../pkg")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-euc", logrotateScript, "sh", bin, pkg, dir).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
