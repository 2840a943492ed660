package reactor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/states"
)

// runChunk executes one chunk (ReactWrap.run).
func (r *Reactor) runChunk(ctx context.Context, low *states.Low) error {
	switch kind := low.State(); kind {
	case "local", "cmd":
		return r.publishLocal(ctx, low)
	case "runner":
		return r.runOnMaster(ctx, r.o.Runner, kind, low)
	case "wheel":
		return r.runOnMaster(ctx, r.o.Wheel, kind, low)
	case "caller":
		return r.runHere(ctx, low)
	default:
		return fmt.Errorf("unknown kind of reaction %s: use local, runner, wheel or caller", kind)
	}
}

// runHere runs an execution function on the master's host. Only here args may also be a plain list of values.
func (r *Reactor) runHere(ctx context.Context, low *states.Low) error {
	if r.o.Caller == nil {
		return errors.New("this master has no execution functions")
	}
	var args []any
	var kwargs map[string]any
	if list, ok := low.Ordered("args").(*pyobj.List); ok && !isDictList(list) {
		args = list.Items
	} else {
		var err error
		if args, kwargs, err = r.callArguments(low, nil); err != nil {
			return err
		}
	}
	_, err := r.o.Caller(ctx, modules.Request{Fun: low.Fun(), Args: args, Kwargs: kwargs})
	return err
}

// isDictList reports whether a list has only maps of one entry.
func isDictList(l *pyobj.List) bool {
	return !slices.ContainsFunc(l.Items, func(x any) bool {
		d, ok := x.(*pyobj.Dict)
		return !ok || d.Len() != 1
	})
}

// publishLocal publishes a job and does not wait for it.
func (r *Reactor) publishLocal(ctx context.Context, low *states.Low) error {
	if !low.Has("tgt") {
		return errors.New("it has no tgt")
	}
	args, kwargs, err := r.callArguments(low, nil)
	if err != nil {
		return err
	}
	j := master.Job{Fun: low.Fun(), Args: args, Kwargs: kwargs, Tgt: low.Value("tgt"), User: User}
	for _, key := range [...]string{"expr_form", "tgt_type"} {
		if s, ok := low.Value(key).(string); ok && s != "" {
			j.TgtType = s
		}
	}
	j.Ret, _ = low.Value("ret").(string)
	if jid, ok := low.Value("jid").(string); ok && jid != "" {
		if !protocol.ValidJID(jid) {
			return fmt.Errorf("jid %q is not a job id", jid)
		}
		j.JID = jid
	}
	if low.Has("metadata") {
		j.Metadata = low.Value("metadata")
	}
	_, err = r.o.Master.Publish(ctx, j)
	var none *master.NoMinionsError
	if errors.As(err, &none) { // Salt's client reports nothing
		r.log.Info("A reaction's target has no minion", "id", low.ID(), "tgt", j.Tgt)
		return nil
	}
	return err
}

// runOnMaster runs a runner or wheel function in a worker and waits for its end.
func (r *Reactor) runOnMaster(ctx context.Context, c *runner.Client, kind string, low *states.Low) error {
	if c == nil {
		return fmt.Errorf("this master has no %s functions", kind)
	}
	def := c.Argspec(low.Fun())
	if def == nil {
		return errors.New("function not available")
	}
	args, kwargs, err := r.callArguments(low, def)
	if err != nil {
		return err
	}
	res := c.Call(ctx, runner.Request{Fun: low.Fun(), Args: args, Kwargs: kwargs, User: User})
	if !res.Success {
		return fmt.Errorf("%v", res.Return)
	}
	return nil
}

// callArguments returns a chunk's args, or in the old way arg and kwarg, or for functions of the master the values
// that are named like its parameters.
func (r *Reactor) callArguments(low *states.Low, def *modules.Def) ([]any, map[string]any, error) {
	if low.Has("args") {
		for _, old := range [...]string{"arg", "kwarg"} {
			if low.Has(old) {
				r.log.Warn(fmt.Sprintf("Reactor '%s' is ignoring '%s' param %v due to presence of 'args' param.", low.ID(), old, low.Value(old)))
			}
		}
		kwargs, err := repackArgs(low.Ordered("args"))
		return nil, kwargs, err
	}
	var args []any
	var kwargs map[string]any
	if low.Has("arg") {
		var isList bool
		if args, isList = ordered.ToWire(low.Ordered("arg")).([]any); !isList {
			args = []any{ordered.ToWire(low.Ordered("arg"))}
		}
	}
	if low.Has("kwarg") {
		var ok bool
		if kwargs, ok = namedArgs(low.Ordered("kwarg")); !ok {
			return nil, nil, errors.New("incorrect argument format: kwarg is a map")
		}
	}
	if def == nil || low.Has("arg") && low.Has("kwarg") {
		return args, kwargs, nil
	}
	if !low.Has("kwarg") {
		kwargs = map[string]any{}
		for _, key := range low.Keys() {
			if isBookkeeping(key) {
				continue
			}
			if def.Kwargs != "" || slices.ContainsFunc(def.Params, func(p modules.Param) bool { return p.Name == key }) {
				kwargs[key] = ordered.ToWire(low.Ordered(key))
			}
		}
	}
	return args, kwargs, nil
}

// isBookkeeping reports whether a key of a chunk is not an argument (REACTOR_INTERNAL_KEYWORDS).
func isBookkeeping(key string) bool {
	switch key {
	case "__id__", "__sls__", "name", "order", "fun", "key", "state", "arg", "kwarg", "args":
		return true
	}
	return false
}

// repackArgs returns arguments by name: a map, or what [nested.Repack] makes of a list.
func repackArgs(v any) (map[string]any, error) {
	d, isDict := v.(*pyobj.Dict)
	if !isDict {
		d, _ = nested.Repack(v)
	}
	kwargs, ok := namedArgs(d)
	if !ok || len(kwargs) == 0 && !isDict {
		return nil, errors.New("incorrect argument format: args is a list of names with a value each")
	}
	return kwargs, nil
}

// namedArgs returns arguments that are given as a map, or as a list of maps.
func namedArgs(v any) (map[string]any, bool) {
	out := map[string]any{}
	add := func(d *pyobj.Dict) bool {
		for k, x := range d.All() {
			name, ok := k.(string)
			if !ok {
				return false
			}
			out[name] = ordered.ToWire(x)
		}
		return true
	}
	switch v := v.(type) {
	case *pyobj.Dict:
		return out, add(v)
	case *pyobj.List:
		for _, x := range v.Items {
			d, ok := x.(*pyobj.Dict)
			if !ok || !add(d) {
				return nil, false
			}
		}
		return out, len(out) > 0 || len(v.Items) == 0
	case nil:
		return out, true
	}
	return nil, false
}
