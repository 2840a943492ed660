// Package logpub publishes log files to a store: what was appended to a log since the last time, in parts. A part ends
// with the end of a line, except within a line of more than 1 MiB. The last line is published once it is complete.
// Module logpub and OpenStack Trove's agent use it.
//
// The store has the parts of a log, named by time and offset, and a metafile that says how much is published and which first line the
// file had. A file that is shorter than that, or begins with another line, was rotated: it is published from its beginning, and its old
// parts are removed.
package logpub

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/brine-salt/brine/modules"
)

// A Store keeps the parts and the metafile of logs.
type Store interface {
	// Put stores an object, in place of an older one.
	Put(ctx context.Context, name string, r io.Reader, meta map[string]string) error
	// Get opens an object. For a missing object the error matches fs.ErrNotExist.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Names returns the names that begin with a prefix.
	Names(ctx context.Context, prefix string) ([]string, error)
	// Remove removes an object. A missing object is not an error.
	Remove(ctx context.Context, name string) error
}

// The states of a log.
const (
	Enabled   = "Enabled"   // it is empty, or missing
	Ready     = "Ready"     // nothing of it is published
	Partial   = "Partial"   // there is more of it than is published
	Published = "Published" // all of it is published
	Rotated   = "Rotated"   // the file is another one than that which was published
)

// A Log is a log file. The caller sets the first fields; Refresh sets the others.
type Log struct {
	Name, Type string // for the metafile
	File       string // the file's name for people and for the metafile
	Path       string // the file; "" for a log without a file
	Prefix     string // of the parts' names
	Metafile   string // the metafile's name
	Limit      int64  // size of a part in bytes; a part that is one line may be larger, up to maxLine
	Now        func() time.Time

	Exists          bool
	Size, Published int64

	header, publishedHeader string
	restored                bool
	completed               bool // publishedHeader is of the first line before it was complete
}

// metafile is the data about a log in the store. The names of its fields are those of Trove's agent.
type metafile struct {
	Name   string `json:"log_name"`
	Type   string `json:"log_type"`
	File   string `json:"log_file"`
	Size   int64  `json:"log_size"`
	Header string `json:"log_header_digest"`
}

// maxLine bounds a line that is not divided, the first line, which identifies the file, and the metafile.
const maxLine = 1 << 20

// Refresh reads the file's size and first line and, the first time, how much of it is published. s may be nil: then nothing is.
func (l *Log) Refresh(ctx context.Context, s Store) error {
	if !l.restored && s != nil {
		if err := l.restore(ctx, s); err != nil {
			return modules.Errorf("cannot read what was published of the log %s: %v", l.Name, err)
		}
	}
	l.restored = true
	f, err := os.Open(l.Path)
	if l.Path == "" || errors.Is(err, fs.ErrNotExist) {
		l.Published, l.Size, l.Exists = 0, 0, false
		return nil
	}
	if err == nil {
		defer f.Close()
		err = l.read(f)
	}
	if err != nil {
		return modules.Errorf("cannot read the log %s: %v", l.Name, err)
	}
	return nil
}

