package beacon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// maxGrowth limits the bytes of a log that one run reads; the next run reads the rest.
const maxGrowth = 1 << 20

// logFile is the beacon log, which matches the lines of a file (salt/beacons/log_beacon.py).
var logFile = Kind{Name: "log", Available: hasProc, Validate: func(_ *Host, config any) (bool, string) {
	c, bad := mustList("log", config)
	if bad != "" {
		return false, bad
	}
	if _, ok := c["file"]; !ok {
		return false, "Configuration for log beacon must contain file option."
	}
	return true, valid
}, Look: lookLog}

// logEvent returns the data of an event of the beacon log.
func logEvent(tag, match, raw, problem string) map[string]any {
	return map[string]any{"tag": tag, "match": match, "raw": raw, "error": problem}
}

// lookLog reports new lines that match, once for each tag.
func lookLog(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	c := flat(config)
	path := pytext.Str(c["file"])
	// In Salt all log beacons share one position, so that two of them interfere. Here each beacon has its own.
	text, err := growth(h, "log."+pytext.Str(c["_beacon_name"])+"."+path, path)
	if err != nil || text == nil {
		return nil, err
	}
	var found []map[string]any
	tags, _ := c["tags"].(map[string]any)
	// A pattern is a regular expression and its tag.
	type pattern struct {
		tag string
		re  *pyre.Regexp
	}
	var patterns []pattern
	for _, tag := range sortedKeys(tags) {
		m, _ := tags[tag].(map[string]any)
		if !pytext.Truth(m["regex"]) {
			continue
		}
		re, err := pyre.Compile(pytext.Str(m["regex"]), 0)
		if err != nil {
			// As in Salt, a bad expression is reported in every run.
			found = append(found, logEvent(tag, "no", "", "bad regex"))
			continue
		}
		patterns = append(patterns, pattern{tag, re})
	}
	for _, line := range pytext.SplitLines(strings.ToValidUTF8(string(text), "\uFFFD"), false) {
		for _, p := range patterns {
			m, err := p.re.Match(line)
			switch {
			case err != nil:
				found = append(found, logEvent(p.tag, "no", "", "bad match"))
			case m != nil:
				found = append(found, logEvent(p.tag, "yes", line, ""))
			}
		}
	}
	return found, nil
}

// growth returns what was written to a file since the last run, or nil in the first run. A file that became shorter,
// for example by rotation, is read from its start.
func growth(h *Host, key, path string) ([]byte, error) {
	f, err := os.Open(h.Path(path))
	if err != nil {
		// The text of the error is Python's.
		if text, _ := modules.OSErrorText(err); text != "" {
			return nil, modules.Errorf("%s", text)
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, modules.Errorf("%s is not a file", path)
	}
	at, known := h.Memory[key].(int64)
	if !known {
		// The first run only records the end of the file: earlier content is not reported.
		h.Memory[key] = info.Size()
		return nil, nil
	}
	if info.Size() < at {
		at = 0
	}
	text := make([]byte, min(info.Size()-at, maxGrowth))
	n, err := f.ReadAt(text, at)
	if err != nil && err != io.EOF {
		return nil, err
	}
	text = text[:n]
	if n == maxGrowth { // whole lines only
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			text = text[:i+1]
		}
	}
	h.Memory[key] = at + int64(len(text))
	return text, nil
}

// journald reports entries of systemd's journal (salt/beacons/journald.py). Salt uses a Python library that reads the
// same fields as journalctl prints.
var journald = Kind{Name: "journald", Available: func(h *Host) bool { return h.Which("journalctl") != "" }, Validate: func(_ *Host, config any) (bool, string) {
	c, bad := mustList("journald", config)
	if bad != "" {
		return false, bad
	}
	services, _ := c["services"].(map[string]any)
	for _, x := range services {
		if !isMap(x) {
			return false, "Services configuration for journald beacon must be a list of dictionaries."
		}
	}
	return true, valid
}, Look: lookJournal}

const (
	// maxEntries limits the journal entries of one run; the next run reads the rest.
	maxEntries = 1000
	// journalEnd is the key in Memory of the last entry's position.
	journalEnd = "journald.cursor"
)

