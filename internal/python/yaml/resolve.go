package yaml

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Tags in the short form that the grammar package uses.
const (
	tagNull, tagBool, tagInt, tagFloat   = "!!null", "!!bool", "!!int", "!!float"
	tagStr, tagSeq, tagMap               = "!!str", "!!seq", "!!map"
	tagMerge, tagValue, tagTimestamp     = "!!merge", "!!value", "!!timestamp"
	tagBinary, tagOmap, tagPairs, tagSet = "!!binary", "!!omap", "!!pairs", "!!set"
	tagPythonUnicode                     = "!!python/unicode"
	longTag, shortTag                    = "tag:yaml.org,2002:", "!!"
)

// resolve returns the tag of a plain scalar. It tries the implicit resolvers of PyYAML in order (yaml/resolver.py).
func resolve(s string) string {
	if s == "" {
		return tagNull
	}
	switch c := s[0]; {
	case c == 'y', c == 'Y', c == 'n', c == 'N', c == 't', c == 'T', c == 'f', c == 'F', c == 'o', c == 'O':
		switch s {
		case "yes", "Yes", "YES", "no", "No", "NO", "true", "True", "TRUE", "false", "False", "FALSE",
			"on", "On", "ON", "off", "Off", "OFF":
			return tagBool
		case "null", "Null", "NULL":
			return tagNull
		}
	case c == '~':
		if s == "~" {
			return tagNull
		}
	case c == '<':
		if s == "<<" {
			return tagMerge
		}
	case c == '=':
		if s == "=" {
			return tagValue
		}
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		switch {
		case isFloat(s):
			return tagFloat
		case isInt(s):
			return tagInt
		case isTimestamp(s):
			return tagTimestamp
		}
	}
	return tagStr
}

