package master

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/master/store"
)

// tenantOf says whose a minion is, "" for nobody's, and whether it was announced.
func (m *Master) tenantOf(ctx context.Context, id string) (tenant string, announced bool, err error) {
	if m.minions == nil {
		return "", false, nil
	}
	x, err := m.minions.Minion(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return "", false, nil
	}
	return x.Tenant, err == nil, err
}
