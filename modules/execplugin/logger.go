package execplugin

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/sorting"
)

const (
	// maxLine is where a long line of the log is cut.
	maxLine = 8 << 10
	// mask stands for a secret value.
	mask = "**********"
	// minSecret is the length from which a text is looked for in the log; shorter ones would hide half of every line.
	minSecret = 3
	// endOfCall is the line that a Python process writes behind what a call printed.
	endOfCall = "\x1dend of call"
)

// logger writes standard error into the log, line by line, without the secrets of the call. A line may begin with a level as
// systemd has it: <3> is an error, <4> a warning, <6> information (as is a line without), <7> debugging.
type logger struct {
	log   *slog.Logger
	attrs []any
	ended chan struct{} // receives an element when all that the call printed was written; nil if nobody asks

	secrets []string // complete before the program starts, or the call of one that serves several

	mu   sync.Mutex
	rest []byte // guarded by mu
	over bool   // guarded by mu; the line in rest was cut
	last string // guarded by mu; the last line
}

// Write implements io.Writer.
func (l *logger) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if room := maxLine - len(l.rest); len(line) > room {
			line, l.over = line[:room], true
		}
		l.rest = append(l.rest, line...)
		if whole {
			l.line()
		}
		b = rest
	}
	return n, nil
}

// end writes what came after the last end of line.
func (l *logger) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.line()
	}
}

// line writes the line in rest. The caller holds mu, as that of write.
func (l *logger) line() {
	text := strings.TrimRight(strings.ToValidUTF8(string(l.rest), "\uFFFD"), "\r")
	if l.over {
		text += "…"
	}
	l.rest, l.over = l.rest[:0], false
	if text == endOfCall {
		select {
		case l.ended <- struct{}{}:
		default:
		}
		return
	}
	level := slog.LevelInfo
	if len(text) > 2 && text[0] == '<' && text[2] == '>' && text[1] >= '0' && text[1] <= '7' {
		level, text = levelOf(text[1]), text[3:]
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	l.write(level, text)
}

// say writes a separate line to the log.
func (l *logger) say(level slog.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(level, text)
}

func (l *logger) write(level slog.Level, text string) {
	text = l.hide(text)
	l.last = text
	l.log.Log(context.Background(), level, text, l.attrs...)
}

func levelOf(c byte) slog.Level {
	switch {
	case c <= '3':
		return slog.LevelError
	case c == '4':
		return slog.LevelWarn
	case c == '7':
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// because returns the last log line as the reason of a failure, in the form ": REASON".
func (l *logger) because() string {
	if last := l.lastLine(); last != "" {
		return ": " + last
	}
	return ""
}

func (l *logger) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// hide masks the secrets in a text.
func (l *logger) hide(text string) string {
	for _, s := range l.secrets {
		text = strings.ReplaceAll(text, s, mask)
	}
	return text
}

// keep makes every text in a value a secret, also the lines of a text of several.
func (l *logger) keep(v any) {
	switch v := v.(type) {
	case string:
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); utf8.RuneCountInString(line) >= minSecret && !slices.Contains(l.secrets, line) {
				l.secrets = append(l.secrets, line)
			}
		}
	case []byte:
		l.keep(string(v))
	case []any:
		for _, x := range v {
			l.keep(x)
		}
	case map[string]any:
		for _, x := range v {
			l.keep(x)
		}
	case map[any]any:
		for _, x := range v {
			l.keep(x)
		}
	case int64, uint64, float64, int:
		l.keep(number(v))
	}
	sorting.Stable(l.secrets, func(a, b string) int { return len(b) - len(a) }) // the longest first: one may hold another
}
