package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/confine"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
	"github.com/brine-salt/brine/states"
)

// exitNoSeal is the exit code of "brine-minion seal --check" on a host without a seal.
const exitNoSeal = 2

// readSeal returns the program's own seal, or that of the file beside the configuration, or nil.
func (o Options) readSeal(confFile string) (*policy.Seal, error) {
	if o.Seal != "" {
		return policy.ParseSeal([]byte(o.Seal), "the program's seal")
	}
	if confFile == "" {
		return nil, nil
	}
	return policy.LoadSeal(filepath.Join(filepath.Dir(confFile), policy.SealFile))
}

// sealError returns the error of a minion whose seal cannot be used. Its exit code keeps supervisors from
// restarting it.
func sealError(err error) error {
	if err == nil {
		return nil
	}
	return &minion.ExitError{Code: minion.ExitFinger, Err: err}
}

// restrictor returns a function that makes the kernel enforce a seal by calling apply. It returns nil without a seal.
// level is the level of the log message about it.
func restrictor(s *policy.Seal, opts map[string]any, log *slog.Logger, level slog.Level,
	apply func(confine.Rules) (confine.Report, error)) func() error {
	if s == nil {
		return nil
	}
	return sync.OnceValue(func() error {
		exe, err := os.Executable()
		if err != nil {
			return sealError(fmt.Errorf("cannot find the running program: %w", err))
		}
		rules, err := kernelRules(s, opts, exe)
		if err != nil {
			return sealError(err)
		}
		report, err := apply(rules)
		switch {
		case err == nil:
			log.Log(context.Background(), level, "The seal holds, in the registry and by the "+
				"kernel", "seal", s.Name, "kernel", report.Kernel,
				"missing", strings.Join(report.Missing, " "))
		// guard: seal TestSealNeedsTheKernel instead: errors.Is(err, confine.ErrUnsupported)
		case errors.Is(err, confine.ErrUnsupported) && s.KernelOptional:
			log.Warn("Only the registry enforces the seal", "seal", s.Name, "kernel", report.Kernel,
				"err", err)
		case errors.Is(err, confine.ErrUnsupported):
			return sealError(fmt.Errorf("cannot seal the minion: %w. To have the registry alone "+
				"hold the seal, write into %s: kernel: optional", err, s.Name))
		default:
			return sealError(fmt.Errorf("cannot seal the minion: %w", err))
		}
		return nil
	})
}

// systemTrees are the trees that every sealed minion may read: the files of programs, and descriptions of the host.
var systemTrees = [...]string{
	"/proc", "/sys", "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/hostname",
	"/etc/resolv.conf", "/etc/services", "/etc/protocols", "/etc/localtime", "/etc/timezone",
	"/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/machine-id", "/etc/mtab",
	"/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ca-certificates",
	"/run/systemd/resolve", "/run/systemd/system", "/dev/disk",
}

// systemDevices are the devices that programs expect.
var systemDevices = [...]string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
	"/dev/pts",
}

// kernelRules returns the seal's rules for the kernel. It returns an error if the seal, or the configured cachedir,
// sock_dir or log_file, would make the seal, the keys, the configuration or the program writable.
func kernelRules(s *policy.Seal, opts map[string]any, exe string) (confine.Rules, error) {
	text := func(name string) string { v, _ := opts[name].(string); return v }
	conf := text("conf_file")
	if conf == "" {
		return confine.Rules{}, errors.New("cannot seal a minion without a configuration file")
	}
	dir := filepath.Dir(conf)
	kept := map[string]string{dir: "the seal and the configuration", text("pki_dir"): "the keys",
		exe: "the running program"}
	r := confine.Rules{Read: systemTrees[:], Devices: systemDevices[:], Execute: s.Programs,
		NoLocalSockets: !s.LocalSockets}
	r.Read = append(r.Read[:len(r.Read):len(r.Read)], conf, conf+".d", filepath.Join(dir, "grains"),
		filepath.Join(dir, policy.SealFile))
	if !s.NamesMasters() {
		r.Read = append(r.Read, text("pki_dir"))
	}
	for _, p := range s.Read {
		r.Read = append(r.Read, p.Path)
	}
	write := slices.Clone(s.Write)
	for _, name := range [...]string{"cachedir", "sock_dir"} {
		write = append(write, policy.Place{Path: text(name)})
	}
	if log := text("log_file"); filepath.IsAbs(log) {
		write = append(write, policy.Place{Path: filepath.Dir(log)})
	}
	for _, p := range write {
		if p.Path == "" {
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(kept)) {
			// guard: seal TestProtectedTrees
			if overlap(p.Path, path) {
				where := s.Name
				if p.Line > 0 {
					where = fmt.Sprintf("%s:%d", s.Name, p.Line)
				}
				return r, fmt.Errorf("cannot use the seal: %s: %s may not be writable, for %s (%s)",
					where, p.Path, path, kept[path])
			}
		}
		r.Write = append(r.Write, p.Path)
	}
	return r, nil
}

