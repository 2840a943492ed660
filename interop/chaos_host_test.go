//go:build chaos && linux

package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestChaosHost checks a master and a minion during faults of their host: a file system without space, without
// inodes, read-only or without its device; few descriptors or little memory; a stopped process. During the fault,
// each command must get an answer or print the cause. After it, the program must serve again, no job may have run
// twice, and no job that ran may have lost its return.
func TestChaosHost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("file systems and control groups need root")
	}
	c := newCampaign(t, "Faults of the host",
		"fault", "of", "on", "killed meanwhile", "asked", "answered", "told why", "jobs run", "jobs returned", "serves again after")
	for i, f := range hostFaults() {
		id := fmt.Sprint("h", i)
		t.Run(fmt.Sprintf("%s_%s_%s_%d", strings.ReplaceAll(f.name, " ", "-"), f.side, f.where, i), func(t *testing.T) {
			t.Parallel()
			newAfflicted(t, c, id, f).run()
		})
	}
}

// hostFault is one row: a fault of one side's host.
type hostFault struct {
	name  string
	side  string                    // "master" or "minion"
	where string                    // the part of its root directory that the fault concerns, "all" for everything
	begin func(a *afflicted)        // causes it
	end   func(a *afflicted)        // and removes it
	wrap  func(*testing.T) []string // the command that starts the program with the fault, instead of begin and end
	load  func(a *afflicted)        // runs during the fault, instead of the usual commands
	kill  bool                      // the program is killed and started again during the fault
	dies  bool                      // the program must be started again afterwards, because its open files are gone
	mute  bool                      // nothing on that side can answer during the fault
}

// hostFaults returns the rows of the campaign, or of its short form.
func hostFaults() []hostFault {
	var rows []hostFault
	for _, side := range []string{"minion", "master"} {
		for _, where := range []string{"all", "cache", "pki", "run"} {
			for _, kill := range []bool{false, true} {
				for _, f := range []hostFault{
					{name: "disk full", begin: fill, end: empty},
					{name: "no inodes", begin: useInodes, end: empty},
					{name: "read-only", begin: abort, end: repair, dies: true},
					{name: "device gone", begin: cutOff, end: repair, dies: true},
				} {
					if chaosFull() || f.name == "disk full" && where == "all" && !kill {
						f.side, f.where, f.kill = side, where, kill
						rows = append(rows, f)
					}
				}
			}
		}
		rows = append(rows, hostFault{name: "stands still", side: side, where: "all", begin: stand, end: goOn, mute: true})
		if chaosFull() {
			rows = append(rows,
				hostFault{name: "64 descriptors", side: side, where: "all", wrap: fewDescriptors, load: manyJobs},
				hostFault{name: "32 MB", side: side, where: "all", wrap: littleMemory, load: largeOutput})
		}
	}
	return rows
}

// causes matches the texts that report a fault of the host.
var causes = regexp.MustCompile(`(?i)no space left|disk[^\n]*full|read-only|input/output error|structure needs cleaning|too many open files|` +
	`cannot allocate|did not return|no return received|not respond|timed out`)

// afflicted is a master and a minion, one of which has a fault.
type afflicted struct {
	t  *testing.T
	c  *campaign
	f  hostFault
	id string // the minion's id

	site      *site
	minionEtc string
	ledger    string // every job writes a line into it
	volume    string // where the file system with the fault is mounted
	image     string
	master    *process
	minion    *process
	jobs      []string // ids of the accepted jobs
	names     []string // the lines that they write into the ledger
	asked     int
	answered  int
	toldWhy   int
}

// newAfflicted starts the master and the minion, and waits until the minion answers.
func newAfflicted(t *testing.T, c *campaign, id string, f hostFault) *afflicted {
	t.Helper()
	a := &afflicted{t: t, c: c, f: f, id: id, site: newSite(t, "zeromq", "auto_accept: True\ntimeout: 5\ngather_job_timeout: 3")}
	a.minionEtc = a.site.minion(t, id, "")
	a.ledger = tempDir(t) + "/ledger"
	if f.wrap == nil && f.begin != nil && !f.mute {
		a.mount()
	}
	a.startMaster()
	a.startMinion()
	await(t, "the minion answers", func() bool { ok, _ := a.ask(10); return ok })
	a.asked, a.answered, a.toldWhy = 0, 0, 0
	return a
}

