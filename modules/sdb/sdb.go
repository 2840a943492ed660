// Package sdb is Salt's execution module "sdb": values of other databases, by address. It has the drivers env, vault and yaml. Salt's
// source: salt/modules/sdb.py, salt/utils/sdb.py, salt/sdb/env.py, salt/sdb/vault.py and salt/sdb/yaml.py.
package sdb

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math/big"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// sdb.get differs: drivers are env, vault and yaml; others are an error that names them.
// sdb.set differs: with the driver env, which changes the environment of the program, values are texts.

// address is a text sdb://profile/key, with the configuration of its profile.
type address struct {
	profile map[string]any
	driver  string
	key     string
}

// parse parses an address. It returns nil if the text is not an address, or if its profile is unknown; why is the
// reason, for callers that require an address.
func parse(c *modules.Call) (a *address, why string, err error) {
	uri, _ := c.Value("uri").(string)
	rest, ok := strings.CutPrefix(uri, "sdb://")
	if !ok {
		return nil, `SDB uri must start with "sdb://"`, nil
	}
	name, key, _ := strings.Cut(rest, "/")
	if key == "" {
		return nil, "SDB uri must have a profile name as a first part of the uri before the /", nil
	}
	v := c.Config()[name]
	if !pytext.Truth(v) {
		if v, ok = c.PillarData()[name]; !ok {
			v = map[string]any{}
		}
	}
	profile, ok := v.(map[string]any)
	if !ok {
		return nil, "", modules.Errorf("cannot use the sdb profile %q: it is no map", name)
	}
	driver, ok := profile["driver"]
	if !ok {
		return nil, `SDB profile "` + name + `" wasnt found in the minion configuration`, nil
	}
	return &address{profile, pytext.Str(driver), key}, "", nil
}

func get(ctx context.Context, c *modules.Call) (any, error) {
	a, why, err := parse(c)
	switch {
	case err != nil:
		return nil, err
	case a != nil:
		return a.get(ctx, c)
	case pytext.Truth(c.Value("strict")):
		return nil, modules.Usagef("%s", why)
	}
	return c.Value("uri"), nil
}

func set(ctx context.Context, c *modules.Call) (any, error) {
	a, _, err := parse(c)
	if a == nil {
		return false, err
	}
	return a.set(ctx, c, c.Value("value"))
}

func remove(_ context.Context, c *modules.Call) (any, error) {
	a, _, err := parse(c)
	if a == nil {
		return false, err
	}
	if a.driver == "env" || a.driver == "yaml" || a.driver == "vault" { // as in stock, these drivers remove nothing
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(a.driver + ".delete")}
	}
	return nil, a.unknown()
}

func getOrSetHash(ctx context.Context, c *modules.Call) (any, error) {
	if uri, ok := c.Value("uri").(string); !ok || !strings.HasPrefix(uri, "sdb://") {
		return false, nil
	}
	a, _, err := parse(c)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return c.Value("uri"), nil // what stock's sdb.get answers
	}
	v, err := a.get(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case pytext.Truth(v):
		return v, nil
	case v != nil:
		return nil, &modules.PythonError{Type: "UnboundLocalError",
			Msg: "cannot access local variable 'val' where it is not associated with a value"}
	}
	length, err := c.Int("length")
	if err != nil {
		return nil, err
	}
	text, err := randomText(length, []rune(c.Str("chars")))
	if err != nil {
		return nil, err
	}
	if _, err := a.set(ctx, c, text); err != nil {
		return nil, err
	}
	return text, nil
}

// maxRandom bounds the length of random texts.
const maxRandom = 1 << 20

func randomText(length int64, chars []rune) (string, error) {
	if len(chars) == 0 && length > 0 {
		return "", modules.IndexError()
	}
	if length > maxRandom {
		return "", modules.Errorf("cannot make a random text of %d characters: %d are the most", length, maxRandom)
	}
	var b strings.Builder
	for range length {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(chars))))
		if err != nil {
			return "", err
		}
		b.WriteRune(chars[n.Int64()])
	}
	return b.String(), nil
}

func (a *address) unknown() error {
	return modules.Errorf("cannot use the sdb driver %q: there are env, vault and yaml", a.driver)
}

func (a *address) get(ctx context.Context, c *modules.Call) (any, error) {
	switch a.driver {
	case "env":
		if v, ok := os.LookupEnv(a.key); ok {
			return v, nil
		}
		return nil, nil
	case "yaml":
		return a.fromFiles(ctx, c)
	case "vault":
		return a.getVault(ctx, c)
	}
	return nil, a.unknown()
}

func (a *address) set(ctx context.Context, c *modules.Call, value any) (any, error) {
	switch a.driver {
	case "env": // as in stock, a value that is there stays
		if v, ok := os.LookupEnv(a.key); ok {
			return v, nil
		}
		text, ok := value.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "str expected, not " + modules.TypeName(value)}
		}
		if err := os.Setenv(a.key, text); err != nil {
			return nil, modules.OSError(err)
		}
		return text, nil
	case "yaml":
		return nil, &modules.PythonError{Type: "salt.exceptions.NotImplemented"}
	case "vault":
		return a.setVault(ctx, c, value)
	}
	return nil, a.unknown()
}

// fromFiles merges the files of a profile and looks for the key, which may lead into maps and lists with colons.
func (a *address) fromFiles(ctx context.Context, c *modules.Call) (any, error) {
	var all any = &pyobj.Dict{}
	options, _ := a.profile["merge"].(map[string]any)
	files, _ := a.profile["files"].([]any)
	for _, f := range files {
		name := pytext.Str(f)
		text, err := os.ReadFile(c.Path(name))
		if err != nil {
			c.Logger().Error("Cannot read a file of sdb", slog.String("file", name), slog.Any("error", err))
			continue
		}
		v, err := yaml.ParseObject(text, name, false)
		if err != nil {
			return nil, modules.Errorf("cannot read sdb file %s: %s", name, err)
		}
		if _, ok := v.(*pyobj.Dict); !ok {
			c.Logger().Error("Cannot use a file of sdb: it holds no map", slog.String("file", name))
			continue
		}
		if all, err = c.ExecOrdered(ctx, "slsutil.merge", []any{all, v}, options); err != nil {
			return nil, err
		}
	}
	if pytext.Truth(a.profile["gpg"]) {
		plain, err := c.Template(ctx, modules.Template{Data: all, Pipe: "gpg"})
		if err != nil {
			return nil, err
		}
		all = plain
	}
	v, _ := nested.GetObject(all, a.key, ":")
	return v, nil
}
