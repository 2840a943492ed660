// Package strftime formats times as Python does in the C locale.
package strftime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Format implements time.strftime. Unknown directives are copied unchanged.
func Format(format string, t time.Time) string { return expand(format, t, false) }

// Naive implements strftime for a datetime without a time zone: %z and %Z are empty, and %f is the microseconds.
func Naive(format string, t time.Time) string { return expand(format, t, true) }

func expand(format string, t time.Time, naive bool) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; {
		case naive && (c == 'z' || c == 'Z'):
		case naive && c == 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case c == '-' && i+1 < len(format) && format[i+1] != '%':
			i++
			b.WriteString(bare(directive(format[i], t)))
		default:
			b.WriteString(directive(c, t))
		}
	}
	return b.String()
}

// bare removes the padding of zeros and blanks from a number.
func bare(s string) string {
	if trimmed := strings.TrimLeft(s, "0 "); trimmed != "" || s == "" {
		return trimmed
	}
	return "0"
}

func directive(c byte, t time.Time) string {
	two := func(n int) string { return fmt.Sprintf("%02d", n) }
	switch c {
	case 'a':
		return t.Format("Mon")
	case 'A':
		return t.Format("Monday")
	case 'b', 'h':
		return t.Format("Jan")
	case 'B':
		return t.Format("January")
	case 'c':
		return t.Format("Mon Jan _2 15:04:05 2006")
	case 'C':
		return two(t.Year() / 100)
	case 'd':
		return t.Format("02")
	case 'D', 'x':
		return t.Format("01/02/06")
	case 'e':
		return t.Format("_2")
	case 'F':
		return t.Format("2006-01-02")
	case 'g':
		year, _ := t.ISOWeek()
		return two(year % 100)
	case 'G':
		year, _ := t.ISOWeek()
		return strconv.Itoa(year)
	case 'H':
		return t.Format("15")
	case 'I':
		return t.Format("03")
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 'm':
		return t.Format("01")
	case 'M':
		return t.Format("04")
	case 'n':
		return "\n"
	case 'p':
		return t.Format("PM")
	case 'P':
		return strings.ToLower(t.Format("PM"))
	case 'r':
		return t.Format("03:04:05 PM")
	case 'R':
		return t.Format("15:04")
	case 's':
		return strconv.FormatInt(t.Unix(), 10)
	case 'S':
		return t.Format("05")
	case 't':
		return "\t"
	case 'T', 'X':
		return t.Format("15:04:05")
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1)
	case 'U':
		return two((t.YearDay() + 6 - int(t.Weekday())) / 7)
	case 'V':
		_, week := t.ISOWeek()
		return two(week)
	case 'w':
		return strconv.Itoa(int(t.Weekday()))
	case 'W':
		return two((t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7)
	case 'y':
		return t.Format("06")
	case 'Y':
		return t.Format("2006")
	case 'z':
		return t.Format("-0700")
	case 'Z':
		return t.Format("MST")
	case '%':
		return "%"
	}
	return "%" + string(rune(c))
}
