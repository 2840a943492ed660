//go:build linux

package original

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// AgentsVersion is the reference release of heat-agents.
const AgentsVersion = "13.0.0"

//go:embed requirements.txt
var requirements string

// layout is increased with every change of a set's content outside of requirements.txt.
const layout = "1"

// A Set is an installed set of the original programs.
type Set struct{ dir string }

// Install returns the set in the user's cache directory; the first call fills it. Concurrent processes wait for each
// other.
func Install(ctx context.Context) (Set, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return Set{}, err
	}
	home := filepath.Join(cache, "brine", "heat-original")
	sum := sha256.Sum256([]byte(layout + AgentsVersion + requirements))
	s := Set{filepath.Join(home, hex.EncodeToString(sum[:8]))}
	complete := filepath.Join(s.dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return s, nil
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return Set{}, err
	}
	lock, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return Set{}, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return Set{}, fmt.Errorf("cannot lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(complete); err == nil {
		return s, nil
	}
	if err := s.fill(ctx); err != nil {
		return Set{}, fmt.Errorf("cannot install os-collect-config and heat-agents: %w", err)
	}
	return s, os.WriteFile(complete, nil, 0o644)
}

// fill installs into the set's final directory, because the programs of a virtual environment contain its path.
func (s Set) fill(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(s.dir), os.MkdirAll(s.Agents(), 0o755)); err != nil {
		return err
	}
	list := filepath.Join(s.dir, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements), 0o644); err != nil {
		return err
	}
	archive := filepath.Join(s.dir, "heat_agents-"+AgentsVersion+".tar.gz")
	pip := func(args ...string) []string {
		return append([]string{s.Program("python"), "-m", "pip", "--quiet", "--disable-pip-version-check"}, args...)
	}
	for _, argv := range [][]string{
		{"/usr/bin/python3", "-m", "venv", filepath.Join(s.dir, "venv")},
		pip("install", "--no-deps", "--requirement", list),
		pip("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", s.dir, "heat-agents=="+AgentsVersion),
		{"tar", "-xzf", archive, "-C", s.Agents(), "--strip-components=1"},
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
		}
	}
	return nil
}

// Agents returns the directory of the unpacked heat-agents source.
func (s Set) Agents() string { return filepath.Join(s.dir, "agents") }

// Program returns the path of a program in the set's virtual environment.
func (s Set) Program(name string) string { return filepath.Join(s.dir, "venv", "bin", name) }

// programs are the programs of the virtual environment that call each other by name.
var programs = [...]string{"os-collect-config", "os-apply-config", "os-refresh-config", "dib-run-parts"}

// phases are the scripts of os-refresh-config, by their directory in heat-agents. The scripts of docker-cmd and
// kubelet are excluded, because they need Docker at every change.
var phases = [...]string{"heat-config", "heat-config-docker-compose"}

// LayOut writes to root the files that the image elements put in fixed places: hooks, templates of os-apply-config,
// scripts of os-refresh-config, and links to the programs. salt is the Python for the hook salt; if it is "", this
// hook is left out.
func (s Set) LayOut(root, salt string) error {
	at := func(path string) string { return filepath.Join(root, path) }
	for _, name := range programs {
		if err := link(s.Program(name), at("/usr/bin/"+name)); err != nil {
			return err
		}
	}
	// os-collect-config sets en_US.UTF-8, which images have; under that name, Python also accepts C.UTF-8.
	if locale := at("/usr/lib/locale/en_US.utf8"); !exists(locale) {
		if err := link("C.utf8", locale); err != nil {
			return err
		}
	}
	if err := s.copyScript("heat-config/bin/heat-config-notify", at("/usr/bin/heat-config-notify"), s.Program("python")); err != nil {
		return err
	}
	hooks, err := filepath.Glob(filepath.Join(s.Agents(), "heat-config-*", "install.d", "hook-*.py"))
	if err != nil || len(hooks) == 0 {
		return fmt.Errorf("heat-agents has no hooks: %w", err)
	}
	for _, hook := range hooks {
		group, python := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(hook), "hook-"), ".py"), s.Program("python")
		if group == "salt" {
			if python = salt; salt == "" {
				continue
			}
		}
		from, _ := filepath.Rel(s.Agents(), hook)
		if err := s.copyScript(from, at("/var/lib/heat-config/hooks/"+group), python); err != nil {
			return err
		}
	}
	for _, element := range phases {
		if err := s.copyTree(element+"/os-refresh-config", at("/usr/libexec/os-refresh-config")); err != nil {
			return err
		}
	}
	return s.copyTree("heat-config/os-apply-config", at("/usr/libexec/os-apply-config/templates"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func link(target, path string) error {
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path))
	if err == nil {
		err = os.Symlink(target, path)
	}
	return err
}

// copyTree copies a directory of heat-agents. Its executable files are scripts.
func (s Set) copyTree(from, to string) error {
	top := filepath.Join(s.Agents(), from)
	return filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		return s.copyScript(filepath.Join(from, rel), filepath.Join(to, rel), s.Program("python"))
	})
}

// copyScript copies a file of heat-agents with its permissions. As in images, a Python script gets the interpreter
// that has its libraries.
func (s Set) copyScript(from, to, python string) error {
	name := filepath.Join(s.Agents(), from)
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if first, rest, ok := strings.Cut(string(text), "\n"); ok && strings.HasPrefix(first, "#!") {
		mode = 0o755
		if strings.Contains(first, "python") {
			text = []byte("#!" + python + "\n" + rest)
		}
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, mode))
}

// Size returns how many bytes the set adds to an image that already has Python: libraries and programs without pip,
// and heat-agents.
func (s Set) Size() (int64, error) {
	var sum int64
	for _, top := range []string{filepath.Join(s.dir, "venv"), s.Agents()} {
		err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if base := d.Name(); d.IsDir() && (base == "pip" || base == "__pycache__" || base == "doc" || base == "tests" && top == s.Agents()) {
				return filepath.SkipDir
			}
			if !d.Type().IsRegular() {
				return nil
			}
			info, err := d.Info()
			if err == nil {
				sum += info.Size()
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}
