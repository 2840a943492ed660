package render

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// hostFilter returns one of the filters that look at the host and its networks (salt.utils.path, files, network,
// user, http), or nil. All paths go through the call, which may have a root of its own.
// The switch is evaluated once per render and name.
func (s *session) hostFilter(name string) jinja.Filter {
	switch name {
	case "which":
		return plainFilter(name, func(v any) (any, error) {
			exe, err := textArg(v)
			if err != nil {
				return nil, err
			}
			// Python returns None for a missing program.
			found := s.c.Which(exe)
			if found == "" {
				return nil, nil
			}
			return found, nil
		})
	case "path_join":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			var parts []string
			// Unlike in Python's own join, an absolute part does not discard the parts before it.
			for _, x := range append([]any{v}, a.Pos...) {
				p, err := textArg(x)
				if err != nil {
					return nil, raiseAs("TypeError", "expected str, bytes, or bytearray not <class '"+pyobj.TypeName(x)+"'>")
				}
				if p = path.Clean(p); len(parts) > 0 {
					p = strings.TrimLeft(p, "/")
				}
				parts = append(parts, p)
			}
			return path.Clean(strings.Join(parts, "/")), nil
		}
	case "file_hashsum":
		return s.fileHash
	case "is_empty":
		return s.onFile(name, func(name string) (any, error) {
			info, err := os.Stat(name)
			return err == nil && info.Size() == 0, nil
		})
	case "is_text_file":
		// The first 512 bytes decide, as in Salt.
		return s.onFile(name, func(name string) (any, error) {
			b, err := readHead(name, 512)
			return err == nil && !isBinary(b), nil
		})
	case "is_bin_file":
		return s.onFile(name, func(name string) (any, error) {
			info, err := os.Stat(name)
			if err != nil || !info.Mode().IsRegular() {
				return false, nil
			}
			b, err := readHead(name, 2048)
			return err == nil && isBinary(b), nil
		})
	case "list_files":
		return s.listFiles
	case "get_uid":
		return plainFilter(name, func(v any) (any, error) {
			name, err := textArg(v)
			if err != nil {
				return nil, err
			}
			u, err := user.Lookup(name)
			if err != nil {
				return nil, nil
			}
			// User ids are integers in Salt.
			n, err := strconv.ParseInt(u.Uid, 10, 64)
			return n, err
		})
	case "gen_mac":
		// The value is a prefix of three bytes, and three random bytes follow.
		return plainFilter(name, func(v any) (any, error) {
			p, err := jinja.Str(v)
			for range 3 {
				n := rand.IntN(256)
				p += ":" + string("0123456789ABCDEF"[n>>4]) + string("0123456789ABCDEF"[n&15])
			}
			return p, err
		})
	case "mac_str_to_bytes":
		return plainFilter(name, macBytes)
	case "http_query":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			// The query is a call of the execution function, with its rights and options.
			kwargs := map[string]any{}
			for _, kw := range a.Kw {
				kwargs[kw.Name] = kw.Value
			}
			x, err := s.c.ExecOrdered(s.ctx, "http.query", append([]any{v}, a.Pos...), kwargs)
			if err != nil {
				return nil, asException(err)
			}
			return x, nil
		}
	case "dns_check":
		return s.dnsCheck
	}
	return nil
}

// onFile returns a filter that calls fn with a path.
func (s *session) onFile(filter string, fn func(name string) (any, error)) jinja.Filter {
	return plainFilter(filter, func(v any) (any, error) {
		name, err := textArg(v)
		if err != nil {
			return nil, err
		}
		return fn(s.c.Path(name))
	})
}

// readHead returns at most the first n bytes of a file.
func readHead(name string, n int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, n)
	n, err = io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return b[:n], err
}

// isBinary guesses whether bytes are something other than text (salt.utils.stringutils.is_binary): a zero byte, or
// more than 30 % of control characters.
func isBinary(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	text := b
	// Up to three bytes of a cut-off character are left out.
	for cut := 0; cut < 4 && len(text) > 0 && !utf8.Valid(text); cut++ {
		text = b[:len(b)-cut-1]
	}
	valid := utf8.Valid(text) && len(text) > 0
	odd := 0
	for _, c := range b {
		switch {
		case c == 0:
			return true
		case c >= 32 && c < 127, c == '\n', c == '\r', c == '\t', c == '\f', c == '\b', c >= 128 && c < 255 && valid:
		default:
			odd++
		}
	}
	// Salt's limit is the same.
	return float64(odd)/float64(len(b)) > 0.3
}

