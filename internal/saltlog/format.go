package saltlog

import (
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/strftime"
)

// record holds the values that a format can refer to.
type record struct {
	time                         time.Time
	level                        slog.Level
	message, logger, jid, minion string
	frame                        runtime.Frame
}

// formatter formats records. It holds the parsed formats.
type formatter struct {
	parts    []part
	date     string
	jid      []part
	minion   []part
	pid      int
	colors   bool
	start    time.Time
	timeText string // the text of the second timeAt, which its records share
	timeAt   int64
}

// part is literal text or, if key is not "", a conversion.
type part struct {
	literal, key, flags string
	width, precision    int // -1 if not set
	conversion          byte
}

func newFormatter(format, date string, o Options) *formatter {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return &formatter{parts: parseFormat(format), date: date, jid: parseFormat(or(o.JIDFormat, defaultJID)),
		minion: parseFormat(or(o.MinionFormat, defaultMinion)), pid: o.Pid, colors: o.Console != nil, start: now(), timeAt: math.MinInt64}
}

// maxWidth limits the width and precision of a conversion, so that a format cannot create a line of a gigabyte.
const maxWidth = 1 << 10

// parseFormat parses a %-style format. A conversion without a key, or with a type that Python does not support,
// remains text.
func parseFormat(s string) []part {
	var parts []part
	literal := func(text string) {
		if n := len(parts); n > 0 && parts[n-1].key == "" {
			parts[n-1].literal += text
		} else if text != "" {
			parts = append(parts, part{literal: text})
		}
	}
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			literal(s)
			return parts
		}
		literal(s[:i])
		s = s[i:]
		if strings.HasPrefix(s, "%%") {
			literal("%")
			s = s[2:]
			continue
		}
		p, n := parseConversion(s)
		if n == 0 {
			literal("%")
			s = s[1:]
			continue
		}
		p.literal = s[:n]
		parts = append(parts, p)
		s = s[n:]
	}
}

// parseConversion parses a conversion like "%(key)-17.3s" at the beginning of s. It returns its length, or 0 if s
// does not begin with a conversion.
func parseConversion(s string) (part, int) {
	p := part{width: -1, precision: -1}
	if !strings.HasPrefix(s, "%(") {
		return p, 0
	}
	end := strings.IndexByte(s, ')')
	if end <= 2 {
		return p, 0
	}
	p.key = s[2:end]
	i := end + 1
	for i < len(s) && strings.IndexByte("#0- +", s[i]) >= 0 {
		p.flags += s[i : i+1]
		i++
	}
	number := func() int {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if start == i {
			return -1
		}
		n, err := strconv.Atoi(s[start:i])
		if err != nil || n > maxWidth {
			n = maxWidth
		}
		return n
	}
	p.width = number()
	if i < len(s) && s[i] == '.' {
		i++
		p.precision = max(number(), 0)
	}
	if i >= len(s) || strings.IndexByte("diouxXeEfFgGcrsa", s[i]) < 0 {
		return p, 0
	}
	p.conversion = s[i]
	return p, i + 1
}

// line formats a record, without a line end.
func (f *formatter) line(r *record) []byte {
	return f.expand(nil, f.parts, r)
}

func (f *formatter) expand(b []byte, parts []part, r *record) []byte {
	for i := range parts {
		p := &parts[i]
		if p.key == "" {
			b = append(b, p.literal...)
			continue
		}
		v := f.value(p.key, r)
		if v == nil {
			b = append(b, p.literal...)
			continue
		}
		b = p.append(b, v)
	}
	return b
}

// value returns an attribute of Python's LogRecord or one that Salt adds to it. It returns nil for an unknown name.
func (f *formatter) value(key string, r *record) any {
	name, number := levelOf(r.level)
	switch key {
	case "message", "msg":
		return r.message
	case "levelname":
		return name
	case "levelno":
		return number
	case "name":
		return r.logger
	case "asctime":
		return f.asctime(r.time)
	case "msecs":
		return float64(r.time.Nanosecond()/1e3) / 1e3
	case "created":
		return float64(r.time.UnixMicro()) / 1e6
	case "relativeCreated":
		return float64(r.time.Sub(f.start).Microseconds()) / 1e3
	case "process":
		return f.pid
	case "processName":
		return "MainProcess"
	case "threadName":
		return "MainThread"
	case "thread":
		return f.pid
	case "lineno":
		return r.frame.Line
	case "pathname":
		return r.frame.File
	case "filename":
		return filepath.Base(r.frame.File)
	case "module":
		return strings.TrimSuffix(filepath.Base(r.frame.File), ".go")
	case "funcName":
		return r.frame.Function[strings.LastIndexByte(r.frame.Function, '.')+1:]
	case "jid":
		if r.jid == "" {
			return ""
		}
		return string(f.jobText(f.jid, "jid", r.jid))
	case "minion_id":
		if r.minion == "" {
			return ""
		}
		return string(f.jobText(f.minion, "minion_id", r.minion))
	case "exc_info", "exc_text", "stack_info":
		return "None"
	}
	return f.decorated(key, name, r)
}

