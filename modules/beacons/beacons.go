// Package beacons is Salt's execution module "beacons": what the minion watches on its host. Salt's source:
// salt/modules/beacons.py.
//
// The beacons are the running minion's; functions ask it as an event with the tag manage_beacons does.
package beacons

import (
	"context"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/difflib"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
)

// ask hands an event to the minion and gives its answer. ok reports whether there is a minion.
func ask(ctx context.Context, c *modules.Call, data map[string]any, answer string) (reply map[string]any, ok bool) {
	m, is := c.Agent.(modules.Manager)
	if !is {
		return nil, false
	}
	return m.Manage(ctx, "manage_beacons", data, "/salt/minion/minion_beacon"+answer)
}

func keyword(c *modules.Call, name string) bool { return pytext.Truth(c.Keywords[name]) }

func complete(reply map[string]any) bool { return pytext.Truth(reply["complete"]) }

// beaconsOf returns the beacons in an answer.
func beaconsOf(reply map[string]any) map[string]any {
	m, _ := reply["beacons"].(map[string]any)
	return m
}

// configured returns the minion's beacons, or nil if the minion does not answer.
func configured(ctx context.Context, c *modules.Call, pillar, opts bool) map[string]any {
	reply, ok := ask(ctx, c, map[string]any{"func": "list", "include_pillar": pillar, "include_opts": opts}, "s_list_complete")
	if !ok || !complete(reply) {
		return nil
	}
	return beaconsOf(reply)
}

// notIterable returns the TypeError that Salt raises if the minion does not answer: its list of beacons is None then.
func notIterable() error {
	return &modules.TypeError{Msg: "argument of type 'NoneType' is not iterable"}
}

func list(ctx context.Context, c *modules.Call) (any, error) {
	var found any
	if m := configured(ctx, c, c.Bool("include_pillar"), c.Bool("include_opts")); m != nil {
		found = m
	}
	if c.Bool("return_yaml") {
		return yaml.Marshal(map[string]any{"beacons": found})
	}
	return found, nil
}

func available(ctx context.Context, c *modules.Call) []any {
	reply, ok := ask(ctx, c, map[string]any{"func": "list_available"}, "s_list_available_complete")
	if !ok || !complete(reply) {
		return nil
	}
	names, _ := reply["beacons"].([]any)
	return names
}

func listAvailable(ctx context.Context, c *modules.Call) (any, error) {
	names := available(ctx, c)
	switch {
	case len(names) == 0:
		return map[string]any{"beacons": map[string]any{}}, nil
	case c.Bool("return_yaml"):
		return yaml.Marshal(map[string]any{"beacons": names})
	}
	return names, nil
}

// moduleOf returns the kind of a beacon from its configuration.
func moduleOf(name string, data any) string {
	items, _ := data.([]any)
	for _, x := range items {
		if m, ok := x.(map[string]any); ok {
			if kind, ok := m["beacon_module"]; ok {
				return pytext.Str(kind)
			}
		}
	}
	return name
}

func add(ctx context.Context, c *modules.Call) (any, error) {
	name, data := c.Str("name"), c.Value("beacon_data")
	ret := map[string]any{"comment": "Failed to add beacon " + name + ".", "result": false}
	have := configured(ctx, c, true, true)
	if have == nil {
		return nil, notIterable()
	}
	if _, ok := have[name]; ok {
		ret["comment"], ret["result"] = "Beacon "+name+" is already configured.", true
		return ret, nil
	}
	if kind := moduleOf(name, data); !slices.Contains(available(ctx, c), any(kind)) {
		ret["comment"] = `Beacon "` + kind + `" is not available.`
		return ret, nil
	}
	if keyword(c, "test") {
		ret["comment"], ret["result"] = "Beacon: "+name+" would be added.", true
		return ret, nil
	}
	if why, ok := validate(ctx, c, name, data); !ok {
		ret["comment"] = "Beacon " + name + " configuration invalid, not adding.\n" + why
		return ret, nil
	}
	reply, ok := ask(ctx, c, map[string]any{"name": name, "beacon_data": data, "func": "add"}, "_add_complete")
	switch {
	case !ok:
	case complete(reply):
		if now, ok := beaconsOf(reply)[name]; ok && holdsAll(now, data) {
			ret["comment"], ret["result"] = "Added beacon: "+name+".", true
		}
	case reply != nil:
		ret["comment"] = reply["comment"]
	default:
		ret["comment"] = silent(c, "beacon add complete event")
	}
	return ret, nil
}

