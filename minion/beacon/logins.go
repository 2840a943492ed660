package beacon

import (
	"context"
	"encoding/binary"
	"os"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pydate"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// Files of logins, and the size in bytes of a record in them (struct utmp of the C library).
const (
	btmpFile, wtmpFile = "/var/log/btmp", "/var/log/wtmp"
	recordSize         = 384
)

// btmp reports failed logins, wtmp logins and logouts (salt/beacons/btmp.py, wtmp.py).
var btmp = Kind{Name: "btmp", Available: func(h *Host) bool { return isFile(h, btmpFile) },
	Validate: func(_ *Host, config any) (bool, string) { return validateLogins("btmp", config) },
	Look: func(ctx context.Context, h *Host, config []any) ([]map[string]any, error) {
		return lookLogins(ctx, h, config, "btmp", btmpFile, nil)
	}}

var wtmp = Kind{Name: "wtmp", Available: func(h *Host) bool { return isFile(h, wtmpFile) },
	Validate: func(_ *Host, config any) (bool, string) { return validateLogins("wtmp", config) },
	Look: func(ctx context.Context, h *Host, config []any) ([]map[string]any, error) {
		return lookLogins(ctx, h, config, "wtmp", wtmpFile, sessions(h))
	}}

// isFile reports whether a path is a regular file.
func isFile(h *Host, path string) bool {
	info, err := os.Stat(h.Path(path))
	return err == nil && info.Mode().IsRegular()
}

// validateLogins checks the time ranges of users, groups and defaults.
func validateLogins(name string, config any) (bool, string) {
	c, bad := mustList(name, config)
	if bad != "" {
		return false, bad
	}
	for _, part := range [...]struct{ key, what string }{{"users", "User"}, {"groups", "Group"}, {"defaults", "Defaults"}} {
		v, ok := c[part.key]
		if !ok {
			continue
		}
		m, ok := v.(map[string]any)
		if !ok {
			return false, part.what + " configuration for " + name + " beacon must be a dictionary."
		}
		// Defaults have one range; users and groups have one each.
		ranges := []any{m["time_range"]}
		if part.key != "defaults" {
			ranges = nil
			for _, k := range sortedKeys(m) {
				one, _ := m[k].(map[string]any)
				ranges = append(ranges, one["time_range"])
			}
		}
		for _, r := range ranges {
			if bad := badTimeRange(name, r); bad != "" {
				return false, bad
			}
		}
	}
	return true, valid
}

// badTimeRange returns the error in a time_range, or "".
func badTimeRange(name string, r any) string {
	if !pytext.Truth(r) {
		return ""
	}
	m, ok := r.(map[string]any)
	if !ok && !strings.Contains(pytext.Str(r), "start") {
		return "The time_range parameter for " + name + " beacon must contain start & end options."
	}
	_, start := m["start"]
	_, end := m["end"]
	switch {
	case ok && (!start || !end):
		return "The time_range parameter for " + name + " beacon must contain start & end options."
	case !ok:
		return "The time_range parameter for " + name + " beacon must be a dictionary."
	}
	return ""
}

// parseRecord parses one login record.
func parseRecord(b []byte) map[string]any {
	// text returns a field of fixed length without its zeros.
	text := func(from, to int) string {
		return strings.ToValidUTF8(strings.Trim(string(b[from:to]), "\x00"), "\uFFFD")
	}
	le := binary.NativeEndian
	return map[string]any{
		"type": int64(int16(le.Uint16(b[0:]))), "PID": int64(int32(le.Uint32(b[4:]))), "line": text(8, 40), "inittab": text(40, 44),
		"user": text(44, 76), "hostname": text(76, 332),
		// Salt assigns e_termination to "exit_status", e_exit to "session" and so on: each name is shifted by one
		// field.
		"exit_status": int64(int16(le.Uint16(b[332:]))), "session": int64(int16(le.Uint16(b[334:]))), "time": int64(int32(le.Uint32(b[336:]))),
		"addr": int64(int32(le.Uint32(b[340:]))),
	}
}

// sessions returns a function that adds to records of wtmp whether they are a login or a logout. A logout record has
// no user, so the user of each line is remembered.
func sessions(h *Host) func(event map[string]any) {
	lines, _ := h.Memory["wtmp.tty"].(map[string]any)
	if lines == nil {
		lines = map[string]any{}
		h.Memory["wtmp.tty"] = lines
	}
	return func(event map[string]any) {
		line := event["line"].(string)
		switch event["type"] {
		// 7 is USER_PROCESS, 8 is DEAD_PROCESS.
		case int64(7):
			event["action"] = "login"
			lines[line] = event["user"]
		case int64(8):
			event["action"] = "logout"
			if user, ok := lines[line]; ok {
				event["user"] = user
				delete(lines, line)
			}
		}
	}
}

// lookLogins reports the records since the last run whose user and time match the configuration. more adds fields.
func lookLogins(ctx context.Context, h *Host, config []any, name, path string, more func(map[string]any)) ([]map[string]any, error) {
	text, err := growth(h, name+".loc", path)
	if err != nil {
		return nil, err
	}
	// growth included an incomplete record; read it again when it is complete.
	if rest := len(text) % recordSize; rest != 0 {
		h.Memory[name+".loc"] = h.Memory[name+".loc"].(int64) - int64(rest)
		text = text[:len(text)-rest]
	}
	if len(text) == 0 {
		return nil, nil
	}
	users, defaults := loginUsers(ctx, h, config)
	now := pydate.Now(h.Now())
	var found []map[string]any
	for ; len(text) > 0; text = text[recordSize:] {
		event := parseRecord(text)
		if more != nil {
			more(event)
		}
		// If the configuration names no users, every login is reported.
		limit := defaults
		if len(users) > 0 {
			user, ok := users[event["user"].(string)]
			if !ok {
				continue
			}
			if m, _ := user.(map[string]any); m["time_range"] != nil {
				limit = m
			}
		}
		if r, ok := limit["time_range"]; !ok || inTimeRange(r, now) {
			found = append(found, event)
		}
	}
	return found, nil
}

// loginUsers returns the configured users, including members of configured groups, and the settings for all.
func loginUsers(ctx context.Context, h *Host, config []any) (users, defaults map[string]any) {
	c := flat(config)
	users, _ = nested.Copy(c["users"]).(map[string]any)
	if users == nil {
		users = map[string]any{}
	}
	defaults, _ = c["defaults"].(map[string]any)
	groups, _ := c["groups"].(map[string]any)
	for _, group := range sortedKeys(groups) {
		info, err := h.Exec(ctx, "group.info", []any{group}, nil)
		m, _ := info.(map[string]any)
		if err != nil || len(m) == 0 {
			h.Logger().Warn("Group " + group + " does not exist, ignoring.")
			continue
		}
		members, _ := m["members"].([]any)
		// A user's settings take precedence over its group's.
		for _, x := range members {
			if _, ok := users[pytext.Str(x)]; !ok {
				users[pytext.Str(x)] = groups[group]
			}
		}
	}
	return users, defaults
}

// inTimeRange reports whether now is within a time range.
func inTimeRange(r any, now time.Time) bool {
	m, _ := r.(map[string]any)
	// Like Salt, ignore a range that cannot be parsed.
	start, err1 := pydate.Parse(pytext.Str(m["start"]), now)
	end, err2 := pydate.Parse(pytext.Str(m["end"]), now)
	return err1 == nil && err2 == nil && !now.Before(start) && !now.After(end)
}
