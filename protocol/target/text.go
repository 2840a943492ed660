package target

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits for the text of one value. Data with shared parts (YAML aliases) can be far larger as text than in memory.
const (
	// In levels and in bytes.
	maxDepth = 100
	maxText  = 1 << 20
)

// Str returns the text that Python's str() returns for a value: None, True, 1.0, ['a', 1]. Keys of maps are sorted,
// where Python keeps the order of insertion. Lists and maps are cut off ("...") after a megabyte or a hundred
// levels.
func Str(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case time.Time:
		return datetimeText(x)
	case bool:
		if x {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(x, 10)
	}
	return string(appendRepr(nil, v, 0))
}

// Repr returns the text that Python's repr() returns for a value.
func Repr(v any) string { return string(appendRepr(nil, v, 0)) }

// appendRepr appends the repr of a value. At the limits it stops and closes the brackets.
func appendRepr(b []byte, v any, depth int) []byte {
	if depth > maxDepth || len(b) > maxText {
		return append(b, "..."...)
	}
	switch x := v.(type) {
	case nil:
		return append(b, "None"...)
	case bool:
		return append(b, Str(x)...)
	case int:
		return strconv.AppendInt(b, int64(x), 10)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case uint64:
		return strconv.AppendUint(b, x, 10)
	case float64:
		return append(b, floatText(x)...)
	case string:
		return appendQuoted(b, x)
	case []byte:
		return appendBytes(b, x)
	case time.Time:
		return append(b, datetimeRepr(x)...)
	case []any:
		b = append(b, '[')
		for i, e := range x {
			if i > 0 {
				b = append(b, ", "...)
			}
			// Check after each member, so that the text exceeds the limit by one member at most.
			if b = appendRepr(b, e, depth+1); len(b) > maxText {
				break
			}
		}
		return append(b, ']')
	case []string:
		b = append(b, '[')
		for i, e := range x {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendQuoted(b, e)
		}
		return append(b, ']')
	case map[string]any, map[any]any:
		return appendMap(b, v, depth)
	}
	return fmt.Append(b, v)
}

// appendMap appends a map with its keys sorted.
func appendMap(b []byte, v any, depth int) []byte {
	b = append(b, '{')
	// put appends an entry and reports whether there is room for more.
	put := func(i int, k, x any) bool {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendRepr(b, k, depth+1), ": "...)
		b = appendRepr(b, x, depth+1)
		return len(b) <= maxText
	}
	switch m := v.(type) {
	case map[string]any:
		for i, k := range slices.Sorted(maps.Keys(m)) {
			if !put(i, k, m[k]) {
				break
			}
		}
	case map[any]any:
		for i, k := range sortedKeys(m) {
			if !put(i, k, m[k]) {
				break
			}
		}
	}
	return append(b, '}')
}

// floatText returns Python's shortest form: with an exponent below 1e-4 and from 1e16, and always with a point or an
// exponent.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	case f == 0:
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	// Outside of this range Python's repr uses an exponent.
	if a := math.Abs(f); a >= 1e-4 && a < 1e16 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

// appendQuoted appends a text in quotes, by the rules of Python's repr.
func appendQuoted(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b = append(b, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r < 0x100:
			b = fmt.Appendf(b, `\x%02x`, r)
		case r < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = fmt.Appendf(b, `\U%08x`, r)
		}
	}
	return append(b, quote)
}

// appendBytes appends bytes as Python shows them.
func appendBytes(b, s []byte) []byte {
	quote := byte('\'')
	if strings.Contains(string(s), "'") && !strings.Contains(string(s), `"`) {
		quote = '"'
	}
	b = append(b, 'b', quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < 0x20 || c >= 0x7f:
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, quote)
}

// datetimeText and datetimeRepr return a time as Python's str and repr show a datetime.
func datetimeText(t time.Time) string {
	s := t.Format("2006-01-02 15:04:05")
	if us := t.Nanosecond() / 1000; us > 0 {
		s += fmt.Sprintf(".%06d", us)
	}
	return s
}

func datetimeRepr(t time.Time) string {
	s := fmt.Sprintf("datetime.datetime(%d, %d, %d, %d, %d", t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute())
	us := t.Nanosecond() / 1000
	if t.Second() != 0 || us != 0 {
		s += fmt.Sprintf(", %d", t.Second())
	}
	if us != 0 {
		s += fmt.Sprintf(", %d", us)
	}
	return s + ")"
}