// fileHash implements file_hashsum: the hash of a file's content.
func (s *session) fileHash(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("get_hash", []string{"form", "chunk_size"}, "sha256", int64(65536))
	if err != nil {
		return nil, err
	}
	h := hashname.New(pyobj.Str(args[0]))
	if h == nil {
		return nil, raiseAs("ValueError", "Invalid hash type: "+pyobj.Str(args[0]))
	}
	name, err := textArg(v)
	if err != nil {
		return nil, err
	}
	// The path is relative to the call's root.
	f, err := os.Open(s.c.Path(name))
	if err != nil {
		return nil, asException(modules.OSError(err))
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return nil, asException(modules.OSError(err))
	}
	return hexDigest(h, nil), nil
}

// maxListed limits the filter list_files, which could otherwise list a whole disk.
const maxListed = 1_000_000

// listFiles implements list_files: the directory and everything below it.
func (s *session) listFiles(_ *jinja.Run, v any, _ jinja.Args) (any, error) {
	dir, err := textArg(v)
	if err != nil {
		return nil, err
	}
	out := pyobj.NewList(dir)
	root := s.c.Path(dir)
	err = filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == root {
			return nil //nolint:nilerr // unreadable entries are left out, as Salt does
		}
		if len(out.Items) >= maxListed {
			return raiseAs("MemoryError", "too many files")
		}
		out.Items = append(out.Items, dir+strings.TrimPrefix(name, root))
		// A long walk ends when the render is cancelled.
		return s.ctx.Err()
	})
	return out, err
}

// macBytes implements mac_str_to_bytes: with or without separators.
func macBytes(v any) (any, error) {
	n, err := jinja.Length(v)
	if err != nil {
		return nil, err
	}
	mac, err := textArg(v)
	if err != nil && (n == 12 || n == 17) {
		return nil, err
	}
	switch n {
	case 12:
	case 17:
		// The separator is the third character, whatever it is.
		mac = strings.ReplaceAll(mac, mac[2:3], "")
	default:
		return nil, raiseAs("ValueError", "Invalid MAC address")
	}
	out := []byte{}
	for i := 0; i+2 <= len(mac) && i < 12; i += 2 {
		n, err := strconv.ParseUint(mac[i:i+2], 16, 8)
		if err != nil {
			return nil, raiseAs("ValueError", "invalid literal for int() with base 16: "+pyobj.Repr(mac[i:i+2]))
		}
		out = append(out, byte(n))
	}
	return out, nil
}

// dnsCheck returns the first address of a name that accepts a connection on the port, else the last one tried.
func (s *session) dnsCheck(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("dns_check", []string{"port", "safe", "ipv6"}, false, nil)
	if err != nil {
		return nil, err
	}
	name, err := textArg(v)
	if err != nil {
		return nil, err
	}
	// Without the argument both versions are tried; false means IPv4, true IPv6 with IPv4 as a fallback.
	network := "ip"
	if args[2] != nil {
		network = "ip4"
		if yes, err := jinja.Truth(args[2]); err != nil {
			return nil, err
		} else if yes {
			network = "ip6"
		}
	}
	list, err := net.DefaultResolver.LookupIP(s.ctx, network, name)
	// A name without an IPv6 address is looked up once more.
	if err != nil && network == "ip6" {
		list, err = net.DefaultResolver.LookupIP(s.ctx, "ip4", name)
	}
	if err != nil || len(list) == 0 {
		return nil, raiseAs("SaltSystemExit", "DNS lookup or connection check of '"+name+"' failed.")
	}
	found := list[0]
	for _, ip := range list {
		// Two seconds per address, as in Salt.
		d := net.Dialer{Timeout: 2 * time.Second}
		c, err := d.DialContext(s.ctx, "tcp", net.JoinHostPort(ip.String(), pyobj.Str(args[0])))
		if err == nil {
			c.Close()
			found = ip
			break
		}
	}
	// An IPv6 address is shown as in a URL.
	if found.To4() == nil {
		return "[" + found.String() + "]", nil
	}
	return found.String(), nil
}
