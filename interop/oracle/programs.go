package oracle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/modules"
)

// Program is one program that a function ran: what it was asked, what it said, and which files it left changed.
type Program struct {
	Args    []string `json:"args"`
	Stdin   string   `json:"stdin,omitempty"`
	Stdout  string   `json:"stdout,omitempty"`
	Stderr  string   `json:"stderr,omitempty"`
	Exit    int      `json:"exit,omitempty"`
	Missing bool     `json:"missing,omitempty"` // it is not installed
	Files   []File   `json:"files,omitempty"`
}

// File is a file that a program changed: below the scratch directory of the case, or, with an absolute path, in a directory
// of the host that has a layer.
type File struct {
	Path  string      `json:"path"`
	Mode  fs.FileMode `json:"mode,omitempty"`  // with the type
	Owner string      `json:"owner,omitempty"` // "uid:gid" in a directory of the host, unless it is root's
	Text  string      `json:"text,omitempty"`  // a link's target, too
	Gone  bool        `json:"gone,omitempty"`
}

// maxKept bounds what is kept of one program: a case with more is not replayed. Of files that are more together the largest
// are left out, since most of them are read by programs only; the replay on another machine shows whether that is so.
const maxKept = 16 << 10

// maxSaid bounds what is kept of conversations with servers.
const maxSaid = 32 << 10

// maxFiles bounds how many files are kept of one program.
const maxFiles = 500

// tempName is how Salt and we name temporary files, which is another name each time.
var tempName = regexp.MustCompile(`__salt\.tmp\.\w+|\btmp\d{6,}\b`)

// text is bytes as JSON can say them.
func text(b []byte) string {
	if utf8.Valid(b) && !bytes.HasPrefix(b, []byte("hex!")) {
		return string(b)
	}
	return "hex!" + hex.EncodeToString(b)
}

func untext(s string) []byte {
	if rest, ok := strings.CutPrefix(s, "hex!"); ok {
		b, _ := hex.DecodeString(rest)
		return b
	}
	return []byte(s)
}

// Recorder runs programs and keeps what they said. A shell is kept if its script calls programs that not every machine has.
type Recorder struct {
	Real modules.Runner
	// Dir is the scratch directory of the cases, Names puts names in place of directories and servers of this run.
	Dir   string
	Names *strings.Replacer
	// Layers are the directories of the host that have a layer, with the directories where the changed files are.
	Layers map[string]string
	// Servers are those that cases ask for.
	Servers *Servers

	mu       sync.Mutex
	programs []Program
	setup    []File
	large    bool
}

// Setup runs the setup of a case in a fresh scratch directory. What it leaves is kept if it calls programs that not every
// machine has.
func (r *Recorder) Setup(t testing.TB, script string) {
	t.Helper()
	defer r.Servers.Rewind()
	if !callsPrograms(script) {
		Fresh(t, r.Dir, script)
		return
	}
	Fresh(t, r.Dir, "")
	before := r.list()
	Shell(t, r.Dir, script)
	files := append([]File{}, r.changed(before)...) // not nil: they stand for the script
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setup, r.large = files, r.large || len(files) > maxFiles
}

// Take moves what was kept since the last call into the answer to a case with this check, and reports whether that is
// everything.
func (r *Recorder) Take(k *Kept, check string) (whole bool) {
	k.Unchecked = callsPrograms(check)
	var size int
	k.Conversations, size = packed(r.Servers.Conversations(), r.Names)
	r.mu.Lock()
	defer r.mu.Unlock()
	k.Programs, k.Setup, whole = r.programs, r.setup, !r.large && size <= maxSaid
	r.programs, r.setup, r.large = nil, nil, false
	return whole
}

// packed are conversations as they are kept, and how much text that is.
func packed(said []Conversation, names *strings.Replacer) (kept []Conversation, size int) {
	for _, c := range said {
		for i, p := range c.Parts {
			c.Parts[i] = testserver.Part{Client: names.Replace(text([]byte(p.Client))), Server: names.Replace(text([]byte(p.Server)))}
			size += len(p.Client) + len(p.Server)
		}
		kept = append(kept, c)
	}
	return kept, size
}

// Servers are those that cases ask for, and a Conversation is what was said on a connection to one.
type (
	Servers      = testserver.Servers
	Conversation = testserver.Conversation
)

// argv is a command as it is kept.
func argv(c modules.Command) []string {
	if c.Shell != "" {
		return []string{c.Shell, "-c", c.Script}
	}
	return c.Args
}

// called finds what a script calls.
var called = regexp.MustCompile(`(?:^|[;&|({\n!]|\$\(|` + "`" + `|\b(?:then|do|else|if|while|xargs|exec|sudo)\b)\s*(?:\w+=\S*\s+)*([\w./+-]+)`)

// callsPrograms reports whether a script calls programs that not every machine has: those beside the packages of which
// elsewhere.sh takes its programs.
func callsPrograms(script string) bool {
	for _, m := range called.FindAllStringSubmatch(script, -1) {
		path, err := exec.LookPath(m[1])
		own := strings.HasPrefix(path, os.TempDir()) || strings.Contains(filepath.ToSlash(path), "/oracle/"+programs+"/")
		if m[1] == freshName || err == nil && !own && !basic()[filepath.Base(path)] {
			return true
		}
	}
	return false
}

