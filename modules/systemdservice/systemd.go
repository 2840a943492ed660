// Package systemdservice is Salt's execution module "service" on hosts with systemd: units and init scripts through systemctl.
// Salt's source: salt/modules/systemd_service.py.
package systemdservice

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	if e.Grain("kernel") == "Linux" && (systemd.Booted(e) || systemd.Offline(e)) {
		return true, ""
	}
	return false, "The systemd execution module failed to load: only available on Linux systems which have been booted with systemd."
}

// localUnits is where units of the administrator are.
const localUnits = "/etc/systemd/system"

func unitTypes() []string {
	return []string{"service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer"}
}

// unit returns the full name of a unit.
func unit(name string) string {
	if slices.ContainsFunc(unitTypes(), func(t string) bool { return strings.HasSuffix(name, t) }) {
		return name
	}
	return name + ".service"
}

// service returns the name of a unit in listings, which is without ".service". It returns "" if full is not the name
// of a unit.
func service(full string) string {
	i := strings.LastIndexByte(full, '.')
	if i < 0 || !slices.Contains(unitTypes(), full[i+1:]) {
		return ""
	}
	return strings.TrimSuffix(full, ".service")
}

func below(root, path string) string {
	if root != "" {
		return filepath.Join(root, path)
	}
	return path
}

// ctl is a call of systemctl.
type ctl struct {
	args    []string
	name    string
	scope   bool
	noBlock bool
	root    string
	extra   []string

	merge, ignore bool
}

func (o ctl) run(ctx context.Context, c *modules.Call) (saltcmd.Result, error) {
	var cmd []string
	if o.scope && systemd.Scope(ctx, c) != nil {
		run := c.Which("systemd-run")
		if run == "" {
			return saltcmd.Result{}, modules.Errorf("systemd-run is required for running systemctl with --scope, but it was not found on the " +
				"system. Make sure systemd-run is installed and in the system's PATH or disable it using the 'systemd.scope' config option.")
		}
		cmd = append(cmd, run, "--scope")
	}
	program := c.Which("systemctl")
	if program == "" {
		program = "systemctl"
	}
	cmd = append(cmd, program)
	if o.noBlock {
		cmd = append(cmd, "--no-block")
	}
	if o.root != "" {
		cmd = append(cmd, "--root", o.root)
	}
	cmd = append(cmd, o.args...)
	if o.name != "" {
		cmd = append(cmd, unit(o.name))
	}
	if slices.Contains(cmd, "status") {
		cmd = append(cmd, "-n", "0")
	}
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: append(cmd, o.extra...), Merge: o.merge, IgnoreRetcode: o.ignore})
}

// scoped reports whether programs run in a scope of their own.
func status(ctx context.Context, c *modules.Call, name string) (saltcmd.Result, error) {
	return ctl{args: []string{"status"}, name: name, merge: true, ignore: true}.run(ctx, c)
}

var loadedLine = lazyre.Regexp{Expr: `^\s+loaded:\s+(\S+)`}

// known reports whether systemd knows a unit.
func known(ctx context.Context, c *modules.Call, name string) (bool, error) {
	if systemd.Offline(c.Env) {
		return false, modules.Errorf("Cannot run in offline mode. Failed to get information on unit '%s'", name)
	}
	out, err := status(ctx, c, name)
	if err != nil {
		return false, err
	}
	if systemd.Version(ctx, c) >= 231 {
		return out.Retcode >= 0 && out.Retcode < 4, nil
	}
	text := strings.ToLower(out.Stdout)
	if strings.Contains(text, "could not be found") {
		return false, nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if m := loadedLine.Get().FindStringSubmatch(line); m != nil {
			return m[1] != "not-found", nil
		}
	}
	return false, modules.Errorf("Failed to get information on unit '%s'", name)
}

