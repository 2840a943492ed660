package render

import (
	"bytes"
	"context"
	"crypto/sha256"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// The marks around an encrypted message.
const (
	gpgBegin = "-----BEGIN PGP MESSAGE-----"
	gpgEnd   = "-----END PGP MESSAGE-----"
)

// renderGPG decrypts the PGP messages in text, or in the texts of data, with the program gpg (salt/renderers/gpg.py).
func renderGPG(ctx context.Context, c *modules.Call, t *modules.Template, in any, _ string) (any, error) {
	g := &gpg{ctx: ctx, c: c, program: c.Which("gpg")}
	if g.program == "" {
		return nil, &modules.RenderError{Msg: "GPG unavailable", Text: "GPG unavailable"}
	}
	if v, ok := t.Vars["translate_newlines"]; ok {
		g.newlines = pyobj.Truth(v)
	}
	return eachText(in, func(v any) (any, error) {
		if b, ok := v.([]byte); ok {
			return g.text(string(b))
		}
		return g.text(v.(string))
	})
}

type gpg struct {
	ctx      context.Context
	c        *modules.Call
	program  string
	newlines bool
}

// eachText puts what replace makes of them in the place of the texts, and of bytes, of data.
func eachText(v any, replace func(v any) (any, error)) (any, error) { return eachTextIn(v, 0, replace) }

func eachTextIn(v any, depth int, replace func(v any) (any, error)) (any, error) {
	if depth > 200 {
		return v, nil
	}
	switch v := v.(type) {
	case string, []byte:
		return replace(v)
	case pyobj.Markup:
		return replace(string(v))
	case *pyobj.Dict:
		for k, x := range v.All() {
			x, err := eachTextIn(x, depth+1, replace)
			if err != nil {
				return nil, err
			}
			_ = v.Set(k, x)
		}
	case *pyobj.List:
		for i := range v.Items {
			x, err := eachTextIn(v.Items[i], depth+1, replace)
			if err != nil {
				return nil, err
			}
			v.Items[i] = x
		}
	}
	return v, nil
}

// text decrypts every message in a text.
func (g *gpg) text(s string) (any, error) {
	if g.newlines {
		s = strings.ReplaceAll(s, `\n`, "\n")
	}
	var out bytes.Buffer
	found := false
	for rest := s; ; {
		i := strings.Index(rest, gpgBegin)
		j := -1
		if i >= 0 {
			j = strings.Index(rest[i:], gpgEnd)
		}
		if j < 0 {
			out.WriteString(rest)
			break
		}
		j += i + len(gpgEnd)
		plain, err := g.decrypt(rest[i:j])
		if err != nil {
			return nil, err
		}
		out.WriteString(rest[:i])
		out.Write(plain)
		rest, found = rest[j:], true
	}
	if !found {
		return s, nil
	}
	b := bytes.TrimRight(out.Bytes(), "\n")
	if utf8.Valid(b) {
		return string(b), nil
	}
	return b, nil
}

// maxPlain bounds a decrypted message.
const maxPlain = 16 << 20

// keyDir is the directory of the keys: that of the configuration or of the pillar, or the one beside the configuration.
//
// Salt takes it also from the grains, which on a master a minion chooses.
func (g *gpg) keyDir() string {
	for _, v := range [...]any{g.c.Opt("gpg_keydir"), g.c.PillarData()["gpg_keydir"]} {
		if dir, _ := v.(string); dir != "" {
			return dir
		}
	}
	conf, _ := g.c.Opt("config_dir").(string)
	if conf == "" {
		file, _ := g.c.Opt("conf_file").(string)
		conf = filepath.Dir(file)
	}
	return filepath.Join(conf, "gpgkeys")
}

// decrypt gives the plain text; the message itself if gpg cannot read it, unless gpg_decrypt_must_succeed is set.
func (g *gpg) decrypt(message string) ([]byte, error) {
	message = strings.ReplaceAll(message, `\n`, "\n")
	dir := g.keyDir()
	kept := pytext.Truth(g.c.Opt("gpg_cache"))
	if kept {
		if plain, ok := messages.get(dir, message, g.c.Now()); ok {
			return plain, nil
		}
	}
	res, err := g.c.Cmd(g.ctx, modules.Command{
		Args:  []string{g.program, "--homedir", dir, "--status-fd", "2", "--no-tty", "-d"},
		Stdin: strings.NewReader(message), Limit: maxPlain, Dir: "/",
	})
	if err != nil {
		return nil, &modules.RenderError{Msg: "GPG unavailable", Text: "GPG unavailable", Err: err}
	}
	if len(res.Stdout) > 0 {
		if kept {
			ttl, _ := modules.ToInt(g.c.Opt("gpg_cache_ttl"))
			messages.put(dir, message, res.Stdout, g.c.Now().Add(time.Duration(ttl)*time.Second))
		}
		return res.Stdout, nil
	}
	g.c.Logger().Warn("Could not decrypt cipher", "received", string(res.Stderr))
	if pytext.Truth(g.c.Opt("gpg_decrypt_must_succeed")) {
		msg := "Could not decrypt cipher " + pytext.Bytes([]byte(message)) + ", received: " + pytext.Bytes(res.Stderr)
		return nil, &modules.RenderError{Msg: msg, Text: msg}
	}
	return []byte(message), nil
}

// cache are messages that were decrypted (the option gpg_cache). They stay in memory whatever gpg_cache_backend says: Salt's "disk"
// would leave plain text in a file.
type cache struct {
	mu sync.Mutex
	// plain has what a message says and until when it counts, by the directory of keys and the message. Guarded by mu.
	plain map[[sha256.Size]byte]decrypted
	size  int // of all messages; guarded by mu
}

type decrypted struct {
	text  []byte
	until time.Time
}

// maxCache bounds the messages that are kept.
const maxCache = 16 << 20

var messages cache

func cacheKey(dir, message string) [sha256.Size]byte {
	return sha256.Sum256([]byte(dir + "\x00" + message))
}

func (c *cache) get(dir, message string, now time.Time) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.plain[cacheKey(dir, message)]
	return d.text, ok && now.Before(d.until)
}

func (c *cache) put(dir, message string, text []byte, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plain == nil || c.size+len(text) > maxCache {
		c.plain, c.size = map[[sha256.Size]byte]decrypted{}, 0
	}
	if len(text) <= maxCache {
		key := cacheKey(dir, message)
		c.size += len(text) - len(c.plain[key].text)
		c.plain[key] = decrypted{text, until}
	}
}
