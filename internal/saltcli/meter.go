package saltcli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Meter is a line at the bottom of a terminal that shows what a command waits for. Other output of the program
// appears above it. The methods of a nil Meter do nothing.
type Meter struct {
	err   io.Writer
	width func() int

	mu      sync.Mutex
	text    string    // guarded by mu
	since   time.Time // guarded by mu; when the text was set
	drawn   string    // guarded by mu; the line on the terminal, or ""
	partial bool      // guarded by mu; the program's output ends within a line
	stopped bool      // guarded by mu

	stop, done chan struct{}
}

// Times of a meter. A command that ends within meterDelay shows no meter.
const (
	meterDelay = time.Second
	meterTick  = 200 * time.Millisecond
)

// StartMeter shows a meter after meterDelay. It returns nil if standard error is not a terminal. Until Stop, the
// console's Out and Err are replaced so that the meter and other output do not mix.
func (c *Console) StartMeter() *Meter {
	if c.ErrWidth == nil || c.Env("TERM") == "dumb" {
		return nil
	}
	m := &Meter{err: c.Err, width: c.ErrWidth, stop: make(chan struct{}), done: make(chan struct{})}
	c.Out, c.Err = above{m, c.Out}, above{m, c.Err}
	go m.run()
	return m
}

func (m *Meter) run() {
	defer close(m.done)
	next := meterDelay
	for {
		select {
		case <-m.stop:
			return
		case <-time.After(next):
		}
		next = meterTick
		m.mu.Lock()
		m.draw()
		m.mu.Unlock()
	}
}

// Set sets the text of the line. Control characters are removed.
func (m *Meter) Set(text string) {
	if m == nil {
		return
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text, m.since = text, time.Now()
}

// Stop removes the line. Set has no effect afterwards.
func (m *Meter) Stop() {
	if m == nil {
		return
	}
	m.mu.Lock()
	first := !m.stopped
	m.stopped = true
	m.erase()
	m.mu.Unlock()
	if first {
		close(m.stop)
	}
	<-m.done
}

// draw shows the text, followed by the seconds since it was set. It ignores errors of the terminal: the command
// continues without a meter.
func (m *Meter) draw() {
	if m.text == "" || m.partial || m.stopped {
		return
	}
	line := fmt.Sprintf("%s (%d s)", m.text, int(time.Since(m.since)/time.Second))
	if room := m.width() - 1; room > 0 {
		if r := []rune(line); len(r) > room {
			line = string(r[:room])
		}
	}
	if line != m.drawn {
		_, _ = io.WriteString(m.err, "\r"+line+"\x1b[K")
		m.drawn = line
	}
}

func (m *Meter) erase() {
	if m.drawn != "" {
		_, _ = io.WriteString(m.err, "\r\x1b[K")
		m.drawn = ""
	}
}

// above is a writer whose output appears above the meter.
type above struct {
	m *Meter
	w io.Writer
}

func (a above) Write(b []byte) (int, error) {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.m.erase()
	if len(b) > 0 {
		a.m.partial = !bytes.HasSuffix(b, []byte("\n"))
	}
	return a.w.Write(b)
}
