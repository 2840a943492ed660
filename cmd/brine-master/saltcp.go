package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/client"
)

// exitNoSource is stock's exit code if a file to copy does not exist.
const exitNoSource = 42

// maxPlainFile limits the size of a file that is sent in one piece.
const maxPlainFile = 64 << 20

// saltCp is the program salt-cp: it sends files of this host to minions as arguments of jobs (salt/cli/cp.py).
type saltCp struct {
	saltCmd
	src  []string
	dest string
}

// runCp runs salt-cp and returns its exit code.
func runCp(ctx context.Context, c *saltcli.Console, args []string) int {
	p, err := saltcli.Setup(c, cpParser(c), saltcli.Master, args)
	if err == nil {
		err = p.OpenLog("salt.client", false)
	}
	if err != nil {
		return p.Exit(err)
	}
	defer p.Close()
	s := &saltCp{saltCmd: saltCmd{Program: p,
		print: &saltcli.Printer{Out: c.Out, Opts: p.Conf.Opts, Terminal: c.Terminal, Log: p.Log}}}
	return p.Interruptible(ctx, func(ctx context.Context) (int, error) { return 0, s.run(ctx) }, nil)
}

func (s *saltCp) run(ctx context.Context) error {
	args := s.Values.Args
	if len(args) <= 1 {
		fmt.Fprint(s.Out, s.Parser.Help())
		return s.Usage("Insufficient arguments")
	}
	var err error
	if s.cmd.TgtType, err = targetType(s.Program); err != nil {
		return err
	}
	s.cmd.Tgt = args[0]
	if s.cmd.TgtType == "list" {
		s.cmd.Tgt = splitList(args[0])
	}
	for _, name := range args[1 : len(args)-1] {
		s.src = append(s.src, realPath(name))
	}
	s.dest = args[len(args)-1]
	if s.client, err = newClient(s.Program); err != nil {
		return err
	}
	defer s.client.Close()
	if err = s.resolve(); err != nil {
		return err
	}
	send := s.copyPlain
	if s.Values.Bool("chunked") {
		send = s.copyChunked
	}
	ret, err := send(ctx)
	if err != nil {
		if text, ok := s.explainError(err); ok {
			err = errors.New(text)
		}
		return err
	}
	return s.print.Print(ret, "", 0)
}

