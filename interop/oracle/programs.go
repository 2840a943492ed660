package oracle

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

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

// File is a file that a program changed below the scratch directory of the case.
type File struct {
	Path string      `json:"path"`
	Mode fs.FileMode `json:"mode,omitempty"` // with the type
	Text string      `json:"text,omitempty"` // a link's target, too
	Gone bool        `json:"gone,omitempty"`
}

// maxKept bounds what is kept of one program: a case with more is not replayed.
const maxKept = 16 << 10

// tempName is how Salt names temporary files, which is another name each time.
var tempName = regexp.MustCompile(`__salt\.tmp\.\w+`)

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

// Recorder runs programs and keeps what they said. Shells run as they are and are not kept: any machine has one.
type Recorder struct {
	Real modules.Runner
	// Dir is the scratch directory of the cases, Names puts names in place of directories of this run.
	Dir   string
	Names *strings.Replacer

	mu       sync.Mutex
	programs []Program
	large    bool
}

// Take gives what was kept since the last call, and whether that is everything.
func (r *Recorder) Take() (programs []Program, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	programs, whole = r.programs, !r.large
	r.programs, r.large = nil, false
	return programs, whole
}

// Run implements modules.Runner.
func (r *Recorder) Run(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
	if c.Shell != "" || c.Detach || len(c.Args) == 0 {
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
	before := listFiles(r.Dir)
	res, err := r.Real.Run(ctx, c)
	if c.Stdout == nil {
		out.Write(res.Stdout)
	}
	if c.Stderr == nil {
		errOut.Write(res.Stderr)
	}
	p := Program{Args: make([]string, len(c.Args)), Stdin: r.Names.Replace(text(in)), Exit: res.ExitCode,
		Stdout: r.Names.Replace(text(out.Bytes())), Stderr: r.Names.Replace(text(errOut.Bytes()))}
	for i, a := range c.Args {
		p.Args[i] = tempName.ReplaceAllString(r.Names.Replace(a), "__salt.tmp.NAME")
	}
	var missing *modules.MissingCommandError
	p.Missing = errors.As(err, &missing)
	var size int
	p.Files, size = changedFiles(r.Dir, before, r.Names)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs = append(r.programs, p)
	r.large = r.large || size+out.Len()+errOut.Len()+len(in) > maxKept || err != nil && !p.Missing || res.TimedOut
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
	Real  modules.Runner // for shells
	Dir   string
	Names *strings.Replacer // puts directories of this run in place of names

	mu       sync.Mutex
	programs []Program
}

// Give sets what the programs of the next case say.
func (r *Replayer) Give(programs []Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs = slices.Clone(programs)
}

// Run implements modules.Runner.
func (r *Replayer) Run(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
	if c.Shell != "" || c.Detach || len(c.Args) == 0 {
		return r.Real.Run(ctx, c)
	}
	in, err := readInput(c)
	if err != nil {
		return modules.CommandResult{}, err
	}
	p, ok := r.take(c.Args, in)
	if !ok {
		return modules.CommandResult{}, fmt.Errorf("no answer is kept of program %q with standard input %q", c.Args, in)
	}
	if p.Missing {
		return modules.CommandResult{}, &modules.MissingCommandError{Command: c.Args[0]}
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
		same := slices.EqualFunc(p.Args, args, func(kept, now string) bool {
			return tempName.ReplaceAllString(r.Names.Replace(kept), "__salt.tmp.NAME") == tempName.ReplaceAllString(now, "__salt.tmp.NAME")
		})
		return same && bytes.Equal(untext(r.Names.Replace(p.Stdin)), in)
	})
	if i < 0 {
		return Program{}, false
	}
	p := r.programs[i]
	r.programs = slices.Delete(r.programs, i, i+1)
	return p, true
}

// leave makes the file as the program left it.
func (f File) leave(dir string, names *strings.Replacer) error {
	path := filepath.Join(dir, f.Path)
	if f.Gone {
		return os.RemoveAll(path)
	}
	if f.Mode.IsDir() {
		return errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, f.Mode.Perm()))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b := untext(names.Replace(f.Text))
	if f.Mode&fs.ModeSymlink != 0 {
		return os.Symlink(string(b), path)
	}
	return errors.Join(os.WriteFile(path, b, 0o600), os.Chmod(path, f.Mode.Perm()))
}

// listFiles describes the files below a directory.
func listFiles(dir string) map[string]fs.FileInfo {
	found := map[string]fs.FileInfo{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			found[path] = info
		}
		return nil
	})
	return found
}

// changedFiles describes what changed below a directory, and how much that is.
func changedFiles(dir string, before map[string]fs.FileInfo, names *strings.Replacer) (files []File, size int) {
	now := listFiles(dir)
	for path, info := range now {
		old := before[path]
		same := old != nil && old.Mode() == info.Mode() && os.SameFile(old, info) &&
			(info.IsDir() || old.Size() == info.Size() && old.ModTime().Equal(info.ModTime()))
		if same || path == dir {
			continue
		}
		rel, _ := filepath.Rel(dir, path)
		f := File{Path: rel, Mode: info.Mode()}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			f.Text, _ = os.Readlink(path)
		case info.Mode().IsRegular():
			if size += int(info.Size()); size <= maxKept {
				b, _ := os.ReadFile(path)
				f.Text = text(b)
			}
		case !info.IsDir():
			size += maxKept + 1 // a socket, a device: nothing that can be kept
		}
		f.Text = names.Replace(f.Text)
		files = append(files, f)
	}
	for path := range before {
		if now[path] == nil {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, File{Path: rel, Gone: true})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, size
}
