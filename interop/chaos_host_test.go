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

// TestChaosHost is what the host of a master or a minion can do to it: a file system without room, without inodes, without writing or without
// the device below it; few descriptors, little memory; a process that stands still. Meanwhile each question gets an answer or the
// cause in words; when it is over the program serves again; no job has run twice, and none that ran has lost its return.
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

// hostFault is one row: a fault of the host of one side.
type hostFault struct {
	name  string
	side  string                    // "master" or "minion"
	where string                    // what of its root directory the fault concerns, "all" for everything
	begin func(a *afflicted)        // brings it about
	end   func(a *afflicted)        // and removes it
	wrap  func(*testing.T) []string // the program is started by this command from the start on, in place of begin and end
	load  func(a *afflicted)        // is done while it lasts, in place of what is asked otherwise
	kill  bool                      // the program is killed and started again while it lasts
	dies  bool                      // the program has to be started again afterwards, since the files it has open are gone
	mute  bool                      // nothing on that side can answer while it lasts
}

// hostFaults are the rows of the campaign, or of its short form.
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

// causes are the words by which a fault of the host is told.
var causes = regexp.MustCompile(`(?i)no space left|disk[^\n]*full|read-only|input/output error|structure needs cleaning|too many open files|` +
	`cannot allocate|did not return|no return received|not respond|timed out`)

// afflicted is a master and a minion, one of which has a fault.
type afflicted struct {
	t  *testing.T
	c  *campaign
	f  hostFault
	id string // of the minion

	site      *site
	minionEtc string
	ledger    string // every job writes a line into it
	volume    string // where the file system with the fault is mounted
	image     string
	master    *process
	minion    *process
	jobs      []string // ids of the jobs that were taken
	names     []string // what they write into the ledger
	asked     int
	answered  int
	toldWhy   int
}

// newAfflicted starts both, and waits until the minion answers.
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

// root is the root directory of the side that has the fault.
func (a *afflicted) root() string {
	if a.f.side == "master" {
		return a.site.dir
	}
	return a.site.dir + "/" + a.id
}

// mount puts a small file system of its own under the part of the root directory that the fault concerns.
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

// program starts one of the two, wrapped if the fault wants it.
func (a *afflicted) program(side, name, etc string) *process {
	a.t.Helper()
	command := []string{ours(name), "-c", etc}
	if a.f.side == side && a.f.wrap != nil {
		command = append(a.f.wrap(a.t), command...)
	}
	return start(a.t, command[0], command[1:]...)
}

// victim is the program with the fault.
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

// salt runs a command of the master's host.
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

// String names the row.
func (f hostFault) String() string {
	killed := ""
	if f.kill {
		killed = ", killed meanwhile"
	}
	return fmt.Sprintf("%s of the %s (%s%s)", f.name, f.side, f.where, killed)
}

// ask pings the minion. Without an answer the command must say why, in words and with its exit code.
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

// toldBy reports whether a command told why there was no answer. A master that refused to start told its own reason; a command can only tell
// that it does not run.
func (a *afflicted) toldBy(text string) bool {
	return causes.MatchString(text) && !strings.Contains(text, "No minions matched") ||
		a.ended(a.master) && strings.Contains(text, "The salt master could not be contacted")
}