// silent returns the comment for a minion that did not answer in time.
func silent(c *modules.Call, what string) string {
	wait := "60"
	if v, ok := c.Keywords["timeout"]; ok {
		wait = pytext.Str(v)
	}
	return "Did not receive the " + what + " before the timeout of " + wait + "s"
}

// validate lets the minion check a beacon's configuration, and returns its comment and whether the configuration is
// valid.
func validate(ctx context.Context, c *modules.Call, name string, data any) (string, bool) {
	reply, ok := ask(ctx, c, map[string]any{"name": name, "beacon_data": data, "func": "validate_beacon"}, "_validation_complete")
	if !ok {
		return "", false
	}
	return pytext.Str(reply["vcomment"]), pytext.Truth(reply["valid"])
}

// holdsAll reports whether a configuration has every part of another.
func holdsAll(have, parts any) bool {
	list, ok := parts.([]any)
	if !ok {
		return reflect.DeepEqual(have, parts)
	}
	all, _ := have.([]any)
	for _, x := range list {
		if !slices.ContainsFunc(all, func(y any) bool { return reflect.DeepEqual(x, y) }) {
			return false
		}
	}
	return true
}

func modify(ctx context.Context, c *modules.Call) (any, error) {
	name, data := c.Str("name"), c.Value("beacon_data")
	ret := map[string]any{"comment": "", "result": true}
	have := configured(ctx, c, true, true)
	if have == nil {
		return nil, notIterable()
	}
	current, ok := have[name]
	if !ok {
		ret["comment"] = "Beacon " + name + " is not configured."
		return ret, nil
	}
	if keyword(c, "test") {
		ret["comment"] = "Beacon: " + name + " would be modified."
		return ret, nil
	}
	if why, ok := validate(ctx, c, name, data); !ok {
		ret["comment"], ret["result"] = "Beacon "+name+" configuration invalid, not modifying.\n"+why, false
		return ret, nil
	}
	if reflect.DeepEqual(current, data) {
		ret["comment"] = "Job " + name + " in correct state"
		return ret, nil
	}
	ret["changes"] = map[string]any{"diff": difflib.Unified(lines(current), lines(data), "", "")}
	reply, ok := ask(ctx, c, map[string]any{"name": name, "beacon_data": data, "func": "modify"}, "_modify_complete")
	switch {
	case !ok:
	case complete(reply):
		if reflect.DeepEqual(beaconsOf(reply)[name], data) {
			ret["comment"] = "Modified beacon: " + name + "."
		}
	case reply != nil:
		ret["comment"], ret["result"] = reply["comment"], false
	default:
		ret["comment"], ret["result"] = silent(c, "beacon modify complete  event"), false
	}
	return ret, nil
}

// lines returns a configuration as lines, for a diff.
func lines(config any) []string {
	var out []string
	list, _ := config.([]any)
	for _, x := range list {
		m, _ := x.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out = append(out, k+":"+pytext.Str(m[k])+"\n")
		}
	}
	return out
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	ret := map[string]any{"comment": "Failed to delete beacon " + name + ".", "result": false}
	if keyword(c, "test") {
		ret["comment"], ret["result"] = "Beacon: "+name+" would be deleted.", true
		return ret, nil
	}
	reply, ok := ask(ctx, c, map[string]any{"name": name, "func": "delete"}, "_delete_complete")
	switch {
	case !ok:
	case complete(reply):
		if _, still := beaconsOf(reply)[name]; !still {
			ret["comment"], ret["result"] = "Deleted beacon: "+name+".", true
		}
	case reply != nil:
		ret["comment"] = reply["comment"]
	default:
		ret["comment"] = silent(c, "beacon delete complete event")
	}
	return ret, nil
}

