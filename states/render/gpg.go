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

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// gpgBegin and gpgEnd enclose an encrypted message.
const (
	gpgBegin = "-----BEGIN PGP MESSAGE-----"
	gpgEnd   = "-----END PGP MESSAGE-----"
)

// renderGPG decrypts the PGP messages in a text, or in the texts of data, with the program gpg
// (salt/renderers/gpg.py). It runs a program, as Salt does, because the keys may be in gpg's agent or on a card.
func renderGPG(ctx context.Context, c *modules.Call, t *modules.Template, in any, _ string) (any, error) {
	// gpg is looked up once per run.
	g := &gpg{ctx: ctx, c: c, program: c.Which("gpg")}
	if g.program == "" {
		return nil, &modules.RenderError{Msg: "GPG unavailable", Text: "GPG unavailable"}
	}
	// Call.Decrypt sets the variable.
	if v, ok := t.Vars["translate_newlines"]; ok {
		g.newlines = pyobj.Truth(v)
	}
	return eachText(in, func(v any) (any, error) {
		if b, ok := v.([]byte); ok {
			return g.decryptText(string(b))
		}
		return g.decryptText(v.(string))
	})
}

// gpg is one run of the renderer.
type gpg struct {
	ctx     context.Context
	c       *modules.Call
	program string
	// newlines is set if "\n" in a message stands for a line break.
	newlines bool
}

// eachText replaces the texts and bytes of data by what replace returns, in place. Keys stay as they are.
func eachText(v any, replace func(v any) (any, error)) (any, error) { return eachTextIn(v, 0, replace) }

// eachTextIn stops below 200 levels, where data may contain itself.
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
		// The dict is changed during the iteration. That is safe, because its keys stay the same.
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

// decryptText decrypts every message in a text. The result is bytes if it is not UTF-8.
func (g *gpg) decryptText(s string) (any, error) {
	if g.newlines {
		s = strings.ReplaceAll(s, `\n`, "\n")
	}
	var out bytes.Buffer
	found := false
	// Each message is decrypted by itself, and the text between them is kept.
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
		plain, err := g.decryptMessage(rest[i:j])
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
	// gpg ends its output with a line break that the message does not have.
	b := bytes.TrimRight(out.Bytes(), "\n")
	if utf8.Valid(b) {
		return string(b), nil
	}
	return b, nil
}

// maxPlain bounds a decrypted message, and a secret of the password store.
const maxPlain = 16 << 20

// keyDir returns the directory of the keys: that of the configuration or of the pillar, or gpgkeys beside the
// configuration.
//
// Salt also takes it from the grains. On a master a minion chooses its grains, so they are not asked here.
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

// decryptMessage returns the plain text. If gpg cannot read the message it returns the message itself, or an error
// if gpg_decrypt_must_succeed is set.
func (g *gpg) decryptMessage(message string) ([]byte, error) {
	// In YAML on one line, a line break is written as two characters.
	message = strings.ReplaceAll(message, `\n`, "\n")
	dir := g.keyDir()
	kept := pytext.Truth(g.c.Opt("gpg_cache"))
	if kept {
		if plain, ok := messages.getPlain(dir, message, g.c.Now()); ok {
			return plain, nil
		}
	}
	// The status goes to stderr, so that the reason of a failure can be logged.
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
			messages.putPlain(dir, message, res.Stdout, g.c.Now().Add(time.Duration(ttl)*time.Second))
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

// cache keeps messages that were decrypted (the option gpg_cache). They stay in memory whatever gpg_cache_backend
// says: Salt's "disk" would leave plain text in a file.
type cache struct {
	mu sync.Mutex
	// plain holds the plain texts with their expiry times, by the directory of keys and the message. Guarded by mu.
	plain map[[sha256.Size]byte]decrypted
	size  int // of all messages; guarded by mu
}

// decrypted is a cached plain text.
type decrypted struct {
	text  []byte
	until time.Time
}

// maxCache limits the total size of the cached plain texts in bytes. A full cache is emptied.
const maxCache = 16 << 20

// messages is shared by all renders of the process, as its keys include the directory of the keys.
var messages cache

// cacheKey hashes the key, so that encrypted messages need not be kept.
func cacheKey(dir, message string) [sha256.Size]byte {
	return sha256.Sum256([]byte(dir + "\x00" + message))
}

// getPlain returns a cached plain text that has not expired.
func (c *cache) getPlain(dir, message string, now time.Time) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.plain[cacheKey(dir, message)]
	return d.text, ok && now.Before(d.until)
}

// putPlain caches a plain text until the given time.
func (c *cache) putPlain(dir, message string, text []byte, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The size is that of all texts together.
	if c.plain == nil || c.size+len(text) > maxCache {
		c.plain, c.size = map[[sha256.Size]byte]decrypted{}, 0
	}
	if len(text) <= maxCache {
		key := cacheKey(dir, message)
		c.size += len(text) - len(c.plain[key].text)
		c.plain[key] = decrypted{text, until}
	}
}
