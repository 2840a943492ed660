package pillar

import (
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// encrypted is an entry of the option decrypt_pillar: a path, and the renderer that decrypts the values there, or ""
// for the default one.
type encrypted struct{ key, renderer string }

// decryptKeys decrypts the parts of the pillar that the option decrypt_pillar names (Pillar.decrypt_pillar). A part
// that cannot be decrypted stays as it is and is reported under _errors.
func (c *compilation) decryptKeys(out *pyobj.Dict) error {
	if !pytext.Truth(c.opts["decrypt_pillar"]) {
		return nil
	}
	keys := encryptedKeys(c.opts["decrypt_pillar"])
	var errs []any
	if len(keys) == 0 {
		errs = append(errs, "decrypt_pillar config option is malformed")
	}
	delimiter := c.optionText("decrypt_pillar_delimiter")
	if delimiter == "" {
		delimiter = ":"
	}
	// Each key is a path. The value there is replaced in its parent.
	for _, k := range keys {
		path := strings.Split(k.key, delimiter)
		parent, _ := followPath(out, path[:len(path)-1]).(*pyobj.Dict)
		if parent == nil {
			continue
		}
		v := parent.Value(path[len(path)-1])
		if v == nil {
			continue
		}
		name := k.renderer
		if name == "" {
			name = c.optionText("decrypt_pillar_default")
		}
		plain, err := c.call.Decrypt(c.ctx, v, name, false)
		// A cancelled compilation is not an error of the pillar.
		if ctxErr := c.ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		if err != nil {
			msg := "Failed to decrypt pillar key '" + k.key + "': " + err.Error()
			c.o.Log.Error(msg, "minion", c.req.ID)
			errs = append(errs, msg)
			continue
		}
		if err := parent.Set(path[len(path)-1], plain); err != nil {
			return err
		}
	}
	if len(errs) == 0 {
		return nil
	}
	// Earlier errors stay in the list.
	list, ok := out.Value("_errors").(*pyobj.List)
	if !ok {
		list = pyobj.NewList()
	}
	list.Items = append(list.Items, errs...)
	return out.Set("_errors", list)
}

// encryptedKeys reads the option decrypt_pillar: a dict, or a list of keys and of dicts with one entry. It returns
// nil if the option is malformed.
func encryptedKeys(v any) []encrypted {
	var keys []encrypted
	add := func(key, renderer any) {
		k := encrypted{key: pytext.Str(key)}
		if pytext.Truth(renderer) {
			k.renderer = pytext.Str(renderer)
		}
		keys = append(keys, k)
	}
	switch v := v.(type) {
	case map[string]any:
		// The keys of a Go map are sorted, so that errors come in a fixed order.
		for _, k := range slices.Sorted(maps.Keys(v)) {
			add(k, v[k])
		}
	case []any:
		for _, x := range v {
			switch x := x.(type) {
			case map[string]any:
				if len(x) != 1 {
					return nil
				}
				for k, r := range x {
					add(k, r)
				}
			case string, int64, float64:
				add(x, nil)
			default:
				return nil
			}
		}
	}
	return keys
}

// followPath returns the value at a path through dicts, or nil if the path does not exist.
func followPath(v any, path []string) any {
	for _, name := range path {
		d, ok := v.(*pyobj.Dict)
		if !ok {
			return nil
		}
		v = d.Value(name)
	}
	return v
}
