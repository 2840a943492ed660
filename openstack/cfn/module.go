package cfn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is the execution module "cfn".
var Module = &modules.Module{Name: "cfn", Doc: "Apply metadata of the kind AWS::CloudFormation::Init, and signal wait conditions of Heat.",
	Funcs: []modules.Def{
		{Name: "hup", Doc: `Look for changed metadata once, restart services that should run, and run the hooks of cfn-hup.

config
    the directory with the hooks`,
			Example: "salt '*' cfn.hup", Params: []modules.Param{{Name: "config", Default: hooksDir, Type: modules.String}}, Run: runHup},
		{Name: "init", Python: "init_", Doc: `Apply metadata of the kind AWS::CloudFormation::Init with Salt's states. The answer has result, steps, warnings, source and, after
a failure, failed; the return code is then 1.
` + sourceDoc + `test
    only tell what would be done`,
			Example: "salt '*' cfn.init stack=web resource=server credential_file=/etc/cfn/cfn-credentials", Params: append(append([]modules.Param{}, sourceParams[:]...), testParam), Ordered: true,
			Run: runInit},
		{Name: "signal", Doc: `Signal a wait condition. A signal that does not arrive is sent again, five times in all; failing that the return code is curl's.

url
    the address of the wait condition, or file:// and the path of a file with it
success, exit_code
    the status, or the exit code of a program that decides it
reason, data, id
    what Heat shows; the id is the server's, if it is not given
insecure
    accept any certificate`,
			Example: "salt '*' cfn.signal https://heat.example.org:8000/v1/waitcondition/... exit_code=0", Params: []modules.Param{{Name: "url", Type: modules.String, Secret: true},
				{Name: "success", Default: true, Type: modules.Bool}, {Name: "reason", Default: defaultReason, Type: modules.String},
				{Name: "data", Default: defaultData, Type: modules.String}, {Name: "id", Optional: true, Type: modules.String},
				{Name: "exit_code", Optional: true}, {Name: "insecure", Default: false, Type: modules.Bool}}, Run: runSignal},
		{Name: "to_sls", Doc: `Show the metadata that cfn.init would apply as an SLS file.
` + sourceDoc,
			Example: "salt '*' cfn.to_sls --out=newline_values_only", Params: sourceParams[:], Ordered: true, Run: runToSLS},
	}}

var testParam = modules.Param{Name: "test", Default: false, Type: modules.Bool}

var sourceParams = [...]modules.Param{{Name: "metadata", Optional: true, Secret: true}, {Name: "stack", Optional: true, Type: modules.String},
	{Name: "resource", Optional: true, Type: modules.String}, {Name: "access_key", Optional: true, Type: modules.String},
	{Name: "secret_key", Optional: true, Type: modules.String, Secret: true}, {Name: "credential_file", Optional: true, Type: modules.String},
	{Name: "url", Optional: true, Type: modules.String}, {Name: "configsets", Optional: true}, {Name: "cwd", Default: "/", Type: modules.String}}

const (
	sourceDoc = `
metadata
    the metadata, as a map or JSON; without it, it is fetched or read as cfn-init does
stack, resource
    the stack and its resource whose metadata is fetched
access_key, secret_key, credential_file
    the keys for the CFN API, or a file with them
url
    the CFN API; without it the host's files name it
configsets
    the configSets to apply, as a list or a text with commas
cwd
    where commands without a directory run
`

	defaultReason = "Configuration Complete"
	defaultData   = "Application has completed configuration."
)

// hostOf returns the host for a function of the module.
func hostOf(c *modules.Call, insecure bool) *host {
	return &host{path: c.Path, client: httpClient(insecure), now: c.Now, log: c.Logger()}
}

// compiled returns the states of the metadata that the arguments select.
func compiled(ctx context.Context, c *modules.Call) (*Compiled, *answer, error) {
	a, err := hostOf(c, false).retrieve(ctx, query{stack: c.Str("stack"), resource: c.Str("resource"), access: c.Str("access_key"),
		secret: c.Str("secret_key"), credentials: c.Str("credential_file"), url: c.Str("url"), given: c.Value("metadata")})
	if err != nil {
		return nil, nil, err
	}
	out, err := Compile(a.metadata, strings.Join(c.Strings("configsets"), ","), hostFacts(ctx, c))
	return out, a, err
}

