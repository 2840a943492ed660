package fileclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// inFlight is how many chunks of a file are requested at the same time.
const inFlight = 4

// maxChunk limits the size of one unpacked chunk, whatever the master's file_buffer_size is.
const maxChunk = 64 << 20

// attempts is how often a download is tried if the content does not have the announced hash, for example because the
// file changes on the master meanwhile.
const attempts = 3

// errBroken means that the content does not have the announced hash.
var errBroken = errors.New("the content does not have the hash that the master announced")

// download copies a file of the master into the cache. It returns "" if the file does not exist.
func (c *Client) download(ctx context.Context, p place) (string, error) {
	name, err := p.localName()
	if err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		want, err := c.remoteHash(ctx, p)
		if err != nil || want == nil {
			return "", err
		}
		kind, _ := payload.Text(want["hash_type"])
		sum, _ := payload.Text(want["hsum"])
		if hashname.New(kind) == nil {
			return "", modules.Errorf("cannot fetch salt://%s: the master uses the unknown hash type %q", p.path, kind)
		}
		full := c.CachePath("salt://"+p.path, p.env)
		if have, err := hashFile(full, kind); err == nil && have == sum {
			return full, nil
		}
		got, err := c.downloadOnce(ctx, p, name, kind, sum)
		if !errors.Is(err, errBroken) || try == attempts {
			if err != nil {
				return "", modules.Errorf("cannot fetch salt://%s: %v", p.path, err)
			}
			return got, nil
		}
		c.log.Warn("Bad download of a file, it is fetched again", "file", p.path, "attempt", try)
	}
}

// downloadOnce makes one attempt to download and verify a file.
func (c *Client) downloadOnce(ctx context.Context, p place, name, kind, sum string) (string, error) {
	w, err := c.createFile(name)
	if err != nil {
		return "", err
	}
	defer w.discard()
	if err := c.fetchChunks(ctx, p, w.file); err != nil {
		return "", err
	}
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	got, err := hashname.Digest(hashname.New(kind), w.file)
	if err != nil {
		return "", err
	}
	// guard: CVE-2022-22936 TestCVE_2022_22936_ReplayedChunks
	if got != sum {
		return "", errBroken
	}
	return w.commit()
}

// fetchChunks writes a file's content. The size of the first reply is the chunk size. Further chunks are requested
// concurrently, since waiting for each would cost one round trip per chunk.
func (c *Client) fetchChunks(ctx context.Context, p place, w io.WriterAt) error {
	first, err := c.fetchChunk(ctx, p, 0)
	if err != nil || len(first) == 0 {
		return err
	}
	if _, err := w.WriteAt(first, 0); err != nil {
		return err
	}
	size := int64(len(first))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu     sync.Mutex
		next   = size // guarded by mu
		ended  bool   // guarded by mu; a chunk was not full, so the file ended
		failed error  // guarded by mu
		wg     sync.WaitGroup
	)
	work := func() {
		for {
			mu.Lock()
			at := next
			next += size
			stop := ended || failed != nil
			mu.Unlock()
			if stop {
				return
			}
			data, err := c.fetchChunk(ctx, p, at)
			if err == nil && len(data) > 0 {
				_, err = w.WriteAt(data, at)
			}
			mu.Lock()
			ended = ended || int64(len(data)) < size
			if err != nil && failed == nil {
				failed = err
				cancel()
			}
			mu.Unlock()
		}
	}
	for range inFlight {
		wg.Go(work)
	}
	wg.Wait()
	return failed
}

// fetchChunk requests the content at an offset; an empty reply is the end of the file.
func (c *Client) fetchChunk(ctx context.Context, p place, at int64) ([]byte, error) {
	load := map[string]any{"cmd": "_serve_file", "path": p.path, "saltenv": p.env, "loc": at}
	v, err := c.o.Request(ctx, load, true)
	if err != nil {
		return nil, err
	}
	reply, ok := payload.Map(v)
	if !ok {
		return nil, fmt.Errorf("the master's answer is not a map")
	}
	data, ok := payload.Bytes(reply["data"])
	if !ok {
		return nil, fmt.Errorf("the master's answer has no data")
	}
	if level, _ := payload.Int(reply["gzip"]); level > 0 && len(data) > 0 {
		return gunzip(data)
	}
	return data, nil
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxChunk+1))
	if err == nil && len(b) > maxChunk {
		err = fmt.Errorf("a chunk of more than %d bytes", maxChunk)
	}
	return b, err
}

// remoteHash returns the master's {hash_type, hsum} for a file, or nil if the file does not exist.
func (c *Client) remoteHash(ctx context.Context, p place) (map[string]any, error) {
	v, err := c.o.Request(ctx, map[string]any{"cmd": "_file_hash", "path": p.path, "saltenv": p.env}, false)
	if err != nil {
		return nil, modules.Errorf("cannot ask for salt://%s: %v", p.path, err)
	}
	if m, ok := payload.Map(v); ok && len(m) > 0 {
		return m, nil
	}
	return nil, nil
}

