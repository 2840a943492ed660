// Package pydate parses dates and times as Salt's scheduler does, which uses Python's datetime.strptime and the
// parser of python-dateutil. Times are naive: the fields of a local clock, stored in a time.Time in UTC.
//
// Of dateutil's parser it supports dates and times in words and numbers in any order, but no time zones: Salt
// compares the result with the local clock, and Python refuses to compare a time with a zone.
package pydate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrInvalid means that a text is neither a date nor a time.
var ErrInvalid = errors.New("cannot read date")

// Now returns the fields of t's local time as a naive time, in microseconds.
func Now(t time.Time) time.Time {
	t = t.Local()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()/1000*1000, time.UTC)
}

// maxText limits the length of a text.
const maxText = 200

// Parse implements dateutil.parser.parse. Missing fields are those of now's day.
func Parse(text string, now time.Time) (time.Time, error) {
	if len(text) > maxText {
		return time.Time{}, fmt.Errorf("%w: it is too long", ErrInvalid)
	}
	p := parser{tokens: split(text), weekday: -1, hour: -1, minute: -1, second: -1, month: -1}
	for i := 0; i < len(p.tokens); i++ {
		next, ok := p.token(i)
		if !ok {
			return time.Time{}, fmt.Errorf("%w %q", ErrInvalid, text)
		}
		i = next
	}
	t, ok := p.build(now)
	if !ok {
		return time.Time{}, fmt.Errorf("%w %q", ErrInvalid, text)
	}
	return t, nil
}

// parser follows dateutil's parser: it collects up to three numbers that are the year, month and day in some order,
// and the fields of a time.
type parser struct {
	tokens               []string
	ymd                  []int
	labels               []byte // 'Y', 'M', 'D' or 0 for each of ymd
	century              bool   // the year had four digits
	month                int    // index in ymd of a month's name, or -1
	weekday              int
	hour, minute, second int
	micro                int
}

const (
	letters = 'a'
	digits  = '0'
)

func kind(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return digits
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return letters
	}
	return c
}

// split splits a text into words, numbers (with at most one decimal point) and single other characters.
func split(text string) []string {
	var tokens []string
	for i := 0; i < len(text); {
		c := text[i]
		if strings.IndexByte("\t\n\r\v\f", c) >= 0 {
			c = ' '
		}
		j := i + 1
		switch kind(c) {
		case letters:
			for j < len(text) && kind(text[j]) == letters {
				j++
			}
			tokens = append(tokens, text[i:j])
		case digits:
			for j < len(text) && (kind(text[j]) == digits || text[j] == '.' || text[j] == ',' && j-i >= 2) {
				j++
			}
			tokens = append(tokens, number(text[i:j])...)
		default:
			tokens = append(tokens, string(c))
		}
		i = j
	}
	return tokens
}

// number returns a decimal number as one token, and splits other words at points.
func number(s string) []string {
	s = strings.ReplaceAll(s, ",", ".,")
	plain := strings.ReplaceAll(s, ".,", ".")
	if strings.Count(plain, ".") <= 1 && !strings.HasSuffix(plain, ".") {
		return []string{plain}
	}
	var out []string
	word := ""
	for i := 0; i < len(s); i++ {
		if s[i] != '.' {
			word += string(s[i])
			continue
		}
		if word != "" {
			out = append(out, word)
		}
		word = ""
		if i+1 < len(s) && s[i+1] == ',' {
			i++
			out = append(out, ",")
		} else {
			out = append(out, ".")
		}
	}
	if word != "" {
		out = append(out, word)
	}
	return out
}

func (p *parser) at(i int) string {
	if i < 0 || i >= len(p.tokens) {
		return ""
	}
	return p.tokens[i]
}

func jump(s string) bool {
	switch strings.ToLower(s) {
	case " ", ".", ",", ";", "-", "/", "'", "at", "on", "and", "ad", "m", "t", "of", "st", "nd", "rd", "th":
		return true
	}
	return false
}

