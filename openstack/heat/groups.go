package heat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/modules"
)

// streamLimit is how many bytes of each output stream are stored: more than a signal can contain.
const streamLimit = 1 << 20

// hookLimit is the limit for hooks, whose standard output is JSON that must be complete.
const hookLimit = 8 << 20

// killGrace is how long a deployment's processes may take to end after its time limit.
const killGrace = 5 * time.Second

// groupRun is a deployment that a call of the module runs.
type groupRun struct {
	*modules.Call
	d     *Deployment
	paths Paths
	group string
	// live receives the output while the deployment runs.
	live *live
}

// nativeGroups are the groups that brine implements.
var nativeGroups = [...]struct {
	name string
	run  func(ctx context.Context, g *groupRun) (Result, error)
}{
	{"ansible", runAnsible}, {"apply-config", runApplyConfig}, {"cfn-init", runCFNInit}, {"chef", runChef}, {"docker-compose", runCompose}, {"hiera", runHiera},
	{"json-file", runJSONFile}, {"puppet", runPuppet}, {"salt", runSalt}, {"script", runScript},
}

// Groups returns the names of the groups that need no hook.
func Groups() []string {
	names := make([]string, len(nativeGroups))
	for i, g := range nativeGroups {
		names[i] = g.name
	}
	return names
}

// run runs the group of a deployment. An error becomes a failed result with the cause.
func (g *groupRun) run(ctx context.Context, prefer []string) Result {
	if slices.Contains(prefer, g.d.Group) {
		if path := g.findHook(g.d.Group); path != "" {
			return g.outcome(runHook(ctx, g, path))
		}
	}
	for _, n := range nativeGroups {
		if n.name == g.d.Group {
			g.group = n.name
			return g.outcome(n.run(ctx, g))
		}
	}
	path := g.findHook(g.d.Group)
	if path == "" {
		return failed("there is no hook for the group %q in %s", g.d.Group, strings.Join(g.paths.hookDirs(), " or "))
	}
	return g.outcome(runHook(ctx, g, path))
}

func (g *groupRun) outcome(r Result, err error) Result {
	if err != nil {
		f := failed("cannot run the group %s: %v", g.d.Group, err)
		maps.Copy(f, r) // keep what there is, such as the output of a stopped program
		return f
	}
	return r
}

// findHook returns the path of a group's hook, or "" if there is none. It ignores characters of the group's name
// other than letters, digits, - and _.
func (g *groupRun) findHook(group string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, group)
	for _, dir := range g.paths.hookDirs() {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && name != "" {
			return path
		}
	}
	return ""
}

// command runs a program in a directory and captures its output. All its processes are killed when ctx ends.
func (g *groupRun) command(ctx context.Context, limit int, c modules.Command) (stdout, stderr *capture, code int, err error) {
	stdout, stderr = newCapture(limit), newCapture(streamLimit)
	if g.live != nil {
		stdout.also, stderr.also = g.live.stream("stdout"), g.live.stream("stderr")
	}
	c.Stdout, c.Stderr, c.Grace = stdout, stderr, killGrace
	res, err := g.Cmd(ctx, c)
	if err != nil {
		return stdout, stderr, 1, err
	}
	return stdout, stderr, res.ExitCode, nil
}

// program runs a tool, and returns its output and exit code as a result. good are further exit codes that mean
// success.
func (g *groupRun) program(ctx context.Context, c modules.Command, good ...int) (Result, error) {
	stdout, stderr, code, err := g.command(ctx, streamLimit, c)
	if slices.Contains(good, code) {
		code = 0
	}
	r := Result{keyStdout: stdout.String(), keyStderr: stderr.String(), keyStatus: int64(code)}
	switch cause := context.Cause(ctx); {
	case cause != nil:
		r[keyStatus] = int64(1)
		if code != 0 {
			r[keyStatus] = int64(code)
		}
		r[keyStderr] = joinText(stderr.String(), stopText(cause))
	case err != nil:
		r[keyStatus] = int64(127)
		r[keyStderr] = joinText(stderr.String(), err.Error())
		if _, ok := errors.AsType[*modules.MissingCommandError](err); ok {
			r[keyStderr] = joinText(stderr.String(), fmt.Sprintf("%s is not installed", c.Args[0]))
		}
	}
	return r, nil
}

