package heat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func init() {
	modules.Register(Module)
	modules.RegisterOptions("heat")
}

// Module is the execution module "heat".
var Module = &modules.Module{Name: "heat", Doc: "Run software deployments of OpenStack Heat, and signal it.", Funcs: []modules.Def{
	{Name: "collect", Doc: `Fetch the metadata from Heat, and return it.

deploy
    also run deployments that are new, and send the signals that wait`,
		Example: "salt '*' heat.collect", Params: []modules.Param{{Name: "deploy", Default: false, Type: modules.Bool}}, Run: runCollect},
	{Name: "hook", Doc: `Run a configuration as the software deployment of a group.

group
    ansible, apply-config, cfn-init, chef, docker-compose, hiera, json-file, puppet, salt, script, or that of a hook executable in
    /usr/libexec/heat-config/hooks or /var/lib/heat-config/hooks
` + deployDoc,
		Example: "salt '*' heat.hook group=ansible source=salt://site.yaml inputs='{port: 80}'", Params: append([]modules.Param{{Name: "group", Type: modules.String}}, deployParams[:]...), Run: runGroup},
	{Name: "output", Doc: `Set an output of the software deployment whose states call this.

name, value
    of the output, as the configuration declares it`,
		Example: "salt '*' heat.output address 10.0.0.5", Params: []modules.Param{{Name: "name", Type: modules.String}, {Name: "value"}}, Run: runOutput},
	{Name: "script", Doc: `Run a script as a software deployment: the inputs are its environment.
` + deployDoc,
		Example: "salt '*' heat.script source=salt://setup.sh inputs='{port: 80}' outputs='[address]'", Params: deployParams[:], Run: runGroup},
	{Name: "signal", Doc: `Signal a wait condition of Heat.

handle
    the attribute signal of the handle, as a map or JSON; its curl_cli; its token and endpoint as a map; or the address that
    get_resource gives. Nothing, and NO_SIGNAL, send nothing.
status
    SUCCESS or FAILURE
data, reason, id
    what the wait condition shows; a repeated id replaces a signal
attempts
    how often the signal is sent before it counts as lost`,
		Example: `salt '*' heat.signal "$HANDLE" data=up reason=booted`, Params: []modules.Param{{Name: "handle", Optional: true, Secret: true},
			{Name: "status", Default: "SUCCESS", Type: modules.String}, {Name: "data", Optional: true}, {Name: "reason", Default: "", Type: modules.String},
			{Name: "id", Default: "", Type: modules.String}, {Name: "attempts", Default: int64(5), Type: modules.Int}}, Run: runSignal},
	{Name: "status", Doc: "Tell what became of the software deployments of this host, and which signals wait.", Example: "salt '*' heat.status", Run: runStatus},
}}

var deployParams = [...]modules.Param{{Name: "config", Optional: true, Secret: true}, {Name: "source", Optional: true, Type: modules.String},
	{Name: "inputs", Optional: true, Secret: true}, {Name: "outputs", Optional: true}, {Name: "options", Optional: true},
	{Name: "name", Default: "", Type: modules.String}, {Name: "id", Default: "", Type: modules.String},
	{Name: "timeout", Optional: true, Type: modules.Float}, {Name: "creation_time", Default: "", Type: modules.String},
	{Name: "saltenv", Default: "base", Type: modules.String}}

const (
	deployDoc = `
config
    the configuration, as a text or a map
source
    a file that holds the configuration, such as salt://_order/<id>/config
inputs
    a map, or Heat's list of name, type and value
outputs
    names, or Heat's list with names, that the configuration may write as $heat_outputs_path.<name>
options
    the options of the configuration
name, id, creation_time
    of the deployment; the id is the job's, if it is not given
timeout
    seconds after which everything that was started is killed; 0 is no limit

The answer has deploy_stdout, deploy_stderr, deploy_status_code and the outputs that there are; the return code is the status code.
`
)

// deployment creates a deployment from a call's arguments.
func deployment(ctx context.Context, c *modules.Call) (*Deployment, error) {
	raw := map[string]any{"id": c.Str("id"), "name": c.Str("name"), "group": "script", "creation_time": c.Str("creation_time"),
		"config": c.Value("config"), "options": c.Value("options")}
	if strings.HasSuffix(c.Fun, ".hook") {
		raw["group"] = c.Str("group")
	}
	if raw["id"] == "" {
		raw["id"] = c.JID
	}
	if raw["id"] == "" {
		raw["id"] = fmt.Sprintf("call-%d", c.Now().UnixNano())
	}
	if raw["name"] == "" {
		raw["name"] = raw["id"]
	}
	if raw["options"] == nil {
		raw["options"] = map[string]any{}
	}
	if source := c.Str("source"); source != "" {
		text, err := readSource(ctx, c, source)
		if err != nil {
			return nil, err
		}
		raw["config"] = text
	}
	var err error
	if raw["inputs"], err = inputList(c.Value("inputs")); err != nil {
		return nil, err
	}
	if raw["outputs"], err = outputList(c.Value("outputs")); err != nil {
		return nil, err
	}
	d, err := NewDeployment(raw)
	if err != nil {
		return nil, modules.Usagef("%v", err)
	}
	return d, nil
}

func readSource(ctx context.Context, c *modules.Call, source string) (string, error) {
	if c.Files == nil {
		return "", modules.Errorf("cannot fetch %s: there is no file client", source)
	}
	path, err := c.Files.Cache(ctx, source, c.Str("saltenv"))
	if err != nil {
		return "", err
	}
	if path == "" {
		return "", modules.Errorf("there is no file %s", source)
	}
	b, err := readLimited(path, maxFile)
	return string(b), err
}