func index(s, names string, short int) int {
	s = strings.ToLower(s)
	for i, name := range strings.Fields(names) {
		if s == name || len(s) == short && strings.HasPrefix(name, s) {
			return i
		}
	}
	return -1
}

// weekday returns the number of a weekday from its name or the first three letters of it. Monday is 0; other words
// return -1.
func weekday(s string) int {
	return index(s, "monday tuesday wednesday thursday friday saturday sunday", 3)
}

func month(s string) int {
	if strings.EqualFold(s, "sept") {
		return 9
	}
	return index(s, "january february march april may june july august september october november december", 3) + 1
}

func ampm(s string) int { return index(s, "am pm", 1) }

func unit(s string) int {
	switch strings.ToLower(s) {
	case "h", "hour", "hours":
		return 0
	case "m", "minute", "minutes":
		return 1
	case "s", "second", "seconds":
		return 2
	}
	return -1
}

func half(hour, ap int) int {
	switch {
	case ap == 1 && hour < 12:
		return hour + 12
	case ap == 0 && hour == 12:
		return 0
	}
	return hour
}

// token parses the token at i and returns the index of the last token it used.
func (p *parser) token(i int) (last int, ok bool) {
	s := p.tokens[i]
	if kind(s[0]) == digits {
		return p.numeric(i)
	}
	if w := weekday(s); w >= 0 {
		p.weekday = w
		return i, true
	}
	if m := month(s); m > 0 {
		return p.monthName(i, m)
	}
	if ap := ampm(s); ap >= 0 && p.hour >= 0 {
		if p.hour > 12 {
			return i, false
		}
		p.hour = half(p.hour, ap)
		return i, true
	}
	if (s == "+" || s == "-") && p.hour >= 0 && kind(append([]byte(p.at(i+1)), 0)[0]) == digits {
		return i, false // a time zone
	}
	return i, jump(s)
}

func (p *parser) monthName(i, m int) (int, bool) {
	p.month = len(p.ymd)
	if !p.add(m, 'M') {
		return i, false
	}
	switch sep := p.at(i + 1); {
	case sep == "-" || sep == "/":
		if !p.addText(p.at(i + 2)) {
			return i, false
		}
		i += 2
		if p.at(i+1) == sep {
			if !p.addText(p.at(i + 2)) {
				return i, false
			}
			i += 2
		}
	case sep == " " && strings.EqualFold(p.at(i+2), "of") && p.at(i+3) == " ":
		if n, err := strconv.Atoi(p.at(i + 4)); err == nil {
			if !p.add(n, 'Y') {
				return i, false
			}
			i += 4
		}
	}
	return i, true
}

func (p *parser) addText(s string) bool {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return false
	}
	if len(s) > 2 {
		p.century = true
		return p.add(n, 'Y')
	}
	return p.add(n, 0)
}

func (p *parser) add(n int, label byte) bool {
	if n > 100 {
		p.century = true
		if label != 0 && label != 'Y' {
			return false
		}
		label = 'Y'
	}
	if label != 0 && strings.IndexByte(string(p.labels), label) >= 0 || len(p.ymd) == 3 {
		return false
	}
	p.ymd, p.labels = append(p.ymd, n), append(p.labels, label)
	return true
}