// basic are the programs that every Linux has.
var basic = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"sh": true, "awk": true}
	args := append([]string{"-L"}, basicPackages...)
	out, _ := exec.Command("dpkg", args...).Output() // recorded on Debian only
	for line := range strings.Lines(string(out)) {
		if path := strings.TrimSpace(line); strings.Contains(path, "/bin/") {
			names[filepath.Base(path)] = true
		}
	}
	return names
})

// basicPackages have these programs, in Debian.
var basicPackages = []string{"libc-bin", "bash", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip", "mawk", "sed", "tar"}

// Run implements modules.Runner.
func (r *Recorder) Run(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
	if c.Detach || c.Shell == "" && len(c.Args) == 0 || c.Shell != "" && !callsPrograms(c.Script) {
		return r.Real.Run(ctx, c)
	}
	in, err := readInput(c)
	if err != nil {
		return modules.CommandResult{}, err
	}
	if c.Stdin != nil {
		c.Stdin = bytes.NewReader(in)
	}
	var out, errOut bytes.Buffer
	if c.Stdout != nil {
		c.Stdout = io.MultiWriter(c.Stdout, &out)
	}
	if c.Stderr != nil {
		c.Stderr = io.MultiWriter(c.Stderr, &errOut)
	}
	before := r.list()
	res, err := r.Real.Run(ctx, c)
	if c.Stdout == nil {
		out.Write(res.Stdout)
	}
	if c.Stderr == nil {
		errOut.Write(res.Stderr)
	}
	args := argv(c)
	p := Program{Args: make([]string, len(args)), Stdin: r.Names.Replace(text(in)), Exit: res.ExitCode,
		Stdout: r.Names.Replace(text(out.Bytes())), Stderr: r.Names.Replace(text(errOut.Bytes()))}
	for i, a := range args {
		p.Args[i] = tempName.ReplaceAllString(r.Names.Replace(a), "__salt.tmp.NAME")
	}
	var missing *modules.MissingCommandError
	p.Missing = errors.As(err, &missing)
	p.Files = r.changed(before)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs = append(r.programs, p)
	r.large = r.large || out.Len()+errOut.Len()+len(in) > maxKept || len(p.Files) > maxFiles || err != nil && !p.Missing || res.TimedOut
	return res, err
}

// readInput reads what a command gives its program; nothing is empty input.
func readInput(c modules.Command) ([]byte, error) {
	if c.Stdin == nil {
		return nil, nil
	}
	return io.ReadAll(c.Stdin)
}

// Replayer says what programs said when stock was asked, and leaves the files that they left.
type Replayer struct {
	Real  modules.Runner // for shells that are not kept
	Dir   string
	Names *strings.Replacer // puts directories and servers of this run in place of names
	// Servers are those that cases ask for.
	Servers *Servers

	mu       sync.Mutex
	programs []Program
}

// Setup does what the setup of a case does, in a fresh scratch directory: from its script, or from what is kept of it.
func (r *Replayer) Setup(t testing.TB, script string, k Kept) {
	t.Helper()
	if k.Setup == nil {
		Fresh(t, r.Dir, script)
		return
	}
	Fresh(t, r.Dir, "")
	for _, f := range k.Setup {
		if err := f.leave(r.Dir, r.Names); err != nil {
			t.Fatal(err)
		}
	}
}

// Give sets what the programs and the servers of the next case say.
func (r *Replayer) Give(t testing.TB, k Kept) {
	said := make([]Conversation, 0, len(k.Conversations))
	for _, c := range k.Conversations {
		c.Parts = slices.Clone(c.Parts)
		for i, p := range c.Parts {
			c.Parts[i] = testserver.Part{Client: string(untext(r.Names.Replace(p.Client))), Server: string(untext(r.Names.Replace(p.Server)))}
		}
		said = append(said, c)
	}
	r.Servers.Give(t, said)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs = slices.Clone(k.Programs)
}

// Run implements modules.Runner.
func (r *Replayer) Run(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
	if c.Detach || c.Shell == "" && len(c.Args) == 0 {
		return r.Real.Run(ctx, c)
	}
	in, err := readInput(c)
	if err != nil {
		return modules.CommandResult{}, err
	}
	args := argv(c)
	p, ok := r.take(args, in)
	switch {
	case !ok && c.Shell != "":
		if c.Stdin != nil {
			c.Stdin = bytes.NewReader(in)
		}
		return r.Real.Run(ctx, c)
	case !ok:
		return modules.CommandResult{}, fmt.Errorf("no answer is kept of program %q with standard input %q", args, in)
	case p.Missing:
		return modules.CommandResult{}, &modules.MissingCommandError{Command: args[0]}
	}
	for _, f := range p.Files {
		if err := f.leave(r.Dir, r.Names); err != nil {
			return modules.CommandResult{}, err
		}
	}
	res := modules.CommandResult{ExitCode: p.Exit, PID: os.Getpid()}
	say := func(kept string, to io.Writer, result *[]byte, isErr bool) {
		b := untext(r.Names.Replace(kept))
		switch {
		case to != nil:
			_, _ = to.Write(b)
		default:
			*result = b
			if c.Seen != nil && len(b) > 0 {
				c.Seen(isErr, b)
			}
		}
	}
	say(p.Stdout, c.Stdout, &res.Stdout, false)
	say(p.Stderr, c.Stderr, &res.Stderr, true)
	return res, nil
}

// take finds the first program that was asked the same and takes it out, since it may say something else next time.
func (r *Replayer) take(args []string, in []byte) (Program, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.programs, func(p Program) bool {
		same := slices.EqualFunc(p.Args[1:], args[1:], func(kept, now string) bool {
			return tempName.ReplaceAllString(r.Names.Replace(kept), "__salt.tmp.NAME") == tempName.ReplaceAllString(now, "__salt.tmp.NAME")
		}) && sameProgram(r.Names.Replace(p.Args[0]), args[0])
		return same && bytes.Equal(untext(r.Names.Replace(p.Stdin)), in)
	})
	if i < 0 {
		return Program{}, false
	}
	p := r.programs[i]
	r.programs = slices.Delete(r.programs, i, i+1)
	return p, true
}

