package cfn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Env is the environment of the programs. cfn-init and cfn-hup need Call; all other fields are optional.
type Env struct {
	// Context ends the program. nil means that it is never ended.
	Context context.Context
	// Stdout and Stderr default to the process's streams.
	Stdout, Stderr io.Writer
	// Root is prepended to every path of the host, for tests. "" means the real host.
	Root string
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
	// Client sends the requests of cfn-signal and cfn-get-metadata; nil means a client with a timeout.
	Client *http.Client
	// Call runs an execution function without a master, like minion.Minion.Call with Local.
	Call func(ctx context.Context, fun string, kwargs map[string]any) (modules.Result, error)
}

// Programs returns the names that [Main] supports.
func Programs() []string { return []string{"cfn-init", "cfn-hup", "cfn-signal", "cfn-get-metadata"} }

// Main runs a program of heat-cfntools and returns its exit code. args do not include its name. An agent calls it if
// the base name of its first argument is in [Programs].
func Main(name string, args []string, env Env) int {
	p := newProgram(name, env)
	if !slices.Contains(Programs(), name) {
		fmt.Fprintf(p.env.Stderr, "%s: no such program; there are %s\n", name, strings.Join(Programs(), ", "))
		return 2
	}
	spec := specs(name)
	v, help, err := spec.parse(args)
	if help {
		fmt.Fprint(p.env.Stdout, spec.helpText())
		return 0
	}
	if err != nil {
		fmt.Fprintf(p.env.Stderr, "%s%s: error: %v\n", spec.usage(), name, err)
		return 2
	}
	if err := p.openLog(v); err != nil {
		fmt.Fprintf(p.env.Stderr, "%s: %v\n", name, err)
		return 1
	}
	defer p.logFile.Close()
	switch name {
	case "cfn-init":
		return p.init(v)
	case "cfn-hup":
		return p.hup(v)
	case "cfn-signal":
		return p.signal(v)
	}
	return p.getMetadata(v)
}

// program is a running program.
type program struct {
	name    string
	env     Env
	log     *slog.Logger
	logFile *os.File
	host    *host
}

func newProgram(name string, env Env) *program {
	if env.Context == nil {
		env.Context = context.Background()
	}
	if env.Stdout == nil {
		env.Stdout = os.Stdout
	}
	if env.Stderr == nil {
		env.Stderr = os.Stderr
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	return &program{name: name, env: env}
}

func (p *program) path(name string) string {
	if p.env.Root == "" {
		return name
	}
	return filepath.Join(p.env.Root, name)
}

// openLog opens /var/log/<program>.log, where heat-cfntools logs.
func (p *program) openLog(v parsed) error {
	name := p.path("/var/log/" + p.name + ".log")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("cannot open the log: %w", err)
	}
	level := slog.LevelDebug
	if p.name == "cfn-hup" && v["verbose"] == "" {
		level = slog.LevelInfo
	}
	p.logFile, p.log = f, slog.New(&lineHandler{out: f, level: level, now: p.env.Now})
	client := p.env.Client
	if client == nil {
		client = httpClient(v["insecure"] != "")
	}
	p.host = &host{path: p.path, client: client, now: p.env.Now, log: p.log}
	return nil
}

// fail logs and prints an error.
func (p *program) fail(code int, text string) int {
	p.log.Error(text)
	fmt.Fprintf(p.env.Stderr, "%s: %s\n", p.name, text)
	return code
}

// call runs a function of the module. If it fails, call has reported that, and res is nil.
func (p *program) call(fun string, kwargs map[string]any) (res map[string]any, code int) {
	if p.env.Call == nil {
		return nil, p.fail(1, "this program cannot run "+fun)
	}
	r, err := p.env.Call(p.env.Context, fun, kwargs)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return nil, p.fail(1, err.Error())
	}
	res, ok := r.Return.(map[string]any)
	if !ok {
		return nil, p.fail(1, pytext.Str(r.Return))
	}
	return res, 0
}

func (p *program) init(v parsed) int {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	kwargs := map[string]any{"cwd": dir}
	for from, to := range map[string]string{"stack": "stack", "resource": "resource", "access-key": "access_key",
		"secret-key": "secret_key", "configsets": "configsets"} {
		if s, ok := v[from]; ok {
			kwargs[to] = s
		}
	}
	res, code := p.call("cfn.init", kwargs)
	if res == nil {
		return code
	}
	warnings, _ := res["warnings"].([]any)
	for _, w := range warnings {
		p.log.Warn(pytext.Str(w))
	}
	steps, _ := res["steps"].([]any)
	for _, s := range steps {
		p.logStep(s)
	}
	if res["result"] != true {
		return p.fail(1, pytext.Str(res["failed"]))
	}
	p.log.Info(fmt.Sprintf("All %d steps succeeded", len(steps)))
	return 0
}

