package requests

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
)

// Revocation lets minions delete their own keys.
type Revocation struct {
	Keys  *keys.Store
	Cache *cache.Cache
	// Off refuses that (allow_minion_key_revoke: False).
	Off bool
}

// Revoke answers revoke_auth: it deletes the minion's own key and its cached data, which the request may ask to
// keep.
func (r *Revocation) Revoke(_ context.Context, v protocol.Verified) (any, error) {
	if r.Off {
		return false, nil
	}
	if err := r.Keys.Delete(v.ID()); err != nil {
		return false, err
	}
	if !pytext.Truth(v.Load()["preserve_minion_cache"]) {
		if err := r.Cache.Delete(v.ID()); err != nil {
			return true, errors.Join(errors.New("key is deleted"), err)
		}
	}
	return true, nil
}