func save(ctx context.Context, c *modules.Call) (any, error) {
	conf, _ := c.Opt("conf_file").(string)
	include, _ := c.Opt("default_include").(string)
	path := filepath.Join(filepath.Dir(conf), filepath.Dir(include), "beacons.conf")
	text := ""
	if have := configured(ctx, c, false, true); len(have) > 0 {
		var err error
		if text, err = yaml.Marshal(map[string]any{"beacons": have}); err != nil {
			return nil, err
		}
	}
	if err := atomicfile.WriteFile(c.Path(path), []byte(text), 0o644); err != nil {
		return map[string]any{"comment": "Unable to write to beacons file at " + path + ". Check permissions.", "result": false}, nil
	}
	return map[string]any{"comment": "Beacons saved to " + path + ".", "result": true}, nil
}

func enable(ctx context.Context, c *modules.Call) (any, error) {
	return switchAll(ctx, c, "enable", "Enabled", true)
}

func disable(ctx context.Context, c *modules.Call) (any, error) {
	return switchAll(ctx, c, "disable", "Disabled", false)
}

func switchAll(ctx context.Context, c *modules.Call, verb, done string, on bool) (any, error) {
	if keyword(c, "test") {
		return map[string]any{"comment": "Beacons would be " + verb + "d.", "result": true}, nil
	}
	ret := map[string]any{"comment": []any{}, "result": true}
	reply, ok := ask(ctx, c, map[string]any{"func": verb}, "s_"+verb+"d_complete")
	if !ok || !complete(reply) {
		return ret, nil
	}
	if v, ok := beaconsOf(reply)["enabled"]; ok && pytext.Truth(v) == on {
		ret["comment"] = done + " beacons on minion."
	} else {
		ret["comment"], ret["result"] = "Failed to "+verb+" beacons on minion.", false
	}
	return ret, nil
}

func enableBeacon(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	return switchOne(ctx, c, name, "enable", "Beacon "+name+" would be enabled.", "Enabled beacon "+name+" on minion.",
		"Failed to enable beacon "+name+" on minion.", true)
}

func disableBeacon(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	return switchOne(ctx, c, name, "disable", "Beacons would be disabled.", "Disabled beacon "+name+" on minion.",
		"Failed to disable beacon on minion.", false)
}

func switchOne(ctx context.Context, c *modules.Call, name, verb, would, good, bad string, on bool) (any, error) {
	ret := map[string]any{"comment": []any{}, "result": true}
	switch {
	case name == "":
		ret["comment"], ret["result"] = "Beacon name is required.", false
		return ret, nil
	case keyword(c, "test"):
		ret["comment"] = would
		return ret, nil
	}
	have := configured(ctx, c, true, true)
	if have == nil {
		return nil, notIterable()
	}
	if _, ok := have[name]; !ok {
		ret["comment"], ret["result"] = "Beacon "+name+" is not currently configured.", false
		return ret, nil
	}
	reply, ok := ask(ctx, c, map[string]any{"func": verb + "_beacon", "name": name}, "_"+verb+"d_complete")
	switch {
	case !ok:
	case complete(reply):
		if v, ok := setting(beaconsOf(reply)[name], "enabled"); ok && pytext.Truth(v) == on {
			ret["comment"] = good
		} else {
			ret["comment"], ret["result"] = bad, false
		}
	case reply != nil:
		ret["comment"], ret["result"] = reply["comment"], false
	default:
		ret["comment"], ret["result"] = silent(c, "beacon "+verb+"d complete event"), false
	}
	return ret, nil
}

// setting returns a value of a beacon's configuration. If it is set more than once, the last one counts.
func setting(config any, key string) (v any, ok bool) {
	if m, dict := config.(map[string]any); dict {
		v, ok = m[key]
		return v, ok
	}
	list, _ := config.([]any)
	for _, x := range list {
		if m, dict := x.(map[string]any); dict {
			if found, has := m[key]; has {
				v, ok = found, true
			}
		}
	}
	return v, ok
}

func reset(ctx context.Context, c *modules.Call) (any, error) {
	if keyword(c, "test") {
		return map[string]any{"comment": "Beacons would be reset.", "result": true}, nil
	}
	reply, ok := ask(ctx, c, map[string]any{"func": "reset"}, "_reset_complete")
	switch {
	case !ok:
		return map[string]any{"comment": []any{}, "result": true}, nil
	case complete(reply):
		return map[string]any{"comment": "Beacon configuration reset.", "result": true}, nil
	}
	return map[string]any{"comment": strings.TrimSpace(pytext.Str(reply["comment"])), "result": false}, nil
}
