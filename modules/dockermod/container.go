package dockermod

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/dockerargs"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// containers returns the running containers, followed by all others if all is set.
func (d *client) containers(all bool, filters any) ([]dict, error) {
	query, err := filtered(dict{"all": int64(1), "limit": int64(-1), "size": int64(0), "trunc_cmd": int64(0)}, filters)
	if err != nil {
		return nil, err
	}
	list, err := d.list("containers", request{query: query})
	var up, down []dict
	for _, m := range list {
		if _, ok := m["Id"].(string); !ok {
			continue
		}
		renamed(m)
		if status, _ := m["Status"].(string); strings.HasPrefix(strings.ToLower(status), "up ") {
			up = append(up, m)
		} else if all {
			down = append(down, m)
		}
	}
	return append(up, down...), err
}

// filtered adds filters to a query (docker-py convert_filters).
func filtered(query dict, filters any) (dict, error) {
	if !pytext.Truth(filters) {
		return query, nil
	}
	pairs := dockerargs.Pairs(filters)
	if pairs == nil {
		return nil, modules.Errorf("cannot use filters %s: they are no dictionary", pytext.Repr(filters))
	}
	out := dict{}
	for _, p := range pairs {
		v := p.Value
		if b, ok := v.(bool); ok {
			v = strconv.FormatBool(b)
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		texts := make([]any, len(list))
		for i, x := range list {
			texts[i] = pytext.Str(x)
		}
		out[pytext.Str(p.Key)] = texts
	}
	query["filters"] = jsonText(out)
	return query, nil
}

func (d *client) ps() (any, error) {
	list, err := d.containers(pytext.Truth(d.Keywords["all"]), d.Value("filters"))
	if err != nil {
		return nil, err
	}
	out, err := d.byID(list, pytext.Truth(d.Keywords["verbose"]), d.inspectContainer)
	if err == nil && pytext.Truth(d.Keywords["host"]) {
		var interfaces any
		if interfaces, err = d.Exec(d.ctx, "network.interfaces"); err == nil {
			out["host"] = dict{"interfaces": interfaces}
		}
	}
	return out, err
}

// names returns the names of a container without their leading slashes.
func names(m dict) []string {
	list, _ := m["Names"].([]any)
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = strings.TrimLeft(pytext.Str(x), "/")
	}
	return out
}

func (d *client) listContainers(all bool) ([]any, error) {
	list, err := d.containers(all, nil)
	found := map[string]bool{}
	for _, m := range list {
		for _, name := range names(m) {
			found[name] = true
		}
	}
	return sortedSet(found), err
}

func sortedSet(m map[string]bool) []any {
	out := []any{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k)
	}
	return out
}

func (d *client) inspectContainer(name any) (dict, error) {
	return d.dict("inspect_container", request{id: name})
}

func (d *client) inspect(name any) (any, error) {
	for _, kind := range [...]string{"container", "image", "volume", "network"} {
		var v any
		var err error
		if kind == "image" {
			v, err = d.inspectImage(name)
		} else {
			v, err = d.dict("inspect_"+kind, request{id: name})
		}
		if status, _ := refusal(err); status != "404" {
			return v, err
		}
	}
	return nil, modules.Errorf("Error 404: No such image/container/volume/network: %s", pytext.Str(name))
}

func stateOf(info dict) string {
	s := get(info, "State")
	switch {
	case pytext.Truth(s["Paused"]):
		return "paused"
	case pytext.Truth(s["Running"]):
		return "running"
	}
	return "stopped"
}

func (d *client) state(name any) (any, error) {
	info, err := d.inspectContainer(name)
	if err != nil {
		return nil, err
	}
	return stateOf(info), nil
}

// after returns the state of a container, or nil if it no longer exists.
func (d *client) after(name any) (any, error) {
	s, err := d.state(name)
	if err != nil && modules.IsExecError(err) {
		return nil, nil
	}
	return s, err
}

func states(before, now any) dict { return dict{"old": before, "new": now} }

// change brings a container to another state by an action.
func (d *client) change(name any, action, expected string, r request) (dict, error) {
	pre, err := d.state(name)
	if err != nil {
		return nil, err
	}
	if action != "restart" && pre == expected {
		return dict{"result": false, "state": states(pre, pre), "comment": "Container '" + pytext.Str(name) + "' already " + expected}, nil
	}
	r.id = name
	if _, err := d.call(action, r); err != nil {
		return nil, err
	}
	post, err := d.after(name)
	return dict{"result": post == expected, "state": states(pre, post)}, err
}

