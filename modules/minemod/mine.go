// Package minemod is Salt's execution module "mine": leaving data with the master for other minions. Salt's sources:
// salt/modules/mine.py, salt/utils/mine.py.
package minemod

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// mine.send differs: True means that the master has the data, rather than that it is on its way there.
// mine.update differs: True means that the master has the data, rather than that it is on its way there.
// mine.delete differs: True means that the master did it, rather than that the request is on its way there.
// mine.get differs: a minion without master also returns data that is a number or a bool, where stock fails.
// mine.flush differs: True means that the master did it, rather than that the request is on its way there.

// Keys of an entry that restricts its readers (salt/utils/mine.py).
const (
	aclID      = "__saltmine_acl__"
	aclData    = "__data__"
	aclVersion = int64(1)
)

// local reports whether the minion keeps its mine itself, having no master.
func local(c *modules.Call) bool { return c.Opt("file_client") == "local" }

// ask sends a request to the master and reports whether it was granted. Stock answers true as soon as the request is on its way.
func ask(ctx context.Context, c *modules.Call, load map[string]any) (any, error) {
	if c.Master == nil {
		return nil, modules.Errorf("cannot run %s: this program has no master", c.Fun)
	}
	load["id"] = c.ID
	v, err := c.Master.Request(ctx, load)
	if err != nil {
		return nil, modules.Errorf("%v", err)
	}
	return v != any(false), nil
}

// kept returns the mine that a minion without a master stores locally.
func kept(ctx context.Context, c *modules.Call) (map[string]any, error) {
	v, err := c.Exec(ctx, "data.get", "mine_cache")
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	return m, nil
}

func store(ctx context.Context, c *modules.Call, data map[string]any, clear bool) (any, error) {
	if !local(c) {
		return ask(ctx, c, map[string]any{"cmd": "_mine", "data": data, "clear": clear})
	}
	if !clear {
		old, err := kept(ctx, c)
		if err != nil {
			return nil, err
		}
		if old != nil {
			maps.Copy(old, data)
			data = old
		}
	}
	return c.Exec(ctx, "data.update", "mine_cache", data)
}

// entry is a function of the mine as it is configured.
type entry struct {
	alias, fun   string
	args         []any
	kwargs       map[string]any
	allow, atype any
	source       any
}

// parse reads one definition of mine_functions.
func parse(alias string, def any) entry {
	e := entry{alias: alias, args: []any{}, kwargs: map[string]any{}, source: def}
	switch def := def.(type) {
	case map[string]any:
		e.kwargs = maps.Clone(def)
	case []any:
		for _, x := range def {
			if m, ok := x.(map[string]any); ok {
				maps.Copy(e.kwargs, m)
			} else {
				e.args = append(e.args, x)
			}
		}
	}
	if name := e.kwargs["mine_function"]; pytext.Truth(name) {
		e.fun = pytext.Str(name)
	}
	e.allow, e.atype = e.kwargs["allow_tgt"], e.kwargs["allow_tgt_type"]
	for _, k := range [...]string{"mine_function", "allow_tgt", "allow_tgt_type"} {
		delete(e.kwargs, k)
	}
	return e
}

func (e entry) name() string {
	if e.fun != "" {
		return e.fun
	}
	return e.alias
}

// wrap combines data with the restriction of its readers.
func wrap(data, allow, kind any) any {
	if !pytext.Truth(allow) {
		return data
	}
	m := map[string]any{aclData: data, aclID: aclVersion, "allow_tgt": allow}
	if pytext.Truth(kind) {
		m["allow_tgt_type"] = kind
	}
	return m
}

// configured returns the entries of mine_functions in configuration and pillar, or nil if they are missing.
func configured(ctx context.Context, c *modules.Call) ([]entry, error) {
	v, err := c.Exec(ctx, "config.merge", "mine_functions", map[string]any{})
	if err != nil || !pytext.Truth(v) {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, modules.NoAttribute(v, "items")
	}
	return entries(c, m), nil
}

// entries returns the entries whose function exists. It logs the others.
func entries(c *modules.Call, defs map[string]any) []entry {
	list := []entry{}
	for _, alias := range slices.Sorted(maps.Keys(defs)) {
		e := parse(alias, defs[alias])
		if _, err := c.Registry().Lookup(e.name(), c.Env); err != nil {
			_ = c.NoteRefusal(e.name(), err)
			c.Logger().Error("Function " + e.name() + " in mine_functions not available")
			continue
		}
		list = append(list, e)
	}
	return list
}

