package runcmd

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/modules"
)

// stream collects the output of one pipe, up to a limit. It reads and drops output beyond the limit, so that the
// program does not block.
type stream struct {
	sh   *shared
	r, w *os.File
	to   io.Writer          // gets the output instead of chunks; may be nil
	seen func(piece []byte) // called with each piece of output; may be nil
	done chan struct{}

	writing sync.Mutex // held while writing to to

	mu      sync.Mutex
	chunks  [][]byte // guarded by mu
	left    int64    // guarded by mu; bytes that may still be stored
	kept    int64    // guarded by mu; bytes counted in shared.held
	dropped bool     // guarded by mu
	closed  bool     // guarded by mu; no more output is stored
}

type streams struct{ out, err *stream }

// connect creates the pipes for a command's output.
func connect(sh *shared, cmd *exec.Cmd, c modules.Command, limit int64) (*streams, error) {
	s := &streams{}
	var err error
	if s.out, err = newStream(sh, c.Stdout, limit); err != nil {
		return nil, fmt.Errorf("cannot make a pipe for %s: %w", cmd.Args[0], err)
	}
	if c.Seen != nil {
		s.out.seen = func(b []byte) { c.Seen(false, b) }
	}
	cmd.Stdout = s.out.w
	if c.Merge {
		cmd.Stderr = s.out.w
		return s, nil
	}
	if s.err, err = newStream(sh, c.Stderr, limit); err != nil {
		s.abandon()
		return nil, fmt.Errorf("cannot make a pipe for %s: %w", cmd.Args[0], err)
	}
	if c.Seen != nil {
		s.err.seen = func(b []byte) { c.Seen(true, b) }
	}
	cmd.Stderr = s.err.w
	return s, nil
}

func newStream(sh *shared, to io.Writer, limit int64) (*stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &stream{sh: sh, to: to, r: r, w: w, left: limit, done: make(chan struct{})}, nil
}

func (s *streams) each(f func(*stream)) {
	f(s.out)
	if s.err != nil {
		f(s.err)
	}
}

// started closes this process's write ends and starts to read.
func (s *streams) started() {
	s.each(func(p *stream) {
		p.w.Close()
		go p.read()
	})
}

// abandon closes all pipes after a failed start.
func (s *streams) abandon() {
	if s.out != nil {
		s.each(func(p *stream) {
			p.w.Close()
			p.r.Close()
		})
	}
}

// finish waits for the end of the output, at most pipeGrace. A process that the program left behind may hold the pipe
// open longer; its output is then drained.
func (s *streams) finish(sh *shared) {
	t := time.NewTimer(pipeGrace)
	defer t.Stop()
	over := false
	s.each(func(p *stream) {
		if !over {
			select {
			case <-p.done:
				return
			case <-t.C:
				over = true
			}
		}
		select {
		case <-p.done:
		default:
			p.close()
			sh.drain(p)
		}
	})
}

// close stops storing and passing output, and waits for a write in progress.
func (p *stream) close() {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// pass writes a piece of output to the command's own writer, unless the command has returned.
func (p *stream) pass(b []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if !closed {
		_, _ = p.to.Write(b) // a closed writer returns an error each time; that is fine
	}
}

// drain keeps a pipe open, whose reader continues to drop the output. It closes the oldest if there are more than
// maxDrains.
func (sh *shared) drain(p *stream) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.drains = append(slices.DeleteFunc(sh.drains, (*stream).ended), p)
	if len(sh.drains) > maxDrains {
		sh.drains[0].r.Close()
		sh.drains = slices.Delete(sh.drains, 0, 1)
	}
}

func (p *stream) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Close closes the pipes that daemons started by finished commands still hold open.
func (r *Runner) Close() error {
	r.init()
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	for _, p := range r.shared.drains {
		p.r.Close()
	}
	r.shared.drains = nil
	return nil
}

// read reads until the end of the pipe. The first buffers are small, since most programs print little.
func (p *stream) read() {
	defer close(p.done)
	defer p.r.Close()
	size := 4 << 10
	buf := make([]byte, size)
	for {
		n, err := p.r.Read(buf)
		switch {
		case n == 0:
		case p.to != nil:
			p.pass(buf[:n])
		case p.show(buf[:n]), p.keep(buf[:n]):
			buf = buf[n:]
			if len(buf) < 512 {
				size = min(size*2, 256<<10)
				buf = make([]byte, size)
			}
		}
		if err != nil {
			return
		}
	}
}

// show calls seen, unless the command has returned. It always returns false, so that the caller stores the piece too.
func (p *stream) show(b []byte) bool {
	if p.seen == nil {
		return false
	}
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if !closed {
		p.seen(b)
	}
	return false
}

// keep stores a piece of output and reports whether the store now owns the slice.
func (p *stream) keep(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if int64(len(b)) > p.left {
		b = b[:p.left]
		p.dropped = true
	}
	if len(b) > 0 && p.sh.held.Add(int64(len(b))) > p.sh.total {
		p.sh.held.Add(-int64(len(b)))
		p.dropped, b = true, nil
	}
	if len(b) == 0 {
		return false
	}
	p.left -= int64(len(b))
	p.kept += int64(len(b))
	p.chunks = append(p.chunks, b[:len(b):len(b)])
	return true
}

// bytes returns the stored output and whether some was dropped. It stops storing, and releases the share of the
// total.
func (p *stream) bytes() ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.sh.held.Add(-p.kept)
	p.kept = 0
	if len(p.chunks) == 1 {
		return p.chunks[0], p.dropped
	}
	n := 0
	for _, c := range p.chunks {
		n += len(c)
	}
	all := make([]byte, 0, n)
	for i, c := range p.chunks {
		all = append(all, c...)
		p.chunks[i] = nil
	}
	p.chunks = nil
	return all, p.dropped
}

func (s *streams) output() (stdout, stderr []byte, truncated bool) {
	stdout, truncated = s.out.bytes()
	if s.err != nil {
		var more bool
		stderr, more = s.err.bytes()
		truncated = truncated || more
	}
	return stdout, stderr, truncated
}