// changeUnless is like change, but refuses a container in the state from, which the action cannot leave.
func (d *client) changeUnless(from, action, expected string) (any, error) {
	name := d.Value("name")
	return d.changeFrom(name, from, action, expected)
}

func (d *client) changeFrom(name any, from, action, expected string) (dict, error) {
	s, err := d.state(name)
	if err != nil {
		return nil, err
	}
	if s == from {
		return dict{"result": false, "state": states(s, s), "comment": "Container '" + pytext.Str(name) + "' is " + from + ", cannot " + action}, nil
	}
	return d.change(name, action, expected, request{})
}

func (d *client) start(name any) (dict, error) {
	return d.changeFrom(name, "paused", "start", "running")
}

// grace returns a request that gives a container some seconds to end by itself.
func grace(action string, timeout any) (request, error) {
	n, err := modules.ToInt(timeout)
	if err != nil {
		return request{}, unable(action, err.Error())
	}
	return request{query: dict{"t": n}, patience: time.Duration(min(max(n, 0), 1<<31)) * time.Second}, nil
}

func (d *client) restart() (any, error) {
	r, err := grace("restart", d.Value("timeout"))
	if err != nil {
		return nil, err
	}
	ret, err := d.change(d.Value("name"), "restart", "running", r)
	if err == nil && ret["result"] == true {
		ret["restarted"] = true
	}
	return ret, err
}

func (d *client) stop(name, timeout any, unpause bool) (dict, error) {
	info, err := d.inspectContainer(name)
	if err != nil {
		return nil, err
	}
	if timeout == nil {
		if timeout = get(info, "Config")["StopTimeout"]; timeout == nil {
			timeout = int64(10)
		}
	}
	before := stateOf(info)
	if before == "paused" {
		if !unpause {
			return dict{"result": false, "state": states(before, before),
				"comment": "Container '" + pytext.Str(name) + "' is paused, run with unpause=True to unpause before stopping"}, nil
		}
		ret, err := d.change(name, "unpause", "running", request{})
		if err != nil {
			return nil, err
		}
		if ret["result"] == false {
			ret["comment"] = "Failed to unpause container '" + pytext.Str(name) + "'"
			return ret, nil
		}
	}
	r, err := grace("stop", timeout)
	if err != nil {
		return nil, err
	}
	ret, err := d.change(name, "stop", "stopped", r)
	if err == nil {
		get(ret, "state")["old"] = before
	}
	return ret, err
}

func (d *client) wait(name any) (any, error) {
	pre, err := d.after(name)
	if err != nil {
		return nil, err
	}
	ignore := d.Value("ignore_already_stopped")
	if pre == nil {
		return dict{"result": ignore, "comment": "Container '" + pytext.Str(name) + "' absent"}, nil
	}
	status, err := d.call("wait", request{id: name, patience: forever})
	if err != nil {
		return nil, err
	}
	post, err := d.after(name)
	ret := dict{"result": post == "stopped", "state": states(pre, post), "exit_status": status}
	if pre == "stopped" {
		ret["result"], ret["comment"] = ignore, "Container '"+pytext.Str(name)+"' already stopped"
	}
	if d.Bool("fail_on_exit_status") && pytext.Truth(ret["result"]) {
		m, _ := status.(dict)
		ret["result"] = m["StatusCode"] == int64(0)
	}
	return ret, err
}

func (d *client) rmKeywords() (any, error) {
	kw := d.keywords()
	stop, timeout := pytext.Truth(pop(kw, "stop", nil)), pop(kw, "timeout", nil)
	if err := invalid(kw); err != nil {
		return nil, err
	}
	return d.rm(d.Value("name"), d.Bool("force"), d.Bool("volumes"), stop, timeout)
}

func (d *client) rm(name any, force, volumes, stop bool, timeout any) (any, error) {
	info, err := d.inspectContainer(name)
	if err != nil {
		return nil, err
	}
	if stateOf(info) == "running" && !force && !stop {
		return nil, modules.Errorf("Container '%s' is running, use force=True to forcibly remove this container", pytext.Str(name))
	}
	removes := false // by itself, when it stops
	if stop && !force {
		removes = pytext.Truth(get(info, "HostConfig")["AutoRemove"])
		if _, err := d.stop(name, timeout, false); err != nil {
			return nil, err
		}
	}
	pre, err := d.containers(true, nil)
	if err != nil {
		return nil, err
	}
	if !removes {
		query := dict{"v": volumes, "link": false, "force": force}
		if _, err := d.call("remove_container", request{id: name, query: query}); err != nil {
			return nil, err
		}
	}
	post, err := d.containers(true, nil)
	return missing(pre, post), err
}

