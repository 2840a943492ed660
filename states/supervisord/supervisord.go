// Package supervisord is Salt's state module "supervisord": services that supervisord runs (salt/states/supervisord.py).
package supervisord

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "supervisord".
var Module = &states.Module{Name: "supervisord", Doc: "Services that supervisord runs.", Funcs: []states.Def{
	{Name: "dead", Doc: deadDoc, Params: []modules.Param{{Name: "name"}, user, conf, bin}, Kwargs: "kwargs", Run: dead},
	{Name: "mod_watch", Doc: watchDoc, Params: []modules.Param{{Name: "name"}, {Name: "restart", Default: true}, {Name: "update", Default: false}, user, conf, bin},
		Kwargs: "kwargs", Run: running},
	{Name: "running", Doc: runningDoc, Params: []modules.Param{{Name: "name"}, {Name: "restart", Default: false}, {Name: "update", Default: false}, user, conf, bin},
		Kwargs: "kwargs", Run: running},
}}

var (
	user = modules.Param{Name: "user", Optional: true}
	conf = modules.Param{Name: "conf_file", Optional: true}
	bin  = modules.Param{Name: "bin_env", Optional: true}
)

const (
	common = `
user
    who runs supervisorctl
conf_file, bin_env
    its configuration, and the program or the virtual environment it is in`
	deadDoc = `Have a service stopped.

name
    the service, or a group with a colon at its end` + common
	runningDoc = `Have a service running.

name
    the service, or a group with a colon at its end
restart
    restart it when it runs
update
    have supervisord read its configuration again` + common
	watchDoc = `Restart a service because what it watches has changed.

name
    the service, or a group with a colon at its end
restart
    restart it when it runs
update
    have supervisord read its configuration again` + common
)

// service is one run of a state.
type service struct {
	*states.Call
	ret   *states.Result
	name  string
	procs map[string]string // processes and what they do
}

// call calls a function of the execution module.
func (s *service) call(ctx context.Context, fun string, args ...any) (any, error) {
	return s.ExecKw(ctx, "supervisord."+fun, args, map[string]any{"user": s.Value("user"), "conf_file": s.Value("conf_file"), "bin_env": s.Value("bin_env")})
}

// look asks for all processes.
func (s *service) look(ctx context.Context) error {
	v, err := s.call(ctx, "status")
	all, _ := v.(map[string]any)
	s.procs = map[string]string{}
	for name, x := range all {
		info, _ := x.(map[string]any)
		s.procs[name] = pytext.Str(info["state"])
	}
	return err
}

// members returns the processes with the state's name. group reports whether it is the name of a group.
func (s *service) members() (names []string, group bool) {
	for name := range s.procs {
		if before, _, ok := strings.Cut(name, ":"); ok && before+":" == s.name {
			group = true
		}
	}
	for name := range s.procs {
		if name == s.name || group && strings.HasPrefix(name, s.name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, group
}

func stopped(state string) bool {
	switch state {
	case "STOPPED", "STOPPING", "EXITED", "FATAL", "BACKOFF":
		return true
	}
	return false
}

// report takes over what supervisorctl said.
func (s *service) report(said any, good string) {
	text := pytext.Str(said)
	s.ret.Comment = good
	if strings.Contains(text, "ERROR") && !strings.Contains(text, "already started") && !strings.Contains(text, "not running") &&
		!strings.Contains(text, "process group already active") {
		s.ret.Result, s.ret.Comment = states.False, text
	}
}

func running(ctx context.Context, c *states.Call) (*states.Result, error) {
	s := &service{Call: c, ret: c.Result(), name: c.Name()}
	if strings.HasSuffix(s.name, ":*") {
		s.name = s.name[:len(s.name)-1]
	}
	s.ret.Name = s.name
	if _, err := c.Registry().Lookup("supervisord.status", c.Env); err != nil {
		return s.ret.As(states.False, "Supervisord module not activated. Do you need to install supervisord?")
	}
	s.ret.Result = states.True
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	if c.Test() {
		return s.announce()
	}
	return s.ret, s.run(ctx)
}

// announce returns the result in test mode.
func (s *service) announce() (*states.Result, error) {
	names, _ := s.members()
	isGroup := strings.HasSuffix(s.name, ":")
	if len(names) == 0 {
		what := "Service " + s.name
		if isGroup {
			what = "Group '" + s.name + "'"
		}
		return s.ret.As(states.None, what+" will be added and started")
	}
	var start []string
	for _, n := range names {
		if strings.ToLower(s.procs[n]) != "running" {
			start = append(start, n)
		}
	}
	switch {
	case len(start) == 0 && isGroup:
		return s.ret.As(states.True, "All services in group '"+s.name+"' are already running")
	case len(start) == 0:
		return s.ret.As(states.True, "Service "+s.name+" is already running")
	case isGroup && len(start) == len(names):
		return s.ret.As(states.None, "All services in group '"+s.name+"' will be started")
	case isGroup:
		return s.ret.As(states.None, "The following services will be started: "+strings.Join(start, " "))
	}
	return s.ret.As(states.None, "Service "+s.name+" will be started")
}

// run does the work.
func (s *service) run(ctx context.Context) error {
	names, group := s.members()
	var changes []string
	updated := false
	switch {
	case s.Bool("update"):
		said, err := s.call(ctx, "update")
		if err != nil {
			return err
		}
		s.report(said, "Updating supervisor")
		updated = strings.Contains(pytext.Str(said), s.name+": updated")
	case len(names) == 0:
		if _, err := s.call(ctx, "reread"); err != nil {
			return err
		}
		said, err := s.call(ctx, "add", s.name)
		if err != nil {
			return err
		}
		changes = append(changes, "Adding service: "+s.name)
		s.report(said, changes[0])
	}
	what := ""
	if group {
		what = " group"
	} else if len(names) > 0 {
		what = " service"
	}
	what += ": " + s.name
	down := slices.ContainsFunc(names, func(n string) bool { return stopped(s.procs[n]) })
	act := func(fun, comment string) error {
		changes = append(changes, comment)
		said, err := s.call(ctx, fun, s.name)
		if err == nil {
			s.report(said, comment)
		}
		return err
	}
	var err error
	switch {
	case len(names) > 0 && !down && s.Bool("restart") && !updated:
		err = act("restart", "Restarting"+what)
	case len(names) > 0 && !down && updated:
		s.ret.Comment = "Not starting updated" + what
	case len(names) > 0 && !down:
		s.ret.Comment = "Not starting already running" + what
	case !updated:
		err = act("start", "Starting"+what)
	}
	if s.ret.Result == states.True && changes != nil {
		s.ret.Changes[s.name] = strings.Join(changes, " ")
	}
	return err
}

func dead(ctx context.Context, c *states.Call) (*states.Result, error) {
	s := &service{Call: c, ret: c.Result(), name: c.Name()}
	if c.Test() {
		return s.ret.As(states.None, "Service "+s.name+" is set to be stopped")
	}
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	s.ret.Result = states.True
	names, _ := s.members()
	switch {
	case len(names) == 0:
		return s.ret.As(states.True, "Service "+s.name+" doesn't exist")
	case slices.ContainsFunc(names, func(n string) bool { return stopped(s.procs[n]) }):
		return s.ret.As(states.True, "Service "+s.name+" is not running")
	}
	if _, err := s.call(ctx, "stop", s.name); err != nil {
		return nil, err
	}
	// Salt searches the names for errors here, where there are none.
	s.ret.Changes[s.name] = "Stopping service: " + s.name
	return s.ret.As(states.True, "Stopping service: "+s.name)
}