// hostFacts returns the facts about the host for the compiler.
func hostFacts(ctx context.Context, c *modules.Call) Host {
	family, _ := c.Grain("os_family").(string)
	home := os.Getenv("HOME")
	if home == "" {
		home = "/root"
	}
	return Host{Family: family, CreateHome: loginDefs(c, "CREATE_HOME") == "yes", Dir: c.Str("cwd"), Home: home,
		Group: func(name string) bool {
			info, err := c.Exec(ctx, "group.info", name)
			return err == nil && pytext.Truth(info)
		}}
}

// loginDefs returns a setting in login.defs, or "".
func loginDefs(c *modules.Call, name string) string {
	b, err := readBounded(c.Path("/etc/login.defs"))
	if err != nil {
		return ""
	}
	value := ""
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) == 2 && f[0] == name {
			value = strings.ToLower(f[1])
		}
	}
	return value
}

func runInit(ctx context.Context, c *modules.Call) (any, error) {
	out, a, err := compiled(ctx, c)
	if err != nil {
		return nil, modules.Errorf("%v", err)
	}
	res := map[string]any{}
	if len(out.Steps) > 0 {
		ret, err := c.ExecKw(ctx, "state.high", []any{out.High}, map[string]any{"test": c.Bool("test"), "queue": true})
		if err != nil {
			return nil, err
		}
		var ok bool
		if res, ok = ret.(map[string]any); !ok {
			return nil, modules.Errorf("cannot apply the metadata: %s", pytext.Str(ret))
		}
	}
	report := out.report(res)
	report["source"] = a.source
	if c.SetRetcode(0); report["result"] == false {
		c.SetRetcode(1)
	}
	return report, nil
}

func runToSLS(ctx context.Context, c *modules.Call) (any, error) {
	out, _, err := compiled(ctx, c)
	if err != nil {
		return nil, modules.Errorf("%v", err)
	}
	for _, w := range out.Warnings {
		c.Logger().Warn(w)
	}
	return out.SLS()
}

// report returns the result of cfn.init, with the outcome of each step in order.
func (c *Compiled) report(results map[string]any) map[string]any {
	byID := map[string]map[string]any{}
	for _, v := range results {
		if r, ok := v.(map[string]any); ok {
			byID[pytext.Str(r["__id__"])] = r
		}
	}
	good, steps, warnings := true, []any{}, []any{}
	report := map[string]any{}
	for _, s := range c.Steps {
		step := map[string]any{"id": s.ID, "config": s.Config, "section": s.Section, "name": s.Name}
		r := byID[s.ID]
		if r == nil {
			r = map[string]any{"result": false, "comment": "The step did not run."}
		}
		for _, key := range [...]string{"result", "comment", "changes", "duration"} {
			if v, ok := r[key]; ok {
				step[key] = v
			}
		}
		if r["result"] == false {
			if good {
				report["failed"] = s.Section + " " + s.Name + ": " + cause(r)
			}
			good = false
		}
		steps = append(steps, step)
	}
	for _, w := range c.Warnings {
		warnings = append(warnings, w)
	}
	maps.Copy(report, map[string]any{"result": good, "steps": steps, "warnings": warnings})
	return report
}

// cause returns the outcome of a step. For a failed step it is the comment and its command's standard error.
func cause(r map[string]any) string {
	text := shorten(pytext.Str(r["comment"]), 1000)
	changes, ok := r["changes"].(map[string]any)
	if text == "" && len(changes) > 0 {
		text = "changed"
	}
	if ok {
		if code, ok := changes["retcode"]; ok {
			text += " (exit status " + pytext.Str(code) + ")"
		}
		if stderr, _ := changes["stderr"].(string); stderr != "" {
			text += ": " + shorten(stderr, 1000)
		}
	}
	return text
}

func runSignal(ctx context.Context, c *modules.Call) (any, error) {
	s := Signal{URL: c.Str("url"), Success: c.Bool("success"), Reason: c.Str("reason"), Data: c.Str("data"), ID: c.Str("id"),
		Insecure: c.Bool("insecure")}
	if c.Value("exit_code") != nil {
		s.Success = c.Str("exit_code") == "0"
	}
	err := hostOf(c, s.Insecure).send(ctx, s)
	var failed *signalError
	if errors.As(err, &failed) {
		c.SetRetcode(failed.code)
		return map[string]any{"result": false, "comment": err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"result": true, "comment": "The signal was sent."}, nil
}
