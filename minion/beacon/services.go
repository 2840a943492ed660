package beacon

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// service reports whether services are running (salt/beacons/service.py).
var service = Kind{Name: "service", Validate: func(_ *Host, config any) (bool, string) {
	c, bad := mustList("service", config)
	if bad != "" {
		return false, bad
	}
	v, ok := c["services"]
	if !ok {
		return false, "Configuration for service beacon requires services."
	}
	m, ok := v.(map[string]any)
	if !ok {
		return false, "Services configuration item for service beacon must be a dictionary."
	}
	for _, x := range m {
		if !isMap(x) {
			return false, "Configuration for service beacon must be a list of dictionaries."
		}
	}
	return true, valid
}, Look: lookServices}

// serviceState is the last reported state of a service.
type serviceState struct {
	running any
	since   time.Time // of a change that is not reported yet, because of delay
}

// lookServices reports the state of services. With onchangeonly only changes are reported, and with delay only those
// that last, so that a restart is not reported.
func lookServices(ctx context.Context, h *Host, config []any) ([]map[string]any, error) {
	var found []map[string]any
	services, _ := flat(config)["services"].(map[string]any)
	seen, _ := h.Memory["service"].(map[string]*serviceState)
	if seen == nil {
		seen = map[string]*serviceState{}
		h.Memory["service"] = seen
	}
	for _, name := range sortedKeys(services) {
		c, _ := services[name].(map[string]any)
		running, err := h.Exec(ctx, "service.status", []any{name}, nil)
		if err != nil {
			return nil, err
		}
		state := map[string]any{"running": running}
		if file, ok := c["uncleanshutdown"]; ok && !pytext.Truth(running) {
			_, err := os.Stat(h.Path(pytext.Str(file)))
			state["uncleanshutdown"] = err == nil
		}
		event := map[string]any{name: state, "service_name": name, "tag": name}
		// Without onchangeonly every run reports every service.
		if c["onchangeonly"] != true {
			found = append(found, event)
			continue
		}
		delay := 0.0
		if v, ok := c["delay"]; ok {
			if delay, err = number(v); err != nil {
				return nil, err
			}
		}
		last, ok := seen[name]
		now := time.Now()
		// The first state counts as a change unless emitatstartup is false.
		changed := ok && !same(last.running, running)
		if !ok || changed {
			last = &serviceState{running: running}
			seen[name] = last
			if !ok && !optional(c, "emitatstartup", true) {
				continue
			}
			// A change with a delay waits, and is dropped if the state changes back meanwhile.
			if delay > 0 {
				last.since = now
			} else {
				found = append(found, event)
			}
		}
		if !last.since.IsZero() && math.Round(now.Sub(last.since).Seconds()) > delay {
			last.since = time.Time{}
			found = append(found, event)
		}
	}
	return found, nil
}

// same compares values by their repr, so that values of different types differ.
func same(a, b any) bool { return pytext.Repr(a) == pytext.Repr(b) }

// ps reports which processes are running or stopped (salt/beacons/ps.py).
var ps = Kind{Name: "ps", Available: hasProc, Validate: func(_ *Host, config any) (bool, string) {
	c, bad := mustList("ps", config)
	if bad != "" {
		return false, bad
	}
	v, ok := c["processes"]
	switch {
	case !ok:
		return false, "Configuration for ps beacon requires processes."
	case !isMap(v):
		return false, "Processes for ps beacon must be a dictionary."
	}
	return true, valid
}, Look: lookProcesses}