// sameProgram reports whether two names are one program's. One that was looked for may be in another directory here.
func sameProgram(kept, now string) bool {
	return kept == now || filepath.IsAbs(kept) && filepath.IsAbs(now) && filepath.Base(kept) == filepath.Base(now)
}

// leave makes the file as the program left it.
func (f File) leave(dir string, names *strings.Replacer) error {
	path := f.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if f.Gone {
		return os.RemoveAll(path)
	}
	if f.Mode.IsDir() {
		return errors.Join(os.MkdirAll(path, 0o755), f.own(path), os.Chmod(path, f.Mode.Perm()))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b := untext(names.Replace(f.Text))
	if f.Mode&fs.ModeSymlink != 0 {
		return errors.Join(os.Symlink(string(b), path), f.own(path))
	}
	return errors.Join(os.WriteFile(path, b, 0o600), f.own(path), os.Chmod(path, f.Mode.Perm()))
}

// own gives the file to its owner.
func (f File) own(path string) error {
	uid, gid, ok := strings.Cut(f.Owner, ":")
	if !ok {
		return nil
	}
	u, err1 := strconv.Atoi(uid)
	g, err2 := strconv.Atoi(gid)
	return errors.Join(err1, err2, os.Lchown(path, u, g))
}

// list describes the files of the case: those in its scratch directory, and those in the layers of the host, by their paths.
func (r *Recorder) list() map[string]fs.FileInfo {
	found := map[string]fs.FileInfo{}
	listFiles(found, r.Dir, r.Dir)
	for dir, upper := range r.Layers {
		listFiles(found, upper, dir)
	}
	return found
}

// listFiles describes the files below a directory, by the paths that they have if it is called otherwise.
func listFiles(found map[string]fs.FileInfo, dir, called string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && path != dir {
			found[called+strings.TrimPrefix(path, dir)] = info
		}
		return nil
	})
}

// changed describes the files that changed since they were listed. Sockets and devices are not among them.
func (r *Recorder) changed(before map[string]fs.FileInfo) (files []File) {
	now := r.list()
	for path, info := range now {
		old := before[path]
		same := old != nil && old.Mode() == info.Mode() && os.SameFile(old, info) && ownerOf(old) == ownerOf(info) &&
			(info.IsDir() || old.Size() == info.Size() && old.ModTime().Equal(info.ModTime()))
		if same {
			continue
		}
		f := File{Path: r.path(path), Mode: info.Mode()}
		if f.Path == path {
			f.Owner = ownerOf(info)
		}
		switch {
		case isWhiteout(info):
			f = File{Path: f.Path, Gone: true}
		case info.Mode()&fs.ModeSymlink != 0:
			f.Text, _ = os.Readlink(path)
		case info.Mode().IsRegular() && info.Size() <= maxKept:
			b, _ := os.ReadFile(path)
			f.Text = text(b)
		case !info.IsDir():
			continue
		}
		f.Text = r.Names.Replace(f.Text)
		files = append(files, f)
	}
	for path := range before {
		if now[path] == nil {
			files = append(files, File{Path: r.path(path), Gone: true})
		}
	}
	files = withoutLargest(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// withoutLargest leaves out the largest files, until the others have no more text than is kept.
func withoutLargest(files []File) []File {
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(cmp.Compare(len(a.Text), len(b.Text)), strings.Compare(a.Path, b.Path))
	})
	size := 0
	for i, f := range files {
		if size += len(f.Text); size > maxKept {
			return files[:i]
		}
	}
	return files
}

// path is the path of a file as it is kept: relative in the scratch directory.
func (r *Recorder) path(path string) string {
	if rel, ok := strings.CutPrefix(path, r.Dir+"/"); ok {
		return rel
	}
	return path
}
