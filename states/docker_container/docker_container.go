// Package docker_container is Salt's state module "docker_container": containers of a Docker daemon (salt/states/docker_container.py).
// It works through the execution module docker.
package docker_container

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

const configDoc = `
The further arguments are those of docker.create.
`

// Module is Salt's "docker_container".
var Module = &states.Module{Name: "docker_container", Doc: "Containers of Docker.", Needs: "docker.version", Funcs: []states.Def{
	{Name: "absent", Doc: "Have no such container.\n\nname\n    the container\nforce\n    whether to remove one that runs\n", Params: []modules.Param{
		{Name: "name"}, {Name: "force", Default: false},
	}, Run: absent},
	{Name: "mod_watch", Doc: "Run running, run or stopped again, since something that the state watches has changed.\n", Params: []modules.Param{
		{Name: "name"}, {Name: "sfun", Optional: true},
	}, Kwargs: "kwargs", Run: watched},
	{Name: "run", Doc: `Run a container to its end.

name, image
    the container and its image
bg
    whether to start it only
failhard
    whether the state fails with a return code other than 0
replace, force
    whether to remove a container of that name before, even one that runs
` + configDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "image", Optional: true}, {Name: "bg", Default: false}, {Name: "failhard", Default: true}, {Name: "replace", Default: false},
		{Name: "force", Default: false}, {Name: "skip_translate", Optional: true}, {Name: "ignore_collisions", Default: false},
		{Name: "validate_ip_addrs", Default: true}, {Name: "client_timeout", Default: int64(60)},
	}, Kwargs: "kwargs", Run: run},
	{Name: "running", Doc: `Have a container with an image and a configuration that runs. One that differs is replaced.

name, image
    the container and its image
force
    whether to replace it in any case
watch_action
    force, to replace it when something that it watches has changed, or a signal to send
start
    whether it has to run
shutdown_timeout
    how many seconds it has to end when it is replaced
networks
    the networks to connect it to
` + configDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "image", Optional: true}, {Name: "skip_translate", Optional: true}, {Name: "ignore_collisions", Default: false},
		{Name: "validate_ip_addrs", Default: true}, {Name: "force", Default: false}, {Name: "watch_action", Default: "force"}, {Name: "start", Default: true},
		{Name: "shutdown_timeout", Optional: true}, {Name: "client_timeout", Default: int64(60)}, {Name: "networks", Optional: true},
	}, Kwargs: "kwargs", Run: running},
	{Name: "stopped", Doc: `Have containers that do not run.

name, containers
    the container, or a list of them
shutdown_timeout
    how many seconds they have to end
unpause
    whether to stop paused ones, too
error_on_absent
    whether the state fails if there is no such container
`, Params: []modules.Param{
		{Name: "name", Optional: true}, {Name: "containers", Optional: true}, {Name: "shutdown_timeout", Optional: true},
		{Name: "unpause", Default: false}, {Name: "error_on_absent", Default: true},
	}, Kwargs: "kwargs", Run: stopped},
}}

type dict = map[string]any

func get(m dict, key string) dict { v, _ := m[key].(dict); return v }

// job is one run of a state.
type job struct {
	*states.Call
	ctx      context.Context
	ret      *states.Result
	comments []string
}

func begin(ctx context.Context, c *states.Call) *job { return &job{Call: c, ctx: ctx, ret: c.Result()} }

// call calls a function of the module docker.
func (j *job) call(fun string, args ...any) (any, error) {
	return j.Exec(j.ctx, "docker."+fun, args...)
}

func (j *job) dict(fun string, args ...any) (dict, error) {
	v, err := j.call(fun, args...)
	m, _ := v.(dict)
	return m, err
}

func (j *job) say(text string) { j.comments = append(j.comments, text) }

// end returns the result with the collected comments.
func (j *job) end(o states.Outcome) (*states.Result, error) {
	text := strings.Join(j.comments, ". ")
	if len(j.comments) > 1 {
		text += "."
	}
	return j.ret.As(o, text)
}

// fail ends the state with the text of an error; one that Salt does not catch goes on.
func (j *job) fail(err error) (*states.Result, error) {
	if !modules.IsExecError(err) {
		return nil, err
	}
	j.say(err.Error())
	return j.end(states.False)
}

// network is one to connect a container to, and how.
type network struct {
	name string
	conf dict
}

// splitInput returns the elements of a list, or the parts of a text between commas (salt.utils.args split_input).
func splitInput(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	var out []any
	for s := range strings.SplitSeq(pytext.Str(v), ",") {
		out = append(out, pytext.Strip(s))
	}
	return out
}