func (l *Log) restore(ctx context.Context, s Store) error {
	r, err := s.Get(ctx, l.Metafile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	var m metafile
	if err := json.NewDecoder(io.LimitReader(r, maxLine)).Decode(&m); err != nil {
		return err
	}
	l.Published, l.publishedHeader = m.Size, m.Header
	return nil
}

func (l *Log) read(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	line, err := bufio.NewReader(io.LimitReader(f, maxLine)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	l.Size, l.header, l.Exists = info.Size(), digest(line), true
	// Trove's agent publishes a first line that is not complete.
	l.completed = l.Published > 0 && l.Published < int64(len(line)) && digest(line[:l.Published]) == l.publishedHeader
	return nil
}

func digest(line []byte) string {
	sum := md5.Sum(line)
	return hex.EncodeToString(sum[:])
}

// State returns the log's state.
func (l *Log) State() string {
	switch {
	case !l.Exists:
		return Enabled
	case l.rotated():
		return Rotated
	case l.Size > l.Published && l.Published > 0:
		return Partial
	case l.Size > l.Published:
		return Ready
	case l.Published > 0:
		return Published
	}
	return Enabled
}

// Pending returns the number of bytes that are not published. A last line that is not complete is among them.
func (l *Log) Pending() int64 {
	if l.State() == Rotated {
		return l.Size
	}
	return l.Size - l.Published
}

// rotated reports whether the file was replaced since parts of it were published.
func (l *Log) rotated() bool {
	return l.Published > 0 && (l.Size < l.Published || l.header != l.publishedHeader && !l.completed)
}

// Discard removes the published parts.
func (l *Log) Discard(ctx context.Context, s Store) error {
	names, err := s.Names(ctx, l.Prefix)
	if err != nil {
		return err
	}
	for _, name := range append(names, l.Metafile) {
		if err := s.Remove(ctx, name); err != nil {
			return err
		}
	}
	l.Published, l.publishedHeader, l.restored = 0, "", true
	return nil
}

// Publish stores the lines that were appended to the log since the last time. A part and a line are in memory at a time.
func (l *Log) Publish(ctx context.Context, s Store) error {
	if err := l.awaitLine(ctx); err != nil {
		return err
	}
	if err := l.Refresh(ctx, s); err != nil {
		return err
	}
	if l.rotated() {
		if err := l.Discard(ctx, s); err != nil {
			return err
		}
	}
	if !l.Exists {
		return modules.Errorf("Cannot publish log file '%s' as it does not exist.", l.File)
	}
	f, err := os.Open(l.Path)
	if err == nil {
		defer f.Close()
		_, err = f.Seek(l.Published, io.SeekStart)
	}
	if err != nil {
		return modules.Errorf("cannot read the log %s: %v", l.Name, err)
	}
	p := &part{log: l, store: s}
	rest := l.Size - l.Published
	r := bufio.NewReaderSize(io.LimitReader(f, rest), int(min(rest, maxLine)+1)) // one more, so that a line of maxLine does not fill it
	for {
		line, err := r.ReadSlice('\n')
		whole := !errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !errors.Is(err, io.EOF) && whole {
			return modules.Errorf("cannot read the log %s: %v", l.Name, err)
		}
		if errors.Is(err, io.EOF) {
			return p.flush(ctx) // without a line that is not complete
		}
		if p.text.Len() > 0 && int64(p.text.Len()+len(line)) > l.Limit {
			if err := p.flush(ctx); err != nil {
				return err
			}
		}
		p.text.Write(line)
		if whole {
			p.lines++
		}
	}
}

// lineTime is how long after the last write to a log Publish waits for the end of the last line. MariaDB writes a line of its general log
// in pieces.
const lineTime = 500 * time.Millisecond

// awaitLine waits until the log's last line is complete, lineTime at most. It does not wait if the log is older than that.
func (l *Log) awaitLine(ctx context.Context) error {
	f, err := os.Open(l.Path)
	if err != nil {
		return nil // Refresh reports it
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, lineTime)
	defer cancel()
	tick := time.NewTicker(lineTime / 50)
	defer tick.Stop()
	for {
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || time.Since(info.ModTime()) > lineTime {
			return nil
		}
		var last [1]byte
		if n, _ := f.ReadAt(last[:], info.Size()-1); n == 1 && last[0] == '\n' {
			return nil
		}
		select {
		case <-ctx.Done():
			if ctx.Err() == context.Canceled {
				return ctx.Err()
			}
			return nil
		case <-tick.C:
		}
	}
}

// part is the part that is read.
type part struct {
	log   *Log
	store Store
	text  bytes.Buffer
	lines int
}

// flush stores the part, and then in the metafile that it is published.
func (p *part) flush(ctx context.Context) error {
	l := p.log
	size := int64(p.text.Len())
	if size == 0 {
		return nil
	}
	name := l.Prefix + "log-" + l.Now().UTC().Format("2006-01-02T15:04:05.000000") + "-" + strconv.FormatInt(l.Published, 10)
	if err := p.store.Put(ctx, name, &p.text, map[string]string{"lines": strconv.Itoa(p.lines)}); err != nil {
		return err
	}
	p.text.Reset()
	p.lines = 0
	l.Published, l.publishedHeader = l.Published+size, l.header
	b, err := json.Marshal(metafile{l.Name, l.Type, l.File, l.Published, l.header})
	if err != nil {
		return err
	}
	return p.store.Put(ctx, l.Metafile, bytes.NewReader(b), map[string]string{})
}
