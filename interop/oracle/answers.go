package oracle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/internal/testkit/privatehost"
)

var (
	update  = flag.Bool("update", false, "keep stock's answers beside the cases, instead of comparing with those that are kept")
	missing = flag.Bool("missing", false, "with -update, ask stock only for answers that are not kept")
	later   = flag.Duration("later", 0, "replay the answers as if it were so much later, so that those which tell the time fail")
	suspect = flag.String("suspect", "", "note in the kept answers that cases which fail now need this of a machine: host or root")
)

// What a case may need to be replayed, beside what is kept.
const (
	// NeedsHost is a machine like the one where the answer was given: its programs, devices or servers.
	NeedsHost = "host"
	// NeedsRoot is the superuser.
	NeedsRoot = "root"
)

// Kept is what stock answered to a case, with what the programs that ours ran said then: enough to compare ours
// again without stock and without these programs.
type Kept struct {
	// Key is made of everything that the case says, so that the answer to another case is never taken for this one's.
	Key string `json:"key"`
	// Case says what is called, for who reads the file.
	Case string `json:"case"`
	// Needs is NeedsHost, NeedsRoot or "". No answer is kept with NeedsHost, since another machine, or another day, gives
	// another one.
	Needs string `json:"needs,omitempty"`
	// Stock is the answer, see [Pack].
	Stock any `json:"stock,omitempty"`
	// Setup is what the setup of the case left, if that takes programs that not every machine has; nil if it takes none.
	Setup []File `json:"setup,omitzero"`
	// Programs are what ours ran, in this order.
	Programs []Program `json:"programs,omitempty"`
	// Conversations are what ours said to servers, and they to ours.
	Conversations []Conversation `json:"conversations,omitempty"`
	// Unchecked says that the check of the case takes programs that not every machine has. A replay does without it: what these
	// programs find is what the programs above did, which are asked the same.
	Unchecked bool `json:"unchecked,omitempty"`
}

// marked says of a case that its answer is not kept, since another machine gives another one.
func (k Kept) marked() Kept { return Kept{Key: k.Key, Case: k.Case, Needs: NeedsHost} }

// Book is the kept answers of all files of cases in one directory. A line of its files is one answer.
type Book struct {
	dir     string                     // where the answers are read
	out     string                     // where they are written
	mounted []string                   // the mount points of this machine, which are not published
	answers map[string]map[string]Kept // by file and key
	order   map[string][]string        // keys of the cases that there are, by file
}

// OpenBook reads the answers in a directory; there may be none yet.
func OpenBook(t testing.TB, dir string) *Book {
	t.Helper()
	b := &Book{mounted: mountPoints(), dir: dir, out: cmp.Or(os.Getenv(written), dir), answers: map[string]map[string]Kept{}, order: map[string][]string{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		byKey := map[string]Kept{}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if len(line) == 0 {
				continue
			}
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			var k Kept
			if err := d.Decode(&k); err != nil {
				t.Fatalf("%s:%d: %v", f, i+1, err)
			}
			byKey[k.Key] = k
		}
		b.answers[strings.TrimSuffix(filepath.Base(f), ".jsonl")] = byKey
	}
	return b
}

// written names the directory where the copy of a test that runs in a host of its own writes answers: there the tree is read only.
const written = "BRINE_ANSWERS"