// realPath implements Python's os.path.realpath. A path that does not exist is only made absolute.
func realPath(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

// runJob runs a function on the target and returns each minion's value, or false for minions that did not answer.
// none is true if no minion matches the target.
func (s *saltCp) runJob(ctx context.Context, fun string, arg ...any) (ret map[string]any, none bool,
	err error) {
	s.cmd.Fun, s.cmd.Arg = fun, arg
	r, err := s.client.Run(ctx, s.cmd, s.runOptions())
	if errors.Is(err, client.ErrNoMatch) {
		s.noMatch()
		return map[string]any{}, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	ret = map[string]any{}
	for one := range r.Returns(ctx) {
		switch {
		case one.Status == client.Returned:
			ret[one.ID] = one.Value
		case !one.Unknown:
			ret[one.ID] = false
		}
	}
	return ret, len(ret) == 0, r.Err()
}

// copyPlain sends whole text files in one job (cp.recv).
func (s *saltCp) copyPlain(ctx context.Context) (map[string]any, error) {
	files := map[string]any{}
	for _, name := range s.src {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			continue // stock sends nothing then
		case info.IsDir():
			fmt.Fprintf(s.Out, "%s is a directory, only files are supported in non-chunked mode. "+
				"Use \"--chunked\" command line argument.\n", name)
			return nil, &saltcli.ExitError{Code: saltcli.ExitGeneric}
		case !info.Mode().IsRegular():
			continue
		case info.Size() > maxPlainFile:
			return nil, fmt.Errorf(`cannot send %s: it has more than %d bytes; use "--chunked"`,
				name, maxPlainFile)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot send file: %w", err)
		}
		if !utf8.Valid(b) {
			return nil, fmt.Errorf(`cannot send %s: it is not text; use "--chunked"`, name)
		}
		files[name] = string(b)
	}
	ret, _, err := s.runJob(ctx, "cp.recv", files, s.dest)
	return ret, err
}

// tree holds what to copy: files with their modes, and empty directories.
type tree struct {
	files map[string]fs.FileMode
	empty []string
}

// add adds a file, or everything below a directory.
func (t *tree) add(name string, depth int) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &saltcli.ExitError{Code: exitNoSource, Text: name + " does not exist\n"}
	}
	if err != nil {
		return fmt.Errorf("cannot copy: %w", err)
	}
	switch {
	case depth > 255:
		return fmt.Errorf("cannot copy %s: it is too deep", name)
	case info.Mode().IsRegular():
		t.files[name] = info.Mode()
		return nil
	case !info.IsDir():
		return fmt.Errorf("cannot copy %s: it is neither a file nor a directory", name)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return fmt.Errorf("cannot copy: %w", err)
	}
	if len(entries) == 0 {
		t.empty = append(t.empty, name)
	}
	for _, e := range entries {
		if err := t.add(filepath.Join(name, e.Name()), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// remotePath returns the path on the minion for a file or an empty directory.
func (s *saltCp) remotePath(name string, intoDir bool) string {
	if slices.Contains(s.src, name) {
		if !intoDir {
			return s.dest
		}
		return joinRemote(s.dest, filepath.Base(name))
	}
	for _, top := range s.src {
		if rel, err := filepath.Rel(top, name); err == nil && filepath.IsLocal(rel) {
			return joinRemote(s.dest, filepath.Base(top), filepath.ToSlash(rel))
		}
	}
	return s.dest
}

// joinRemote implements os.path.join for a path on the minion. It does not clean dir.
func joinRemote(dir string, names ...string) string {
	if !strings.HasSuffix(dir, "/") && dir != "" {
		dir += "/"
	}
	return dir + path.Join(names...)
}

// copyChunked sends files in pieces, with one job for each piece (cp.recv_chunked).
func (s *saltCp) copyChunked(ctx context.Context) (map[string]any, error) {
	t := &tree{files: map[string]fs.FileMode{}}
	for _, name := range s.src {
		if err := t.add(name, 0); err != nil {
			return nil, err
		}
	}
	slices.Sort(t.empty)
	intoDir := len(t.empty) > 0 || len(t.files) > 1 || strings.HasSuffix(s.dest, "/") ||
		strings.HasSuffix(s.dest, `\`)
	ret := map[string]any{}
	note := func(id, file string, v any) {
		if ret[id] == nil {
			ret[id] = map[string]any{}
		}
		ret[id].(map[string]any)[file] = v
	}
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if err := s.sendFile(ctx, name, s.remotePath(name, intoDir), t.files[name],
			note); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Compact(t.empty) {
		to := s.remotePath(name, intoDir)
		got, _, err := s.runJob(ctx, "cp.recv_chunked", to, nil)
		if err != nil {
			return nil, err
		}
		for id, v := range got {
			note(id, to, v)
		}
	}
	return ret, nil
}

// sendFile sends one file and passes to note the first answer of each minion that is not true.
func (s *saltCp) sendFile(ctx context.Context, name, to string, mode fs.FileMode,
	note func(id, file string, v any)) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot copy: %w", err)
	}
	defer f.Close()
	size := s.Conf.Int("salt_cp_chunk_size")
	if size <= 0 || size > maxPlainFile {
		return fmt.Errorf("salt_cp_chunk_size: %d is out of range", size)
	}
	zip := s.Values.Bool("gzip")
	failed := map[string]bool{}
	buf := make([]byte, size)
	for first := true; ; first = false {
		n, err := io.ReadFull(f, buf)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return fmt.Errorf("cannot copy %s: %w", name, err)
		}
		if n == 0 && !zip {
			return nil // stock sends nothing for an empty file then
		}
		piece, err := packPiece(buf[:n], zip)
		if err != nil {
			return err
		}
		got, none, err := s.runJob(ctx, "cp.recv_chunked", to, piece, !first, zip,
			int64(pythonMode(mode)))
		if err != nil || none {
			return err
		}
		for id, v := range got {
			if !failed[id] {
				note(id, to, v)
			}
			failed[id] = failed[id] || v != true
		}
		if end {
			return nil
		}
	}
}

// packPiece encodes a piece of a file for a job.
func packPiece(b []byte, zip bool) (string, error) {
	if zip {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return "", err
		}
		w.ModTime = time.Now()
		if _, err = w.Write(b); err == nil {
			err = w.Close()
		}
		if err != nil {
			return "", fmt.Errorf("cannot compress: %w", err)
		}
		b = out.Bytes()
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

// pythonMode returns the last four octal digits of st_mode.
func pythonMode(m fs.FileMode) fs.FileMode {
	out := m.Perm()
	for _, bit := range []struct{ is, has fs.FileMode }{{fs.ModeSetuid, 0o4000},
		{fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&bit.is != 0 {
			out |= bit.has
		}
	}
	return out
}