// numeric parses tokens that begin with a number.
func (p *parser) numeric(i int) (int, bool) {
	s := p.tokens[i]
	value, err := strconv.ParseFloat(s, 64)
	if err != nil || value > 1e15 {
		return i, false
	}
	whole := int(value)
	next := p.at(i + 1)
	n := len(s)
	switch {
	case len(p.ymd) == 3 && (n == 2 || n == 4) && p.hour < 0 && (next == "" || next == " " || unit(next) >= 0):
		p.hour = atoi(s[:2])
		if n == 4 {
			p.minute = atoi(s[2:])
		}
		return i, true
	case n == 6 || n > 6 && strings.IndexByte(s, '.') == 6:
		if len(p.ymd) == 0 && !strings.Contains(s, ".") {
			return i, p.addText(s[:2]) && p.addText(s[2:4]) && p.addText(s[4:])
		}
		p.hour, p.minute = atoi(s[:2]), atoi(s[2:4])
		return i, p.seconds(s[4:])
	case n == 8 || n == 12 || n == 14:
		ok := !strings.Contains(s, ".") && p.add(atoi(s[:4]), 'Y') && p.addText(s[4:6]) && p.addText(s[6:8])
		if ok && n > 8 {
			p.hour, p.minute = atoi(s[8:10]), atoi(s[10:12])
		}
		if ok && n > 12 {
			p.second = atoi(s[12:])
		}
		return i, ok
	}
	if at := p.unitAfter(i); at > 0 {
		return at, p.measure(value, s, unit(p.at(at)))
	}
	switch {
	case next == ":" && i+2 < len(p.tokens):
		return p.clock(i, whole)
	case next == "-" || next == "/" || next == ".":
		return p.date(i, next)
	case next == "" || jump(next):
		if ap := ampm(p.at(i + 2)); ap >= 0 && whole < 24 && float64(whole) == value {
			p.hour = half(whole, ap)
			return i + 2, true
		}
		if float64(whole) != value {
			return i, false
		}
		return min(i+1, len(p.tokens)-1), p.addText(s)
	case ampm(next) >= 0 && value < 24:
		p.hour = half(whole, ampm(next))
		return i + 1, true
	}
	return i, p.couldBeDay(whole) && p.addText(s)
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -2 // not a part of a date or time
	}
	return n
}

// unitAfter returns the index of the word for hours, minutes or seconds after a number, or 0.
func (p *parser) unitAfter(i int) int {
	if unit(p.at(i+1)) >= 0 {
		return i + 1
	}
	if p.at(i+1) == " " && unit(p.at(i+2)) >= 0 {
		return i + 2
	}
	return 0
}

func (p *parser) measure(value float64, text string, u int) bool {
	whole, part := math.Modf(value)
	switch u {
	case 0:
		p.hour = int(whole)
		if part != 0 {
			p.minute = int(60 * part)
		}
	case 1:
		p.minute = int(whole)
		if part != 0 {
			p.second = int(60 * part)
		}
	case 2:
		return p.seconds(text)
	}
	return true
}

// seconds parses seconds with up to six decimals.
func (p *parser) seconds(s string) bool {
	whole, part, _ := strings.Cut(s, ".")
	n, err := strconv.Atoi(whole)
	if err != nil {
		return false
	}
	p.second = n
	if part != "" {
		micro, err := strconv.Atoi((part + "000000")[:6])
		if err != nil {
			return false
		}
		p.micro = micro
	}
	return true
}

// clock parses 10:30 and 10:30:15.5.
func (p *parser) clock(i, hour int) (int, bool) {
	p.hour = hour
	m, err := strconv.ParseFloat(p.at(i+2), 64)
	if err != nil {
		return i, false
	}
	whole, part := math.Modf(m)
	p.minute = int(whole)
	if part != 0 {
		p.second = int(60 * part)
	}
	if p.at(i+3) == ":" && i+4 < len(p.tokens) {
		return i + 4, p.seconds(p.at(i + 4))
	}
	return i + 2, true
}

// date parses 2026-12-24, 24.12.2026 and 24-Dec-2026.
func (p *parser) date(i int, sep string) (int, bool) {
	if !p.addText(p.tokens[i]) {
		return i, false
	}
	second := p.at(i + 2)
	if second == "" || jump(second) {
		return i + 1, true
	}
	if !p.addPart(second) {
		return i, false
	}
	i += 2
	if p.at(i+1) == sep {
		if !p.addPart(p.at(i + 2)) {
			return i, false
		}
		i += 2
	}
	return i, true
}

func (p *parser) addPart(s string) bool {
	if m := month(s); m > 0 {
		p.month = len(p.ymd)
		return p.add(m, 'M')
	}
	return p.addText(s)
}

func (p *parser) couldBeDay(n int) bool {
	return strings.IndexByte(string(p.labels), 'D') < 0 && n >= 1 && n <= 31
}