// job sends a command that takes so many seconds and writes a line at its end, and does not wait for it. It reports whether it was taken.
func (a *afflicted) job(seconds int) bool {
	a.t.Helper()
	name := fmt.Sprintf("%s-%d", a.id, len(a.names)+a.asked)
	stdout, stderr, code := a.salt(time.Minute, "salt", "--async", "--out=json", a.id, "cmd.run",
		fmt.Sprintf("sleep %d; echo %s >>%s", seconds, name, a.ledger), "python_shell=True")
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

// run is one row of the table.
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

// running reports whether the job before the fault has begun at the minion.
func (a *afflicted) running() bool {
	stdout, _, _ := a.salt(time.Minute, "salt", "--out=json", "--static", a.id, "saltutil.is_running", "cmd.run")
	return strings.Contains(stdout, a.jobs[0])
}

// meanwhile asks and sends jobs while the fault lasts, and kills the program if the row wants it.
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

// upOrWhy waits until the program that was started on the fault serves, if only by telling the cause, or has ended with it in its last words.
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

// recovers waits until the minion answers again, and tells how long that took. What has ended is started, as a service manager does.
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

// settle waits until the jobs that were taken have run, and until a minion that is about to be stopped has returned them: what it cannot write
// it has in memory.
func (a *afflicted) settle() {
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) { // files and other processes announce nothing
		open := slices.DeleteFunc(slices.Clone(a.names), func(name string) bool { return strings.Contains(readFile(a.t, a.ledger), name+"\n") })
		if len(open) == 0 && (a.f.side == "master" || !slices.ContainsFunc(a.jobs, func(jid string) bool { return a.returned(jid) != "" })) {
			return
		}
	}
}

// returned looks a return up: "" if it is there, else what the job cache knows.
func (a *afflicted) returned(jid string) (known string) {
	a.t.Helper()
	stdout, stderr, _ := a.salt(time.Minute, "salt-run", "--out=json", "jobs.list_job", jid)
	var job struct{ Result map[string]any }
	if json.Unmarshal([]byte(stdout), &job) == nil && job.Result[a.id] != nil {
		return ""
	}
	return stdout + stderr
}

// outcomes waits for the returns of all jobs, and counts what ran. Each job that was taken ran once; a job whose minion or master was killed meanwhile
// ran at most once, and if it did not run its return says so.
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

// keys are the checksums of both sides' keys, without those that wait or come from nowhere, and without unfinished files.
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

// fill takes all room of the volume.
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

// useInodes takes all inodes of the volume.
func useInodes(a *afflicted) {
	for n := 0; ; n++ {
		f, err := os.Create(fmt.Sprintf("%s/filler%d", a.volume, n))
		if err != nil {
			return
		}
		f.Close()
	}
}

// empty gives back what fill and useInodes took.
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

// abort makes the volume read-only under open files, as ext4 does by itself after an error of the device.
func abort(a *afflicted) { a.sh(`mount -o remount,abort "$1"`, a.volume) }

// cutOff makes every access to the volume fail, as when the device is gone (EXT4_IOC_SHUTDOWN, flag 2: without a flush).
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

// repair is for the faults after which the volume has to be mounted again; remount does it, after the program has ended.
func repair(*afflicted) {}

// remount checks and mounts the volume again: a copy of it, since the file system with the fault stays alive in mount namespaces that others
// made meanwhile.
func (a *afflicted) remount() {
	a.t.Helper()
	a.sh(`umount "$1" || umount -l "$1"; cp --sparse=always "$2" "$2.new"; mv "$2.new" "$2"; e2fsck -fy "$2" >/dev/null || [ $? -le 2 ]; mount -o loop "$2" "$1"`,
		a.volume, a.image)
}

// stand stops the program, which stands for two minutes before it is asked.
func stand(a *afflicted) {
	_ = a.victim().cmd.Process.Signal(syscall.SIGSTOP)
	if chaosFull() {
		time.Sleep(2 * time.Minute)
	}
}

// goOn lets it go on.
func goOn(a *afflicted) { _ = a.victim().cmd.Process.Signal(syscall.SIGCONT) }

// fewDescriptors starts a program with 64 of them.
func fewDescriptors(*testing.T) []string { return []string{"prlimit", "--nofile=64:64"} }

// manyJobs are 60 jobs at once: all of them run.
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

// littleMemory starts a program in a control group with 32 MB.
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

// largeOutput is a command with 10 MB of output, which comes whole or is said to be cut, and 33 ordinary ones beside it. A master holds a return
// several times while it takes it, and gets 1 MB.
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