// inputList returns the inputs in Heat's form.
func inputList(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return []any{}, nil
	case []any:
		return v, nil
	case map[string]any:
		list := []any{}
		for name, value := range v {
			list = append(list, map[string]any{"name": name, "value": value})
		}
		return list, nil
	}
	return nil, modules.Usagef("inputs must be a dictionary or a list, not %s", pytext.Repr(v))
}

func outputList(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return []any{}, nil
	case string:
		return outputList([]any{v})
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			if name, ok := x.(string); ok {
				x = map[string]any{"name": name}
			}
			list[i] = x
		}
		return list, nil
	}
	return nil, modules.Usagef("outputs must be a list, not %s", pytext.Repr(v))
}

// settingsOf returns the option heat for a call.
func settingsOf(c *modules.Call) (Settings, error) {
	s, err := NewSettings(c.Config())
	if err != nil {
		return s, modules.Errorf("%v", err)
	}
	if c.Root != "" {
		s.Root = c.Root
	}
	return s, nil
}

// runGroup implements heat.hook and heat.script.
func runGroup(ctx context.Context, c *modules.Call) (any, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	d, err := deployment(ctx, c)
	if err != nil {
		return nil, err
	}
	limit := time.Duration(0)
	if c.Given("timeout") {
		if limit, err = c.Seconds("timeout"); err != nil {
			return nil, err
		}
	}
	g := &groupRun{Call: c, d: d, paths: s.Paths}
	g.live = newLive(d.ID, c.Progress)
	defer g.live.close()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var r Result
	switch err := d.resolve(); {
	case errors.Is(err, errNoTool):
		r = done()
	case err != nil:
		r = failed("%v", err)
	default:
		r = g.run(ctx, s.PreferHooks)
	}
	c.SetRetcode(r.Status())
	return map[string]any(trim(r, MaxSignal)), nil
}

func runOutput(_ context.Context, c *modules.Call) (any, error) {
	v, ok := c.Context().Get(outputsKey)
	outputs, _ := v.(map[string]any)
	if !ok || outputs == nil {
		return nil, modules.Errorf("there is no software deployment whose output this could be")
	}
	outputs[c.Str("name")] = c.Value("value")
	c.Context().Set(outputsKey, outputs)
	return true, nil
}

// runSignal sends the signal synchronously, so that the caller sees whether it was accepted.
func runSignal(ctx context.Context, c *modules.Call) (any, error) {
	h, err := ParseHandle(c.Value("handle"))
	if err != nil {
		return nil, modules.Usagef("%v", err)
	}
	status := strings.ToUpper(c.Str("status"))
	if status != "SUCCESS" && status != "FAILURE" {
		return nil, modules.Usagef("status must be SUCCESS or FAILURE, not %s", pytext.Repr(c.Value("status")))
	}
	attempts, err := c.Int("attempts")
	if err != nil {
		return nil, err
	}
	w := WaitSignal{Status: status, Reason: c.Str("reason"), ID: c.Str("id"), Data: jsonOrText(c.Value("data"))}
	s := newSignaler(&keystone{})
	n, err := retry(ctx, int(max(1, min(attempts, 100))), func() error {
		if h.Kind == "salt" {
			return fireSignal(ctx, c, h.Tag, w)
		}
		return s.signal(ctx, h, w)
	})
	if err != nil {
		c.SetRetcode(1)
		return map[string]any{"result": false, "transport": h.Kind, "attempts": int64(n), "comment": err.Error()}, nil
	}
	return map[string]any{"result": true, "transport": h.Kind, "attempts": int64(n), "comment": ""}, nil
}

// fireSignal sends a signal as an event to the minion's master.
func fireSignal(ctx context.Context, c *modules.Call, tag string, w WaitSignal) error {
	data, err := w.data()
	if err != nil {
		return err
	}
	sent, err := c.Exec(ctx, "event.send", tag, data)
	if err == nil && sent != true {
		err = errors.New("the master did not take the event")
	}
	return err
}

func runStatus(_ context.Context, c *modules.Call) (any, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return ReadStatus(s.Paths)
}

func runCollect(ctx context.Context, c *modules.Call) (any, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context, fun string, kwargs map[string]any) (any, error) {
		return c.ExecKw(ctx, fun, nil, kwargs)
	}
	e := New(Options{Settings: s, Log: c.Logger(), Call: run})
	docs, err := e.Once(ctx, c.Bool("deploy"))
	if err != nil {
		return nil, modules.Errorf("%v", err)
	}
	all := map[string]any{}
	for _, d := range docs {
		all[d.Name] = hide(d.Content)
	}
	return all, nil
}

// hidden replaces a secret.
const hidden = "**********"

// hide returns metadata without secrets: passwords, keys, and URLs with a signature.
func hide(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		name, _ := v["name"].(string)
		for k, x := range v {
			if _, text := x.(string); text && (secretName(k) || k == "value" && secretName(name)) {
				x = hidden
			}
			out[k] = hide(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = hide(x)
		}
		return out
	case string:
		if strings.Contains(v, "Signature=") || strings.Contains(v, "temp_url_sig=") {
			return plainURL(v)
		}
	}
	return v
}

func secretName(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "password") || strings.Contains(s, "secret") || s == "deploy_signal_id" || strings.HasSuffix(s, "token")
}

// parseJSON parses a state file, which is a JSON map.
func parseJSON(b []byte) map[string]any {
	v, err := pyjson.Parse(b)
	m, _ := v.(map[string]any)
	if err != nil {
		return nil
	}
	return m
}