// missing returns the ids that occur in before but not in now.
func missing(before, now []dict) []any {
	there := map[any]bool{}
	for _, m := range now {
		there[m["Id"]] = true
	}
	out := []any{}
	for _, m := range before {
		if !there[m["Id"]] {
			out = append(out, m["Id"])
		}
	}
	return out
}

func (d *client) rename() (any, error) {
	info, err := d.inspectContainer(d.Value("name"))
	if err != nil {
		return nil, err
	}
	if _, err := d.call("rename", request{id: info["Id"], query: dict{"name": d.Value("new_name")}}); err != nil {
		return nil, err
	}
	now, err := d.inspectContainer(d.Value("new_name"))
	return err == nil && now["Id"] == info["Id"], err
}

func (d *client) diff(name any) (any, error) {
	list, err := d.list("diff", request{id: name})
	ret := dict{}
	for _, m := range list {
		key := "Unknown"
		if n, ok := m["Kind"].(int64); ok && n >= 0 && n < 3 {
			key = [...]string{"Changed", "Added", "Deleted"}[n]
		}
		paths, _ := ret[key].([]any)
		ret[key] = append(paths, m["Path"])
	}
	return ret, err
}

func (d *client) top(name any) (any, error) {
	m, err := d.dict("top", request{id: name})
	titles, _ := m["Titles"].([]any)
	processes, _ := m["Processes"].([]any)
	ret := []any{}
	for _, p := range processes {
		row := dict{}
		values, _ := p.([]any)
		for i, v := range values[:min(len(values), len(titles))] {
			row[pytext.Str(titles[i])] = v
		}
		ret = append(ret, row)
	}
	return ret, err
}

func (d *client) port() (any, error) {
	name, pattern := d.Str("name"), "*"
	containers := []any{d.Value("name")}
	several := strings.ContainsAny(name, "*?[")
	if several {
		all, err := d.listContainers(true)
		if err != nil {
			return nil, err
		}
		containers = slices.DeleteFunc(all, func(x any) bool { return !fnmatch.Match(name, x.(string)) })
	}
	switch v := d.Value("private_port").(type) {
	case nil:
	case int64:
		pattern = fmt.Sprintf("%d/*", v)
	default:
		s, _ := v.(string)
		num, proto, _ := strings.Cut(s, "/")
		proto = strings.ToLower(proto)
		if num == "" || strings.Trim(num, "0123456789") != "" || proto != "tcp" && proto != "udp" {
			return nil, modules.Usagef("Invalid private_port '%s'. Must either be a port number, or be in port/protocol notation (e.g. 5000/tcp)", pytext.Str(v))
		}
		pattern = num + "/" + proto
	}
	ret := dict{}
	for _, c := range containers {
		info, err := d.inspectContainer(c)
		if err != nil {
			return nil, err
		}
		found := dict{}
		for k, v := range get(get(info, "NetworkSettings"), "Ports") {
			if fnmatch.Match(pattern, k) {
				found[k] = v
			}
		}
		if !several {
			return found, nil
		}
		ret[c.(string)] = found
	}
	return ret, nil
}

func (d *client) prune() (any, error) {
	what := dict{}
	for _, k := range [...]string{"containers", "images", "networks", "build", "volumes"} {
		what[k] = d.Bool(k)
	}
	system := d.Bool("system")
	if d.Value("system") == nil {
		system = what["containers"] == false && what["images"] == false && what["networks"] == false && what["build"] == false
	}
	filters := d.keywords()
	for k, v := range filters {
		if _, ok := v.(bool); !ok {
			filters[k] = splitInput(v)
		}
	}
	ret := dict{}
	for k, on := range what {
		if on != true && !(system && k != "volumes") {
			continue
		}
		query := dict{}
		if k != "build" { // stock gives it no filters
			var err error
			if query, err = filtered(query, filters); err != nil {
				return nil, err
			}
		}
		v, err := d.call("prune_"+k, request{query: query})
		if err != nil {
			return nil, err
		}
		ret[k] = v
	}
	return ret, nil
}