// lookJournal reports journal entries since the last run. The first run only finds the end of the journal.
func lookJournal(ctx context.Context, h *Host, config []any) ([]map[string]any, error) {
	cursor, known := h.Memory[journalEnd].(string)
	args := []string{"journalctl", "--no-pager", "--quiet", "--output=json", "--all"}
	// A cursor stays valid when files are rotated.
	if known && cursor != "" {
		args = append(args, "--after-cursor="+cursor)
	} else {
		args = append(args, "--lines=1")
	}
	res, err := h.Cmd(ctx, modules.Command{Args: args, Timeout: time.Minute, Limit: 16 << 20})
	if err != nil {
		return nil, err
	}
	var found []map[string]any
	services, _ := flat(config)["services"].(map[string]any)
	n := 0
	for line := range bytes.Lines(res.Stdout) {
		var entry map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		// Numbers stay text, since 64-bit numbers do not fit a float64.
		d.UseNumber()
		if d.Decode(&entry) != nil {
			continue
		}
		if c, ok := entry["__CURSOR"].(string); ok {
			cursor = c
		}
		if !known {
			continue
		}
		found = append(found, journalMatches(journalFields(entry), services)...)
		// The next run continues after the cursor.
		if n++; n == maxEntries {
			break
		}
	}
	h.Memory[journalEnd] = cursor
	return found, nil
}

// journalMatches returns the events of one entry: one for each service whose fields the entry has.
func journalMatches(entry, services map[string]any) []map[string]any {
	var found []map[string]any
	for _, name := range sortedKeys(services) {
		fields, _ := services[name].(map[string]any)
		fits := true
		for k, v := range fields {
			have, ok := entry[k]
			fits = fits && ok && same(have, v)
		}
		if fits {
			event := nested.Copy(entry).(map[string]any)
			event["tag"] = name
			found = append(found, event)
		}
	}
	return found
}

// journalFields returns the fields of an entry with the types and forms that Python's systemd module and Salt use.
func journalFields(entry map[string]any) map[string]any {
	out := make(map[string]any, len(entry))
	for k, v := range entry {
		text, ok := v.(string)
		// A field with several values, or with bytes, is a list.
		if !ok {
			if list, isList := v.([]any); isList {
				v = string(bytesOf(list))
			}
			out[k] = v
			continue
		}
		out[k] = journalField(k, text)
	}
	// Python's library combines the monotonic time with the boot id.
	if boot, ok := out["_BOOT_ID"].(string); ok {
		if micro, ok := out["__MONOTONIC_TIMESTAMP"].(int64); ok {
			out["__MONOTONIC_TIMESTAMP"] = []any{fmt.Sprintf("datetime.timedelta(seconds=%d, microseconds=%d)", micro/1e6, micro%1e6), boot}
		}
	}
	return out
}

// bytesOf returns a field that is not text, which journalctl prints as a list of numbers.
func bytesOf(list []any) []byte {
	b := make([]byte, 0, len(list))
	for _, x := range list {
		n, _ := strconv.Atoi(fmt.Sprint(x))
		b = append(b, byte(n))
	}
	return b
}

// journalField converts one field according to the table of Python's systemd module.
func journalField(k, text string) any {
	switch k {
	case "PRIORITY", "_PID", "_UID", "_GID", "_AUDIT_SESSION", "_AUDIT_LOGINUID", "ERRNO", "CODE_LINE", "SYSLOG_FACILITY", "SYSLOG_PID",
		"LEADER", "SESSION_ID", "USERSPACE_USEC", "INITRD_USEC", "KERNEL_USEC", "EXIT_STATUS", "EXIT_CODE", "_SOURCE_MONOTONIC_TIMESTAMP",
		"__MONOTONIC_TIMESTAMP", "N_RESTARTS", "OBJECT_PID", "OBJECT_UID", "OBJECT_GID":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case "_BOOT_ID", "_MACHINE_ID", "MESSAGE_ID":
		if len(text) == 32 {
			return fmt.Sprintf("UUID('%s-%s-%s-%s-%s')", text[:8], text[8:12], text[12:16], text[16:20], text[20:])
		}
	case "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return pytext.Repr(time.UnixMicro(n).Local())
		}
	}
	return text
}
