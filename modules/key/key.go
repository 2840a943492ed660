// Package key is Salt's execution module "key": the fingerprints by which a minion and its master know each other. Salt's source:
// salt/modules/key.py, salt/utils/crypt.py.
package key

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "key".
var Module = &modules.Module{Name: "key", Doc: "The fingerprints of keys.", Funcs: []modules.Def{
	{Name: "finger", Doc: `Return the fingerprint of the minion's public key, empty while it has none.

hash_type
    The hash, by default that of the option hash_type.`,
		Example: "salt '*' key.finger", Params: []modules.Param{{Name: "hash_type", Optional: true}}, Run: finger},
	{Name: "finger_master", Doc: `Return the fingerprint of the public key of the minion's master, empty before the first contact.

hash_type
    The hash, by default that of the option hash_type.`,
		Example: "salt '*' key.finger_master", Params: []modules.Param{{Name: "hash_type", Optional: true}}, Run: fingerMaster},
}}

func finger(_ context.Context, c *modules.Call) (any, error) { return fingerOf(c, "minion.pub") }

func fingerMaster(_ context.Context, c *modules.Call) (any, error) {
	return fingerOf(c, "minion_master.pub")
}

// fingerOf returns the fingerprint of a file in pki_dir, "" if it is missing.
func fingerOf(c *modules.Call, name string) (any, error) {
	dir, _ := c.Opt("pki_dir").(string)
	text, err := os.ReadFile(c.Path(filepath.Join(dir, name)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read key: %w", err)
	}
	kind := c.Value("hash_type")
	if kind == nil {
		kind = c.Opt("hash_type")
	}
	h := hashname.New(pytext.Str(kind))
	if h == nil {
		return nil, modules.Errorf("module 'hashlib' has no attribute '%s'", pytext.Str(kind))
	}
	h.Write(body(text))
	return colons(hex.EncodeToString(h.Sum(nil))), nil
}

// body returns the part of a PEM key that is hashed: the lines between the first and the last, without empty ones.
func body(text []byte) []byte {
	var lines [][]byte
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		if line := bytes.Clone(scan.Bytes()); len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, append(line, '\n'))
		}
	}
	if len(lines) < 2 {
		return nil
	}
	return bytes.Join(lines[1:len(lines)-1], nil)
}

// colons puts a colon after each byte but the last.
func colons(digits string) string {
	var b strings.Builder
	for i := 0; i < len(digits); i += 2 {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(digits[i : i+2])
	}
	return b.String()
}