// processNames returns the names of all processes. The kernel truncates names to 15 characters; the command line may
// have the rest.
func processNames(h *Host) (map[string]bool, error) {
	dirs, err := os.ReadDir(h.Path("/proc"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, d := range dirs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		stat, err := readProc(h, "/proc/"+d.Name()+"/stat")
		if err != nil {
			continue
		}
		// The name is in parentheses. It may contain parentheses, so it ends at the last one.
		text := string(stat)
		open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
		if open < 0 || end < open {
			continue
		}
		name := text[open+1 : end]
		if len(name) >= 15 {
			line, _ := readProc(h, "/proc/"+d.Name()+"/cmdline")
			first, _, _ := strings.Cut(string(line), "\x00")
			// A program may change its command line, so it must begin with the kernel's name.
			if base := filepath.Base(first); strings.HasPrefix(base, name) {
				name = base
			}
		}
		names[name] = true
	}
	return names, nil
}

// lookProcesses reports the processes that are in the wanted state, and other ones as Salt does.
func lookProcesses(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	names, err := processNames(h)
	if err != nil {
		return nil, err
	}
	var found []map[string]any
	wanted, _ := flat(config)["processes"].(map[string]any)
	for _, name := range sortedKeys(wanted) {
		switch {
		case wanted[name] == "running":
			if names[name] {
				found = append(found, map[string]any{name: "Running"})
			}
		// A process that should be stopped but is running is not reported.
		case names[name]:
		case wanted[name] == "stopped":
			found = append(found, map[string]any{name: "Stopped"})
		default:
			found = append(found, map[string]any{name: false})
		}
	}
	return found, nil
}

// pkgs is the beacon pkg, which reports installed packages and upgrades (salt/beacons/pkg.py).
var pkgs = Kind{Name: "pkg", Validate: func(_ *Host, config any) (bool, string) {
	list, ok := config.([]any)
	if !ok {
		return false, "Configuration for pkg beacon must be a list."
	}
	for _, x := range list {
		if m, ok := x.(map[string]any); ok && isList(m["pkgs"]) {
			return true, valid
		}
	}
	return false, "Configuration for pkg beacon requires list of pkgs."
}, Look: lookPackages}

// lookPackages reports packages whose state has changed since the last run.
func lookPackages(ctx context.Context, h *Host, config []any) ([]map[string]any, error) {
	seen, _ := h.Memory["pkg"].(map[string]string)
	if seen == nil {
		seen = map[string]string{}
		h.Memory["pkg"] = seen
	}
	var names []any
	for _, x := range config {
		m, _ := x.(map[string]any)
		list, _ := m["pkgs"].([]any)
		names = append(names, list...)
	}
	var found []map[string]any
	for _, v := range names {
		name := pytext.Str(v)
		version, err := h.Exec(ctx, "pkg.version", []any{name}, map[string]any{"use_context": false})
		if err != nil {
			return nil, err
		}
		state := "not-installed"
		if pytext.Truth(version) {
			state = "installed"
			// Salt looks for "refresh" in the wrong place and never refreshes.
			latest, err := h.Exec(ctx, "pkg.latest_version", []any{name}, map[string]any{"refresh": false})
			if err != nil {
				return nil, err
			}
			if pytext.Truth(latest) {
				version, state = latest, "upgrade"
			}
		} else {
			version = nil
		}
		// The first state of a package is not reported.
		if before := seen[name]; before != "" && before != state {
			found = append(found, map[string]any{"pkg": name, "version": version, "status": state})
		}
		seen[name] = state
	}
	return found, nil
}

// status reports results of functions of the module status (salt/beacons/status.py).
var status = Kind{Name: "status", Validate: func(_ *Host, config any) (bool, string) {
	if _, bad := mustList("status", config); bad != "" {
		return false, bad
	}
	return true, valid
}, Look: lookStatus}

// lookStatus reports the configured results, or Salt's default selection.
func lookStatus(ctx context.Context, h *Host, config []any) ([]map[string]any, error) {
	entries := visible(config)
	if len(entries) == 0 {
		all := []any{"all"}
		entries = []any{map[string]any{"loadavg": all, "cpustats": all, "meminfo": all, "vmstats": all, "time": all}}
	}
	result := map[string]any{}
	for _, x := range entries {
		entry, _ := x.(map[string]any)
		for _, fun := range sortedKeys(entry) {
			data, err := h.Exec(ctx, "status."+fun, nil, nil)
			// A function that fails is reported as an empty result.
			if modules.IsExecError(err) {
				result[fun] = map[string]any{}
				continue
			}
			if err != nil {
				return nil, err
			}
			result[fun] = statusItems(data, entry[fun])
		}
	}
	return []map[string]any{{"tag": time.Now().UTC().Format("2006-01-02T15:04:05.000000"), "data": result}}, nil
}

// statusItems returns the configured parts of a function's result.
func statusItems(data, wanted any) any {
	items, ok := wanted.([]any)
	if !ok {
		items = []any{wanted}
	}
	part := map[string]any{}
	var out any = part
	for _, item := range items {
		// "all" selects the whole result.
		if item == "all" {
			out = data
			continue
		}
		name := pytext.Str(item)
		var v any
		found := false
		switch d := data.(type) {
		case map[string]any:
			v, found = d[name]
		case []any:
			i, err := modules.ToInt(item)
			if found = err == nil && i >= 0 && i < int64(len(d)); found {
				v = d[i]
			}
		}
		// As in Salt, an unknown name replaces the whole result by an error text.
		if !found {
			return "Status beacon is incorrectly configured: " + pytext.Repr(item)
		}
		if m, ok := out.(map[string]any); ok {
			m[name] = v
		}
	}
	return out
}

// saltMonitor reports results of execution functions (salt/beacons/salt_monitor.py).
var saltMonitor = Kind{Name: "salt_monitor", Validate: func(h *Host, config any) (bool, string) {
	c := flat(config)
	calls, bad := monitorCalls(c["salt_fun"])
	if bad != "" {
		return false, bad
	}
	for _, x := range calls {
		if x.fun == "" || !strings.Contains(x.fun, ".") {
			return false, x.fun + " not in __salt__"
		}
	}
	return true, "valid config"
}, Look: lookMonitor}

// A monitorCall is one call of the salt_monitor beacon.
type monitorCall struct {
	fun    string
	args   []any
	kwargs map[string]any
	// single is set if the configuration is a single name; then an empty result is reported, too.
	single bool
}

// monitorCalls returns the calls that the salt_monitor beacon makes, or Salt's error text.
func monitorCalls(v any) ([]monitorCall, string) {
	if s, ok := v.(string); ok {
		return []monitorCall{{fun: s, single: true}}, ""
	}
	list, _ := v.([]any)
	var calls []monitorCall
	for _, x := range list {
		m, ok := x.(map[string]any)
		if !ok {
			calls = append(calls, monitorCall{fun: pytext.Str(x)})
			continue
		}
		for _, fun := range sortedKeys(m) {
			call := monitorCall{fun: fun, kwargs: map[string]any{}}
			how, _ := m[fun].(map[string]any)
			for _, key := range sortedKeys(how) {
				list, ok := how[key].([]any)
				switch {
				// The checks have Salt's order and texts.
				case key != "args" && key != "kwargs":
					return nil, "key " + key + " not allowed under fun " + fun
				case !ok && key == "args":
					return nil, "args key for fun " + fun + " must be list"
				case !ok:
					return nil, "kwargs key for fun " + fun + " must be list of key value pairs"
				case key == "args":
					call.args = list
					continue
				}
				for _, pair := range list {
					if !isMap(pair) {
						return nil, pytext.Str(pair) + " is not a key / value pair"
					}
				}
				call.kwargs = flat(list)
			}
			calls = append(calls, call)
			// Only the first key of an entry counts.
			break
		}
	}
	return calls, ""
}

// lookMonitor calls the functions. The minion's policy applies, because the configuration may come from the master.
func lookMonitor(ctx context.Context, h *Host, config []any) ([]map[string]any, error) {
	calls, bad := monitorCalls(flat(config)["salt_fun"])
	if bad != "" {
		return nil, modules.Errorf("%s", bad)
	}
	var found []map[string]any
	for _, c := range calls {
		if h.Refuse != nil {
			if err := h.Refuse(ctx, c.fun); err != nil {
				return nil, err
			}
		}
		ret, err := h.Exec(ctx, c.fun, c.args, c.kwargs)
		if err != nil {
			return nil, err
		}
		if !c.single && !pytext.Truth(ret) {
			continue
		}
		event := map[string]any{"salt_fun": c.fun, "ret": ret}
		if len(c.args) > 0 {
			event["args"] = c.args
		}
		if len(c.kwargs) > 0 {
			event["kwargs"] = c.kwargs
		}
		found = append(found, event)
	}
	return found, nil
}