// stopText returns why a deployment was stopped.
func stopText(cause error) string {
	if errors.Is(cause, context.DeadlineExceeded) {
		return "stopped: the deployment took longer than its timeout"
	}
	return "stopped: " + cause.Error()
}

func joinText(a, b string) string {
	if a != "" && !strings.HasSuffix(a, "\n") {
		a += "\n"
	}
	return a + b
}

// prepare creates the directories of the group.
func (g *groupRun) prepare() (work, outputs string, err error) {
	work = g.paths.work(g.group)
	outputs = filepath.Join(g.paths.outputs(g.group), g.d.ID)
	for _, dir := range [...]string{work, filepath.Dir(outputs)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", "", err
		}
	}
	for _, name := range g.d.Outputs { // from an earlier run
		_ = os.Remove(outputs + "." + name)
	}
	return work, outputs, nil
}

// readOutputs adds the declared outputs that the program has written to $heat_outputs_path.<name>. Missing ones are
// left out: Heat regards the presence of an error output as a failure.
func (g *groupRun) readOutputs(r Result, outputs string) {
	for _, name := range g.d.Outputs {
		b, err := readLimited(outputs+"."+name, hookLimit)
		if err == nil {
			r[name] = pycodec.Replace(b)
		} else if !os.IsNotExist(err) {
			r[keyStderr] = joinText(fmt.Sprint(r[keyStderr]), fmt.Sprintf("cannot read the output %s: %v", name, err))
		}
	}
}

// environ returns the inputs as environment variables. It skips inputs whose names or values cannot be in a variable.
func (g *groupRun) environ(prefix string) []string {
	var env []string
	for _, in := range g.d.Inputs {
		value := asText(in.Value)
		if strings.ContainsAny(in.Name, "=\x00") || strings.ContainsRune(value, 0) {
			g.Logger().Warn("An input cannot be an environment variable", "deployment", g.d.ID, "input", in.Name)
			continue
		}
		env = append(env, prefix+in.Name+"="+value)
	}
	return env
}

// runScript runs the configuration as a program. Inputs are environment variables.
func runScript(ctx context.Context, g *groupRun) (Result, error) {
	work, outputs, err := g.prepare()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(work, g.d.ID)
	if err := atomicfile.WriteFile(path, []byte(g.d.ConfigText()), 0o700); err != nil {
		return nil, err
	}
	r, err := g.program(ctx, modules.Command{Args: []string{path}, Dir: work, Env: append(g.environ(""), "heat_outputs_path="+outputs)})
	if err != nil {
		return nil, err
	}
	if text := g.d.ConfigText(); r.Status() == 127 && !strings.HasPrefix(text, "#!") {
		r[keyStderr] = joinText(fmt.Sprint(r[keyStderr]), "the script has no first line that names its interpreter, such as #!/bin/sh")
	} else if r[keyStderr] == path+" is not installed" {
		r[keyStderr] = "cannot run the script: it, or the interpreter of its first line, is missing"
	}
	g.readOutputs(r, outputs)
	return r, nil
}

// runHook runs a hook program with the deployment as JSON on its standard input. A JSON object on standard output is
// the signal, whatever the exit code. Any other output is sent unchanged with the exit code.
func runHook(ctx context.Context, g *groupRun, path string) (Result, error) {
	c := modules.Command{Args: []string{path}, Stdin: strings.NewReader(string(encode(g.d.Raw))), Dir: "/"}
	stdout, stderr, code, err := g.command(ctx, hookLimit, c)
	raw := Result{keyStdout: stdout.String(), keyStderr: stderr.String(), keyStatus: int64(code)}
	if cause := context.Cause(ctx); cause != nil {
		raw[keyStatus] = int64(1)
		raw[keyStderr] = joinText(stderr.String(), stopText(cause))
		return raw, nil
	}
	if err != nil {
		return raw, err
	}
	if stdout.Dropped() > 0 || stdout.Total() == 0 {
		return raw, nil
	}
	v, err := pyjson.Parse([]byte(stdout.String()))
	r, ok := v.(map[string]any)
	if err != nil || !ok {
		return raw, nil
	}
	for _, name := range g.d.Outputs {
		if v, has := r[name]; has && v == nil { // heat-config-salt sends null for each missing output
			delete(r, name)
		}
	}
	return r, nil
}