func update(ctx context.Context, c *modules.Call) (any, error) {
	var (
		list []entry
		err  error
	)
	given := c.Value("mine_functions")
	if list2, ok := given.([]any); ok && len(list2) > 0 {
		m := map[string]any{}
		for _, f := range list2 {
			m[pytext.Str(f)] = map[string]any{}
		}
		given = m
	}
	switch m, isMap := given.(map[string]any); {
	case !pytext.Truth(given):
		if list, err = configured(ctx, c); err != nil || list == nil {
			return nil, err
		}
	case isMap:
		list = entries(c, m)
	default:
		return nil, nil
	}
	data := map[string]any{}
	for _, e := range list {
		v, err := call(ctx, c, e.name(), e.args, e.kwargs)
		if err != nil {
			c.Logger().Error("Function "+e.name()+" in mine.update failed to execute", "err", err)
			continue
		}
		data[e.alias] = wrap(v, e.allow, e.atype)
	}
	return store(ctx, c, data, c.Bool("clear"))
}

// call calls a function as the mine does: maps among the arguments are keyword arguments (salt/utils/functools.py:
// call_function).
func call(ctx context.Context, c *modules.Call, fun string, args []any, kwargs map[string]any) (any, error) {
	positional, named := []any{}, map[string]any{}
	for i := len(args) - 1; i >= 0; i-- {
		if m, ok := args[i].(map[string]any); ok {
			maps.Copy(named, m)
		} else {
			positional = append(positional, args[i])
		}
	}
	slices.Reverse(positional)
	maps.Copy(named, kwargs)
	v, err := c.ExecOrdered(ctx, fun, positional, named)
	if local(c) {
		v = pyobj.Plain(v) // that is what data.update keeps
	}
	return v, err
}

func send(ctx context.Context, c *modules.Call) (any, error) {
	name, kwargs := c.Str("name"), map[string]any{}
	for k := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			kwargs[k] = c.KeywordInOrder(k)
		}
	}
	fun := name
	if f := c.Keywords["mine_function"]; pytext.Truth(f) {
		fun = pytext.Str(f)
	}
	allow, kind := c.Keywords["allow_tgt"], c.Keywords["allow_tgt_type"]
	for _, k := range [...]string{"mine_function", "allow_tgt", "allow_tgt_type"} {
		delete(kwargs, k)
	}
	v, err := call(ctx, c, fun, c.Extra, kwargs)
	if err != nil {
		c.Logger().Error("Function "+fun+" in mine.send failed to execute", "err", err)
		return false, nil
	}
	return store(ctx, c, map[string]any{name: wrap(v, allow, kind)}, false)
}

func get(ctx context.Context, c *modules.Call) (any, error) {
	if local(c) {
		return getLocal(ctx, c)
	}
	m, err := getRemote(ctx, c, c.Value("tgt"), c.Value("fun"), c.Value("tgt_type"))
	if err != nil {
		return nil, err
	}
	if all, ok := m.(*pyobj.Dict); ok && c.Bool("exclude_minion") {
		all.Delete(c.ID)
	}
	return m, nil
}

func getRemote(ctx context.Context, c *modules.Call, tgt, fun, kind any) (any, error) {
	if c.Master == nil {
		return nil, modules.Errorf("cannot run %s: this program has no master", c.Fun)
	}
	v, err := modules.RequestOrdered(ctx, c.Master, map[string]any{"cmd": "_mine_get", "id": c.ID, "tgt": tgt, "fun": fun, "tgt_type": kind})
	if err != nil {
		return nil, modules.Errorf("%v", err)
	}
	return v, nil
}

// getLocal answers from the minion's own mine, which has one minion in it.
func getLocal(ctx context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{}
	switch kind := c.Str("tgt_type"); kind {
	case "glob", "pcre", "list", "grain", "grain_pcre", "ipcidr", "compound", "pillar", "pillar_pcre":
		ok, err := c.Exec(ctx, "match."+kind, c.Value("tgt"))
		if err != nil {
			return nil, err
		}
		if !pytext.Truth(ok) {
			return ret, nil
		}
	default:
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(c.Value("tgt_type"))}
	}
	data, err := kept(ctx, c)
	if err != nil || data == nil {
		return ret, err
	}
	names, byName := functions(c.Value("fun"))
	for _, f := range names {
		v, ok := data[f]
		if !ok {
			continue
		}
		if m, ok := v.(map[string]any); ok && m[aclID] != nil {
			v = m[aclData]
		}
		if byName {
			ret[f] = map[string]any{c.ID: v}
		} else {
			ret[c.ID] = v
		}
	}
	return ret, nil
}

// functions returns the function names that a call asks for. byName reports whether the result is a map by these
// names.
func functions(fun any) (names []string, byName bool) {
	switch fun := fun.(type) {
	case string:
		for _, f := range strings.Split(fun, ",") {
			if !slices.Contains(names, f) {
				names = append(names, f)
			}
		}
		return names, len(names) > 1
	case []any:
		for _, f := range fun {
			names = append(names, pytext.Str(f))
		}
	}
	return names, true
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	fun := c.Str("fun")
	if !local(c) {
		return ask(ctx, c, map[string]any{"cmd": "_mine_delete", "fun": fun})
	}
	data, err := kept(ctx, c)
	if err != nil {
		return nil, err
	}
	delete(data, fun)
	if data == nil {
		return c.Exec(ctx, "data.update", "mine_cache", nil)
	}
	return c.Exec(ctx, "data.update", "mine_cache", data)
}