// Hash implements modules.Files: salt:// paths through the file server, others on this host.
func (c *Client) Hash(ctx context.Context, name, saltenv string) (map[string]any, error) {
	p, ok := parsePlace(name, saltenv)
	if ok && c.o.Request != nil {
		return c.remoteHash(ctx, p)
	}
	if ok {
		found, err := c.findLocal(p)
		if err != nil || found == "" {
			return nil, err
		}
		name = found
	}
	return c.localHash(name)
}

// HashAndStat implements modules.Files.
func (c *Client) HashAndStat(ctx context.Context, name, saltenv string) (map[string]any, []any, error) {
	p, ok := parsePlace(name, saltenv)
	if ok && c.o.Request != nil {
		sum, err := c.remoteHash(ctx, p)
		if err != nil || sum == nil {
			return nil, nil, err
		}
		v, err := c.o.Request(ctx, map[string]any{"cmd": "_file_find", "path": p.path, "saltenv": p.env}, false)
		if err != nil {
			return nil, nil, modules.Errorf("cannot ask for salt://%s: %v", p.path, err)
		}
		found, _ := payload.Map(v)
		stat, _ := payload.List(found["stat"])
		return sum, stat, nil
	}
	if ok {
		found, err := c.findLocal(p)
		if err != nil || found == "" {
			return nil, nil, err
		}
		name = found
	}
	sum, err := c.localHash(name)
	if err != nil || sum == nil {
		return nil, nil, err
	}
	return sum, statList(name), nil
}

// Envs implements modules.Files.
func (c *Client) Envs(ctx context.Context) ([]string, error) {
	if c.o.Request == nil {
		return c.localEnvs(), nil
	}
	return c.requestNames(ctx, map[string]any{"cmd": "_file_envs"})
}

// List implements modules.Files.
func (c *Client) List(ctx context.Context, saltenv, prefix string) ([]string, error) {
	return c.listing(ctx, "_file_list", saltenv, prefix)
}

// EmptyDirs implements modules.Files.
func (c *Client) EmptyDirs(ctx context.Context, saltenv, prefix string) ([]string, error) {
	return c.listing(ctx, "_file_list_emptydirs", saltenv, prefix)
}

// Dirs implements modules.Files.
func (c *Client) Dirs(ctx context.Context, saltenv, prefix string) ([]string, error) {
	return c.listing(ctx, "_dir_list", saltenv, prefix)
}

func (c *Client) listing(ctx context.Context, cmd, saltenv, prefix string) ([]string, error) {
	if c.o.Request == nil {
		return c.localList(cmd, saltenv, prefix)
	}
	return c.requestNames(ctx, map[string]any{"cmd": cmd, "saltenv": saltenv, "prefix": prefix})
}

// Symlinks implements modules.Files.
func (c *Client) Symlinks(ctx context.Context, saltenv, prefix string) (map[string]string, error) {
	if c.o.Request == nil {
		return c.localLinks(saltenv, prefix)
	}
	v, err := c.o.Request(ctx, map[string]any{"cmd": "_symlink_list", "saltenv": saltenv, "prefix": prefix}, false)
	if err != nil {
		return nil, err
	}
	m, ok := payload.Map(v)
	if !ok {
		return nil, fmt.Errorf("cannot list links: the master's answer is not a map")
	}
	links := make(map[string]string, len(m))
	for name, to := range m {
		if text, ok := payload.Text(to); ok {
			links[name] = text
		}
	}
	return links, nil
}

// requestNames requests a list of strings.
func (c *Client) requestNames(ctx context.Context, load map[string]any) ([]string, error) {
	v, err := c.o.Request(ctx, load, false)
	if err != nil {
		return nil, err
	}
	list, ok := payload.List(v)
	if !ok {
		return nil, fmt.Errorf("cannot list files: the master's answer to %s is not a list", load["cmd"])
	}
	names := make([]string, 0, len(list))
	for _, x := range list {
		if text, ok := payload.Text(x); ok {
			names = append(names, text)
		}
	}
	return names, nil
}

// sendChunk is how many bytes of a file one request sends, as in the minion's file_buffer_size.
const sendChunk = 256 << 10

// Send implements modules.Files (salt/modules/cp.py: push). It returns false if the master does not accept files.
func (c *Client) Send(ctx context.Context, file, name string) (bool, error) {
	if c.o.Request == nil {
		return false, modules.Errorf("cannot send %s: this minion has no master", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return false, modules.Errorf("cannot send %s: %v", file, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, modules.Errorf("cannot send %s: not a regular file", file)
	}
	parts := []any{}
	for _, part := range strings.Split(name, "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	buf := make([]byte, sendChunk)
	for at := int64(0); ; {
		n, err := io.ReadFull(f, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, modules.Errorf("cannot send %s: %v", file, err)
		}
		if n == 0 && at > 0 {
			return true, nil
		}
		ok, err := c.o.Request(ctx, map[string]any{"cmd": "_file_recv", "path": parts, "loc": at, "data": buf[:n], "size": info.Size()}, false)
		if err != nil {
			return false, err
		}
		if taken, _ := ok.(bool); !taken {
			c.log.Error("cp.push Failed transfer failed. Ensure master has 'file_recv' set to True and that the file is not larger than the 'file_recv_max_size' setting on the master.")
			return false, nil
		}
		if at += int64(n); n == 0 {
			return true, nil
		}
	}
}
