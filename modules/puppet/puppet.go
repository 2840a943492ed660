// Package puppet is Salt's execution module "puppet": runs of the Puppet agent of this host. Salt's source:
// salt/modules/puppet.py.
package puppet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// puppet.run, puppet.noop differ: no shell interprets the arguments; they are split at blanks and quotes.
// puppet.run, puppet.noop differ: several keyword arguments are passed in the order of their names.
// puppet.disable differs: a message with quotes or backslashes is written as valid JSON, which Puppet can read.
// puppet.summary differs: where Salt finds no file, the setting lastrunfile is looked at, which Puppet 7 has moved.

// maxSummary bounds the summary of a run, in bytes.
const maxSummary = 16 << 20

func available(e *modules.Env) (bool, string) {
	var missing []string
	for _, program := range [...]string{"facter", "puppet"} {
		if e.Which(program) == "" {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return false, "The puppet execution module cannot be loaded: " + strings.Join(missing, ", ") + " unavailable."
	}
	return true, ""
}

// dirs are the directories of the host's Puppet.
type dirs struct{ vardir, rundir, confdir string }

func (d dirs) disabledLock() string { return d.vardir + "/state/agent_disabled.lock" }
func (d dirs) runLock() string      { return d.vardir + "/state/agent_catalog_run.lock" }
func (d dirs) pidFile() string      { return d.rundir + "/agent.pid" }
func (d dirs) lastRun() string      { return d.vardir + "/state/last_run_summary.yaml" }

// settings asks Puppet for its directories.
func settings(ctx context.Context, c *modules.Call) (dirs, error) {
	v, err := c.Exec(ctx, "cmd.run", "puppet config print --render-as yaml vardir rundir confdir")
	if err != nil {
		return dirs{}, err
	}
	text := pytext.Str(v)
	parsed, err := yaml.Parse([]byte(text), "the settings of puppet")
	conf, ok := parsed.(map[string]any)
	var d dirs
	for name, to := range map[string]*string{"vardir": &d.vardir, "rundir": &d.rundir, "confdir": &d.confdir} {
		*to, _ = conf[name].(string)
		ok = ok && *to != ""
	}
	if err != nil || !ok {
		return dirs{}, modules.Errorf("cannot read the settings of puppet from %s", pytext.Repr(text))
	}
	return d, nil
}

func run(ctx context.Context, c *modules.Call) (any, error) { return runWith(ctx, c, c.Extra) }

func noop(ctx context.Context, c *modules.Call) (any, error) {
	return runWith(ctx, c, append(slices.Clone(c.Extra), "noop"))
}

func runWith(ctx context.Context, c *modules.Call, args []any) (any, error) {
	d, err := settings(ctx, c)
	if err != nil {
		return nil, err
	}
	subcommand, line, err := commandLine(args, c.Keywords)
	if err != nil {
		return nil, err
	}
	words, err := shlex.Split(line)
	if err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
	}
	cmd := []any{"puppet", subcommand, "--vardir", d.vardir, "--confdir", d.confdir}
	for _, w := range words {
		cmd = append(cmd, w)
	}
	// Puppet ends with 2 when it changed something.
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{cmd}, map[string]any{"python_shell": false, "success_retcodes": []any{int64(2)}})
	if err != nil {
		return nil, err
	}
	// Salt's shell makes 1 of every other status: 4 and 6, with which Puppet reports resources that failed, among them.
	if ret, ok := v.(map[string]any); ok && ret["retcode"] != int64(0) && runtime.GOOS != "windows" {
		ret["retcode"] = int64(1)
		c.SetRetcode(1)
	}
	return v, nil
}

// commandLine returns Puppet's subcommand and the text that follows it.
func commandLine(args []any, kwargs map[string]any) (subcommand, line string, err error) {
	subcommand = "agent"
	var rest []any
	for _, a := range args {
		if a == "agent" || a == "apply" {
			subcommand = pytext.Str(a)
		} else {
			rest = append(rest, a)
		}
	}
	var b strings.Builder
	if subcommand == "apply" {
		if len(rest) == 0 {
			return "", "", modules.IndexError()
		}
		manifest, ok := rest[0].(string)
		if !ok {
			return "", "", &modules.TypeError{Msg: "sequence item 0: expected str instance, " + modules.TypeName(rest[0]) + " found"}
		}
		b.WriteString(manifest)
		rest = rest[1:]
	} else {
		rest = append(rest, "test")
	}
	for _, a := range rest {
		b.WriteString(" --" + pytext.Str(a))
	}
	options := map[string]any{"color": "false"}
	maps.Copy(options, kwargs)
	maps.DeleteFunc(options, func(k string, _ any) bool { return strings.HasPrefix(k, "__") })
	for _, k := range slices.Sorted(maps.Keys(options)) {
		b.WriteString(" --" + k + " " + pytext.Str(options[k]))
	}
	return subcommand, b.String(), nil
}

func enable(ctx context.Context, c *modules.Call) (any, error) {
	d, err := settings(ctx, c)
	if err != nil {
		return nil, err
	}
	if !c.IsFile(d.disabledLock()) {
		return false, nil
	}
	if err := os.Remove(c.Path(d.disabledLock())); err != nil {
		return nil, modules.Errorf("Failed to enable: %s", reason(err))
	}
	return true, nil
}