func span(s string, in func(byte) bool) int {
	i := 0
	for i < len(s) && in(s[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool   { return c >= '0' && c <= '9' }
func isDigit_(c byte) bool  { return isDigit(c) || c == '_' }
func isOctal_(c byte) bool  { return c >= '0' && c <= '7' || c == '_' }
func isBinary_(c byte) bool { return c == '0' || c == '1' || c == '_' }
func isHex_(c byte) bool {
	return isDigit_(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unsign(s string) string {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[1:]
	}
	return s
}

// isExponent matches (?:[eE][-+][0-9]+)?$
func isExponent(s string) bool {
	if s == "" {
		return true
	}
	return len(s) >= 3 && (s[0] == 'e' || s[0] == 'E') && (s[1] == '-' || s[1] == '+') && span(s[2:], isDigit) == len(s)-2
}

// sexagesimal matches (?::[0-5]?[0-9])+ and returns the rest; ok is false if there is no match.
func sexagesimal(s string) (rest string, ok bool) {
	for len(s) >= 2 && s[0] == ':' && isDigit(s[1]) {
		if len(s) >= 3 && s[1] <= '5' && isDigit(s[2]) {
			s = s[3:]
		} else {
			s = s[2:]
		}
		ok = true
	}
	return s, ok
}

func isFloat(s string) bool {
	u := unsign(s)
	switch u {
	case ".inf", ".Inf", ".INF":
		return true
	}
	switch s {
	case ".nan", ".NaN", ".NAN":
		return true
	}
	if s[0] == '.' {
		return len(s) > 1 && isDigit(s[1]) && isExponent(s[1+span(s[1:], isDigit_):])
	}
	if u == "" || !isDigit(u[0]) {
		return false
	}
	rest := u[span(u, isDigit_):]
	if rest != "" && rest[0] == '.' {
		return isExponent(rest[1+span(rest[1:], isDigit_):])
	}
	rest, ok := sexagesimal(rest)
	return ok && rest != "" && rest[0] == '.' && span(rest[1:], isDigit_) == len(rest)-1
}

func isInt(s string) bool {
	u := unsign(s)
	if u == "" || !isDigit(u[0]) {
		return false
	}
	if u[0] == '0' {
		switch {
		case len(u) == 1:
			return true
		case u[1] == 'b' && len(u) > 2 && span(u[2:], isBinary_) == len(u)-2:
			return true
		case u[1] == 'x' && len(u) > 2 && span(u[2:], isHex_) == len(u)-2:
			return true
		}
		return span(u[1:], isOctal_) == len(u)-1
	}
	rest := u[span(u, isDigit_):]
	if rest == "" {
		return true
	}
	rest, ok := sexagesimal(rest)
	return ok && rest == ""
}

// isTimestamp reports whether a text matches PyYAML's dates and times. Salt keeps them as text, except in YAMLEX, so
// that Marshal must quote such a text.
func isTimestamp(s string) bool {
	n, _ := readTimestamp(s)
	return len(n) > 3 || len(n) == 3 && len(s) == 10
}

// readTimestamp returns the numbers of a YAML date or time: year, month, day, hour, minute, second, and the zone's
// hours and minutes. rest is the text after the seconds. A date whose month or day has one digit needs an explicit
// tag.
func readTimestamp(s string) (n []int, rest string) {
	n, s = readNumbers(nil, s, "4-1-1")
	if s == "" {
		return n, ""
	}
	t := strings.TrimLeft(s, " \t")
	if s[0] == 'T' || s[0] == 't' {
		t = s[1:]
	}
	if len(t) == len(s) {
		return nil, ""
	}
	n, rest = readNumbers(n, t, "1:2:2")
	if s = rest; strings.HasPrefix(s, ".") {
		s = s[1+span(s[1:], isDigit):]
	}
	if s == "" {
		return n, rest
	}
	switch s = strings.TrimLeft(s, " \t"); {
	case s == "Z":
		return n, rest
	case strings.HasPrefix(s, "-"), strings.HasPrefix(s, "+"):
		if n, s = readNumbers(n, s[1:], "1"); s != "" {
			n, s = readNumbers(n, s, ":2")
		}
		if s == "" {
			return n, rest
		}
	}
	return nil, ""
}

// readNumbers appends the numbers at the beginning of s. In the pattern, 1 is a number of one or two digits, and 2 and 4
// are numbers of that many digits; other characters match themselves. It returns nil and "" if s does not match.
func readNumbers(n []int, s, pattern string) ([]int, string) {
	for i := range len(pattern) {
		c, digits := pattern[i], 1
		if isDigit(c) {
			digits = min(span(s, isDigit), max(2, int(c-'0')))
			if digits < int(c-'0') {
				return nil, ""
			}
			v, _ := strconv.Atoi(s[:digits])
			n = append(n, v)
		} else if s == "" || s[0] != c {
			return nil, ""
		}
		s = s[digits:]
	}
	return n, s
}

// parseTimestamp returns a date or time as a time.Time (package pytext explains the zones). msg is the text of
// Python's error, or "".
func parseTimestamp(s string) (t time.Time, msg string) {
	n, rest := readTimestamp(s)
	if n == nil {
		return t, "'NoneType' object has no attribute 'groupdict'"
	}
	zone, micro := pytext.DateZone, 0
	if len(n) > 3 {
		zone = time.UTC
		if strings.HasPrefix(rest, ".") {
			micro, _ = strconv.Atoi((rest[1:1+span(rest[1:], isDigit)] + "000000")[:6])
		}
	}
	offset := 0
	if len(n) > 6 {
		offset = append(n, 0)[6]*3600 + append(n, 0)[7]*60
		if strings.Contains(rest, "-") {
			offset = -offset
		}
	}
	if len(n) > 6 || strings.HasSuffix(rest, "Z") {
		zone = time.FixedZone("", offset)
	}
	n = append(n, 0, 0, 0)
	t = time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], micro*1000, zone)
	last := time.Date(n[0], time.Month(n[1])+1, 0, 0, 0, 0, 0, time.UTC).Day()
	switch {
	case offset <= -86400 || offset >= 86400:
		msg = "offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24), not " + pytext.Timedelta(offset) + "."
	case n[0] == 0:
		msg = "year 0 is out of range"
	case n[1] < 1 || n[1] > 12:
		msg = "month must be in 1..12"
	case n[2] < 1 || n[2] > last:
		msg = "day is out of range for month"
	case n[3] > 23:
		msg = "hour must be in 0..23"
	case n[4] > 59:
		msg = "minute must be in 0..59"
	case n[5] > 59:
		msg = "second must be in 0..59"
	}
	return t, msg
}

// maxDigits limits the digits of an integer. Python has this limit for decimals, since converting long ones takes
// quadratic time. Here it applies to all bases.
const maxDigits = 4300

// parseInt returns the value of an integer scalar, like construct_scalar of Salt's loader and construct_yaml_int of
// PyYAML. The second result is the text of Python's error, or "".
func parseInt(s string) (any, string) {
	// Salt parses 0755 as 755: users mean file modes. As in Salt, this does not apply after a sign.
	if s != "0" && strings.HasPrefix(s, "0") && !strings.HasPrefix(s, "0b") && !strings.HasPrefix(s, "0x") {
		if s = strings.TrimLeft(s, "0"); s == "" {
			s = "0"
		}
	}
	s = strings.ReplaceAll(s, "_", "")
	if s == "" {
		return nil, "string index out of range"
	}
	negative := s[0] == '-'
	u := unsign(s)
	if len(u) > maxDigits {
		return nil, "Exceeds the limit (4300 digits) for integer string conversion: value has " + strconv.Itoa(len(u)) + " digits"
	}
	if u == "" {
		return nil, "string index out of range"
	}
	base := 10
	switch {
	case u == "0":
		return int64(0), ""
	case strings.HasPrefix(u, "0b"):
		base, u = 2, u[2:]
	case strings.HasPrefix(u, "0x"):
		base, u = 16, u[2:]
	case u[0] == '0':
		base = 8
	case strings.Contains(u, ":"):
		return parseSexagesimal(u, negative)
	}
	if v, err := strconv.ParseInt(u, base, 64); err == nil && !strings.HasPrefix(u, "-") && !strings.HasPrefix(u, "+") {
		if negative {
			v = -v
		}
		return v, ""
	}
	n, ok := new(big.Int).SetString(u, base)
	if !ok || unsign(u) != u {
		return nil, "invalid literal for int() with base " + strconv.Itoa(base) + ": '" + u + "'"
	}
	if negative {
		n.Neg(n)
	}
	return fromBig(n), ""
}

func parseSexagesimal(s string, negative bool) (any, string) {
	sum, sixty := new(big.Int), big.NewInt(60)
	for part := range strings.SplitSeq(s, ":") {
		n, ok := new(big.Int).SetString(part, 10)
		if !ok {
			return nil, "invalid literal for int() with base 10: '" + part + "'"
		}
		sum.Add(sum.Mul(sum, sixty), n)
	}
	if negative {
		sum.Neg(sum)
	}
	return fromBig(sum), ""
}

// fromBig returns an int64 or, for larger numbers, a uint64. Numbers beyond that become decimal text, as salt.payload
// sends them.
func fromBig(n *big.Int) any {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.IsUint64():
		return n.Uint64()
	}
	return n.String()
}

// parseFloat implements PyYAML's construct_yaml_float.
func parseFloat(s string) (any, string) {
	s = strings.ToLower(strings.ReplaceAll(s, "_", ""))
	if s == "" {
		return nil, "string index out of range"
	}
	sign := 1.0
	if s[0] == '-' {
		sign = -1
	}
	u := unsign(s)
	switch {
	case u == ".inf":
		return math.Inf(int(sign)), ""
	case u == ".nan":
		return math.NaN(), ""
	case strings.Contains(u, ":"):
		// Add up from the right with a growing base, so that rounding is as in PyYAML.
		parts := strings.Split(u, ":")
		value, base := 0.0, 1.0
		for i := len(parts) - 1; i >= 0; i-- {
			d, msg := pythonFloat(parts[i])
			if msg != "" {
				return nil, msg
			}
			value += d * base
			base *= 60
		}
		return sign * value, ""
	}
	v, msg := pythonFloat(u)
	if msg != "" {
		return nil, msg
	}
	return sign * v, ""
}

func pythonFloat(s string) (float64, string) {
	t := strings.TrimSpace(s)
	v, err := strconv.ParseFloat(t, 64)
	if err != nil && !math.IsInf(v, 0) || strings.ContainsAny(t, "xXpP_") {
		return 0, "could not convert string to float: '" + s + "'"
	}
	return v, ""
}
