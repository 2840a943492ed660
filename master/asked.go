package master

import (
	"context"

	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/protocol/crypt"
)

// requestHost implements the interfaces through which package requests uses the master.
type requestHost struct{ m *Master }

var (
	_ requests.Minions       = requestHost{}
	_ requests.PillarProgram = requestHost{}
	_ requests.TopsProgram   = requestHost{}
	_ requests.EventAccess   = requestHost{}
)

// MayFire implements requests.EventAccess. It requires EventOptions.Access.
func (h requestHost) MayFire(r EventRequest) bool { return h.m.opts.Events.Access(r) }

// UnderKey implements door.SharedKey.
func (h requestHost) UnderKey(ctx context.Context, peer string, size int,
	open func(key *crypt.Key) (id string, err error)) error {
	return h.m.tenants.UnderKey(ctx, peer, size, h.m.network.Keyring, open)
}

// MakePillar implements requests.PillarProgram. It requires PillarOptions.Func.
func (h requestHost) MakePillar(ctx context.Context, r pillar.Request) (map[string]any, error) {
	return h.m.opts.Pillar.Func(ctx, r)
}

// MakeTops implements requests.TopsProgram. It requires MinionOptions.Tops.
func (h requestHost) MakeTops(ctx context.Context, id string,
	opts map[string]any) (map[string]any, error) {
	return h.m.opts.Minions.Tops(ctx, id, opts)
}

// fileAccess implements requests.FileAccess with FileOptions.Access.
type fileAccess struct{ m *Master }

// MayRead implements requests.FileAccess.
func (a fileAccess) MayRead(ctx context.Context, id, name, env string) bool {
	tenant, err := a.m.tenants.KnownTenant(ctx, id)
	if err != nil {
		a.m.log.Error("Cannot read the tenant of a minion", "minion", id, "err", err)
		return false
	}
	clean, env, ok := fileserver.Split(name, env)
	return ok && a.m.opts.Files.Access(FileRequest{ID: id, Tenant: tenant, Env: env, Path: clean})
}

// Match implements requests.Minions.
func (h requestHost) Match(tgtType string, tgt any) ([]string, error) {
	return h.m.targets.Match(tgtType, tgt)
}

// Neighbours implements requests.Minions.
func (h requestHost) Neighbours(ctx context.Context, id string, ids []string) ([]string, error) {
	same, _, err := h.m.tenants.Neighbours(ctx, id, ids)
	return same, err
}

// Means implements requests.Minions.
func (h requestHost) Means(tgtType string, tgt any, id string) bool {
	return h.m.targets.Means(tgtType, tgt, id)
}