// InHost runs this test once more in a host of its own (internal/testkit/privatehost), where it opens the book in this directory,
// and takes the answers back that it writes there. It needs Linux and root.
func InHost(t *testing.T, dir string) {
	t.Helper()
	args := append(Flags(), "-test.run=^"+t.Name()+"$")
	t.Run("host", func(t *testing.T) {
		if runtime.GOOS != "linux" || testing.Short() {
			t.Skip("cases that change the host run on Linux, and not with -short")
		}
		prereq.Root(t)
		if !*update && *suspect == "" {
			privatehost.Enter(t, args...)
			return
		}
		out, err := os.MkdirTemp("/tmp", "answers")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(out) })
		t.Setenv(written, out)
		privatehost.Enter(t, args...)
		files, err := os.ReadDir(out)
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
		for _, f := range files {
			text, err1 := os.ReadFile(filepath.Join(out, f.Name()))
			err = errors.Join(err, err1, os.WriteFile(filepath.Join(dir, f.Name()), text, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Clock is the time of our side.
func Clock() time.Time { return time.Now().Add(*later) }

// Key is the key of a case, of which text says everything.
func Key(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// Know tells the book which cases there are; what it has beyond these is dropped when it is saved.
func (b *Book) Know(file, key string) { b.order[file] = append(b.order[file], key) }

// Find gives the answer to a case.
func (b *Book) Find(file, key string) (Kept, bool) {
	k, ok := b.answers[file][key]
	return k, ok
}

// Asks reports whether this run asks stock for the answer to a case.
func (b *Book) Asks(file, key string) bool {
	k, ok := b.Find(file, key)
	return !*missing || !ok || k.Needs == NeedsHost
}

// Put keeps an answer, and what is known of its needs.
func (b *Book) Put(file string, k Kept) {
	if b.answers[file] == nil {
		b.answers[file] = map[string]Kept{}
	}
	b.answers[file][k.Key] = k
}

// Suspect notes what a case that failed needs, if this run looks for that.
func (b *Book) Suspect(file string, k Kept) {
	if *suspect == "" {
		return
	}
	if k.Needs = *suspect; k.Needs == NeedsHost {
		k = k.marked()
	}
	b.Put(file, k)
}

// Save writes the answers if this run changes them.
func (b *Book) Save(t testing.TB) {
	t.Helper()
	if !*update && *suspect == "" {
		return
	}
	err := os.MkdirAll(b.out, 0o755)
	for file, keys := range b.order {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		for _, key := range keys {
			if k, ok := b.answers[file][key]; ok {
				err = errors.Join(err, e.Encode(k))
			}
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(b.out, file+".jsonl"), text.Bytes(), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Pack makes of a value what JSON can say, with names in place of directories of this run; [Unpack] gives it back.
// Bytes are {"bytes!": hex}, dictionaries with other keys than text {"map!": pairs}, what is no finite number
// {"float!": text}; a number with a point or an exponent is a float.
func Pack(v any, names *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return names.Replace(v)
	case []byte:
		return map[string]any{"bytes!": hex.EncodeToString([]byte(names.Replace(string(v))))}
	case int:
		return json.Number(strconv.Itoa(v))
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return map[string]any{"float!": text}
		}
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.Number(text)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = Pack(v[i], names)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k := range v {
			m[names.Replace(k)] = Pack(v[k], names)
		}
		return m
	case map[any]any:
		pairs := make([]any, 0, len(v))
		for k := range v {
			pairs = append(pairs, []any{Pack(k, names), Pack(v[k], names)})
		}
		slices.SortFunc(pairs, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return map[string]any{"map!": pairs}
	}
	return v
}

// Unpack undoes Pack, with other directories for the names.
func Unpack(v any, names *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return names.Replace(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = Unpack(v[i], names)
		}
		return list
	case map[string]any:
		if text, ok := v["bytes!"].(string); ok {
			b, _ := hex.DecodeString(text)
			return []byte(names.Replace(string(b)))
		}
		if text, ok := v["float!"].(string); ok {
			f, _ := strconv.ParseFloat(text, 64)
			return f
		}
		if pairs, ok := v["map!"].([]any); ok {
			m := make(map[any]any, len(pairs))
			for _, p := range pairs {
				pair := p.([]any)
				m[Unpack(pair[0], names)] = Unpack(pair[1], names)
			}
			return m
		}
		m := make(map[string]any, len(v))
		for k := range v {
			m[names.Replace(k)] = Unpack(v[k], names)
		}
		return m
	}
	return v
}

// stableGrains are those of a minion's grains that are kept: what the machine of the tests is like, not which it is.
var stableGrains = []string{
	"cpuarch", "groupname", "gid", "id", "init", "kernel", "locale_info", "lsb_distrib_codename", "lsb_distrib_id", "lsb_distrib_release",
	"os", "os_family", "osarch", "oscodename", "osfinger", "osfullname", "osmajorrelease", "osrelease", "osrelease_info", "ps",
	"pythonversion", "saltversion", "saltversioninfo", "shell", "systemd", "uid", "username",
}

// Minion is what our side knows of the minion that gave the answers.
type Minion struct{ Opts, Grains, Pillar map[string]any }

// KeepMinion writes, if this run keeps answers, what a minion without stock needs to know: its options, the grains that
// do not tell which machine it is and those of its own files, and its pillar.
func (p *Process) KeepMinion(t testing.TB, file string) {
	t.Helper()
	if !*update {
		return
	}
	own := map[string]any{}
	for _, name := range []string{"minion", "grains"} {
		text, err := os.ReadFile(filepath.Join(p.Scratch, "conf", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var v any
		if err == nil {
			v, err = yaml.Parse(text, name)
		}
		if err != nil {
			t.Fatal(err)
		}
		m, _ := v.(map[string]any)
		if name == "minion" {
			m, _ = m["grains"].(map[string]any)
		}
		maps.Copy(own, m)
	}
	grains := map[string]any{}
	for _, k := range stableGrains {
		if v, ok := p.Grains[k]; ok {
			grains[k] = v
		}
	}
	maps.Copy(grains, own)
	opts := make(map[string]any, len(p.Opts))
	for k, v := range p.Opts {
		if k != "grains" && k != "pillar" {
			opts[k] = v
		}
	}
	names := p.Names()
	text, err := json.MarshalIndent(map[string]any{"opts": Pack(opts, names), "grains": Pack(grains, names), "pillar": Pack(p.Pillar, names)}, "", " ")
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, append(text, '\n'), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// LoadMinion reads what KeepMinion wrote, for a minion with another scratch directory.
func LoadMinion(t testing.TB, file, scratch string) Minion {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no answers are kept: %v", err)
	}
	var m map[string]any
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&m)
	}
	if err != nil {
		t.Fatal(err)
	}
	m = Unpack(m, ReplayNames(t, scratch)).(map[string]any)
	part := func(name string) map[string]any { v, _ := m[name].(map[string]any); return v }
	return Minion{Opts: part("opts"), Grains: part("grains"), Pillar: part("pillar")}
}

// Keep stores an answer if this run updates the book. Otherwise the test fails if the stored answer is not what stock says
// now. On another machine, or with other files that the case made, a program may say something else when it is asked the
// same, and then stock's answer is another one as well, which is logged only.
func (b *Book) Keep(t testing.TB, file string, k Kept) {
	t.Helper()
	old, known := b.Find(file, k.Key)
	switch {
	case *update && t.Failed(): // the two sides must agree first
	case *update:
		b.hideMounts(k.Programs)
		why := ""
		switch {
		case k.Stock == nil:
			why = "it is too much"
		case b.tellsMachine(k):
			why = "it tells which machine this is"
		case tellsDay(k, time.Now()):
			why = "it tells the day"
		}
		if why != "" {
			t.Logf("the answer is not kept: %s", why)
			k = k.marked()
		}
		b.Put(file, k)
	case !known:
		t.Errorf("no answer is kept: run `make answers`")
	case old.Needs == NeedsHost || k.Stock == nil || sameJSON(old.Stock, k.Stock): // nil is too much to be kept now
	case *suspect != "":
		b.Suspect(file, old)
	case saysOtherwise(old.Programs, k.Programs):
		t.Logf("here stock answers\n%v\nand the answer that is kept was\n%v", k.Stock, old.Stock)
	default:
		t.Errorf("stock's answer is no longer the one that is kept: run `make answers`. Now it is\n%v\nand was\n%v", k.Stock, old.Stock)
	}
}

// saysOtherwise reports whether a program that was asked the same says something else now.
func saysOtherwise(old, now []Program) bool {
	left := slices.Clone(now)
	for _, p := range old {
		i := slices.IndexFunc(left, func(q Program) bool { return p.Stdin == q.Stdin && slices.Equal(p.Args, q.Args) })
		if i < 0 {
			continue
		}
		if q := left[i]; p.Stdout != q.Stdout || p.Stderr != q.Stderr || p.Exit != q.Exit || p.Missing != q.Missing {
			return true
		}
		left = slices.Delete(left, i, i+1)
	}
	return false
}

// mountPoints are the mount points that this process sees, on Linux.
func mountPoints() (points []string) {
	text, _ := os.ReadFile("/proc/self/mountinfo") // missing elsewhere
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, fields[4])
		}
	}
	return points
}

// hideMounts takes the mounts of this machine out of what mount says.
func (b *Book) hideMounts(programs []Program) {
	for i, p := range programs {
		if filepath.Base(p.Args[0]) != "mount" {
			continue
		}
		var left strings.Builder
		for line := range strings.Lines(p.Stdout) {
			_, rest, _ := strings.Cut(line, " on ")
			point, _, ok := strings.Cut(rest, " type ")
			if !ok || !slices.Contains(b.mounted, point) {
				left.WriteString(line)
			}
		}
		programs[i].Stdout = left.String()
	}
}

// runDir is a directory of a run of tests.
var runDir = regexp.MustCompile(`/Test\w+\d{4,}/`)

// gitUser is the address with which this user signs commits, or "".
var gitUser = sync.OnceValue(func() string {
	out, _ := exec.Command("git", "config", "--global", "user.email").Output() // there may be none
	return strings.TrimSpace(string(out))
})

// tellsMachine reports whether an answer contains variables of this process's environment, the name of this machine, its
// kernel, its own mounts, the keys of its package sources, the address of its user, the directory of the tests or that of their run, which must not be published.
func (b *Book) tellsMachine(k Kept) bool {
	text, err := json.Marshal(k)
	if err != nil {
		return true
	}
	own := func(point string) bool {
		switch first, _, _ := strings.Cut(strings.TrimPrefix(point, "/"), "/"); first {
		case "", "proc", "sys", "dev", "run", "tmp":
			return false
		}
		return strings.Count(point, "/") > 1 && bytes.Contains(text, []byte(point))
	}
	if slices.ContainsFunc(b.mounted, own) || runDir.Match(text) || gitUser() != "" && bytes.Contains(text, []byte(gitUser())) {
		return true
	}
	// What apt-key lists are the keys of this machine's package sources. Hosts of the cases have none of these.
	if filepath.Base(b.dir) != "host" && slices.ContainsFunc(k.Programs, func(p Program) bool { return filepath.Base(p.Args[0]) == "apt-key" }) {
		return true
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil && bytes.Contains(text, bytes.TrimSpace(release)) {
		return true
	}
	name, err1 := os.Hostname()
	dir, err2 := os.Getwd()
	if err1 != nil || err2 != nil || len(name) > 4 && name != "localhost" && bytes.Contains(text, []byte(name)) ||
		bytes.Contains(text, []byte(filepath.Dir(dir))) {
		return true
	}
	return slices.ContainsFunc(os.Environ(), func(setting string) bool {
		name, value, _ := strings.Cut(setting, "=")
		return len(value) > 8 && strings.Contains(string(text), name+"="+value)
	})
}

// tellsDay reports whether stock's answer contains the day on which it was given, so that ours would differ on the next one. Files
// of users have it as a number.
func tellsDay(k Kept, now time.Time) bool {
	text, err := json.Marshal(k.Stock)
	if err != nil {
		return true
	}
	has := func(layout string) bool { return strings.Contains(string(text), now.Format(layout)) }
	number := regexp.MustCompile(`\b` + strconv.FormatInt(now.Unix()/86400, 10) + `\b`)
	return number.Match(text) || has("2006-01-02") || has("Monday") && has("January")
}

// volatile is what Python's texts have that is another in each run: addresses of objects and numbers of processes.
var volatile = regexp.MustCompile(`\b0x[0-9a-f]{8,}\b|'pid': [0-9]+`)

func sameJSON(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	plain := func(b []byte) []byte {
		return volatile.ReplaceAll(tempName.ReplaceAll(b, []byte("__salt.tmp.NAME")), nil)
	}
	return err1 == nil && err2 == nil && bytes.Equal(plain(x), plain(y))
}

// Programs gives a PATH where these programs are found before others, so that they are not missed; they are never run.
// Behind all others come programs that modules look for and seldom run.
func Programs(t testing.TB, programs []Program) string {
	t.Helper()
	const basic = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	found := standIns(t, foundPrograms)
	if len(programs) == 0 {
		return ownPrograms(t) + ":" + basic + ":" + found
	}
	dir := t.TempDir()
	for _, p := range programs {
		if p.Missing || filepath.IsAbs(p.Args[0]) && isInstalled(filepath.Base(p.Args[0]), basic) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(p.Args[0])), []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return ownPrograms(t) + ":" + dir + ":" + basic + ":" + found
}

// isInstalled reports whether one of the directories of a PATH has a program.
func isInstalled(name, path string) bool {
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// Installed are paths of the programs that ran when these answers were given: what looks for one of them finds it.
func (b *Book) Installed() []string {
	paths := map[string]bool{}
	for _, answers := range b.answers {
		for _, k := range answers {
			for _, p := range k.Programs {
				path := p.Args[0]
				if !strings.Contains(path, "/") {
					path = "/usr/bin/" + path
				}
				if !p.Missing && strings.Contains(path, "bin/") && !strings.Contains(path, "@") && filepath.IsAbs(path) {
					paths[path] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// Install makes these programs in a host of the test's own, where they are missing; they are never run.
func Install(t testing.TB, paths []string, but []Program) {
	t.Helper()
	for _, path := range paths {
		name := filepath.Base(path)
		if slices.ContainsFunc(but, func(p Program) bool { return p.Missing && filepath.Base(p.Args[0]) == name }) {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/false\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
}

// ownPrograms is the directory of the programs that stand in for others.
func ownPrograms(t testing.TB) string {
	t.Helper()
	return standIns(t, programs)
}

// standIns is a directory of programs in this package.
func standIns(t testing.TB, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(here(), name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Names puts names in place of the directories of this process and of this machine, and in place of further texts, each of
// which is followed by its name.
func (p *Process) Names(more ...string) *strings.Replacer {
	return strings.NewReplacer(append([]string{p.Scratch, "@SCRATCH@", p.programs, "@PROGRAMS@", p.venv, "@VENV@"}, more...)...)
}

// ReplayNames puts the directories of a replay in place of names, and further texts, each of which follows its name.
func ReplayNames(t testing.TB, scratch string, more ...string) *strings.Replacer {
	t.Helper()
	return strings.NewReplacer(append([]string{"@SCRATCH@", scratch, "@PROGRAMS@", ownPrograms(t)}, more...)...)
}

// Tally counts cases of a replay.
type Tally struct{ replayed, host, root int }

// Count reports whether a case can be replayed here. That no answer is kept of it is an error.
func (n *Tally) Count(t testing.TB, name string, k Kept, known bool) bool {
	t.Helper()
	switch {
	case !known:
		t.Errorf("%s: no answer is kept: run `make answers`", name)
		return false
	case k.Needs == NeedsHost:
		n.host++
		return false
	case k.Needs == NeedsRoot && os.Geteuid() != 0:
		n.root++
		return false
	}
	n.replayed++
	return true
}

// Report logs how many cases were replayed and what the others need. It fails the test if none was.
func (n *Tally) Report(t testing.TB) {
	t.Logf("%d cases replayed, %d need the host of the answers (make interop), %d need root", n.replayed, n.host, n.root)
	if n.replayed == 0 && All() {
		t.Error("no case was replayed")
	}
}
