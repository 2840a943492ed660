// Package beacon looks after things on the host and tells the master when they change, as the beacons of a Salt minion do: load,
// disks, services, files, logs, logins and more.
//
// The engine follows salt/beacons/__init__.py, the kinds of beacons their files beside it: configuration, validation texts and
// the data of the events are those of Salt. Where Salt looks at every beacon each second, a beacon with an interval is only
// woken up when it has passed here, and without beacons nothing wakes up at all.
//
// Kinds that need hardware, a cloud service or another product (adb, glxinfo, haproxy, napalm, sensehat, twilio, telegram, aix,
// smartos) are left out, and so are the announcers of mDNS, and watchdog, which needs a Python library that Salt's packages do not
// bring and sees what inotify sees.
package beacon

import (
	"strings"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// Kinds lists every kind of beacon of this platform, by name. A program that does not call it has none of them in it.
func Kinds() []*Kind {
	all := []*Kind{&btmp, &certInfo, &diskUsage, &journald, &load, &logFile, &memUsage, &networkInfo, &networkSettings, &pkgs, &ps,
		&saltMonitor, &service, &status, &swapUsage, &wtmp}
	return append(all, platformKinds()...)
}

const valid = "Valid beacon configuration"

// mustList is the first check of every kind.
func mustList(name string, config any) (map[string]any, string) {
	list, ok := config.([]any)
	if !ok {
		return nil, "Configuration for " + name + " beacon must be a list."
	}
	return flat(list), ""
}

// visible are the parts of a configuration that are not private.
func visible(config []any) []any {
	var out []any
	for _, x := range config {
		m, ok := x.(map[string]any)
		hidden := false
		for k := range m {
			hidden = hidden || strings.HasPrefix(k, "_")
		}
		if ok && !hidden {
			out = append(out, x)
		}
	}
	return out
}

// percent reads a limit such as 90, "90" and "90%".
func percent(v any) (float64, error) {
	if s, ok := v.(string); ok {
		v = strings.ReplaceAll(s, "%", "")
	}
	f, err := number(v)
	if err != nil {
		return 0, modules.Errorf("could not convert string to float: %s", pytext.Repr(v))
	}
	return f, nil
}

// share is psutil's percentage with one decimal.
func share(used, total float64) float64 {
	if total <= 0 {
		return 0
	}
	return pytext.Round(used/total*100, 1)
}

func isBool(v any) bool { _, ok := v.(bool); return ok }

func isMap(v any) bool { _, ok := v.(map[string]any); return ok }

func isList(v any) bool { _, ok := v.([]any); return ok }

// optional is a truth with a default.
func optional(m map[string]any, key string, def bool) bool {
	if v, ok := m[key]; ok {
		return pytext.Truth(v)
	}
	return def
}