// root returns the root directory of the side with the fault.
func (a *afflicted) root() string {
	if a.f.side == "master" {
		return a.site.dir
	}
	return a.site.dir + "/" + a.id
}

// mount mounts a small file system at the part of the root directory that the fault concerns.
func (a *afflicted) mount() {
	a.t.Helper()
	a.image = tempDir(a.t) + "/image"
	a.volume = a.root()
	if a.f.where != "all" {
		a.volume += "/" + a.f.where
	}
	kept := tempDir(a.t)
	if err := os.MkdirAll(a.volume, 0o700); err != nil {
		a.t.Fatal(err)
	}
	script := `set -e
truncate -s 48M "$1"; mkfs.ext4 -q -m 0 -N 1200 "$1"
cp -a "$2/." "$3/"; find "$2" -mindepth 1 -delete
mount -o loop "$1" "$2"; rmdir "$2/lost+found"; chmod 700 "$2"; cp -a "$3/." "$2/"; chmod 755 "$2"; sync -f "$2"`
	a.sh(script, a.image, a.volume, kept)
	a.t.Cleanup(func() { _ = exec.Command("umount", "-l", a.volume).Run() })
}

// sh runs a script with arguments.
func (a *afflicted) sh(script string, args ...string) {
	a.t.Helper()
	if out, err := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...).CombinedOutput(); err != nil {
		a.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func (a *afflicted) startMaster() { a.master = a.program("master", "salt-master", a.site.dir+"/etc") }
func (a *afflicted) startMinion() { a.minion = a.program("minion", "salt-minion", a.minionEtc) }

// program starts the master or the minion, with the fault's wrapper if there is one.
func (a *afflicted) program(side, name, etc string) *process {
	a.t.Helper()
	command := []string{ours(name), "-c", etc}
	if a.f.side == side && a.f.wrap != nil {
		command = append(a.f.wrap(a.t), command...)
	}
	return start(a.t, command[0], command[1:]...)
}

// victim returns the program with the fault.
func (a *afflicted) victim() *process {
	if a.f.side == "master" {
		return a.master
	}
	return a.minion
}

func (a *afflicted) startVictim() {
	a.t.Helper()
	if a.f.side == "master" {
		a.startMaster()
	} else {
		a.startMinion()
	}
}

// salt runs a command on the master's host.
func (a *afflicted) salt(timeout time.Duration, program string, args ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, ours(program), append([]string{"-c", a.site.dir + "/etc"}, args...)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	_ = cmd.Run()
	if ctx.Err() != nil {
		a.c.breaks("%s: %s %q did not end within %s", a.f, program, args, timeout)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// String returns the name of the row.
func (f hostFault) String() string {
	killed := ""
	if f.kill {
		killed = ", killed meanwhile"
	}
	return fmt.Sprintf("%s of the %s (%s%s)", f.name, f.side, f.where, killed)
}

// ask pings the minion. If there is no answer, the command must print the cause and exit with an error code.
func (a *afflicted) ask(timeout int) (ok bool, text string) {
	a.t.Helper()
	stdout, stderr, code := a.salt(2*time.Minute, "salt", "--out=json", "--static", "-t", fmt.Sprint(timeout), a.id, "test.ping")
	var answer map[string]any
	_ = json.Unmarshal([]byte(stdout), &answer)
	a.asked++
	if answer[a.id] == true && code == 0 {
		a.answered++
		return true, ""
	}
	text = fmt.Sprintf("exit code %d\n%s%s", code, stdout, stderr)
	if code != 0 && a.toldBy(stdout+stderr) {
		a.toldWhy++
	}
	return false, text
}

// toldBy reports whether the output of a command gives the cause of a missing answer. If the master refused to start
// it has logged the cause, and the command can only report that the master does not run.
func (a *afflicted) toldBy(text string) bool {
	return causes.MatchString(text) && !strings.Contains(text, "No minions matched") ||
		a.ended(a.master) && strings.Contains(text, "The salt master could not be contacted")
}

// job publishes a command that takes the given number of seconds and writes a line at its end, and does not wait for
// it. It reports whether the job was accepted.
func (a *afflicted) job(seconds int) bool {
	a.t.Helper()
	name := fmt.Sprintf("%s-%d", a.id, len(a.names)+a.asked)
	stdout, stderr, code := a.salt(time.Minute, "salt", "--async", "--out=json", a.id, "cmd.run",
		fmt.Sprintf("touch %s.%s; sleep %d; echo %[2]s >>%[1]s", a.ledger, name, seconds), "python_shell=True")
	jid := regexp.MustCompile(`\d{20}`).FindString(stdout)
	if jid == "" {
		if code == 0 || !a.toldBy(stdout+stderr) {
			a.c.breaks("%s: a job was not taken, with exit code %d and no cause:\n%s%s", a.f, code, stdout, stderr)
		}
		return false
	}
	a.jobs, a.names = append(a.jobs, jid), append(a.names, name)
	return true
}

// run runs one row of the table.
func (a *afflicted) run() {
	keys := a.keys()
	begin := time.Now()
	if a.f.begin != nil {
		if !a.job(4) {
			a.t.Fatal("the job before the fault was not taken")
		}
		await(a.t, "the job runs", func() bool { return a.running() })
		a.f.begin(a)
	}
	again := time.Duration(0)
	if a.f.load != nil {
		a.f.load(a)
	} else {
		a.meanwhile()
	}
	if a.f.end != nil {
		begin = time.Now()
		a.f.end(a)
		again = a.recovers(begin)
	}
	ran, returned := a.outcomes()
	if after := a.keys(); !slices.Equal(keys, after) {
		a.c.breaks("%s: the keys were %v and are %v", a.f, keys, after)
	}
	a.c.row(a.f.name, a.f.side, a.f.where, a.f.kill, a.asked, a.answered, a.toldWhy, ran, returned, again.Round(100*time.Millisecond))
}

// running reports whether the minion has begun the job that was published before the fault.
func (a *afflicted) running() bool { return exists(a.ledger + "." + a.names[0]) }

// meanwhile runs commands and publishes jobs during the fault. It kills the program if the row says so.
func (a *afflicted) meanwhile() {
	if a.f.kill {
		a.victim().kill()
		a.startVictim()
		a.upOrWhy()
		a.asked, a.answered, a.toldWhy = 0, 0, 0
	}
	var last string
	questions := 3
	if a.f.mute && !chaosFull() {
		questions = 1 // each takes as long as a command waits for its master
	}
	for range questions {
		ok, text := a.ask(5)
		if !ok {
			last = text
		}
	}
	if a.f.side == "minion" && !a.f.mute && !a.f.dies && !a.ended(a.minion) && a.answered != a.asked {
		a.c.breaks("%s: the minion answered %d of %d:\n%s", a.f, a.answered, a.asked, last)
	}
	if a.answered+a.toldWhy != a.asked {
		a.c.breaks("%s: of %d questions %d were answered and for %d the cause was told; the last other one:\n%s",
			a.f, a.asked, a.answered, a.toldWhy, last)
	}
	if !a.f.mute && !a.ended(a.minion) {
		a.job(0)
	}
	if !a.f.kill && a.ended(a.victim()) {
		a.c.breaks("%s: the program ended:\n%s", a.f, tail(a.victim().log))
	}
}

func (a *afflicted) ended(p *process) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// upOrWhy waits until the program that was started during the fault serves or reports the cause, or has ended with
// the cause in its log.
func (a *afflicted) upOrWhy() {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if a.ended(a.victim()) {
			if words := tail(a.victim().log); !causes.MatchString(words) {
				a.c.breaks("%s: the program refused to start and did not say why:\n%s", a.f, words)
			}
			return
		}
		if ok, text := a.ask(3); ok || causes.MatchString(text) {
			return
		}
	}
}

// recovers waits until the minion answers again and returns how long that took. It starts a program that has ended,
// as a service manager does.
func (a *afflicted) recovers(since time.Time) time.Duration {
	a.t.Helper()
	if a.f.dies || a.ended(a.victim()) {
		if !a.ended(a.victim()) {
			a.settle()
		}
		a.victim().stop()
		if a.f.dies {
			a.remount()
		}
		since = time.Now()
		a.startVictim()
	}
	var text string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		ok, said := a.ask(5)
		if ok {
			return time.Since(since)
		}
		text = said
	}
	a.c.breaks("%s: no answer within a minute after it was over:\n%s\n%s", a.f, text, tail(a.victim().log))
	return time.Since(since)
}

// settle waits until the accepted jobs have run, and until a minion that is about to be stopped has returned them:
// returns that it cannot write are only in memory.
func (a *afflicted) settle() {
	// There is no notification of files and other processes.
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		open := slices.DeleteFunc(slices.Clone(a.names), func(name string) bool { return strings.Contains(readFile(a.t, a.ledger), name+"\n") })
		if len(open) == 0 && (a.f.side == "master" || !slices.ContainsFunc(a.jobs, func(jid string) bool { return a.returned(jid) != "" })) {
			return
		}
	}
}