// logStep logs the outcome of a step.
func (p *program) logStep(v any) {
	s, _ := v.(map[string]any)
	text := fmt.Sprintf("%s %s %s: %s", pytext.Str(s["config"]), pytext.Str(s["section"]), pytext.Str(s["name"]), cause(s))
	if s["result"] == false {
		p.log.Error(text)
		return
	}
	p.log.Info(text)
}

// hup checks once, as cfn-hup of heat-cfntools does with all its options, or repeatedly with --daemon.
func (p *program) hup(v parsed) int {
	for {
		code, pause := p.hupOnce(v)
		if v["daemon"] == "" {
			return code
		}
		if pause == 0 {
			pause = defaultInterval * time.Minute
		}
		select {
		case <-p.env.Context.Done():
			return 0
		case <-time.After(pause):
		}
	}
}

func (p *program) hupOnce(v parsed) (code int, pause time.Duration) {
	res, code := p.call("cfn.hup", map[string]any{"config": v["config"]})
	if res == nil {
		return code, 0
	}
	done, _ := res["actions"].([]any)
	for _, x := range done {
		a, _ := x.(map[string]any)
		text := "event " + pytext.Str(a["event"])
		for _, key := range [...]string{"hook", "service", "comment", "stdout", "stderr"} {
			if s := pytext.Str(a[key]); a[key] != nil && s != "" {
				text += ", " + key + ": " + shorten(s, 1000)
			}
		}
		if a["result"] == true {
			p.log.Info(text)
			continue
		}
		p.fail(1, text)
	}
	if minutes, ok := res["interval"].(int64); ok {
		pause = time.Duration(minutes) * time.Minute
	}
	if res["result"] != true {
		return 1, pause
	}
	return 0, pause
}

func (p *program) signal(v parsed) int {
	s := Signal{URL: v["url"], Success: v["success"] == "true", Reason: v["reason"], Data: v["data"], ID: v["id"],
		Insecure: v["insecure"] != ""}
	code := v["exit-code"]
	if code == "" {
		if code = v["exit"]; code != "" {
			p.log.Warn("--exit is deprecated: use -e or --exit-code")
		}
	}
	if code != "" {
		s.Success = code == "0"
	}
	err := p.host.send(p.env.Context, s)
	var failed *signalError
	switch {
	case err == nil:
		p.log.Info("The signal was sent")
		return 0
	case errors.As(err, &failed):
		return p.fail(failed.code, err.Error())
	}
	return p.fail(1, err.Error())
}

func (p *program) getMetadata(v parsed) int {
	for _, required := range [...][2]string{{"stack", "Stack name"}, {"resource", "Resource ID"}} {
		if v[required[0]] == "" {
			fmt.Fprintf(p.env.Stdout, "The %s must not be empty\n", required[1])
			return 1
		}
	}
	a, err := p.host.retrieve(p.env.Context, query{stack: v["stack"], resource: v["resource"], access: v["access-key"],
		secret: v["secret-key"], credentials: v["credential-file"], url: v["url"]})
	if errors.Is(err, errNoMetadata) {
		p.fail(0, err.Error())
		return 0
	}
	if err != nil {
		return p.fail(1, err.Error())
	}
	found := any(a.metadata)
	if key, ok := v["key"]; ok {
		if found, ok = keyOf(a.metadata, key); !ok {
			return 0
		}
	}
	text, err := pyjson.Format(found, pyjson.Options{Indent: -1, ASCII: true})
	if err != nil {
		return p.fail(1, err.Error())
	}
	fmt.Fprintln(p.env.Stdout, text)
	return 0
}

// keyOf returns the value for a key such as a.b or a.'b.c'. As in heat-cfntools, null counts as not found.
func keyOf(v any, key string) (any, bool) {
	n := node{"", v}
	for key != "" {
		var name string
		if strings.HasPrefix(key, "'") {
			end := strings.Index(key[1:], "'")
			if end < 1 {
				return nil, false
			}
			name, key = key[1:1+end], key[2+end:]
			if key != "" && !strings.HasPrefix(key, ".") {
				return nil, false
			}
			key = strings.TrimPrefix(key, ".")
		} else {
			name, key, _ = strings.Cut(key, ".")
		}
		next, ok := n.child(name)
		if !ok {
			return nil, false
		}
		n = next
	}
	return n.v, n.v != nil
}