// lower implements Python's str.lower. It differs from strings.ToLower in two letters: the lower case of one is
// longer, that of the other depends on the position.
func lower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	runes := []rune(s)
	var b strings.Builder
	for i, r := range runes {
		switch r {
		case 'İ':
			b.WriteString("i̇")
		case 'Σ':
			// At the end of a word sigma has a different form.
			if letterBefore(runes[:i]) && !letterAfter(runes[i+1:]) {
				b.WriteRune('ς')
			} else {
				b.WriteRune('σ')
			}
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// letterBefore and letterAfter report whether the nearest letter has case, ignoring marks and punctuation inside
// words.
func letterBefore(s []rune) bool {
	for i := len(s) - 1; i >= 0; i-- {
		if !caseIgnorable(s[i]) {
			return isCased(s[i])
		}
	}
	return false
}

func letterAfter(s []rune) bool {
	for _, r := range s {
		if !caseIgnorable(r) {
			return isCased(r)
		}
	}
	return false
}

// isCased reports whether a letter has case.
func isCased(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r)
}

// caseIgnorable reports whether letterBefore and letterAfter skip a character.
func caseIgnorable(r rune) bool {
	return r == '\'' || r == '.' || r == ':' || r == '·' || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

// isSpace implements Python's str.isspace, which str.split and \s use.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
}

// pythonInt parses what Python's int() accepts: spaces around it, a sign, single underscores between digits.
func pythonInt(s string) (int64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") ||
		strings.HasPrefix(s, "+_") || strings.HasPrefix(s, "-_") {
		return 0, false
	}
	i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	return i, err == nil
}

// yamlKey parses a part of an expression as YAML does (salt.utils.args.yamlify_arg), so that numeric, boolean and
// null keys can be found. It returns false if YAML leaves the string as it is, or yields something that cannot be a
// key.
func yamlKey(s string) (any, bool) {
	trimmed := strings.Trim(s, " ")
	switch trimmed {
	case "", "---", "...":
		return nil, false
	case "None", "null", "Null", "NULL", "~":
		return nil, true
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	// YAML's numbers may have underscores, but Salt keeps text that has only digits and underscores.
	if strings.ContainsAny(s, "\t\r\n") || strings.Contains(s, "_") && strings.Trim(trimmed, "0123456789_") == "" {
		return nil, false
	}
	if strings.Contains(s, "#") {
		// A comment is removed only if a number, bool or null remains.
		before, _, found := strings.Cut(s, " #")
		if !found || strings.Contains(before, "#") {
			return nil, false
		}
		key, ok := yamlKey(before)
		_, isText := key.(string)
		return key, ok && !isText && key != nil
	}
	if n, ok := yamlNumber(trimmed); ok {
		return n, true
	}
	// Quoted text is unquoted. Text that begins a collection or a tag is left as it is.
	switch trimmed[0] {
	case '\'', '"':
		inner, ok := unquote(trimmed)
		return inner, ok
	case '[', ']', '{', '}', ',', '&', '*', '!', '|', '>', '%', '@', '`', '?', '-', ':':
		return nil, false
	}
	// Plain text is a key only if spaces around it were removed.
	if trimmed == s || strings.Contains(trimmed, ": ") || strings.HasSuffix(trimmed, ":") {
		return nil, false
	}
	return trimmed, true
}

// unquote reads a quoted YAML scalar without escapes. It returns false for any other.
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[len(s)-1] != s[0] {
		return "", false
	}
	inner := s[1 : len(s)-1]
	if strings.IndexByte(inner, s[0]) >= 0 || s[0] == '"' && strings.Contains(inner, `\`) {
		return "", false
	}
	return inner, true
}

// yamlNumber parses YAML 1.1 integers (decimal, 0x, 0b) and floats.
func yamlNumber(s string) (any, bool) {
	body := strings.TrimLeft(s, "+-")
	if body == "" || len(s)-len(body) > 1 {
		return nil, false
	}
	// Underscores between digits are ignored.
	plain := strings.ReplaceAll(s, "_", "")
	digits := strings.ReplaceAll(body, "_", "")
	negative := s[0] == '-'
	signed := func(n int64) any {
		if negative {
			return -n
		}
		return n
	}
	switch {
	case body == ".inf" || body == ".Inf" || body == ".INF":
		return math.Inf(map[bool]int{true: -1, false: 1}[negative]), true
	case body[0] != '.' && (body[0] < '0' || body[0] > '9'):
		return nil, false
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0b"):
		n, err := strconv.ParseInt(digits, 0, 64)
		return signed(n), err == nil
	case len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "01234567") == "":
		// YAML 1.1 reads this as octal; Salt's loader removes the zeros first (salt/utils/yamlloader.py:
		// construct_scalar).
		n, err := strconv.ParseInt(digits, 10, 64)
		return signed(n), err == nil
	case strings.Trim(digits, "0123456789") == "" && (digits[0] != '0' || len(digits) == 1):
		n, err := strconv.ParseInt(digits, 10, 64)
		return signed(n), err == nil
	}
	// YAML 1.1 requires the point and the sign of the exponent; Salt's loader reads 1e5 as a string.
	if !strings.Contains(body, ".") || strings.Trim(digits, "0123456789.eE+-") != "" {
		return nil, false
	}
	if e := strings.IndexAny(digits, "eE"); e >= 0 && (e+1 >= len(digits) || digits[e+1] != '+' && digits[e+1] != '-') {
		return nil, false
	}
	f, err := strconv.ParseFloat(plain, 64)
	return f, err == nil
}