// returned looks up a return. It returns "" if there is one, and otherwise the contents of the job cache.
func (a *afflicted) returned(jid string) (known string) {
	a.t.Helper()
	stdout, stderr, _ := a.salt(time.Minute, "salt-run", "--out=json", "jobs.list_job", jid)
	var job struct{ Result map[string]any }
	if json.Unmarshal([]byte(stdout), &job) == nil && job.Result[a.id] != nil {
		return ""
	}
	return stdout + stderr
}

// outcomes waits for the returns of all jobs and counts the jobs that ran. Each accepted job must have run once. If
// the minion or master was killed, it may have run at most once, and if it did not run its return must say so.
func (a *afflicted) outcomes() (ran, returned int) {
	a.t.Helper()
	for _, jid := range a.jobs {
		said := a.returned(jid)
		for end := time.Now().Add(45 * time.Second); said != "" && time.Now().Before(end); said = a.returned(jid) {
			time.Sleep(300 * time.Millisecond)
		}
		if said != "" {
			a.c.breaks("%s: job %s has no return; the cache knows:\n%s", a.f, jid, said)
		} else {
			returned++
		}
	}
	b, err := os.ReadFile(a.ledger)
	if err != nil && !os.IsNotExist(err) {
		a.t.Fatal(err)
	}
	count := map[string]int{}
	for _, line := range strings.Fields(string(b)) {
		count[line]++
		ran++
	}
	for _, name := range a.names {
		if count[name] > 1 || count[name] == 0 && !a.f.kill {
			a.c.breaks("%s: the job %s ran %d times", a.f, name, count[name])
		}
		delete(count, name)
	}
	if a.f.side == "minion" {
		for name, n := range count {
			a.c.breaks("%s: the job %s, which nobody was told of, ran %d times", a.f, name, n)
		}
	}
	return ran, returned
}

