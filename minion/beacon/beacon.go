// Package beacon watches the host and reports changes to the master, like the beacons of a Salt minion: load,
// disks, services, files, logs, logins and more.
//
//	configuration + pillar ─▶ enabled ─▶ planTimer ─▶ timer ─▶ runDue ─▶ process ─▶ Kind.Look ─▶ Send
//	                             ▲                                                      │
//	                             └──────────────────────────────────────────────────────┘
//
// The engine follows salt/beacons/__init__.py, and the kinds of beacons follow the other files there: configuration,
// validation texts and event data are Salt's. Salt runs every beacon each second. Here a beacon with an interval runs
// only when the interval has passed, and without beacons there is no timer, so that an idle minion sleeps.
//
// Kinds that need hardware, a cloud service or another product are missing (adb, glxinfo, haproxy, napalm, sensehat,
// twilio, telegram, aix, smartos). So are the mDNS announcers, and watchdog, which needs a Python library that Salt's
// packages do not contain and detects the same changes as inotify.
package beacon

import (
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Kinds returns every kind of beacon of this platform. A program that does not call it does not link them.
func Kinds() []*Kind {
	all := []*Kind{&btmp, &certInfo, &diskUsage, &journald, &load, &logFile, &memUsage, &networkInfo, &networkSettings, &pkgs, &ps,
		&saltMonitor, &service, &status, &swapUsage, &wtmp}
	return append(all, platformKinds()...)
}

// valid is Salt's text for a configuration without errors.
const valid = "Valid beacon configuration"

// mustList does the first check of every kind. It returns the configuration as one map, or Salt's error text.
func mustList(name string, config any) (map[string]any, string) {
	list, ok := config.([]any)
	if !ok {
		return nil, "Configuration for " + name + " beacon must be a list."
	}
	return flat(list), ""
}

// visible returns the entries of a configuration that are not private.
func visible(config []any) []any {
	var out []any
	for _, x := range config {
		m, ok := x.(map[string]any)
		hidden := false
		// A private entry has a key with an underscore; the engine passes the beacon's name like this.
		for k := range m {
			hidden = hidden || strings.HasPrefix(k, "_")
		}
		if ok && !hidden {
			out = append(out, x)
		}
	}
	return out
}

// percent parses a limit such as 90, "90" or "90%".
func percent(v any) (float64, error) {
	// Salt removes percent signs anywhere in the text.
	if s, ok := v.(string); ok {
		v = strings.ReplaceAll(s, "%", "")
	}
	f, err := number(v)
	if err != nil {
		return 0, modules.Errorf("could not convert string to float: %s", pytext.Repr(v))
	}
	return f, nil
}

// share returns a percentage with one decimal, as psutil does.
func share(used, total float64) float64 {
	if total <= 0 {
		return 0
	}
	return pytext.Round(used/total*100, 1)
}

// isBool, isMap and isList check types in configurations.
func isBool(v any) bool { _, ok := v.(bool); return ok }

func isMap(v any) bool { _, ok := v.(map[string]any); return ok }

func isList(v any) bool { _, ok := v.([]any); return ok }

// optional returns a bool setting, or def if it is missing.
func optional(m map[string]any, key string, def bool) bool {
	if v, ok := m[key]; ok {
		return pytext.Truth(v)
	}
	return def
}