// overlap reports whether one of two paths contains the other. Symbolic links are resolved.
func overlap(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	within := func(tree, path string) bool {
		rel, err := filepath.Rel(tree, path)
		return err == nil && (rel == "." || filepath.IsLocal(rel))
	}
	a, b = withoutLinks(a), withoutLinks(b)
	return within(a, b) || within(b, a)
}

// withoutLinks resolves the symbolic links in the existing part of a path.
func withoutLinks(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real
	}
	parent := filepath.Dir(filepath.Clean(path))
	if parent == path {
		return path
	}
	return filepath.Join(withoutLinks(parent), filepath.Base(path))
}

func sealParser(c *saltcli.Console) *optparse.Parser {
	options := append(saltcli.ConfigOptions(c.ConfigDir()),
		optparse.Option{Names: []string{"-h", "--help"}, Kind: optparse.True,
			Help: "Show this help."},
		optparse.Option{Names: []string{"--check"}, Kind: optparse.True,
			Help: "Print how much of each function and state the seal allows."})
	return &optparse.Parser{Prog: "brine-minion seal",
		Usage: "%prog --check [-c CONFIG_DIR] [FILE]", Width: c.Width(), Options: options,
		Description: "Shows what this minion may still do under seal.yaml, or under FILE before " +
			"you install it. Exit code 0: the seal is valid, 1: it cannot be used, 2: there is " +
			"no seal."}
}

// Seal is the program "brine-minion seal". It returns the exit code.
func Seal(args []string, o Options) int {
	c := o.console()
	parser := sealParser(c)
	v, err := parser.Parse(args)
	if err == nil && !v.Bool("help") && (!v.Bool("check") || len(v.Args) > 1) {
		err = errors.New("use --check, with at most one FILE")
	}
	if err != nil {
		fmt.Fprint(c.Err, parser.ErrorText(err.Error()))
		return saltcli.ExitUsage
	}
	if v.Bool("help") {
		fmt.Fprint(c.Out, parser.Help())
		return 0
	}
	s, opts, err := o.checkedSeal(c, v)
	if err != nil {
		fmt.Fprintln(c.Err, err)
		return saltcli.ExitGeneric
	}
	if s == nil {
		fmt.Fprintln(c.Out, "This minion is not sealed.")
		return exitNoSeal
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(c.Err, err)
		return saltcli.ExitGeneric
	}
	rules, err := kernelRules(s, opts, exe)
	if err != nil {
		fmt.Fprintln(c.Err, err)
		return saltcli.ExitGeneric
	}
	printSeal(c.Out, s, rules)
	return 0
}

// checkedSeal reads the configuration and the seal that the command line selects.
func (o Options) checkedSeal(c *saltcli.Console,
	v *optparse.Values) (*policy.Seal, map[string]any, error) {
	dir, _ := saltcli.ConfigDir(v, c.Place())
	loaded, err := conf.LoadMinionWith(filepath.Join(dir, "minion"),
		conf.Options{Tool: true, ReadOnly: true, CLI: "salt-minion", Getenv: c.Env})
	if err != nil {
		return nil, nil, err
	}
	if len(v.Args) == 0 {
		s, err := o.readSeal(loaded.String("conf_file"))
		return s, loaded.Opts, err
	}
	text, err := os.ReadFile(v.Args[0])
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the seal: %w", err)
	}
	s, err := policy.ParseSeal(text, v.Args[0])
	return s, loaded.Opts, err
}

// printSeal prints what a seal permits.
func printSeal(w io.Writer, s *policy.Seal, rules confine.Rules) {
	list := func(title string, items []string) {
		fmt.Fprintf(w, "%s: %s\n", title, cmp.Or(strings.Join(items, " "), "none"))
	}
	paths := func(places []policy.Place) []string {
		var all []string
		for _, p := range places {
			all = append(all, p.Path)
		}
		return all
	}
	fmt.Fprintf(w, "Seal: %s\nKernel: %s\n", s.Name, confine.Support())
	list("Masters", s.Masters)
	list("Programs", s.Programs)
	list("Trees to read, beside the system's", paths(s.Read))
	list("Trees to write", rules.Write)
	for _, p := range rules.Execute {
		if slices.ContainsFunc(rules.Write, func(tree string) bool { return overlap(tree, p) }) {
			fmt.Fprintf(w, "Note: %s may be started and may be written\n", p)
		}
	}
	fmt.Fprintf(w, "Updates: %v\nLocal sockets: %v\n", s.Update, s.LocalSockets)
	each := func(kind modules.Kind, prefix string, all []*modules.Module) {
		meaning := map[string]string{}
		for _, m := range all {
			for name := range m.Names() {
				fun := m.Called() + "." + name
				meaning[fun] = cmp.Or(s.Rules(kind, fun), "refused")
			}
		}
		for _, fun := range slices.Sorted(maps.Keys(meaning)) {
			fmt.Fprintf(w, "%s%s: %s\n", prefix, fun, meaning[fun])
		}
	}
	each(modules.Execution, "", modules.Default().All())
	each(modules.Returner, "", returners.All())
	each(modules.State, "state:", states.Default().Declared())
}
