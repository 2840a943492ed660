// Package pytext converts values to text as Python does: str(), repr() and truth. Salt's matchers, outputters and
// error messages show values in this form, so all packages that print or compare values use it.
//
// It supports the plain values that packages exchange (package payload lists them) and Go's other integer and float
// types. It imports only the standard library, so any package may use it.
package pytext

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Str implements Python's str(v): it returns text unchanged, and the Repr of other values.
func Str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case time.Time:
		return timeText(v)
	}
	return Repr(v)
}

// Repr implements Python's repr(v). The keys of maps are sorted, since Go's maps have no order.
func Repr(v any) string {
	return string(appendRepr(nil, v))
}

// Truth implements Python's bool(v).
func Truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []byte:
		return len(v) > 0
	case []any:
		return len(v) > 0
	case []string:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	case map[any]any:
		return len(v) > 0
	case float64:
		return v != 0
	}
	if n, ok := integer(v); ok {
		return n != "0"
	}
	return true
}

// IsTrue converts a flag as Salt does (salt/utils/data.py is_true). Numbers above 0 are true, also in a text, as is
// the text "true" in any case. Values that are neither numbers nor texts have Python's truth.
func IsTrue(v any) bool {
	switch v := v.(type) {
	case string:
		if f, err := strconv.ParseFloat(strings.ReplaceAll(Strip(v), "_", ""), 64); err == nil {
			return f > 0
		}
		return strings.EqualFold(v, "true")
	case float64:
		return v > 0
	case bool:
		return v
	}
	if n, ok := integer(v); ok {
		return n != "0" && !strings.HasPrefix(n, "-")
	}
	return Truth(v)
}

// Float returns Python's repr of a float: the shortest text that parses to the same number, with a decimal point or
// an exponent.
func Float(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	exp, err := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	if err == nil && exp >= -4 && exp < 16 {
		text = strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
	}
	return text
}

func integer(v any) (string, bool) {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case int8, int16, int32, uint, uint8, uint16, uint32:
		return fmt.Sprint(v), true
	}
	return "", false
}

func appendRepr(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "None"...)
	case bool:
		if v {
			return append(b, "True"...)
		}
		return append(b, "False"...)
	case string:
		return appendQuoted(b, v)
	case []byte:
		return appendBytes(b, v)
	case float64:
		return append(b, Float(v)...)
	case float32:
		return append(b, Float(float64(v))...)
	case time.Time:
		return append(b, timeRepr(v)...)
	case []any:
		return appendList(b, len(v), func(b []byte, i int) []byte { return appendRepr(b, v[i]) })
	case []string:
		return appendList(b, len(v), func(b []byte, i int) []byte { return appendQuoted(b, v[i]) })
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(appendQuoted(b, k), ": "...)
			b = appendRepr(b, v[k])
		}
		return append(b, '}')
	case map[any]any:
		b = append(b, '{')
		for i, k := range SortKeys(v) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(appendRepr(b, k), ": "...)
			b = appendRepr(b, v[k])
		}
		return append(b, '}')
	}
	if n, ok := integer(v); ok {
		return append(b, n...)
	}
	return fmt.Append(b, v)
}

func appendList(b []byte, n int, item func([]byte, int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = item(b, i)
	}
	return append(b, ']')
}

// quote returns the quote that Python uses: a single quote, unless that would need escaping and a double quote would
// not.
func quote(single, double bool) byte {
	if single && !double {
		return '"'
	}
	return '\''
}

func appendQuoted(b []byte, s string) []byte {
	q := quote(strings.Contains(s, "'"), strings.Contains(s, `"`))
	b = append(b, q)
	for i, r := range s {
		switch {
		case r == rune(q) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b = fmt.Appendf(b, `\udc%02x`, s[i])
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\x%02x`, r)
		case r < 0x7f || unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r <= 0xff:
			b = fmt.Appendf(b, `\x%02x`, r)
		case r <= 0xffff:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = fmt.Appendf(b, `\U%08x`, r)
		}
	}
	return append(b, q)
}

func appendBytes(b, s []byte) []byte {
	q := quote(slices.Contains(s, '\''), slices.Contains(s, '"'))
	b = append(b, 'b', q)
	for _, c := range s {
		switch {
		case c == q || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ' || c >= 0x7f:
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, q)
}

// DateZone marks a time.Time as a Python date, without a time of day. A time in time.UTC is a datetime without a
// zone; any other is a datetime with a zone.
var DateZone = &dateZone

var dateZone time.Location

func timeText(t time.Time) string {
	layout := "2006-01-02 15:04:05"
	if t.Location() == DateZone {
		return t.Format(layout[:10])
	}
	if t.Nanosecond() >= 1000 {
		layout += ".000000"
	}
	if t.Location() != time.UTC {
		layout += "-07:00"
	}
	return t.Format(layout)
}

func timeRepr(t time.Time) string {
	if t.Location() == DateZone {
		return t.Format("datetime.date(2006, 1, 2)")
	}
	layout := "datetime.datetime(2006, 1, 2, "
	text := t.Format(layout) + fmt.Sprint(t.Hour()) + ", " + fmt.Sprint(t.Minute())
	us := t.Nanosecond() / 1000
	if t.Second() != 0 || us != 0 {
		text += ", " + fmt.Sprint(t.Second())
	}
	if us != 0 {
		text += ", " + fmt.Sprint(us)
	}
	if t.Location() != time.UTC {
		zone := ".utc"
		if _, offset := t.Zone(); offset != 0 {
			zone = "(" + Timedelta(offset) + ")"
		}
		text += ", tzinfo=datetime.timezone" + zone
	}
	return text + ")"
}

// Timedelta returns the repr of a datetime.timedelta in whole seconds.
func Timedelta(seconds int) string {
	days := seconds / 86400
	if seconds -= days * 86400; seconds < 0 {
		days, seconds = days-1, seconds+86400
	}
	text := ""
	if days != 0 {
		text = fmt.Sprintf("days=%d", days)
	}
	if seconds != 0 {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("seconds=%d", seconds)
	}
	if text == "" {
		text = "0"
	}
	return "datetime.timedelta(" + text + ")"
}
