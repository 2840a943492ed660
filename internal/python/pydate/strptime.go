package pydate

import (
	"fmt"
	"strings"
	"time"
)

// Strptime implements datetime.strptime in the C locale. Fields that the format leaves out have their values of
// 1900-01-01 00:00.
func Strptime(text, format string) (time.Time, error) {
	f := fields{year: 1900, month: 1, day: 1, hour12: -1}
	rest, ok := f.read(text, format, 0)
	if !ok {
		return time.Time{}, fmt.Errorf("time data %q does not match format %q", text, format)
	}
	if rest != "" {
		return time.Time{}, fmt.Errorf("unconverted data remains: %s", rest)
	}
	if f.hour12 >= 0 {
		f.hour = half(f.hour12, f.pm)
	}
	if f.yday > 0 {
		t := time.Date(f.year, 1, f.yday, 0, 0, 0, 0, time.UTC)
		f.month, f.day = int(t.Month()), t.Day()
	}
	if f.day > days(f.year, f.month) {
		return time.Time{}, fmt.Errorf("day is out of range for month")
	}
	return time.Date(f.year, time.Month(f.month), f.day, f.hour, f.minute, min(f.second, 59), f.micro*1000, time.UTC), nil
}

type fields struct {
	year, month, day, yday       int
	hour, hour12, minute, second int
	micro, pm                    int
}

// maxNested limits formats within formats (%c and the like).
const maxNested = 3

func (f *fields) read(text, format string, depth int) (rest string, ok bool) {
	if depth > maxNested {
		return text, false
	}
	for i := 0; i < len(format); i++ {
		c := format[i]
		switch {
		case strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			trimmed := strings.TrimLeft(text, " \t\n\r\v\f")
			if trimmed == text {
				return text, false
			}
			text = trimmed
			for i+1 < len(format) && strings.IndexByte(" \t\n\r\v\f", format[i+1]) >= 0 {
				i++
			}
		case c != '%':
			if text == "" || !strings.EqualFold(text[:1], string(c)) {
				return text, false
			}
			text = text[1:]
		case i+1 == len(format):
			return text, false
		default:
			i++
			if text, ok = f.directive(text, format[i], depth); !ok {
				return text, false
			}
		}
	}
	return text, true
}

func (f *fields) directive(text string, c byte, depth int) (string, bool) {
	number := func(into *int, width, low, high int) (string, bool) {
		n, used := 0, 0
		for used < len(text) && used < width && kind(text[used]) == digits && n*10+int(text[used]-'0') <= high {
			n = n*10 + int(text[used]-'0')
			used++
		}
		*into = n
		return text[used:], used > 0 && n >= low
	}
	switch c {
	case 'Y':
		if len(text) < 4 {
			return text, false
		}
		rest, ok := number(&f.year, 4, 1, 9999)
		return rest, ok && len(text)-len(rest) == 4
	case 'y':
		rest, ok := number(&f.year, 2, 0, 99)
		if f.year += 1900; f.year < 1969 {
			f.year += 100
		}
		return rest, ok && len(text)-len(rest) == 2
	case 'm':
		return number(&f.month, 2, 1, 12)
	case 'd':
		return number(&f.day, 2, 1, 31)
	case 'j':
		return number(&f.yday, 3, 1, 366)
	case 'H':
		return number(&f.hour, 2, 0, 23)
	case 'I':
		return number(&f.hour12, 2, 1, 12)
	case 'M':
		return number(&f.minute, 2, 0, 59)
	case 'S':
		return number(&f.second, 2, 0, 61)
	case 'f':
		rest, ok := number(&f.micro, 6, 0, 999999)
		for n := len(text) - len(rest); n < 6; n++ {
			f.micro *= 10
		}
		return rest, ok
	case 'p':
		if len(text) < 2 || ampm(text[:2]) < 0 {
			return text, false
		}
		f.pm = ampm(text[:2])
		return text[2:], true
	case 'a', 'A':
		return name(text, c == 'A', "monday tuesday wednesday thursday friday saturday sunday", nil)
	case 'b', 'B', 'h':
		return name(text, c == 'B', "january february march april may june july august september october november december", &f.month)
	case 'T':
		return text, false // Python does not support it
	case 'c':
		return f.read(text, "%a %b %d %H:%M:%S %Y", depth+1)
	case 'x':
		return f.read(text, "%m/%d/%y", depth+1)
	case 'X':
		return f.read(text, "%H:%M:%S", depth+1)
	case '%':
		return strings.CutPrefix(text, "%")
	}
	return text, false
}

// name parses one of several words, in full or abbreviated to three letters.
func name(text string, full bool, names string, into *int) (string, bool) {
	for i, n := range strings.Fields(names) {
		if !full {
			n = n[:3]
		}
		if len(text) >= len(n) && strings.EqualFold(text[:len(n)], n) {
			if into != nil {
				*into = i + 1
			}
			return text[len(n):], true
		}
	}
	return text, false
}
