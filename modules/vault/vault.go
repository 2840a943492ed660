// Package vault is Salt's execution module "vault": secrets and policies of a server of HashiCorp Vault or OpenBao. Salt's source:
// salt/modules/vault.py.
package vault

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/vaultkv"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// described returns an error with the name of its class, as Salt shows it.
func described(err error) string {
	var e *vaultkv.Error
	if errors.As(err, &e) {
		return e.Class + ": " + e.Msg
	}
	name, text := modules.Exception(err)
	return name[strings.LastIndexByte(name, '.')+1:] + ": " + text
}

// raise converts an error of the server to that of the policy functions. Other errors are unchanged.
func raise(err error) error {
	var e *vaultkv.Error
	if errors.As(err, &e) {
		return modules.Errorf("%s", described(err))
	}
	return err
}

// missing returns the argument default of the call, or an error if it is not set.
func missing(c *modules.Call, what string, err error) (any, error) {
	if v := c.Value("default"); v != unset {
		return v, nil
	}
	return nil, modules.Errorf("%s! %s", what, described(err))
}

// failed logs an error and returns false, the result of functions that only log errors.
func failed(c *modules.Call, what string, err error) (any, error) {
	c.Logger().Error("Failed to "+what+" secret!", slog.String("error", described(err)))
	return false, nil
}

// written returns the result of a change: with version 2 the description of the new version, otherwise true.
func written(c *modules.Call, what string, answer any, err error) (any, error) {
	if err != nil {
		return failed(c, what, err)
	}
	if d, ok := answer.(*pyobj.Dict); ok {
		data, ok := d.Get("data")
		if !ok {
			return failed(c, what, &modules.PythonError{Type: "KeyError", Msg: "'data'"})
		}
		return data, nil
	}
	return answer, nil
}

func readSecret(ctx context.Context, c *modules.Call) (any, error) {
	const what = "Failed to read secret"
	data, err := vaultkv.Read(ctx, c, c.Str("path"), c.Bool("metadata"))
	if err != nil {
		return missing(c, what, err)
	}
	key := c.Value("key")
	if key == nil {
		return data, nil
	}
	d, ok := data.(*pyobj.Dict)
	if !ok {
		return missing(c, what, &modules.TypeError{Msg: "'" + modules.TypeName(data) + "' object is not subscriptable"})
	}
	v, ok := d.Get(key)
	if !ok {
		return missing(c, what, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(key)})
	}
	return v, nil
}

// keywords returns the keys and values of a secret.
func keywords(c *modules.Call) *pyobj.Dict {
	d := pyobj.FromMap(c.Keywords)
	for _, key := range d.Keys() {
		if strings.HasPrefix(pyobj.Str(key), "__") {
			d.Delete(key)
		}
	}
	return d
}

func writeSecret(ctx context.Context, c *modules.Call) (any, error) {
	answer, err := vaultkv.Write(ctx, c, c.Str("path"), keywords(c))
	return written(c, "write", answer, err)
}

func writeRaw(ctx context.Context, c *modules.Call) (any, error) {
	answer, err := vaultkv.Write(ctx, c, c.Str("path"), pyobj.From(c.Value("raw")))
	return written(c, "write", answer, err)
}

func patchSecret(ctx context.Context, c *modules.Call) (any, error) {
	answer, err := vaultkv.Patch(ctx, c, c.Str("path"), keywords(c))
	return written(c, "patch", answer, err)
}

func deleteSecret(ctx context.Context, c *modules.Call) (any, error) {
	answer, err := vaultkv.Delete(ctx, c, c.Str("path"), c.Extra)
	if err != nil {
		return failed(c, "delete", err)
	}
	return answer, nil
}

func destroySecret(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return nil, modules.Usagef("Need at least one version to destroy.")
	}
	answer, err := vaultkv.Destroy(ctx, c, c.Str("path"), c.Extra)
	if err != nil {
		return failed(c, "destroy", err)
	}
	return answer, nil
}

func listSecrets(ctx context.Context, c *modules.Call) (any, error) {
	keys, err := vaultkv.List(ctx, c, c.Str("path"))
	if err != nil {
		return missing(c, "Failed to list secrets", err)
	}
	if c.Bool("keys_only") {
		return keys, nil
	}
	return pyobj.NewDict("keys", keys), nil
}

func clearCache(_ context.Context, c *modules.Call) (any, error) {
	vaultkv.Forget(c)
	return false, nil // nothing was removed from disk
}

func updateConfig(context.Context, *modules.Call) (any, error) { return true, nil }

// ask sends a request for functions that raise the server's errors.
func ask(ctx context.Context, c *modules.Call, method, endpoint string, payload any) (any, error) {
	return vaultkv.Do(ctx, c, func(v *vaultkv.Client) (any, error) { return v.Request(ctx, method, endpoint, payload) })
}

func policyFetch(ctx context.Context, c *modules.Call) (any, error) {
	answer, err := ask(ctx, c, "GET", "sys/policy/"+c.Str("policy"), nil)
	if vaultkv.Is(err, vaultkv.NotFound) {
		return nil, nil
	}
	return pick(answer, err, "rules")
}

// pick returns one value from an answer of the server.
func pick(answer any, err error, key string) (any, error) {
	if err != nil {
		return nil, raise(err)
	}
	if d, ok := answer.(*pyobj.Dict); ok {
		if v, ok := d.Get(key); ok {
			return v, nil
		}
	}
	return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(key)}
}

func policyWrite(ctx context.Context, c *modules.Call) (any, error) {
	answer, err := ask(ctx, c, "POST", "sys/policy/"+c.Str("policy"), pyobj.NewDict("policy", c.Value("rules")))
	return answer, raise(err)
}

func policyDelete(ctx context.Context, c *modules.Call) (any, error) {
	answer, err := ask(ctx, c, "DELETE", "sys/policy/"+c.Str("policy"), nil)
	if vaultkv.Is(err, vaultkv.NotFound) {
		return false, nil
	}
	return answer, raise(err)
}

func policiesList(ctx context.Context, c *modules.Call) (any, error) {
	answer, err := ask(ctx, c, "GET", "sys/policy", nil)
	return pick(answer, err, "policies")
}

func query(ctx context.Context, c *modules.Call) (any, error) {
	payload := c.Value("payload")
	if payload != nil {
		payload = pyobj.From(payload)
	}
	answer, err := ask(ctx, c, c.Str("method"), c.Str("endpoint"), payload)
	return answer, raise(err)
}

func serverConfig(ctx context.Context, c *modules.Call) (any, error) {
	v, err := vaultkv.Open(ctx, c)
	if err != nil {
		return nil, raise(err)
	}
	return v.Config(), nil
}
