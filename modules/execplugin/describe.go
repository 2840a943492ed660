package execplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/jsonschema"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/modules"
)

// Protocol is the version of the protocol that is spoken.
const Protocol = 1

// Limits of what a program may say about itself.
const (
	describeTimeout = 20 * time.Second
	maxDescription  = 4 << 20
	maxFunctions    = 2000
	maxParams       = 200
)

// Description is the output of "program describe".
type Description struct {
	// Protocol is the version of the protocol, 1.
	Protocol int `json:"protocol"`
	// Doc describes the module.
	Doc string `json:"doc,omitempty"`
	// Available reports whether the module suits the host, Reason why not. Salt's __virtual__.
	Available *bool  `json:"available,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// Functions by name.
	Functions map[string]Function `json:"functions"`
}

// Function is one function of a program.
type Function struct {
	// Doc is the text for sys.doc.
	Doc string `json:"doc,omitempty"`
	// Python is the name that error texts have, where it differs.
	Python string `json:"python,omitempty"`
	// Params are the named parameters in order, each the JSON Schema of its value, with the further fields name, default,
	// optional, keyword_only and secret.
	Params []json.RawMessage `json:"params,omitempty"`
	// Args and Kwargs name the parameters for further positional and keyword arguments; "" takes none.
	Args   string `json:"args,omitempty"`
	Kwargs string `json:"kwargs,omitempty"`
	// Out is the outputter.
	Out string `json:"out,omitempty"`
	// Timeout ends a call after this many seconds; 0 means no limit.
	Timeout float64 `json:"timeout,omitempty"`
	// Messages means that the function uses the protocol of messages.
	Messages bool `json:"messages,omitempty"`
	// Examples are calls that do no harm on any host, for the documentation and for package conformance.
	Examples []Example `json:"examples,omitempty"`
}

// Example is a call and what comes of it.
type Example struct {
	// Args are positional arguments, Kwargs named ones.
	Args   []any          `json:"args,omitempty"`
	Kwargs map[string]any `json:"kwargs,omitempty"`
	// Return is the result; nothing means that any will do.
	Return json.RawMessage `json:"return,omitempty"`
	// Retcode is the return code, Error a part of the text of the error that the call ends with.
	Retcode int    `json:"retcode,omitempty"`
	Error   string `json:"error,omitempty"`
	// Cancel ends the call after its first progress message or line of the log.
	Cancel bool `json:"cancel,omitempty"`
}

// function is a function that can be called.
type function struct {
	name     string
	params   []param
	timeout  time.Duration
	messages bool
}

type param struct {
	name   string
	secret bool
	schema *jsonschema.Schema
}

// ParseDescription reads and checks what a program printed, as the module of the given name.
func ParseDescription(b []byte, name string) (*modules.Module, error) {
	m, _, err := parseDescription(b, name)
	return m, err
}

func parseDescription(b []byte, name string) (*modules.Module, []function, error) {
	if _, err := pyjson.Parse(b); err != nil { // bounds the nesting
		return nil, nil, err
	}
	var d Description
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return nil, nil, fmt.Errorf("cannot read the description: %w", err)
	}
	switch {
	case d.Protocol != Protocol:
		return nil, nil, fmt.Errorf("protocol %d is not spoken here, only %d", d.Protocol, Protocol)
	case len(d.Functions) > maxFunctions:
		return nil, nil, fmt.Errorf("more than %d functions", maxFunctions)
	}
	m := &modules.Module{Name: name, Doc: d.Doc}
	if d.Available != nil && !*d.Available {
		reason := d.Reason
		m.Available = func(*modules.Env) (bool, string) { return false, reason }
	}
	var funs []function
	for _, fun := range slices.Sorted(maps.Keys(d.Functions)) {
		def, f, err := d.Functions[fun].read(fun)
		if err != nil {
			return nil, nil, fmt.Errorf("function %q: %w", fun, err)
		}
		m.Funcs = append(m.Funcs, def)
		funs = append(funs, f)
	}
	return m, funs, nil
}

func (f Function) read(name string) (modules.Def, function, error) {
	def := modules.Def{Name: name, Python: f.Python, Doc: f.Doc, Args: f.Args, Kwargs: f.Kwargs, Out: f.Out}
	fun := function{name: name, messages: f.Messages, timeout: time.Duration(f.Timeout * float64(time.Second))}
	switch {
	case !identifier(name):
		return def, fun, errors.New("this is no name of a function")
	case len(f.Params) > maxParams:
		return def, fun, fmt.Errorf("more than %d parameters", maxParams)
	case f.Timeout < 0 || math.IsNaN(f.Timeout) || f.Timeout > 1e9:
		return def, fun, fmt.Errorf("timeout: %v seconds make no sense", f.Timeout)
	}
	seen := map[string]bool{f.Args: true, f.Kwargs: true} // "" is no name of a parameter in any case
	optional := false
	for i, raw := range f.Params {
		p, own, err := readParam(raw)
		if err != nil {
			return def, fun, fmt.Errorf("parameter %d: %w", i+1, err)
		}
		switch {
		case seen[p.Name]:
			return def, fun, fmt.Errorf("parameter %q is there twice", p.Name)
		case !p.KeywordOnly && optional && p.Required():
			return def, fun, fmt.Errorf("parameter %q is required and stands after one that is not", p.Name)
		}
		seen[p.Name] = true
		optional = optional || !p.KeywordOnly && !p.Required()
		def.Params = append(def.Params, p)
		fun.params = append(fun.params, own)
	}
	return def, fun, nil
}

func readParam(raw []byte) (p modules.Param, own param, err error) {
	v, err := pyjson.Parse(raw)
	if err != nil {
		return p, own, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return p, own, errors.New("not an object")
	}
	p.Name, _ = m["name"].(string)
	if !identifier(strings.TrimLeft(p.Name, "_")) {
		return p, own, fmt.Errorf("%q is no name of a parameter", p.Name)
	}
	for _, flag := range []struct {
		name string
		to   *bool
	}{{"optional", &p.Optional}, {"keyword_only", &p.KeywordOnly}, {"secret", &p.Secret}} {
		v, given := m[flag.name]
		if *flag.to, ok = v.(bool); given && !ok {
			return p, own, fmt.Errorf("%s: neither true nor false", flag.name)
		}
	}
	def, given := m["default"]
	p.Default, p.Optional = def, p.Optional || given && def == nil
	p.Type = typeOf(m["type"])
	for _, k := range []string{"name", "default", "optional", "keyword_only", "secret"} {
		delete(m, k)
	}
	if own.schema, err = jsonschema.Compile(m); err != nil {
		return p, own, err
	}
	if given && def != nil {
		if err := own.schema.Check(def, "default", p.Secret); err != nil {
			return p, own, err
		}
	}
	own.name, own.secret = p.Name, p.Secret
	if len(m) > 0 {
		p.Schema = m
	}
	return p, own, nil
}

func typeOf(v any) modules.Type {
	switch v {
	case "string":
		return modules.String
	case "integer":
		return modules.Int
	case "number":
		return modules.Float
	case "boolean":
		return modules.Bool
	case "array":
		return modules.List
	case "object":
		return modules.Map
	}
	return modules.Any
}

// program is an executable file and what it said about itself.
type program struct {
	path, name string
	anyone     bool // it is run whoever may change it

	mu   sync.Mutex      // held while the program describes itself
	id   identity        // guarded by mu
	mod  *modules.Module // guarded by mu; nil until it was asked
	good bool            // guarded by mu
	at   time.Time       // guarded by mu; when it was asked
	why  string          // guarded by mu; why it was not even asked
}

// retry is how long a program that could not describe itself is left alone.
const retry = time.Minute

// module returns the program as a module. If the program cannot be used, the module is not available and gives the
// reason.
func (p *program) module(e *modules.Env) *modules.Module {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, err := p.check()
	if err != nil {
		if p.why != err.Error() {
			p.refuse(e, err)
		}
		return p.mod
	}
	if p.mod != nil && p.id == id && (p.good || p.why == "" && time.Since(p.at) < retry) {
		return p.mod
	}
	m, err := p.describe(e)
	if p.id, p.at, p.good, p.mod = id, time.Now(), err == nil, m; err != nil {
		p.refuse(e, err)
		p.why = ""
	}
	return p.mod
}

// refuse makes the module one that is not available. The caller holds mu.
func (p *program) refuse(e *modules.Env, err error) {
	e.Logger().Warn(fmt.Sprintf("The module %s cannot be used: %v", p.name, err))
	p.good, p.why, p.mod = false, err.Error(), unusable(p.name, p.path, err)
}

// Load creates a module from one program, without checking who may change it. It is for tests of the program.
func Load(e *modules.Env, path string) (*modules.Module, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p := &program{path: path, name: programName(path, false), anyone: true}
	if p.name == "" {
		return nil, fmt.Errorf("%s is no name for a module", filepath.Base(path))
	}
	if _, err := p.check(); err != nil {
		return nil, err
	}
	return p.describe(e)
}

// unusable returns a module that is not available, with the reason.
func unusable(name, path string, err error) *modules.Module {
	reason := fmt.Sprintf("cannot use %s: %v", path, err)
	return &modules.Module{Name: name, Available: func(*modules.Env) (bool, string) { return false, reason }}
}

// check looks whether the file may be run.
func (p *program) check() (identity, error) {
	info, err := os.Stat(p.path)
	if err != nil {
		return identity{}, err
	}
	id := identify(info)
	if !p.anyone {
		err = trusted(p.path)
	}
	switch {
	case err != nil:
		return id, err
	case !info.Mode().IsRegular():
		return id, errors.New("it is not a regular file")
	case info.Mode()&0o111 == 0:
		return id, errors.New("it is not executable")
	}
	return id, nil
}

func (p *program) describe(e *modules.Env) (*modules.Module, error) {
	log := &logger{log: e.Logger(), attrs: []any{"module", p.name}}
	res, err := output(context.Background(), e.Cmd, modules.Command{Args: []string{p.path, "describe"}, Dir: "/",
		Timeout: describeTimeout, Grace: grace, Stderr: log}, maxDescription)
	log.end()
	switch {
	case err != nil:
		return nil, err
	case res.TimedOut:
		return nil, fmt.Errorf("it did not describe itself within %v", describeTimeout)
	case res.ExitCode != 0:
		return nil, fmt.Errorf("describe ended with exit status %d%s", res.ExitCode, log.because())
	}
	m, funs, err := parseDescription(res.Stdout, p.name)
	if err != nil {
		return nil, err
	}
	for i := range m.Funcs {
		f := &funs[i]
		m.Funcs[i].Run = func(ctx context.Context, c *modules.Call) (any, error) { return p.call(ctx, c, f) }
	}
	return m, nil
}

var _ io.Writer = (*logger)(nil)