// jobText expands the format of the job id or minion id, which may only use its own key.
func (f *formatter) jobText(parts []part, key, value string) []byte {
	var b []byte
	for i := range parts {
		if parts[i].key == key {
			b = parts[i].append(b, value)
		} else {
			b = append(b, parts[i].literal...)
		}
	}
	return b
}

// decorated returns an attribute in brackets, in colour for the color… keys.
func (f *formatter) decorated(key, level string, r *record) any {
	color := ""
	text := ""
	switch key {
	case "bracketlevel", "colorlevel":
		text, color = fmt.Sprintf("[%-8s]", level), levelColor(level, true)
	case "bracketname", "colorname":
		text, color = fmt.Sprintf("[%-17s]", r.logger), "0;1;32"
	case "bracketprocess", "colorprocess":
		text, color = fmt.Sprintf("[%5d]", f.pid), "0;1;34"
	case "colormsg":
		text, color = r.message, levelColor(level, false)
	default:
		return nil
	}
	if !f.colors || !strings.HasPrefix(key, "color") {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0;0m"
}

func levelColor(level string, bold bool) string {
	color := ""
	switch level {
	case "CRITICAL":
		return "0;1;31"
	case "PROFILE":
		return "0;1;36"
	case "ERROR":
		color = "31"
	case "WARNING":
		color = "33"
	case "INFO":
		color = "32"
	case "DEBUG":
		color = "36"
	case "TRACE":
		color = "35"
	case "GARBAGE":
		color = "34"
	default:
		return "0;0"
	}
	if bold {
		return "0;1;" + color
	}
	return "0;" + color
}

func (f *formatter) asctime(t time.Time) string {
	if t.Unix() != f.timeAt {
		f.timeText, f.timeAt = strftime.Format(f.date, t.Local()), t.Unix()
	}
	return f.timeText
}

// append appends a value formatted by Python's rules for %.
func (p *part) append(b []byte, v any) []byte {
	text := ""
	switch p.conversion {
	case 's', 'r', 'a':
		text = pyText(v)
		if p.conversion != 's' {
			if s, ok := v.(string); ok {
				text = "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
			}
		}
		if p.precision >= 0 {
			if rs := []rune(text); len(rs) > p.precision {
				text = string(rs[:p.precision])
			}
		}
		return p.pad(b, text, false)
	case 'c':
		if n, ok := v.(int); ok {
			return p.pad(b, string(rune(n)), false)
		}
		return append(b, p.literal...)
	}
	var f float64
	switch v := v.(type) {
	case int:
		f = float64(v)
	case float64:
		f = v
	default:
		return append(b, p.literal...)
	}
	negative := f < 0
	switch p.conversion {
	case 'd', 'i', 'u':
		text = strconv.FormatInt(int64(f), 10)
	case 'o':
		text = strconv.FormatInt(int64(f), 8)
	case 'x', 'X':
		text = strconv.FormatInt(int64(f), 16)
	default:
		precision := p.precision
		if precision < 0 {
			precision = 6
		}
		text = strconv.FormatFloat(f, p.conversion|0x20, precision, 64)
	}
	if p.conversion == 'X' || p.conversion == 'E' || p.conversion == 'G' {
		text = strings.ToUpper(text)
	}
	if p.conversion != 'e' && p.conversion != 'f' && p.conversion != 'g' && p.precision > len(text) {
		text = strings.Repeat("0", p.precision-len(text)) + text
	}
	if !negative && strings.Contains(p.flags, "+") {
		text = "+" + text
	} else if !negative && strings.Contains(p.flags, " ") {
		text = " " + text
	}
	return p.pad(b, text, true)
}

func pyText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return fmt.Sprint(v)
}

func (p *part) pad(b []byte, text string, number bool) []byte {
	missing := p.width - utf8.RuneCountInString(text)
	if missing <= 0 {
		return append(b, text...)
	}
	switch {
	case strings.Contains(p.flags, "-"):
		b = append(b, text...)
		return append(b, strings.Repeat(" ", missing)...)
	case number && strings.Contains(p.flags, "0"):
		sign := ""
		if text != "" && strings.IndexByte("+- ", text[0]) >= 0 {
			sign, text = text[:1], text[1:]
		}
		b = append(b, sign...)
		b = append(b, strings.Repeat("0", missing)...)
		return append(b, text...)
	}
	b = append(b, strings.Repeat(" ", missing)...)
	return append(b, text...)
}