// follow makes systemd read units that were changed since it read them.
func follow(ctx context.Context, c *modules.Call, name string) error {
	if f, err := os.Open(c.Path(filepath.Join(localUnits, unit(name)))); err == nil {
		f.Close()
		there, err := known(ctx, c, name)
		if err != nil {
			return err
		}
		if !there {
			return reloadUnits(ctx, c)
		}
	}
	out, err := status(ctx, c, name)
	if err != nil {
		return err
	}
	if strings.Contains(strings.ToLower(out.Stdout), "'systemctl daemon-reload'") {
		return reloadUnits(ctx, c)
	}
	return nil
}

func reloadUnits(ctx context.Context, c *modules.Call) error {
	out, err := ctl{args: []string{"--system", "daemon-reload"}, merge: true}.run(ctx, c)
	if err == nil && out.Retcode != 0 {
		err = modules.Errorf("Problem performing systemctl daemon-reload: %s", out.Stdout)
	}
	return err
}

func systemctlReload(ctx context.Context, c *modules.Call) (any, error) {
	if err := reloadUnits(ctx, c); err != nil {
		return nil, err
	}
	return true, nil
}

func getRunning(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl{args: []string{"--full", "--no-legend", "--no-pager"}, merge: true, ignore: true}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.SplitSeq(out.Stdout, "\n") {
		if cols := strings.Fields(line); len(cols) > 3 && cols[3] == "running" && service(cols[0]) != "" {
			names = append(names, service(cols[0]))
		}
	}
	return sorted(names), nil
}

func sorted(names []string) []any {
	slices.Sort(names)
	return nested.Anys(slices.Compact(names))
}

// inState lists the unit files of a state.
func inState(ctx context.Context, c *modules.Call, state string) ([]string, error) {
	out, err := ctl{args: []string{"--full", "--no-legend", "--no-pager", "list-unit-files"}, root: c.Str("root"), merge: true, ignore: true}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.SplitSeq(out.Stdout, "\n") {
		if cols := strings.Fields(line); len(cols) > 1 && cols[1] == state && service(cols[0]) != "" {
			names = append(names, service(cols[0]))
		}
	}
	return names, nil
}

func getEnabled(ctx context.Context, c *modules.Call) (any, error) {
	return switched(ctx, c, "enabled", true)
}

func getDisabled(ctx context.Context, c *modules.Call) (any, error) {
	return switched(ctx, c, "disabled", false)
}

// switched lists the units of a state and the init scripts that are on or off.
func switched(ctx context.Context, c *modules.Call, state string, on bool) (any, error) {
	names, err := inState(ctx, c, state)
	if err != nil {
		return nil, err
	}
	root := c.Str("root")
	for _, name := range scripts(c, root, units(c, root)) {
		enabled, err := scriptEnabled(ctx, c, name, root)
		if err != nil {
			return nil, err
		}
		if enabled == on {
			names = append(names, name)
		}
	}
	return sorted(names), nil
}

func getStatic(ctx context.Context, c *modules.Call) (any, error) {
	names, err := inState(ctx, c, "static")
	return sorted(names), err
}

func getAll(_ context.Context, c *modules.Call) (any, error) {
	return sorted(all(c, c.Str("root"))), nil
}

func all(c *modules.Call, root string) []string {
	names := units(c, root)
	return append(names, scripts(c, root, names)...)
}

