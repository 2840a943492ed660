package sdb

import (
	"context"
	"errors"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/vaultkv"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// inVault splits a key of the driver vault: PATH?KEY or PATH/KEY (salt/sdb/vault.py).
func (a *address) inVault() (path, key string, err error) {
	if path, key, ok := strings.Cut(a.key, "?"); ok {
		if strings.Contains(key, "?") {
			return "", "", &modules.PythonError{Type: "ValueError", Msg: "too many values to unpack (expected 2)"}
		}
		return path, key, nil
	}
	i := strings.LastIndexByte(a.key, '/')
	if i < 0 {
		return "", "", &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
	}
	return a.key[:i], a.key[i+1:], nil
}

// vaultError returns an error in the form of Salt's driver, which keeps the text only.
func vaultError(err error) error {
	var e *vaultkv.Error
	if errors.As(err, &e) {
		return modules.Errorf("%s", e.Msg)
	}
	_, text := modules.Exception(err)
	return modules.Errorf("%s", text)
}

func (a *address) getVault(ctx context.Context, c *modules.Call) (any, error) {
	path, key, err := a.inVault()
	if err != nil {
		return nil, err
	}
	secret, err := vaultkv.Read(ctx, c, path, false)
	if vaultkv.Is(err, vaultkv.NotFound) {
		secret, err = vaultkv.Read(ctx, c, a.key, false)
		if vaultkv.Is(err, vaultkv.NotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, vaultError(err)
		}
		return secret, nil
	}
	if err != nil {
		return nil, vaultError(err)
	}
	d, ok := secret.(*pyobj.Dict)
	if !ok {
		return nil, modules.Errorf("argument of type '%s' is not iterable", modules.TypeName(secret))
	}
	return d.Value(key), nil
}

func (a *address) setVault(ctx context.Context, c *modules.Call, value any) (any, error) {
	path, key, err := a.inVault()
	if err != nil {
		return nil, err
	}
	data := pyobj.NewDict(key, pyobj.From(value))
	whole := pyobj.NewDict()
	if pytext.Truth(a.profile["patch"]) {
		secret, err := vaultkv.Read(ctx, c, path, false)
		if err == nil {
			if d, ok := secret.(*pyobj.Dict); ok {
				whole = d.Copy()
			}
			_, err = vaultkv.Patch(ctx, c, path, data)
		}
		if err == nil {
			return true, nil
		}
		if !vaultkv.Is(err, vaultkv.NotFound) && !vaultkv.Is(err, vaultkv.PermissionDenied) {
			return nil, err
		}
	}
	whole.Update(data)
	if _, err := vaultkv.Write(ctx, c, path, whole); err != nil {
		return nil, vaultError(err)
	}
	return true, nil
}
