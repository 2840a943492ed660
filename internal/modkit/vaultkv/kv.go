package vaultkv

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// mount is the path of a secret and the mount that contains it (salt/utils/vault/kv.py is_v2).
type mount struct {
	path string
	v2   bool
	base string // path of the mount
}

// at returns the path for a kind of request: data, metadata, delete or destroy. Version 1 has the same path for all
// kinds (_v2_the_path).
func (m mount) at(kind string) string {
	if !m.v2 {
		return m.path
	}
	path, base := strings.Trim(m.path, "/"), strings.Trim(m.base, "/")
	together, other := base+"/"+kind, base+"/data"
	if kind == "data" {
		other = base + "/metadata"
	}
	switch {
	case strings.HasPrefix(path, other):
		return strings.Replace(path, other, together, 1)
	case strings.HasPrefix(path, together):
		return path
	}
	return strings.Replace(path, base, together, 1)
}

// find returns the mount of a secret. It queries the server unless the response is cached. An unknown mount counts as
// version 1.
func (c *Client) find(ctx context.Context, call *modules.Call, path string) mount {
	var info any
	for key, v := range c.mounts.All() {
		if strings.HasPrefix(path, pyobj.Str(key)) {
			info = v
			break
		}
	}
	if info == nil {
		answer, err := c.Request(ctx, http.MethodGet, "sys/internal/ui/mounts/"+path, nil)
		if err != nil {
			call.Logger().Error("Cannot get the metadata of a secret", slog.String("path", path), slog.Any("error", err))
			return mount{path: path}
		}
		if info = field(answer, "data"); info == nil {
			return mount{path: path}
		}
		_ = c.mounts.Set(path, info) // text is a valid key
	}
	m := mount{path: path, base: path}
	m.v2 = or(field(info, "type"), "kv") == "kv" && field(info, "options", "version") == "2"
	if base, ok := field(info, "path").(string); ok {
		m.base = base
	}
	return m
}

// Read returns a secret. With metadata, the result for a mount of version 2 includes the secret's metadata. Errors
// are those of [Client.Request].
func Read(ctx context.Context, call *modules.Call, path string, metadata bool) (any, error) {
	return Do(ctx, call, func(c *Client) (any, error) { return c.read(ctx, c.find(ctx, call, path), metadata) })
}

func (c *Client) read(ctx context.Context, m mount, metadata bool) (any, error) {
	answer, err := c.Request(ctx, http.MethodGet, m.at("data"), nil)
	if err != nil {
		return nil, err
	}
	if m.v2 && !metadata {
		return field(answer, "data", "data"), nil
	}
	return field(answer, "data"), nil
}

// Write replaces a secret and returns the server's response.
func Write(ctx context.Context, call *modules.Call, path string, data any) (any, error) {
	return Do(ctx, call, func(c *Client) (any, error) { return c.write(ctx, c.find(ctx, call, path), data) })
}

func (c *Client) write(ctx context.Context, m mount, data any) (any, error) {
	if m.v2 {
		data = pyobj.NewDict("data", data)
	}
	return c.Request(ctx, http.MethodPost, m.at("data"), data)
}

// Patch changes keys of a secret; the value None removes a key. If the server cannot patch, the secret is read,
// changed and written back.
func Patch(ctx context.Context, call *modules.Call, path string, data *pyobj.Dict) (any, error) {
	return Do(ctx, call, func(c *Client) (any, error) {
		m := c.find(ctx, call, path)
		if m.v2 {
			answer, err := c.request(ctx, http.MethodPatch, m.at("data"), pyobj.NewDict("data", data), "application/merge-patch+json")
			if !Is(err, PermissionDenied) && !Is(err, unsupported) {
				return answer, err
			}
			call.Logger().Warn("Failed patching secret, is the `patch` capability set?")
		}
		secret, err := c.read(ctx, m, false)
		if err != nil {
			return nil, err
		}
		merged, err := mergePatch(secret, data)
		if err != nil {
			return nil, err
		}
		return c.write(ctx, m, merged)
	})
}

// mergePatch implements RFC 7396 as Salt does.
func mergePatch(data any, patch *pyobj.Dict) (any, error) {
	if patch.Len() == 0 {
		return data, nil
	}
	into, ok := data.(*pyobj.Dict)
	if !ok {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "Data and patch must be dictionaries."}
	}
	for key, v := range patch.All() {
		switch v := v.(type) {
		case nil:
			into.Delete(key)
			continue
		case *pyobj.Dict:
			old, ok := into.Get(key)
			if !ok {
				old = pyobj.NewDict()
			}
			merged, err := mergePatch(old, v)
			if err != nil {
				return nil, err
			}
			_ = into.Set(key, merged) // it is a key of the patch, so it is valid
			continue
		}
		_ = into.Set(key, v) // it is a key of the patch, so it is valid
	}
	return into, nil
}

// Delete removes the current version of a secret, or the given versions.
func Delete(ctx context.Context, call *modules.Call, path string, versions []any) (any, error) {
	return Do(ctx, call, func(c *Client) (any, error) {
		numbers, err := toNumbers(versions)
		if err != nil {
			return nil, err
		}
		m := c.find(ctx, call, path)
		switch {
		case len(versions) == 0:
			return c.Request(ctx, http.MethodDelete, m.at("data"), nil)
		case !m.v2:
			return nil, &Error{"VaultInvocationError", "Versioning support requires kv-v2."}
		}
		return c.Request(ctx, http.MethodPost, m.at("delete"), pyobj.NewDict("versions", numbers))
	})
}

// Destroy removes versions of a secret permanently.
func Destroy(ctx context.Context, call *modules.Call, path string, versions []any) (any, error) {
	return Do(ctx, call, func(c *Client) (any, error) {
		numbers, err := toNumbers(versions)
		if err != nil {
			return nil, err
		}
		m := c.find(ctx, call, path)
		if !m.v2 {
			return nil, &Error{"VaultInvocationError", "Destroy operation requires kv-v2."}
		}
		return c.Request(ctx, http.MethodPost, m.at("destroy"), pyobj.NewDict("versions", numbers))
	})
}

func toNumbers(versions []any) (*pyobj.List, error) {
	list := pyobj.NewList()
	for _, v := range versions {
		n, err := modules.ToInt(v)
		if err != nil {
			return nil, &Error{"VaultInvocationError", "Versions have to be specified as integers."}
		}
		list.Items = append(list.Items, n)
	}
	return list, nil
}

// List returns the names of the secrets below a path.
func List(ctx context.Context, call *modules.Call, path string) (any, error) {
	return Do(ctx, call, func(c *Client) (any, error) {
		answer, err := c.Request(ctx, "LIST", c.find(ctx, call, path).at("metadata"), nil)
		if err != nil {
			return nil, err
		}
		return field(answer, "data", "keys"), nil
	})
}