// keys returns the checksums of both sides' keys, without pending and foreign keys and unfinished files.
func (a *afflicted) keys() []string {
	a.t.Helper()
	var sums []string
	for _, dir := range []string{a.site.dir + "/pki", a.site.dir + "/" + a.id + "/pki"} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "filler") || strings.HasPrefix(d.Name(), ".") || filepath.Ext(name) != ".pem" && filepath.Ext(name) != ".pub" &&
				filepath.Base(filepath.Dir(name)) != "minions" {
				return err
			}
			b, err := os.ReadFile(name)
			sums = append(sums, fmt.Sprintf("%s %x", name, sha256.Sum256(b)))
			return err
		})
		if err != nil {
			a.t.Fatal(err)
		}
	}
	return sums
}

// fill uses all space of the volume.
func fill(a *afflicted) {
	f, err := os.Create(a.volume + "/filler")
	if err != nil {
		a.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2] // down to the last byte
		}
	}
}

// useInodes uses all inodes of the volume.
func useInodes(a *afflicted) {
	for n := 0; ; n++ {
		f, err := os.Create(fmt.Sprintf("%s/filler%d", a.volume, n))
		if err != nil {
			return
		}
		f.Close()
	}
}

// empty removes the files of fill and useInodes.
func empty(a *afflicted) {
	names, err := filepath.Glob(a.volume + "/filler*")
	for _, name := range names {
		if err == nil {
			err = os.Remove(name)
		}
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// abort makes the volume read-only while files are open, as ext4 does after an error of the device.
func abort(a *afflicted) { a.sh(`mount -o remount,abort "$1"`, a.volume) }

// cutOff makes every access to the volume fail, as if the device were gone (EXT4_IOC_SHUTDOWN, flag 2: without a
// flush).
func cutOff(a *afflicted) {
	d, err := os.Open(a.volume)
	if err != nil {
		a.t.Fatal(err)
	}
	defer d.Close()
	if err := unix.IoctlSetPointerInt(int(d.Fd()), 0x8004587d, 2); err != nil {
		a.t.Fatalf("cannot shut %s down: %v", a.volume, err)
	}
}

// repair ends the faults after which the volume must be mounted again. It does nothing, because remount does this
// after the program has ended.
func repair(*afflicted) {}

// remount checks the volume and mounts it again. It mounts a copy, because the file system with the fault is still in
// use in mount namespaces that others created meanwhile.
func (a *afflicted) remount() {
	a.t.Helper()
	a.sh(`umount "$1" || umount -l "$1"; cp --sparse=always "$2" "$2.new"; mv "$2.new" "$2"; e2fsck -fy "$2" >/dev/null || [ $? -le 2 ]; mount -o loop "$2" "$1"`,
		a.volume, a.image)
}

// stand stops the program. In the full form it waits two minutes before the commands run.
func stand(a *afflicted) {
	_ = a.victim().cmd.Process.Signal(syscall.SIGSTOP)
	if chaosFull() {
		time.Sleep(2 * time.Minute)
	}
}

// goOn continues a stopped program.
func goOn(a *afflicted) { _ = a.victim().cmd.Process.Signal(syscall.SIGCONT) }

// fewDescriptors returns a wrapper that allows 64 descriptors.
func fewDescriptors(*testing.T) []string { return []string{"prlimit", "--nofile=64:64"} }

// manyJobs publishes 60 jobs at once. All of them must run.
func manyJobs(a *afflicted) {
	for range 60 {
		a.asked++
		if a.job(1) {
			a.answered++
		}
	}
	if a.answered != 60 {
		a.c.breaks("%s: %d of 60 jobs were taken", a.f, a.answered)
	}
}

// littleMemory returns a wrapper that starts a program in a control group with 32 MB.
func littleMemory(t *testing.T) []string {
	t.Helper()
	root, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, limit = "/sys/fs/cgroup", "memory.max"
	}
	dir := fmt.Sprintf("%s/brine-chaos-%d-%s", root, os.Getpid(), filepath.Base(tempDir(t)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		await(t, "the control group is empty", func() bool { return os.Remove(dir) == nil })
	})
	if err := os.WriteFile(dir+"/"+limit, []byte("32M"), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"sh", "-c", fmt.Sprintf(`echo $$ >%s/cgroup.procs; exec "$@"`, dir), "sh"}
}

// largeOutput runs a command with 10 MB of output, which must arrive complete or be marked as cut, and 33 ordinary
// commands after it. For a master it is 1 MB, because a master holds a return several times while it stores it.
func largeOutput(a *afflicted) {
	size := 10_000_000
	if a.f.side == "master" {
		size = 1_000_000
	}
	stdout, stderr, code := a.salt(2*time.Minute, "salt", "--out=json", "--static", "-t", "60", a.id, "cmd.run_all", fmt.Sprintf("seq -w 1000001 %d", 1000000+size/8), "python_shell=True")
	a.asked++
	if n := len(stdout); code == 0 && (n > size || strings.Contains(stdout, `"truncated": true`)) {
		a.answered++
	} else {
		a.c.breaks("%s: %d bytes of output came as %d, exit code %d: %.300s\n%s\n%s", a.f, size, n, code, stdout, stderr, tail(a.victim().log))
	}
	for range 33 {
		a.asked++
		if a.job(1) {
			a.answered++
		}
	}
	if a.ended(a.victim()) {
		a.c.breaks("%s: the program ended:\n%s", a.f, tail(a.victim().log))
	}
}