// networks reads the argument of that name (_parse_networks). Errors whose info is a list are comments.
func (j *job) networks(v any) ([]network, error) {
	if !pytext.Truth(v) {
		return nil, nil
	}
	parsed, ok := nested.Repack(pyobj.From(splitInput(v)))
	if !ok || parsed.Len() == 0 {
		return nil, modules.Errorf("Invalid network configuration (see documentation)")
	}
	var out []network
	missing := []any{}
	for k, v := range parsed.All() {
		n := network{pyobj.Str(k), dict{}}
		if v != nil {
			conf, ok := nested.Repack(v)
			if !ok || conf.Len() == 0 {
				return nil, modules.Errorf("Invalid configuration for network '%s' (see documentation)", n.name)
			}
			n.conf = pyobj.PlainMap(conf)
			for k := range conf.All() {
				key := pyobj.Str(k)
				if key == "links" || key == "aliases" {
					n.conf[key] = splitInput(n.conf[key])
				} else if n.conf[key] == nil {
					missing = append(missing, "Config option '"+key+"' for network '"+n.name+"' is missing a value")
				}
			}
		}
		out = append(out, n)
	}
	if len(missing) > 0 {
		return nil, saltcmd.Problem("Invalid network configuration", missing)
	}
	return out, j.present(out)
}

// present refuses networks that are not there.
func (j *job) present(list []network) error {
	v, err := j.call("networks")
	if err != nil {
		if modules.IsExecError(err) {
			err = modules.Errorf("Failed to get list of existing networks: %s.", err)
		}
		return err
	}
	known := map[any]bool{}
	all, _ := v.([]any)
	for _, x := range all {
		m, _ := x.(dict)
		known[m["Name"]] = true
	}
	absent := map[string]bool{}
	for _, n := range list {
		if !known[n.name] {
			absent[n.name] = true
		}
	}
	if len(absent) == 0 {
		return nil
	}
	return modules.Errorf("The following networks are not present: %s", strings.Join(keys(absent), ", "))
}

// resolve returns the id of the image. It pulls the image if that is missing, except in test mode, where it returns
// False.
func (j *job) resolve(image string) (any, error) {
	id, err := j.call("resolve_image_id", image)
	if err != nil || id != false || j.Test() {
		return id, err
	}
	pulled, err := j.ExecKw(j.ctx, "docker.pull", []any{image}, dict{"client_timeout": j.Value("client_timeout")})
	if err != nil {
		return nil, modules.Errorf("Failed to pull %s: %s", image, modules.ExceptionText(err))
	}
	j.ret.Changes["image"] = pulled
	if id, err = j.call("resolve_image_id", image); err == nil && id == false {
		err = modules.Errorf("Image '%s' not present despite a docker pull raising no errors", image)
	}
	return id, err
}

// prepare reads the networks and resolves the image. over is the result of a state that ends here.
func (j *job) prepare(image, nets any) (list []network, id any, over *states.Result, err error) {
	if list, err = j.networks(nets); err == nil {
		id, err = j.resolve(pytext.Str(image))
	}
	if err == nil {
		return list, id, nil, nil
	}
	if lines := infoLines(err); lines != nil {
		j.comments = lines
		over, err = j.end(states.False)
		return nil, nil, over, err
	}
	over, err = j.fail(err)
	return nil, nil, over, err
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := begin(ctx, c)
	there, err := j.exists()
	if err != nil {
		return nil, err
	}
	if !there {
		return j.ret.As(states.True, "Container '"+c.Name()+"' does not exist")
	}
	before, err := j.call("state", c.Value("name"))
	switch {
	case err != nil:
		return nil, err
	case before != "stopped" && !c.Bool("force"):
		return j.ret.As(states.False, "Container is running, set force to True to forcibly remove it")
	case c.Test():
		return j.ret.As(states.None, "Container '"+c.Name()+"' will be removed")
	}
	removed, err := c.ExecKw(ctx, "docker.rm", []any{c.Value("name")}, dict{"force": c.Value("force")})
	if err != nil {
		return j.ret.As(states.False, "Failed to remove container '"+c.Name()+"': "+modules.ExceptionText(err))
	}
	j.ret.Changes["removed"] = removed
	if there, err = j.exists(); err != nil {
		return nil, err
	}
	switch {
	case there:
		return j.ret.As(states.False, "Failed to remove container '"+c.Name()+"'")
	case before != "stopped":
		return j.ret.As(states.True, "Forcibly removed container '"+c.Name()+"'")
	}
	return j.ret.As(states.True, "Successfully removed container '"+c.Name()+"'")
}

// exists reports whether there is a container with the state's name.
func (j *job) exists() (bool, error) {
	v, err := j.ExecKw(j.ctx, "docker.list_containers", nil, dict{"all": true})
	list, _ := v.([]any)
	for _, x := range list {
		if x == j.Value("name") {
			return true, nil
		}
	}
	return false, err
}

