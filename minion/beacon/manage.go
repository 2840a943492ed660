package beacon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// prefix is the start of the tags of answers.
const prefix = "/salt/minion/"

// Manage executes the request of an event with the tag manage_beacons (salt/minion.py: manage_beacons). It returns
// the data of the event that answers it, or nil without an answer.
func (e *Engine) Manage(ctx context.Context, data map[string]any) map[string]any {
	name := textOf(data["name"])
	fun := textOf(data["func"])
	// These two lock look and may take long, so mu is not held.
	if fun == "validate_beacon" {
		return e.validate(ctx, name, data["beacon_data"])
	}
	if fun == "list_available" {
		return e.listKinds(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// Any change may affect the next run.
	defer e.planTimer()
	switch fun {
	case "add":
		verb := "Added new beacon item: "
		if _, ok := e.opts[name]; ok {
			verb = "Updating settings for beacon item: "
		}
		return e.putBeacon(name, data["beacon_data"], "minion_beacon_add_complete", verb+name,
			fmt.Sprintf("Cannot update beacon item %s, because it is configured in pillar.", name))
	case "modify":
		return e.putBeacon(name, data["beacon_data"], "minion_beacon_modify_complete", "Updating settings for beacon item: "+name,
			fmt.Sprintf("Cannot modify beacon item %s, it is configured in pillar.", name))
	case "delete":
		return e.removeBeacon(name)
	case "enable", "disable":
		// The setting is part of the configuration, so list shows it.
		e.opts["enabled"] = fun == "enable"
		return e.fire("minion_beacons_"+fun+"d_complete", map[string]any{"complete": true, "beacons": nested.Copy(e.opts)})
	case "enable_beacon", "disable_beacon":
		return e.switchOne(name, fun == "enable_beacon")
	case "list":
		beacons := e.merged(pytext.Truth(data["include_pillar"]), pytext.Truth(data["include_opts"]))
		return e.fire("minion_beacons_list_complete", map[string]any{"complete": true, "beacons": nested.Copy(beacons)})
	case "reset":
		e.opts = map[string]any{}
		return e.fire("minion_beacon_reset_complete", map[string]any{"complete": true, "comment": "Beacons have been reset", "beacons": map[string]any{}})
	}
	e.o.Log.Error(fmt.Sprintf("Function %q is unavailable in salt.utils.beacons", fun))
	return nil
}

// fire fires an event on the minion's bus and returns its data.
func (e *Engine) fire(tag string, data map[string]any) map[string]any {
	if e.o.Fire != nil {
		e.o.Fire(prefix+tag, data)
	}
	return data
}

// answer fires the event after a change of one beacon.
func (e *Engine) answer(tag string, complete bool, comment string) map[string]any {
	return e.fire(tag, map[string]any{"complete": complete, "comment": comment, "beacons": nested.Copy(e.opts)})
}

// inPillar reports whether the pillar configures a beacon. Such a beacon cannot be changed.
func (e *Engine) inPillar(name string) bool {
	_, ok := e.merged(true, false)[name]
	return ok
}

// putBeacon adds or replaces a beacon.
func (e *Engine) putBeacon(name string, config any, tag, done, refused string) map[string]any {
	if e.inPillar(name) {
		return e.answer(tag, false, refused)
	}
	e.opts[name] = nested.Copy(config)
	// The beacon starts over, with its new interval.
	delete(e.due, name)
	return e.answer(tag, true, done)
}

// removeBeacon removes a beacon.
func (e *Engine) removeBeacon(name string) map[string]any {
	const tag = "minion_beacon_delete_complete"
	if e.inPillar(name) {
		return e.answer(tag, false, fmt.Sprintf("Cannot delete beacon item %s, it is configured in pillar.", name))
	}
	comment := fmt.Sprintf("Beacon item %s not found.", name)
	if _, ok := e.opts[name]; ok {
		delete(e.opts, name)
		comment = "Deleting beacon item: " + name
	}
	return e.answer(tag, true, comment)
}

// switchOne enables or disables one beacon.
func (e *Engine) switchOne(name string, on bool) map[string]any {
	verb, tag, doing := "enable", "minion_beacon_enabled_complete", "Enabling"
	if !on {
		verb, tag, doing = "disable", "minion_beacon_disabled_complete", "Disabling"
	}
	if e.inPillar(name) {
		return e.answer(tag, false, fmt.Sprintf("Cannot %s beacon item %s, it is configured in pillar.", verb, name))
	}
	e.setEnabled(name, on)
	return e.answer(tag, true, doing+" beacon item "+name)
}

// setEnabled sets the setting enabled of a beacon. The caller holds mu.
func (e *Engine) setEnabled(name string, on bool) {
	// A configuration is a map or, in Salt's format, a list of maps.
	switch c := e.opts[name].(type) {
	case map[string]any:
		c["enabled"] = on
	case []any:
		list, _ := nested.Copy(c).([]any)
		for _, x := range list {
			if m, ok := x.(map[string]any); ok {
				if _, ok := m["enabled"]; ok {
					// Change a copy of the list, since a run may be reading the old one.
					m["enabled"] = on
					e.opts[name] = list
					return
				}
			}
		}
		e.opts[name] = append(list, map[string]any{"enabled": on})
	}
}

// validate checks a configuration and fires an event with the result.
func (e *Engine) validate(ctx context.Context, name string, config any) map[string]any {
	e.look.Lock()
	defer e.look.Unlock()
	kind := name
	if list, ok := config.([]any); ok && len(list) > 0 {
		first, _ := list[0].(map[string]any)
		kind = moduleOf(name, first) // Salt uses only the first item
	}
	h := e.hostFor(ctx)
	// Salt returns this text for a missing kind as well.
	valid, comment := true, fmt.Sprintf("Beacon %s does not have a validate function, skipping validation.", kind)
	if k, _ := e.findKind(h, kind); k != nil {
		valid, comment = k.valid(h, nested.Copy(config))
	}
	return e.fire("minion_beacon_validation_complete", map[string]any{"complete": true, "vcomment": comment, "valid": valid})
}

// listKinds fires an event with the kinds that this host supports.
func (e *Engine) listKinds(ctx context.Context) map[string]any {
	e.look.Lock()
	defer e.look.Unlock()
	h := e.hostFor(ctx)
	names := []any{}
	// Kinds of the host's owner come first and replace ours.
	if e.o.OwnNames != nil {
		names = nested.Anys(e.o.OwnNames(h))
	}
	for _, k := range e.o.Kinds {
		if slices.Contains(names, any(k.Name)) {
			continue
		}
		if k.Available == nil || k.Available(h) {
			names = append(names, k.Name)
		}
	}
	return e.fire("minion_beacons_list_available_complete", map[string]any{"complete": true, "beacons": names})
}

// textOf returns a value as text, or "" for a value that is false in Python.
func textOf(v any) string {
	if !pytext.Truth(v) {
		return ""
	}
	return pytext.Str(v)
}

// parseFloat and sortedKeys are short for the library's functions.
func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