func flush(ctx context.Context, c *modules.Call) (any, error) {
	if local(c) {
		return c.Exec(ctx, "data.update", "mine_cache", map[string]any{})
	}
	return ask(ctx, c, map[string]any{"cmd": "_mine_flush"})
}

func valid(ctx context.Context, c *modules.Call) (any, error) {
	list, err := configured(ctx, c)
	if err != nil || list == nil {
		return nil, err
	}
	data := map[string]any{}
	for _, e := range list {
		if e.fun == "" {
			data[e.alias] = e.left()
			continue
		}
		args := slices.Clone(e.args)
		for _, k := range slices.Sorted(maps.Keys(e.kwargs)) {
			args = append(args, map[string]any{k: e.kwargs[k]})
		}
		data[e.alias] = map[string]any{e.fun: args}
	}
	return data, nil
}

// left returns the definition in the form in which stock leaves it: from a map it removes the options about who may
// read the entry, from a list it does not.
func (e entry) left() any {
	if _, ok := e.source.(map[string]any); ok {
		return e.kwargs
	}
	return nested.Copy(e.source)
}

func getDocker(ctx context.Context, c *modules.Call) (any, error) {
	prefixes := []netip.Prefix{}
	for _, text := range list(c.Value("cidrs")) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, modules.Usagef("cannot read the subnet %q: %v", text, err)
		}
		prefixes = append(prefixes, p)
	}
	v, err := dockerHosts(ctx, c)
	if err != nil {
		return nil, err
	}
	hosts, _ := v.(map[string]any)
	images := map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(hosts)) {
		containers, _ := hosts[id].(map[string]any)
		ips := hostIPs(containers["host"], list(c.Value("interfaces")), prefixes)
		for _, name := range slices.Sorted(maps.Keys(containers)) {
			if box, ok := containers[name].(map[string]any); ok && name != "host" {
				published(images, box, ips, c.Bool("with_container_id"))
			}
		}
	}
	return images, nil
}

func dockerHosts(ctx context.Context, c *modules.Call) (any, error) {
	if local(c) {
		return c.Exec(ctx, "mine.get", "*", "docker.ps")
	}
	v, err := getRemote(ctx, c, "*", "docker.ps", "glob")
	return pyobj.Plain(v), err
}

func list(v any) []string {
	var names []string
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			names = append(names, pytext.Str(x))
		}
	case nil:
	default:
		if pytext.Truth(v) {
			names = []string{pytext.Str(v)}
		}
	}
	return names
}

// hostIPs returns the addresses of a Docker host that are in the subnets, on the named interfaces or, if interfaces
// is nil, on all of them.
func hostIPs(host any, interfaces []string, prefixes []netip.Prefix) []string {
	found, _ := nested.Get(host, "interfaces", ":")
	all, _ := found.(map[string]any)
	if interfaces == nil {
		interfaces = slices.Sorted(maps.Keys(all))
	}
	var ips []string
	for _, name := range interfaces {
		inet, _ := nested.Get(all, name+"\x00inet", "\x00")
		addresses, _ := inet.([]any)
		for _, a := range addresses {
			m, _ := a.(map[string]any)
			ip, _ := m["address"].(string)
			if ip != "" && !slices.Contains(ips, ip) && inAny(ip, prefixes) {
				ips = append(ips, ip)
			}
		}
	}
	return ips
}

func inAny(ip string, prefixes []netip.Prefix) bool {
	addr, err := netip.ParseAddr(ip)
	return len(prefixes) == 0 || err == nil && slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Masked().Contains(addr) })
}

// published adds a container's published ports to its image.
func published(images map[string]any, box map[string]any, ips []string, withID bool) {
	image := pytext.Str(box["Image"])
	ports, _ := images[image].(map[string]any)
	if ports == nil {
		ports = map[string]any{}
		images[image] = ports
	}
	id, _ := nested.Get(box, "Info:Id", ":")
	for _, p := range anyList(box["Ports"]) {
		m, _ := p.(map[string]any)
		ip, _ := m["IP"].(string)
		at := []string{ip}
		switch ip {
		case "":
			continue
		case "0.0.0.0":
			at = ips
		}
		for _, ip := range at {
			v4, _ := ports["ipv4"].(map[any]any)
			if v4 == nil {
				v4 = map[any]any{}
				ports["ipv4"] = v4
			}
			have := anyList(v4[key(m["PrivatePort"])])
			var value any = ip + ":" + pytext.Str(m["PublicPort"])
			if withID {
				value = []any{value, id}
			}
			if !nested.Contains(have, value) {
				have = append(have, value)
			}
			v4[key(m["PrivatePort"])] = have
		}
	}
}

func anyList(v any) []any {
	l, _ := v.([]any)
	return l
}

// key returns a port as a key of a map. A value that cannot be a key is converted to text.
func key(v any) any {
	switch v.(type) {
	case nil, string, int64, float64, bool:
		return v
	}
	return pytext.Str(v)
}