// units returns the names of the units that have files.
func units(c *modules.Call, root string) []string {
	var names []string
	for _, dir := range []string{"/lib/systemd/system", "/usr/lib/systemd/system", localUnits} {
		dir = below(root, dir)
		info, err := os.Lstat(c.Path(dir))
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		entries, err := os.ReadDir(c.Path(dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if name := service(e.Name()); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func availableRun(ctx context.Context, c *modules.Call) (any, error) {
	return present(ctx, c, c.Str("name"))
}

func present(ctx context.Context, c *modules.Call, name string) (bool, error) {
	if err := follow(ctx, c, name); err != nil {
		return false, err
	}
	return known(ctx, c, name)
}

func missing(ctx context.Context, c *modules.Call) (any, error) {
	ok, err := present(ctx, c, c.Str("name"))
	if err != nil {
		return nil, err
	}
	return !ok, nil
}

func maskedRun(ctx context.Context, c *modules.Call) (any, error) {
	return masked(ctx, c, c.Str("name"), c.Bool("runtime"), c.Str("root"))
}

func masked(ctx context.Context, c *modules.Call, name string, runtime bool, root string) (bool, error) {
	if err := follow(ctx, c, name); err != nil {
		return false, err
	}
	dir := "/etc"
	if runtime {
		dir = "/run"
	}
	target, err := os.Readlink(c.Path(filepath.Join(below(root, dir), "systemd/system", unit(name))))
	if err != nil && !os.IsNotExist(err) {
		c.Logger().Error("Cannot find out whether the service is masked", "service", name, "err", err)
	}
	return target == "/dev/null", nil
}

func unmaskRun(ctx context.Context, c *modules.Call) (any, error) {
	err := unmask(ctx, c, c.Str("name"), c.Bool("runtime"), c.Str("root"))
	if err != nil {
		return nil, err
	}
	return true, nil
}

func unmask(ctx context.Context, c *modules.Call, name string, runtime bool, root string) error {
	if err := follow(ctx, c, name); err != nil {
		return err
	}
	is, err := masked(ctx, c, name, runtime, root)
	if err != nil || !is {
		return err
	}
	out, err := ctl{args: withRuntime("unmask", runtime), name: name, scope: true, root: root, merge: true}.run(ctx, c)
	if err == nil && out.Retcode != 0 {
		err = modules.Errorf("Failed to unmask service '%s'", name)
	}
	return err
}

func withRuntime(verb string, runtime bool) []string {
	if runtime {
		return []string{verb, "--runtime"}
	}
	return []string{verb}
}

func mask(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	if err := follow(ctx, c, name); err != nil {
		return nil, err
	}
	out, err := ctl{args: withRuntime("mask", c.Bool("runtime")), name: name, scope: true, root: c.Str("root"), merge: true}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, saltcmd.Problem("Failed to mask service '"+name+"'", out.Stdout)
	}
	return true, nil
}

// prepare runs before a change: it reloads changed units, and unmasks the unit if that is wanted.
func prepare(ctx context.Context, c *modules.Call, root string) error {
	name := c.Str("name")
	err := follow(ctx, c, name)
	if err == nil && pytext.Truth(c.Value("unmask")) {
		err = unmask(ctx, c, name, false, root)
	}
	if err == nil && pytext.Truth(c.Value("unmask_runtime")) {
		err = unmask(ctx, c, name, true, root)
	}
	return err
}

func start(ctx context.Context, c *modules.Call) (any, error) { return change(ctx, c, "start") }

func restart(ctx context.Context, c *modules.Call) (any, error) { return change(ctx, c, "restart") }

func reload(ctx context.Context, c *modules.Call) (any, error) { return change(ctx, c, "reload") }

func forceReload(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, "force-reload")
}

// change starts, restarts or reloads a service.
func change(ctx context.Context, c *modules.Call, verb string) (any, error) {
	if err := prepare(ctx, c, ""); err != nil {
		return nil, err
	}
	out, err := ctl{args: []string{verb}, name: c.Str("name"), scope: true, noBlock: noBlock(c)}.run(ctx, c)
	if err == nil && out.Retcode != 0 {
		err = complaint(out)
	}
	if err != nil {
		return nil, err
	}
	return true, nil
}

// complaint returns systemctl's error output as an error, without the line about the scope.
func complaint(out saltcmd.Result) error {
	lines := slices.DeleteFunc(pytext.SplitLines(out.Stderr, false), func(l string) bool { return strings.HasSuffix(l, ".scope") })
	return modules.Errorf("%s", strings.TrimSpace(strings.Join(lines, "\n")))
}

// noBlock reports whether not to wait for systemd. By default only the minion's own service is not waited for.
func noBlock(c *modules.Call) bool {
	if v := c.Value("no_block"); v != nil {
		return pytext.Truth(v)
	}
	return unit(c.Str("name")) == "salt-minion.service"
}

func stop(ctx context.Context, c *modules.Call) (any, error) {
	if err := prepare(ctx, c, ""); err != nil {
		return nil, err
	}
	out, err := ctl{args: []string{"stop"}, name: c.Str("name"), scope: true, noBlock: noBlock(c)}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	return out.Retcode == 0, nil
}

func statusRun(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	names := []string{name}
	if fnmatch.Has(name) {
		names = fnmatch.Filter(all(c, ""), name)
	}
	ret := map[string]any{}
	for _, n := range names {
		if err := follow(ctx, c, n); err != nil {
			return nil, err
		}
		out, err := ctl{args: []string{"is-active"}, name: n, ignore: true}.run(ctx, c)
		if err != nil {
			return nil, err
		}
		ret[n] = out.Retcode == 0
	}
	if fnmatch.Has(name) {
		return ret, nil
	}
	return ret[name], nil
}

func show(ctx context.Context, c *modules.Call) (any, error) {
	return properties(ctx, c, c.Str("name"))
}

// properties returns the properties of a unit from systemctl show.
func properties(ctx context.Context, c *modules.Call, name string) (map[string]any, error) {
	out, err := ctl{args: []string{"show"}, name: name, root: c.Str("root"), merge: true}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for line := range strings.SplitSeq(out.Stdout, "\n") {
		if line == "" && out.Stdout == "" {
			break
		}
		key, value, _ := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(value, "{"):
			parts := map[string]any{}
			for item := range strings.SplitSeq(strings.NewReplacer("{", "", "}", "").Replace(value), " ; ") {
				k, rest, ok := strings.Cut(item, "=")
				if !ok {
					return nil, modules.IndexError()
				}
				v, _, _ := strings.Cut(rest, "=")
				parts[strings.TrimSpace(k)] = strings.TrimSpace(v)
			}
			ret[key] = parts
		case key == "Before" || key == "After" || key == "Wants":
			ret[key] = nested.Anys(strings.Fields(value))
		default:
			ret[key] = value
		}
	}
	return ret, nil
}

func execs(ctx context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{}
	for _, name := range all(c, c.Str("root")) {
		data, err := properties(ctx, c, name)
		if err != nil {
			return nil, err
		}
		start, ok := data["ExecStart"]
		if !ok {
			continue
		}
		parts, ok := start.(map[string]any)
		if !ok {
			return nil, &modules.TypeError{Msg: "string indices must be integers, not 'str'"}
		}
		ret[name] = parts["path"]
	}
	return ret, nil
}

func firstboot(ctx context.Context, c *modules.Call) (any, error) {
	program := c.Which("systemd-firstboot")
	if program == "" {
		return nil, &modules.MissingCommandError{Command: "systemd-firstboot"}
	}
	cmd := []string{program}
	for _, p := range [...]struct{ option, name string }{
		{"locale", "locale"}, {"locale-message", "locale_message"}, {"keymap", "keymap"}, {"timezone", "timezone"},
		{"hostname", "hostname"}, {"machine-ID", "machine_id"}, {"root", "root"},
	} {
		if c.Bool(p.name) {
			cmd = append(cmd, "--"+p.option, c.Str(p.name))
		}
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd})
	if err == nil && out.Retcode != 0 {
		err = modules.Errorf("systemd-firstboot error: %s", out.Stderr)
	}
	if err != nil {
		return nil, err
	}
	return true, nil
}

func offline(_ context.Context, c *modules.Call) (any, error) {
	if systemd.Booted(c.Env) {
		return false, nil
	}
	if path := c.Which("systemctl"); path != "" {
		return path, nil // Salt's answer is what its "and" leaves
	}
	return nil, nil
}