func stopped(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := begin(ctx, c)
	targets := []any{c.Value("name")}
	if v := c.Value("containers"); v != nil {
		list, ok := v.([]any)
		if !ok && pytext.Truth(v) || !ok && c.Bool("name") {
			return j.ret.As(states.False, "containers must be a list")
		}
		targets = list
	}
	if !c.Bool("name") && !c.Bool("containers") {
		return j.ret.As(states.False, "One of 'name' and 'containers' must be provided")
	}
	by := map[any][]string{}
	for _, x := range targets {
		name := pytext.Str(x)
		s, err := j.call("state", name)
		if err != nil {
			if !modules.IsExecError(err) {
				return nil, err
			}
			s = "absent"
		}
		by[s] = append(by[s], name)
	}
	var problems []string
	if c.Bool("error_on_absent") && by["absent"] != nil {
		problems = append(problems, "The following container(s) are absent: "+strings.Join(by["absent"], ", "))
	}
	if !c.Bool("unpause") && by["paused"] != nil {
		problems = append(problems, "The following container(s) are paused: "+strings.Join(by["paused"], ", "))
	}
	if problems != nil {
		return j.ret.As(states.False, strings.Join(problems, ". "))
	}
	stop := append(by["running"], by["paused"]...)
	all := strings.Join(stop, ", ")
	switch {
	case len(stop) == 0:
		comment := "All specified containers are "
		if len(targets) == 1 {
			comment = "Container '" + pytext.Str(targets[0]) + "' is "
		}
		if by["absent"] != nil {
			comment += "absent or "
		}
		return j.ret.As(states.True, comment+"not running")
	case c.Test():
		return j.ret.As(states.None, "The following container(s) will be stopped: "+all)
	}
	kw := dict{"unpause": c.Value("unpause")}
	if v := c.Value("shutdown_timeout"); pytext.Truth(v) {
		kw["timeout"] = v
	}
	for _, name := range stop {
		v, err := c.ExecKw(ctx, "docker.stop", []any{name}, kw)
		if err != nil {
			return nil, err
		}
		changes, _ := v.(dict)
		if changes["result"] == true {
			j.ret.Changes[name] = changes
		} else if text, ok := changes["comment"].(string); ok {
			problems = append(problems, text)
		} else {
			problems = append(problems, "Failed to stop container '"+name+"'")
		}
	}
	if problems != nil {
		return j.ret.As(states.False, strings.Join(problems, "; "))
	}
	return j.ret.As(states.True, "The following container(s) were stopped: "+all)
}

func watched(ctx context.Context, c *states.Call) (*states.Result, error) {
	kw := c.OwnKeywords()
	kw["name"] = c.Value("name")
	switch fun := c.Value("sfun"); fun {
	case "running":
		kw["force"] = true
		if v, ok := kw["watch_action"]; ok && v != "force" {
			kw["force"], kw["send_signal"] = false, true
		}
		return c.State(ctx, "docker_container.running", kw)
	case "run", "stopped":
		return c.State(ctx, "docker_container."+fun.(string), kw)
	default:
		return c.Result().As(states.False, "watch requisite is not implemented for "+pytext.Str(fun))
	}
}

func run(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := begin(ctx, c)
	kw := c.OwnKeywords()
	for _, name := range [...]string{"watch_action", "start", "shutdown_timeout", "follow"} {
		if _, ok := kw[name]; ok {
			return j.ret.As(states.False, "The '"+name+"' argument is not supported")
		}
	}
	if c.Value("image") == nil {
		return j.ret.As(states.False, "The 'image' argument is required")
	}
	nets, _, over, err := j.prepare(c.Value("image"), kw["networks"])
	if err != nil || over != nil {
		return over, err
	}
	if kw["networks"] != nil {
		kw["networks"] = byName(nets)
	}
	bg := c.Bool("bg")
	if c.Test() {
		if bg {
			return j.ret.As(states.None, "Container would be run in the background")
		}
		return j.ret.As(states.None, "Container would be run")
	}
	removes := false
	if !bg {
		given := 0
		for _, name := range [...]string{"auto_remove", "rm"} {
			v, ok := kw[name]
			if !ok {
				continue
			}
			delete(kw, name)
			if given++; given == 1 {
				removes = pytext.Truth(v)
			} else if !c.Bool("ignore_collisions") {
				return j.ret.As(states.False, "'rm' is an alias for 'auto_remove', they cannot both be used")
			}
		}
		if given > 0 {
			kw["auto_remove"] = false // so that its return code can be asked for; it is removed behind that
		}
	}
	for _, name := range [...]string{"name", "skip_translate", "ignore_collisions", "validate_ip_addrs", "client_timeout", "bg", "replace", "force"} {
		kw[name] = c.Value(name)
	}
	v, err := c.ExecKw(ctx, "docker.run_container", []any{pytext.Str(c.Value("image"))}, kw)
	changes, _ := v.(dict)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		j.ret.Comment = "Encountered error running container: " + modules.ExceptionText(err)
		return j.ret, nil
	case bg:
		j.ret.Comment = "Container was run in the background"
	}
	j.ret.Changes, j.ret.Result = changes, states.True
	if code, ok := changes["ExitCode"]; ok && !bg {
		if c.Bool("failhard") && code != int64(0) {
			j.ret.Result = states.False
		}
		j.ret.Comment = "Container ran and exited with a return code of " + pytext.Str(code)
	}
	if removes && changes["Id"] != nil {
		if _, err := j.call("rm", changes["Id"]); err != nil {
			if !modules.IsExecError(err) {
				return nil, err
			}
			j.ret.Warn("Failed to auto_remove container: " + err.Error())
		}
	}
	return j.ret, nil
}