// reason returns an operating system error in Python's words.
func reason(err error) string {
	if text, _ := modules.OSErrorText(err); text != "" {
		return text
	}
	return err.Error()
}

func disable(ctx context.Context, c *modules.Call) (any, error) {
	d, err := settings(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.IsFile(d.disabledLock()) {
		return false, nil
	}
	text := "{}"
	if c.Value("message") != nil {
		message, err := pyjson.Format(c.Str("message"), pyjson.Options{Indent: -1})
		if err != nil {
			return nil, err
		}
		text = `{"disabled_message":` + message + `}`
	}
	f, err := os.OpenFile(c.Path(d.disabledLock()), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, modules.OSError(err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, modules.Errorf("Failed to disable: %s", reason(err))
	}
	return true, nil
}

func status(ctx context.Context, c *modules.Call) (any, error) {
	d, err := settings(ctx, c)
	if err != nil {
		return nil, err
	}
	switch {
	case c.IsFile(d.disabledLock()):
		return "Administratively disabled", nil
	case c.IsFile(d.runLock()):
		return holder(c, d.runLock(), "Applying a catalog", "Stale lockfile"), nil
	case c.IsFile(d.pidFile()):
		return holder(c, d.pidFile(), "Idle daemon", "Stale pidfile"), nil
	}
	return "Stopped", nil
}

// holder returns alive if the process whose id is in the file exists, and stale if not.
func holder(c *modules.Call, path, alive, stale string) string {
	text, err := read(c, path)
	if err != nil {
		return stale
	}
	pid, err := modules.ToInt(string(text))
	if err != nil || !exists(int(pid)) {
		return stale
	}
	return alive
}

// exists reports whether there is such a process, and the minion may signal it.
func exists(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	return runtime.GOOS == "windows" || p.Signal(syscall.Signal(0)) == nil
}

// read reads a file of at most maxSummary bytes.
func read(c *modules.Call, path string) ([]byte, error) {
	f, err := os.Open(c.Path(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSummary+1))
	if err == nil && len(text) > maxSummary {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxSummary)
	}
	return text, err
}

// readSummary reads what Puppet has written about its last run.
func readSummary(ctx context.Context, c *modules.Call, d dirs) ([]byte, error) {
	text, err := read(c, d.lastRun())
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	v, failed := c.Exec(ctx, "cmd.run", "puppet config print lastrunfile")
	if path := pytext.Strip(pytext.Str(v)); failed == nil && path != "" && !strings.Contains(path, "\n") {
		if moved, failed := read(c, path); failed == nil {
			return moved, nil
		}
	}
	return nil, err
}

func summary(ctx context.Context, c *modules.Call) (any, error) {
	d, err := settings(ctx, c)
	if err != nil {
		return nil, err
	}
	text, err := readSummary(ctx, c, d)
	if err != nil {
		return nil, modules.Errorf("Unable to read puppet run summary: %s", reason(err))
	}
	report, err := yaml.Parse(text, d.lastRun())
	if err != nil {
		return nil, modules.Errorf("YAML error parsing puppet run summary: %v", err)
	}
	m, ok := report.(map[string]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(report) + "' is not iterable"}
	}
	result := map[string]any{}
	if v, ok := m["time"]; ok {
		times, _ := v.(map[string]any)
		result["last_run"] = lastRun(times)
		kept := map[string]any{}
		for _, key := range [...]string{"total", "config_retrieval"} {
			if v, ok := times[key]; ok {
				kept[key] = v
			}
		}
		result["time"] = kept
	}
	if v, ok := m["resources"]; ok {
		result["resources"] = v
	}
	return result, nil
}

// lastRun returns the time of Puppet's last run, in local time.
func lastRun(times map[string]any) string {
	v, ok := times["last_run"]
	seconds, err := modules.ToInt(v)
	if !ok || err != nil {
		return "invalid or missing timestamp"
	}
	return time.Unix(seconds, 0).Format("2006-01-02T15:04:05")
}

func pluginSync(ctx context.Context, c *modules.Call) (any, error) {
	v, err := c.Exec(ctx, "cmd.run", "puppet plugin download")
	if err != nil || !pytext.Truth(v) {
		return "", err
	}
	return v, nil
}

// facter runs facter and returns what it printed.
func facter(ctx context.Context, c *modules.Call, line string) (string, error) {
	option := ""
	if c.Bool("puppet") {
		option = "--puppet"
	}
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{"facter " + option + line}, map[string]any{"python_shell": false})
	if err != nil {
		return "", err
	}
	ret, _ := v.(map[string]any)
	if ret["retcode"] != int64(0) {
		return "", modules.Errorf("%s", pytext.Str(ret["stderr"]))
	}
	return pytext.Str(ret["stdout"]), nil
}

func facts(ctx context.Context, c *modules.Call) (any, error) {
	text, err := facter(ctx, c, "")
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		if name, value, ok := strings.Cut(line, " => "); ok && name != "" {
			ret[name] = pytext.Strip(value)
		}
	}
	return ret, nil
}

func fact(ctx context.Context, c *modules.Call) (any, error) {
	return facter(ctx, c, " "+c.Str("name"))
}
